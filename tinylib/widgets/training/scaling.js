import { columnHeads, namedRow, results } from "../../live/ui/boxes.js";
import { choice } from "../../live/ui/controls.js";
import { h, setAttribute, setText, svgPart } from "../../live/ui/dom.js";
import { numberBox } from "../../live/ui/knobs.js";
import { times, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { drag, plane, through } from "../../live/ui/plot.js";
import { fillList } from "../../live/ui/sentences.js";

const TOP = 1.5; // of the plot, in nats a token; what is above stands at its edge
const [FIRST, LAST] = [5, 8]; // powers of ten of tokens, between which the curves go

/** 2 k or 3 M: a count that is read at a glance, and how a screen reader says it. */
const [THOUSAND, MILLION] = [
  ["k", "thousand"],
  ["M", "million"],
];
function shortCount(count, long = 0) {
  const [size, unit] = count >= 1e6 ? [count / 1e6, MILLION] : [count / 1e3, THOUSAND];
  return `${Number(size.toPrecision(2))}\u00a0${unit[long]}`;
}
/** Runs of one amount stand beside each other, so that none covers another. */
const acrossOf = (tokens, i) => Math.log10(tokens) + 0.05 * (i - 2);
const threeDigits = (value) => value.toFixed(3).replace("-", "−");
/** Whether the run of size `i` and amount `j` is fitted. */
const isUsed = ({ spec }, { fitted }, i, j) => spec.facts.fitted[fitted][i][j];

/** Which runs are fitted; the others are left out. */
const runsFitted = (widget) =>
  choice(widget, "fitted", "runs that are fitted", {
    "runs that are fitted:": widget.spec.vocabularies.fitted,
  });

/** The loss of each run, to be typed; a row for each size, a column for each amount of text. */
function losses(widget) {
  const { sizes, amounts } = widget.spec.facts;
  const run = (i, j) =>
    `${shortCount(sizes[i], 1)} parameters, ${shortCount(amounts[j], 1)} tokens`;
  const box = (i, j) =>
    numberBox(widget, "loss", {
      field: () => `loss ${i} ${j}`,
      read: ({ loss }) => loss[i][j],
      put: (next, typed) => {
        next.loss[i][j] = typed;
      },
      step: 0.01,
      called: "a loss",
      label: `loss of ${run(i, j)}`,
    });
  const boxes = sizes.map((_, i) => amounts.map((_, j) => box(i, j)));
  const rows = boxes.map((row, i) =>
    namedRow(
      [
        svgPart("svg", { class: `swatch size-${i}` }, svgPart("path", { d: "M1 4H25" })),
        shortCount(sizes[i]),
      ],
      row.map((one) => [one]),
    ),
  );
  const table = h(
    "table.matrix.losses",
    h("caption", "loss by parameters and tokens (mean of 2)"),
    columnHeads(null, ...amounts.map((count) => shortCount(count))),
    h("tbody", ...rows),
  );
  return {
    element: h("div.scroll", table),
    shows: "inputs",
    update(inputs) {
      boxes.forEach((row, i) =>
        row.forEach((one, j) => {
          one.follow();
          one.classList.toggle("out", !isUsed(widget, inputs, i, j));
        }),
      );
    },
  };
}
const TONES = ["olive", "sky", "rose", "blue", "purple"];
const DASHES = ["none", "8 4", "2 4", "10 4 2 4", "16 4"];
const dashedLine = (i) =>
  `.size-${i} { --tone: var(--${TONES[i]}); stroke-dasharray: ${DASHES[i]}; }`;
losses.style = `
.losses { width: calc(100% - 3px); margin-bottom: 4px; }
.losses caption { white-space: normal; }
.losses input { padding-inline: 2px; }
.losses th[scope="row"] { text-align: left; }
.losses input.out { color: var(--soft); text-decoration: line-through; }
.swatch { width: 26px; height: 8px; margin-right: 5px; vertical-align: middle; }
.swatch path { stroke: var(--tone); stroke-width: 2; }
${times(5, dashedLine).join("\n")}
`;

/** The runs, the curve of each size, the fitted floor and the true one. Runs can be dragged. */
function picture(widget) {
  const { sizes, amounts, entropy } = widget.spec.facts;
  const names = sizes.map((_, i) => `size-${i}`);
  const plot = plane({
    name: "law",
    x: [FIRST - 0.15, LAST],
    y: [0, TOP],
    height: 330,
    ticks: {
      x: [5, 6, 7, 8].map((power) => [power, shortCount(10 ** power)]),
      y: [0, 0.5, 1, 1.5],
    },
    paths: names,
  });
  plot.svg.dataset.output = "curves";
  const [floor, truth] = [plot.rule("y", "fitted"), plot.rule("y", "truth")];
  const runs = sizes.flatMap((_, i) => amounts.map((_, j) => [i, j]));
  const points = h("div.points");
  plot.element.append(points);
  drag(
    plot.element,
    (event) => {
      const { x, y } = plot.at(event);
      const { loss } = widget.inputs;
      const far = ([i, j]) =>
        Math.hypot(acrossOf(amounts[j], i) - x, 2 * (Math.min(loss[i][j], TOP) - y));
      const [nearest] = [...runs].sort((a, b) => far(a) - far(b));
      if (far(nearest) > 0.2) return null;
      event.preventDefault();
      return nearest;
    },
    (event, [i, j]) =>
      widget.edit(`loss ${i} ${j}`, (next) => {
        next.loss[i][j] = Number(within(plot.at(event).y, [0.1, TOP]).toFixed(2));
      }),
  );
  return {
    element: h(
      "section.block",
      h("h3", "Loss against tokens of text (drag a run up or down)"),
      plot.element,
    ),
    update(inputs, { curves: { data }, E }) {
      plot.svg.values = [...data];
      const count = data.length / sizes.length;
      names.forEach((name, i) => {
        const at = (k) => FIRST + ((LAST - FIRST) * k) / (count - 1);
        const heights = times(count, (k) => [at(k), data[count * i + k]]);
        setAttribute(plot.paths[name], "d", through(heights));
      });
      fillList(points, runs, "span", (point, [i, j]) => {
        const out = isUsed(widget, inputs, i, j) ? "" : "out";
        setAttribute(point, "class", `run size-${i} ${out}`);
        plot.put(point, acrossOf(amounts[j], i), Math.min(inputs.loss[i][j], TOP));
      });
      floor(E.data[0], "fitted floor");
      truth(entropy, "true floor");
    },
  };
}
picture.style = `
${plane.style}
.law { cursor: default; }
.run { position: absolute; width: .5625rem; height: .5625rem; margin: -.28125rem;
  border-radius: 50%; background: var(--tone); cursor: ns-resize; }
.run.out { background: var(--ground); border: 2px solid var(--tone); }
.rule.truth { --tone: var(--green); }
.rule.fitted { --tone: var(--vermilion); }
`;

/** The law with its numbers, its floor beside the truth, and the largest run. */
function verdict(widget) {
  const truth = threeDigits(widget.spec.facts.entropy);
  const number = (name) => h("b", { "data-output": name, class: name });
  const names = ["E", "A", "alpha", "B", "beta", "off", "largest"];
  const shown = Object.fromEntries(names.map((name) => [name, number(name)]));
  const { E, A, alpha, B, beta, off, largest } = shown;
  const [floor, measured] = [h("b"), h("span")];
  return {
    element: results(
      "verdict",
      h(
        "p.formula",
        "L = ",
        E,
        " + ",
        A,
        " / N",
        h("sup", alpha),
        " + ",
        B,
        " / D",
        h("sup", beta),
        h("span.unit", " N and D in thousands"),
      ),
      h("p.note.says", { role: "status" }, "Fitted floor: ", floor, `, true floor: ${truth}.`),
      h("p.note", "Largest run: the law says ", largest, measured, " Typical error: ", off, "."),
    ),
    update(inputs, outputs) {
      for (const [name, element] of Object.entries(shown)) {
        const [value] = outputs[name].data;
        setAttribute(element, "data-value", String(value));
        setText(
          element,
          name === "off" ? `${(100 * value).toFixed(1)}\u00a0%` : threeDigits(value),
        );
      }
      setText(floor, threeDigits(outputs.E.data[0]));
      const known = isUsed(widget, inputs, 4, 3) ? "" : ", which it was not shown";
      setText(measured, `${known}; the run had ${threeDigits(inputs.loss[4][3])}.`);
    },
  };
}
verdict.style = `
.verdict p { margin: 0 0 6px; }
.formula { font-variant-numeric: tabular-nums; }
.unit { color: var(--soft); font-size: var(--size-note); margin-left: 6px; white-space: nowrap; }
`;

export default live(
  "A scaling law, live",
  (ui) => [
    ui.sides(
      ui.boxed("side", ui.use(runsFitted), ui.use(losses)),
      ui.boxed("side", ui.use(picture), ui.use(verdict)),
    ),
  ],
  { wide: true, main: ".law", answer: ".says" },
);
