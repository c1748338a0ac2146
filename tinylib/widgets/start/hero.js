import { uniform } from "../../live/page/chance.js";
import { chosenAt, lastOf, memoryOf, nodeAfter, nodesOf } from "../../live/page/reading.js";
import { topK } from "../../live/page/search.js";
import { resized, results } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { redraw } from "../../live/ui/controls.js";
import {
  h,
  readOnce,
  setAttribute,
  setHeat,
  setText,
  svgPart,
  notifyPage,
} from "../../live/ui/dom.js";
import { animate } from "../../live/ui/motion.js";
import { percentOf, times, whole } from "../../live/ui/numbers.js";
import { folded, live } from "../../live/ui/parts.js";
import { fillList, text, visible } from "../../live/ui/sentences.js";
import {
  autoContinue,
  beginnings,
  byArrows,
  fillText,
  followEnd,
  heats,
  tail,
  TEXT_STYLE,
} from "../../live/ui/texts.js";
import { isToured } from "../../live/ui/widget.js";

// ---------------------------------------------------------------- what is computed

const DRAWN = -1; // among the choices: a character that nobody has taken by hand
const TO_LINE_END = -2; // drawn as well, unless the text has come to the end of its second line

/** Which character the model reads first; window_start() of hero.py. */
const windowStart = (length, most) =>
  Math.ceil(Math.max(0, length - most) / (most / 2)) * (most / 2);

/** Whether a text of n characters ends before the one that was drawn; ends() of hero.py. */
const ends = ([line, word], n, before, drawn) =>
  (n >= line && drawn === "\n" && !":\n".includes(before)) || (n >= word && /\s/.test(before));

/** What torch does in a kernel, in compute() of hero.py. */
export async function program(run, values, spec, partly = (_make) => {}) {
  const { prompt, temperature, seed, choices } = values;
  const { facts, limits } = spec;
  const [V] = limits.V;
  const ALL = { k: V, p: 1 }; // nothing is cut off
  const [T, M, names] = [prompt.length, choices.length, spec.sentences.prompt];
  const [memory, numbers] = [memoryOf(spec), uniform(seed, M + 1)];
  const [ids, rows] = [[...prompt], []];
  let [first, nodes] = [0, nodesOf(memory, prompt)];
  const outputs = () => {
    const [K, W] = [rows.length, Math.min(T + rows.length - 1, facts.max_len)];
    const [probabilities, attention] = [new Float32Array(K * V), new Float32Array(K * W)];
    rows.forEach(({ shares, attentionRow }, n) => {
      probabilities.set(shares, n * V);
      attention.set(attentionRow, n * W);
    });
    return {
      given: prompt,
      tokens: ids.slice(T, T + K - 1),
      probabilities: { dims: [K, V], data: probabilities },
      attention: { dims: [K, W], data: attention },
    };
  };
  for (let n = 0; n <= M; n += 1) {
    const from = windowStart(ids.length, facts.max_len);
    if (from !== first) nodes = nodesOf(memory, ids.slice(from));
    first = from;
    const read = ids.slice(from);
    const [node, last] = [nodes.at(-1), await lastOf(run, memory, spec, nodes, read)];
    const knobs = { temperature, ...ALL };
    const { adjusted, token } = await chosenAt(run, node, last, knobs, numbers[n]);
    const head = facts.head * read.length;
    rows.push({
      shares: adjusted.data,
      attentionRow: last.attention.data.subarray(head, head + read.length),
    });
    const mayEnd = choices[n] === TO_LINE_END;
    if (n === M || (mayEnd && ends(facts.lines, n, names[ids.at(-1)], names[token]))) break;
    ids.push(choices[n] < 0 ? token : choices[n]);
    nodes.push(nodeAfter(memory, node, ids.at(-1)));
    partly(outputs);
  }
  return outputs();
}

// ---------------------------------------------------------------- what is stored of it

let store; // { temperature, seed, texts }, once it has come

