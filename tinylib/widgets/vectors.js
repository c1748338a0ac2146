// Parts for vectors too wide for numbers: colour strips, one entry of which is read and bent.

import { h, mark, short, write } from "./parts.js";
import { fillList } from "./sentences.js";

const [ABOVE, UNDER] = [[47, 134, 216], [217, 138, 47]]; // as --above and --under

/** Paint numbers as pixels: their sign is the colour, their size how much of it. */
function paint(canvas, values, width, most) {
  const height = values.length / width;
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const pixels = new ImageData(width, height);
  values.forEach((value, i) => {
    const [r, g, b] = value < 0 ? UNDER : ABOVE;
    pixels.data.set([r, g, b, Math.round(255 * Math.min(1, Math.abs(value) / most))], 4 * i);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  canvas.values = values;
}

/** A canvas that tells which entry the pointer is over; `choose` is called with the one clicked. */
function field(choose, hover) {
  const canvas = h("canvas", { role: "img" });
  const marker = h("span", { class: "marker" });
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const place = (share, size) => Math.max(0, Math.min(size - 1, Math.floor(share * size)));
    return place((event.clientY - box.top) / box.height, canvas.height) * canvas.width
      + place((event.clientX - box.left) / box.width, canvas.width);
  };
  const element = h("div", { class: "field",
    click: (event) => choose(at(event)),
    pointermove: (event) => hover(at(event)),
    pointerleave: () => hover(null) }, canvas, marker);
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

/** The output `name` (words × D) as a strip for each word; the chosen word and entry are marked. */
export function strips(widget, name, label) {
  const list = h("ol", { class: "strips result", "aria-label": label });
  const value = h("span", { class: "read" });
  const fields = new WeakMap(); // li -> its field
  let shown;
  const read = (row, column) => {
    const { shape: [, D], data } = shown;
    write(value, `“${list.children[row].firstChild.textContent}”, entry ${column + 1}: ${short(data[row * D + column])}`);
  };
  const readChosen = () => read(widget.query, chosen(widget, shown.shape[1]));
  const make = (i) => {
    const part = field(
      (column) => { widget.query = i; choose(widget, column); },
      (column) => (column === null ? readChosen() : read(i, column)));
    const li = h("li", {}, h("button", { type: "button", click: () => widget.look(i) }), part.element);
    fields.set(li, part);
    return li;
  };
  return {
    element: h("div", { class: "column strip" }, h("p", { class: "caption" }, h("b", {}, label), " ", value), list),
    shows: "outputs",
    update(inputs, outputs) {
      shown = outputs[name];
      const { shape: [rows, D], data } = shown;
      const words = widget.words(widget.spec.outputs[name].split(" ")[0], inputs);
      if (rows !== words.length) return; // the answer is still on its way
      const most = Math.max(1, data.reduce((m, v) => Math.max(m, Math.abs(v)), 0));
      fillList(list, words, make, (li, word, i) => {
        const { canvas, point } = fields.get(li);
        write(li.firstChild, word);
        li.classList.toggle("query", i === widget.query);
        mark(li.firstChild, "aria-pressed", String(i === widget.query));
        mark(canvas, "aria-label", `${label}: ${D} numbers for “${word}”`);
        paint(canvas, data.subarray(i * D, (i + 1) * D), D, most);
        point(chosen(widget, D));
      });
      readChosen();
    },
  };
}

/**
 * The output `name` (D) as a block of cells, and two sliders: which entry, and the value to bend it
 * to. The input `bend` holds by how much each differs from the last row of `from`; `first` is the
 * entry, counted from 1, that is chosen at the start.
 */
export function bentVector(widget, name, label, { bend, from, first = 1 }) {
  const D = widget.spec.limits.D[0];
  let width = Math.min(32, D); // cells in a row, all rows full
  while (D % width) width -= 1;
  widget.column = first - 1;
  const value = h("span", { class: "read" });
  const { element, canvas, point } = field(
    (entry) => choose(widget, entry), (entry) => read(entry ?? chosen(widget, shown.length)));
  element.classList.add("result");
  let shown;
  const read = (entry) => write(value, `entry ${entry + 1}: ${short(shown[entry])}`);
  const which = h("input", { type: "range", id: `${name}-which`, min: "1", max: String(D), step: "1",
    input: () => choose(widget, Number(which.value) - 1) });
  let straight; // the last row, unbent
  const size = h("input", { type: "range", id: `${name}-size`, min: "-3", max: "3", step: "0.01",
    input: () => {
      const entry = chosen(widget, D);
      const by = Number((Number(size.value) - straight[entry]).toFixed(4));
      widget.edit(`${bend} ${entry}`, (next) => { next[bend][entry] = by; });
    } });
  const [whichText, sizeText] = [h("span"), h("span")];
  const back = h("button", { type: "button",
    click: () => {
      widget.leave(back);
      widget.edit(Symbol("back"), (next) => { next[bend].fill(0); });
    } }, "Put all numbers back");
  const count = h("span", { class: "soft" });
  return {
    element: h("div", { class: "column strip" }, h("p", { class: "caption" }, h("b", {}, label), " ", value), element,
      h("div", { class: "bend" },
        h("label", { for: which.id }, `which of the ${D} numbers:`), whichText, which,
        h("label", { for: size.id }, "its value:"), sizeText, size),
      h("div", { class: "foot" }, back, count)),
    reset() { widget.column = first - 1; },
    update(inputs, outputs) {
      shown = outputs[name].data;
      const { shape: [rows], data } = outputs[from];
      straight = data.subarray((rows - 1) * D, rows * D);
      paint(canvas, shown, width, 1);
      mark(canvas, "aria-label", `${label}: ${D} numbers`);
      const entry = chosen(widget, D);
      point(entry);
      read(entry);
      which.value = String(entry + 1);
      write(whichText, String(entry + 1));
      const now = straight[entry] + inputs[bend][entry];
      size.value = String(now);
      write(sizeText, `${short(now)}${inputs[bend][entry] ? ` (was ${short(straight[entry])})` : ""}`);
      mark(which, "aria-valuetext", `entry ${entry + 1}, ${short(now)}`);
      mark(size, "aria-valuetext", short(now));
      const bent = inputs[bend].filter(Boolean).length;
      back.disabled = bent === 0;
      write(count, bent ? `${bent} of ${D} numbers changed` : "");
    },
  };
}

strips.style = `
.strip { min-width: 0; }
.row > .strip { flex: 1 1 290px; }
.row > .strip .caption { flex-direction: column; }
.caption { margin: 0; font-size: 13.5px; display: flex; flex-wrap: wrap; gap: 0 12px; justify-content: space-between; }
.caption b { font-weight: 600; }
.read, .soft { color: var(--soft); font-variant-numeric: tabular-nums; font-size: 13px; }
.strips { list-style: none; margin: 0; padding: 0; display: grid; gap: 2px; }
.strips li { display: grid; grid-template-columns: 76px 1fr; gap: 6px; align-items: center; }
.strips button { border: 0; padding: 0 4px; min-height: 26px; text-align: right; color: var(--soft); font-size: 13px;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.strips .query button { color: var(--accent); font-weight: 650; }
.field { position: relative; cursor: crosshair; height: 24px; border: 1px solid var(--line); touch-action: manipulation; }
.strips .query .field { outline: 2px solid var(--accent); outline-offset: 0; }
canvas { display: block; width: 100%; height: 100%; image-rendering: pixelated; }
.marker { position: absolute; outline: 1px solid var(--text); pointer-events: none; min-width: 2px; }
`;
bentVector.style = `
.strip > .field { height: 96px; }
.bend { display: grid; grid-template-columns: max-content 10em minmax(120px, 320px); gap: 0 10px; align-items: center;
  font-size: 13.5px; font-variant-numeric: tabular-nums; }
.bend input { width: 100%; }
@media (max-width: 600px) {
  .bend { grid-template-columns: max-content 1fr; }
  .bend input { grid-column: span 2; }
}
`;
