// "Where does this number come from?" One part for every table of computed numbers.
//
// A view lists `ui.explanation()` once, and says of each table what its entries are made of:
//
//   ui.heat("scores", "scores", "signed", product("q", "k", { turned: true }))
//
// A rule such as product() is a function (widget, row, column) => what there is to say of that
// entry, made of the numbers that torch has sent. A table of another form calls
// `asks(widget, cell, () => ...)` for each of its cells. Pointing at a cell, tapping it or
// moving to it with the arrow keys lights up what it came from and writes out the sum.

import { h, mark, short, typeset } from "./dom.js";
import { rowsOf } from "./knobs.js";

const INVITATION =
  "Point at a computed number, tap it, or go to it with Tab and the arrow keys: " +
  "what it was made of lights up, and the sum is written out here.";

/** The numbers of an input or of an output, by row and column. */
export function numbersIn(widget, name) {
  const out = widget.readOutputs()[name];
  if (out) {
    const [rows, columns] = out.shape;
    return { rows, columns, at: (i, j) => out.data[i * columns + j] };
  }
  const rows = rowsOf(widget.inputs, name);
  return { rows: rows.length, columns: rows[0].length, at: (i, j) => rows[i][j] };
}

/** An explanation of a sum of products: `terms` are their factors, `tones` what these belong to. */
export const sum = (what, terms, result, more = {}) => ({
  kind: "sum",
  what,
  terms,
  result,
  ...more,
});

/**
 * Each entry is a row of `left` times a column of `right`, or a row of it, if `turned`.
 * `what(row, column, widget)` names it, `by(widget)` is what the sum is divided by, as { value,
 * name }, and `unless(row, column, widget)` is another sentence where no sum is to be shown.
 */
export function product(
  left,
  right,
  { turned = false, what, tones = [], by, unless } = /** @type {any} */ ({}),
) {
  return (widget, row, column) => {
    const [a, b] = [numbersIn(widget, left), numbersIn(widget, right)];
    const terms = Array.from({ length: a.columns }, (_, i) => [
      a.at(row, i),
      turned ? b.at(column, i) : b.at(i, column),
    ]);
    const lit = [
      { name: left, row },
      turned ? { name: right, row: column } : { name: right, column },
    ];
    const instead = unless?.(row, column, widget);
    return instead
      ? { kind: "said", what: instead, lit }
      : sum(what?.(row, column, widget) ?? "", terms, undefined, { lit, tones, by: by?.(widget) });
  };
}

/** Each row is the softmax of that row of `scores`. */
export function softmaxOf(scores, { what } = /** @type {any} */ ({})) {
  return (widget, row, column) => {
    const table = numbersIn(widget, scores);
    return {
      kind: "softmax",
      what: what?.(row, column, widget) ?? "",
      scores: Array.from({ length: table.columns }, (_, s) => table.at(row, s)),
      column,
      lit: [{ name: scores, row }],
    };
  };
}

/** The words of an entry: “journey”, or the number of its row. */
export const wordAt = (widget, i) => `“${widget.inputs.words?.[i] ?? i + 1}”`;

/** Let this cell be asked; `rule()` is called when it is. */
export function asks(widget, cell, rule) {
  cell.made = rule;
  mark(cell, "tabindex", cell.getAttribute("tabindex") ?? "-1");
}

/**
 * One stop of Tab for all cells of a table that can be asked; the arrow keys move among them and
 * to the buttons that name the rows, and Enter presses that of the cell's row.
 */
export function rove(table) {
  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const stop = (cell) => {
    for (const old of table.querySelectorAll("[tabindex='0']")) old.tabIndex = -1;
    cell.tabIndex = 0;
  };
  const place = (cell) => (cell?.made ? cell : cell?.querySelector("th > button"));
  table.addEventListener("focusin", ({ target }) => target.made && stop(target));
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td, th");
    const rows = [...table.tBodies[0].rows];
    const at = rows.indexOf(cell.parentElement);
    if (event.key === "Enter" && cell.made) place(rows[at].cells[0])?.click();
    const arrow = ARROWS[event.key];
    if (!arrow || at < 0) return;
    event.preventDefault();
    place(rows[at + arrow[0]]?.cells[cell.cellIndex + arrow[1]])?.focus();
  });
  /** After its cells were made anew: one of them is a stop of Tab. */
  return () => {
    const cells = [...table.querySelectorAll("td[tabindex]")];
    if (cells.length && !cells.some((cell) => cell.tabIndex === 0)) cells[0].tabIndex = 0;
  };
}

/** Light the entries that `lit` names, { name, row, column }, of which either may be left out. */
export function light(widget, lit, kind = "source") {
  for (const old of widget.frame.querySelectorAll(`.${kind}`)) old.classList.remove(kind);
  for (const { name, row, column } of lit) {
    for (const cell of widget.cellsOf(name, row, column)) cell.classList.add(kind);
  }
}

