import { wordsOf } from "../../live/page/inputs.js";
import { nested, places } from "../../live/page/lookup.js";
import { topK } from "../../live/page/search.js";
import { resized, results, scroller } from "../../live/ui/boxes.js";
import { REPLY, arcDrawing, isBracket, lookingBack, POWER, inQuotes } from "../../live/ui/arcs.js";
import { action, offers } from "../../live/ui/controls.js";
import { h, setAttribute, setText } from "../../live/ui/dom.js";
import { explainable, explainableNumber, partsOf, rove } from "../../live/ui/explain.js";
import { journey } from "../../live/ui/journey.js";
import { weightKey } from "../../live/ui/keys.js";
import { numberBox } from "../../live/ui/knobs.js";
import { letters } from "../../live/ui/look.js";
import { format, listed, percent, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint, pixelAt, pixelMap } from "../../live/ui/pixels.js";
import { fillList, sentence } from "../../live/ui/sentences.js";

/** What torch does in a kernel, in compute() of heads.py. */
export async function program(run, { source, digits, on }, spec) {
  const answered = await run("heads-answer", { source, digits, on });
  const symbols = spec.sentences.source;
  const found = places(source.map((id) => symbols[id] ?? String(id)));
  return { ...answered, places: spec.facts.questions.map((_, q) => found.map((of) => of[q])) };
}

// ---------------------------------------------------------------- what was answered

/**
 * What the outputs say, and of which sentence: it may not be the one typed last. Each question has
 * its head and, for every word, an answer: the digit that is `predicted`, its probability as
 * `share`, and, if there is one, the `place` where the correct digit stands. Null if the sentence
 * is not known.
 */
function answers(widget, inputs, outputs) {
  const given = widget.model.get("outputs");
  if (widget.given !== given)
    [widget.given, widget.asked, widget.view] = [given, inputs, undefined];
  const words = widget.words("T", widget.asked);
  if (words.length !== outputs.weights.shape[1]) return null;
  widget.view ??= {
    words,
    ...widget.asked,
    questions: questionsOf(widget.spec.facts, widget.asked, outputs),
  };
  return widget.view;
}

function questionsOf(
  { questions, head },
  { digits, on },
  // what the tour does not show, it has not stored
  { weights, scores = weights, probabilities, logits = probabilities, whole, places: found },
) {
  const [, T, N] = probabilities.shape;
  return questions.map((name, q) => {
    const ofHead = ({ data }) => data.subarray(head[q] * T * T, (head[q] + 1) * T * T);
    const headWeights = ofHead(weights);
    const answered = Array.from({ length: T }, (_, t) => {
      const row = ({ data }) => data.subarray((q * T + t) * N, (q * T + t + 1) * N);
      const [shares, place] = [row(probabilities), found.data[q * T + t]];
      const [[predicted], [before]] = [topK(shares, 1), topK(row(whole), 1)];
      const [most] = topK(headWeights.subarray(t * T, (t + 1) * T), 1);
      return {
        predicted,
        share: shares[predicted],
        shares,
        logits: row(logits),
        place,
        most,
        asked: place >= 0,
        truth: digits[place],
        right: predicted === digits[place],
        wasRight: before === digits[place],
      };
    });
    const asked = answered.filter((one) => one.asked);
    return {
      name,
      head: head[q],
      on: on[head[q]] === 1,
      weights: headWeights,
      scores: ofHead(scores),
      answered,
      asked: asked.length,
      right: asked.filter((one) => one.right).length,
      wasRight: asked.filter((one) => one.wasRight).length,
    };
  });
}

/** Where the weight of head q comes from that word t gives to word s. */
function weightOf(widget, q, t, s) {
  const { words, questions } = widget.view;
  const T = words.length;
  return {
    kind: "softmax",
    what:
      `Weight that ${inQuotes(words[t])} (word ${t + 1}) gives to ${inQuotes(words[s])} ` +
      `(word ${s + 1}) in head ${questions[q].head}, the softmax of its scores:`,
    scores: [...questions[q].scores.subarray(t * T, (t + 1) * T)],
    column: s,
    lit: [t, s].map((column) => ({ name: "words", row: 0, column })),
  };
}