/** What the first touches lead to, before there is a model; write_stored() of hero.py writes it. */
export const early = {
  async fetch() {
    store ??= await (await fetch(new URL("hero.json", import.meta.url))).json();
  },
  /** The outputs for these inputs as far as they are stored, as nested lists, or undefined. */
  answer({ sentences: { prompt: vocabulary } }, inputs) {
    const { prompt, temperature, seed, choices } = inputs;
    const own = store?.temperature === temperature && store.seed === seed && store.texts[prompt];
    if (!own) return undefined;
    const at = choices.findLastIndex((id) => id >= 0);
    if (choices.slice(0, Math.max(at, 0)).some((id) => id >= 0)) return undefined;
    const [letters, ...rest] = own[""];
    const taken = at < 0 ? "" : letters.slice(0, at) + vocabulary[choices[at]];
    if (!own[taken] || taken.length !== at + 1) return undefined;
    const asked = Math.min(choices.length - taken.length, own[taken][0].length);
    const text = taken + own[taken][0].slice(0, asked);
    const given = [...prompt].map((c) => vocabulary.indexOf(c));
    const W = given.length + text.length;
    const rowOf = (n) => {
      const [nexts, shares, looks] = n < taken.length ? rest : own[taken].slice(1);
      const i = n < taken.length ? n : n - taken.length;
      const probabilities = vocabulary.map(() => 0);
      [...nexts[i]].forEach((c, k) => {
        probabilities[vocabulary.indexOf(c)] = shares[i][k] / 1000;
      });
      const attention = Array(W).fill(0); // a stored text is never longer than what is read
      attention[given.length + n - 1 - looks[i][0]] = looks[i][1] / 100;
      return { probabilities, attention };
    };
    const rows = times(text.length + 1, rowOf);
    return {
      given,
      tokens: [...text].map((c) => vocabulary.indexOf(c)),
      probabilities: rows.map((row) => row.probabilities),
      attention: rows.map((row) => row.attention),
    };
  },
};

// ---------------------------------------------------------------- what is shown

const readBy = readOnce(readingOf);

function readingOf({ spec }, { given, tokens, probabilities, attention }) {
  const vocabulary = spec.sentences.prompt;
  const names = [...given.data, ...tokens.data].map((id) => vocabulary[id]);
  const [T, V, W] = [given.data.length, vocabulary.length, attention.shape[1]];
  return {
    T,
    M: tokens.data.length,
    vocabulary,
    names,
    text: names.join(""),
    prompt: names.slice(0, T).join(""),
    /** What could stand at place n, or undefined if that is not known yet. */
    shares: (n) =>
      n < probabilities.shape[0] ? probabilities.data.subarray(n * V, (n + 1) * V) : undefined,
    /** Where the head attends to most before place n, { at, weight }, or null if it is unknown. */
    lookBack(n) {
      if (n >= attention.shape[0]) return null;
      const first = windowStart(T + n, spec.facts.max_len);
      const row = attention.data.subarray(n * W, n * W + T + n - first);
      const [at] = topK(row, 1);
      return { at: at + first, weight: row[at] };
    },
  };
}

/** The text up to a place, and there what the reader has just taken: no more of it is known yet. */
function cutAt(view, at, ...taken) {
  const names = [...view.names.slice(0, view.T + at), ...taken];
  const known = (read, none) => (n) => (n <= at ? read(n) : none);
  return {
    ...view,
    M: at + taken.length,
    names,
    text: names.join(""),
    shares: known(view.shares, undefined),
    lookBack: known(view.lookBack, null),
  };
}

/** How many characters there may be. */
const room = ({ spec: { limits } }) => limits.N[1];

/** Whether all is written that was asked for. */
const isWhole = ({ model, behind }) => !behind && !model.get("unfinished");

/** What is shown: of a text that is on its way nothing, as long as it is the one that is shown. */
function viewOf(widget) {
  const now = readBy(widget);
  const known = widget.view?.text.startsWith(now.text) && now.M < widget.view.M;
  if (now !== widget.seen && !(known && !isWhole(widget))) {
    [widget.view, widget.seen] = [now, now];
    widget.cursor = undefined;
  }
  return widget.view;
}

/** The place that the reader looks at: that of the next character, if it is no other. */
const cursorOf = (widget) => widget.cursor ?? viewOf(widget).M;

function look(widget, cursor) {
  widget.cursor = cursor;
  widget.repaint("outputs");
}

/** Draw every character again: what the reader has chosen belonged to the previous text. */
function redrawAll(next) {
  next.choices = next.choices.map((id) => Math.min(id, DRAWN));
}

/** Another prompt: its text goes on to the end of the second line, and then the reader lets it. */
function begin(next, { spec: { facts } }) {
  next.choices = times(facts.lines[2], () => TO_LINE_END);
}

// ---------------------------------------------------------------- the stored text is played

const [PAUSE, PACE] = [500, 75]; // ms: before the first character, and for each

