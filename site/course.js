// The keyboard can scroll whatever is wider than its column. The theme looks only when the page
// loads; this also sees what a <details> opens later, and formulas.
const scrollers = [
  ...document.querySelectorAll(
    "pre, div.math, .cell_output > .output, .pst-scrollable-table-container",
  ),
];
function reach(el) {
  el.tabIndex = el.scrollWidth > el.clientWidth ? 0 : -1;
}
const sized = new ResizeObserver((entries) => entries.forEach((entry) => reach(entry.target)));
for (const el of scrollers) sized.observe(el);
// A font that arrives late widens a formula within its box, whose own size stays as it was.
document.fonts.addEventListener("loadingdone", () => scrollers.forEach(reach));

// An answer to a question shows by a sign, too, what its first word says.
for (const answer of document.querySelectorAll(".predict details")) {
  const said = answer.textContent.slice(answer.querySelector("summary").textContent.length).trim();
  answer.classList.add(/^(Right|Correct)\b/.test(said) ? "right" : "wrong");
}

// While a widget is in use, sections out of sight are not drawn: each edit is then on the screen
// within a frame. Their heights are measured first, so nothing moves and links land where they
// should; a few seconds after the last touch all are drawn again.
const sections = [
  .../** @type {NodeListOf<HTMLElement>} */ (
    document.querySelectorAll(".bd-article section > section")
  ),
];
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

// Paper is white: a page that is read in the dark theme is printed in the light one.
let theme;
addEventListener("beforeprint", () => {
  theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = theme;
});

// A wide widget lies over the room of the page's contents, which are hidden while it is in sight.
const wideInSight = new Set();
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries)
    wideInSight[isIntersecting ? "add" : "delete"](target);
  document.documentElement.classList.toggle("wide-in-sight", wideInSight.size > 0);
});
const article = document.querySelector(".bd-article");
const watch = () => {
  for (const widget of document.querySelectorAll(".tl-widget.wide")) sight.observe(widget);
};
if (article) new MutationObserver(watch).observe(article, { childList: true, subtree: true });
