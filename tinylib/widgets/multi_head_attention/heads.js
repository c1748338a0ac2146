import { wordsOf } from "../page/inputs.js";
import { nested, places } from "../page/lookup.js";
import { action, offers } from "../ui/controls.js";
import { numberBox } from "../ui/knobs.js";
import {
  h,
  listed,
  live,
  mark,
  percent,
  results,
  scroller,
  short,
  svgPart,
  write,
} from "../ui/parts.js";
import { paint, pixelAt, pixelMap } from "../ui/pixels.js";
import { topK } from "../page/search.js";
import { fillList, sentence } from "../ui/sentences.js";

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
 * its head and, for every word, an answer: `said`, its `share` of certainty, and, if there is one,
 * the `place` where the right digit stands. Null if the sentence is not known.
 */
function answers(widget, inputs, outputs) {
  const given = widget.model.get("outputs");
  if (widget.given !== given)
    [widget.given, widget.asked, widget.told] = [given, inputs, undefined];
  const words = widget.words("T", widget.asked);
  if (words.length !== outputs.weights.shape[1]) return null;
  widget.told ??= {
    words,
    ...widget.asked,
    questions: questionsOf(widget.spec.facts, widget.asked, outputs),
  };
  return widget.told;
}

function questionsOf(
  { questions, head },
  { digits, on },
  { weights, probabilities, whole, places: found },
) {
  const {
    shape: [, T, N],
  } = probabilities;
  return questions.map((name, q) => {
    const looks = weights.data.subarray(head[q] * T * T, (head[q] + 1) * T * T);
    const answered = Array.from({ length: T }, (_, t) => {
      const row = ({ data }) => data.subarray((q * T + t) * N, (q * T + t + 1) * N);
      const [shares, place] = [row(probabilities), found.data[q * T + t]];
      const [[said], [before]] = [topK(shares, 1), topK(row(whole), 1)];
      const [most] = topK(looks.subarray(t * T, (t + 1) * T), 1);
      return {
        said,
        share: shares[said],
        shares,
        place,
        most,
        asked: place >= 0,
        truth: digits[place],
        right: said === digits[place],
        wasRight: before === digits[place],
      };
    });
    const asked = answered.filter((one) => one.asked);
    return {
      name,
      head: head[q],
      on: on[head[q]] === 1,
      looks,
      answered,
      asked: asked.length,
      right: asked.filter((one) => one.right).length,
      wasRight: asked.filter((one) => one.wasRight).length,
    };
  });
}

const isBracket = (word) => "()[]".includes(word);
const quote = (word) => `“${word}”`;

// ---------------------------------------------------------------- the sentence