/** Where the answer to question q for word t comes from: of ten logits, one is the largest. */
function answerOf(widget, q, t) {
  const { words, questions } = widget.view;
  const { name, head, answered, weights, on } = questions[q];
  const { predicted, logits, most } = answered[t];
  const share = format(weights[t * words.length + most]);
  return {
    kind: "softmax",
    what:
      `Head ${head} gives ${inQuotes(words[most])} (word ${most + 1}) the weight ${share}` +
      `${on ? "" : ", but is switched off"}. Of the ten logits for the answer to “${name}”, ` +
      `that of the digit ${predicted} gets the probability`,
    scores: [...logits],
    column: predicted,
    called: "logit",
    unit: "%",
    lit: [t, most].map((column) => ({ name: "words", row: 0, column })),
  };
}

// ---------------------------------------------------------------- the sentence

/** Words that stay keep their digits; a new word gets a random one. */
function keepDigits(next, { inputs: { source, digits }, spec }) {
  const [was, now] = [source, next.source].map((text) => wordsOf(spec, "source", text));
  const least = Math.min(was.length, now.length);
  let [first, last] = [0, 0];
  while (first < least && was[first] === now[first]) first += 1;
  while (last < least - first && was.at(-1 - last) === now.at(-1 - last)) last += 1;
  next.digits = now.map((_, t) => {
    if (now.length - t <= last) return digits[t - now.length + was.length];
    return t < was.length - last ? digits[t] : draw();
  });
}

const draw = () => Math.floor(10 * Math.random());

const offered = (widget) =>
  offers(widget, "source", "or one of these:", widget.spec.facts.offered, keepDigits);

/** Other digits at one touch. */
const dice = (widget) => ({
  element: action(widget, "digits", "New digits", (next) => {
    next.digits = next.digits.map(draw);
  }),
  update() {},
});

/** A note where the sentence is unlike those of the training: too short, say, or unbalanced. */
function trainingLimits(widget) {
  const { apart } = widget.spec.facts.trained;
  const [shortest] = widget.spec.facts.trained.words;
  const [fewest, most] = widget.spec.facts.trained.pairs;
  const line = h("p.note.beyond", { role: "status" });
  return {
    element: line,
    shows: "inputs",
    update(inputs) {
      const words = widget.words("T", inputs);
      const brackets = places(words)
        .map(([, , , partner], t) => [t, partner])
        .filter(([t]) => isBracket(words[t]));
      const unpaired = brackets.some(([, partner]) => partner < 0);
      const gaps = brackets.map(([t, partner]) => partner - t).filter((gap) => gap > 0);
      const odd = [];
      if (words.length < shortest) odd.push(`fewer than ${shortest} words`);
      if (!unpaired && gaps.length < fewest) odd.push("no brackets");
      if (gaps.length > most) odd.push(`more than ${most} pairs of brackets`);
      if (unpaired) odd.push("a bracket that has no partner");
      else if (!nested(words)) odd.push("brackets inside others of their own kind");
      if (gaps.some((gap) => gap > apart)) odd.push(`a pair more than ${apart} places apart`);
      setText(
        line,
        odd.length
          ? `The model was not trained on sentences like this one, with ${listed(odd)}. It may ` +
              `fail.`
          : "",
      );
    },
  };
}
trainingLimits.style = `
.given { display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: end; }
.given > .column { flex: 1 1 100%; min-width: 0; }
.given > .offer { flex: 1 1 15rem; min-width: 0; }
@container widget (min-width: 53.75rem) {
  .given > .column { flex: 1 1 26.25rem; }
  .given > .offer { flex: 0 1 21.875rem; min-height: 2.375rem; }
  .given > button { min-height: 2.375rem; }
}
.beyond { flex: 1 1 100%; color: var(--soft); } .beyond:empty { display: none; }
`;

// ---------------------------------------------------------------- the stage

const ROOMY = 24; // px: what a column gets more, where there is room
/** The least width of a word's column: room for its letters and for its digit. */
const wide = (word) =>
  Math.min(
    110,
    Math.max(
      34,
      14 + [...word].reduce((sum, letter) => sum + (letter.codePointAt(0) > 0x2e7f ? 16 : 8.4), 0),
    ),
  );

/** A word, to be chosen, and its digit, to be changed. */
function chip(widget, t) {
  const choose = () => {
    if (widget.query !== t) widget.look(t);
  };
  const digit = numberBox(widget, "digits", {
    entry: t,
    called: "A digit",
    step: 1,
    class: "digit",
    focus: choose,
  });
  digit.addEventListener("keydown", ({ key }) => {
    // one digit takes the place of another
    if (/^\d$/.test(key)) digit.select();
  });
  return h(
    "th",
    { scope: "col" },
    h(
      "div.chip",
      h("label", h("input", { type: "radio", name: "chosen", change: choose }), h("span")),
      digit,
    ),
  );
}

