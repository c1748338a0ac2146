// A GPT in which up to four lines are wrong: the reader trains it, tries it, and says which.

import { trains } from "../../live/page/trainer.js";
import { results, scroller } from "../../live/ui/boxes.js";
import { action } from "../../live/ui/controls.js";
import { AS_IS, h, setAttribute, setText } from "../../live/ui/dom.js";
import { headMaps } from "../../live/ui/heads.js";
import { wordMap } from "../../live/ui/maps.js";
import { percent, times, whole } from "../../live/ui/numbers.js";
import { folded, live } from "../../live/ui/parts.js";
import { paint } from "../../live/ui/pixels.js";
import { fillList, sentence } from "../../live/ui/sentences.js";
import { lossCurve, seeds, setting, settings, trainingBar } from "../../live/ui/training.js";

export const program = trains("repair/broken_gpt_task.js");

const H = 2; // heads of a block
const LEARNS = ["all stories", "one story"];
const COUNTS = [
  "no mistake",
  ...["one mistake", "two mistakes", "three mistakes", "four mistakes"].map(
    (count) => `${count}, marked below`,
  ),
];

/** Another GPT, not trained yet. */
const take = (gpt) => (next) => Object.assign(next, { gpt, steps: 0, other: next.text });

/** Which GPT it is; the first one is right. */
function suspects(widget) {
  const { states } = widget.spec.facts;
  const names = states.map((_, i) => (i ? `GPT ${i} of ${states.length - 1}` : "without mistakes"));
  const list = h(
    "select",
    {
      "data-input": "gpt",
      change: () => widget.edit(Symbol("gpt"), take(list.selectedIndex)),
    },
    ...names.map(() => h("option")),
  );
  return {
    element: h("label.offer", h("span", "the GPT"), list),
    shows: "inputs",
    update({ gpt }) {
      list.selectedIndex = gpt;
      [...list.options].forEach((option, i) =>
        setText(option, `${names[i]}${widget.solved?.has(i) ? " ✓" : ""}`),
      );
    },
  };
}

/** All stories, or a few words that it can know by heart. */
function learned(widget) {
  const { story, stories } = widget.spec.facts;
  const part = setting(widget, "learns", "it learns", LEARNS);
  const note = h("p.note", { ...AS_IS });
  return {
    element: h("div.learns", part.element, note),
    shows: "inputs",
    update(inputs) {
      part.update(inputs);
      setText(note, inputs.learns ? `“${story.join(" ")}”` : `${whole(stories)} little stories`);
    },
  };
}

learned.style = `
.setup { display: flex; flex-wrap: wrap; gap: 8px 20px; align-items: center; }
.setup .learns { display: flex; flex: 1 1 22rem; flex-wrap: wrap; gap: 4px 12px;
  align-items: center; }
.learns .note { margin: 0; flex: 1 1 10rem; min-height: 2.9em; align-content: center; }
.setup .kind { display: flex; gap: 8px; align-items: center; }
`;

const curve = Object.assign(
  (widget) => {
    const { entropy } = widget.spec.facts;
    const V = widget.spec.sentences.text.length;
    return lossCurve(widget, {
      top: 4.5,
      height: 80,
      name: (inputs) =>
        `GPT ${inputs.gpt || "without mistakes"}, ${LEARNS[inputs.learns]}, seed ${inputs.seed}`,
      rules: (inputs) => [
        [Math.log(V), `ln ${V}: all words alike`],
        ...(inputs.learns ? [] : [[entropy, `nobody can know more: ${entropy.toFixed(2)}`]]),
      ],
    });
  },
  { style: lossCurve.style },
);

const named = (widget, ids) => Array.from(ids.data, (id) => widget.spec.sentences.text[id]);

