// Parts for widgets that show a text that a GPT reads or writes: tinted tokens, and heads to
// choose from.

import { topK } from "../page/search.js";
import { offers } from "./controls.js";
import { h, setAttribute, setText } from "./dom.js";
import { shaded } from "./look.js";
import { format, formatExact, within } from "./numbers.js";
import { fillList, visible } from "./sentences.js";

export const called = (token) => (visible(token) === token ? `“${token}”` : visible(token));

/** What the knobs of sampling do as they stand. */
export const heats = (temperature) =>
  temperature === 0
    ? "0: only the likeliest is left"
    : temperature < 1
      ? "below 1: likely ones gain"
      : temperature === 1
        ? "1: as the model says"
        : "above 1: unlikely ones gain";
export const tops = (k, V) =>
  k >= V ? `all ${V} may stay` : k === 1 ? "only the likeliest" : `the ${k} likeliest, and ties`;
export const nuclei = (p) =>
  p === 1
    ? "all may stay"
    : p === 0
      ? "only the likeliest"
      : `the fewest with ${formatExact(100 * p)} % together`;

/** Where the arrow keys lead from `at`, of places up to `last`; undefined if it is another key. */
export function byArrows(event, at, last) {
  const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -at, End: last - at };
  if (!(event.key in by)) return undefined;
  event.preventDefault();
  return within(at + by[event.key], [0, last]);
}

/**
 * Writes on by itself, edit by edit, from a click on the button `go` until it ends or the reader
 * steps in: by Pause, a key, the text, or any edit. Each `step(field)` makes an edit of that field;
 * it returns `false` to wait for an answer that has not come yet, or a text: why it ends.
 */
export function autoContinue(widget, go, step) {
  let job = null; // what it is doing: { field, inputs: those that it made last, seen: outputs }
  let doneWith = ""; // the inputs at the end, which the note describes
  const now = () => JSON.stringify(widget.inputs);
  const note = h("p.note.told", { role: "status" });
  const halt = h("button", { class: go.className, hidden: true, click: () => stop() }, "Pause");
  const show = () => {
    const focused = go.getRootNode().activeElement;
    [go.hidden, halt.hidden] = [Boolean(job), !job];
    if (focused === go && job) halt.focus();
    if (focused === halt && !job) go.focus();
  };
  const stop = (why = "") => {
    job = null;
    widget.stream(false);
    doneWith = now();
    setText(note, why);
    show();
  };
  const stepsIn = (event) => {
    if (!job) return;
    const quiet = ["Tab", "Shift", "Control", "Alt", "Meta"].includes(event.key) || event.repeat;
    const pressed = event.composedPath()[0] === halt && ["Enter", " "].includes(event.key);
    if (event.type === "focusin" ? event.target.matches("textarea") : !quiet && !pressed) stop();
  };
  const goOn = () => {
    if (!job) return;
    if (now() !== job.inputs) {
      stop();
      return;
    }
    const why = step(job.field);
    if (typeof why === "string") stop(why);
    else if (why !== false) job.inputs = now();
  };
  go.addEventListener("click", () => {
    for (const event of ["keydown", "focusin"]) widget.frame.addEventListener(event, stepsIn);
    job = { field: Symbol("write on"), inputs: now() };
    widget.stream(true);
    setText(note, "");
    show();
    goOn();
  });
  return {
    note,
    halt,
    stop,
    /** What goes on after an answer; true if it is a new one. */
    update() {
      if (!job && note.textContent && now() !== doneWith) setText(note, "");
      if (!job || job.seen === widget.model.get("outputs")) return false;
      job.seen = widget.model.get("outputs");
      setTimeout(goOn); // the reader sees each one, and can step in
      return true;
    },
  };
}