function fillChip(th, widget, word, t, isChosen) {
  const [
    {
      children: [radio, text],
    },
    digit,
  ] = th.firstChild.children;
  setText(text, word);
  setAttribute(text, "title", word);
  radio.checked = isChosen;
  setAttribute(th, "class", isChosen ? "chosen" : "");
  setAttribute(digit, "aria-label", `digits ${t + 1}: ${word}`);
  if (t < widget.inputs.digits.length) digit.follow();
}

/** A question's row: the switch of its head, how many answers are correct, and all of them. */
function headRow(widget, question, q) {
  const head = widget.spec.facts.head[q];
  const power = h("input.switch", {
    type: "checkbox",
    "data-input": "on",
    change: () =>
      widget.edit(Symbol("switch"), (next) => {
        next.on[head] = Number(power.checked);
      }),
  });
  const [score, bar] = [h("span.score"), h("span.full")];
  const row = h(
    "tr",
    { class: `lane h${head} question-${question}` },
    h(
      "th",
      { scope: "row" },
      h(
        "div.about",
        h(
          "label",
          power,
          h("span.badge", String(head)),
          h("span.spoken-only", ` head ${head}: `),
          h("b", question),
        ),
        h("span.bar", bar),
        score,
      ),
    ),
  );
  const cell = (t) => {
    const td = h("td", h("span"), h("span.spoken-only"));
    td.rule = () => answerOf(widget, q, t);
    return td;
  };
  /** Where there is an answer, its cell explains the probability of that answer. */
  const open = (td, one) => {
    if (one.asked) explainable(widget, td, td.rule, () => td.values[one.predicted]);
    else td.explain = undefined;
    if (!one.asked) td.removeAttribute("tabindex");
  };
  const fill = ({ words, questions }, chosen) => {
    const { on, answered, asked, right, wasRight } = questions[q];
    power.checked = on;
    row.classList.toggle("off", !on);
    row.classList.toggle("lost", right < wasRight);
    setText(
      score,
      !asked
        ? "nothing to answer"
        : `${right} of ${asked}${right === wasRight ? " correct" : `, was ${wasRight}`}`,
    );
    setAttribute(bar, "style", `width: ${asked ? (100 * right) / asked : 0}%`);
    cellsOf(row, words.length, cell).forEach((td, t) => {
      const { predicted, shares, truth, ...one } = answered[t];
      const kind = !one.asked ? "none" : one.right ? "right" : "wrong";
      td.values = shares;
      open(td, { predicted, ...one });
      setText(td.firstChild, one.asked ? String(predicted) : "·");
      // a colour is not heard
      setText(td.lastChild, kind === "wrong" ? ` is wrong: it is ${truth}` : "");
      setAttribute(td, "class", t === chosen ? `chosen ${kind}` : kind);
      setAttribute(
        td,
        "title",
        `${inQuotes(words[t])}, ${question}: ` +
          {
            none: "no answer",
            right: `says ${predicted}, which is correct`,
            wrong: `says ${predicted}, but it is ${truth}`,
          }[kind],
      );
    });
  };
  return { row, fill };
}

/** The row's cells behind its first; there are always `count` of them. */
function cellsOf(row, count, make) {
  while (row.children.length > count + 1) row.lastChild.remove();
  while (row.children.length < count + 1) row.append(make(row.children.length - 1));
  return [...row.children].slice(1);
}