/** How the first text goes on. */
function continuation(widget) {
  const [given, written] = [h("span"), h("b")];
  return {
    element: results(
      "column",
      h("p.goes-on", { ...AS_IS }, h("i", "It goes on: "), given, " ", written),
    ),
    shows: "outputs",
    update(_inputs, outputs) {
      setText(given, named(widget, outputs.read).join(" "));
      setText(written, named(widget, outputs.written).join(" "));
    },
  };
}
continuation.style = `
.goes-on { margin: 0; min-height: 3em; font-size: var(--size-note); line-height: 1.45; }
.goes-on :is(i, span) { font-style: normal; color: var(--soft); }
.goes-on b { font-weight: 500; }
`;

/** Ways to change the text, each an experiment. */
function changes(widget) {
  const own = widget.spec.sentences.text.filter((word) => !word.startsWith("<"));
  const { story } = widget.spec.facts;
  const unseen = own.find((word) => !story.includes(word)); // so that no place knows it by heart
  const after = (word) => own[(own.indexOf(word) + 1) % own.length];
  const edits = {
    "last word": (words, other) => [...words.slice(0, -1), after(other.at(-1))],
    order: (words) => [...words.slice(0, -1).reverse(), words.at(-1)],
    "as above": (words) => words,
    "one word": (words) => words.map(() => unseen),
  };
  const words = (text) => text.trim().split(/\s+/);
  const buttons = Object.entries(edits).map(([label, edit]) =>
    action(widget, "other", label, (next) => {
      next.other = edit(words(next.text), words(next.other)).join(" ");
    }),
  );
  const label = h("span.label", "change");
  return { element: h("div.bar.ways", label, ...buttons), shows: "inputs", update() {} };
}

const ROUNDING = 1e-6; // what differs by less is the same

/** Whether the text is one word, and what it predicts the same everywhere. */
function sameness(others, words, shares) {
  if (others.length < 2 || others.some((word) => word !== others[0])) return "";
  const [least, most] = [Math.min(...shares), Math.max(...shares)];
  const same = words.every((word) => word === words[0]) && most - least < ROUNDING;
  return `One word: its predictions are ${same ? "" : "not "}exactly the same everywhere.`;
}

/** What it predicts behind each word of the two texts, and how much that differs. */
function predictions(widget) {
  const body = h("tbody", AS_IS);
  const names = ["it reads", "it predicts", "changed", "it predicts", "moved"];
  const head = h("thead", h("tr", ...names.map((name) => h("th", { scope: "col" }, name))));
  const table = h("table.predictions", head, body);
  const note = h("p.note", { role: "status" });
  const guess = () => [h("b"), " ", h("span")];
  const line = () =>
    h("tr", h("td"), h("td", ...guess()), h("td"), h("td", ...guess()), h("td.moved"));
  const fill = (cell, word, share) => {
    setText(cell.children[0], word ?? "");
    setText(cell.children[1], word ? percent(share) : "");
  };
  return {
    element: results("column", scroller({ "aria-label": "predictions" }, table), note),
    shows: "outputs",
    update(_inputs, outputs) {
      const [read, words, other, others] = ["read", "words", "other_read", "other_words"].map(
        (name) => named(widget, outputs[name]),
      );
      const rows = read.length > other.length ? read : other;
      const shares = [outputs.shares.data, outputs.other_shares.data];
      const first = rows.findIndex((_, t) => read[t] !== other[t]); // that was changed
      fillList(body, rows, line, (row, _word, t) => {
        const cells = row.children;
        setText(cells[0], read[t] ?? "");
        fill(cells[1], words[t], shares[0][t]);
        setText(cells[2], other[t] ?? "");
        setAttribute(cells[2], "class", other[t] === read[t] ? "" : "changed");
        fill(cells[3], others[t], shares[1][t]);
        const move = outputs.moved.data[t];
        const moves = move >= ROUNDING;
        setText(cells[4], move === undefined ? "" : percent(moves ? move : 0));
        setAttribute(row, "class", moves && t < first ? "leaks" : "");
      });
      setText(note, sameness(other, others, shares[1]));
    },
  };
}
predictions.style = `
.predictions { border-collapse: collapse; font-size: var(--size-note);
  font-variant-numeric: tabular-nums; }
.predictions :is(th, td) { padding: 1px 12px 1px 0; line-height: 1.25;
  text-align: left; white-space: nowrap; }
.predictions th { font-weight: 400; color: var(--soft); }
.predictions b { font-weight: 600; }
.predictions span, .predictions .moved { color: var(--soft); }
.predictions .changed { color: var(--vermilion); }
.predictions .leaks .moved { color: var(--vermilion); font-weight: 600; }
.scroll:has(.predictions) ~ .note { min-height: 1.45em; }
.plane.loss ~ .runs li:nth-child(n + 3) { display: none; } /* so that nothing below moves */
.ways { gap: 6px; }
@container widget (max-width: 32.5rem) {
  .predictions { width: 100%; font-size: var(--size-small); }
  .predictions :is(th, td) { padding-right: 5px; line-height: 1.3; }
  .predictions th { white-space: normal; }
  .predictions span { display: block; }
}
.again .known { display: none; } /* the same words */
@container widget (min-width: 53.75rem) {
  .given-text > .column { grid-template-columns: 5rem minmax(0, 1fr); align-items: center;
    display: grid; gap: 2px 8px; }
  .given-text > .column > :not(.label, input.line) { grid-column: 2; }
  .given-text .line { padding-block: 2px; font-size: var(--size-note); }
  .given-text.again { gap: 6px; }
}
`;

