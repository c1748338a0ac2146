// Choices, switches and buttons that edit inputs: each names them by its `data-input`. One that
// only changes what is shown has none. Numbers are in knobs.js.

import { resized } from "./boxes.js";
import { h, mathText } from "./dom.js";

/**
 * A radio button of the input `name`; choosing it does `choose()`, or sets the input to `value`.
 */
export function radio(
  widget,
  name,
  value,
  { edits = name, choose, ...more } = /** @type {any} */ ({}),
) {
  const set = () =>
    widget.edit(Symbol(name), (next) => {
      next[name] = value;
    });
  return h("input", {
    type: "radio",
    name,
    value: String(value),
    "data-input": edits || false,
    change: choose ?? set,
    ...more,
  });
}

/** Where segments take several lines, all lines have about as many. */
function balance(box) {
  box.style.removeProperty("--least");
  const tops = [...box.children].map(({ offsetTop }) => offsetTop);
  const most = Math.ceil(tops.length / new Set(tops).size);
  if (most < tops.length) box.style.setProperty("--least", `${Math.floor(100 / most)}%`);
}

/**
 * One of several, all of which are seen: the input `name` is the place of the chosen one. `entries`
 * are texts, or { title, about, value }; or groups of them by their headings, as an object. If it
 * is no input, `read(inputs)` is the place, and `choose(place)` changes it, and so the inputs in
 * `edits`, if any.
 */
export function choice(
  widget,
  name,
  label,
  entries,
  { read = undefined, choose = undefined, edits = choose ? "" : name } = {},
) {
  const groups = Array.isArray(entries) ? { [label]: entries } : entries;
  const picks = [];
  const pick = (given) => {
    const { title = given, about, value = picks.length } = Object(given);
    const button = radio(widget, name, value, { edits, choose: choose && (() => choose(value)) });
    const element = h(
      "label.pick",
      button,
      h("span.what", title),
      ...(about ? [h("span.about", about)] : []),
    );
    picks.push({ button, element, value });
    return element;
  };
  const bars = Object.entries(groups).map(([title, list]) =>
    h(
      "div.kind",
      h("span.of", { "aria-hidden": String(title === label) }, title),
      h("div.picks", ...list.map(pick)),
    ),
  );
  const element = h("div.choice", { role: "radiogroup", "aria-label": label }, ...bars);
  resized(() => bars.forEach(({ lastElementChild: bar }) => balance(bar)), element);
  return {
    element,
    shows: choose ? undefined : "inputs",
    update(inputs) {
      const now = read ? read(inputs) : inputs[name];
      for (const { button, element, value } of picks) {
        button.checked = value === now;
        element.classList.toggle("chosen", value === now);
      }
    },
  };
}

/** A text as it is offered: on one line, and a long story by its end. */
function onOneLine(text) {
  const end = text.split(" . ").at(-1);
  return end === text ? text.trim().replace(/\s+/g, " ") : `… ${end}`;
}

/**
 * Texts to start from, for the input `name`: `groups` are lists of them by their headings.
 * `also(next, widget)` changes what else hangs on the text. A `menu` does not say again which of
 * them it is, where the text itself stands beside it. In the list a text is `named(text)`.
 */
export function offers(
  widget,
  name,
  label,
  groups,
  also = (_next, _widget) => {},
  { menu = false, named = onOneLine } = {},
) {
  const texts = Object.values(groups).flat();
  const list = h(
    "select",
    {
      "data-input": name,
      change: () =>
        list.value &&
        widget.edit(Symbol("offer"), (next) => {
          next[name] = list.value;
          also(next, widget);
        }),
    },
    h("option", { value: "" }, "choose one …"),
    ...Object.entries(groups).map(([title, group]) =>
      h(
        "optgroup",
        { label: title },
        ...group.map((text) => h("option", { value: text }, named(text))),
      ),
    ),
  );
  return {
    element: h("label.offer", h("span", label), list),
    shows: "inputs",
    update(inputs) {
      list.value = !menu && texts.includes(inputs[name]) ? inputs[name] : "";
    },
  };
}

/** A switch over the truth value `name`; `also(next, on)` changes what else hangs on it. */
export function toggle(widget, name, label, also = (_next, _on) => {}) {
  const box = h("input", {
    type: "checkbox",
    "data-input": name,
    change: () =>
      widget.edit(Symbol(name), (next) => {
        next[name] = box.checked;
        also(next, box.checked);
      }),
  });
  return {
    element: h("label.toggle", box, h("span", ...mathText(label))),
    shows: "inputs",
    update(inputs) {
      box.checked = inputs[name];
    },
  };
}

/** A button that changes the inputs named in `edits`; one that `goes` by it hands the focus on. */
export function action(widget, edits, label, change, { goes = false } = {}) {
  const button = h(
    "button",
    {
      "data-input": edits,
      click: () => {
        if (goes) widget.leave(button);
        widget.edit(Symbol(label), change);
      },
    },
    label,
  );
  return button;
}

/** A button that takes the next of the numbers that look like chance. */
export const redraw = (widget, label, also = (_next) => {}) =>
  action(widget, "seed", label, (next) => {
    next.seed = (next.seed % widget.spec.limits.seed[1]) + 1;
    also(next);
  });

export const CONTROLS = `
.choice { display: flex; flex-wrap: wrap; gap: 10px 22px; min-width: 0; }
.kind { display: grid; gap: 4px; min-width: 0; align-content: start; }
.kind > .of { font-size: var(--size-note); color: var(--soft); }
/* Segments of one bar; lines between them are drawn by their shadows, also where they wrap. */
.picks { display: flex; flex-wrap: wrap; width: fit-content; max-width: 100%; overflow: hidden;
  border: 1px solid var(--line); border-radius: 8px; }
.pick { position: relative; flex: 1 0 auto; min-width: var(--least, 0); max-width: 100%;
  min-height: 2rem; padding: 6px 12px;
  box-shadow: 1px 0 var(--line), 0 1px var(--line); cursor: pointer; text-align: center;
  font-size: var(--size-note); line-height: 1.25; }
.pick input[type=radio] { position: absolute; inset: 0; width: 100%; height: 100%; opacity: 0;
  cursor: pointer; }
.pick .about { display: block; color: var(--soft); font-size: var(--size-small); }
.pick:hover { background: color-mix(in oklab, var(--ground), var(--accent) 7%); }
.pick.chosen { background: color-mix(in oklab, var(--ground), var(--accent) 14%);
  box-shadow: inset 0 -3px var(--accent), 1px 0 var(--line), 0 1px var(--line); }
.pick:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: -2px;
  border-radius: 8px; }
@media (max-width: 37.5rem) { .pick { padding-inline: 6px; } }
.row > .choice { flex: 0 1 auto; }
.row > .offer { flex: 1 1 15rem; min-width: 0; }
.offer { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; font-size:
  var(--size-note); color: var(--soft); }
.offer select { font: inherit; color: var(--text); background: var(--ground);
  border: 1px solid var(--line); border-radius: 6px; min-height: 1.875rem; padding: 2px 6px;
  flex: 1 1 13.75rem; min-width: 0; max-width: 100%; text-overflow: ellipsis; }
@media (pointer: coarse) { .offer select { font-size: var(--size-touch); } }
.toggle { display: inline-flex; gap: 7px; align-items: center; min-height: 1.75rem; font-size:
  var(--size-note); cursor: pointer; }
:is(input[type=checkbox], input[type=radio]) { width: 1.5rem; height: 1.5rem; margin: 0; flex: none;
  accent-color: var(--accent); }
.label { margin: 0; }
`;
