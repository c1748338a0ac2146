import { hashedNumbers } from "../../live/page/inputs.js";
import { columnHeads, scroller } from "../../live/ui/boxes.js";
import { AS_IS, h, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { explainable, numbersIn, rove } from "../../live/ui/explain.js";
import { knob } from "../../live/ui/knobs.js";
import { format, times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList } from "../../live/ui/sentences.js";

/** Numbers about 0 with a spread of 1, always the same for a name: each the sum of four. */
const hashedNormal = (name, count) => {
  const uniform = hashedNumbers(name, 4 * count);
  return Array.from({ length: count }, (_, j) => {
    const sum = uniform.slice(4 * j, 4 * j + 4).reduce((a, b) => a + b, 0);
    return Number(((sum - 1.98) * Math.sqrt(3)).toFixed(1));
  });
};

/** As AdditiveScore(k) begins: within ±1/√k, the narrower the more entries there are. */
const hashedWeights = (count) =>
  hashedNumbers("w", count).map((u, j) => Number(((2 * u - 1) / Math.sqrt(j + 1)).toFixed(1)));

/** How wide query and keys are, and how many keys there are. What is cut off is kept for later. */
function sizes(widget) {
  const [, mostKeys] = widget.spec.limits.S;
  const [narrowest, widest] = widget.spec.limits.k;
  const kept = new Map(); // "keys 2" -> all entries that this row ever had
  const keep = (name, row) => kept.set(name, [...row, ...(kept.get(name) ?? []).slice(row.length)]);
  const grown = (name, size, hashed) => {
    const row = (kept.get(name) ?? []).slice(0, size);
    return [...row, ...hashed.slice(row.length, size)];
  };
  const key = (s, k) => grown(`keys ${s}`, k, hashedNormal(`key ${s}`, widest));
  const width = knob(widget, "width", "width of query and keys", {
    edits: "query keys w",
    read: ({ query }) => query.length,
    put(next, k) {
      next.query = grown("query", k, hashedNormal("query", widest));
      next.w = grown("w", k, hashedWeights(widest));
      next.keys = next.keys.map((_, s) => key(s, k));
    },
    ends: [narrowest, widest],
    box: false,
  });
  const add = h(
    "button",
    {
      "data-input": "keys values",
      click: () => {
        const S = widget.inputs.keys.length;
        const k = widget.inputs.query.length;
        if (S === mostKeys) {
          widget.announce(`There is room for ${mostKeys} keys: remove one first.`);
          return;
        }
        widget.edit(Symbol("add"), (next) => {
          next.keys.push(key(S, k));
          next.values.push(grown(`values ${S}`, 2, hashedNormal(`value ${S}`, 2)));
        });
      },
    },
    "Add a key",
  );
  const remove = h("button", {
    "data-input": "keys values",
    click: () => {
      if (widget.inputs.keys.length === 2) add.focus(); // this button is about to be disabled
      widget.edit(Symbol("remove"), (next) => {
        next.keys.pop();
        next.values.pop();
      });
    },
  });
  return {
    element: width.element,
    buttons: h("div.foot", add, remove),
    shows: "inputs",
    reset() {
      kept.clear();
    },
    update(inputs) {
      const { query, keys, values, w } = inputs;
      keep("query", query);
      keep("w", w);
      keys.forEach((row, s) => keep(`keys ${s}`, row));
      values.forEach((row, s) => keep(`values ${s}`, row));
      width.update(inputs);
      setText(remove, `Remove key ${keys.length}`);
      remove.disabled = keys.length === 1;
    },
  };
}

/** Matrices whose columns are the same, one below the other, with one row of numbers above. */
const stack = (...matrices) => ({
  element: scroller({ class: "stack" }, ...matrices.map(({ element }) => element.firstChild)),
});

const NAMES = ["additive", "dot", "scaled dot"];
const formulas = () => [[h("i", "w"), " · tanh(q + k)"], ["q · k"], ["q · k / √d", h("sub", "k")]];

/** Where a score comes from: of the scoring function number `i`, with key number `s`. */
function scoreOf({ inputs: { query, keys, w } }, i, s) {
  const wide = query.length;
  const sums = query.map((q, j) => Math.tanh(q + keys[s][j]));
  const lit = [{ name: "query" }, { name: "keys", row: s }, ...(i ? [] : [{ name: "w" }])];
  return {
    kind: "sum",
    what: i
      ? `Score of key ${s + 1}, the query times the key:`
      : `Score of key ${s + 1}, each entry of w times the tanh of query plus key:`,
    terms: i ? query.map((q, j) => [q, keys[s][j]]) : w.map((factor, j) => [factor, sums[j]]),
    tones: i ? ["query", "key"] : [],
    by: i === 2 ? { value: Math.sqrt(wide), name: `√${wide}` } : undefined,
    lit,
  };
}

/** Where its weight comes from: the softmax of the scores, which the temperature divides. */
function weightOf(widget, i, s) {
  const { columns, at } = numbersIn(widget, "scores");
  const { temperature } = widget.inputs;
  const divided = temperature === 1 ? "" : `, each score divided by ${temperature}`;
  return {
    kind: "softmax",
    what: `Weight of key ${s + 1}${divided}:`,
    scores: times(columns, (j) => at(i, j) / temperature),
    column: s,
    lit: [{ name: "scores", row: i }],
  };
}

/** For each scoring function: every key's score and weight, how sharp that is, and the output. */
function comparison(widget) {
  const number = (kind, output) => h("td", { class: kind, "data-output": output });
  const cards = NAMES.map((name, i) => {
    const table = h(
      "table",
      h("caption", h("b", name), " ", h("span", AS_IS, ...formulas()[i])),
      columnHeads("key", "score", "weight ≤ 1"),
      h("tbody"),
      h(
        "tfoot",
        ...[
          ["largest weight", "largest"],
          ["steepest slope, ¼ at most", "slope"],
        ].map(([label, kind]) =>
          h(
            "tr",
            h("th", { scope: "row", colspan: "2" }, label),
            h("td", { class: kind, "data-output": kind }),
          ),
        ),
      ),
    );
    const output = h(
      "p.out",
      { "data-output": "output" },
      h("i", "output "),
      h("b", AS_IS, "(", h("span"), ", ", h("span"), ")"),
    );
    return h("div.scoring", table, output);
  });
  const row = (i) => (s) => {
    const [score, weight] = [number("score", "scores"), number("weight bar", "weights")];
    explainable(widget, score, () => scoreOf(widget, i, s));
    explainable(widget, weight, () => weightOf(widget, i, s));
    return h("tr", h("th", { scope: "row" }, String(s + 1)), score, weight);
  };
  const reach = cards.map((card) => rove(card.firstChild));
  const column = (at) => () =>
    cards.map((card) => [...card.firstChild.tBodies[0].rows].map((tr) => tr.cells[at]));
  widget.tables.set("scores", column(1));
  widget.tables.set("weights", column(2));
  const set = (cell, value, share) => {
    setText(cell, format(value));
    setAttribute(cell, "data-value", String(value));
    if (share !== undefined) setHeat(cell, share);
  };
  return {
    element: scroller({ class: "row scored", "data-output": "" }, ...cards),
    shows: "outputs",
    update({ keys }, outputs) {
      const scores = outputs.scores.data;
      const [, S] = outputs.scores.shape;
      if (S !== keys.length) return; // the answer is still on its way
      const { largest, slope, output } = outputs;
      const weights = outputs.weights.data;
      cards.forEach((card, i) => {
        const [
          {
            tBodies: [body],
            tFoot: { rows: foot },
          },
          out,
        ] = card.children;
        const top = largest.data[i];
        fillList(body, keys, row(i), (tr, _, s) => {
          const weight = weights[i * S + s];
          set(tr.cells[1], scores[i * S + s]);
          set(tr.cells[2], weight, weight);
          tr.classList.toggle("most", weight === top);
        });
        reach[i]();
        set(foot[0].cells[1], top);
        set(foot[1].cells[1], slope.data[i]);
        out.querySelectorAll("b > span").forEach((span, j) => set(span, output.data[2 * i + j]));
      });
    },
  };
}

/** What the dot product did with the width, in words. */
function verdict() {
  const line = h("p.note", { "data-output": "", role: "status" });
  return {
    element: line,
    update(
      { query: { length: k }, keys: { length: S }, temperature },
      { weights, largest, slope },
    ) {
      if (weights.shape[1] !== S) return; // the answer is still on its way
      const dots = weights.data.subarray(S, 2 * S);
      const [key, root] = [dots.indexOf(largest.data[1]), Math.sqrt(k)];
      const same =
        k > 1 && Math.abs(temperature - root) < 0.051
          ? ` At temperature ${format(temperature)}, about √${k}, the dot product weighs as the ` +
            `scaled one does at temperature 1.`
          : "";
      setText(
        line,
        S === 1
          ? "One key alone has the weight 1, whatever its score."
          : `The dot product gives key ${key + 1} the weight ${format(dots[key])}; divided by ` +
              `√${k}${root % 1 ? ` = ${format(root)}` : ` = ${root}`}, ` +
              `the same score makes ${format(weights.data[2 * S + key])}. The slope of the ` +
              `softmax, by which a weight still follows what goes in, is ` +
              `${format(slope.data[1])} and ${format(slope.data[2])}.${same} In each card, the ` +
              `key with the largest weight is bold.`,
      );
    },
  };
}

sizes.style = `
@media (pointer: fine) { .matrix { --box: 2.875rem; } }
.stack { flex: 0 1 auto; min-width: 0; }
.stack th[scope=row] { width: 3.125rem; min-width: 3.125rem; position: sticky; left: 0; z-index: 1;
  background: var(--ground); }
.stack table + table { margin-top: 6px; }
.stack table + table thead { display: none; }
.stack table:nth-of-type(1) { --tone: var(--query); }
.stack table:nth-of-type(2) { --tone: var(--key); }
.stack table:nth-of-type(3) { --tone: var(--learned); }
.stack + .scroll { --tone: var(--value); }
.given :is(caption, .stack table:not(:has(caption)) th[scope=row]) { color: var(--tone);
  font-size: var(--size-note); font-weight: 600; }
.given .matrix input:not(.chosen) {
  border-color: color-mix(in oklab, var(--ground), var(--tone) 55%); }
.given .narrow input:disabled { display: none; }
`;
comparison.style = `
.scored { gap: 12px; }
.scoring { flex: 1 1 12.5rem; min-width: 0; border: 1px solid var(--line); border-radius: 8px;
  padding: 8px 12px; }
.scoring table { width: 100%; table-layout: fixed; }
.scoring thead th:first-child { width: 1.75rem; }
.scoring thead th:nth-child(2) { width: 3.875rem; }
.scoring tfoot th { overflow: visible; }
.scoring caption { font-weight: 400; color: var(--soft); }
.scoring caption b { font-weight: 600; color: var(--text); margin-right: 6px; }
.scoring caption span { font-size: var(--size-note); }
.scoring sub { line-height: 0; }
.scoring th, .scoring thead th { text-align: left; max-width: none; }
.scoring thead th + th { text-align: right; }
.scoring tbody > tr > * { vertical-align: middle; }
.scoring td { text-align: right; font-size: var(--size-note); padding: 1px 6px; height: 1.5rem; }
.scoring .bar { --tone: var(--weight); --number: 2.875rem; background: linear-gradient(to right,
  color-mix(in oklab, var(--ground), var(--tone) 45%) calc(var(--tl-heat, 0) * 100%), transparent 0)
  no-repeat 10px center / calc(100% - var(--number) - 10px) 72%; }
.scoring .most > * { font-weight: 700; color: var(--text); }
.scoring tfoot tr:first-child > * { border-top: 1px solid var(--line); }
.scoring .out { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 6px;
  margin: 2px 6px 0 0; font-size: var(--size-note); }
.out b { font-weight: 400; font-variant-numeric: tabular-nums; margin-left: auto; }
.out i { font-style: normal; font-size: var(--size-small); color: var(--soft); }
.scored ~ .note { max-width: none; min-height: 3.2em; }
@media (max-width: 37.5rem) { /* side by side here too, and wide enough to be read */
  .row.scored { flex-wrap: nowrap; gap: 3px; align-items: stretch; }
  .scoring { flex: 1 0 8rem; padding: 5px; }
  .scoring caption { white-space: normal; }
  .scoring caption span { display: block; font-size: var(--size-small); white-space: nowrap; }
  .scoring th, .scoring td { font-size: var(--size-small); white-space: normal; overflow: visible; }
  .scoring thead th { font-size: var(--size-small); }
  .scoring .out { font-size: var(--size-small); margin: 2px 1px 0; }
  .scoring table { table-layout: auto; }
  .scoring thead th:nth-child(-n+2) { width: auto; }
  .scoring thead th:first-child { font-size: 0; }
  .scoring td, .scoring tbody th, .scoring thead th, .scoring tfoot th { padding: 1px;
    letter-spacing: -.2px; }
  .scoring .bar { width: auto; background-position: 2px 100%; /* no room beside the number */
    background-size: calc(100% - 4px) 4px; } .scored ~ .note { min-height: 9.6em; }
}
`;

/** The reader's numbers, and in a wide frame beside them the line that explains a result. */
function given(_widget, explanationLine, numbers) {
  return { element: h("div.given", numbers.element, explanationLine.element), update() {} };
}
given.style = `
.given { display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px; }
@container widget (min-width: 53.75rem) {
  .given ~ .knobs { grid-template-columns: 1fr 1fr; gap: 2px 32px; max-width: none;
    --label: 13.5em; }
  .given { gap: 12px 24px; align-items: start;
    grid-template-columns: minmax(0, auto) auto minmax(16.875rem, 1fr); }
  .given > .row { display: contents; }
  .given .stack { grid-area: 1 / 1; }
  .given .stack + .scroll { grid-area: 1 / 2; }
  .given .column { grid-area: 1 / 3; }
}
`;

export default live(
  "Three scores for the same keys, live",
  (ui) => {
    const size = ui.use(sizes);
    return [
      ui.use(
        given,
        ui.explanation(),
        ui.row(
          stack(ui.matrix("query", "query"), ui.matrix("keys", "keys"), ui.matrix("w", "w")),
          ui.matrix("values", "values"),
          ui.column({ element: size.buttons }, ui.entrySlider()),
        ),
      ),
      ui.knobs(size, ui.slider("temperature", "temperature", 0.1, 10, 0.1)),
      ui.use(comparison),
      ui.use(verdict),
    ];
  },
  { wide: true, main: ".scored", answer: "[role=status].note" },
);
