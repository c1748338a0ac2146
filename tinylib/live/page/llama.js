// Llama's forward pass, to be read beside tinylib/real_model.py: what has a name of Python's does
// what that does. A vector is a Float32Array; a list of them, such as xs, has one for each token.

/** RMSNorm, of one vector. */
function norm(x, gain, eps) {
  const squares = x.reduce((sum, a) => sum + a * a, 0);
  const scale = 1 / Math.sqrt(squares / x.length + eps);
  return x.map((a, i) => a * scale * gain[i]);
}

/** angles(), of position t: their cosines and sines. */
function angles(t, d, base) {
  const theta = Array.from({ length: d / 2 }, (_, j) => t / base ** ((2 * j) / d));
  return { cos: theta.map(Math.cos), sin: theta.map(Math.sin) };
}

/** rotate(), in place: numbers 2j and 2j + 1 of each head are turned by angle j. */
function rotate(x, { cos, sin }) {
  for (let i = 0; i < x.length; i += 2) {
    const j = (i / 2) % cos.length;
    const [a, b] = [x[i], x[i + 1]];
    x[i] = a * cos[j] - b * sin[j];
    x[i + 1] = b * cos[j] + a * sin[j];
  }
}

export function softmax(z) {
  const most = z.reduce((a, b) => Math.max(a, b));
  const powers = z.map((a) => Math.exp(a - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/** GroupedQueryAttention.attend(): all heads of one query attend to the first S tokens. */
function attend(query, cache, S, { H, G, d }) {
  const attended = new Float32Array(H * d);
  const together = H / G; // heads that share one of keys and one of values: share_heads()
  for (let g = 0; g < G; g += 1) {
    const starts = Array.from({ length: together }, (_, i) => (g * together + i) * d);
    const queries = starts.map((at) => query.subarray(at, at + d));
    const scores = cache.scores(g, S, queries);
    const weights = scores.map((one) => softmax(one.map((score) => score / Math.sqrt(d))));
    cache.sums(g, S, weights).forEach((z, i) => attended.set(z, starts[i]));
  }
  return attended;
}

/** SwiGLU.forward(), between its matrices: silu of x W_1, times x W_3. */
const gated = (gate, value) => value.map((a, i) => (a * gate[i]) / (1 + Math.exp(-gate[i])));

const add = (xs, ys) => xs.map((x, t) => x.map((a, i) => a + ys[t][i]));

/** Llama, of a `config` by configOf() and the file's matrices by matricesIn(). */
export function createLlama(config, { product, row, vector, cache: newCache }) {
  const gains = {};
  const normed = (xs, name) => xs.map((x) => norm(x, (gains[name] ??= vector(name)), config.eps));
  const caches = Array.from({ length: config.layers }, newCache);

  /** LlamaBlock.forward(), of block i and tokens from position `start` on. */
  function forward(xs, i, start, theta) {
    const times = (part, xs) => product(`blk.${i}.${part}.weight`, xs);
    const x = normed(xs, `blk.${i}.attn_norm.weight`);
    const [q, k, v] = [times("attn_q", x), times("attn_k", x), times("attn_v", x)];
    const attended = xs.map((_, t) => {
      [q[t], k[t]].forEach((one) => rotate(one, theta[t]));
      caches[i].set(start + t, k[t], v[t]);
      return attend(q[t], caches[i], start + t + 1, config);
    });
    xs = add(xs, times("attn_output", attended));
    const m = normed(xs, `blk.${i}.ffn_norm.weight`);
    const [gate, value] = [times("ffn_gate", m), times("ffn_up", m)];
    return add(
      xs,
      times(
        "ffn_down",
        gate.map((one, t) => gated(one, value[t])),
      ),
    );
  }

  return {
    /**
     * Read at most MOST_AT_ONCE tokens, after `start` that have been read: their xs after the last
     * block. A hook, `watch`, gets xs after each block, counted from 1, and as 0 the embeddings.
     */
    read(ids, start, watch = (_block, _xs) => {}) {
      const theta = ids.map((_, t) => angles(start + t, config.d, config.base));
      let xs = ids.map((id) => row("token_embd.weight", id));
      watch(0, xs);
      for (let i = 0; i < config.layers; i += 1) {
        xs = forward(xs, i, start, theta);
        watch(i + 1, xs);
      }
      return xs;
    },

    /** The logits of the next token, for each of at most MOST_AT_ONCE xs. */
    logits: (xs) => product(config.output, normed(xs, "output_norm.weight")),
  };
}