/** What each word of the first text attends to, in one of the heads. */
function attention(widget) {
  let head = 0;
  const map = wordMap({ label: "what each word attends to" });
  const weightsOf = ({ weights, read }, i) => {
    const R = read.data.length;
    return weights.data.subarray(i * R * R, (i + 1) * R * R);
  };
  const maps = headMaps({
    label: "what each word attends to",
    output: "weights",
    read: (_inputs, outputs) => ({ L: outputs.weights.shape[0] / H, H, outputs }),
    chosen: () => head,
    choose: (i) => {
      head = i;
      widget.repaint();
    },
    draw(picture, { outputs }, i) {
      const R = outputs.read.data.length;
      paint(picture.canvas, weightsOf(outputs, i), R, { ink: "weight", root: true });
      const itself = times(R, (t) => times(R, (place) => Number(place === t)));
      picture.outline(itself, R, R);
    },
  });
  return {
    element: h(
      "div.column",
      maps.element,
      h("details.folded", h("summary", "One head in numbers"), map.element),
    ),
    shows: "outputs",
    update(inputs, outputs) {
      maps.update(inputs, outputs);
      const across = named(widget, outputs.read);
      const R = across.length;
      const weights = weightsOf(outputs, head);
      const rows = across.map((word, t) => ({
        word,
        shares: weights.subarray(t * R, (t + 1) * R),
      }));
      map.fill({ title: `block ${Math.floor(head / H)}, head ${head % H}`, across, rows });
    },
  };
}
attention.style = `${headMaps.style}${wordMap.style}${folded.style}
.small .pixel-map { --gold: color-mix(in oklab, transparent, var(--text) 35%); }
@container widget (min-width: 53.75rem) { .heads .layers { --map: 6.5rem; } }
`;

