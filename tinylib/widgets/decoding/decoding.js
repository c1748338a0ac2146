import { gloss } from "../../live/page/gloss.js";
import { beam } from "../../live/page/search.js";
import { BOS, decoder, encode, EOS, reading } from "../../live/page/translator.js";
import { beamEnds, beamTree, candidatesOf, endsOf, grow } from "../../live/ui/beams.js";
import { format } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { sentence } from "../../live/ui/sentences.js";

/** What torch does in a kernel, in compute() of decoding.py. */
export async function program(run, { source, width, alpha }, spec) {
  const { hidden } = await encode(run, source, spec);
  const [step, start, most] = [decoder(run), reading(hidden), spec.limits.T[1]];
  const consider = (feeds) => run("beam-consider", feeds);
  const { steps, single } = await beam(step, consider, start, BOS, EOS, most, width, alpha);
  return {
    ...candidatesOf(steps),
    greedy: single.map(({ token }) => token),
    greedy_log_prob: single.at(-1).soFar,
  };
}

/**
 * What was searched, for beams.js: the translations that are left at the end, and the greedy one.
 */
function searched(widget, inputs, outputs) {
  const names = widget.spec.vocabularies.target;
  const steps = grow(inputs, outputs, names, EOS);
  if (!steps) return null;
  const decode = (ids) =>
    ids
      .filter((id) => id !== EOS)
      .map((id) => names[id])
      .join(" ");
  const { greedily, rows } = endsOf(steps, inputs, outputs, decode, EOS);
  const verdict = comparison(rows[0], rows.at(-1), greedily, steps.length);
  return {
    steps,
    greedily,
    rows,
    verdict,
    decode,
    source: inputs.source,
    gloss: (text) => gloss(widget.spec.facts, text.split(" ").filter(Boolean)).join(" "),
    root: names[BOS],
    token: "word",
    text: "sentence",
  };
}

/** The beam's best sentence beside that of greedy search. */
function comparison(best, single, greedily, T) {
  if (best.text === single.text) return "Greedy search says the same sentence.";
  const kept = greedily.filter((node) => node.kept).length;
  return (
    `The beam's best is ${best.logProb > single.logProb ? "likelier" : "less likely"} than what ` +
    `greedy search says: ln p ${format(best.logProb)} against ${format(single.logProb)}. ` +
    (kept < T
      ? `The beam pruned greedy search's words at step ${kept + 1}.`
      : "The beam keeps the sentence of greedy search to the end, too.")
  );
}

export default live(
  "The beam as a tree, live",
  (ui) => [
    ui.use(sentence, "source", "English sentence"),
    ui.sides(
      ui.boxed(
        "side",
        ui.knobs(
          ui.slider("width", "beam width", 1, 5, 1),
          ui.slider("alpha", "length penalty α", 0, 1.5, 0.1),
        ),
      ),
      ui.boxed(
        "side",
        ui.use(beamEnds, "sentence", searched, " (the length counts <eos>)"),
        ui.explanation(),
      ),
    ),
    ui.use(beamTree, searched),
  ],
  { wide: true, main: ".ends", answer: ".ends" },
);
