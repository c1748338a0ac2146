// Arcs from a word to the words that attention heads attend to from it.

import { resized, scroller } from "./boxes.js";
import { h, setAttribute, setText, svgPart, notifyPage } from "./dom.js";
import { animate } from "./motion.js";
import { format, times } from "./numbers.js";
import { fillList } from "./sentences.js";

const TALL = 84; // px: the drawing's height
const RADIUS = 8.5; // px: of the circle around a head's number
const LEAST = 0.04; // a smaller weight has no arc
const LABELLED = 0.25; // a smaller weight has no number

/**
 * From the chosen word to what each head attends to, or to the `strongest` of it: the middle of
 * every column is known.
 */
function arcs(view, from, middles, strongest) {
  const tops = new Map(); // how many heads attend most to a word
  return view.questions.map(({ name, head, on, weights, answered }, q) => {
    const T = middles.length;
    const { most, asked } = answered[from];
    const rank = tops.get(most) ?? 0;
    tops.set(most, rank + 1);
    const shift = 5 * (q - (view.questions.length - 1) / 2);
    const drawn = [];
    let label; // where its number stands
    for (let s = 0; s < T; s += 1) {
      const share = weights[from * T + s];
      if (share < LEAST || (strongest && s !== most)) continue;
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
    const state = `${on ? "" : " off"}${asked ? "" : " idle"}`;
    const kind = `arc h${head} question-${name}${state}`;
    return { head, drawn, label, kind };
  });
}

/**
 * The arcs above the words, each with a point where it lands and, if it is strong, its head's
 * number. If they are not `numbered`, there is only the strongest of each head.
 * `draw(view, chosen, middles)` takes { words, questions: [{ name, head, on, weights, answered }]
 * }, the place of the chosen word, and the middle of each column in
 * pixels.
 */
export function arcDrawing(numbered = true) {
  const [bows, badges] = [svgPart("g"), svgPart("g")];
  const element = svgPart("svg", { height: String(TALL), role: "img" }, bows, badges);
  const bow = () => svgPart("g");
  const path = () => svgPart("g", {}, svgPart("path"), svgPart("circle", { r: "3" }));
  const badge = () =>
    svgPart("g", {}, svgPart("circle", { r: String(RADIUS) }), svgPart("text", { dy: "0.35em" }));
  const draw = (view, chosen, middles) => {
    const every = arcs(view, chosen, middles, !numbered);
    fillList(bows, every, bow, (g, { drawn, kind }) => {
      setAttribute(g, "class", `paths ${kind}`);
      fillList(g, drawn, path, (one, { d, to, foot, share }) => {
        const [line, end] = one.children;
        setAttribute(line, "d", d);
        setAttribute(line, "stroke-width", (1 + 4 * share).toFixed(2));
        setAttribute(end, "cx", String(to));
        setAttribute(end, "cy", String(foot));
        setAttribute(one, "opacity", (0.25 + 0.75 * share).toFixed(3));
      });
    });
    fillList(badges, numbered ? every : [], badge, (g, { head, label, kind }) => {
      setAttribute(g, "class", `badge ${kind}`);
      setAttribute(g, "visibility", label ? "visible" : "hidden");
      if (label) setAttribute(g, "transform", `translate(${label.map((n) => n.toFixed(1))})`);
      setText(g.lastChild, String(head));
    });
    const where = view.questions.map(({ head, answered, weights }) => {
      const { most } = answered[chosen];
      const share = format(weights[chosen * middles.length + most]);
      return `head ${head} to ${view.words[most]}, ${share}`;
    });
    setAttribute(
      element,
      "aria-label",
      `${view.words[chosen]} attends most, in ${where.join("; in ")}`,
    );
  };
  return { element, draw };
}
arcDrawing.style = `
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
`;

/** The switch of a head. */
export const POWER = `
input.switch { appearance: none; position: relative; width: 2.375rem; height: 1.5rem; flex: none;
  border: 1px solid var(--tone); border-radius: 12px; background: var(--tone); cursor: pointer; }
.switch::after { content: ""; position: absolute; top: 2px; left: 2px; width: 1.125rem; height:
  1.125rem; border-radius: 50%; background: var(--ground); transform: translateX(14px); }
.switch:not(:checked) { background: transparent; border-color: var(--soft); }
.switch:not(:checked)::after { transform: none; background: var(--soft); }
@media (prefers-reduced-motion: no-preference) { .switch::after { transition: transform .15s; } }
`;

/** An answer that may be wrong. */
export const REPLY = `
.said { width: 1.875rem; border-radius: 7px; text-align: center; font: 650 var(--size-text)/1.875rem
  var(--mono); background: color-mix(in oklab, var(--ground), var(--tone) 22%); }
.said.wrong { background: color-mix(in oklab, var(--ground),
  var(--error) 22%); box-shadow: inset 0 0 0 1.5px var(--error); }
`;

export const isBracket = (word) => "()[]".includes(word);
export const inQuotes = (word) => `“${word}”`;

const RELATIONS = {
  before: "the word before it",
  after: "the word after it",
  same: "the same word further back",
  partner: "its partner",
};
const SHAKE = [0, -6, 5, -4, 3, 0].map((by) => ({ transform: `translateX(${by}px)` }));

/**
 * A screen of the tour, of what `answers(widget, inputs, outputs)` reads: the words in one line,
 * and from the one that is chosen springs the arc of one head. Or one head can be switched off.
 */
export function lookingBack(widget, answers) {
  const { element: arched, draw: drawArc } = arcDrawing(false);
  setAttribute(arched, "aria-label", "no word is chosen yet");
  const line = h("div.tokens");
  const box = scroller({ class: "line", tabindex: "-1" }, arched, line);
  const power = h("input.switch", {
    type: "checkbox",
    "data-input": "on",
    change: () =>
      widget.edit(Symbol("switch"), (next) => {
        next.on[widget.spec.facts.head.at(-1)] = Number(power.checked);
      }),
  });
  const [digit, verdict, reply, correct] = times(4, (i) => h(i % 2 ? "b.verdict" : "b.said"));
  const asked = h("span");
  const asking = h(
    "div.asking",
    h("p", "What does “)” close? The machine says", digit, verdict),
    h("p", asked, reply, correct),
    h("label", power, h("span", "the head that looks back from “)”")),
  );
  const switches = widget.model.get("view") === "tour-switch";
  const message = h(switches ? "p.spoken-only" : "p.told", { role: "status" });
  let chosen; // the word that is tapped, or that the question is about
  let shown; // what springs or shakes once it is another
  const token = (t) => {
    if (switches) return h("span.token");
    const choose = () => {
      chosen = t;
      widget.repaint("outputs");
    };
    return h("button.token", { click: choose });
  };
  const draw = (view, question) => {
    const middles = [...line.children].map((one) => one.offsetLeft + one.offsetWidth / 2);
    setAttribute(arched, "width", String(line.scrollWidth));
    drawArc({ words: view.words, questions: [question] }, chosen, middles);
    setAttribute(arched, "visibility", question.on ? "visible" : "hidden");
    const now = `${chosen} ${question.answered[chosen].predicted}`;
    if (now === shown || !middles[0]) return;
    if (shown && switches) animate(digit, SHAKE, { duration: 400 });
    shown = now;
    for (const path of arched.querySelectorAll("path")) {
      const long = { strokeDasharray: `${path.getTotalLength()}` };
      const [from, to] = [long.strokeDasharray, "0"].map((by) => ({ strokeDashoffset: by }));
      if (question.on)
        animate(
          path,
          [
            { ...long, ...from },
            { ...long, ...to },
          ],
          { duration: 500 },
        );
    }
  };
  let found = false; // the partner of a bracket has been looked for
  /** It answers with the number that a word wears: each wears another one. */
  const answer = (view, { predicted, right }, said, mark) => {
    setText(said, view.words[view.digits.indexOf(predicted)] ?? `${predicted}`);
    setText(mark, right ? "✓" : "✗");
    setAttribute(said, "class", right ? "said" : "said wrong");
  };
  const describe = (view, question) => {
    const { words, digits } = view;
    const { truth, most, place } = question.answered[chosen];
    const word = inQuotes(words[chosen]);
    if (switches) {
      answer(view, question.answered[chosen], digit, verdict);
      const other = view.questions.find(({ name }) => name === "before").answered.at(-1);
      setText(asked, `Which word comes before ${inQuotes(words.at(-1))}? The machine says`);
      answer(view, other, reply, correct);
      const meant = words[digits.indexOf(truth)];
      const now = `it says ${inQuotes(digit.textContent)}, not ${inQuotes(meant)}.`;
      const lost = `Without that head ${now}`;
      setText(message, question.on ? "" : lost);
      return !question.on;
    }
    const closing = isBracket(words[chosen]) && place < chosen;
    found ||= closing;
    const next = found ? "" : " Now choose “)”.";
    setText(
      message,
      `${word} looks back most at ${inQuotes(words[most])}, ${RELATIONS[question.name]}.${next}`,
    );
    return closing;
  };
  resized(() => widget.repaint("outputs"), line);
  return {
    element: h(
      "div",
      { class: "looking", "data-output": "" },
      box,
      switches ? asking : "",
      message,
    ),
    shows: "outputs",
    update(inputs, outputs) {
      const view = answers(widget, inputs, outputs);
      if (!view) return;
      if (switches) chosen = view.words.lastIndexOf(")");
      fillList(line, view.words, token, (one, word, t) => {
        setText(one, word);
        if (!switches) setAttribute(one, "aria-pressed", String(t === chosen));
        one.classList.toggle("chosen", t === chosen);
      });
      power.checked = view.questions.at(-1).on;
      const isEarlier = ({ answered }) => answered[chosen]?.asked && answered[chosen].most < chosen;
      const question = view.questions.findLast(isEarlier);
      if (!question) {
        const first = chosen === 0 ? `${inQuotes(view.words[0])} is the first word: ` : "";
        setText(message, first && `${first}it has nothing to look back at.`);
        setAttribute(arched, "visibility", "hidden");
        return;
      }
      setAttribute(message.parentElement, "class", `looking h${question.head}`);
      draw(view, question);
      if (describe(view, question)) notifyPage(widget);
    },
  };
}
lookingBack.style = `${arcDrawing.style}${POWER}${REPLY}
.looking { display: flex; flex-direction: column; gap: 14px; align-items: center;
  text-align: center; }
.line > svg { display: block; overflow: visible; }
.tokens { position: relative; display: flex; gap: .35em; width: max-content;
  font-size: var(--size-screen); padding: 3px; }
.token { display: grid; min-height: 2.75rem; min-width: 1.3em; padding: .1em .15em;
  border-radius: 8px; font-size: inherit; font-weight: 550; place-items: center; }
.tokens > span.token { padding: 0; min-width: .8em; }
.token.chosen { box-shadow: 0 0 0 2px var(--accent); }
.asking p { margin: 0 0 10px; }
.asking label { display: inline-flex; gap: 10px; align-items: center; cursor: pointer;
  min-height: 2.75rem; }
.asking .said { display: inline-block; margin: 0 8px; padding: 0 .5em; width: auto;
  min-width: 1.875rem; color: var(--text); }
.told { margin: 0; text-wrap: balance; min-height: 3em; max-width: 34rem; }
`;