/** The reader's verdict on each of the four lines; once it is right, why. */
function verdicts(widget) {
  const { lines, states } = widget.spec.facts;
  const isWrong = (gpt, i) => Boolean((states[gpt] >> i) & 1);
  let gpt; // of which the verdicts are
  let [checks, found] = [0, false];
  const rows = lines.map(({ name, right, wrong, experiment, why }) => {
    const box = h("input", { type: "checkbox", change: () => show() });
    const code = h("code");
    const note = h("p.note");
    const label = h("label.toggle", box, h("b", name), code);
    return { box, code, note, right, wrong, experiment, why, element: h("li", label, note) };
  });
  const outcome = h("p.note", { role: "status" });
  const check = h("button", { click: () => judge() }, "Check");
  const give = h("button", { click: () => judge(true) }, "Show what is wrong");
  const after = () => (gpt % (states.length - 1)) + 1;
  const next = action(widget, "gpt", "", (to) => {
    take(after())(to);
    widget.el.scrollIntoView({ block: "start" });
  });
  const judge = (given = false) => {
    checks += 1;
    if (given) rows.forEach(({ box }, i) => (box.checked = isWrong(gpt, i)));
    const right = rows.filter(({ box }, i) => box.checked === isWrong(gpt, i)).length;
    found = right === lines.length;
    const count = rows.filter(({ box }) => box.checked).length;
    if (found && !given) {
      (widget.solved ??= new Set()).add(gpt);
      widget.repaint("inputs");
    }
    setText(
      outcome,
      found
        ? `${given ? "" : "Right. "}GPT ${gpt} has ${COUNTS[count]}.`
        : `${right} of your 4 answers ${right === 1 ? "is" : "are"} right. ` +
            "Below each line stands an experiment that tells.",
    );
    show();
  };
  const show = () => {
    rows.forEach(({ box, code, note, right, wrong, experiment, why, element }) => {
      setText(code, found && box.checked ? wrong : right);
      element.classList.toggle("faulty", found && box.checked);
      setText(note, found ? (box.checked ? why : "") : checks ? experiment : "");
      box.disabled = found;
    });
    check.hidden = found;
    give.hidden = found || checks < 2;
    next.hidden = !found;
    setText(next, `Take GPT ${after()}`);
  };
  const clear = (marks = []) => {
    [checks, found] = [0, false];
    rows.forEach(({ box }, i) => (box.checked = Boolean(marks[i])));
    setText(outcome, "");
    show();
  };
  const element = h(
    "fieldset.verdicts",
    h("legend", "Four lines as they should be. Which are different in this GPT?"),
    h("div.bar", check, give, next, outcome), // above, so that answers do not move it
    h("ul", ...rows.map((row) => row.element)),
  );
  return {
    element,
    shows: "inputs",
    saved: () => ({ verdicts: rows.map(({ box }) => box.checked) }),
    restore: ({ verdicts: marks }) => clear([marks].flat()),
    reset: () => clear(),
    update(inputs) {
      const other = gpt !== undefined && inputs.gpt !== gpt;
      gpt = inputs.gpt;
      if (other) clear();
      else show();
      element.disabled = gpt === 0;
    },
  };
}
verdicts.style = `
.verdicts { border: 1px solid var(--line); border-radius: 8px; padding: 8px 14px 12px; margin: 0;
  min-width: 0; }
.verdicts legend { font-weight: 600; font-size: var(--size-note); padding: 0 6px; }
.verdicts ul { list-style: none; margin: 8px 0 0; padding: 0; display: grid; gap: 2px 20px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
.verdicts .toggle { flex-wrap: wrap; }
.verdicts code { font-family: var(--mono); font-size: var(--size-small); overflow-wrap: anywhere; }
.verdicts li > .note { margin: 0 0 4px 1.6rem; }
.verdicts .note:empty { display: none; }
.verdicts .faulty code { background: color-mix(in oklab, var(--ground), var(--error) 14%); }
`;

function bar(widget) {
  return trainingBar(widget, { chunkMs: 600 });
}
bar.style = trainingBar.style;

export default live(
  "A GPT with up to four mistakes",
  (ui) => [
    ui.boxed("setup", ui.use(suspects), ui.use(learned), ui.use(settings, ui.use(seeds))),
    ui.use(bar),
    ui.sides(
      ui.column(ui.use(curve), ui.use(attention)),
      ui.column(
        ui.boxed(
          "column given-text",
          ui.use(sentence, "text", "It reads", undefined, { ids: false }),
        ),
        ui.boxed(
          "column given-text again",
          ui.use(sentence, "other", "Changed", undefined, { ids: false }),
          ui.use(changes),
        ),
        ui.use(predictions),
        ui.use(continuation),
      ),
    ),
    ui.use(verdicts),
  ],
  { wide: true },
);
