// "Where does this number come from?" One part for every table of computed numbers.
//
// A view lists `ui.explanation()` once, and says of each table what its entries are made of:
//
//   ui.heat("scores", "scores", "signed", product("q", "k", { turned: true }))
//
// A rule such as product() is a function (widget, row, column) => the explanation of that entry,
// made of the numbers that torch has sent. A table of another form calls
// `explainable(widget, cell, () => ...)` for each of its cells. Pointing at a cell, tapping it or
// moving to it with the arrow keys lights up what it came from and writes out the sum.
//
// What a rule returns has a `kind`, a name `what`, and `lit`, the entries to light: { name, row,
// column }, or { cells }, the elements themselves. The kinds are "sum", of the products `terms`;
// "softmax", the share of number `column` of `scores`, the last of which may stand for several
// `others` together, and "log_softmax", its logarithm; "log", log p, or −log p if `less`; "exp", e
// to the `exponent`; "roots", a product of fractions, of each of which a root is taken; and, of
// sentences alone, "said" and "match", whose cell has a partner, which is lit, or has none. The
// result is written in per cent if its `unit` is "%". Where what is needed has not been computed
// yet, `missing` is true, and the answer is asked for.

import { h, setAttribute, typeset } from "./dom.js";
import { rowsOf } from "./knobs.js";
import { format, percent } from "./numbers.js";

const INVITATION =
  "Point at a computed number, tap it, or go to it with Tab and the arrow keys: " +
  "its sum is written out here.";

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

/**
 * An explanation of a sum of products: `terms` are their factors, `tones` what these belong to, and
 * `figure(number)` writes a factor, if it is not to have two decimals, and `total(number)` the
 * result.
 */
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

/**
 * A probability: e to the logit of number `column` over the sum for all, of which the last may
 * stand for several `others`.
 */
export const chance = (what, logits, column, cells, others = 0) => ({
  ...weighed(what, logits, column, cells),
  others,
  called: "logit",
  unit: "%",
});

const figures = (p) =>
  p === 0 || p === 1 ? String(p) : p < 0.001 ? p.toPrecision(2) : p.toFixed(3);

/**
 * ln p of several tokens, each { probability, logP }: the sum of their logarithms. `more` may say
 * how its numbers are written.
 */
export const logs = (what, tokens, cells, more = {}) =>
  sum(
    what,
    tokens.map(({ logP }) => [logP]),
    undefined,
    {
      first:
        tokens.length > FEW ? "" : tokens.map((t) => `ln ${figures(t.probability)}`).join(" + "),
      of: tokens.map(({ probability }) => probability),
      lit: [{ cells }],
      ...more,
    },
  );

/** A logarithm: −log p, or log p if `less` is false. The `cells` are those in which p stands. */
export const logOf = (what, p, cells, less = true) => ({
  kind: "log",
  what,
  p,
  less,
  lit: [{ cells }],
});

/** e to the power of `exponent`. */
export const expOf = (what, exponent, cells) => ({ kind: "exp", what, exponent, lit: [{ cells }] });

/** A product of `factors`, each { top, bottom, root }: that root of top / bottom, or of top. */
export const roots = (what, factors, cells) => ({ kind: "roots", what, factors, lit: [{ cells }] });

/** A score by which texts of different lengths compete: ln p divided by length to the power α. */
export const perLength = (what, logProb, length, alpha, cells) =>
  sum(what, [[logProb]], undefined, {
    by: { value: length ** alpha, name: `${length}^{${alpha}}` },
    lit: [{ cells }],
  });

/** A weight of a head: the softmax of the scores of its row, whose `cells` are lit. */
export const weighed = (what, scores, column, cells) => ({
  kind: "softmax",
  what,
  scores: [...scores],
  column,
  lit: [{ cells }],
});

/** The words of an entry: “journey”, or the number of its row. */
export const wordAt = (widget, i) => `“${widget.inputs.words?.[i] ?? i + 1}”`;

