import { toggle } from "../../live/ui/controls.js";
import { h, setAttribute, setLength, setText } from "../../live/ui/dom.js";
import { knob, nearestOf } from "../../live/ui/knobs.js";
import { percent, whole, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { drag, plane, through } from "../../live/ui/plot.js";
import { fillList } from "../../live/ui/sentences.js";

// 1 2 3 4 6 8 12 … 8192 12288 16384: where sliders stop.
const CHOICES = [
  1,
  ...Array.from({ length: 13 }, (_, i) => [2 ** (i + 1), 3 * 2 ** i]).flat(),
  2 ** 14,
];
/** A count that came in groups of three digits. */
const groups = ({ data }, row = 0) => [...data.subarray(5 * row, 5 * row + 5)];
const asNumber = (count) => count.reduce((sum, group) => 1000 * sum + group, 0);
function printed(count) {
  const from = count.findIndex(Boolean);
  return from < 0
    ? "0"
    : count
        .slice(from)
        .map((group, i) => (i ? String(group).padStart(3, "0") : String(group)))
        .join("\u202f");
}
/** A number with the unit that leaves it at most three digits: 3.4 G. */
function rough(value) {
  const units = ["", " k", " M", " G", " T"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  const size = value / 1000 ** step;
  return `${step && size < 9.95 ? size.toFixed(1) : String(Math.round(size))}${units[step]}`;
}

/**
 * A size; while the switch `by` is on, it is not free, and the `i`-th of the outputs `used` is
 * shown.
 */
const sizeOf = (widget, name, about, by = "", i = 0) =>
  knob(widget, name, name, {
    about,
    scale: CHOICES,
    bound: (inputs, { used }) => (inputs[by] ? used.data[i] : undefined),
  });

/** A switch that binds sizes to others; let go, they stay where they were bound. */
const bond = (widget, name, label, bound) =>
  toggle(widget, name, label, (next, on) => {
    const { used, whole: can } = widget.readOutputs();
    if (on || !can.data[0]) return;
    for (const [size, i] of Object.entries(bound)) next[size] = Math.max(1, used.data[i]);
  });

const productText = (...factors) =>
  factors.map((f) => (typeof f === "number" ? whole(f) : f)).join(" · ");

/** The sizes that are counted with, by their letters. */
const counted = (
  { D, H, T },
  {
    used: {
      data: [k, v, S],
    },
  },
) => ({ D, H, T, k, v, S });

/** The parameters: the formula, the formula with the numbers filled in, and what comes out. */
function parameterCount(widget) {
  const letters = h("p.letters");
  const filled = h("p.filled");
  const sum = h("p.sum", h("b.count"), " parameters", h("span"));
  const list = h("ol.matrices", { "aria-label": "parameters of each matrix" });
  const wrong = h("p.problem.cut", { role: "alert" });
  return {
    element: h(
      "section.block",
      h("h3", "Parameters"),
      wrong,
      h("div", { "data-output": "" }, letters, filled, sum, list),
    ),
    update(inputs, outputs) {
      const { D, H, k, v } = counted(inputs, outputs);
      const { bias, divided } = inputs;
      const can = Boolean(outputs.whole.data[0]);
      setText(
        wrong,
        can
          ? ""
          : `D = ${whole(D)} cannot be cut into ${H} heads: ${whole(D)} / ${H} is not a whole ` +
              `number. ` +
              "Change D or H, or switch k = v = D/H off. The numbers below, greyed, are of no " +
              "layer.",
      );
      widget.setAside(list, !can);
      setText(letters, `D·H·(2k + v) + H·v·D${bias ? " + H·(2k + v) + D" : ""}`);
      const matrices = [0, 1, 2, 3].map((i) => groups(outputs.matrices, i));
      const three = matrices.slice(0, 3).reduce((total, one) => total + asNumber(one), 0);
      const biases = groups(outputs.biases);
      setText(
        filled,
        `${productText(D, H, `(2 · ${whole(k)} + ${whole(v)})`)} + ${productText(H, v, D)}` +
          `${bias ? ` + ${productText(H, `(2 · ${whole(k)} + ${whole(v)})`)} + ${whole(D)}` : ""}` +
          ` = ${whole(three)} + ${printed(matrices[3])}${bias ? ` + ${printed(biases)}` : ""}`,
      );
      const count = groups(outputs.parameters);
      setText(sum.firstChild, printed(count));
      setText(sum.lastChild, divided && can ? ` = 4D²${bias ? " + 4D" : ""}, whatever H is` : "");
      fillList(
        list,
        [..."qkvo"],
        (i) => h("li", h("span", h("i", "W"), h("sub", "qkvo"[i])), h("span.soft"), h("b")),
        (li, _, i) => {
          const size = i < 3 ? [D, H * (i < 2 ? k : v)] : [H * v, D];
          setText(li.children[1], size.map(whole).join(" × "));
          setText(li.children[2], printed(matrices[i]));
        },
      );
    },
  };
}

/** @type {[string, string, string, (sizes: any) => string][]} */
const STEPS = [
  [
    "project",
    "x → q, k, v",
    "2·D·H·(T·k + S·k + S·v)",
    ({ D, H, T, S, k, v }) =>
      productText(2, D, H, `(${productText(T, k)} + ${productText(S, k)} + ${productText(S, v)})`),
  ],
  ["compare", "q, k → scores", "2·H·T·S·k", ({ H, T, S, k }) => productText(2, H, T, S, k)],
  ["average", "weights, v → outputs", "2·H·T·S·v", ({ H, T, S, v }) => productText(2, H, T, S, v)],
  ["mix", "outputs → y", "2·T·H·v·D", ({ D, H, T, v }) => productText(2, T, H, v, D)],
];

/** The operations of each step, as bars. */
function operations() {
  const rows = STEPS.map(([name, what, formula]) =>
    h(
      "li",
      { class: name },
      h("b", name),
      h("span.what", what),
      h("span.count"),
      h("span.share"),
      h("span.bar", h("i")),
      h("span.formula", `${formula} = `, h("span")),
    ),
  );
  const total = h("b.count");
  const about = h("span");
  return {
    element: h(
      "section.block",
      { "data-output": "" },
      h("h3", "Floating-point operations"),
      h("ol.steps", { "data-output": "shares", "aria-label": "operations of each step" }, ...rows),
      h("p.sum", total, " FLOPs", about),
    ),
    update(inputs, outputs) {
      if (!outputs.whole.data[0]) return; // greyed; a head of width 0 would have no shares
      const sizes = counted(inputs, outputs);
      rows.forEach((row, i) => {
        const share = outputs.shares.data[i];
        setText(row.children[2], printed(groups(outputs.steps, i)));
        setText(row.children[3], percent(share));
        setAttribute(row, "data-value", String(share));
        setLength(row.children[4].firstChild, share);
        setText(row.children[5].lastChild, STEPS[i][3](sizes));
      });
      const count = groups(outputs.total);
      setText(total, printed(count));
      setText(about, asNumber(count) < 1e4 ? "" : `, about ${rough(asNumber(count))}FLOPs`);
    },
  };
}

const BOTTOM_UP = [0, 3, 1, 2]; // of the steps, as they are stacked

/** The shares at every length T, stacked: where comparing and averaging take over. */
function shareChart(widget) {
  const most = Math.log2(widget.spec.limits.T[1]);
  const plot = plane({
    name: "chart",
    x: [0, most],
    y: [0, 1],
    height: 130,
    ticks: { x: [1, 8, 64, 512, 4096].map((T) => [Math.log2(T), whole(T)]) },
    grid: { x: [] },
    paths: BOTTOM_UP.map((i) => STEPS[i][0]),
  });
  const [even, here] = [plot.rule("x", "even"), plot.rule("x", "here")];
  plot.spot("name low", "project and mix");
  plot.spot("name high", "compare and average");
  const verdict = h("p.note.verdict", { role: "status" });
  const slide = (event) =>
    widget.edit("T", (next) => {
      next.T = nearestOf(CHOICES, within(plot.at(event).x, [0, most]));
    });
  drag(
    plot.svg,
    (event) => {
      widget.field = undefined; // a new grip is a new step to undo
      slide(event);
    },
    slide,
  );
  let traced;
  const trace = ({ data }) => {
    const points = data.length / 4;
    const base = new Array(points).fill(0);
    for (const i of BOTTOM_UP) {
      const edge = () => base.map((y, j) => [(j * most) / (points - 1), y]);
      const floor = edge();
      for (let j = 0; j < points; j += 1) base[j] += data[i * points + j];
      setAttribute(plot.paths[STEPS[i][0]], "d", `${through([...edge(), ...floor.reverse()])}Z`);
    }
  };
  return {
    element: h(
      "section.block",
      { "data-output": "" },
      h("h3", "Shares of the operations, by the number of queries T (drag along it)"),
      plot.element,
      verdict,
    ),
    update(inputs, outputs) {
      if (!outputs.whole.data[0]) return; // nor a share to draw
      const { T, D, S } = counted(inputs, outputs);
      const { itself } = inputs;
      const half = outputs.even.data[0];
      here(Math.log2(T), `T = ${whole(T)}`);
      even(half > 0 ? Math.log2(half) : -1, "half and half");
      const [, compare, average] = outputs.shares.data;
      const now =
        `At T = ${whole(T)} and S = ${whole(S)}, comparing and averaging make ` +
        `${percent(compare + average)} of the operations. `;
      const when = itself
        ? `They grow with T², the rest with T: from T = 2D = ${whole(2 * D)} on they are more ` +
          `than half, whatever H, k and v are.`
        : half
          ? `With S = ${whole(S)} they are more than half from T = D·S / (S − D) = ` +
            `${whole(Math.round(half * 10) / 10)} on.`
          : `With S = ${whole(S)}, not more than D, they never come to half, however many ` +
            `queries there are.`;
      setText(verdict, now + when);
      if (traced === outputs.curve.data.join()) return;
      traced = outputs.curve.data.join();
      trace(outputs.curve);
    },
  };
}

/** The table that the readable form holds and the fast one does not. */
function memory() {
  const line = h("p.note.memory", { "data-output": "" });
  return {
    element: line,
    update(inputs, outputs) {
      const { H, T, S } = counted(inputs, outputs);
      const bytes = groups(outputs.table_bytes);
      setText(
        line,
        `The weights of all heads, if they are kept: H·T·S·4 bytes = ` +
          `${productText(H, T, S, 4)} = ` +
          `${printed(bytes)} bytes` +
          `${asNumber(bytes) < 1e4 ? "" : `, about ${rough(asNumber(bytes))}B`} for each ` +
          `sentence. The fast path never holds this table.`,
      );
    },
  };
}

/** The four matrices and the table of one head's weights, all drawn to one scale. */
function areas() {
  const NAMES = [..."qkvo"].map((of) => [h("i", "W"), h("sub", of)]);
  const boxes = [...NAMES, []].map((name, i) => {
    const kind = i < 4 ? "learned" : "weights";
    return h("li", { class: kind }, h("span.drawn"), h("span", ...name));
  });
  const list = h("ol.areas", { "aria-label": "the matrices, to scale" }, ...boxes);
  return {
    element: h(
      "section.block",
      { "data-output": "" },
      h("h3", "To scale: the matrices, and the weights of a head"),
      list,
    ),
    update(inputs, outputs) {
      if (!outputs.whole.data[0]) return;
      const { D, H, T, S, k, v } = counted(inputs, outputs);
      const sizes = [...[k, k, v].map((width) => [H * width, D]), [D, H * v], [S, T]];
      const wide = sizes.reduce((sum, [width]) => sum + width, 0);
      const tall = Math.max(...sizes.map(([, height]) => height));
      const scale = Math.min(62 / wide, 22 / tall); // in hundredths of the column
      sizes.forEach(([width, height], i) => {
        const [across, down] = [width, height].map((side) => (scale * side).toFixed(2));
        setAttribute(boxes[i].firstChild, "style", `--wide: ${across}; --tall: ${down}`);
        setAttribute(boxes[i], "title", `${whole(height)} × ${whole(width)}`);
      });
      setText(boxes[4].lastChild, `T × S${H > 1 ? `, ${whole(H)} times` : ""}`);
    },
  };
}

parameterCount.style = `
.sides { --right: 1fr; }
.block p { margin: 0; font-variant-numeric: tabular-nums; }
.block .letters { font-style: italic; }
.block .filled { color: var(--soft); font-size: var(--size-note); }
.block .sum { margin-top: 2px; }
.sum .count { font-size: var(--size-text); font-weight: 650; color: var(--accent); }
.matrices { list-style: none; display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 9.25rem), 1fr)); gap: 4px 12px;
  margin: 6px 0 0; padding: 0; font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.matrices li { display: flex; flex-wrap: wrap; gap: 0 6px; align-items: baseline; }
.matrices sub { line-height: 0; font-size: var(--size-small); }
.matrices .soft { color: var(--soft); }
.matrices b { font-weight: 550; }
.block .cut { position: static; margin: 0 0 6px; }
`;
operations.style = `
.steps { list-style: none; margin: 0; padding: 0; display: grid; gap: 8px; font-size:
  var(--size-note); font-variant-numeric: tabular-nums; }
.steps li { display: grid; grid-template-columns: 4.125rem 1fr auto 3.875rem; gap: 0 10px;
  align-items: baseline; }
.steps b { font-weight: 600; }
.steps .what, .steps .formula { color: var(--soft); font-size: var(--size-small); }
.steps .share { text-align: right; }
.steps .bar { grid-column: 1 / -1; height: .5625rem; border-radius: 2px; overflow: hidden;
  background: color-mix(in oklab, var(--ground), var(--line) 45%); }
.steps .bar i { display: block; height: 100%; min-width: 1px; background: var(--tone); }
.steps .formula { grid-column: 1 / -1; }
@media (max-width: 37.5rem) { .steps .what { grid-column: 1 / -1; grid-row: 3;
  } .steps .count { grid-column: 3; } }
.project { --tone: var(--learned); }
.mix { --tone: color-mix(in oklab, var(--ground), var(--learned) 50%); }
.compare { --tone: var(--weight); }
.average { --tone: color-mix(in oklab, var(--ground), var(--weight) 50%); }
`;
areas.style = `
.areas { --unit: 1cqi; list-style: none; display: flex; align-items: end; gap: 8px; margin: 6px 0 0;
  padding: 0; font-size: var(--size-small); }
.areas li { display: grid; gap: 3px; justify-items: center; white-space: nowrap; }
.areas .weights { justify-items: start; margin-left: 10px; }
.areas sub { line-height: 0; font-size: var(--size-small); }
.drawn { min-width: 1px; min-height: 1px; border: 1px solid var(--tone);
  width: calc(var(--wide) * var(--unit)); height: calc(var(--tall) * var(--unit));
  background: color-mix(in oklab, var(--ground), var(--tone) 30%); }
.areas .learned { --tone: var(--learned); }
.areas .weights { --tone: var(--weight); }
@container widget (min-width: 53.75rem) {
  .areas { --unit: 0.46cqi; }
  /* A knob takes one line: its letter, what that is, the track and the number. */
  .row .knobs > .knob { gap: 0 8px; align-content: center;
    grid-template: "label about track value" auto / 1em 5.6em minmax(0, 1fr) 4.25rem; }
}
@media (max-width: 37.5rem) {
  .row .knobs > .knob { grid-template: "label about value" auto "track track track" auto
    / auto minmax(0, 1fr) 4.25rem; }
  .areas { gap: 4px; }
  .areas .weights { margin-left: 0; white-space: normal; }
}
`;
shareChart.style = `${plane.style}
.chart svg { cursor: ew-resize; }
.chart path:not(.grid) { stroke: none; fill: color-mix(in oklab, var(--ground), var(--tone) 60%); }
.chart .name { position: absolute; font-weight: 600; pointer-events: none; }
.chart :is(.name, .even b) { border-radius: 4px; padding: 0 4px;
  background: color-mix(in oklab, var(--ground) 75%, transparent); }
.chart .low { left: 5px; bottom: 5px; }
.chart .high { right: 5px; top: 5px; }
.rule.even { border-left: 1.5px dashed var(--text); }
.rule.even b { bottom: auto; top: 42%; left: 5px; font-weight: 400; }
.rule.even.late b { left: auto; right: 5px; }
.block .verdict, .memory { max-width: none; min-height: 3.2em; }
`;

export default live(
  "What the heads cost, live",
  (ui) => [
    ui.row(
      ui.knobs(ui.use(sizeOf, "D", "width"), ui.use(sizeOf, "H", "heads")),
      ui.knobs(
        ui.use(sizeOf, "k", "query width", "divided", 0),
        ui.use(sizeOf, "v", "value width", "divided", 1),
      ),
      ui.knobs(ui.use(sizeOf, "T", "queries"), ui.use(sizeOf, "S", "keys", "itself", 2)),
    ),
    ui.row(
      ui.use(bond, "divided", "k = v = D/H", { k: 0, v: 1 }),
      ui.use(bond, "itself", "self-attention: S = T", { S: 2 }),
      ui.toggle("bias", "with biases"),
    ),
    ui.sides(
      ui.boxed("side", ui.use(parameterCount), ui.use(shareChart)),
      ui.boxed("side", ui.use(operations), ui.use(memory), ui.use(areas)),
    ),
  ],
  { wide: true, answer: ".memory" },
);
