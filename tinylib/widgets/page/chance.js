// Numbers that look like chance.

const [PRIME, FACTOR, SKIPPED] = [2 ** 31 - 1, 48271, 8];

/** The first of numbers(), as uniform() of tinylib/lab/models/language.py has them. */
export function uniform(seed, count) {
  const next = numbers(seed);
  return Array.from({ length: count }, next);
}

/** As in tinylib/lab/chance.py, from its number `skip` on: each call gives the next one. */
export function numbers(seed, skip = 0) {
  let state = Number((BigInt(seed) * powerOf(BigInt(SKIPPED + skip))) % BigInt(PRIME));
  return () => {
    state = (state * FACTOR) % PRIME; // exact: below 2^53
    return state / PRIME;
  };
}

function powerOf(exponent) {
  let [result, base] = [1n, BigInt(FACTOR)];
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * base) % BigInt(PRIME);
    base = (base * base) % BigInt(PRIME);
  }
  return result;
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
