// Following one word, or one token, through what a widget computes, step by step.
//
// A view gives the steps, in their order, as functions of `follow(widget)`, which return {
//   says,   a sentence with the reader's own numbers
//   lit,    the entries that it speaks of: { name, row, column }, of inputs and outputs
//   moves,  what goes where: [{ from: { name, row, column }, to: the same }], if anything does
//   fills,  the entries, or { cells }, that it computes: until then their places are empty
//   shows,  what the view shows from then on instead of what the reader chose: it is widget.shown
//   code,   the line of tinylib that does it: { name, line }
//   table,  rows of numbers shown below the sentence: { labels, rows: [{ name, numbers }] }
//   torch,  the code that computes these numbers, for the reader to copy
// }. The numbers are those that torch has sent.
//
// It is a film: while it is under way, what a later step computes is an empty outline, and tables
// that a step does not use are dimmed. The page moves only for a press, never by the clock.
//
// One clock runs it: `at` is 0 before the first step, and 2.4 when four tenths of the third step's
// movement are over. So it can be slid in both directions. Only transform and opacity are animated,
// and not even these for a reader who wants no motion.

import { columnHeads, namedRow, resized, scroller } from "./boxes.js";
import { copyAsTorch } from "./copy.js";
import { h, rectangleIn, setAttribute, setText, typeset } from "./dom.js";
import { light } from "./explain.js";
import { format, times, within } from "./numbers.js";

const MOVE = 600; // ms: the movement of a step
const [LEAST_READ, MOST_READ] = [2500, 5000]; // ms: for a sentence, before Play goes on
const PER_WORD = 120; // ms
const STAGGER = 40; // ms: between two cells that a step fills
const NARROW = 600; // px: in a narrower widget one table stands below the other
const ENOUGH = 0.3; // of the widget, or of the window if that is smaller: else Play pauses
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** The elements that entries stand for. */
const entries = (widget, list) =>
  new Set(
    list.flatMap(({ name, row, column, cells }) => cells ?? widget.cellsOf(name, row, column)),
  );

/** A copy of a cell that can move over the frame. */
function ghostOf(cell, frame) {
  const [box, around] = [rectangleIn(cell, frame), rectangleIn(frame)];
  const ghost = h("span.ghost", { "aria-hidden": "true" });
  ghost.textContent = cell.value ?? cell.textContent;
  const place = { left: box.left - around.left, top: box.top - around.top };
  for (const [side, size] of Object.entries({ ...place, width: box.width, height: box.height }))
    ghost.style[side] = `${size}px`;
  return { ghost, box };
}

