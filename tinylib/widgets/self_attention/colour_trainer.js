import { trains } from "../../live/page/trainer.js";
import { action } from "../../live/ui/controls.js";
import { h, mathText, setAttribute, setHeat, setText, svgPart } from "../../live/ui/dom.js";
import { gauge } from "../../live/ui/gauge.js";
import { explainable, rove, sum, weighed } from "../../live/ui/explain.js";
import { signedKey } from "../../live/ui/keys.js";
import { format, times } from "../../live/ui/numbers.js";
import { folded, live } from "../../live/ui/parts.js";
import {
  lossCurve,
  rates,
  reachedIn,
  seeds,
  setting,
  settings,
  trainingBar,
} from "../../live/ui/training.js";
import { isToured } from "../../live/ui/widget.js";

export const program = trains("self_attention/colour_trainer_task.js");

const EYE = 15; // ms between two steps: then each is seen, and all of them take some seconds
const CERTAIN = 9.95; // larger entries have no decimal

// The colour of a word is a name, too, so that it need not be seen.
const coloured = (kind = "") => {
  const [name, letter, number] = [h("span.name"), h("span.letter"), h("b")];
  setAttribute(letter, "aria-hidden", "true");
  return {
    element: h("span", { class: `chip ${kind}` }, h("i"), name, letter, number),
    name,
    letter,
    number,
  };
};

/** Let a chip say what it is: a word's colour and number, or only one of them. */
function describeChip(chip, colour, name, number) {
  setAttribute(chip.element, "data-hue", String(colour));
  setText(chip.name, name);
  setText(chip.letter, name.slice(0, 1));
  setText(chip.number, number);
}

/** What a screen reader says, and is not seen. */
const UNSEEN =
  "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);";
const CHIPS = `
.chip { position: relative; display: inline-flex; gap: 5px; align-items: center; color: var(--text);
  font-size: var(--size-small); line-height: 1.2; --tone: var(--line); }
[data-hue="0"] { --tone: var(--word-blue); } [data-hue="1"] { --tone: var(--word-orange); }
[data-hue="2"] { --tone: var(--word-green); } [data-hue="3"] { --tone: var(--word-pink); }
.chip i { width: .6875rem; height: .6875rem; flex: none; border-radius: 50%;
  background: var(--tone); }
.chip[data-hue=""] i { display: none; }
.chip b { font-size: var(--size-note); font-weight: 650; font-variant-numeric: tabular-nums; }
.chip b:empty { display: none; }
.chip.over { flex-wrap: wrap; justify-content: center; gap: 1px 3px; padding-bottom: 3px; }
.chip.over i { width: 100%; min-width: 1.375rem; height: 4px; border-radius: 2px; }
:is(.chip.over, .learned .chip) .name { ${UNSEEN} }
.chip .letter { display: none; }
:is(.chip.over, .learned .chip) .letter { display: inline; }
@container widget (max-width: 26.25rem) {
  .chip .name { ${UNSEEN} }
  .chip .letter { display: inline; }
  .chip { gap: 3px; }
}
`;

/** An entry of a matrix, in few digits. */
const formatEntry = (value) =>
  value
    .toFixed(Math.abs(value) < CERTAIN ? 1 : 0)
    .replace(/^-(?=0(\.0)?$)/, "")
    .replace(/0(?=\.[1-9])/, "")
    .replace("-", "−");

const entry = (outputs, name, row, column) => {
  const { shape, data } = outputs[name];
  return data[row * shape[1] + column];
};

/** The words as they stand in the sentence: “blue 2”. */
const wordOf = (widget, place) => {
  const { colours, numbers } = widget.readOutputs();
  return `“${widget.spec.facts.colours[colours.data[place]]} ${numbers.data[place]}”`;
};

/** The four entries of W_q W_k^T that a score is made of: by colour and number of both words. */
function entriesOf(widget, t, s) {
  const outputs = widget.readOutputs();
  const [count] = widget.spec.facts.counts;
  const ends = (place) => [outputs.colours.data[place], count + outputs.numbers.data[place]];
  return ends(t).flatMap((row) => ends(s).map((column) => ({ name: "w_qk", row, column })));
}

