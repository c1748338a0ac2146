import { choice } from "../../live/ui/controls.js";
import { h, mathText, setAttribute, setText } from "../../live/ui/dom.js";
import { numbersIn, partsOf, product, softmaxOf, wordAt } from "../../live/ui/explain.js";
import { journey } from "../../live/ui/journey.js";
import { format, times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";

const ROOT = { value: Math.sqrt(3), name: "√3" };

/** What stands for a word in Q, K or V: “query of “journey”, entry 2:” */
const entryOf = (role) => (t, j, widget) => `${role} of ${wordAt(widget, t)}, entry ${j + 1}:`;

const projection = (role, matrix, tone) =>
  product("x", matrix, { what: entryOf(role), tones: ["", tone] });

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Whether queries, keys and values equal the embeddings, as in the first example. */
function unchanged({ inputs, spec }) {
  const [{ inputs: first }] = spec.facts.examples;
  const alike = ["w_q", "w_k", "w_v", "scaled", "causal"];
  return alike.every((name) => same(inputs[name], first[name]));
}

/** Whether the matrices and all that is made of them are folded away. */
const plain = (widget) => !widget.unfolded && unchanged(widget);

/** One rule for while the matrices are folded, and another for when the reader sees them. */
const either =
  (folded, full) =>
  (widget, ...entry) =>
    (plain(widget) ? folded : full)(widget, ...entry);

const likeness = product("x", "x", {
  turned: true,
  what: (t, s, widget) =>
    `Score of ${wordAt(widget, t)} for ${wordAt(widget, s)}, the dot product of their vectors:`,
});

const score = product("q", "k", {
  turned: true,
  what: (t, s, widget) =>
    `Score of ${wordAt(widget, t)} for ${wordAt(widget, s)}, the query of ${wordAt(widget, t)} ` +
    `times the key of ${wordAt(widget, s)}:`,
  tones: ["query", "key"],
  by: ({ inputs }) => inputs.scaled && ROOT,
  unless: (t, s, widget) =>
    widget.inputs.causal && s > t
      ? `${wordAt(widget, s)} comes after ${wordAt(widget, t)}: the causal mask makes the score ` +
        "−∞, so that its weight is 0."
      : "",
});

const weight = softmaxOf("scores", {
  what: (t, s, widget) => `Weight that ${wordAt(widget, t)} gives to ${wordAt(widget, s)}:`,
});

const averaged = product("weights", "x", {
  what: (t, j, widget) =>
    `Output of ${wordAt(widget, t)}, entry ${j + 1}, each weight times that entry of ` +
    "the word’s vector:",
  tones: ["weight"],
});

const mixed = product("weights", "v", {
  what: (t, j, widget) =>
    `Output of ${wordAt(widget, t)}, entry ${j + 1}, each weight times that entry of ` +
    "the word’s value:",
  tones: ["weight", "value"],
});

const ROOMY = 4; // words at most; with more, a laptop's screen has no room to spare

/**
 * X and what the matrices make of it. In a wide frame it is written as a product is: X at the
 * left, the three matrices above, and below each of them what it makes of X. A widget that starts
 * from the first example shows X alone, and a button unfolds the rest.
 */
function crossing(widget, x, roles, switches) {
  const foldable =
    same(widget.inputs.words, widget.spec.facts.examples[0].inputs.words) && unchanged(widget);
  widget.unfolded = !foldable;
  const unfold = h("button.unfold", {
    click() {
      widget.unfolded = !widget.unfolded;
      widget.repaint();
    },
  });
  switches.element.append(unfold);
  const part = (name, { element }, ...more) => h("div", { class: name }, element, ...more);
  const element = h(
    "div.crossing",
    part("given", x, sign("· W →")),
    ...roles.map(([tone, matrix, projected]) =>
      h("div", { class: `role of-${tone}` }, part("matrix-of", matrix), part("made", projected)),
    ),
    part("switches", switches), // last, as Tab goes: they move what was touched before
  );
  return {
    element,
    shows: "inputs",
    reset() {
      widget.unfolded = !foldable;
    },
    saved: () => (foldable && widget.unfolded ? { unfolded: true } : {}),
    restore({ unfolded }) {
      widget.unfolded ||= unfolded === true;
      widget.repaint();
    },
    update({ words }) {
      const folded = plain(widget);
      element.classList.toggle("many", words.length > ROOMY);
      element.classList.toggle("plain", folded);
      unfold.hidden = !foldable || !unchanged(widget);
      setAttribute(unfold, "aria-expanded", String(!folded));
      setText(unfold, `${folded ? "Show" : "Hide"} queries, keys and values`);
    },
  };
}
crossing.style = `
.unfold { align-self: flex-start; }
.crossing.plain { flex-direction: column; gap: 8px; }
.plain > .given { order: -2; }
.plain > .role, .plain .toggle, .plain .sign, .frame:has(.plain) :is(.journey, .about) {
  display: none; }
.crossing { display: flex; flex-wrap: wrap; gap: 14px 18px; align-items: flex-start; }
.crossing > *, .role > * { min-width: 0; max-width: 100%; }
.crossing > .switches { flex: 1 1 13.125rem; order: -1; }
.crossing.plain > .switches { flex: none; }
.switches .narrow:has(:disabled) { display: none; } /* until there is a number to slide */
.frame:not(:has(input[data-input=causal]:checked)) .lanes .hatched,
.frame:not(:has(input[data-input=causal]:checked)) .lanes .hatched + span { display: none; }
.role { display: flex; flex-wrap: wrap; gap: 10px 14px; padding: 6px 10px; border: 1.5px solid
  color-mix(in oklab, var(--ground), var(--tone) 60%); border-radius: 8px; }
.role caption, .role caption * { color: var(--tone); }
.role .matrix input { border-color: color-mix(in oklab, var(--ground), var(--tone) 35%); }
.role .heat.signed td, .mixed .heat.signed td { color: var(--text);
  background: color-mix(in oklab, var(--ground), var(--tone) calc(var(--tl-heat, 0) * 45%)); }
.role .heat.signed td.below, .mixed .heat.signed td.below {
  background: color-mix(in oklab, var(--ground), var(--soft) calc(var(--tl-heat, 0) * 40%)); }
:is(.role, .mixed) .heat.signed thead td { background: none; }
.mixed { --tone: var(--value); min-width: 0; }
.mixed thead td { padding-bottom: 4px; }
:is(.role, .mixed) .ramp-key { display: none; } /* one colour each; signs are written */
.sign { color: var(--soft); font-size: var(--size-note); white-space: nowrap; text-align: center;
  line-height: 1.25; }
.sign span { display: block; }
.lanes { display: flex; flex-wrap: wrap; gap: 14px 12px; align-items: flex-start; }
.strut { visibility: hidden; }
.lanes .mixed .heat td .strut, .lanes .mixed .heat td .strut span {
  width: auto; height: auto; line-height: 1.1; contain: none; }
.said { display: grid; gap: 10px 22px; min-width: 0; }
@container widget (width < 860px) {
  .given .sign, .lanes .sign, .strut { display: none; }
}
@container widget (600px <= width < 860px) {
  .crossing:not(.plain) { display: grid; grid-template-columns: 1fr 1fr; }
  .crossing > .switches { grid-column: 1 / -1; }
  .role { flex-direction: column; }
}
@container widget (width < 600px) { /* it is long, one below the other */
  .frame, .crossing, .lanes { gap: 10px; }
  .role { gap: 6px 14px; }
  .matrix-of { position: relative; }
  .matrix-of caption { position: absolute; left: 0; top: 0; } /* beside the numbers of columns */
  .matrix-of thead :is(th, td) { line-height: 1.6; }
  .crossing .heat td span, .lanes .heat td span { height: 1.5625rem; line-height: 1.5625rem; }
  .crossing .heat th button, .lanes .heat th button { min-height: 1.5rem; padding-block: 0; }
  .crossing .ramp-key, .lanes .ramp-key { margin-top: 3px; }
  .crossing .matrix td { padding-block: 0; }
  .narrow > .knob > .called > :first-child { min-height: 1.5em; }
}
@container widget (min-width: 53.75rem) {
  .frame.frame { gap: 7px; padding: 8px 16px; }
  .gaze { flex-basis: auto; margin-right: 6px; }
  .frame.frame:has(> .plain) > .title-row { padding-right: 0; } /* it has no journey */
  .crossing:not(.plain) { display: grid; grid-template-columns: 1fr repeat(3, auto); gap: 0 12px; }
  .crossing > .switches { grid-area: 1 / 1; }
  .crossing > .given { grid-area: 2 / 1; padding: 8px 0 14px; justify-self: end; display: flex;
    gap: 10px; align-items: flex-end; }
  .given .sign { padding-bottom: 1.875rem; }
  .role { display: grid; grid-template-rows: subgrid; grid-row: 1 / 3; gap: 8px; }
  .role th[scope=row] { width: 3.625rem; min-width: 3.625rem; }
  .crossing .made td span { height: 1.625rem; line-height: 1.625rem; }
  .crossing .given td { height: 1.6875rem; padding: 0 1px; }
  .crossing .given input { display: block; }
  .crossing .matrix input { min-height: 1.5rem; padding-block: 0; }
  .crossing caption, .lanes caption { padding-bottom: 0; }
  .lanes { gap: 14px 12px; justify-content: space-between; align-items: flex-end; }
  .lanes .sign { align-self: center; padding-top: 3.75rem; }
  .crossing .heat th button, .lanes .heat th button { min-height: 1.5rem; padding-block: 0; }
  .lanes .heat td span { width: 2.5rem; height: 1.625rem; line-height: 1.625rem; }
  .lanes .heat.signed td span { width: 2.875rem; }
  .lanes .mixed { padding-bottom: 1.5rem; } /* as high as the keys beside it */
  .said { grid-template-columns: 1.5fr 1fr; align-items: center; }
  .examples .about { flex: 1 0 100%; margin: 2px 0 0; max-width: none; }
  .many.crossing { gap: 0 8px; }
  .many .role { gap: 4px; padding: 4px 7px; }
  .many.crossing .role th[scope=row] { width: 2.875rem; min-width: 2.875rem; }
  .many .matrix-of { position: relative; }
  .many .matrix-of caption { position: absolute; left: 0; top: 0; }
  .many .matrix-of thead :is(th, td) { line-height: 1.2; }
  .many :is(.made, .given) thead :is(th, td) { height: 0; padding: 0; font-size: 0;
    line-height: 0; } /* the columns are those of the matrices above */
  .many .made td span, .many ~ .lanes .heat td span { height: 1.4375rem; line-height: 1.4375rem; }
  .many.crossing > .given { padding: 5px 0 5px; }
  .many .given td { height: 1.5rem; }
  .many .matrix td { padding: 0 1px; }
  .many .switches .column { flex-flow: row wrap; gap: 2px 8px; }
  .many .switches .narrow { flex: 1 0 100%; }
  .many ~ .lanes { gap: 14px 8px; }
  .many ~ .lanes .heat td span { width: 2.125rem; }
  .many ~ .lanes .heat.signed td span { width: 2.5625rem; }
  .many ~ .lanes .ramp-key { display: none; }
  .many ~ .lanes .mixed { padding-bottom: 0; }
  /* the rows are those of the scores beside them */
  .many ~ .lanes .heat.weight tbody th { min-width: 0; width: 6px; }
  .many ~ .lanes .heat.weight tbody th button { min-width: 6px; padding: 0; font-size: 0; }
  .sentence:has(~ .many) .gaze { max-width: 12em; }
  .frame:has(.many) { gap: 7px; padding-block: 8px; }
}
`;

/** What leads from one table to the next; not read out, as the tables say it themselves. */
const sign = (...lines) =>
  h("span.sign", { "aria-hidden": "true" }, ...lines.map((line) => h("span", line)));

/**
 * Scores, weights and outputs from left to right, their rows in one line: the heads of the
 * last table's columns are as high as the words are long above the others.
 */
function attentionSteps(widget, scores, weights, context) {
  const factor = sign("× V →");
  const strut = h("span.long.strut", { "aria-hidden": "true" }, h("span"));
  return {
    element: h(
      "div.lanes",
      scores.element,
      sign("softmax", "→"),
      weights.element,
      factor,
      h("div.mixed", context.element),
    ),
    update({ words }) {
      setText(factor.firstChild, plain(widget) ? "× X →" : "× V →");
      const corner = context.element.querySelector("thead td");
      if (corner && strut.parentElement !== corner) corner.append(strut);
      setText(
        strut.firstChild,
        words.reduce((a, b) => (b.length > a.length ? b : a), ""),
      );
    },
  };
}

// ---------------------------------------------------------------- where to start from

/**
 * The states to start from. Which of them the reader is in follows from the matrices, or else from
 * what was chosen last; its words keep their embeddings.
 */
function examples(widget) {
  const list = widget.spec.facts.examples;
  let now = -1;
  const knows = (i, { words }) => words.filter((word) => word in list[i].known).length;
  const find = (inputs) => {
    const alike = times(list.length, (i) => i).filter((i) =>
      ["w_q", "w_k", "w_v"].every((name) => same(list[i].inputs[name], inputs[name])),
    );
    const most = Math.max(...alike.map((i) => knows(i, inputs)));
    const best = alike.filter((i) => knows(i, inputs) === most);
    if (best.length && !best.includes(now)) [now] = best;
    return now;
  };
  const picks = choice(
    widget,
    "example",
    "Start from",
    list.map(({ title }) => title),
    {
      read: find,
      choose(i) {
        now = i;
        widget.entry = null;
        widget.query = list[i].query;
        widget.edit(Symbol("example"), (next) =>
          Object.assign(next, structuredClone(list[i].inputs)),
        );
        widget.repaint();
      },
      edits: "x",
    },
  );
  const about = h("p.note.about");
  const first = list[find(widget.inputs)];
  if (first && same(first.inputs.words, widget.inputs.words))
    widget.query = widget.start = first.query;
  return {
    element: h("div.examples", picks.element, about),
    lexicon: () => ({ key: String(now), known: { x: list[now]?.known ?? {} } }),
    reset() {
      now = -1;
    },
    update(inputs) {
      picks.update(inputs);
      const message = list[now]?.about ?? "";
      if (about.dataset.message !== message) about.replaceChildren(...mathText(message));
      about.dataset.message = message;
    },
  };
}
examples.style = `
.examples { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; }
.examples .about { flex: 1 1 18.75rem; line-height: 1.4; }
.examples .kind { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; }
`;

// ---------------------------------------------------------------- following one word

const vectorOf = (numbers) => `(${numbers.map(format).join(", ")})`;

/** 0.42·0.66 + 0.69·0.96 */
const spelled = (pairs) =>
  pairs
    .map((pair) => pair.map((n) => (n < 0 ? `(${format(n)})` : format(n))).join("·"))
    .join(" + ");

/** What the steps need: the chosen word, and its row, or any, of an input or an output. */
function rowsFor(widget) {
  const { words, causal, scaled } = widget.inputs;
  const t = widget.query;
  const row = (name, i = t) => {
    const { columns, at } = numbersIn(widget, name);
    return times(columns, (j) => at(i, j));
  };
  const column = (name, j) => {
    const { rows, at } = numbersIn(widget, name);
    return times(rows, (i) => at(i, j));
  };
  const shares = row("weights").map((share, s) => (s === t ? -1 : share));
  const other = words.length === 1 ? 0 : shares.indexOf(Math.max(...shares)); // for an example
  const { code } = widget.spec.facts;
  const word = wordAt(widget, t);
  return { words, causal, scaled, t, row, column, other, code, word, T: words.length };
}

/** The chosen word's scores that the causal mask leaves, or those that it hides. */
function scoresOf(widget, masked = false) {
  const { causal, t, T } = rowsFor(widget);
  const seen = causal ? t + 1 : T;
  const columns = masked ? times(T - seen, (s) => seen + s) : times(seen, (s) => s);
  return columns.map((column) => ({ name: "scores", row: t, column }));
}

const zip = (a, b) => a.map((number, i) => [number, b[i]]);

/** The chosen word's scores as far as they have come, one row for each step. */
function stages(widget, count) {
  const { words, row, scaled } = rowsFor(widget);
  const divided = row("dots").map((score) => (scaled ? score / ROOT.value : score));
  const rows = [
    { name: "q · k", numbers: row("dots") },
    { name: scaled ? "÷ √3" : "not divided", numbers: divided },
    { name: "masked", numbers: row("scores") },
    { name: "weights", numbers: row("weights") },
  ];
  return { labels: words, rows: rows.slice(0, count) };
}

const STEPS = [
  (widget) => {
    const { t, row, word } = rowsFor(widget);
    return {
      message:
        `We follow ${word}. Its row of X is its embedding, ${vectorOf(row("x"))}, and all that ` +
        "self-attention knows of the word by itself.",
      lit: [{ name: "x", row: t }],
      moves: [{ from: { name: "x", row: t }, to: { name: "x", row: t } }],
    };
  },
  (widget) => {
    const { t, row, column, word, code } = rowsFor(widget);
    return {
      message:
        `The row times the matrix W_q is the query of ${word}: ${vectorOf(row("q"))}. Its first ` +
        "entry comes from the first column of W_q: " +
        `${spelled(zip(row("x"), column("w_q", 0)))} = ${format(row("q")[0])}.`,
      lit: [
        { name: "x", row: t },
        { name: "w_q", column: 0 },
        { name: "q", row: t },
      ],
      moves: [
        { from: { name: "x", row: t }, to: { name: "q", row: t } },
        { from: { name: "w_q", column: 0 }, to: { name: "q", row: t, column: 0 } },
      ],
      fills: [{ name: "q", row: t }],
      code: code.project,
    };
  },
  (widget) => {
    const { t, row, word, code } = rowsFor(widget);
    return {
      message:
        `Two other matrices make of the row the key of ${word}, ${vectorOf(row("k"))}, and its ` +
        `value, ${vectorOf(row("v"))}. Every other word gets its query, key and value in this way.`,
      lit: ["x", "k", "v"].map((name) => ({ name, row: t })),
      moves: ["k", "v"].map((name) => ({ from: { name: "x", row: t }, to: { name, row: t } })),
      fills: ["q", "k", "v"].map((name) => ({ name })),
      code: code.project,
    };
  },
  (widget) => {
    const { t, row, other, scaled, T, words, word, code } = rowsFor(widget);
    const pairs = spelled(zip(row("q"), row("k", other)));
    return {
      message:
        `The query of ${word} meets the key of every word. With that of “${words[other]}” the ` +
        `dot product is ${pairs} = ${format(row("dots")[other])}, and so on for all ${T}: these ` +
        "are the scores.",
      lit: [{ name: "q", row: t }, { name: "k" }, { name: "scores", row: t }],
      moves: times(T, (s) => ({
        from: { name: "k", row: s },
        to: { name: "scores", row: t, column: s },
      })),
      fills: scaled ? [] : scoresOf(widget),
      code: code.score,
      table: stages(widget, 1),
    };
  },
  (widget) => {
    const { t, row, other, scaled, words, code } = rowsFor(widget);
    const score = row("dots")[other];
    return {
      message: scaled
        ? `Each score is divided by √dₖ = √3 = 1.73, so that it does not grow with the width dₖ ` +
          `of the vectors: the ${format(score)} with “${words[other]}” becomes ` +
          `${format(score / ROOT.value)}.`
        : "Here the scores would be divided by √3, but this is switched off, so they stay " +
          "as they are. Switch it on, and this row changes.",
      lit: [{ name: "scores", row: t }],
      fills: scaled ? scoresOf(widget) : [],
      code: scaled ? code.scale : undefined,
      table: stages(widget, 2),
    };
  },
  (widget) => {
    const { t, causal, words, word, code } = rowsFor(widget);
    const later = words.slice(t + 1);
    return {
      message: !causal
        ? `The causal mask is switched off, so ${word} may attend to every word, and no score ` +
          "changes. Switch it on, and the scores of later words become −∞."
        : later.length
          ? `The causal mask hides the words after ${word} (${later.join(", ")}): their scores ` +
            "become −∞, whatever they were."
          : `${word} is the last word, so the causal mask hides nothing from it.`,
      lit: causal && later.length ? scoresOf(widget, true) : [{ name: "scores", row: t }],
      fills: scoresOf(widget, true),
      code: causal ? code.mask : undefined,
      table: stages(widget, 3),
    };
  },
  (widget) => {
    const { t, row, other, words, word, code } = rowsFor(widget);
    const share = row("weights")[other];
    return {
      message:
        `The softmax makes of the scores positive shares whose sum is 1: the weights. ${word} ` +
        `gives “${words[other]}”, with the score ${format(row("scores")[other])}, the weight ` +
        `${format(share)}, and the largest weight, ${format(Math.max(...row("weights")))}, to ` +
        `“${words[row("weights").indexOf(Math.max(...row("weights")))]}”.`,
      lit: [
        { name: "scores", row: t },
        { name: "weights", row: t },
      ],
      moves: [{ from: { name: "scores", row: t }, to: { name: "weights", row: t } }],
      fills: [{ name: "weights", row: t }, partsOf(widget, ".word .weight")],
      code: code.softmax,
      table: stages(widget, 4),
    };
  },
  (widget) => {
    const { t, row, column, T, word, code } = rowsFor(widget);
    return {
      message:
        `Each value is multiplied by its weight, and the sum is the output of ${word}: ` +
        `${vectorOf(row("context"))}. Its first entry is ` +
        `${spelled(zip(row("weights"), column("v", 0)))} = ${format(row("context")[0])}.`,
      lit: [{ name: "weights", row: t }, { name: "v" }, { name: "context", row: t }],
      moves: times(T, (s) => ({ from: { name: "v", row: s }, to: { name: "context", row: t } })),
      fills: [{ name: "context", row: t }, partsOf(widget, ".mixture")],
      code: code.mix,
    };
  },
  (widget) => {
    const { T, code } = rowsFor(widget);
    return {
      message:
        `All ${T === 1 ? "" : `${T} `}words do this at once, each in its own row of the tables, ` +
        "with the same three matrices. Now change any number: what depends on it flashes, in the " +
        "order in which it follows.",
      lit: [{ name: "context" }],
      moves: [{ from: { name: "x" }, to: { name: "context" } }],
      fills: ["scores", "weights", "context"].map((name) => ({ name })),
      code: code.mix,
    };
  },
];

const one = (widget) => wordAt(widget, widget.query);

/** The sum that is written out before one is asked for: the chosen word's largest score. */
function firstSum(widget) {
  const { rows, columns, at } = numbersIn(widget, "scores");
  if (rows !== widget.inputs.words.length) return undefined; // the answer is still on its way
  const row = times(columns, (s) => at(widget.query, s));
  return widget.cellsOf("scores", widget.query, row.indexOf(Math.max(...row)))[0];
}

export default live(
  "Self-attention, live",
  (ui) => {
    const start = ui.use(examples);
    return [
      start,
      ui.words("weights", undefined, start.lexicon),
      ui.use(
        crossing,
        ui.matrix("x", "embeddings X"),
        [
          [
            "query",
            ui.matrix("w_q", "W_q"),
            ui.heat("q", "queries Q = X W_q", "signed", projection("Query", "w_q", "query")),
          ],
          [
            "key",
            ui.matrix("w_k", "W_k"),
            ui.heat("k", "keys K = X W_k", "signed", projection("Key", "w_k", "key")),
          ],
          [
            "value",
            ui.matrix("w_v", "W_v"),
            ui.heat("v", "values V = X W_v", "signed", projection("Value", "w_v", "value")),
          ],
        ],
        ui.column(
          ui.entrySlider(),
          ui.toggle("scaled", "divide scores by √3"),
          ui.toggle("causal", "causal mask"),
        ),
      ),
      ui.use(journey, {
        name: one,
        steps: STEPS,
        flows: ["q", "k", "v", "scores", "weights", "context"],
        beside: ".given, .role, .lanes > .scroll, .mixed",
      }),
      ui.use(
        attentionSteps,
        ui.heat("scores", "scores, before the softmax", "signed", either(likeness, score)),
        ui.heat("weights", "weights: each row sums to 1", "weight", weight),
        ui.heat("context", "outputs Z", "signed", either(averaged, mixed)),
      ),
      ui.boxed(
        "said",
        ui.explanation(undefined, firstSum),
        ui.mixture("weights", "context", (widget) => (plain(widget) ? "" : "v")),
      ),
    ];
  },
  { query: 1, wide: true, answer: ".words" },
);
