// All heads of a model as small maps, layer by layer, one of which is chosen.

import { results } from "./boxes.js";
import { h, setAttribute, setText } from "./dom.js";
import { partsOf } from "./explain.js";
import { weightKey } from "./keys.js";
import { times } from "./numbers.js";
import { pixelMap } from "./pixels.js";

/** A head's picture: a canvas, a row that is marked in it, outlined pixels, and a line below. */
function pictureOf(i, H, choose) {
  const map = pixelMap();
  const count = h("span.count");
  let drawn = [];
  const name = `block ${Math.floor(i / H)}, head ${i % H}`;
  const radio = h("input", {
    type: "radio",
    name: "head",
    value: String(i),
    "aria-label": name,
    change: () => choose(i),
  });
  return {
    ...map,
    element: h("label.small", { title: name }, radio, map.element, count),
    /** Set whether it is the chosen one, and its description for screen readers. */
    set(chosen, message = "") {
      radio.checked = chosen;
      this.element.classList.toggle("chosen", chosen);
      setAttribute(radio, "aria-label", message ? `${name}: ${message}` : name);
    },
    setCaption: (text) => setText(count, text),
    /** Whether it has not been drawn for just this yet. */
    fresh(...key) {
      const same = key.every((part, at) => part === drawn[at]);
      drawn = key;
      return !same;
    },
  };
}

/**
 * A small picture for each block and head. `read(inputs, outputs)` returns the view that they show,
 * with L layers of H heads, or null; together the pictures show its `output`, or the one that is
 * given, or "", which is parts of one. `chosen(view)` is the number of the head, `choose(i)` takes
 * another one; and `draw(picture, view, i)` draws on its canvas, and may return a description for
 * screen readers. If a view is `waiting`, it is that of older inputs. Among the others, `more`
 * stands between the label and the pictures, and `reset` is that of the part.
 */
export function headMaps({ label, output = "", read, chosen, choose, draw, ...others }) {
  const box = h("div.layers", { role: "radiogroup", "aria-label": "heads" });
  const title = h("span.label", label);
  const element = results("column heads", title, ...(others.more ?? []), box);
  const key = weightKey("");
  let [pictures, shape] = [[], ""];
  const build = (L, H) => {
    pictures = times(L * H, (i) => pictureOf(i, H, choose));
    const names = times(H, (i) => h("span", h("span.head", "head "), String(i)));
    const layers = times(L, (l) => [
      h("span.layer-name", `block ${l}`),
      ...pictures.slice(l * H, (l + 1) * H).map((one) => one.element),
    ]);
    box.style.setProperty("--heads", H);
    box.style.setProperty("--deep", L);
    box.replaceChildren(
      h("div.layer.heading", { "aria-hidden": "true" }, key, ...names),
      ...layers.map((parts) => h("div.layer", ...parts)),
    );
  };
  return {
    element,
    reset: others.reset,
    update(inputs, outputs) {
      const view = read(inputs, outputs);
      if (!view) return;
      const { L, H } = view;
      box.dataset.output = view.output ?? output;
      element.classList.toggle("waiting", Boolean(view.waiting));
      if (shape !== `${L} ${H}`) build(L, H);
      shape = `${L} ${H}`;
      pictures.forEach((picture, i) => picture.set(i === chosen(view), draw(picture, view, i)));
      key.classList.toggle("root", Boolean(pictures[0]?.canvas.root));
    },
  };
}

/** An entry: the pictures of some blocks. */
export const blocksOf = (widget, [from, to]) =>
  partsOf(widget, `.layers > :nth-child(n + ${from + 2}):nth-child(-n + ${to + 1}) .small`);
headMaps.style = `${pixelMap.style}
.layers { display: grid; gap: 6px;
  max-width: calc(3rem + var(--map, 7.375rem) * var(--grow, 1) * var(--heads, 4)); }
.layer { display: grid; grid-template-columns: 3rem repeat(var(--heads), minmax(0, 1fr)); gap: 6px;
  align-items: center; font-size: var(--size-note); color: var(--soft); }
.layer-name { white-space: nowrap; }
.heading { text-align: center; font-size: var(--size-small); white-space: nowrap; }
.heading .ramp-key { flex-wrap: nowrap; gap: 3px; margin: 0; }
.heading .ramp-key i { flex: 1; width: 1.25rem; }
.small { cursor: pointer; position: relative; min-height: 1.5rem; }
.small input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0;
  cursor: pointer; z-index: 1; }
.small .pixel-map { border-radius: 4px; overflow: hidden; }
.small .count { display: block; text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.small .count:empty { display: none; }
.small:hover .pixel-map { border-color: var(--accent); }
.small.chosen { color: var(--text); font-weight: 600; }
.small.chosen .pixel-map { border-color: var(--accent); box-shadow: 0 0 0 1.5px var(--accent); }
.followed .small.chosen .pixel-map { box-shadow: 0 0 0 3px var(--accent); }
.small:has(:focus-visible) .pixel-map { outline: 2px solid var(--accent); outline-offset: 3px; }
/* In two columns the maps are small, and the one that is chosen stands beside them. */
.atlas { display: grid; grid-template-columns: minmax(0, 1fr); gap: 12px 18px; min-width: 0; }
.atlas > * { min-width: 0; }
@container widget (min-width: 53.75rem) {
  .side .layers { --map: 3.5rem; }
  .atlas { grid-template-columns: auto minmax(0, 1fr); align-items: start; }
  .atlas .layers { --map: 2.75rem;
    min-width: calc(3rem + var(--map) * var(--grow, 1) * var(--heads, 4)); }
  .atlas .heading .head { display: none; } /* the numbers say enough */
}
@media (max-width: 37.5rem) {
  .layer { grid-template-columns: repeat(var(--heads), minmax(0, 1fr)); gap: 4px 6px; }
  .layer-name { grid-column: 1 / -1; }
  .heading > :first-child { grid-column: 1 / -1; max-width: 6.875rem; }
}
`;