/** Words that stay keep the digits that they wear; a new word draws one. */
function wear(next, { inputs: { source, digits }, spec }) {
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
  offers(widget, "source", "or one of these:", widget.spec.facts.offered, wear);

/** Other digits at one touch. */
const dice = (widget) => ({
  element: action(widget, "digits", "New digits", (next) => {
    next.digits = next.digits.map(draw);
  }),
  update() {},
});

/** What in the sentence the model has never seen the like of, if anything is. */
function beyond(widget) {
  const {
    words: [shortest],
    pairs: [fewest, most],
    apart,
  } = widget.spec.facts.trained;
  const line = h("p", { class: "note beyond", role: "status" });
  return {
    element: line,
    shows: "inputs",
    update(inputs) {
      const words = widget.words("T", inputs);
      const brackets = places(words)
        .map(([, , , partner], t) => [t, partner])
        .filter(([t]) => isBracket(words[t]));
      const alone = brackets.some(([, partner]) => partner < 0);
      const gaps = brackets.map(([t, partner]) => partner - t).filter((gap) => gap > 0);
      const odd = [];
      if (words.length < shortest) odd.push(`fewer than ${shortest} words`);
      if (!alone && gaps.length < fewest) odd.push("no brackets");
      if (gaps.length > most) odd.push(`more than ${most} pairs of brackets`);
      if (alone) odd.push("a bracket that has no partner");
      else if (!nested(words)) odd.push("brackets inside others of their own kind");
      if (gaps.some((gap) => gap > apart)) odd.push(`a pair more than ${apart} places apart`);
      write(
        line,
        odd.length
          ? `The model was not trained on sentences like this one, with ${listed(odd)}. It may ` +
              `fail.`
          : "",
      );
    },
  };
}
beyond.style = ".beyond { color: var(--soft); } .beyond:empty { display: none; }";

// ---------------------------------------------------------------- the stage

const [TALL, RADIUS, LEAST, LABELLED] = [84, 8.5, 0.04, 0.25];
/** The width of a word's column: room for its letters and for its digit. */
const wide = (word) =>
  Math.min(
    110,
    Math.max(
      34,
      14 + [...word].reduce((sum, letter) => sum + (letter.codePointAt(0) > 0x2e7f ? 16 : 8.4), 0),
    ),
  );

/** From the chosen word to where each head looks: the middle of every column is known. */
function arcs(told, from, middles) {
  const tops = new Map(); // how many heads look most at a word
  return told.questions.map(({ head, on, looks, answered }, q) => {
    const T = middles.length;
    const { most, asked } = answered[from];
    const rank = tops.get(most) ?? 0;
    tops.set(most, rank + 1);
    const shift = 5 * (q - 1.5);
    const drawn = [];
    let label; // where its number stands
    for (let s = 0; s < T; s += 1) {
      const share = looks[from * T + s];
      if (share < LEAST) continue;
      const [x, to] = [middles[from] + shift, middles[s] + shift];
      const reach = Math.abs(to - x);
      const rise =
        (s === from ? 20 : 16 + 36 * (1 - Math.exp(-reach / 150))) +
        2 * RADIUS * (s === most ? rank : 0);
      const [foot, top] = [TALL - 5, TALL - 5 - 1.3333 * rise];
      const [left, right] = s === from ? [x - 26, x + 26] : [x, to];
      drawn.push({
        to,
        foot,
        share,
        d:
          `M${x},${foot} C${left.toFixed(1)},${top.toFixed(1)} ` +
          `${right.toFixed(1)},${top.toFixed(1)} ${to},${foot}`,
      });
      if (s === most && share >= LABELLED) label = [(x + to) / 2, foot - rise];
    }
    return { head, drawn, label, kind: `arc h${head}${on ? "" : " off"}${asked ? "" : " idle"}` };
  });
}

/**
 * The arcs above the words, each with a point where it lands and, if it is strong, its head's
 * number.
 */
function sky() {
  const [bows, badges] = [svgPart("g"), svgPart("g")];
  const element = svgPart("svg", { height: String(TALL), role: "img" }, bows, badges);
  const bow = () => svgPart("g");
  const path = () => svgPart("g", {}, svgPart("path"), svgPart("circle", { r: "3" }));
  const badge = () =>
    svgPart("g", {}, svgPart("circle", { r: String(RADIUS) }), svgPart("text", { dy: "0.35em" }));
  const draw = (told, chosen, middles) => {
    const every = arcs(told, chosen, middles);
    fillList(bows, every, bow, (g, { drawn, kind }) => {
      mark(g, "class", `paths ${kind}`);
      fillList(g, drawn, path, (one, { d, to, foot, share }) => {
        const [line, end] = one.children;
        mark(line, "d", d);
        mark(line, "stroke-width", (1 + 4 * share).toFixed(2));
        mark(end, "cx", String(to));
        mark(end, "cy", String(foot));
        mark(one, "opacity", (0.25 + 0.75 * share).toFixed(3));
      });
    });
    fillList(badges, every, badge, (g, { head, label, kind }) => {
      mark(g, "class", `badge ${kind}`);
      mark(g, "visibility", label ? "visible" : "hidden");
      if (label) mark(g, "transform", `translate(${label.map((n) => n.toFixed(1))})`);
      write(g.lastChild, String(head));
    });
    const where = told.questions.map(({ head, answered, looks }) => {
      const { most } = answered[chosen];
      return `head ${head} at ${told.words[most]}, ${short(looks[chosen * middles.length + most])}`;
    });
    mark(
      element,
      "aria-label",
      `From ${told.words[chosen]} the heads look most: ${where.join("; ")}`,
    );
  };
  return { element, draw };
}

/** A word, to be chosen, and the digit that it wears, to be changed. */
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
      "div",
      { class: "chip" },
      h("label", {}, h("input", { type: "radio", name: "chosen", change: choose }), h("span")),
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
  write(text, word);
  mark(text, "title", word);
  radio.checked = isChosen;
  mark(th, "class", isChosen ? "chosen" : "");
  mark(digit, "aria-label", `digits ${t + 1}: ${word}`);
  if (t < widget.inputs.digits.length) digit.follow();
}