/** The stored text appears character by character, once, until it ends or the reader steps in. */
function player(widget) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let playing = !calm;
  const halt = h("button.main", { click: () => pause() }, "Pause");
  halt.hidden = !playing;
  const stop = (event) => {
    if (!playing || event?.target === halt) return; // its click stops, and nothing before it
    playing = false;
    const focused = halt.getRootNode().activeElement === halt;
    [halt.hidden, widget.go.hidden] = [true, false];
    if (focused) widget.go.focus();
    widget.repaint("outputs");
  };
  /** What has been shown stays, and ends there. */
  const pause = () => {
    [widget.view, widget.cursor] = [cutAt(viewOf(widget), cursorOf(widget)), undefined];
    stop();
  };
  const step = () => {
    if (!playing || !halt.isConnected) return;
    const { M } = viewOf(widget);
    if (cursorOf(widget) >= M) stop();
    else {
      look(widget, cursorOf(widget) + 1);
      setTimeout(step, PACE);
    }
  };
  const watch = new IntersectionObserver((seen) => {
    if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
    watch.disconnect();
    setTimeout(step, PAUSE);
  });
  return {
    halt,
    begin() {
      playing &&= widget.history.length === 0 && viewOf(widget).M > 0;
      [halt.hidden, widget.go.hidden] = [!playing, playing];
      if (!playing) return;
      widget.cursor = 0;
      for (const event of ["pointerdown", "keydown", "focusin"])
        widget.frame.addEventListener(event, stop);
      watch.observe(widget.el);
    },
    /** Whether what comes after the cursor has not been seen yet. */
    hides: () => playing,
  };
}

// ---------------------------------------------------------------- the parts

const TYPED_MS = 35; // for each letter
const [TALL, LIFT] = [32, 8]; // px: a character's box, and how far a curve rises above it

/** Where the word before the one that is being written ends, in a text; -1 if there is none. */
function endOfWordBefore(names) {
  const isGap = (name) => /\s/.test(name);
  const gap = names.findLastIndex(isGap);
  return names.findLastIndex((name, t) => t < gap && !isGap(name));
}

/** What a reader is told of a look back, from the end of these names to one of them. */
function describeLook(names, at) {
  const end = endOfWordBefore(names);
  const word = names
    .slice(0, end + 1)
    .join("")
    .split(/\s/)
    .at(-1);
  const name = visible(names[at]) === names[at] ? `“${names[at]}”` : `a ${visible(names[at])}`;
  const inWord = /\s/.test(names[at]) ? "before this word" : "in the same word";
  const where = at === names.length - 1 ? "the last one" : at > end ? inWord : "further back";
  const what =
    at === end || at === end - 1 ? `the end of the word before, “${word}”` : `${name}, ${where}`;
  return `Purple: one part of the model now attends most to ${what}.`;
}

