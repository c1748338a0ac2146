// Following one word, or one token, through what a widget computes, step by step.
//
// A view gives the steps, in their order, as functions of `follow(widget)`, which return {
//   says,   a sentence with the reader's own numbers
//   lit,    the entries that it speaks of: { name, row, column }, of inputs and outputs
//   moves,  what goes where: [{ from: { name, row, column }, to: the same }], if anything does
//   code,   the line of tinylib that does it: { name, line }
//   table,  rows of numbers shown below the sentence: { labels, rows: [{ name, numbers }] }
//   torch,  the code that computes these numbers, for the reader to copy
// }. The numbers are those that torch has sent.
//
// One clock runs it: `at` is 0 before the first step, and 2.4 when four tenths of the third step's
// movement are over. So it can be slid in both directions. Only transform and opacity are animated,
// and not even these for a reader who wants no motion.

import { scroller } from "./boxes.js";
import { copyAsTorch } from "./copy.js";
import { h, setAttribute, setText, typeset } from "./dom.js";
import { light } from "./explain.js";
import { format, times } from "./numbers.js";

const MOVE = 600; // ms: the movement of a step
const READ = 2400; // ms: what a reader gets for the sentence before Play goes on, at least
const PER_LETTER = 34; // ms: and for each of its letters
const ENOUGH = 0.3; // of the widget, or of the window if that is smaller: else Play pauses
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** A copy of a cell that can move over the frame. */
function ghostOf(cell, frame) {
  const [box, around] = [cell.getBoundingClientRect(), frame.getBoundingClientRect()];
  const ghost = h("span.ghost", { "aria-hidden": "true" });
  ghost.textContent = cell.value ?? cell.textContent;
  const place = { left: box.left - around.left, top: box.top - around.top };
  for (const [side, size] of Object.entries({ ...place, width: box.width, height: box.height }))
    ghost.style[side] = `${size}px`;
  return { ghost, box };
}

/** The movements of a step, which its clock holds: set(0) is before them, and set(1) after. */
function movement(widget, layer, moves) {
  const animations = [];
  const cells = ({ name, row, column }) => widget.cellsOf(name, row, column);
  for (const { from, to } of moves) {
    const [given, targets] = [cells(from), cells(to)];
    if (!targets.length) continue;
    given.forEach((cell, i) => {
      const { ghost, box } = ghostOf(cell, layer);
      const goal = targets[Math.min(i, targets.length - 1)].getBoundingClientRect();
      layer.append(ghost);
      const [x, y] = [goal.left - box.left, goal.top - box.top];
      const there = `translate(${x}px, ${y}px)`;
      animations.push(
        ghost.animate(
          [
            { transform: "none", opacity: 1 },
            { transform: "scale(1.15)", opacity: 1, offset: 0.2 },
            { transform: there, opacity: 1, offset: 0.85 },
            { transform: there, opacity: 0 },
          ],
          { duration: MOVE, easing: "ease-in-out", fill: "both" },
        ),
      );
    });
    for (const cell of targets) {
      animations.push(
        (cell.firstElementChild ?? cell).animate(
          [{ opacity: 0.15 }, { opacity: 0.15, offset: 0.75 }, { opacity: 1 }],
          { duration: MOVE, fill: "both" },
        ),
      );
    }
  }
  for (const animation of animations) animation.pause();
  return {
    set(share) {
      for (const animation of animations) animation.currentTime = share * MOVE;
    },
    end() {
      for (const animation of animations) animation.cancel();
      layer.replaceChildren();
    },
  };
}

/**
 * The bar that runs the steps, and the sentence of each. `name(widget)` is what is followed, and
 * `follow(widget)` what the steps get. `flows` are the outputs in the order in which they follow
 * from each other: after the last step those that an edit has changed flash in this order.
 */
