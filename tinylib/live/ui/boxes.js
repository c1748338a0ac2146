// Boxes that elements stand in: of results, that scroll, and rows and heads of tables.

import { h } from "./dom.js";

/** The head of a table: a name for each column, or parts of it in a list; null is a corner. */
export const columnHeads = (...names) => {
  const cell = (name) => (name === null ? h("td") : h("th", { scope: "col" }, ...[name].flat()));
  return h("thead", h("tr", ...names.map(cell)));
};

/** A row of a table, named by `name`, with what stands in its cells. */
export const namedRow = (name, cells) =>
  h("tr", h("th", { scope: "row" }, ...name), ...cells.map((cell) => h("td", ...cell)));

/** A box of results, greyed while they are out of date; what is in it names its outputs itself. */
export const results = (name, ...parts) => h("div", { class: name, "data-output": "" }, ...parts);

/** A box that scrolls sideways. */
export function scroller(attributes, ...content) {
  const box = h("div", attributes, ...content);
  box.classList.add("scroll");
  return box;
}

/** Where more of what is in a box lies to the right, it fades there. */
export function fade(box) {
  const follow = () =>
    box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 4);
  box.addEventListener("scroll", follow);
  resized(follow, box, ...box.querySelectorAll(":scope > *, table"));
}

/**
 * Call `act` in the frame after one of these elements has got another size. At once, `act` could
 * change the sizes that the browser is about to report, which Firefox takes for an error.
 */
export function resized(act, ...elements) {
  let asked = 0;
  const sizes = new ResizeObserver(() => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(act);
  });
  for (const element of elements) sizes.observe(element);
}

/** At one width it grows and never shrinks: what stands below may be about to be pressed. */
export function keepHeight(element) {
  let wide = 0;
  element.style.alignContent = "start";
  resized(() => {
    if (element.offsetWidth !== wide) element.style.minHeight = "";
    wide = element.offsetWidth;
    element.style.minHeight = `${element.offsetHeight}px`;
  }, element);
}