/**
 * Make a cell explain its number: when a reader points at it or focuses it, `rule()` returns the
 * explanation. Its number is its data-value, or what `readValue()` returns, where that is given.
 */
export function explainable(widget, cell, rule, readValue = () => Number(cell.dataset.value)) {
  cell.explain = rule;
  cell.readValue = readValue;
  if (!cell.matches("button, [role=option]"))
    setAttribute(cell, "tabindex", cell.getAttribute("tabindex") ?? "-1");
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
  const place = (cell) => (cell?.explain ? cell : cell?.querySelector("th > button"));
  table.addEventListener("focusin", ({ target }) => target.explain && stop(target));
  table.addEventListener("keydown", (event) => {
    if (event.target.matches("input")) return; // it has its own keys
    const cell = event.target.closest("td, th");
    const rows = [...table.rows];
    const at = rows.indexOf(cell.parentElement);
    if (event.key === "Enter" && cell.explain) place(rows[at].cells[0])?.click();
    const arrow = ARROWS[event.key];
    if (!arrow || at < 0) return;
    event.preventDefault();
    let next;
    let [row, column] = [at, cell.cellIndex];
    do {
      [row, column] = [row + arrow[0], column + arrow[1]];
      next = rows[row]?.cells[column];
    } while (next && !place(next)); // over what cannot be asked
    place(next)?.focus();
  });
  /** After its cells were built again: one of them is a stop of Tab. */
  return () => {
    const cells = [...table.querySelectorAll("td[tabindex]")];
    if (cells.length && !cells.some((cell) => cell.tabIndex === 0)) cells[0].tabIndex = 0;
  };
}

/** The same for the lines of a list, one of which is a stop of Tab. */
export function roveLines(list) {
  const lines = () => [...list.querySelectorAll("[tabindex]")];
  list.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const at = lines().indexOf(event.target); // −1: a control in the list, with keys of its own
    const next = by && at >= 0 && lines()[at + by];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  list.addEventListener("focusin", ({ target }) => {
    if (!lines().includes(target)) return;
    for (const line of lines()) line.tabIndex = line === target ? 0 : -1;
  });
  return () => {
    const [first] = lines();
    if (first && !lines().some((line) => line.tabIndex === 0)) first.tabIndex = 0;
  };
}

/**
 * A number in a sentence, which is a stop of Tab by itself; `rule` and `readValue` are those of
 * `explainable`.
 */
export function explainableNumber(widget, rule, readValue) {
  const number = h("b.askable", { tabindex: "0" });
  explainable(widget, number, rule, readValue);
  return number;
}

/**
 * Light the entries that `lit` names, { name, row, column }, of which either may be left out, or
 * these { cells }.
 */
export function light(widget, lit, kind = "source") {
  for (const old of widget.frame.querySelectorAll(`.${kind}`)) old.classList.remove(kind);
  for (const { name, row, column, cells } of lit) {
    for (const cell of cells ?? widget.cellsOf(name, row, column)) cell.classList.add(kind);
  }
}

/** An entry for `light` and the like: the elements of the frame that match. */
export const partsOf = ({ frame }, selector) => ({ cells: [...frame.querySelectorAll(selector)] });

/** A number that stands behind a sign: a negative one is in brackets. */
const bracketed = (value, figure = format) => figure(value).replace(/^−.*/, "($&)");

const number = (value, tone = "", figure = format) =>
  h("span", { class: tone ? `factor of-${tone}` : "factor" }, bracketed(value, figure));

const power = (score) => {
  const element = h("span.factor");
  typeset(element, `e^{${format(score)}}`);
  return element;
};

/** A list with the separator `what` between its entries. */
const between = (parts, what) => parts.flatMap((part, i) => (i ? [what, part] : [part]));

const [MOST, FEW] = [9, 5]; // of more than MOST terms only FEW are written out
const [HIGH, LOW] = [9, -1]; // the powers of e beyond them say nothing to a reader
const MANY = 1e4; // nor does a sum from here on, of which only one digit is written

