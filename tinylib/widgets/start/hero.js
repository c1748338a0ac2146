import { uniform } from "../../live/page/chance.js";
import { chosenAt, lastOf, memoryOf, nodeAfter, nodesOf } from "../../live/page/reading.js";
import { topK } from "../../live/page/search.js";
import { resized, results } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { redraw } from "../../live/ui/controls.js";
import { h, readOnce, setAttribute, setHeat, setText, svgPart } from "../../live/ui/dom.js";
import { listed, percentOf, times, whole } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, text, visible } from "../../live/ui/sentences.js";
import {
  autoContinue,
  beginnings,
  byArrows,
  called,
  fillText,
  heats,
  tail,
  TEXT_STYLE,
} from "../../live/ui/texts.js";

// ---------------------------------------------------------------- what is computed

const DRAWN = -1; // among the choices: a character that nobody has taken by hand

/** What torch does in a kernel, in compute() of hero.py. */
export async function program(run, values, spec, partly = (_make) => {}) {
  const { prompt, temperature, seed, choices } = values;
  const { facts, limits } = spec;
  const [V] = limits.V;
  const ALL = { k: V, p: 1 }; // nothing is cut off
  const [T, M] = [prompt.length, Math.min(choices.length, facts.max_len - prompt.length)];
  const [memory, numbers] = [memoryOf(spec), uniform(seed, M + 1)];
  const [nodes, ids, rows] = [nodesOf(memory, prompt), [...prompt], []];
  const outputs = () => {
    const [K, S] = [rows.length, T + rows.length - 1];
    const [probabilities, attention] = [new Float32Array(K * V), new Float32Array(K * S)];
    rows.forEach(({ shares, attentionRow }, n) => {
      probabilities.set(shares, n * V);
      attention.set(attentionRow, n * S);
    });
    return {
      given: prompt,
      tokens: ids.slice(T, S),
      probabilities: { dims: [K, V], data: probabilities },
      attention: { dims: [K, S], data: attention },
    };
  };
  for (let n = 0; n <= M; n += 1) {
    const [node, last] = [nodes.at(-1), await lastOf(run, memory, spec, nodes, ids, true)];
    const { adjusted, token } = await chosenAt(
      run,
      node,
      last,
      { temperature, ...ALL },
      numbers[n],
    );
    const from = facts.head * (T + n);
    const attentionRow = last.attention.data.subarray(from, from + T + n);
    rows.push({ shares: adjusted.data, attentionRow });
    if (n === M) break;
    ids.push(choices[n] === DRAWN ? token : choices[n]);
    nodes.push(nodeAfter(memory, node, ids.at(-1)));
    partly(outputs);
  }
  return outputs();
}

// ---------------------------------------------------------------- what is shown

const readBy = readOnce(readingOf);

function readingOf({ spec }, { given, tokens, probabilities, attention }) {
  const vocabulary = spec.sentences.prompt;
  const names = [...given.data, ...tokens.data].map((id) => vocabulary[id]);
  // a text that was just begun may lack its last row
  const [T, V, S] = [given.data.length, vocabulary.length, attention.shape[1]];
  return {
    T,
    M: probabilities.shape[0] - 1,
    vocabulary,
    names,
    tokens: tokens.data,
    text: names.join(""),
    prompt: names.slice(0, T).join(""),
    shares: (n) => probabilities.data.subarray(n * V, (n + 1) * V),
    attentionRow: (n) => attention.data.subarray(n * S, n * S + T + n),
  };
}

/** How many characters there may be. */
const room = ({ inputs, spec: { facts, limits } }) =>
  Math.min(limits.N[1], facts.max_len - [...inputs.prompt].length);

/** How many characters there are once all is written. */
const wanted = (widget) => Math.min(widget.inputs.choices.length, room(widget));

