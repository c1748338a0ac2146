// Numbers to type and to slide. Each control edits inputs of its widget, and its `data-input` names
// them; a control that only changes what is shown has none.

import { parseNumber } from "../page/inputs.js";
import { h, mathText, setAttribute, setText, typeset } from "./dom.js";
import { formatExact, within } from "./numbers.js";

/** The default limits of an entry. */
export const everywhere = ({ spec: { max } }) => [-max.entry, max.entry];

/** The rows of the input `name`; a vector is its own one row. */
export const rowsOf = (inputs, name) =>
  Array.isArray(inputs[name]?.[0]) ? inputs[name] : [inputs[name]];

/** How to find and to set the input `name`, or its entry number `entry`. */
const placeOf = (name, entry) => ({
  read: (inputs) => (entry === undefined ? inputs[name] : inputs[name][entry]),
  put: (next, value) => {
    if (entry === undefined) next[name] = value;
    else next[name][entry] = value;
  },
  // edits of it are one step to undo
  field: () => (entry === undefined ? name : `${name} ${entry}`),
});

/**
 * A box for one number: the input `name`, its entry number `entry`, or what `read` finds and `put`
 * sets. Beyond `limits` it is refused as one of `called`. `follow()` shows what the inputs hold,
 * unless something else is half typed; the arrow keys go by `step`; `label` is read out, `focus`
 * is called, `form` is how the number is written, and `more` are attributes and listeners of its
 * owner.
 */
export function numberBox(widget, name, { entry, ...options } = /** @type {any} */ ({})) {
  const {
    read,
    put,
    field,
    limits = widget.spec.limits?.[name],
    called = "",
    step: by = 0.1,
    form = formatExact,
    label,
    focus,
    ...more
  } = { ...placeOf(name, entry), ...options };
  const [low, high] = limits ?? everywhere(widget);
  const value = () => read(widget.inputs);
  const now = () => form(value());
  const use = (finished) => {
    const { value: typed, error } = parseNumber(box.value, [low, high], called);
    box.setAttribute("aria-invalid", String(Boolean(error)));
    const halfway = !finished && /^\s*[+−-]?(0?\.?0*|\d*\.?\d*e[+-]?)\s*$/i.test(box.value);
    if (error) {
      if (!halfway) widget.announce(error);
      return false;
    }
    const taken = widget.edit(field(), (next) => put(next, typed));
    box.setAttribute("aria-invalid", String(!taken)); // 2.5 is a number, but no whole one
    return taken;
  };
  const finish = () => {
    if (value() === undefined) return; // its row is gone, and the box with it
    if (box.dirty && !use(true)) {
      widget.announce(
        `${widget.pendingMessage?.[0] ?? widget.problemLine.textContent} The entry keeps ${now()}.`,
      );
    }
    box.settle();
  };
  const box = h("input", {
    type: "text",
    inputmode: "text",
    autocomplete: "off",
    "data-input": name,
    "aria-label": label ?? false,
    ...more,
    focus: () => {
      box.select();
      focus?.();
    },
    compositionstart: () => {
      box.dirty = true;
      box.kept = undefined;
    },
    input: () => {
      box.dirty = true;
      box.kept = undefined;
      use(false);
      box.kept = value();
    },
    blur: () => finish(),
    keydown: (event) => {
      if (event.key === "Enter") finish();
      const step = { ArrowUp: by, ArrowDown: -by }[event.key];
      if (!step) return;
      event.preventDefault();
      const moved = Number((value() + (event.shiftKey ? 10 * step : step)).toFixed(4));
      box.value = form(Math.max(low, Math.min(high, moved)));
      use(true);
    },
  });
  box.settle = () => {
    box.dirty = false;
    box.removeAttribute("aria-invalid");
    if (box.value !== now()) box.value = now();
  };
  box.follow = () => {
    // What is half typed stays, unless the number was changed from elsewhere meanwhile.
    const typing =
      box.dirty &&
      box === box.getRootNode().activeElement &&
      [undefined, value()].includes(box.kept);
    if (!typing) box.settle();
  };
  return box;
}

const BY_KEY = {
  ArrowUp: 1,
  ArrowRight: 1,
  PageUp: 10,
  ArrowDown: -1,
  ArrowLeft: -1,
  PageDown: -10,
};

/** A slider that goes by equal steps. */
const evenly = (step) => ({
  at: Number,
  of: Number,
  next: (value, by) => Number((value + by * step).toFixed(4)),
});

/** A slider that goes by the logarithm, in steps of two digits. */
const byDigits = {
  at: Math.log10,
  of: (place) => Number((10 ** place).toPrecision(2)),
  next(value, by) {
    const digit = 10 ** (Math.floor(Math.log10(by < 0 ? value * 0.9999 : value)) - 1);
    return Number((value + by * digit).toPrecision(2));
  },
};

/** The one of these numbers whose logarithm, to the base of 2, is next to `log`. */
export const nearestOf = (choices, log) =>
  choices.reduce((best, value) =>
    Math.abs(Math.log2(value) - log) < Math.abs(Math.log2(best) - log) ? value : best,
  );