const number = (value, tone = "") => {
  const text = short(value);
  const kind = tone ? `factor of-${tone}` : "factor";
  return h("span", { class: kind }, text.startsWith("−") ? `(${text})` : text);
};

const power = (score) => {
  const element = h("span", { class: "factor" });
  typeset(element, `e^{${short(score)}}`);
  return element;
};

/** A list with something between each two of its entries. */
const between = (parts, what) => parts.flatMap((part, i) => (i ? [what, part] : [part]));

const MANY = 20; // scores beyond it have powers of e that say nothing to a reader

/** What is written out: text and elements. */
function spelledOut({ kind, what, terms = [], scores = [], column, by, tones = [], result }) {
  const name = what ? [h("b", {}, what), kind === "said" ? "" : " "] : [];
  if (kind === "said") return name;
  const end = ["= ", h("b", { class: "result" }, short(result))];
  if (kind === "softmax") {
    if (scores[column] === -Infinity)
      return [...name, "= 0, because the score is −∞ and e", h("sup", {}, "−∞"), " is 0."];
    const most = Math.max(...scores);
    const shift = Math.abs(most) > MANY ? most : 0;
    const exps = scores.map((score) => Math.exp(score - shift));
    const total = exps.reduce((a, b) => a + b, 0);
    const seen = scores.filter((score) => score !== -Infinity);
    return [
      ...name,
      ...(shift ? [`after ${short(shift)}, the largest score, is taken from all: `] : []),
      power(scores[column] - shift),
      " / (",
      ...between(
        seen.map((score) => power(score - shift)),
        " + ",
      ),
      `) = ${short(exps[column])} / ${short(total)} `,
      ...end,
    ];
  }
  const products = terms.map((factors) =>
    h(
      "span",
      { class: "term" },
      ...between(
        factors.map((factor, i) => number(factor, tones[i])),
        "·",
      ),
    ),
  );
  const all = between(products, " + ");
  return by ? [...name, "(", ...all, `) / ${by.name} `, ...end] : [...name, ...all, " ", ...end];
}

/** The line that says where a number comes from. It is read out, too. */
export function explanation(widget) {
  const line = h("p", { class: "explained", role: "status", "data-output": "" });
  let asked; // the cell that is explained
  const show = (cell) => {
    const old = asked;
    asked = cell?.isConnected ? cell : undefined;
    if (old && old !== asked) old.classList.remove("asked");
    const said = asked?.made();
    line.explained = said && { ...said, result: Number(asked.dataset.value) };
    light(widget, said?.lit ?? []);
    asked?.classList.add("asked");
    line.classList.toggle("idle", !said);
    line.replaceChildren(...(said ? spelledOut(line.explained) : [INVITATION]));
  };
  const cellOf = (event) => event.composedPath().find((element) => element.made);
  const inFocus = () => {
    const cell = line.getRootNode().activeElement;
    return cell?.made ? cell : undefined;
  };
  const listen = (frame) => {
    frame.addEventListener("pointerover", (event) => {
      const cell = cellOf(event);
      if (cell !== asked && event.pointerType === "mouse") show(cell ?? inFocus());
    });
    frame.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") show(inFocus());
    });
    frame.addEventListener("click", (event) => {
      const cell = cellOf(event);
      if (cell) show(cell);
    });
    frame.addEventListener("focusin", (event) => {
      const cell = cellOf(event);
      if (cell || asked) show(cell);
    });
  };
  let heard = false;
  return {
    element: line,
    reset: () => show(),
    update() {
      if (!heard) listen(widget.frame);
      heard = true;
      if (!asked) show();
      else if (widget.behind)
        return; // the answer is still on its way
      else show(asked);
    },
  };
}
explanation.style = `
.explained { position: sticky; bottom: 8px; z-index: 1; margin: 0; padding: 6px 10px;
  min-height: calc(3.2em + 14px); border: 1px solid var(--line); border-radius: 8px;
  background: var(--ground); font-size: var(--size-note); line-height: 1.6;
  font-variant-numeric: tabular-nums; }
.explained.idle { position: static; color: var(--soft); }
.explained b { font-weight: 650; }
.explained .term { white-space: nowrap; }
.explained .factor { border-bottom: 2px solid transparent; }
.of-query { --tone: var(--query); } .of-key { --tone: var(--key); }
.of-value { --tone: var(--value); }
.of-weight { --tone: var(--weight); }
.explained .factor[class*=of-] { border-color: var(--tone); }
td[tabindex] { cursor: help; }
td.source, .matrix input.source { outline: 2px solid var(--text); outline-offset: -2px; }
td.asked { outline: 3px solid var(--accent); outline-offset: -3px; font-weight: 700; }
@media print { .explained.idle { display: none; } }
`;