/** A weight: the score of two words, as four entries of the matrix, and then the softmax. */
function weight(widget, t, s) {
  const outputs = widget.readOutputs();
  const scores = outputs.scores.data.slice(8 * t, 8 * t + 8);
  const four = entriesOf(widget, t, s);
  const terms = four.map(({ row, column }) => entry(outputs, "w_qk", row, column));
  const added = terms.map((term) => format(term)).join(" + ");
  const plain = widget.inputs.form === widget.spec.facts.numbered.unscaled;
  const score = plain ? added : `(${added}) / √8`;
  const [word, other] = [wordOf(widget, t), wordOf(widget, s)];
  const what =
    scores[s] === -Infinity
      ? `${word} must not attend to ${t === s ? "itself" : other}. The weight`
      : `${word} scores ${other} with ${score} = ${format(scores[s])}. The weight`;
  const cells = four.flatMap(({ name, row, column }) => widget.cellsOf(name, row, column));
  return weighed(what, scores, s, cells);
}

/** The number that word t says. */
function answerOf(outputs, t) {
  const logits = times(4, (number) => entry(outputs, "logits", t, number));
  return logits.indexOf(Math.max(...logits));
}

/** A sentence: to which words each word attends, and what it says. */
function colouredSentence(widget) {
  const { colours: names } = widget.spec.facts;
  const heads = times(8, () => coloured("over"));
  const rows = times(8, (t) => {
    const chip = coloured();
    const cells = times(8, () => h("td", h("span")));
    const wanted = h("td.says.wanted");
    const message = h("td.says", h("b"), h("span"));
    cells.forEach((cell, s) => explainable(widget, cell, () => weight(widget, t, s)));
    return {
      chip,
      cells,
      message,
      wanted,
      element: h("tr", h("th", { scope: "row" }, chip.element), ...cells, message, wanted),
    };
  });
  const table = h(
    "table.heat.weight.spoken",
    { "data-output": "weights" },
    h("caption", "attention weights: each row is a word that attends"),
    h(
      "thead",
      h(
        "tr",
        h("td"),
        ...heads.map(({ element }) => h("th", { scope: "col" }, element)),
        h("th.says", { scope: "col" }, "says"),
        h("th.says", { scope: "col" }, "wanted"),
      ),
    ),
    h("tbody", ...rows.map(({ element }) => element)),
  );
  widget.tables.set("weights", () => rows.map(({ cells }) => cells));
  rove(table)();
  const key = h("p.key", h("span.gold"), h("span", "its partner, the other word of its colour"));
  const another = action(widget, "example", "Another sentence", (next) => {
    next.example = (next.example + 1) % (widget.spec.limits.example[1] + 1);
  });
  return {
    element: h("div.column.reading", h("div.scroll", table), h("div.bar", key, another)),
    shows: "outputs",
    update(_inputs, outputs) {
      const [colours, numbers, partners] = ["colours", "numbers", "partners"].map(
        (name) => outputs[name].data,
      );
      rows.forEach(({ chip, cells, message, wanted }, t) => {
        for (const one of [chip, heads[t]])
          describeChip(one, colours[t], names[colours[t]], `${numbers[t]}`);
        cells.forEach((cell, s) => {
          const value = entry(outputs, "weights", t, s);
          const masked = entry(outputs, "scores", t, s) === -Infinity;
          setAttribute(cell, "class", masked ? "never" : s === partners[t] ? "gold" : "");
          setAttribute(cell, "data-value", String(value));
          setText(cell.firstChild, value < 0.005 ? "" : format(value));
          setHeat(cell, value);
        });
        const most = answerOf(outputs, t);
        const right = most === numbers[partners[t]];
        setText(message.firstChild, `${most}`);
        setText(message.children[1], right ? "✓" : "✗");
        setText(wanted, `${numbers[partners[t]]}`);
        setAttribute(message, "class", right ? "says right" : "says");
      });
    },
  };
}
colouredSentence.style = `${CHIPS}
.spoken th[scope=row] { max-width: none; padding-right: 6px; text-align: left;
  vertical-align: middle; }
.spoken td span { width: 2.625rem; height: 1.375rem; line-height: 1.375rem; }
.spoken td { position: relative; }
.spoken .gold::after, .key .gold { content: ""; position: absolute; inset: -1px; border: 3px double
  var(--text); border-radius: 3px; outline: 1px solid var(--ground); pointer-events: none; }
.key { margin: 2px 0 0; font-size: var(--size-note); color: var(--soft); display: flex; gap: 8px;
  align-items: center; }
.key .gold { position: static; width: 1.125rem; height: 1rem; flex: none; }
.spoken .says { text-align: left; padding-left: 10px; white-space: nowrap; background: none;
  color: var(--text); }
.spoken td.says span { display: inline; width: auto; padding-left: 6px; contain: none;
  color: var(--soft); }
.spoken td.says b, .spoken .wanted { font-size: var(--size-note); }
.spoken th.says { white-space: normal; line-height: 1.15; }
.reading { gap: 6px; align-items: flex-start; }
.reading .bar { justify-content: space-between; width: 100%; }
@container widget (max-width: 32.5rem) {
  .spoken td span { width: 1.375rem; }
  .spoken .gold::after { border: 1.5px solid var(--text); outline: 0; }
  .spoken th[scope=row] { padding-right: 3px; }
  .spoken caption { white-space: normal; }
  .spoken .says { padding-left: 5px; }
  .spoken td.says span { padding-left: 2px; }
  .spoken td:not(.says, .asked) span { font-size: 0; } /* too narrow: the tapped one is shown */
  .spoken td.asked span { width: auto; margin-inline: -.3rem; contain: none; }
}
`;