/** The words with their digits, the attention from the chosen one, and all the answers. */
function stage(widget) {
  const { element: arched, draw: drawArcs } = arcDrawing();
  const from = h("th", { scope: "row" });
  const over = h("td.sky", arched);
  const chips = h(
    "tr",
    h(
      "th.hint",
      { scope: "row" },
      h("span.wordy", "choose a "),
      "word",
      h("br"),
      h("span.wordy", "change a "),
      "digit",
    ),
  );
  const headRows = widget.spec.facts.questions.map((question, q) => headRow(widget, question, q));
  const columns = h("colgroup");
  const table = h(
    "table.lanes",
    columns,
    h("thead", h("tr", from, over), chips),
    h("tbody", { "data-output": "probabilities" }, ...headRows.map(({ row }) => row)),
  );
  const reach = rove(table);
  const ofWords = (part) => [...chips.children].slice(1).map((th) => th.querySelector(part));
  widget.tables.set("words", () => [ofWords(".chip")]);
  widget.tables.set("digits", () => [ofWords(".digit")]);
  widget.tables.set("arcs", () =>
    widget.spec.facts.questions.map((_, q) => [...arched.children].map((of) => of.children[q])),
  );
  widget.tables.set("answers", () => headRows.map(({ row }) => [...row.cells].slice(1)));
  const box = scroller(
    {
      class: "stage",
      tabindex: "0",
      role: "group",
      "aria-label": "the sentence, and every answer; it scrolls sideways",
    },
    table,
  );
  let middle; // of the chosen word's column
  let room = 0; // for all words' columns
  resized(() => {
    const now = box.clientWidth - over.offsetLeft;
    if (middle === undefined || now <= 0 || now === room) return;
    const first = !room;
    room = now;
    widget.repaint("outputs");
    if (first) box.scrollLeft = middle - room / 2; // on a phone this word is out of sight
  }, box);
  return {
    element: h("div", { "data-output": "" }, box),
    shows: "outputs",
    update(inputs, outputs) {
      const view = answers(widget, inputs, outputs);
      if (!view) return;
      const { words } = view;
      const [T, chosen] = [words.length, Math.min(widget.query, words.length - 1)];
      const scale = letters();
      const least = words.map((word) => scale * wide(word));
      const spare = (room - least.reduce((sum, width) => sum + width)) / T;
      const widths = least.map((width) => width + within(spare, [0, ROOMY]));
      let right = 0;
      const middles = widths.map((width) => {
        right += width;
        return right - width / 2;
      });
      fillList(columns, [0, ...widths], "col", (col, width, i) => {
        if (i) setAttribute(col, "style", `width: ${width}px`);
      });
      setAttribute(table, "style", `--words: ${right}px`);
      setAttribute(over, "colspan", String(T));
      setAttribute(arched, "width", String(right));
      setText(from, `What ${inQuotes(words[chosen])} attends to in each head`);
      drawArcs(view, chosen, middles);
      middle = middles[chosen];
      cellsOf(chips, T, (t) => chip(widget, t)).forEach((th, t) =>
        fillChip(th, widget, words[t], t, t === chosen),
      );
      for (const { fill } of headRows) fill(view, chosen);
      reach();
    },
  };
}
stage.style = `
.stage { --side: 8.625rem; scroll-padding-left: var(--side); }
.lanes { table-layout: fixed; width: calc(var(--side) + var(--words)); border-collapse: separate;
  border-spacing: 0; }
.lanes col:first-child { width: var(--side); }
.lanes tr > :first-child { position: sticky; left: 0; z-index: 2; background: var(--ground);
  text-align: left; white-space: normal; max-width: none; padding: 0 8px 0 0; overflow: hidden; }
.lanes thead tr > :first-child { font-size: var(--size-note); line-height: 1.4; vertical-align:
  middle; padding: 0 10px 0 0; }
.lanes thead tr > .hint { line-height: 1.75rem; white-space: nowrap; vertical-align: top;
  padding-top: 1px; }
.sky { padding: 0; }
.sky svg { display: block; overflow: visible; }
${arcDrawing.style}
.chip { border: 1px solid var(--line); border-radius: 8px; margin: 0 2px 6px;
  background: var(--ground); }
.chosen .chip { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.chip.lit { border-color: var(--accent); box-shadow: 0 0 0 2.5px var(--accent); }
.chip label { position: relative; display: block; cursor: pointer; }
.chip label span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  text-align: center; line-height: 1.75rem;
  font-size: var(--size-text); font-weight: 550; color: var(--text); border-radius: 7px 7px 0 0; }
.chip label:hover span { background: color-mix(in oklab, var(--ground), var(--accent) 14%); }
.chip input[type=radio] { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0;
  opacity: 0; cursor: pointer; }
.chip input[type=radio]:focus-visible + span { outline: 2px solid var(--accent);
  outline-offset: 1px; }
.chip .digit { display: block; width: 100%; padding: 0; text-align: center; border: 0; border-top:
  1px dashed var(--line); border-radius: 0 0 7px 7px; font: 650 var(--size-text) var(--mono);
  background: color-mix(in oklab, var(--ground), var(--line) 26%); }
.chip .digit:hover { border-color: var(--accent); }
.lane > * { border-top: 1px solid var(--line); }
.lanes .lane > th { padding: 4px 8px 4px 0; }
.lane label { display: flex; gap: 7px; align-items: center; cursor: pointer; min-height: 1.625rem;
  color: var(--text); font-size: var(--size-note); }
${POWER}
span.badge { display: inline-block; width: 1.1875rem; height: 1.1875rem; line-height: 1rem;
  border: 1.5px solid var(--tone); border-radius: 50%;
  background: color-mix(in oklab, var(--ground), var(--tone) 24%); color: var(--text);
    font-size: var(--size-small); font-weight: 650; text-align: center; flex: none; }
.off span.badge { border: 1.5px dashed var(--soft); background: none; }
.off b { color: var(--soft); }
.bar { display: block; height: 4px; margin: 3px 0 1px; border-radius: 2px;
  background: color-mix(in oklab, var(--ground), var(--line) 60%); overflow: hidden; }
.full { display: block; height: 100%; border-radius: 2px; background: var(--tone); }
.score { font-size: var(--size-small); color: var(--soft); text-wrap: balance; }
.lost .score { color: var(--text); font-weight: 650; }
.lane td { position: relative; text-align: center; padding: 0; }
.lane td span:first-child { display: block; margin: 0 3px; line-height: 1.875rem; border-radius:
  6px; font: 550 var(--size-text)/1.875rem var(--mono); }
.lane .none span { color: var(--soft); }
.lane .right span { background: color-mix(in oklab, var(--ground), var(--tone) 22%); }
.lane .wrong span { text-decoration: line-through 1.5px; background: color-mix(in oklab,
  var(--ground), var(--error) 22%); box-shadow: inset 0 0 0 1.5px var(--error); }
.lane td.chosen { background: color-mix(in oklab, transparent, var(--accent) 12%); }
@media (prefers-reduced-motion: no-preference) {
  .full { transition: width .25s; }
}
@container widget (min-width: 53.75rem) {
  .frame { gap: 10px; }
  .stage { --side: 15.75rem; }
  .about { display: flex; justify-content: space-between; align-items: center; gap: 8px; }
  .about .bar { display: none; } /* the score says the same */
  .score { white-space: nowrap; }
}
@media (max-width: 37.5rem) {
  .stage { --side: 6.125rem; }
  .wordy, .followed .lane :is(.score, .bar) { display: none; }
  .lanes thead tr > :first-child { font-size: var(--size-small); padding-right: 4px; }
  .score { display: block; min-height: 2.8em; font-size: var(--size-small); line-height: 1.4; }
  .lane label { flex-wrap: wrap; gap: 3px 6px; font-size: var(--size-note); }
  .lane b { flex-basis: 100%; line-height: 1.2; }
}
`;

