// The names of curves that end at the right of a plane: each beside its end, with its value.

import { h, setText } from "./dom.js";
import { percent, times } from "./numbers.js";

const LINE = 15; // pixels: how far two names stand from each other, at least

/**
 * What writes the `names` of shares, each in the class of its kind, at the right of a plane that is
 * `height` pixels high and ends at `top`: it gets the shares, or none of a run that has not begun,
 * and the place of the right edge.
 */
export function curveEnds(drawn, names, kinds, { top, height }) {
  const ends = kinds.map((kind) => {
    const text = h("b");
    return { text, put: drawn.spot(`end ${kind}`, text) };
  });
  return (values, at) => {
    drawn.element.classList.toggle("ended", values.length > 0);
    const room = (LINE * top) / height;
    const order = times(values.length, (i) => i).sort((i, j) => values[i] - values[j]);
    const heights = [];
    for (const i of order)
      heights.push(Math.max(top * values[i], (heights.at(-1) ?? -room) + room));
    heights.reduceRight((above, own, place) => {
      heights[place] = Math.min(own, above - room);
      return heights[place];
    }, top + room);
    order.forEach((i, place) => {
      setText(ends[i].text, `${names[i]} ${percent(values[i])}`);
      ends[i].put(at, heights[place]);
    });
  };
}
curveEnds.style = `
.plane.shared:has(.end) { margin-right: 6rem; }
.plane .end { position: absolute; transform: translate(5px, -50%); white-space: nowrap;
  line-height: 1; color: var(--tone); font-variant-numeric: tabular-nums; }
.plane:not(.ended) .end, .ended .percent { display: none; }
`;