/** What is shown: of a text that is on its way nothing, as long as it is the one that is shown. */
function viewOf(widget) {
  const [now, before] = [readBy(widget), widget.view];
  const known = before && now.M < Math.min(before.M, wanted(widget));
  if (now !== before && !(known && before.text.startsWith(now.text))) {
    widget.view = now;
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
  next.choices = next.choices.map(() => DRAWN);
}

const FIRST = 24; // characters that another prompt begins with

/** Another prompt: a few characters, and then the reader lets it write on. */
function begin(next) {
  next.choices = times(FIRST, () => DRAWN);
}

// ---------------------------------------------------------------- the stored text is played

const [PAUSE, PACE] = [500, 75]; // ms: before the first character, and for each

/** The stored text appears character by character, once, until it ends or the reader steps in. */
function player(widget) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let playing = !calm;
  const halt = h("button.main", { click: () => stop() }, "Pause");
  halt.hidden = !playing;
  const stop = () => {
    if (!playing) return;
    playing = false;
    const focused = halt.getRootNode().activeElement === halt;
    [halt.hidden, widget.go.hidden] = [true, false];
    if (focused) widget.go.focus();
    widget.repaint("outputs");
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

const [CURVES, LEAST] = [4, 0.04]; // to the characters that the head attends to most

/** The text; a place can be chosen, and curves lead to where the head attended before it. */
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
      if (to !== undefined) look(widget, to);
    },
    click: ({ target }) => {
      if (target.place !== undefined) look(widget, target.place);
    },
  });
  const curves = svgPart("svg", { class: "curves", "aria-hidden": "true" });
  const paper = h("div.text.paper", { dir: "auto" }, before, line, curves);
  const note = h("p.note.looks");
  const place = (n) => Object.assign(h("span", { role: "option", id: `place-${n}` }), { place: n });
  let begun = false;

  const draw = () => {
    const cursor = cursorOf(widget);
    const row = viewOf(widget).attentionRow(cursor);
    const spans = [...before.children, ...line.children];
    const best = topK(row, CURVES).filter((t) => row[t] >= LEAST);
    const middle = ({ offsetLeft, offsetWidth, offsetTop, offsetHeight }) => [
      offsetLeft + Math.min(offsetWidth, 14) / 2,
      offsetTop + Math.min(offsetHeight, 24) / 2,
    ];
    const [x, y] = middle(spans[row.length]);
    fillList(
      curves,
      best,
      () => svgPart("path"),
      (path, t) => {
        const [left, top] = middle(spans[t]);
        const lift = Math.min(y, top) - 16 - Math.min(60, Math.abs(x - left) / 2);
        setAttribute(path, "d", `M${x} ${y - 9} Q${(x + left) / 2} ${lift} ${left} ${top - 9}`);
        setAttribute(path, "stroke-width", (1 + 5 * row[t]).toFixed(2));
      },
    );
  };
  resized(() => begun && draw(), paper);

  return {
    element: results("column stage", paper, note),
    shows: "outputs",
    reset() {
      widget.cursor = undefined;
    },
    update({ choices }) {
      if (!begun) {
        viewOf(widget);
        play.begin();
      }
      begun = true;
      const { names, T, M, attentionRow } = viewOf(widget);
      const cursor = cursorOf(widget);
      const row = attentionRow(cursor);
      const heated = (item, t) => {
        setHeat(item, t < row.length ? Math.sqrt(row[t]) : 0);
        const own = t >= T && t < T + M && choices[t - T] >= 0 ? " taken" : "";
        const later = play.hides() ? " unseen" : " later";
        return `${own}${t === T + cursor ? " at" : t > T + cursor ? later : ""}`;
      };
      fillText(before, { names: names.slice(0, T), first: 0 }, () => h("span"), heated);
      const written = [...names.slice(T, T + M), ""]; // and the place of the next one
      fillText(line, { names: written, first: 0 }, place, (item, n) => {
        setAttribute(item, "aria-selected", String(n === cursor));
        setAttribute(item, "aria-label", n === M ? "the next character" : visible(written[n]));
        return `${heated(item, T + n)}${n === M ? " caret" : ""}`;
      });
      setAttribute(line, "aria-activedescendant", `place-${cursor}`);
      const most = topK(row, CURVES).filter((t) => row[t] >= LEAST);
      setText(
        note,
        `Curves: before the next character, one part of the model attends most to ` +
          `${listed([...new Set(most.map((t) => called(names[t])))])}.`,
      );
      draw();
    },
  };
}

const CANDIDATES = 6;

/** The likeliest characters for the place that is looked at; a click on one writes it there. */
function nexts(widget) {
  const label = h("span.label");
  const list = candidateList("the likeliest characters");
  const take = (token) =>
    widget.edit(Symbol("take"), (next) => {
      next.choices = [...next.choices.slice(0, cursorOf(widget)), token];
    });
  const make = (i) => {
    const click = () => take(list.children[i].token);
    const button = { "data-input": "choices", click };
    return h("li", candidateLine("button", button, {}));
  };
  return {
    element: results("column nexts-of", label, list, h("p.note.soft", CLICK)),
    shows: "outputs",
    update() {
      const { shares, vocabulary, tokens, names, M, T } = viewOf(widget);
      const cursor = cursorOf(widget);
      const [row, own] = [shares(cursor), cursor < M ? tokens[cursor] : -1];
      const best = topK(row, CANDIDATES);
      if (own >= 0 && !best.includes(own)) best[CANDIDATES - 1] = own;
      setText(label, `After “${tail({ names, kind: "", first: 0 }, T + cursor, 11)}” comes`);
      fillList(list, best, make, (li, id) => {
        li.token = id;
        const name = visible(vocabulary[id]);
        const line = li.firstChild;
        fillCandidate(line, name, [row[id]], [percentOf(row[id])], name !== vocabulary[id]);
        setAttribute(li, "class", id === own ? "taken" : "");
      });
    },
  };
}
const CLICK = "Click a character to write it. Click a place in the text to go back there.";

