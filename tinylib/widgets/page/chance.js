// Numbers that look like chance.

const PRIME = 2 ** 31 - 1;

/** As uniform() of tinylib/lab/models/language.py has them: for a seed always the same. */
export function uniform(seed, count) {
  let state = seed;
  return Array.from({ length: 8 + count }, () => {
    state = (state * 48271) % PRIME; // exact: below 2^53
    return state / PRIME;
  }).slice(8);
}
