// Parts for vectors too wide for numbers: colour strips, one entry of which is read and bent.

import { knows } from "../page/inputs.js";
import { action } from "./controls.js";
import { AS_IS, h, setAttribute, setText } from "./dom.js";
import { knob } from "./knobs.js";
import { lines } from "./lines.js";
import { format } from "./numbers.js";
import { paint, pixelAt } from "./pixels.js";
import { fillList } from "./sentences.js";

/** A canvas that tells which entry the pointer is over; `choose` is called with the one clicked. */
function field(choose, hover) {
  const canvas = h("canvas", { role: "img" });
  const marker = h("span.marker");
  const at = (event) => {
    const [row, column] = pixelAt(canvas, event);
    return row * canvas.width + column;
  };
  const element = h(
    "div.field",
    {
      click: (event) => choose(at(event)),
      pointermove: (event) => hover(at(event)),
      pointerleave: () => hover(null),
    },
    canvas,
    marker,
  );
  const point = (entry) => {
    const { width, height } = canvas;
    marker.style.left = `${(100 * (entry % width)) / width}%`;
    marker.style.top = `${(100 * Math.floor(entry / width)) / height}%`;
    marker.style.width = `${100 / width}%`;
    marker.style.height = `${100 / height}%`;
  };
  return { element, canvas, point };
}

/** The entry that is looked at, in all vectors of a widget. */
const chosen = (widget, D) => Math.min(widget.column ?? 0, D - 1);

function choose(widget, column) {
  widget.column = column;
  widget.repaint();
}

/**
 * The output `name` (words × D) as a thin strip for each word; the chosen word and entry are
 * marked. A dot is at those that differ from what they were in the sentence before, a warning at
 * words that are not in the `vocabulary`. With `handed`, a line leads on from the last one.
 */
export function strips(widget, name, label, { vocabulary = "", handed = false } = {}) {
  const line = lines();
  line.element.classList.add("thick");
  const known = widget.spec.sentences[vocabulary];
  let [text, before] = [[], /** @type {any} */ (null)]; // words, and numbers of those before
  const list = h("ol.strips", { "data-output": name, "aria-label": label });
  const value = h("span.read");
  const fields = new WeakMap(); // li -> its field
  let [shown, last] = [/** @type {any} */ (null), /** @type {any} */ (null)];
  const read = (row, column) => {
    const { data } = shown;
    const [, D] = shown.shape;
    setText(value, `“${text[row]}”, entry ${column + 1}: ` + `${format(data[row * D + column])}`);
  };
  const readChosen = () => read(widget.query, chosen(widget, shown.shape[1]));
  const make = (i) => {
    const part = field(
      (column) => {
        widget.query = i;
        choose(widget, column);
      },
      (column) => (column === null ? readChosen() : read(i, column)),
    );
    const li = h("li", h("button", { ...AS_IS, click: () => widget.look(i) }), part.element);
    fields.set(li, part);
    return li;
  };
  return {
    element: h(
      "div.column.strip",
      h("p.caption", h("b", label), " ", value),
      handed ? h("div.leads", list, line.element) : list,
    ),
    shows: "outputs",
    update(inputs, outputs) {
      shown = outputs[name];
      const { data } = shown;
      const [rows, D] = shown.shape;
      const words = widget.words(widget.spec.outputs[name].split(" ")[0], inputs);
      if (rows !== words.length) return; // the answer is still on its way
      if (words.join(" ") !== text.join(" ")) {
        before = text.length ? last : null;
        text = words;
      }
      last = data;
      const changed = (i) =>
        Boolean(before) &&
        data.subarray(i * D, (i + 1) * D).some((v, j) => !(Math.abs(v - before[i * D + j]) < 1e-3));
      const most = Math.max(
        1,
        data.reduce((m, v) => Math.max(m, Math.abs(v)), 0),
      );
      fillList(list, words, make, (li, word, i) => {
        const { canvas, point } = fields.get(li);
        setText(li.firstChild, word);
        li.classList.toggle("query", i === widget.query);
        li.classList.toggle("new", changed(i));
        li.classList.toggle("unknown", Boolean(known) && !knows(known, word));
        setAttribute(li.firstChild, "aria-pressed", String(i === widget.query));
        setAttribute(canvas, "aria-label", `${label}: ${D} numbers for “${word}”`);
        paint(canvas, data.subarray(i * D, (i + 1) * D), D, { most });
        point(chosen(widget, D));
      });
      line.fromLast(rows);
      readChosen();
    },
  };
}

