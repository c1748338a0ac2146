// Numbers that look like chance.

const [GAMMA, MIX_1, MIX_2] = [0x9e3779b97f4a7c15n, 0xbf58476d1ce4e5b9n, 0x94d049bb133111ebn];

/** Links and trainings say which generator drew for them. The one before this had no number. */
export const GENERATOR = 2;

/** The first of numbers(), as uniform() of tinylib/lab/models/language.py has them. */
export function uniform(seed, count) {
  const next = numbers(seed);
  return Array.from({ length: count }, next);
}

const wrapped = (integer) => BigInt.asUintN(64, integer);

/** As in tinylib/lab/train/chance.py, from its number `skip` on: each call gives the next one. */
export function numbers(seed, skip = 0) {
  let state = wrapped((BigInt(seed) << 32n) + BigInt(skip) * GAMMA);
  return () => {
    state = wrapped(state + GAMMA);
    let z = wrapped((state ^ (state >> 30n)) * MIX_1);
    z = wrapped((z ^ (z >> 27n)) * MIX_2);
    z ^= z >> 31n;
    return (Number(z >> 12n) + 0.5) / 2 ** 52;
  };
}

/** All parameters as one vector, as initial() of tinylib/lab/train/functional.py fills them. */
export function initial(fills, seed) {
  const next = numbers(seed);
  const rules = {
    constant: (size) => size,
    uniform: (size) => size * (2 * next() - 1),
    normal: (size) => size * Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next()),
  };
  const vector = new Float32Array(fills.reduce((sum, [, , count]) => sum + count, 0));
  let end = 0;
  for (const [kind, size, count] of fills) {
    for (let i = 0; i < count; i += 1) vector[end + i] = rules[kind](size);
    end += count;
  }
  return vector;
}