const [APART, ARC, LIFT] = [100, 200, 0.27]; // of the drawing: between two words, and its height

/** In the tour: the words in one line, and arcs from each to where it looks. */
function lookingAround(widget) {
  const { colours: names } = widget.spec.facts;
  const middle = (t) => APART * (t + 0.5);
  const paths = times(64, (i) => {
    const [from, to] = [middle(Math.floor(i / 8)), middle(i % 8)];
    const top = ARC - 55 - LIFT * Math.abs(to - from);
    return svgPart("path", { d: `M${from} ${ARC}C${from} ${top} ${to} ${top} ${to} ${ARC}` });
  });
  const box = { viewBox: `0 0 ${8 * APART} ${ARC}`, role: "img" };
  const arcs = svgPart("svg", { ...box, "data-output": "weights" }, ...paths);
  const words = times(8, () => ({ ...coloured(), mark: h("span.mark") }));
  const items = words.map(({ element, mark }) => h("li", element, mark));
  const about = "Below each word its number, and the number that it says its partner has.";
  return {
    element: h("div.column.around", arcs, h("ol.plain", ...items), h("p.note", about)),
    shows: "outputs",
    update(_inputs, outputs) {
      const [colours, numbers, partners] = ["colours", "numbers", "partners"].map(
        (name) => outputs[name].data,
      );
      paths.forEach((path, i) => {
        const value = entry(outputs, "weights", Math.floor(i / 8), i % 8);
        setAttribute(path, "data-hue", String(colours[Math.floor(i / 8)]));
        setAttribute(path, "opacity", value.toFixed(3));
        setAttribute(path, "stroke-width", (1 + 5 * value).toFixed(2));
      });
      words.forEach((word, t) => {
        describeChip(word, colours[t], names[colours[t]], `${numbers[t]}`);
        const number = answerOf(outputs, t);
        const right = number === numbers[partners[t]];
        setText(word.mark, `${number} ${right ? "✓" : "✗"}`);
        setAttribute(word.mark, "class", right ? "mark right" : "mark");
      });
      const looks = times(8, (t) => {
        const weights = times(8, (s) => entry(outputs, "weights", t, s));
        const most = weights.indexOf(Math.max(...weights)) + 1;
        return `${names[colours[t]]} looks most at word ${most}`;
      });
      setAttribute(arcs, "aria-label", looks.join(", "));
    },
  };
}
lookingAround.style = `${CHIPS}
.around { gap: 2px; max-width: 40rem; margin: 0 auto; }
.around svg { display: block; width: 100%; overflow: visible; }
.around path { fill: none; stroke: var(--tone); stroke-linecap: round;
  vector-effect: non-scaling-stroke; }
.around ol { display: grid; grid-template-columns: repeat(8, 1fr); padding: 0; list-style: none;
  margin: 4px 0 8px; }
.around li { display: grid; justify-items: center; gap: 2px; min-width: 0; }
.around .chip.chip { display: grid; justify-items: center; gap: 2px; }
.around .chip .name { position: static; width: auto; height: auto; clip-path: none; }
@container widget (max-width: 26.25rem) { .around .chip .name { letter-spacing: -.04em; } }
.around .chip .letter.letter { display: none; }
.around .chip i { width: 1.5rem; height: 5px; border-radius: 3px; }
.around .chip b { font-size: var(--size-large); }
.around .mark { color: var(--error); font-weight: 650; }
.around .mark.right { color: var(--text); }
`;

/**
 * A matrix that is learned, signed. `rows` and `columns` say what stands beside it: "entries" are
 * the colours and numbers of an embedding, "numbers" the four numbers, and "" counts from 1.
 */