/** What the switches do to this sentence, in words. */
function effect(widget) {
  const line = h("p.note.effect", { "data-output": "", role: "status" });
  return {
    element: line,
    shows: "outputs",
    update(inputs, outputs) {
      const view = answers(widget, inputs, outputs);
      if (view) setText(line, effectOf(view.questions));
    },
  };
}

function effectOf(questions) {
  const off = questions
    .filter(({ on }) => !on)
    .map(({ head }) => head)
    .sort();
  const sum = (key) => questions.reduce((total, question) => total + question[key], 0);
  const [asked, right] = [sum("asked"), sum("right")];
  const rate = !asked
    ? "This sentence leaves nothing to answer."
    : right === asked
      ? `All ${asked} answers are correct.`
      : `${right} of ${asked} answers ${right === 1 ? "is" : "are"} correct.`;
  if (!off.length) return `All four heads are on. ${rate}${asked ? " Switch one off." : ""}`;
  if (off.length === questions.length) {
    return (
      `No head is heard: every word gets the same four answers, and the model guesses. ` + `${rate}`
    );
  }
  const changed = questions
    .filter((question) => question.right !== question.wasRight)
    .map(({ name, right: now, wasRight }) => `“${name}” goes from ${wasRight} correct to ${now}`);
  const rest = !changed.length
    ? "no answer is lost"
    : changed.length < questions.length
      ? "; nothing else changes"
      : "";
  return (
    `Without ${off.length > 1 ? "heads" : "head"} ${listed(off.map(String))}, ` +
    `${listed(changed)}${rest}.`
  );
}
effect.style = `
.effect { flex: 1 1 18.75rem; font-weight: 550; max-width: none; }
.follow { display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: center; }
.follow .journey:not(.under-way) { border: 0; padding: 0; }
.sky [data-yet] .arc:not([data-yet], [visibility=hidden]) { visibility: visible; }
.followed :is(.arc:not([data-now]), tbody:not([data-dim]) > .lane:not(:has([data-now], .lit))) {
  opacity: .3; }
`;

