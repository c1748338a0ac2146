// The keyboard can scroll whatever is wider than its column. The theme looks only when the page
// loads; this also sees what a <details> opens later, and formulas.
const scrollers = "pre, div.math, .cell_output > .output, .pst-scrollable-table-container";
const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  }
});
for (const el of document.querySelectorAll(scrollers)) sized.observe(el);