/** What is left out: “… 61 more”, if there is any. */
const andMore = (count) => (count > 0 ? [`… ${count} more`] : []);

/** The terms of a softmax that are written out, that of `column` among them, and how many not. */
function someOf(scores, column, others) {
  const single = others ? scores.slice(0, -1) : scores;
  const places = [...single.keys()].filter((s) => single[s] !== -Infinity);
  const rivals = places.filter((s) => s !== column).sort((s, r) => single[r] - single[s]);
  const shown = places.length > MOST ? [column, ...rivals.slice(0, FEW - 1)] : places;
  return { shown: shown.map((s) => single[s]), more: places.length - shown.length + others };
}

/** A softmax, written out. */
function sharing({ scores, column, others = 0, called = "score" }) {
  if (scores[column] === -Infinity)
    return [`= 0, because the ${called} is −∞ and e`, h("sup", "−∞"), " is 0."];
  const most = Math.max(...scores);
  const powersOf = (less) => scores.map((score) => Math.exp(score - less));
  const totalOf = (exps) => exps.reduce((a, b) => a + b, 0);
  const large = most > HIGH || totalOf(powersOf(0)) >= MANY;
  const shift = large || most < LOW ? most : 0;
  const exps = powersOf(shift);
  const total = totalOf(exps);
  const { shown, more } = someOf(scores, column, others);
  const powers = shown.map((score) => power(score - shift));
  return [
    ...(shift ? [`each ${called} less the largest, ${format(shift)}: `] : []),
    power(scores[column] - shift),
    " / (",
    ...between([...powers, ...andMore(more)], " + "),
    `) = ${format(exps[column])} / ${format(total)} `,
  ];
}

/** The logarithm of a softmax, written out: no power of e in it is too large or too small. */
function stably({ scores, column }) {
  const most = Math.max(...scores);
  const total = scores.reduce((all, score) => all + Math.exp(score - most), 0);
  const { shown, more } = someOf(scores, column, 0);
  return [
    `${format(scores[column])} − ${bracketed(most)} − log(`,
    ...between([...shown.map((score) => power(score - most)), ...andMore(more)], " + "),
    `) = ${format(scores[column] - most)} − ${bracketed(Math.log(total))} `,
  ];
}

/** Roots of fractions, multiplied with each other: 0.82 · (4/5)^{1/2}. */
function multiplied({ factors }) {
  const parts = factors.map(({ top, bottom, root }) => {
    const element = h("span.factor");
    const fraction = bottom ? `${top}/${bottom}` : format(top);
    typeset(element, root === 1 ? fraction : `(${fraction})^{1/${root}}`);
    return element;
  });
  return [...between(parts, " · "), " "];
}

/** A sum of products, written out, and what it is divided by. */
function adding({ terms, tones = [], by, first = "", figure }) {
  const few = terms.length > MOST ? terms.slice(0, FEW) : terms;
  const products = few.map((factors) =>
    h(
      "span.term",
      ...between(
        factors.map((factor, i) => number(factor, tones[i], figure)),
        "·",
      ),
    ),
  );
  const all = between([...products, ...andMore(terms.length - few.length)], " + ");
  const start = first ? [`${first} = `] : [];
  if (!by) return [...start, ...all, " "];
  const divisor = h("span");
  typeset(divisor, by.name);
  return [...start, ...(terms.length > 1 ? ["(", ...all, ")"] : all), " / ", divisor, " "];
}