// ---------------------------------------------------------------- the chosen word, head by head

const NONE = {
  before: () => "nothing stands before it",
  after: () => "nothing stands after it",
  same: () => "it has not stood before",
  partner: (word) => (isBracket(word) ? "this bracket has no partner" : "it is no bracket"),
};
const HOLDS = {
  before: (word, digit) => `${word} before it wears ${digit}`,
  after: (word, digit) => `${word} after it wears ${digit}`,
  same: (word, digit) => `${word} last wore ${digit}`,
  partner: (word, digit) => `its partner ${word} wears ${digit}`,
};

/** The map of all weights of a head; the pixel that the reader points at is explained. */
function weightMap(widget, q) {
  let at; // the row and the column of that pixel
  const T = () => widget.view.words.length;
  const point = (row, column) => {
    at = [row, column];
    map.markPixel(row, column);
    map.element.dataset.value = String(widget.view.questions[q].weights[row * T() + column]);
  };
  const over = (event) => point(...pixelAt(map.canvas, event));
  const map = pixelMap({
    role: "group",
    tabindex: "0",
    pointerover: over,
    pointerdown: over,
    pointermove: (event) => {
      const [row, column] = pixelAt(map.canvas, event);
      if (row === at[0] && column === at[1]) return;
      point(row, column);
      if (event.pointerType === "mouse") widget.ask(map.element);
    },
    click: () => widget.look(at[0]),
    keydown: (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      if (event.key === "Enter") widget.look(at[0]);
      if (!(event.key in by)) return;
      event.preventDefault();
      point(...by[event.key].map((step, axis) => within(at[axis] + step, [0, T() - 1])));
      widget.ask(map.element);
    },
  });
  explainable(widget, map.element, () => weightOf(widget, q, ...at));
  return {
    ...map,
    /** After an edit, or another word was chosen: what is pointed at stays, or is the largest. */
    follow(t, most) {
      const kept = map.element.classList.contains("asked") && at.every((place) => place < T());
      point(...(kept ? at : [t, most]));
    },
  };
}

/** One head: what the chosen word attends to, what is answered, and its whole map. */
function card(widget, question, q) {
  const head = widget.spec.facts.head[q];
  const { element: map, canvas, follow, ...marks } = weightMap(widget, q);
  const [target, heard, digit, verdict, holds] = ["span", "span", "b", "b", "p"].map((tag) =>
    h(tag),
  );
  let at = [0, 0]; // the row and the column of the weight that is shown
  const weight = explainableNumber(widget, () => weightOf(widget, q, ...at));
  const name = h("p.who", h("span.badge", String(head)), h("span", h("b", question), heard));
  const element = h(
    "div",
    { class: `card h${head} question-${question}` },
    name,
    map,
    h("div.told", h("p", target, weight), h("div.says", digit, verdict), holds),
  );
  const fill = ({ words, questions }, t) => {
    const { on, weights: shares, answered } = questions[q];
    const { predicted, share, place, most, asked, right, truth } = answered[t];
    const T = words.length;
    element.classList.toggle("off", !on);
    at = [t, most];
    setText(target, `attends most to ${inQuotes(words[most])}, `);
    setText(weight, format(shares[t * T + most]));
    setAttribute(weight, "data-value", String(shares[t * T + most]));
    setText(heard, on ? "" : ", unheard");
    setText(digit, asked ? String(predicted) : "–");
    setText(verdict, asked ? `${right ? "✓" : "✗"} ${percent(share)}` : "no answer");
    setAttribute(digit, "class", `said${!asked ? " none" : right ? "" : " wrong"}`);
    setText(
      holds,
      asked ? HOLDS[question](inQuotes(words[place]), truth) : NONE[question](words[t]),
    );
    if (canvas.values !== shares) paint(canvas, shares, T, { ink: "weight" });
    setAttribute(canvas, "aria-label", `the weights of head ${head}, ${T} × ${T}`);
    setAttribute(map, "aria-label", `weights of head ${head}; the arrow keys go through them`);
    const places = answered.map((one) => words.map((_, s) => one.asked && one.place === s));
    marks.outline(places, T, T);
    marks.markRow(t, T, T);
    follow(t, most);
  };
  return { element, fill };
}