/** A question's row: the switch of its head, how many answers are right, and all of them. */
function lane(widget, question, q) {
  const head = widget.spec.facts.head[q];
  const power = h("input", {
    type: "checkbox",
    class: "switch",
    "data-input": "on",
    change: () =>
      widget.edit(Symbol("switch"), (next) => {
        next.on[head] = Number(power.checked);
      }),
  });
  const [score, bar] = [h("span", { class: "score" }), h("span", { class: "full" })];
  const row = h(
    "tr",
    { class: `lane h${head}` },
    h(
      "th",
      { scope: "row" },
      h(
        "label",
        {},
        power,
        h("span", { class: "badge" }, String(head)),
        h("span", { class: "sr" }, ` head ${head}: `),
        h("b", {}, question),
      ),
      h("span", { class: "bar" }, bar),
      score,
    ),
  );
  const fill = ({ words, questions }, chosen) => {
    const { on, answered, asked, right, wasRight } = questions[q];
    power.checked = on;
    row.classList.toggle("off", !on);
    row.classList.toggle("lost", right < wasRight);
    write(
      score,
      !asked
        ? "nothing to answer"
        : `${right} of ${asked}${right === wasRight ? " right" : `, was ${wasRight}`}`,
    );
    mark(bar, "style", `width: ${asked ? (100 * right) / asked : 0}%`);
    cellsOf(row, words.length, () => h("td", {}, h("span"), h("span", { class: "sr" }))).forEach(
      (td, t) => {
        const { said, shares, truth, ...one } = answered[t];
        const kind = !one.asked ? "none" : one.right ? "right" : "wrong";
        td.values = shares;
        write(td.firstChild, one.asked ? String(said) : "·");
        // a colour is not heard
        write(td.lastChild, kind === "wrong" ? ` is wrong: it is ${truth}` : "");
        mark(td, "class", t === chosen ? `chosen ${kind}` : kind);
        mark(
          td,
          "title",
          `${quote(words[t])}, ${question}: ` +
            {
              none: "no answer",
              right: `says ${said}, right`,
              wrong: `says ${said}, but it is ${truth}`,
            }[kind],
        );
      },
    );
  };
  return { row, fill };
}

/** The row's cells behind its first; there are always `count` of them. */
function cellsOf(row, count, make) {
  while (row.children.length > count + 1) row.lastChild.remove();
  while (row.children.length < count + 1) row.append(make(row.children.length - 1));
  return [...row.children].slice(1);
}

