// The keyboard can scroll whatever is wider than its column. The theme looks only when the page
// loads; this also sees what a <details> opens later, and formulas.
const scrollers = "pre, div.math, .cell_output > .output, .pst-scrollable-table-container";
const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  }
});
for (const el of document.querySelectorAll(scrollers)) sized.observe(el);

// While a widget is in use, sections out of sight are not drawn: each edit is then on the screen
// within a frame. Their heights are measured first, so nothing moves and links land where they
// should; a few seconds after the last touch all are drawn again.
const sections = [...document.querySelectorAll(".bd-article section > section")];
let unused;
function used(event) {
  if (!event.target.closest?.(".tl-widget")) return;
  clearTimeout(unused);
  unused = setTimeout(drawAll, 4000);
  if (sections[0]?.classList.contains("measured")) return;
  const heights = sections.map((section) => section.getBoundingClientRect().height);
  sections.forEach((section, i) => {
    section.style.containIntrinsicSize = `auto ${heights[i]}px`;
    section.classList.add("measured");
  });
}
function drawAll() {
  for (const section of sections) section.classList.remove("measured");
}
for (const touch of ["pointerdown", "focusin", "input"]) document.addEventListener(touch, used);
addEventListener("resize", drawAll);