const LEGEND =
  "Rows are the words that attend, columns what they attend to; outlined is the place of the " +
  "answer. A click on a row chooses its word.";

/** What each head does on sentences that it was not trained on: to be unfolded. */
function onHeldOut({ questions, head, looks: hits, accuracy, without }) {
  const line = (question, q) =>
    h(
      "p",
      `Head ${head[q]}, ${question}: its largest weight falls on the place of the answer in ` +
        `${percent(hits[q])} of the cases. Of the answers ${percent(accuracy[q])} are correct ` +
        `with it, and ${percent(without[q])} without it.`,
    );
  return h(
    "details.known.figures",
    h("summary", "The four heads on sentences that they were not trained on"),
    ...questions.map(line),
  );
}

/** The heads side by side. */
function cards(widget) {
  const heading = h("p.label");
  const heads = widget.spec.facts.questions.map((question, q) => card(widget, question, q));
  widget.tables.set("cards", () => heads.map(({ element }) => [element]));
  return {
    element: results(
      "column",
      h("div.over", heading, onHeldOut(widget.spec.facts)),
      h("div.cards", ...heads.map(({ element }) => element)),
      h("div.legend", h("p.soft", LEGEND), weightKey("")),
    ),
    shows: "outputs",
    update(inputs, outputs) {
      const view = answers(widget, inputs, outputs);
      if (!view) return;
      const t = Math.min(widget.query, view.words.length - 1);
      setText(heading, `What each head finds for ${inQuotes(view.words[t])}, word ${t + 1}:`);
      for (const { fill } of heads) fill(view, t);
    },
  };
}

cards.style = `${pixelMap.style}
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 12.8125rem), 1fr));
  gap: 12px 14px; margin-top: 4px; }
.card { display: grid; gap: 4px 10px;
  grid-template-columns: calc(6.25rem * min(var(--grow, 1), 1.4)) minmax(0, 1fr);
  align-content: start; min-width: 0; border-top: 3px solid var(--tone); padding-top: 5px;
  font-size: var(--size-note); line-height: 1.4; }
.card .who { grid-column: 1 / -1; }
.card p { margin: 0; }
.card .who { display: flex; gap: 7px; align-items: center; font-size: var(--size-note); }
.card.off { border-top-style: dashed; border-color: var(--soft); }
.card .says { display: flex; gap: 6px; align-items: center; margin: 4px 0 2px; white-space: nowrap;
  font-size: var(--size-note); font-variant-numeric: tabular-nums; }
${REPLY}
.said.none { background: none; color: var(--soft); box-shadow: inset 0 0 0 1px var(--line); }
.card .pixel-map { --gold: var(--text); --cursor: var(--accent); align-self: start;
  width: 100%; cursor: pointer; touch-action: manipulation; }
.card rect { stroke-width: 2; }
.off .pixel-map canvas { filter: grayscale(1) opacity(.5); }
.over { display: flex; flex-wrap: wrap; gap: 2px 24px; justify-content: space-between; }
.legend { display: flex; flex-wrap: wrap; gap: 0 24px; margin-top: 4px; }
.legend p { margin: 0; font-size: var(--size-small); }
.figures { min-width: 0; max-width: 100%; }
.figures p { max-width: 62ch; }
`;

// ---------------------------------------------------------------- one word, step by step

/** What the steps describe: the chosen word, and the view of its sentence. */
function followed(widget) {
  const { words, digits, questions } = widget.view;
  const t = Math.min(widget.query, words.length - 1);
  const { code, width } = widget.spec.facts;
  const heads = [...questions].sort((a, b) => a.head - b.head);
  return { widget, words, digits, questions, heads, t, word: inQuotes(words[t]), code, width };
}

const wordCell = (t) => ({ name: "words", row: 0, column: t });
/** Whether its head finds the answer for the chosen word. */
const finds = ({ on, answered }, t) =>
  on && answered[t].asked && answered[t].most === answered[t].place;
const ofWord = ({ questions, t }, which = (_question) => true) =>
  [...questions.keys()]
    .filter((q) => which(questions[q]))
    .map((row) => ({ name: "answers", row, column: t }));