/** The movements of a step, which its clock holds: set(0) is before them, and set(1) after. */
function movement(widget, layer, { moves = [], fills = [] }) {
  const animations = [];
  const filled = entries(widget, fills);
  for (const { from, to } of moves) {
    const [given, targets] = [from, to].map((one) => [...entries(widget, [one])]);
    if (!targets.length) continue;
    given.forEach((cell, i) => {
      const { ghost, box } = ghostOf(cell, layer);
      const goal = rectangleIn(targets[Math.min(i, targets.length - 1)], layer);
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
      filled.delete(cell);
      animations.push(
        (cell.firstElementChild ?? cell).animate(
          [{ opacity: 0.15 }, { opacity: 0.15, offset: 0.75 }, { opacity: 1 }],
          { duration: MOVE, fill: "both" },
        ),
      );
    }
  }
  [...filled].forEach((cell, i) => {
    const delay = Math.min(STAGGER * i, MOVE / 2);
    const timing = { duration: MOVE - delay, delay, fill: "both" };
    animations.push(cell.animate([{ opacity: 0 }, { opacity: 1 }], timing));
  });
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

/** What a step says: its sentence, its line of code, and its numbers. */
function stepContent(attributes = {}) {
  const message = h("p.says", attributes);
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
  const fill = ({ labels, rows }) =>
    table.replaceChildren(
      columnHeads(null, ...labels.map((label) => label.replaceAll(/(?<=[,:]) /g, "\n"))),
      h(
        "tbody",
        ...rows.map(({ name, numbers }) =>
          namedRow(
            [name],
            numbers.map((value) => [value === null ? "" : format(value)]),
          ),
        ),
      ),
    );
  return {
    element: h(
      "div.told",
      { "data-output": "" },
      h("div", message, source),
      h("div", stages, copied.element),
    ),
    message,
    show({ message: text, code: line, table: numbers, torch: program = "" }) {
      typeset(message, text);
      source.hidden = !line;
      setText(origin, line ? `${line.name}: ` : "");
      setText(code, line?.line ?? "");
      stages.hidden = !numbers;
      if (numbers) fill(numbers);
      torch = program;
      copied.element.hidden = !torch;
      copied.follow();
    },
  };
}

/**
 * The bar that runs the steps, and the sentence of each. `name(widget)` is what is followed, and
 * `follow(widget)` what the steps get. `flows` are the outputs in the order in which they follow
 * from each other: after the last step those that an edit has changed flash in this order. In a
 * narrow widget the panel stands behind that of the boxes `beside` in which the step ends.
 */
export function journey(widget, { name, steps, follow = (one) => one, flows = [], beside = "" }) {
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
    change: () => find(shown), // let go: until then it must not move under the hand
  });
  const place = h("span.place");
  const content = stepContent({ role: "status" });
  let script; // what all steps return, of the numbers that are shown
  let [held, home] = [0, undefined]; // the width for which its height holds; what it stands behind
  let [posed, posing] = ["", false]; // the step whose `shows` the view has got, and while it does
  const controls = h("div.controls", start, back, bar, next, place, close);
  const element = h(
    "div.journey",
    { role: "group", "aria-label": "follow one word", keydown: keys },
    controls,
    content.element,
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
    const follow = at < last ? `Follow ${name(widget)}` : "Follow again";
    setText(start, playing ? "Pause" : at > 0 && at < last ? "Play on" : follow);
    back.disabled = at <= 0;
    next.disabled = at >= last;
  }

  const stepOf = (step) => (script ??= steps.map((one) => one(follow(widget))))[step - 1];

  /** Light and say what this step does; 0 is before the first. */
  function showStep(step) {
    moved?.end();
    moved = undefined;
    shown = step;
    const parts = [content.element, bar, back, next, place, close];
    for (const part of parts) part.hidden = step === 0;
    element.classList.toggle("under-way", step > 0);
    widget.frame?.classList.toggle("followed", step > 0);
    setText(place, `step ${step} of ${last}`);
    setAttribute(bar, "aria-valuetext", `step ${step} of ${last}`);
    if (!step) {
      stand(0);
      pose(0);
      light(widget, [], "lit");
      shade(0);
      return;
    }
    const one = stepOf(step);
    holdHeight();
    pose(step);
    content.show(one);
    light(widget, one.lit, "lit");
    shade(step);
    if (!still.matches) {
      widget.frame.append(layer);
      moved = movement(widget, layer, one);
    }
  }

  /** Let the view show what this step names, and after the end what the reader chose. */
  function pose(step) {
    const shows = step ? script.slice(0, step).findLast((one) => one.shows)?.shows : undefined;
    const own = JSON.stringify([step, shows]);
    if (own === posed) return; // the reader may have chosen another one since
    posed = own;
    show(shows);
    if (!step && held) [held, widget.frame.style.minHeight] = [0, ""];
  }
  function show(shows) {
    if (JSON.stringify(shows) === JSON.stringify(widget.shown)) return;
    widget.shown = shows;
    posing = true;
    widget.repaint("outputs");
    posing = false;
  }

  /** Leave empty what later steps compute, and dim what this one does not use. */
  function shade(step) {
    const marks = ["yet", "now", "dim"].map((mark) => `data-${mark}`);
    const mark = (kind, cells) => cells.forEach((cell) => cell.setAttribute(`data-${kind}`, ""));
    for (const old of widget.frame?.querySelectorAll(marks.map((one) => `[${one}]`)) ?? [])
      for (const one of marks) old.removeAttribute(one);
    if (!step) return;
    const fills = (from, to) =>
      entries(widget, times(to - from, (i) => stepOf(from + i + 1).fills ?? []).flat());
    const done = fills(0, step);
    mark(
      "yet",
      [...fills(step, last)].filter((cell) => !done.has(cell)),
    );
    const now = fills(step - 1, step);
    mark("now", now);
    if (step === last) return; // it is whole again
    const used = [...now, ...entries(widget, stepOf(step).lit), element];
    const unused = (part) => used.every((one) => !part.contains(one) && !one.contains(part));
    mark("dim", [...widget.frame.querySelectorAll("[data-output], .matrix")].filter(unused));
  }

  const isNarrow = () => widget.frame.clientWidth < NARROW;

  /**
   * As high as the longest step needs it, so that nothing below moves from step to step; on a phone
   * there is no room for that.
   */
  function holdHeight() {
    if (held === element.clientWidth) return;
    if (isNarrow()) {
      held = element.clientWidth;
      content.element.style.minHeight = widget.frame.style.minHeight = "";
      return;
    }
    const probe = stepContent();
    content.element.style.minHeight = "";
    controls.after(probe.element);
    const heights = times(last, (i) => {
      probe.show(stepOf(i + 1));
      return Math.ceil(rectangleIn(probe.element).height);
    });
    probe.element.remove();
    content.element.style.minHeight = `${Math.max(...heights)}px`;
    held = element.clientWidth;
    const before = widget.shown;
    widget.frame.style.minHeight = "";
    const views = [{ shows: before }, ...script].map(({ shows }) => {
      show(shows ?? widget.shown);
      return widget.frame.offsetHeight;
    });
    widget.frame.style.minHeight = `${Math.max(...views)}px`;
    show(before);
  }

  /** The box behind which it stands at this step. */
  function boxOf(step) {
    home ??= element.previousElementSibling;
    const narrow = step && beside && isNarrow();
    return (narrow && goalOf(step)?.closest(beside)) || home;
  }
  const goalOf = (step) => [...entries(widget, stepOf(step).lit.slice(-1))][0];

  /** Stand behind that box, and keep the focus. */
  function stand(step) {
    if (!element.isConnected || boxOf(step) === element.previousElementSibling) return;
    const focused = /** @type {ShadowRoot} */ (element.getRootNode()).activeElement;
    boxOf(step)?.after(element);
    if (element.contains(focused)) /** @type {any} */ (focused).focus({ preventScroll: true });
  }

  /** Go to this step; forward it moves. */
  function go(step) {
    pause();
    const goal = Math.max(0, Math.min(last, step));
    run(goal, goal < at ? goal : Math.max(at, goal - 1));
    find(goal);
  }

  /**
   * Bring what this step lights into sight, with the panel, or at least its sentence, and if there
   * is room what the steps `until` that one light and fill: only for a press, and at once.
   */
  function find(step, until = step) {
    if (!step) return;
    stand(step);
    const of = (key) =>
      times(until - step + 1, (i) => [...entries(widget, stepOf(until - i)[key] ?? [])]).flat();
    for (const part of [...of("fills"), ...of("lit"), element, goalOf(step), content.message])
      part?.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  }

  /** Whether what this step is about is in sight, so that the clock may go on to it. */
  function inSight(step) {
    const top = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const parts = [goalOf(step) ?? element, content.message];
    const boxes = parts.map((part) => part.getBoundingClientRect());
    const seen = boxes.every((box) => box.top >= Math.min(top, 60) && box.bottom <= innerHeight);
    return seen && boxOf(step) === element.previousElementSibling;
  }

  /** Let the clock run from this moment to the end of a step, and then call `then`. */
  function run(step, from, then = () => {}) {
    clock += 1;
    const own = clock;
    const begun = performance.now();
    const tick = () => {
      if (own !== clock || !element.isConnected) return; // stopped, or another run has begun
      const passed = (performance.now() - begun) / MOVE;
      const moment = still.matches ? step : Math.min(step, Math.max(from + passed, step - 0.999));
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
        const words = content.message.textContent.split(" ").length;
        rest = setTimeout(() => goOn(step + 1), within(PER_WORD * words, [LEAST_READ, MOST_READ]));
      }
    });
  }
  /** The clock goes on to a step that can be seen, and else waits for a press. */
  function goOn(step) {
    if (inSight(step)) advance(step);
    else stop();
  }
  function play() {
    if (playing) {
      stop();
      return;
    }
    if (at >= last) set(0);
    const step = Math.floor(at) + 1;
    if (still.matches) {
      go(step); // each press is one step
      return;
    }
    playing = true;
    advance(step);
    find(step, last);
    inView.observe(widget.frame);
  }
  /** A reader who has scrolled away is let go: it pauses, and its button says so. */
  const inView = new IntersectionObserver(
    (changes) => {
      const { intersectionRect: seen, boundingClientRect: box, rootBounds } = changes.at(-1);
      if (seen.height < ENOUGH * Math.min(box.height, rootBounds?.height ?? innerHeight)) stop();
    },
    { threshold: times(51, (i) => i / 50) },
  );
  function pause() {
    inView.disconnect();
    clearTimeout(rest);
    clock += 1;
    playing = false;
  }
  function stop() {
    pause();
    set(at);
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

  resized(() => shown > 0 && holdHeight(), element);
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
      if (widget.behind || posing) return; // the answer is still on its way
      flash(outputs);
      shown = -1; // the numbers in its sentence may have changed
      script = undefined;
      queueMicrotask(() => set(at)); // when every part has filled its cells
    },
  };
}
journey.style = `${copyAsTorch.style}
.frame { position: relative; }
.journey { border: 1px solid var(--line); border-radius: 8px; padding: 6px 10px;
  background: var(--ground); }
.journey.under-way { width: 100%; }
.followed .explained { position: static; }
.controls { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.journey:not(.under-way) .start { border-color: var(--accent); font-weight: 600;
  padding: 4px 14px; }
.controls input[type=range] { flex: 1 1 3rem; min-width: 3rem; }
.controls .place { font-size: var(--size-note); color: var(--soft); white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.journey > .told { display: flex; flex-wrap: wrap; gap: 4px 24px; align-content: flex-start;
  align-items: flex-end; position: relative; margin-top: 6px; }
.journey > .told > div { min-width: 0; }
.journey > .told > div:is(:first-child, :has(.snippet)) { flex: 1 1 24rem; align-self: flex-start; }
.told .copying { justify-content: flex-end; margin-top: 4px; }
.journey .says { margin: 0; line-height: 1.6; max-width: 90ch;
  font-variant-numeric: tabular-nums; }
.journey .code { margin: 2px 0 0; font-size: var(--size-note); color: var(--soft);
  overflow-wrap: anywhere; }
.journey code { padding: 1px 5px; border-radius: 4px; color: var(--text); font: var(--size-note)/1.6
  var(--mono); background: color-mix(in oklab, var(--ground), var(--accent) 14%); }
.stages { margin: 0; font-size: var(--size-note); }
.stages :is(td, th) { padding: 1px 4px; text-align: center; font-size: var(--size-note);
  min-width: 2.75rem; }
.stages :is(tbody th, thead td) { padding-left: 0; text-align: left; }
.stages th { max-width: none; }
.stages thead th { white-space: pre-line; vertical-align: bottom; }
.stages tbody tr:last-child td { font-weight: 650; color: var(--text); }
.frame :is(td, .matrix input).lit.lit { box-shadow: inset 0 0 0 2px var(--accent); }
/* What is not computed yet: its place, which is neither read out nor pressed. */
[data-yet] { visibility: hidden; position: relative; background: none !important; }
[data-yet]::before { content: ""; visibility: visible; position: absolute; inset: 1px;
  border: 1px solid var(--line); border-radius: 4px; opacity: .8; pointer-events: none; }
[data-yet].lit { visibility: visible; }
[data-yet].lit > * { visibility: hidden; }
[data-yet] [data-yet]::before, span[data-yet]:not(.pixel-map)::before { display: none; }
:has(> [data-yet], > label > [data-yet]) { --tl-heat: 0 !important; }
[data-dim] { opacity: .3; }
[data-dim] [data-dim], [data-dim]:is(:hover, :focus-within), .explained[data-dim]:not(.idle) {
  opacity: 1; }
.ghosts { position: absolute; inset: 0; pointer-events: none; z-index: 3; }
.ghost { position: absolute; display: grid; place-items: center; font-size: var(--size-note);
  border: 2px solid var(--accent); border-radius: 5px; background: var(--ground);
  font-variant-numeric: tabular-nums; }
.followed .scroll { scroll-padding-inline: 0 44px; } /* where it fades */
@container widget (width < 600px) { /* whatever its button says, the line holds it */
  .controls .place { flex: 1 0 100%; order: 1; }
  .note[data-yet] { display: none; }
}
@container widget (min-width: 53.75rem) { /* a button beside the title, until it is under way */
  :is(.frame, .side) > .journey:not(.under-way) { position: absolute; top: 7px; right: 16px;
    border: 0; padding: 0; }
}
@media print {
  .journey, [data-yet]::before { display: none; }
  [data-yet], [data-yet] > * { visibility: visible !important; }
  [data-dim] { opacity: 1; }
}
`;