/** The text; a place can be chosen, and a curve leads to where the head attended before it. */
function stage(widget) {
  const play = player(widget);
  widget.play = play;
  const before = h("span.given");
  const line = h("span.own", {
    role: "listbox",
    tabindex: "0",
    "aria-label": "what it writes: choose a place by the arrow keys",
    keydown: (event) => {
      const to = byArrows(event, cursorOf(widget), viewOf(widget).M);
      if (to === undefined) return;
      look(widget, to);
      line.children[to].scrollIntoView({ block: "nearest" });
    },
    click: ({ target }) => {
      if (target.place !== undefined) look(widget, target.place);
    },
  });
  const curve = svgPart("path");
  const curves = svgPart("svg", { class: "curves", "aria-hidden": "true" }, curve);
  const toured = isToured(widget.model); // then no look back is shown, and no sign of a new line
  const paper = h("div.text.paper", { dir: "auto" }, before, line, ...(toured ? [] : [curves]));
  const note = h("p.note.looks");
  const sign = toured ? "" : undefined;
  const place = (n) => Object.assign(h("span", { role: "option", id: `place-${n}` }), { place: n });
  const follow = followEnd(paper);
  let [begun, returns] = [false, true]; // whether the place that is looked at is to come into view
  let [typed, since] = ["", 0]; // in the tour each letter is seen to be written, one by one
  const type = ({ text, T }) => {
    if (!typed.startsWith(text.slice(0, T)) || !text.startsWith(typed))
      [typed, since] = [text.slice(0, T), performance.now()];
    for (let n = typed.length - T; n <= text.length - T; n += 1) {
      const duration = since + TYPED_MS * n - performance.now();
      if (duration > 0) animate(line.children[n], [{ opacity: 0 }, { opacity: 0 }], { duration });
    }
    typed = text;
  };

  /** The curve runs above the line, or along the gaps between lines and the margin. */
  const draw = () => {
    if (toured) return;
    const best = viewOf(widget).lookBack(cursorOf(widget));
    setAttribute(curve, "visibility", best ? "visible" : "hidden");
    if (!best) return;
    const spans = [...before.children, ...line.children];
    const middle = ({ offsetLeft, offsetWidth }) => offsetLeft + Math.min(offsetWidth, 14) / 2;
    const [from, to] = [spans[viewOf(widget).T + cursorOf(widget)], spans[best.at]];
    const [x, left, top] = [middle(from), middle(to), from.offsetTop];
    const foot = to.offsetTop + Math.min(to.offsetHeight, TALL);
    const path =
      to.offsetTop === top
        ? `C${x} ${top - LIFT} ${left} ${top - LIFT} ${left} ${top}`
        : top - foot < TALL / 2
          ? `C${x} ${foot} ${left} ${top} ${left} ${foot}`
          : `V${top - 3} H4 V${foot + 3} H${left} V${foot}`;
    setAttribute(curve, "d", `M${x} ${top} ${path}`);
    setAttribute(curve, "stroke-width", (1 + 2 * best.weight).toFixed(2));
  };
  resized(() => begun && draw(), paper);

  return {
    element: results("column stage", paper, ...(toured ? [] : [note])),
    shows: "outputs",
    reset() {
      widget.cursor = widget.seen = undefined;
      returns = true;
    },
    update({ choices }) {
      const { names, T, M, lookBack } = viewOf(widget);
      widget.go ??= h("button"); // a page may show no button that writes on
      if (!begun) play.begin();
      begun = true;
      const cursor = cursorOf(widget);
      const best = toured ? null : lookBack(cursor);
      const heated = (item, t) => {
        setHeat(item, best?.at === t ? Math.sqrt(best.weight) : 0);
        const own = t >= T && t < T + M && choices[t - T] >= 0 ? " taken" : "";
        const later = play.hides() ? " unseen" : " later";
        return `${own}${t === T + cursor ? " at" : t > T + cursor ? later : ""}`;
      };
      fillText(before, { names: names.slice(0, T), first: 0, sign }, () => h("span"), heated);
      const next = [...names.slice(T, T + M), ""]; // and the place of the next one
      fillText(line, { names: next, first: 0, sign }, place, (item, n) => {
        setAttribute(item, "aria-selected", String(n === cursor));
        setAttribute(item, "aria-label", n === M ? "the next character" : visible(next[n]));
        return `${heated(item, T + n)}${n === M ? " caret" : ""}`;
      });
      if (widget.model.get("view") === "tour") type(viewOf(widget));
      if (!follow(names) || returns || play.hides()) {
        // while it plays, what has not been seen yet is there already, below
        const { offsetTop } = line.children[cursor];
        paper.scrollTop = Math.max(0, offsetTop + TALL + LIFT - paper.clientHeight);
        returns = false;
      }
      setAttribute(line, "aria-activedescendant", `place-${cursor}`);
      if (best) setText(note, describeLook(names.slice(0, T + cursor), best.at));
      draw();
    },
  };
}

const CANDIDATES = 6;

/** The likeliest characters for the place that is looked at; a click on one writes it there. */
function nexts(widget) {
  const label = h("span.label");
  const list = candidateList("the likeliest characters");
  const take = (token) => {
    const [view, at] = [viewOf(widget), cursorOf(widget)];
    const choices = [...widget.inputs.choices.slice(0, at), token];
    if (choices.length > room(widget)) return;
    [widget.view, widget.cursor] = [cutAt(view, at, view.vocabulary[token]), undefined];
    widget.edit(Symbol("take"), (next) => {
      next.choices = choices;
    });
    widget.repaint("outputs");
    const { names, T, vocabulary } = viewOf(widget);
    notifyPage(widget, { what: "taken", token: vocabulary[token], text: names.slice(T).join("") });
  };
  const make = (i) => {
    const click = () => take(list.children[i].token);
    const button = { "data-input": "choices", click };
    return h("li", candidateLine("button", button, {}));
  };
  return {
    element: results("column nexts-of", label, list),
    shows: "outputs",
    update() {
      const { shares, vocabulary, names, M, T } = viewOf(widget);
      const cursor = cursorOf(widget);
      const row = shares(cursor);
      const read = `“${tail({ names, kind: "", first: 0 }, T + cursor, 11)}”`;
      setText(label, isToured(widget.model) ? "What comes next?" : `After ${read} comes`);
      setAttribute(list, "aria-busy", String(!row)); // the model has not answered
      list.inert = !row;
      if (!row) return;
      const own = cursor < M ? vocabulary.indexOf(names[T + cursor]) : -1;
      const best = topK(row, CANDIDATES);
      if (own >= 0 && !best.includes(own)) best[CANDIDATES - 1] = own;
      fillList(list, best, make, (li, id) => {
        li.token = id;
        const name = visible(vocabulary[id]);
        const line = li.firstChild;
        fillCandidate(line, name, [row[id]], [percentOf(row[id])], name !== vocabulary[id]);
        if (vocabulary[id] === "\n")
          line.firstChild.replaceChildren(
            h("span", { "aria-hidden": "true" }, "↵"),
            h("span.spoken-only", name),
          );
        setAttribute(li, "class", id === own ? "taken" : "");
      });
    },
  };
}