/**
 * The output `name` (D) as a block of cells, and two sliders: which entry, and its new value. The
 * input that `delta` names holds the difference of each entry from the last row of `from`; `first`
 * is the entry, counted from 1, that is chosen at the start.
 */
export function editableVector(widget, name, label, { delta, from, first = 1 }) {
  const D = widget.spec.limits.D[0];
  let width = Math.min(12, D); // cells in a row, all rows full
  while (D % width) width -= 1;
  widget.column = first - 1;
  const value = h("span.read");
  const { element, canvas, point } = field(
    (entry) => choose(widget, entry),
    (entry) => read(entry ?? chosen(widget, shown.length)),
  );
  element.dataset.output = name;
  let shown;
  const read = (entry) => setText(value, `entry ${entry + 1}: ${format(shown[entry])}`);
  const which = knob(widget, "", `which of the ${D} numbers:`, {
    read: () => chosen(widget, D) + 1,
    slide: (value) => choose(widget, value - 1),
    ends: [1, D],
    describe: String,
  });
  let original; // the last row, unchanged
  const size = knob(widget, delta, "its value:", {
    read: (inputs) => original[chosen(widget, D)] + inputs[delta][chosen(widget, D)],
    put(next, value) {
      const entry = chosen(widget, D);
      next[delta][entry] = Number((value - original[entry]).toFixed(4));
    },
    field: () => `${delta} ${chosen(widget, D)}`,
    limits: [-1, 1], // a state is made by tanh and by means of such numbers
    step: 0.01,
    describe: (value, inputs) =>
      format(value) +
      (inputs[delta][chosen(widget, D)] ? ` (was ${format(original[chosen(widget, D)])})` : ""),
  });
  const back = action(
    widget,
    delta,
    "Put all numbers back",
    (next) => {
      next[delta].fill(0);
    },
    { goes: true },
  );
  const count = h("span.soft");
  return {
    element: h(
      "div.column.strip",
      h("p.caption", h("b", label), " ", value),
      element,
      h("div.bend.narrow", which.element, size.element, h("div.foot", back, count)),
    ),
    reset() {
      widget.column = first - 1;
    },
    update(inputs, outputs) {
      shown = outputs[name].data;
      const { data } = outputs[from];
      const [rows] = outputs[from].shape;
      original = data.subarray((rows - 1) * D, rows * D);
      paint(canvas, shown, width);
      setAttribute(canvas, "aria-label", `${label}: ${D} numbers`);
      const entry = chosen(widget, D);
      point(entry);
      read(entry);
      which.update(inputs);
      size.update(inputs);
      setAttribute(which.range, "aria-valuetext", `entry ${entry + 1}, ${format(shown[entry])}`);
      const changed = inputs[delta].filter(Boolean).length;
      back.disabled = changed === 0;
      setText(count, changed ? `${changed} of ${D} numbers changed` : "");
    },
  };
}

strips.style = `
.strip { min-width: 0; }
.caption { margin: 0; font-size: var(--size-note); display: flex; flex-wrap: wrap; gap: 0 12px;
  justify-content: space-between; }
.caption b { font-weight: 600; }
.read, .strip .soft { color: var(--soft); font-variant-numeric: tabular-nums;
  font-size: var(--size-note); }
.strips { list-style: none; margin: 0; padding: 0; display: grid; grid-auto-rows: 1.625rem; }
.strips li { display: grid; grid-template-columns: 5.125rem 1fr; gap: 6px; align-items: center; }
.strips button { border: 0; padding: 0 4px; min-height: 1.5rem; text-align: right;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.strips .new button::before { content: "● "; content: "● " / "changed: "; }
.strips .unknown button::before { content: "⚠ "; content: "⚠ " / "unknown: "; }
.strips .query button { color: var(--accent); font-weight: 650; }
.field { position: relative; cursor: crosshair; height: .75rem; border: 1px solid var(--line);
  touch-action: manipulation; }
.strips .query .field { outline: 2px solid var(--accent); outline-offset: 0; }
.marker { position: absolute; outline: 1px solid var(--text); pointer-events: none; min-width: 2px;
  }
.leads > .lines { display: none; }
${lines.style}
`;
editableVector.style = `
.strip > .field { height: auto; border: 4px solid var(--learned);
  border-radius: 6px; overflow: hidden; }
.strip > .field .marker { outline-width: 2px; outline-offset: -1px; }
.bend { display: grid; gap: 2px; }
.bend .knob { --number: max-content; width: 100%; }
`;