/** The words with their digits, what looks where from the chosen one, and all the answers. */
function stage(widget) {
  const { element: arched, draw: drawSky } = sky();
  const from = h("th", { scope: "row" });
  const over = h("td", { class: "sky" }, arched);
  const chips = h(
    "tr",
    {},
    h(
      "th",
      { scope: "row", class: "hint" },
      h("span", { class: "wordy" }, "choose a "),
      "word",
      h("br"),
      h("span", { class: "wordy" }, "change a "),
      "digit",
    ),
  );
  const lanes = widget.spec.facts.questions.map((question, q) => lane(widget, question, q));
  const columns = h("colgroup");
  const table = h(
    "table",
    { class: "lanes" },
    columns,
    h("thead", {}, h("tr", {}, from, over), chips),
    h("tbody", { "data-output": "probabilities" }, ...lanes.map(({ row }) => row)),
  );
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
  const laidOut = new ResizeObserver(() => {
    // on a phone the word that is chosen first is out of sight
    if (!box.clientWidth || middle === undefined) return;
    laidOut.disconnect();
    box.scrollLeft = middle - (box.clientWidth - over.offsetLeft) / 2;
  });
  laidOut.observe(box);
  return {
    element: h("div", { "data-output": "" }, box),
    shows: "outputs",
    update(inputs, outputs) {
      const told = answers(widget, inputs, outputs);
      if (!told) return;
      const { words } = told;
      const [T, chosen] = [words.length, Math.min(widget.query, words.length - 1)];
      const widths = words.map(wide);
      let right = 0;
      const middles = widths.map((width) => {
        right += width;
        return right - width / 2;
      });
      fillList(
        columns,
        [0, ...widths],
        () => h("col"),
        (col, width, i) => {
          if (i) mark(col, "style", `width: ${width}px`);
        },
      );
      mark(table, "style", `--words: ${right}px`);
      mark(over, "colspan", String(T));
      mark(arched, "width", String(right));
      write(from, `Where the heads look from ${quote(words[chosen])}`);
      drawSky(told, chosen, middles);
      middle = middles[chosen];
      cellsOf(chips, T, (t) => chip(widget, t)).forEach((th, t) =>
        fillChip(th, widget, words[t], t, t === chosen),
      );
      for (const { fill } of lanes) fill(told, chosen);
    },
  };
}
stage.style = `
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
.stage { --side: 138px; scroll-padding-left: var(--side); }
.lanes { table-layout: fixed; width: calc(var(--side) + var(--words)); border-collapse: separate;
  border-spacing: 0; }
.lanes col:first-child { width: var(--side); }
.lanes tr > :first-child { position: sticky; left: 0; z-index: 2; background: var(--ground);
  text-align: left; white-space: normal; max-width: none; padding: 0 8px 0 0; overflow: hidden; }
.lanes thead tr > :first-child { font-size: var(--size-note); line-height: 1.4;
  vertical-align: middle;
  padding: 0 10px 0 0; }
.lanes thead tr > .hint { line-height: 28px; white-space: nowrap; vertical-align: top;
  padding-top: 1px; }
.sky { padding: 0; }
.sky svg { display: block; overflow: visible; }
.arc path { fill: none; stroke: var(--tone); stroke-linecap: round; }
.arc circle { fill: var(--tone); }
.arc.badge circle { fill: color-mix(in oklab, var(--ground), var(--tone) 24%); stroke: var(--tone);
  stroke-width: 1.5; }
.arc text { font-size: var(--size-small); font-weight: 650; text-anchor: middle; fill: var(--text);
  }
.arc.idle.paths { opacity: .4; }
.arc.idle.badge { opacity: .6; }
.arc.off path { stroke: var(--soft); stroke-dasharray: 3 5; }
.arc.off circle { fill: var(--soft); }
.arc.off.badge circle { fill: var(--ground); stroke: var(--soft); stroke-dasharray: 2 2; }
.chip { border: 1px solid var(--line); border-radius: 8px; margin: 0 2px 6px;
  background: var(--ground); }
.chosen .chip { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.chip label { position: relative; display: block; cursor: pointer; }
.chip label span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  text-align: center; line-height: 28px;
  font-size: var(--size-text); font-weight: 550; color: var(--text); border-radius: 7px 7px 0 0; }
.chip label:hover span { background: color-mix(in oklab, var(--ground), var(--accent) 14%); }
.chip input[type=radio] { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0;
  opacity: 0; cursor: pointer; }
.chip input[type=radio]:focus-visible + span { outline: 2px solid var(--accent);
  outline-offset: 1px; }
.chip .digit { display: block; width: 100%; padding: 0; text-align: center; border: 0;
  border-top: 1px dashed var(--line); border-radius: 0 0 7px 7px;
  font: 650 var(--size-text) var(--mono);
    background: color-mix(in oklab, var(--ground), var(--line) 26%); }
.chip .digit:hover { border-color: var(--accent); }
.lane > * { border-top: 1px solid var(--line); }
.lanes .lane > th { padding: 6px 8px 6px 0; }
.lane label { display: flex; gap: 7px; align-items: center; cursor: pointer; min-height: 26px;
  color: var(--text); font-size: var(--size-note); }
input.switch { appearance: none; position: relative; width: 38px; height: 24px; flex: none;
  border: 1px solid var(--tone); border-radius: 12px; background: var(--tone);
  cursor: pointer; }
.switch::after { content: ""; position: absolute; top: 2px; left: 2px; width: 18px; height: 18px;
  border-radius: 50%; background: var(--ground);
  transform: translateX(14px); }
.switch:not(:checked) { background: transparent; border-color: var(--soft); }
.switch:not(:checked)::after { transform: none; background: var(--soft); }
span.badge { display: inline-block; width: 19px; height: 19px; line-height: 16px;
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
.lane td span:first-child { display: block; margin: 0 3px; line-height: 30px; border-radius: 6px;
  font: 550 var(--size-text)/30px var(--mono); }
.lane .none span { color: var(--soft); }
.lane .right span { background: color-mix(in oklab, var(--ground), var(--tone) 22%); }
.lane .wrong span { text-decoration: line-through 1.5px;
  background: color-mix(in oklab, var(--ground), var(--error) 22%);
  box-shadow: inset 0 0 0 1.5px var(--error); }
.lane td.chosen { background: color-mix(in oklab, transparent, var(--accent) 12%); }
@media (prefers-reduced-motion: no-preference) {
  .full { transition: width .25s; }
  .switch::after { transition: transform .15s; }
}
@media (max-width: 600px) {
  .stage { --side: 98px; }
  .wordy { display: none; }
  .lanes thead tr > :first-child { font-size: var(--size-small); padding-right: 4px; }
  .score { display: block; min-height: 2.8em; font-size: var(--size-small); line-height: 1.4; }
  .lane label { flex-wrap: wrap; gap: 3px 6px; font-size: var(--size-note); }
  .lane b { flex-basis: 100%; line-height: 1.2; }
}
`;

