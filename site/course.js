// The keyboard can scroll whatever is wider than its column. The theme looks only when the page
// loads; this also sees what a <details> opens later, and formulas.
const scrollers = "pre, div.math, .cell_output > .output, .pst-scrollable-table-container";
const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  }
});
for (const el of document.querySelectorAll(scrollers)) sized.observe(el);

// Sections out of sight need not be drawn again with each edit of a widget. Their heights are
// measured first, and again when the width changes: so links still land where they should.
const sections = [...document.querySelectorAll(".bd-article section > section")];
let width;
function measure() {
  if (width === innerWidth) return;
  width = innerWidth;
  for (const section of sections) section.classList.remove("measured");
  const heights = sections.map((section) => section.getBoundingClientRect().height);
  sections.forEach((section, i) => {
    section.style.containIntrinsicSize = `auto ${heights[i]}px`;
    section.classList.add("measured");
  });
}
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(measure, 200);
});
if (document.querySelector(".tl-live, .tl-widget")) {
  addEventListener("load", () => setTimeout(measure, 500)); // widgets and fonts are in place
}