/** Writes on from the cursor until the room is full, the reader stops it, or steps in. */
function writer(widget) {
  const go = h(
    "button.main",
    { "data-input": "choices" },
    h("span", { "aria-hidden": "true" }, "▶ "),
    "Keep writing",
  );
  widget.go = go;
  const isFull = () => cursorOf(widget) >= room(widget);
  const written = autoContinue(widget, go, (field) => {
    const { M, prompt } = readBy(widget);
    const { choices } = widget.inputs;
    if (prompt !== widget.inputs.prompt) return false;
    if (M !== choices.length && !isWhole(widget)) return false;
    const at = cursorOf(widget) === M - 1 && choices[M - 1] < 0 ? M : cursorOf(widget);
    if (at >= room(widget)) {
      return (
        `It has written ${room(widget)} characters, which is all that this page keeps. Ask for ` +
        "another text, or go back to a place in this one."
      );
    }
    widget.edit(field, (next) => {
      next.choices = [...choices.slice(0, at), DRAWN];
    });
    return true;
  });
  return {
    element: h(
      "div.onward",
      results("column", widget.play.halt, go, written.halt),
      h("p.note.soft.about", READ),
      written.note,
    ),
    reset: () => written.stop(),
    update() {
      written.update();
      setAttribute(go, "aria-disabled", String(isFull())); // it keeps the focus, and says why
    },
  };
}

const READ = "It has read Shakespeare’s plays and nothing else.";

/** Another text, and what else a reader can do, with what model. */
function another(widget) {
  const message =
    "Click a character to write it, and a place in the text to go back there. This GPT reads " +
    `characters and is small: it has ${whole(widget.spec.facts.parameters)} parameters.`;
  const draw = redraw(widget, "Another text", redrawAll);
  return {
    element: h("div.column", h("p.note.soft", message), draw),
    shows: "inputs",
    update() {},
  };
}

stage.style = `${TEXT_STYLE}
:host { --hero-curve: var(--weight); }
.paper { position: relative; height: 13rem; max-height: none; overflow-y: auto;
  line-height: 1.75em; padding: 8px 9px 8px 12px; font-size: var(--size-large); cursor: text;
  font-kerning: none; } /* the next letter's ground would lie over what reaches into it */
.tour .paper { line-height: 1.75rem; }
.paper:has(.own:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
.own { outline: none; }
/* Letters stay readable on their tint: it is half as strong as a cell's, and they do not turn. */
.paper .t { --letter: var(--text); cursor: pointer; padding: 2px 0;
  background: color-mix(in oklab, var(--ground), var(--hero-curve) calc(var(--tl-heat, 0) * 45%));
  color: color-mix(in oklab, var(--letter), var(--text) min(100%, var(--tl-heat, 0) * 1000%)); }
.paper .given .t { --letter: var(--soft); cursor: text; }
.paper .t:is(.later, .line-end) { --letter: var(--soft); }
.paper .unseen { visibility: hidden; }
.paper .taken { text-decoration: underline dashed 1.5px; text-underline-offset: 4px; }
.paper .caret::after { content: ""; display: inline-block; width: .6em; height: 1.25em;
  vertical-align: -.25em; background: var(--accent); border-radius: 1px; }
.paper .t.caret { outline: none; }
.paper .caret.later { opacity: .35; }
.curves { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible;
  pointer-events: none; }
.curves path { fill: none; stroke: var(--hero-curve); stroke-linecap: round; opacity: .75; }
.looks { height: 3.2em; overflow: hidden; font-size: var(--size-note); }
/* The text comes first: what is for later shows once it is wanted */
@media (hover: hover) {
  .frame:not(.tour, :hover, :focus-within, :has(.acts > :nth-child(2):enabled)) .acts {
    opacity: 0; }
}
@media (max-width: 37.5rem) {
  .paper { height: 11.5rem; line-height: 1.7em; font-size: var(--size-touch); }
}
@container widget (max-width: 37.5rem) { .looks { height: 4.8em; } }
@media print { .paper .unseen { visibility: visible; } }
`;
nexts.style = `${candidateList.style}
:host { --bar: var(--probability); }
.nexts-of > .label { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.nexts[aria-busy=true] { opacity: .55; }
.frame:not(.tour) > .row > .nexts-of { gap: 10px; }
.frame:not(.tour) .nexts { gap: 8px; }
.nexts .taken button { border-color: var(--accent); }
.nexts-of .candidate { grid-template-columns: 3.5rem 1fr repeat(var(--bars), 3.25rem); }
.row > .nexts-of { flex: 0 1 14.5rem; }
@media (max-width: 37.5rem) { .row > .nexts-of { flex: 1 1 13.125rem; } }
`;
writer.style = `
.onward { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; }
.main { min-width: 7rem; min-height: 2.25rem; }
.onward > .note { flex: 1 1 13rem; }
.told:empty, .onward:has(.told:not(:empty)) .about { display: none; }
.folded > .column { gap: 14px; margin-top: 8px; }
.folded .column > button { align-self: start; }
textarea.line.line { min-height: 2.375rem; max-height: 7.5rem; }
.starts { align-items: flex-start; }
`;

