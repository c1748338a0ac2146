// Arcs from a word to the words that attention heads attend to from it.

import { setAttribute, setText, svgPart } from "./dom.js";
import { format } from "./numbers.js";
import { fillList } from "./sentences.js";

const TALL = 84; // px: the drawing's height
const RADIUS = 8.5; // px: of the circle around a head's number
const LEAST = 0.04; // a smaller weight has no arc
const LABELLED = 0.25; // a smaller weight has no number

/** From the chosen word to what each head attends to: the middle of every column is known. */
function arcs(view, from, middles) {
  const tops = new Map(); // how many heads attend most to a word
  return view.questions.map(({ head, on, weights, answered }, q) => {
    const T = middles.length;
    const { most, asked } = answered[from];
    const rank = tops.get(most) ?? 0;
    tops.set(most, rank + 1);
    const shift = 5 * (q - (view.questions.length - 1) / 2);
    const drawn = [];
    let label; // where its number stands
    for (let s = 0; s < T; s += 1) {
      const share = weights[from * T + s];
      if (share < LEAST) continue;
      const [x, to] = [middles[from] + shift, middles[s] + shift];
      const reach = Math.abs(to - x);
      const rise =
        (s === from ? 20 : 16 + 36 * (1 - Math.exp(-reach / 150))) +
        2 * RADIUS * (s === most ? rank : 0);
      const [foot, top] = [TALL - 5, TALL - 5 - 1.3333 * rise];
      const [left, right] = s === from ? [x - 26, x + 26] : [x, to];
      drawn.push({
        to,
        foot,
        share,
        d:
          `M${x},${foot} C${left.toFixed(1)},${top.toFixed(1)} ` +
          `${right.toFixed(1)},${top.toFixed(1)} ${to},${foot}`,
      });
      if (s === most && share >= LABELLED) label = [(x + to) / 2, foot - rise];
    }
    return { head, drawn, label, kind: `arc h${head}${on ? "" : " off"}${asked ? "" : " idle"}` };
  });
}

/**
 * The arcs above the words, each with a point where it lands and, if it is strong, its head's
 * number. `draw(view, chosen, middles)` takes { words, questions: [{ head, on, weights, answered }]
 * }, the place of the chosen word, and the middle of each column in pixels.
 */
export function arcDrawing() {
  const [bows, badges] = [svgPart("g"), svgPart("g")];
  const element = svgPart("svg", { height: String(TALL), role: "img" }, bows, badges);
  const bow = () => svgPart("g");
  const path = () => svgPart("g", {}, svgPart("path"), svgPart("circle", { r: "3" }));
  const badge = () =>
    svgPart("g", {}, svgPart("circle", { r: String(RADIUS) }), svgPart("text", { dy: "0.35em" }));
  const draw = (view, chosen, middles) => {
    const every = arcs(view, chosen, middles);
    fillList(bows, every, bow, (g, { drawn, kind }) => {
      setAttribute(g, "class", `paths ${kind}`);
      fillList(g, drawn, path, (one, { d, to, foot, share }) => {
        const [line, end] = one.children;
        setAttribute(line, "d", d);
        setAttribute(line, "stroke-width", (1 + 4 * share).toFixed(2));
        setAttribute(end, "cx", String(to));
        setAttribute(end, "cy", String(foot));
        setAttribute(one, "opacity", (0.25 + 0.75 * share).toFixed(3));
      });
    });
    fillList(badges, every, badge, (g, { head, label, kind }) => {
      setAttribute(g, "class", `badge ${kind}`);
      setAttribute(g, "visibility", label ? "visible" : "hidden");
      if (label) setAttribute(g, "transform", `translate(${label.map((n) => n.toFixed(1))})`);
      setText(g.lastChild, String(head));
    });
    const where = view.questions.map(({ head, answered, weights }) => {
      const { most } = answered[chosen];
      const share = format(weights[chosen * middles.length + most]);
      return `head ${head} to ${view.words[most]}, ${share}`;
    });
    setAttribute(
      element,
      "aria-label",
      `${view.words[chosen]} attends most, in ${where.join("; in ")}`,
    );
  };
  return { element, draw };
}
arcDrawing.style = `
.arc path { fill: none; stroke: var(--tone); stroke-linecap: round; }
.arc circle { fill: var(--tone); }
.arc.badge circle { fill: color-mix(in oklab, var(--ground), var(--tone) 24%); stroke: var(--tone);
  stroke-width: 1.5; }
.arc text { font-size: var(--size-small); font-weight: 650; text-anchor: middle; fill: var(--text);
  }
.arc.idle.paths { opacity: .4; }
.arc.idle.badge { opacity: .6; }
.arc.off path { stroke: var(--soft); stroke-dasharray: 3 5; }
.arc.off circle { fill: var(--soft); }
.arc.off.badge circle { fill: var(--ground); stroke: var(--soft); stroke-dasharray: 2 2; }
`;
