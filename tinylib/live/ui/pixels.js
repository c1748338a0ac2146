// A matrix of numbers as a small picture: each is a pixel, and its size is how much ink there is.

import { h, setAttribute, setText, svgPart } from "./dom.js";
import { inkOf } from "./look.js";
import { within } from "./numbers.js";

// little-endian, as all that browsers run on
const packed = (ink) => (ink[2] << 16) | (ink[1] << 8) | ink[0];

/**
 * Paint numbers, `columns` in a row; `most` has all of the `ink`, a colour of the palette. With
 * `root`, the ink grows with the square root. What is below 0 has the ink of negative numbers.
 */
export function paint(canvas, numbers, columns, how = /** @type {any} */ ({})) {
  const { ink = "positive", most = 1, root = false } = how;
  const rows = Math.ceil(numbers.length / columns);
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const picture = new ImageData(columns, rows);
  const inks = new Uint32Array(picture.data.buffer);
  const [above, under] = [packed(inkOf(ink)), packed(inkOf("negative"))];
  for (let i = 0; i < numbers.length; i += 1) {
    const share = Math.min(1, Math.abs(numbers[i]) / most);
    const much = Math.round(255 * (root ? Math.sqrt(share) : share));
    inks[i] = (much << 24) | (numbers[i] < 0 ? under : above);
  }
  canvas.values = numbers;
  canvas.root = root;
  canvas.again = () => paint(canvas, numbers, columns, how); // in another scheme
  canvas.getContext("2d").putImageData(picture, 0, 0);
}

/** A map of pixels in which a row can be marked, and pixels outlined. */
export function pixelMap(attributes = {}) {
  const canvas = h("canvas", { role: "img" });
  const [gold, cursor] = [svgPart("path"), svgPart("rect", { x: "0", height: "1" })];
  const pixel = svgPart("rect", { class: "pixel", width: "1", height: "1" });
  const overlay = svgPart(
    "svg",
    { preserveAspectRatio: "none", "aria-hidden": "true" },
    gold,
    cursor,
  );
  return {
    canvas,
    element: h("span.pixel-map", { ...attributes }, canvas, overlay),
    /** Mark this one of `rows` rows, each of which has `columns` pixels. */
    markRow(row, rows, columns) {
      setAttribute(overlay, "viewBox", `0 0 ${columns} ${rows}`);
      setAttribute(cursor, "y", String(row));
      setAttribute(cursor, "width", String(columns));
    },
    /** Outline the pixel that the reader points at; call `markRow` or `outline` before. */
    markPixel(row, column) {
      setAttribute(pixel, "y", String(row));
      setAttribute(pixel, "x", String(column));
      if (!pixel.isConnected) overlay.append(pixel);
    },
    /** Outline those pixels for which `marks`, by row and column, is not 0. */
    outline(marks, rows, columns) {
      const square = (row, column) => (marks[row][column] ? `M${column},${row}h1v1h-1z` : "");
      const squares = marks.flatMap((line, row) => Array.from(line, (_, at) => square(row, at)));
      setAttribute(overlay, "viewBox", `0 0 ${columns} ${rows}`);
      setAttribute(gold, "d", squares.join(""));
    },
  };
}
pixelMap.style = `
.pixel-map { display: block; position: relative; aspect-ratio: 1; border: 1px solid var(--line); }
.pixel-map :is(canvas, svg) { position: absolute; inset: 0; width: 100%; height: 100%; }
.pixel-map svg { overflow: visible; pointer-events: none; }
.pixel-map :is(path, rect) { fill: none; stroke: var(--gold, var(--text)); stroke-width: 1;
  vector-effect: non-scaling-stroke; }
.pixel-map rect { stroke: var(--cursor, var(--accent)); }
.pixel-map .pixel { stroke-width: 3; visibility: hidden; }
.pixel-map.asked { outline-offset: 1px; }
.pixel-map.asked .pixel { visibility: visible; }
`;

/** The row and the column of the pixel that an event is over, or next to. */
export function pixelAt(canvas, { clientX, clientY }) {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const place = (share, size) => within(Math.floor(share * size), [0, size - 1]);
  return [
    place((clientY - top) / height, canvas.height),
    place((clientX - left) / width, canvas.width),
  ];
}

/** While a pixel is pointed at, or tapped, `note` is what `describe(row, column)` returns. */
export function readOut(canvas, note, describe) {
  const idle = note.textContent;
  const point = (event) => setText(note, describe(...pixelAt(canvas, event)));
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("pointerleave", () => setText(note, idle));
}
