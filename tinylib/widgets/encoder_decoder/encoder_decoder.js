import { live } from "../ui/parts.js";
import { greedy } from "../page/search.js";
import { readout, sentence } from "../ui/sentences.js";
import { BOS, EOS, decoder, encode, reading, top } from "../page/translator.js";
import { bentVector, strips } from "../ui/vectors.js";

/** What torch does in a kernel, in compute() of encoder_decoder.py. */
export async function program(run, { source, by }, spec) {
  const { embeddings, states, hidden } = await encode(run, source, spec);
  const { state: bent } = await run("translator-bend", { hidden, by });
  const steps = await greedy(decoder(run), reading(bent), BOS, EOS, spec.limits.T[1]);
  return {
    embeddings,
    states,
    vector: { dims: spec.limits.D.slice(1), data: top(bent).data },
    tokens: steps.map(({ token }) => token),
    probabilities: steps.map(({ logProbs, token }) => Math.exp(logProbs[token])),
  };
}

// With the shipped weights, "the cat is happy ." and this entry moved to −1: "un chat", not "le
// chat".
const FIRST = 15;

export default live(
  "Into one vector and out again, live",
  (ui) => [
    ui.use(sentence, "source", "English sentence"),
    ui.row(
      ui.use(strips, "embeddings", "embedding of each word"),
      ui.use(strips, "states", "state after each word"),
    ),
    ui.use(bentVector, "vector", "the last state, all that the decoder gets", {
      bend: "by",
      from: "states",
      first: FIRST,
    }),
    ui.use(readout, "What the decoder reads out of it", "tokens", "probabilities", "target"),
  ],
  { query: -1 },
);