/** Writes on from the cursor until the room is full, the reader stops it, or steps in. */
function writer(widget) {
  const go = h(
    "button.main",
    { "data-input": "choices" },
    h("span", { "aria-hidden": "true" }, "▶ "),
    "Keep writing",
  );
  widget.go = go;
  const draw = redraw(widget, "Another text", redrawAll);
  const written = autoContinue(widget, go, (field) => {
    const { M, prompt } = readBy(widget);
    if (prompt !== widget.inputs.prompt || M !== wanted(widget)) return false;
    const { choices } = widget.inputs;
    const at = cursorOf(widget) === M - 1 && choices[M - 1] === DRAWN ? M : cursorOf(widget);
    if (at >= room(widget)) {
      return (
        "There is no more room here. Ask for another text, or shorten the beginning. In chapter " +
        "13 the same model writes longer texts."
      );
    }
    widget.edit(field, (next) => {
      next.choices = [...choices.slice(0, at), DRAWN];
    });
    return true;
  });
  return {
    element: results("column", h("div.onward", widget.play.halt, go, written.halt, draw)),
    note: written.note,
    reset: () => written.stop(),
    update: () => written.update(),
  };
}

/** What model it is. */
function about(widget) {
  const message =
    `It has read Shakespeare's plays, character by character, and nothing else. For a GPT it is ` +
    `small: it has ${whole(widget.spec.facts.parameters)} parameters.`;
  return { element: h("p.note.soft.about", message), shows: "inputs", update() {} };
}

stage.style = `${TEXT_STYLE}
:host { --hero-curve: var(--weight); }
.paper { position: relative; min-height: 13.875rem; line-height: 1.5625rem; padding: 8px 12px;
  font-size: var(--size-text); cursor: text; }
.paper:has(.own:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
.own { outline: none; }
.given { color: var(--soft); }
.paper .t { cursor: pointer; padding: 2px 0; background: color-mix(in oklab, var(--ground),
  var(--hero-curve) calc(var(--tl-heat, 0) * 45%)); }
.paper .given .t { cursor: text; }
.paper .unseen { visibility: hidden; }
.paper .taken { text-decoration: underline dashed 1.5px; text-underline-offset: 4px; }
.paper .t.line-end { color: color-mix(in oklab, var(--ground), var(--text) 34%); }
.paper .caret::after { content: ""; display: inline-block; width: .5625rem; height: 1.1875rem;
  vertical-align: -4px; background: var(--accent); border-radius: 1px; }
.paper .t.caret { outline: none; }
.paper .caret.later { opacity: .35; }
.curves { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible;
  pointer-events: none; }
.curves path { fill: none; stroke: var(--hero-curve); stroke-linecap: round; opacity: .75; }
.looks { height: 3.2em; overflow: hidden; font-size: var(--size-note); }
@media (max-width: 37.5rem) {
  .paper { line-height: 1.4375rem; min-height: 12.75rem; }
  .looks { height: 4.8em; }
}
@media print { .paper .unseen { visibility: visible; } }
`;
nexts.style = `${candidateList.style}
:host { --bar: var(--probability); }
.nexts-of > .label { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.nexts .taken button { border-color: var(--accent); }
.row > .nexts-of { flex: 0 1 14.5rem; }
@media (max-width: 37.5rem) { .row > .nexts-of { flex: 1 1 13.125rem; } }
`;
writer.style = `
.onward { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; }
.main { min-width: 7rem; font-weight: 600; border-color: var(--accent); min-height: 2.25rem; }
.told:empty { display: none; }
.controls { align-items: center; }
textarea.line.line { min-height: 2.375rem; max-height: 7.5rem; }
.starts { align-items: flex-start; }
`;

export default live("A small GPT that writes in this page", (ui) => {
  const [paper, bars, goOn] = [ui.use(stage), ui.use(nexts), ui.use(writer)];
  const knob = ui.knob("temperature", "temperature", { step: 0.05, also: redrawAll, note: heats });
  return [
    ui.row(paper, bars),
    ui.row(goOn, knob),
    { element: goOn.note },
    ui.row(ui.use(text, "prompt", "Your own beginning", begin), ui.use(offered)),
    ui.use(about),
  ];
});

/** Texts to begin with. */
function offered(widget) {
  return beginnings(widget, "prompt", "prompts", begin);
}
