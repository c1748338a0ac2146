// Lines that lead from the rows of a list to one place beside them, or from there to the rows.

import { setAttribute, svgPart } from "./dom.js";

/**
 * Lines between the rows of a list and one place beside its middle: from the last row to the
 * place, or from the place to every row. The drawing is stretched to the list's height.
 */
export function lines() {
  const path = svgPart("path");
  const element = svgPart(
    "svg",
    { class: "lines", preserveAspectRatio: "none", "aria-hidden": "true" },
    path,
  );
  const curve = (start, end) => `M0,${start}C.5,${start} .5,${end} 1,${end}`;
  const draw = (rows, curves) => {
    setAttribute(element, "viewBox", `0 0 1 ${rows}`);
    setAttribute(path, "d", curves.join(""));
  };
  return {
    element,
    fromLast: (rows) => draw(rows, [curve(rows - 0.5, rows / 2)]),
    toEach: (rows) =>
      draw(
        rows,
        Array.from({ length: rows }, (_, row) => curve(rows / 2, row + 0.5)),
      ),
  };
}
lines.style = `
.lines { display: block; width: 100%; height: 0; min-height: 100%; overflow: visible; }
.lines path { fill: none; stroke: var(--learned); stroke-width: 1.2;
  vector-effect: non-scaling-stroke; }
.lines.thick path { stroke-width: 4; }
`;