/** What the switches do to this sentence, in words. */
function effect(widget) {
  const line = h("p", { class: "note effect", "data-output": "", role: "status" });
  return {
    element: line,
    shows: "outputs",
    update(inputs, outputs) {
      const told = answers(widget, inputs, outputs);
      if (told) write(line, effectOf(told.questions));
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
      ? `All ${asked} answers are right.`
      : `${right} of ${asked} answers ${right === 1 ? "is" : "are"} right.`;
  if (!off.length) return `All four heads are on. ${rate}${asked ? " Switch one off." : ""}`;
  if (off.length === questions.length) {
    return (
      `No head is heard: every word gets the same four answers, and the model guesses. ` + `${rate}`
    );
  }
  const changed = questions
    .filter((question) => question.right !== question.wasRight)
    .map(({ name, right: now, wasRight }) => `“${name}” goes from ${wasRight} right to ${now}`);
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
effect.style = ".effect { font-weight: 550; max-width: none; }";

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

/** One head: where it looks from the chosen word, what is answered, and its whole map. */
function card(widget, question, q, hover) {
  const { head: heads, looks, accuracy, without } = widget.spec.facts;
  const head = heads[q];
  const {
    element: map,
    canvas,
    ...marks
  } = pixelMap({
    click: (event) => widget.look(pixelAt(canvas, event)[0]),
    pointermove: (event) => hover(q, ...pixelAt(canvas, event)),
    pointerleave: () => hover(null),
  });
  const [where, digit, verdict, holds] = [h("p"), h("b"), h("b"), h("p")];
  const element = h(
    "div",
    { class: `card h${head}` },
    h("p", { class: "who" }, h("span", { class: "badge" }, String(head)), h("b", {}, question)),
    where,
    h("div", { class: "says" }, digit, verdict),
    holds,
    map,
    h(
      "p",
      { class: "soft" },
      `On held-out sentences it looks there ${percent(looks[q])} of the time. ` +
        `Right answers: ${percent(accuracy[q])} with it, ${percent(without[q])} without.`,
    ),
  );
  const fill = ({ words, questions }, t) => {
    const { on, looks: shares, answered } = questions[q];
    const { said, share, place, most, asked, right, truth } = answered[t];
    const T = words.length;
    element.classList.toggle("off", !on);
    write(
      where,
      `looks most at ${quote(words[most])}, ${short(shares[t * T + most])}${on ? "" : ", unheard"}`,
    );
    write(digit, asked ? String(said) : "–");
    write(verdict, asked ? `${right ? "✓" : "✗"} ${percent(share)}` : "no answer");
    mark(digit, "class", `said${!asked ? " none" : right ? "" : " wrong"}`);
    write(holds, asked ? HOLDS[question](quote(words[place]), truth) : NONE[question](words[t]));
    if (canvas.values !== shares) paint(canvas, shares, T, { ink: "weight" });
    mark(canvas, "aria-label", `the weights of head ${head}, ${T} × ${T}`);
    const places = answered.map((one) => words.map((_, s) => one.asked && one.place === s));
    marks.outline(places, T, T);
    marks.markRow(t, T, T);
  };
  return { element, fill };
}

const LEGEND =
  "In a map each row is the word that looks, each column a word looked at. " +
  "Outlined: the place of the answer. Click a row to choose its word.";

/** The heads side by side, and what their maps hold where the pointer is. */
function cards(widget) {
  const heading = h("p", { class: "label" });
  const reading = h("p", { class: "note soft" }, LEGEND);
  let told;
  const hover = (q, t, s) => {
    if (q === null) {
      write(reading, LEGEND);
      return;
    }
    const { words, questions } = told;
    const { head, looks, answered } = questions[q];
    write(
      reading,
      `Head ${head}: ${quote(words[t])} (word ${t + 1}) looks at ${quote(words[s])} (word ` +
        `${s + 1}) ` +
        `with the weight ` +
        short(looks[t * words.length + s]) +
        (answered[t].place === s ? ", the place of its answer." : "."),
    );
  };
  const heads = widget.spec.facts.questions.map((question, q) => card(widget, question, q, hover));
  return {
    element: results(
      "column",
      heading,
      h("div", { class: "cards" }, ...heads.map(({ element }) => element)),
      reading,
    ),
    shows: "outputs",
    update(inputs, outputs) {
      const now = answers(widget, inputs, outputs);
      if (!now) return;
      told = now;
      const t = Math.min(widget.query, told.words.length - 1);
      write(heading, `What each head finds for ${quote(told.words[t])}, word ${t + 1}:`);
      for (const { fill } of heads) fill(told, t);
    },
  };
}

cards.style = `${pixelMap.style}
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(138px, 1fr)); gap: 0 14px;
  margin-top: 6px; }
.card { display: grid; grid-row: span 6; grid-template-rows: subgrid; margin-bottom: 16px;
  min-width: 0; border-top: 3px solid var(--tone); padding-top: 7px; font-size: var(--size-note);
  line-height: 1.4; }
.card p { margin: 0; }
.card .who { display: flex; gap: 7px; align-items: center; font-size: var(--size-note); }
.card.off { border-top-style: dashed; border-color: var(--soft); }
.says { display: flex; gap: 9px; align-items: center; margin: 6px 0 2px;
  font-size: var(--size-note);
  font-variant-numeric: tabular-nums; }
.said { width: 34px; line-height: 34px; border-radius: 7px; text-align: center;
  font: 650 var(--size-text)/34px var(--mono);
  background: color-mix(in oklab, var(--ground), var(--tone) 22%); }
.said.wrong { text-decoration: line-through 2px;
  background: color-mix(in oklab, var(--ground), var(--error) 22%);
  box-shadow: inset 0 0 0 1.5px var(--error); }
.said.none { background: none; color: var(--soft); box-shadow: inset 0 0 0 1px var(--line); }
.card .pixel-map { --gold: var(--text); --cursor: var(--accent); max-width: 190px; margin: 8px 0;
  width: 100%; cursor: pointer; touch-action: manipulation; }
.card rect { stroke-width: 2; }
.off .pixel-map canvas { filter: grayscale(1) opacity(.5); }
.card .soft { font-size: var(--size-small); }
`;

export default live(
  "Four heads on your sentence, live",
  (ui) => [
    ui.column(
      ui.use(sentence, "source", "Your sentence", wear),
      ui.row(ui.use(offered), ui.use(dice)),
      ui.use(beyond),
    ),
    ui.use(stage),
    ui.use(effect),
    ui.use(cards),
  ],
  { query: 10, wide: true },
);
