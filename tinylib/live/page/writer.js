// A trained Transformer in the page: its decoder, over the graphs of transformer.py.

import { pickRows } from "./search.js";

/** The decoder's state before its first word: a cache of none. */
export function nothingWritten({
  limits: {
    L: [L],
    D: [D],
  },
}) {
  const none = { dims: [1, L, 0, D], data: new Float32Array(0) };
  return { cached_keys: none, cached_values: none };
}

/** The decoder's step for search.js; all hypotheses share `keys` and `values` of the English. */
export function writer(run, english) {
  const copies = new Map(); // number of hypotheses -> keys and values for each of them
  return async (state, token) => {
    const B = token.length;
    if (!copies.has(B)) copies.set(B, pickRows(english, Array(B).fill(0)));
    const { log_probs, now_keys, now_values } = await run("transformer-write", {
      token,
      ...copies.get(B),
      ...state,
    });
    return { logProbs: log_probs, state: { cached_keys: now_keys, cached_values: now_values } };
  };
}