function matrix(
  widget,
  name,
  {
    title,
    most, // is shaded most; it stays the same, so that what comes up is seen to
    rows = "entries",
    columns = "entries",
    groups = [],
    corner = "",
    explain = undefined,
  },
) {
  const { colours } = widget.spec.facts;
  const places = (kind) => (kind === "numbers" ? 4 : 8);
  const chipOf = (kind, i, across) => {
    const chip = coloured(across ? "over" : "");
    const isColour = kind === "entries" && i < colours.length;
    const number = kind === "entries" ? i - colours.length : kind === "numbers" ? i : i + 1;
    describeChip(chip, isColour ? i : "", isColour ? colours[i] : "", isColour ? "" : `${number}`);
    return chip.element;
  };
  const split = (kind, i) => kind === "entries" && i === colours.length;
  const cells = times(8, (i) =>
    times(places(columns), (j) => {
      const cell = h("td", { class: split(columns, j) ? "split" : "" }, h("span"));
      if (explain) explainable(widget, cell, () => explain(widget, i, j));
      return cell;
    }),
  );
  const over = groups.map((text) => h("th", { scope: "colgroup", colspan: "4" }, text));
  const table = h(
    "table.heat.signed.learned",
    { "data-output": name },
    h("caption", ...title),
    h(
      "thead",
      ...(over.length ? [h("tr.groups", h("td"), ...over)] : []),
      h(
        "tr",
        h("td.asking", corner),
        ...times(places(columns), (j) => h("th", { scope: "col" }, chipOf(columns, j, true))),
      ),
    ),
    h(
      "tbody",
      ...cells.map((line, i) =>
        h(
          "tr",
          { class: split(rows, i) ? "split" : "" },
          h("th", { scope: "row" }, chipOf(rows, i, false)),
          ...line,
        ),
      ),
    ),
  );
  widget.tables.set(name, () => cells);
  if (explain) rove(table)();
  const key = signedKey();
  key.reach(most);
  return {
    element: h("div.scroll", table, key.element),
    shows: "outputs",
    update(_inputs, outputs) {
      const { data } = outputs[name];
      cells.flat().forEach((cell, i) => {
        cell.classList.toggle("below", data[i] < 0);
        setAttribute(cell, "data-value", String(data[i]));
        setText(cell.firstChild, formatEntry(data[i]));
        setHeat(cell, Math.min(1, Math.abs(data[i]) / most));
      });
    },
  };
}
matrix.style = `
.sides { --left: 1.4fr; --right: 1fr; }
.heat.signed.learned td span { width: 2.125rem; height: 1.3125rem; line-height: 1.3125rem; }
@container widget (max-width: 32.5rem) {
  .heat.signed.learned td span { width: 1.9375rem; }
  .learned .asking { padding-right: 2px; }
}
.learned th[scope=row] { padding-right: 4px; text-align: right; vertical-align: middle; }
.learned .asking { font-size: var(--size-small); color: var(--soft); text-align: right;
  padding-right: 6px; }
.learned .chip b { font-size: var(--size-small); }
.learned th[scope=row] .chip { justify-content: flex-end; vertical-align: middle; }
.learned .groups th { font-size: var(--size-small); padding-bottom: 3px; }
.learned td.split { border-left: 5px solid var(--ground); }
.learned tr.split > * { border-top: 5px solid var(--ground); }
.matrices { display: flex; flex-wrap: wrap; gap: 10px 16px; align-items: flex-start; }
.matrices > * { min-width: 0; }
`;

/** An entry of the product: a row of W_q times a row of W_k. */
const crossed = (widget, row, column) => {
  const outputs = widget.readOutputs();
  const terms = times(8, (i) => [entry(outputs, "w_q", row, i), entry(outputs, "w_k", column, i)]);
  const lit = [
    { name: "w_q", row },
    { name: "w_k", row: column },
  ];
  return sum("Its row of W_q times its column’s row of W_k:", terms, undefined, {
    lit,
    tones: ["query", "key"],
  });
};

/** How much has been learned, measured on sentences that no training draws. */
function reached(widget) {
  const { tests } = widget.spec.facts;
  const accuracy = gauge("correct numbers", { goal: 1 / widget.spec.facts.counts[1] });
  const right = gauge("weight on partner", { goal: 1 / 7 });
  return {
    element: h(
      "div.column",
      { "data-output": "" },
      accuracy.element,
      right.element,
      h("p.note.soft", `${tests} test sentences; the marks: without learning.`),
    ),
    shows: "outputs",
    update(_inputs, outputs) {
      accuracy.set(outputs.accuracy.data[0], reachedIn(widget).length > 0);
      right.set(outputs.right.data[0]);
    },
  };
}
reached.style = gauge.style;

