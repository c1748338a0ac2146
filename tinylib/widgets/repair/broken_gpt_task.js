// What the worker does for the broken GPT: batches with the switches of its mistakes, and what is
// shown of it. The same as in broken_gpt.py.

const [UNK, ONE] = [3, 1];
let known;

/** The stories as ids. */
export async function context(_inputs, _spec, { pool }) {
  known ??= { ids: await pool("story_words") };
  return known;
}

/** For each line 1 if it is wrong in the GPT of that number. */
const wrongLines = ({ gpt }, { facts: { states, lines } }) =>
  lines.map((_, i) => (states[gpt] >> i) & 1);

/** Pieces of the stories from anywhere, or one piece again and again; and the switches. */
export function batch(next, { inputs, context: { ids }, spec }) {
  const { T, training } = spec.facts;
  const share = inputs.learns === ONE ? 0 : ids.length - T;
  const starts = Array.from({ length: training.draws }, () => Math.floor(next() * share));
  const data = starts.flatMap((start) => Array.from(ids.subarray(start, start + T + 1)));
  return [{ dims: [starts.length, T + 1], data }, wrongLines(inputs, spec)];
}

/** The page sends a text as ids; as it stands in the inputs, it is a text. */
const idsOf = (text, names) =>
  Array.isArray(text)
    ? text
    : text.split(" ").map((word) => (names.includes(word) ? names.indexOf(word) : UNK));

/** What is shown: predictions at each place of two texts, and how the first one goes on. */
export async function look({ inputs, spec, look, numbers }) {
  const { facts, sentences } = spec;
  const wrong = wrongLines(inputs, spec);
  const [read, other_read] = ["text", "other"].map((name) => idsOf(inputs[name], sentences[name]));
  const one = await look("reading", { tokens: read, wrong });
  const two = await look("reading", { tokens: other_read, wrong });
  const V = sentences.text.length;
  const moved = Array.from({ length: Math.min(read.length, other_read.length) }, (_, t) => {
    let sum = 0;
    for (let i = t * V; i < (t + 1) * V; i += 1)
      sum += Math.abs(one.distribution.data[i] - two.distribution.data[i]);
    return sum / 2;
  });
  const next = numbers(inputs.seed);
  const all = [...read];
  for (let i = 0; i < facts.written; i += 1) {
    const { drawn } = await look("write", { tokens: all.slice(-facts.T), wrong, u: next() });
    all.push(Number(drawn.data[0]));
  }
  return {
    read,
    words: one.words,
    shares: one.shares,
    weights: one.weights,
    other_read,
    other_words: two.words,
    other_shares: two.shares,
    moved,
    written: all.slice(read.length),
  };
}
