// The trained translator in the page: loops over the graphs of translator.py.

export const [BOS, EOS] = [1, 2];

/** The sentence read word by word: embeddings and states (S × D), and the last state. */
export async function encode(run, ids, { limits }) {
  const [[L], [D]] = [limits.L, limits.D];
  let hidden = { dims: [1, L, D], data: new Float32Array(L * D) };
  const [embeddings, states] = [new Float32Array(ids.length * D), new Float32Array(ids.length * D)];
  for (const [s, id] of ids.entries()) {
    const seen = await run("translator-read", { token: [id], hidden });
    hidden = seen.state;
    embeddings.set(seen.embedding.data, s * D);
    states.set(top(hidden).data, s * D);
  }
  const dims = [ids.length, D];
  return { embeddings: { dims, data: embeddings }, states: { dims, data: states }, hidden };
}

/** The top layer of a state of one sentence (1 × L × D): a vector (1 × D). */
export function top({ dims, data }) {
  const D = dims[2];
  return { dims: [1, D], data: data.slice(-D) };
}

/** What the decoder starts from: the context that it sees at every step, and its own memory. */
export const reading = (hidden) => ({ context: top(hidden), hidden });

/** The decoder's step for search.js. */
export const decoder =
  (run) =>
  async ({ context, hidden }, token) => {
    const written = await run("translator-write", { token, context, hidden });
    return { logProbs: written.log_probs, state: { context, hidden: written.state } };
  };
