import { numbersIn, product, wordAt } from "../../live/ui/explain.js";
import { times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";

const averaged = product("weights", "x", {
  what: (t, j, widget) =>
    `Average of ${wordAt(widget, t)}, entry ${j + 1}, each weight times that entry of the word:`,
  tones: ["weight", ""],
});

/** A weight is the softmax of sharpness times the dot products with the words so far. */
function weight(widget, t, s) {
  if (s > t) {
    return {
      kind: "said",
      what: `${wordAt(widget, s)} comes after ${wordAt(widget, t)}, so it has no weight in it.`,
      lit: [{ name: "x", row: s }],
    };
  }
  const { at, columns } = numbersIn(widget, "x");
  const dot = (i) => times(columns, (j) => at(t, j) * at(i, j)).reduce((a, b) => a + b, 0);
  return {
    kind: "softmax",
    what:
      `Weight that ${wordAt(widget, t)} gives to ${wordAt(widget, s)}: each exponent is the ` +
      "sharpness times a dot product of two rows of X.",
    scores: times(t + 1, (i) => widget.inputs.sharpness * dot(i)),
    column: s,
    lit: [{ name: "x", row: t }, ...(s === t ? [] : [{ name: "x", row: s }])],
  };
}

export default live(
  "From averaging to attention, live",
  (ui) => [
    ui.words("weights"),
    ui.slider("sharpness", "sharpness", 0, 20, 0.5),
    ui.row(
      ui.matrix("x", "embeddings X"),
      ui.heat("weights", "weights: each row sums to 1", "weight", weight),
      ui.heat("output", "averages", "signed", averaged),
    ),
    ui.mixture("weights", "output"),
    ui.explanation(),
  ],
  { query: -1, wide: true },
);