/** A slider that goes by the logarithm, from one of these numbers to the next. */
const among = (choices) => ({
  at: Math.log2,
  of: (place) => nearestOf(choices, place),
  next: (value, by) =>
    by > 0
      ? (choices.filter((choice) => choice > value)[by - 1] ?? choices.at(-1))
      : (choices.filter((choice) => choice < value).at(by) ?? choices[0]),
});

/**
 * A slider over a number, and a box to type it: the input `name`, its entry number `entry`, or what
 * `read` finds and `put` sets; `also(next)` changes what else hangs on it. Its options, of which
 * `label`, `named` and `ends` may be functions of the inputs and the widget:
 *
 * - `label` stands before it, and `about` says more of it; `named` is what it is called where it is
 *   not seen, and `edits` the inputs that it changes.
 * - `limits` are those of what is typed, `ends` those of the slider.
 * - The slider goes by `step`, or by `scale`: "log", a list of numbers to go through by their
 *   logarithms, or { at(value), of(place), next(value, by) }.
 * - `say(value, inputs)` is the number in words. They stand in the place of the box, and so does
 *   the number if `box` is false. `note(value, inputs, widget)` says below what it does.
 * - `bound(inputs, outputs)` is the number that it is bound to, and undefined while it is free.
 * - `slide(value)` is what sliding does, if it edits nothing.
 */
export function knob(widget, name, label, { entry, ...options } = /** @type {any} */ ({})) {
  const {
    read,
    put,
    field,
    also,
    about = "",
    named = label,
    edits = name,
    limits = widget.spec.limits?.[name],
    ends = limits,
    step = 1,
    scale,
    describe,
    box: boxed = !describe,
    note,
    bound,
    slide = (value) => widget.edit(field(), (next) => set(next, value)),
  } = { ...placeOf(name, entry), ...options };
  const set = (next, value) => {
    put(next, value);
    also?.(next);
  };
  const { at, of, next } =
    scale === "log" ? byDigits : Array.isArray(scale) ? among(scale) : (scale ?? evenly(step));
  const textOf = (text, inputs) => (typeof text === "function" ? text(inputs, widget) : text);
  const endsOf = (inputs) => textOf(ends, inputs);
  const move = (value) => {
    const inner = within(value, endsOf(widget.inputs));
    slide(limits ? within(inner, limits) : inner);
  };
  const title = h("span", { "aria-hidden": "true" });
  const more = h("span.about", { "aria-hidden": "true" }, about);
  const box =
    boxed &&
    numberBox(widget, name, {
      read,
      put: set,
      field,
      limits,
      called: typeof label === "string" ? label : name,
      step: widget.spec.kinds[name] === "Int" ? 1 : step,
      class: "number",
      "data-input": edits,
    });
  const shown = box || h("b", { "aria-hidden": "true" });
  const range = h("input", {
    type: "range",
    step: scale ? "any" : String(step),
    "data-input": edits || false,
    input: () => move(of(Number(range.value))),
    keydown: (event) => {
      const by = BY_KEY[event.key];
      if (!by) return;
      event.preventDefault();
      move(next(within(read(widget.inputs), endsOf(widget.inputs)), by));
    },
  });
  const called = h(
    box ? "label" : "span",
    { class: "called" },
    title,
    ...(about ? [more] : []),
    shown,
  );
  const below = h("span.says");
  return {
    element: h("div.knob", called, range, ...(note ? [below] : [])),
    called,
    range,
    shows: bound ? undefined : "inputs",
    update(inputs, outputs) {
      const tied = bound?.(inputs, outputs);
      const value = tied ?? read(inputs);
      const [low, high] = endsOf(inputs);
      const text = textOf(label, inputs);
      if (title.dataset.name !== text) title.replaceChildren(...mathText(text));
      title.dataset.name = text;
      setAttribute(range, "aria-label", `${textOf(named, inputs)}${about && `, ${about}`}`);
      setAttribute(range, "min", String(at(low)));
      setAttribute(range, "max", String(at(high)));
      range.disabled = tied !== undefined || value === undefined;
      range.value = String(at(within(value ?? 0, [low, high])));
      const valueText =
        value === undefined ? "" : (describe?.(value, inputs) ?? formatExact(value));
      setAttribute(range, "aria-valuetext", valueText);
      if (note) setText(below, note(value, inputs, widget));
      if (!box) {
        typeset(shown, valueText);
        return;
      }
      setAttribute(box, "aria-label", `${textOf(named, inputs)}, typed`);
      box.disabled = range.disabled;
      if (tied === undefined) box.follow();
      else box.value = formatExact(tied);
    },
  };
}

/**
 * A knob for whichever matrix entry was touched last; its reach only grows while one entry slides.
 */