export function journey(widget, { name, steps, follow = (one) => one, flows = [] }) {
  const last = steps.length;
  let [at, shown, playing] = [0, -1, false];
  let [clock, rest] = [0, 0]; // the number of the run; the wait between two of them
  let moved, before; // the movement that is on the screen; the outputs that were
  const layer = h("div.ghosts", { "aria-hidden": "true" });
  const button = (label, sign, click) =>
    h("button", { "aria-label": label, title: label, click }, sign);
  const start = h("button.start", { click: () => play() });
  const back = button("one step back", "◀", () => go(Math.ceil(at) - 1));
  const next = button("one step on", "▶", () => go(Math.ceil(at) + 1));
  const close = button("end", "✕", () => leave());
  const bar = h("input", {
    type: "range",
    min: "0",
    max: String(last),
    step: "any",
    "aria-label": "steps",
    input: () => {
      pause();
      set(Number(bar.value));
    },
  });
  const place = h("span.place");
  const message = h("p.says", { role: "status" });
  const code = h("code");
  const origin = h("span");
  const source = h("p.code", origin, code);
  const table = h("table.stages");
  const stages = scroller(
    { tabindex: "0", role: "group", "aria-label": "the numbers so far; they scroll sideways" },
    table,
  );
  let torch = ""; // the code of this step
  const copied = copyAsTorch(() => torch, "this step");
  const stepBox = h("div.told", { "data-output": "" }, message, source, stages, copied.element);
  const controls = h("div.controls", start, back, bar, next, place, close);
  const element = h(
    "div.journey",
    { role: "group", "aria-label": "follow one word", keydown: keys },
    controls,
    stepBox,
  );

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const pressed = event.target.localName === "button";
    if (by) go(Math.ceil(at) + by);
    else if (event.key === " " && !pressed) (playing ? pause : play)();
    else return;
    event.preventDefault();
  }

  /** Show the state at this moment of the clock. */
  function set(moment) {
    at = Math.max(0, Math.min(last, moment));
    const step = Math.ceil(at);
    if (step !== shown) showStep(step);
    moved?.set(step ? 1 - (step - at) : 0);
    bar.value = String(at);
    const follow = `Follow ${name(widget)}${at < last ? "" : " again"}`;
    setText(start, playing ? "Pause" : at > 0 && at < last ? "Play on" : follow);
    back.disabled = at <= 0;
    next.disabled = at >= last;
  }

  /** Light and say what this step does; 0 is before the first. */
  function showStep(step) {
    moved?.end();
    moved = undefined;
    shown = step;
    stepBox.hidden =
      bar.hidden =
      back.hidden =
      next.hidden =
      place.hidden =
      close.hidden =
        step === 0;
    element.classList.toggle("under-way", step > 0);
    setText(place, `step ${step} of ${last}`);
    setAttribute(bar, "aria-valuetext", `step ${step} of ${last}`);
    if (!step) {
      light(widget, [], "lit");
      return;
    }
    const one = steps[step - 1](follow(widget));
    const { message: text, lit, moves = [], code: line, table: rows } = one;
    typeset(message, text);
    torch = one.torch ?? "";
    copied.element.hidden = !torch;
    copied.follow();
    source.hidden = !line;
    setText(origin, line ? `${line.name}: ` : "");
    setText(code, line?.line ?? "");
    light(widget, lit, "lit");
    fill(rows);
    if (!still.matches) {
      widget.frame.append(layer);
      moved = movement(widget, layer, moves);
    }
  }

  function fill(content) {
    stages.hidden = !content;
    if (!content) return;
    const { labels, rows } = content;
    const cells = (line) => line.map((value) => h("td", value === null ? "" : format(value)));
    table.replaceChildren(
      h("thead", h("tr", h("td"), ...labels.map((word) => h("th", { scope: "col" }, word)))),
      h(
        "tbody",
        ...rows.map(({ name: title, numbers }) =>
          h("tr", h("th", { scope: "row" }, title), ...cells(numbers)),
        ),
      ),
    );
  }

  /** Go to this step; forward it moves. */
  function go(step) {
    pause();
    const goal = Math.max(0, Math.min(last, step));
    run(goal, goal < at ? goal : Math.max(at, goal - 1));
    if (goal > 0) find(goal);
  }

  /** Bring what this step is about into sight, above the bar: only for a press, never by itself. */
  function find(step) {
    const { lit, moves = [] } = steps[step - 1](follow(widget));
    const { name: table, row, column } = moves.at(-1)?.to ?? lit.at(-1);
    const [cell] = widget.cellsOf(table, row, column);
    const { top, bottom } = cell?.getBoundingClientRect() ?? {};
    const low = Math.min(innerHeight, element.getBoundingClientRect().top);
    if (top < 60 || bottom > low) cell.scrollIntoView({ block: "center", behavior: "instant" });
  }

  /** Let the clock run from this moment to the end of a step, and then call `then`. */
  function run(step, from, then = () => {}) {
    clock += 1;
    const own = clock;
    const begun = performance.now();
    const tick = () => {
      if (own !== clock || !element.isConnected) return; // stopped, or another run has begun
      const passed = (performance.now() - begun) / MOVE;
      const moment = still.matches ? step : Math.min(step, from + passed);
      set(moment);
      if (moment < step) requestAnimationFrame(tick);
      else then();
    };
    tick();
  }

  function advance(step) {
    run(step, Math.max(step - 1, at < step ? at : 0), () => {
      if (step === last) {
        pause();
        set(last);
      } else {
        rest = setTimeout(() => advance(step + 1), READ + PER_LETTER * message.textContent.length);
      }
    });
  }
  function play() {
    if (playing) {
      pause();
      set(at);
      return;
    }
    playing = true;
    if (at >= last) set(0);
    const step = Math.floor(at) + 1;
    advance(step);
    find(step);
    inView.observe(widget.frame);
  }
  /** A reader who has scrolled away is let go: it pauses, and its button says so. */
  const inView = new IntersectionObserver(
    (changes) => {
      const { intersectionRect: seen, boundingClientRect: box, rootBounds } = changes.at(-1);
      if (seen.height >= ENOUGH * Math.min(box.height, rootBounds?.height ?? innerHeight)) return;
      pause();
      set(at);
    },
    { threshold: times(51, (i) => i / 50) },
  );
  function pause() {
    inView.disconnect();
    clearTimeout(rest);
    clock += 1;
    playing = false;
  }
  function leave() {
    pause();
    start.focus();
    set(0);
  }

  /** What has changed flashes, in the order in which it follows. */
  function flash(outputs) {
    if (before && at === last && !still.matches) {
      flows.forEach((flow, i) => {
        const [old, now] = [before[flow].data, outputs[flow].data];
        if (old.length !== now.length) return;
        widget.cellsOf(flow).forEach((cell, n) => {
          if (old[n] === now[n]) return;
          cell.firstElementChild.animate([{ opacity: 1 }, { opacity: 0.1 }, { opacity: 1 }], {
            duration: 400,
            delay: 180 * i,
          });
        });
      });
    }
    before = outputs;
  }

  return {
    element,
    reset: () => set(0),
    /** For the link to this state: the step, if there is one. */
    saved: () => (shown > 0 ? { step: shown } : {}),
    restore({ step }) {
      pause();
      const goal = Number.isInteger(step) ? step : 0;
      if (widget.behind)
        at = goal; // it is described when its numbers have come
      else set(goal);
    },
    update(inputs, outputs) {
      if (widget.behind) return; // the answer is still on its way
      flash(outputs);
      shown = -1; // the numbers in its sentence may have changed
      set(at);
    },
  };
}
journey.style = `${copyAsTorch.style}
.frame { position: relative; }
.journey { border: 1px solid var(--line); border-radius: 8px; padding: 6px 10px;
  background: var(--ground); }
.journey.under-way { position: sticky; bottom: 8px; z-index: 2; }
.journey.under-way ~ .explained { position: static; }
.controls { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; }
.journey:not(.under-way) .start { border-color: var(--accent); background: var(--accent);
  color: var(--ground); font-weight: 600; padding: 4px 14px; }
.controls input[type=range] { flex: 1 1 7.5rem; min-width: 5.625rem; }
.controls .place { font-size: var(--size-note); color: var(--soft);
  font-variant-numeric: tabular-nums; }
.journey .says { margin: 6px 0 0; min-height: 3.2em; line-height: 1.6; max-width: 90ch;
  font-variant-numeric: tabular-nums; }
.journey .code { margin: 2px 0 0; font-size: var(--size-note); min-height: 1.6em; color:
  var(--soft); overflow-wrap: anywhere; }
.journey code { padding: 1px 5px; border-radius: 4px; color: var(--text); font: var(--size-note)/1.6
  var(--mono); background: color-mix(in oklab, var(--ground), var(--accent) 14%); }
.stages { margin: 4px 0 0; font-size: var(--size-note); }
.stages :is(td, th) { padding: 1px 7px 1px 0; text-align: right; font-size: var(--size-note); }
.stages th { max-width: none; }
.stages tbody tr:last-child td { font-weight: 650; color: var(--text); }
td.lit, .matrix input.lit { box-shadow: inset 0 0 0 2px var(--accent); }
.ghosts { position: absolute; inset: 0; pointer-events: none; z-index: 3; }
.ghost { position: absolute; display: grid; place-items: center; font-size: var(--size-note);
  border: 2px solid var(--accent); border-radius: 5px; background: var(--ground);
  font-variant-numeric: tabular-nums; }
@container widget (min-width: 53.75rem) {
  .told { position: relative; }
  .told > .copying:not(:has(.snippet)) { position: absolute; right: 0; bottom: 0; }
}
@container widget (min-width: 53.75rem) { /* a button beside the title, until it is under way */
  .frame > .journey:not(.under-way) { position: absolute; top: 7px; right: 16px; border: 0;
    padding: 0; }
}
@media print { .journey { display: none; } }
`;