/** What is written out: text and elements. */
function spelledOut(details) {
  const { kind, what, column, scores, result, unit, total = format } = details;
  const isSentence = kind === "said" || kind === "match";
  const name = what ? [h("b", what), isSentence ? "" : " "] : [];
  if (isSentence) return name;
  if (kind === "softmax" && scores[column] === -Infinity) return [...name, ...sharing(details)];
  const kinds = {
    sum: adding,
    softmax: sharing,
    log_softmax: stably,
    log: ({ p, less }) => [`${less ? "−" : ""}log ${figures(p)} `],
    exp: ({ exponent }) => [power(exponent), " "],
    roots: multiplied,
  };
  const tiny = unit === "%" && result < 0.001;
  const text = tiny ? "less than 0.1 %" : unit === "%" ? percent(result) : total(result);
  return [...name, ...kinds[kind](details), tiny ? "is " : "= ", h("b.result", text)];
}

/**
 * The line that says where a number comes from, and invites to ask. It is read out, too. The number
 * in the cell that `first(widget)` returns is its example before one is asked for.
 */
export function explanation(widget, invitation = INVITATION, first = (_widget) => undefined) {
  const line = h("p.explained", { role: "status", "data-output": "" });
  let asked; // the cell that is explained
  let wanted; // the outputs in which something was missing
  const example = () => (widget.behind ? undefined : first(widget)); // else it may not stand yet
  /** An example, if there is one, and how to ask. */
  const invite = () => {
    const cell = example();
    const details = cell?.explain?.();
    if (!details || details.missing) return [invitation];
    return [
      ...spelledOut({ ...details, result: cell.readValue() }),
      h("br"),
      "Point at another number, or tap it, for its sum.",
    ];
  };
  const show = (cell) => {
    const old = asked;
    asked = cell?.isConnected ? cell : undefined;
    if (!old && !asked && line.firstChild && !example()) return;
    if (old && old !== asked) old.classList.remove("asked");
    const details = asked?.explain();
    if (details?.missing && wanted !== widget.model.get("outputs")) {
      wanted = widget.model.get("outputs"); // asked for once
      widget.send(widget.inputs);
    }
    line.explained = details && { ...details, result: asked.readValue() };
    light(widget, details?.lit ?? []);
    asked?.classList.add("asked");
    line.classList.toggle("idle", !details);
    if (details) line.classList.add("known"); // how to ask
    line.replaceChildren(...(details ? spelledOut(line.explained) : invite()));
    // It grows and never shrinks: what stands below may be about to be pressed.
    if (details) line.style.setProperty("--tall", `${line.offsetHeight}px`);
  };
  const cellOf = (event) => event.composedPath().find((element) => element.explain);
  const inFocus = () => {
    const cell = line.getRootNode().activeElement;
    return cell?.explain ? cell : undefined;
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
  widget.sums = line;
  widget.ask = show; // for a view in which a cell is chosen in another way
  return {
    element: line,
    reset: () => show(),
    update() {
      if (!heard) listen(widget.frame);
      heard = true;
      if (asked && widget.behind) return; // the answer is still on its way
      show(asked);
    },
  };
}
explanation.style = `
.explained { --tall: calc(2lh + 6px); margin: 0; padding: 2px 10px;
  min-height: var(--tall); border: 1px solid var(--line); border-radius: 8px;
  background: var(--ground); font-size: var(--size-note); line-height: 1.45;
  font-variant-numeric: tabular-nums; }
.explained.idle { border-color: transparent; padding-inline: 0; color: var(--soft); }
.explained b { font-weight: 650; }
.explained .term { white-space: nowrap; }
.explained .factor { border-bottom: 2px solid transparent; }
.of-query { --tone: var(--query); } .of-key { --tone: var(--key); }
.of-value { --tone: var(--value); }
.of-weight { --tone: var(--weight); }
.explained .factor[class*=of-] { border-color: var(--tone); }
td[tabindex] { cursor: help; }
.askable { cursor: help; text-decoration: underline dotted; text-underline-offset: 3px; }
.source { outline: 2px solid var(--text); outline-offset: -2px; }
.asked { outline: 3px solid var(--accent); outline-offset: -3px; }
td.asked { font-weight: 700; }
@media print { .explained.idle { display: none; } }
`;
