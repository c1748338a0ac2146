// Parts for widgets that show a text that a GPT reads or writes: tinted tokens, and heads to choose from.

import { h, mark, short, tint, write } from "./parts.js";
import { topK } from "./search.js";
import { fillList, visible } from "./sentences.js";

export const called = (token) => (visible(token) === token ? `“${token}”` : visible(token));
export const percent = (share) => (share === 0 ? "0" : share >= 0.9995 ? "100 %" : share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

/** The end of a text, for a label. */
export function tail({ names, kind, first }, end, most = 14) {
  const read = names.slice(first, end);
  const shown = (kind === "words" ? read.join(" ") : read.join("").replaceAll("\n", "↵"));
  return shown.length > most ? `…${shown.slice(-most)}` : shown;
}

/**
 * Texts to begin with, in groups; `offers` names them among the facts. A long one goes by its end.
 * `also(next)` changes what else hangs on the text.
 */
export function beginnings(widget, name, offers, also = () => {}) {
  const groups = widget.spec.facts[offers];
  const texts = Object.values(groups).flatMap((group) => Object.keys(group));
  const option = (offered) => {
    const [plain, end] = [offered.trim().replace(/\s+/g, " "), offered.split(" . ").at(-1)];
    return h("option", { value: String(texts.indexOf(offered)) }, end === offered ? plain : `… ${end}`);
  };
  const list = h("select", {
    change: () => list.value && widget.edit(Symbol("begin"), (next) => {
      next[name] = texts[Number(list.value)];
      also(next);
    }) },
  h("option", { value: "" }, "choose one …"),
  ...Object.entries(groups).map(([label, group]) => h("optgroup", { label }, ...Object.keys(group).map(option))));
  return {
    element: h("label", { class: "offer" }, h("span", {}, "or begin with:"), list),
    shows: "inputs",
    update(inputs) {
      const at = texts.indexOf(inputs[name]);
      list.value = at < 0 ? "" : String(at);
    },
  };
}
beginnings.style = `
.offer { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; font-size: 13.5px; color: var(--soft); }
.offer select { font: inherit; color: var(--text); background: var(--ground); border: 1px solid var(--line); border-radius: 6px;
  min-height: 30px; padding: 2px 6px; flex: 1 1 240px; min-width: 0; max-width: 100%; text-overflow: ellipsis; }
@media (pointer: coarse) { .offer select { font-size: 16px; } }
`;

/**
 * Tokens as a line of text, each of which can be tinted: spaces stand, a new line shows its sign.
 * `fill(span, t)` does so, and says what more classes the token has.
 */
export function fillText(list, told, make, fill) {
  const own = told.kind === "words" ? "t whole" : "t";
  fillList(list, told.names.slice(told.first), make, (span, name, i) => {
    write(span, name === "\n" ? "↵\n" : name);
    mark(span, "class", `${own}${name === "\n" ? " line-end" : ""}${fill(span, i + told.first) ?? ""}`);
  });
}
export const TEXT_STYLE = `
.text { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 16px; line-height: 28px; border: 1px solid var(--line); border-radius: 6px; padding: 5px 8px; cursor: pointer; }
.t { padding: 3px 0; background: color-mix(in oklab, var(--ground), var(--above) calc(var(--tl-heat, 0) * 65%)); }
.t.whole { display: inline-block; line-height: 22px; padding: 0 3px; margin-right: 4px; border-radius: 4px; }
.t.line-end { color: var(--soft); }
.t.at { outline: 2px solid var(--accent); outline-offset: -1px; border-radius: 2px; }
.t.later { color: color-mix(in oklab, var(--ground), var(--text) 55%); }
`;

const LOOKS = 5; // of a head, told in words

/** Where a head looks most from the token at `at`: names, how far back, and weights. */
export function looksMostAt(names, row, at) {
  const where = (t) => `${called(names[t])}${t === at ? " itself" : ` ${at - t} back`}: ${short(row[t])}`;
  const best = topK(row, LOOKS).filter((t) => row[t] >= 0.005);
  return `It looks most at ${best.map(where).join(", ")}.`;
}

/**
 * A small picture for each layer and head, one of which is chosen. `told()` is what was read, with L
 * layers of H heads; `chosen(told)` the number of the head, `choose(i)` takes another one; and
 * `draw(picture, told, i)` draws on a picture's `canvas`, or moves its `cursor`.
 */
export function headPictures(widget, { label, told: read, chosen: now, choose, draw }) {
  const box = h("div", { class: "layers", role: "radiogroup", "aria-label": "the head whose looks are shown on the text" });
  const element = h("div", { class: "column result" }, h("span", { class: "label" }, label), box);
  let [pictures, shape] = [[], ""];
  const build = (L, H) => {
    pictures = Array.from({ length: L * H }, (_, i) => {
      const canvas = h("canvas", { role: "img" });
      const cursor = h("span", { class: "cursor" });
      const radio = h("input", { type: "radio", name: "head", value: String(i),
        "aria-label": `layer ${Math.floor(i / H)}, head ${i % H}`, change: () => choose(i) });
      return { canvas, cursor, radio, label: h("label", { class: "small" }, radio, h("span", { class: "frame-of" }, canvas, cursor)) };
    });
    box.style.setProperty("--heads", H);
    box.replaceChildren(h("div", { class: "layer heading", "aria-hidden": "true" }, h("span"),
      ...Array.from({ length: H }, (_, i) => h("span", {}, `head ${i}`))),
    ...Array.from({ length: L }, (_, l) => h("div", { class: "layer" },
      h("span", { class: "layer-name" }, `layer ${l}`), ...pictures.slice(l * H, (l + 1) * H).map((one) => one.label))));
  };
  return {
    element,
    update() {
      const told = read();
      const { L, H } = told;
      if (shape !== `${L} ${H}`) build(L, H);
      shape = `${L} ${H}`;
      pictures.forEach((picture, i) => {
        picture.radio.checked = i === now(told);
        picture.label.classList.toggle("chosen", i === now(told));
        draw(picture, told, i);
      });
    },
  };
}
headPictures.style = `
.layers { display: grid; gap: 6px; max-width: 420px; }
.layer { display: grid; grid-template-columns: 48px repeat(var(--heads), minmax(0, 1fr)); gap: 6px; align-items: center; font-size: 12.5px; color: var(--soft); }
.heading { text-align: center; }
.small { cursor: pointer; position: relative; min-height: 24px; }
.small input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; z-index: 1; }
.frame-of { display: block; position: relative; aspect-ratio: 1; border: 1px solid var(--line); border-radius: 4px; overflow: hidden; }
.frame-of canvas { position: absolute; inset: 0; width: 100%; height: 100%; image-rendering: pixelated; }
.cursor { position: absolute; inset: calc(100% * var(--row) / var(--rows)) 0 auto; height: max(1.5px, 100% / var(--rows)); outline: 1px solid color-mix(in oklab, transparent, var(--under) 80%); }
.small.chosen .frame-of { border-color: var(--accent); box-shadow: 0 0 0 1.5px var(--accent); }
.small:has(:focus-visible) .frame-of { outline: 2px solid var(--accent); outline-offset: 3px; }
@media (max-width: 600px) {
  .layer { grid-template-columns: repeat(var(--heads), minmax(0, 1fr)); gap: 4px 6px; }
  .layer-name { grid-column: 1 / -1; }
  .heading > :first-child { display: none; }
}
`;

const BLUE = 216 << 16 | 134 << 8 | 47; // little-endian, as all that browsers run on

/** Weights as pixels, `columns` in a row; the ink grows with the square root. */
export function paint(canvas, weights, columns, rows) {
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const pixels = new ImageData(columns, rows);
  const ink = new Uint32Array(pixels.data.buffer);
  for (let i = 0; i < weights.length; i += 1) ink[i] = Math.round(255 * Math.sqrt(weights[i])) << 24 | BLUE;
  canvas.values = weights;
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}