/** What the h-th head does for the chosen word. */
const headStep =
  (h) =>
  ({ words, digits, questions, heads, t, word, code }) => {
    const question = heads[h];
    const { most, asked, place, predicted } = question.answered[t];
    const T = words.length;
    const weights = [...question.weights.subarray(t * T, (t + 1) * T)];
    const row = questions.indexOf(question);
    const answer = { name: "answers", row, column: t };
    const found = finds(question, t);
    const compares =
      `Head ${question.head} compares its slice of the query of ${word} with the keys of all ` +
      `words, and gives ${inQuotes(words[most])} (word ${most + 1}) its largest weight, ` +
      `${format(weights[most])}. `;
    const then = !question.on
      ? "But it is switched off: its output is replaced by zeros, so that nothing of it is heard."
      : !asked
        ? `There is no answer to “${question.name}”, but a row of weights has to sum to 1 all ` +
          "the same."
        : found
          ? `This is the word that “${question.name}” asks about, and its value brings the digit ` +
            `${digits[most]} along.`
          : `“${question.name}” asks about ${inQuotes(words[place])} (word ${place + 1}), so the ` +
            `answer ${predicted} is made of something else.`;
    return {
      message: compares + then,
      lit: [wordCell(t), wordCell(most), ...(found ? [answer] : [])],
      moves: found ? [{ from: { name: "digits", row: 0, column: most }, to: answer }] : [],
      fills: [{ name: "arcs", row }, { name: "cards", row }, ...(found ? [answer] : [])],
      code: question.on ? code.attend : code.off,
      table: { labels: words, rows: [{ name: `head ${question.head}`, numbers: weights }] },
    };
  };

const STEPS = [
  ({ t, word, digits }) => ({
    message:
      `We follow ${word}, word ${t + 1}. Its vector holds what the word is, its digit ` +
      `${digits[t]} and its place, and nothing of the other words yet.`,
    lit: [wordCell(t)],
    code: undefined,
  }),
  ({ t, word, code, width, heads: all }) => ({
    message:
      `W_q, W_k and W_v make a query, a key and a value of the vector of ${word}, each with ` +
      `${all.length} · ${width} = ${all.length * width} numbers, as of those of all other words.`,
    lit: [wordCell(t)],
    code: code.project,
  }),
  ({ t, code, width, heads: all }) => ({
    message:
      `Queries, keys and values are split: head 0 gets the first ${width} numbers of each, ` +
      `head 1 the next ${width}, and so on, up to head ${all.length - 1}.`,
    lit: [wordCell(t)],
    code: code.split,
  }),
  ...[0, 1, 2, 3].map(headStep),
  (seen) => {
    const { code, width, heads: all } = seen;
    return {
      message:
        `The outputs of the ${all.length} heads, ${width} numbers each, are merged, that is put ` +
        "side by side, so that what one head found is not mixed with what another one found.",
      lit: [wordCell(seen.t), ...ofWord(seen, (question) => finds(question, seen.t))],
      fills: [{ name: "arcs" }, partsOf(seen.widget, ".sky svg")], // it is described as a whole
      code: code.merge,
    };
  },
  (seen) => {
    const { word, questions, t, code } = seen;
    const asked = questions.filter(({ answered }) => answered[t].asked);
    const right = asked.filter(({ answered }) => answered[t].right);
    return {
      message:
        `W_o mixes them into the output of ${word}, from which a last layer reads off the ` +
        `answers: ${right.length} of ${asked.length} are correct. All words do this at once.`,
      lit: [wordCell(t), ...ofWord(seen)],
      fills: ["arcs", "answers", "cards"].map((name) => ({ name })),
      code: code.mix,
    };
  },
];

const name = ({ view, query }) =>
  view ? inQuotes(view.words[Math.min(query, view.words.length - 1)]) : "a word";

export default live(
  "Four heads on your sentence, live",
  (ui) => [
    ui.boxed(
      "given",
      ui.use(sentence, "source", "Your sentence", keepDigits),
      ui.use(offered),
      ui.use(dice),
      ui.use(trainingLimits),
    ),
    ui.use(stage),
    ui.boxed("follow", ui.use(effect), ui.use(journey, { name, steps: STEPS, follow: followed })),
    ui.use(cards),
    ui.explanation(),
  ],
  {
    query: 10,
    wide: true,
    main: "[data-output]:not(.column, .explained)",
    answer: ".effect",
    tour: (ui) => [ui.use(lookingBack, answers)],
  },
);
