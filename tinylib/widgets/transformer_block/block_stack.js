import { h, setAttribute, setText } from "../../live/ui/dom.js";
import { format, formatTiny } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { plane, through } from "../../live/ui/plot.js";

const NORMS = [
  { title: "none", value: 0 },
  { title: "post-norm", about: "after the addition", value: 1 },
  { title: "pre-norm", about: "before each layer", value: 2 },
];
const SAME = 0.9995; // from here on a cosine reads 1.00

/** How alike the first and the last word are after each block, as a curve. */
function likeness(widget) {
  const most = widget.spec.limits.blocks[1];
  const { element, svg, paths, spot, rule } = plane({
    name: "likeness",
    x: [0, most],
    y: [-1, 1],
    height: 150,
    ticks: { x: [0, 2, 4, 6, 8, 10, 12], y: [[-1, "−1"], 0, 1] },
    grid: { x: [] },
    paths: ["alike"],
  });
  svg.dataset.output = "alike";
  const [here, dot] = [rule("x", "now"), spot("spot")];
  const message = h("p.note.says", { role: "status" });
  return {
    element: h(
      "section.alike-block",
      h("p.heading", "Cosine of the first and the last word, after each block"),
      element,
      h("div", { "data-output": "" }, message),
    ),
    update({ words, blocks, add, norm, feed }, { alike, longest }) {
      const all = [...alike.data];
      svg.values = all;
      setAttribute(paths.alike, "d", through(all.map((cosine, n) => [n, cosine])));
      here(blocks, "");
      dot(blocks, all[blocks]);
      const [first, last] = [words[0], words.at(-1)];
      const parts = [
        "attention",
        ...(add ? ["add"] : []),
        ...(norm ? ["norm"] : []),
        ...(feed ? ["feed-forward"] : []),
      ];
      const pair = `“${first}” and “${last}”`;
      const merged = !longest.data[blocks]
        ? "all numbers have become 0"
        : all[blocks] >= SAME
          ? `${pair} now point in the same direction: no later block can tell them apart`
          : `${pair} are still different vectors`;
      setText(
        message,
        `After ${blocks} ${blocks === 1 ? "block" : "blocks"} of ${parts.join(", ")}: ${merged} ` +
          `(cosine ${format(all[blocks])}). The longest vector has the length ` +
          `${formatTiny(longest.data[blocks])}; at the start it was ${format(longest.data[0])}.`,
      );
    },
  };
}
likeness.style = `
${plane.style}
.alike-block { min-width: 0; }
.heading { margin: 0; font-size: var(--size-note); font-weight: 600; }
.likeness .alike { stroke: var(--weight); }
.likeness .spot { --tone: var(--weight); }
.rule.now { border-left: 1.5px dashed var(--soft); }
`;

export default live(
  "A stack of blocks, live",
  (ui) => [
    ui.words(),
    ui.sides(
      ui.boxed(
        "side",
        ui.row(ui.toggle("add", "add"), ui.toggle("feed", "feed-forward")),
        ui.choice("norm", "norm", NORMS),
        ui.knobs(
          ui.knob("blocks", "blocks"),
          ui.knob("strength", "size of W_o", { about: "times the identity", step: 0.05 }),
        ),
        ui.row(ui.matrix("x", "embeddings X"), ui.entrySlider()),
      ),
      ui.boxed(
        "side",
        ui.heat("vectors", "vectors after these blocks", "signed"),
        ui.use(likeness),
      ),
    ),
  ],
  { wide: true, answer: ".says" },
);