export default live("A small GPT that writes in this page", (ui) => {
  const paper = ui.use(stage);
  const box = (oneLine) => ui.use(text, "prompt", "Your own beginning", begin, oneLine);
  if (ui.view === "tour-next") return [ui.row(paper, ui.use(nexts))];
  if (ui.view === "tour") {
    const line = box(true);
    return [ui.boxed("asked", line, ui.use(write, line)), ui.use(chips), paper];
  }
  const [bars, goOn] = [ui.use(nexts), ui.use(writer)];
  const knob = ui.knob("temperature", "temperature", { step: 0.05, also: redrawAll, note: heats });
  const more = [ui.row(ui.use(another), knob), ui.row(box(), ui.use(offered))];
  return [ui.row(paper, bars), goOn, ui.use(folded, "Play with it", ui.boxed("column", ...more))];
});

/** Write on from the line; if that is done already, write another text. */
function write(widget, line) {
  const click = () => {
    const { prompt } = widget.inputs;
    line.end();
    if (widget.unusable.size) return; // the line says what is wrong
    const again = prompt && prompt === widget.inputs.prompt && viewOf(widget).M && isWhole(widget);
    if (!again) return;
    widget.edit(Symbol("write"), (next) => {
      next.seed = (next.seed % widget.spec.limits.seed[1]) + 1;
      begin(next, widget);
    });
  };
  const button = h("button.main", { "data-input": "prompt", click }, "Write");
  return { element: button, shows: "inputs", update() {} };
}

/** Texts to begin with. */
function offered(widget) {
  return beginnings(widget, "prompt", "prompts", begin);
}

/** One text of each kind at least, for a page that offers few things. */
function chips(widget) {
  const all = Object.values(widget.spec.facts.prompts).flatMap((group) => Object.keys(group));
  const take = (prompt) => {
    const change = (next) => {
      next.prompt = prompt;
      begin(next, widget);
    };
    for (const part of widget.parts) part.reset?.(); // what is half typed gives way
    widget.edit(Symbol("offer"), change);
  };
  const button = (prompt) =>
    h("button", { "data-input": "prompt", click: () => take(prompt) }, prompt.trim());
  const few = [all[0], all.at(-2)].map(button);
  return { element: h("div.chips", ...few), shows: "inputs", update() {} };
}
chips.style = `
.chips { display: flex; flex-wrap: wrap; gap: 8px; }
.asked { display: flex; gap: 8px; align-items: flex-start; }
.asked > .column { flex: 1; min-width: 0; }
.asked .main { min-height: 2.75rem; }
textarea.line.line { min-height: 2.75rem; height: 2.75rem; resize: none; }
@supports (field-sizing: content) { textarea.line.line { height: auto; max-height: 4.25rem; } }
.tour .nexts button { min-height: 2.25rem; }
@media (hover: none) { .tour .nexts :is(button, .taken button) { border-color: transparent; } }
`;