const forms = ({ facts }) => facts.training.forms;
const GUESSING = Math.log(4);
const ALL = 0.9995; // what is shown as 100 %

/** What the map and the matrix show of what was found out, as far as it is seen in them. */
function seenIn(outputs) {
  const largest = (name, row, width) => {
    const values = times(width, (column) => entry(outputs, name, row, column));
    return values.indexOf(Math.max(...values));
  };
  const partners = [...outputs.partners.data];
  if (!partners.every((place, t) => largest("weights", t, 8) === place)) return "";
  const product = times(4, (c) => largest("w_qk", c, 4) === c).every(Boolean);
  const also = product ? ", and W_q W_kᵀ had one for each colour" : "";
  return ` Each row of the map had one dark cell${also}.`;
}

/** What starts it, and what it says when each word finds its partner. */
function bar(widget, label = undefined) {
  const { tests, numbered } = widget.spec.facts;
  const usual = ["the model as described", { form: 0, rate: 1 }];
  return trainingBar(widget, {
    pause: EYE,
    label,
    lacking: () => (isToured(widget.model) && reachedIn(widget).length ? "It has learned" : ""),
    success: {
      goal: isToured(widget.model)
        ? "It takes some seconds."
        : "The goal: each word finds its partner, so that all " +
          `${tests} test sentences are answered correctly.`,
      milestones: [
        {
          name: "found",
          flag: "finds its partner",
          when: (_inputs, { accuracy }) => accuracy.data[0] >= ALL,
          message: (crossed, outputs) =>
            isToured(widget.model)
              ? `No mistake in ${tests} new sentences.`
              : `${crossed}: all ${tests} test sentences were correct.${seenIn(outputs)}`,
        },
      ],
      next: ({ form }) =>
        form
          ? [usual]
          : [
              ["no division by √8", { form: numbered.unscaled }],
              ["shuffled answers", { form: numbered.shuffled }],
            ],
      read: ({ accuracy, right }) => [accuracy.data[0], right.data[0]],
    },
  });
}
bar.style = `${trainingBar.style}
.tour { --room: 2; --room-on-phones: 2; }
`;

/** The loss, against guessing; and against what a form cannot do without, if it were simpler. */
function loss(widget) {
  const { numbered } = widget.spec.facts;
  const limits = {
    [numbered.itself]: [[0.75 * Math.log(2), "with the colour alone: 0.52"]],
    [numbered.before]: [[0.5 * GUESSING, "if every second word guesses: 0.69"]],
  };
  return lossCurve(widget, {
    top: 1.75,
    height: 100,
    name: ({ form, rate, seed }) =>
      [forms(widget.spec)[form], ...(rate === 1 ? [] : [`rate × ${rate}`]), `seed ${seed}`].join(
        ", ",
      ),
    rules: ({ form }) => [[GUESSING, "guessing: ln 4 = 1.39"], ...(limits[form] ?? [])],
  });
}
loss.style = lossCurve.style;

const productTitle = () => [...mathText("W_q W_k"), h("sup", "T"), ": what scores are made of"];

const productMatrix = (ui) =>
  ui.use(matrix, "w_qk", {
    title: productTitle(),
    most: 20,
    groups: ["key: colour", "key: number"],
    corner: "query:",
    explain: crossed,
  });

export default live(
  "Train a layer to find the other word of its colour",
  (ui) => [
    ui.use(bar),
    ui.sides(
      ui.boxed(
        "side",
        ui.use(colouredSentence),
        ui.boxed(
          "matrices",
          productMatrix(ui),
          ui.use(matrix, "w_v", {
            title: [...mathText("W_v"), ": what is passed on"],
            most: 5,
            columns: "numbers",
            groups: ["for number"],
          }),
        ),
      ),
      ui.boxed(
        "side",
        ui.use(reached),
        ui.use(loss),
        ui.use(
          settings,
          ui.use((widget) => setting(widget, "form", "model and task", forms(widget.spec))),
          ui.use(rates),
          ui.use(seeds),
        ),
        ui.explanation("Point at a weight: its score is written out here."),
        ui.use(
          folded,
          h("span", ...mathText("W_q and W_k themselves")),
          ui.boxed(
            "matrices",
            ui.use(matrix, "w_q", { title: mathText("W_q"), most: 5, columns: "" }),
            ui.use(matrix, "w_k", { title: mathText("W_k"), most: 5, columns: "" }),
          ),
        ),
      ),
    ),
  ],
  {
    wide: true,
    main: ".heat.weight, .gauge",
    tour: (ui) => [ui.use(bar, "Train"), ui.use(lookingAround)],
  },
);