export function entrySlider(widget) {
  let reached = ""; // the entry that slides
  let reach = 3;
  const held = (inputs) => {
    const { name, row, column } = widget.entry ?? {};
    const value = name && rowsOf(inputs, name)[row]?.[column];
    return typeof value === "number" ? value : undefined;
  };
  const part = knob(widget, "", (inputs) => nameOf(widget, held(inputs)), {
    read: held,
    put(next, value) {
      const { name, row, column } = widget.entry;
      rowsOf(next, name)[row][column] = value;
    },
    field: () => Object.values(widget.entry).join(" "),
    scale: {
      at: Number,
      of: (value) => Number(value.toFixed(2)),
      next: (value, by) => Number((value + 0.05 * by).toFixed(2)),
    },
    ends(inputs) {
      const value = held(inputs) ?? 0;
      const now = Object.values(widget.entry ?? {}).join(" ");
      reach = Math.max(3, Math.ceil(Math.abs(value)), reached === now ? reach : 0);
      reached = now;
      return [-reach, reach];
    },
    box: false,
  });
  const { update } = part;
  return {
    ...part,
    element: h("div.narrow", part.element), // its label may be long
    update(inputs, outputs) {
      update(inputs, outputs);
      if (part.range.disabled) part.range.removeAttribute("data-input");
      else setAttribute(part.range, "data-input", widget.entry.name);
    },
  };
}

/** "W_q, row the, column 3", or what to do if no entry was touched. */
function nameOf(widget, value) {
  if (value === undefined) return "Touch a number, then slide it here.";
  const { name, row, column } = widget.entry;
  const axes = widget.spec.inputs[name].split(" ");
  const place =
    axes.length > 1
      ? `row ${widget.labels(axes[0], widget.inputs[name].length)[row]}, column`
      : "entry";
  return `${name[0].toUpperCase()}${name.slice(1)}, ${place} ${column + 1}:`;
}

export const KNOBS = `
/* One row: label, track, value, each in its own column, so that nothing moves with a number. */
.knob { display: grid; grid-template: "label track value" auto "about says says" auto
  / minmax(0, var(--label, 9.5em)) minmax(5.625rem, 1fr) var(--number, 4.25rem); gap: 0 12px;
  align-items: center; min-width: 0; max-width: 40rem; font-size: var(--size-note);
  font-variant-numeric: tabular-nums; }
.called { display: flex; gap: 8px; align-items: center; font-weight: 600; }
.knob > .called { display: contents; }
.called > :first-child { grid-area: label; overflow-wrap: anywhere; line-height: 1.25; }
.called > :is(b, input) { grid-area: value; font-weight: 400; text-align: right; }
.called > button { grid-area: about; justify-self: start; font-weight: 400; }
.narrow > .knob > .called > :first-child { min-height: 2.9em; } /* it may be a hint of two lines */
.knob:has(input:disabled) .called { font-weight: 400; }
.knob input.number { width: 100%; }
input.number { min-width: 0; width: 4.25rem; text-align: right; border-color: var(--line);
  font-variant-numeric: tabular-nums; }
.knob input[type=range] { grid-area: track; width: 100%; }
.knob input:disabled { opacity: .55; }
.knob .about { grid-area: about; color: var(--soft); font-size: var(--size-small);
  font-weight: 400; line-height: 1.25; }
.knob .says { grid-area: says; color: var(--soft); font-size: var(--size-small); line-height: 1.3;
  min-height: 1.3em; }
.knobs { display: grid; gap: 4px 24px; min-width: 0; }
.row > .knob { flex: 1 1 18.75rem; }
.row > .knobs { flex: 1 1 16.25rem; }
/* Where there is less room, the track has a line of its own. */
.row .knobs > .knob, .narrow > .knob { grid-template: "label value" auto "track track" auto
  "about about" auto "says says" auto / minmax(0, 1fr) var(--number, 4.25rem);
  align-content: start; }
@media (max-width: 37.5rem) {
  .knob { grid-template: "label value" auto "track track" auto "about about" auto
    "says says" auto / minmax(0, 1fr) var(--number, 4.25rem); }
}
/* one that lies over a picture, and points into it from below */
.pointer input[type=range] { position: absolute; left: -.75rem; top: 0; width: calc(100% + 1.5rem);
  height: 3.75rem; margin: 0; appearance: none; background: none; cursor: ew-resize;
  touch-action: pan-y; }
.pointer input[type=range]::-webkit-slider-runnable-track { background: none; height: 3.75rem; }
.pointer input[type=range]::-moz-range-track { background: none; height: 3.75rem; }
.pointer input[type=range]::-webkit-slider-thumb { appearance: none; width: 1.5rem; height: 3.75rem;
  border: 0; background: none;
  background: radial-gradient(circle at 50% 2.875rem, var(--text) 0 6.5px, transparent 7.5px); }
.pointer input[type=range]::-moz-range-thumb { width: 1.5rem; height: 3.75rem; border: 0;
  border-radius: 0;
  background: radial-gradient(circle at 50% 2.875rem, var(--text) 0 6.5px, transparent 7.5px); }
.pointer input[type=range]:focus-visible { outline: 2px solid var(--accent); outline-offset: 0;
  border-radius: 6px; }
input[type=range] { width: 11.875rem; height: 1.75rem; margin: 0; accent-color: var(--accent); }
`;