/** The end of a text, for a label. */
export function tail({ names, kind, first }, end, most = 14) {
  const read = names.slice(first, end);
  const shown = kind === "words" ? read.join(" ") : read.join("").replaceAll("\n", "↵");
  if (shown.length <= most) return shown;
  const cut = shown.slice(-most);
  const word = /[\s↵]\S.{3,}$/.exec(cut); // not the middle of a word, unless little is left then
  return `…${word ? cut.slice(word.index + 1) : cut}`;
}

/** Texts to begin with; `groups` names them among the facts. */
export function beginnings(widget, name, groups, also = (_next, _widget) => {}) {
  const texts = Object.entries(widget.spec.facts[groups]);
  const lists = texts.map(([title, group]) => [title, Object.keys(group)]);
  return offers(widget, name, "or begin with:", Object.fromEntries(lists), also);
}

/**
 * Tokens as a line of text, each of which can be tinted: spaces stand, a new line shows its `sign`.
 * `fill(span, t)` does so, and returns further classes for the token.
 */
export function fillText(list, view, make, fill) {
  const own = view.kind === "words" ? "t whole" : "t";
  fillList(list, view.names.slice(view.first), make, (span, name, i) => {
    setText(span, name === "\n" ? `${view.sign ?? "↵"}\n` : name);
    setAttribute(
      span,
      "class",
      `${own}${name === "\n" ? " line-end" : ""}${fill(span, i + view.first) ?? ""}`,
    );
  });
}

/**
 * Keep the end of a text in view while it grows, unless the reader has scrolled up in its box; at
 * its end it is followed again. Call what this returns with all tokens after each change:
 * it tells whether they go on from those before.
 */
export function followEnd(box) {
  let [follows, top] = [true, 0];
  let before; // the tokens when it was called last
  box.addEventListener("scroll", () => {
    if (box.scrollHeight - box.clientHeight - box.scrollTop <= 2) follows = true;
    else if (box.scrollTop < top) follows = false;
    top = box.scrollTop;
  });
  return (names) => {
    const old = before ?? names;
    before = names;
    const goesOn = names.length >= old.length && old.every((name, t) => name === names[t]);
    if (!goesOn)
      follows = true; // it is another text
    else if (follows && names.length > old.length)
      requestAnimationFrame(() => {
        if (follows) box.scrollTop = box.scrollHeight;
      });
    return goesOn;
  };
}

export const TEXT_STYLE = `
.text { white-space: pre-wrap; overflow-wrap: anywhere; font-size: var(--size-text); line-height:
  1.75rem; border: 1px solid var(--line); border-radius: 6px; padding: 5px 8px; cursor: pointer; }
@container widget (min-width: 53.75rem) { .text { max-height: 9.375rem; overflow-y: auto; } }
.t { padding: 3px 0; ${shaded("weight")} }
.t.whole { display: inline-block; line-height: 1.375rem; padding: 0 3px; margin-right: 4px;
  border-radius: 4px; }
.t.line-end { color: var(--soft); }
.t.at { outline: 2px solid var(--accent); outline-offset: -1px; border-radius: 2px; }
.t.later { color: color-mix(in oklab, var(--ground), var(--text) 55%); }
`;

const MOST_WEIGHTS = 3; // weights of a head that are written out

/** The likeliest tokens with numbers of each, for a step of a journey; `rows` are by name. */
export const likeliestTable = ({ best, vocabulary }, rows) => ({
  labels: best.map((id) => called(vocabulary[id])),
  rows: Object.entries(rows).map(([name, all]) => ({ name, numbers: best.map((id) => all[id]) })),
});

/** What a head attends to most from the token at `at`: names, how far back, and weights. */
export function attendsMostTo(names, row, at) {
  const where = (t) =>
    `${called(names[t])}${t === at ? " itself" : ` ${at - t} back`}: ${format(row[t])}`;
  const best = topK(row, MOST_WEIGHTS).filter((t) => row[t] >= 0.005);
  return `It attends most to ${best.map(where).join(", ")}.`;
}
