// What the pages do beside their widgets.

import "./progress.js";

// The keyboard can scroll whatever is wider than its column. The theme's own look would draw the
// whole page (lighten.mjs takes it out); this also sees formulas and what a <details> opens later.
const scrollers = [
  ...document.querySelectorAll(
    "pre, div.math, .cell_output > .output, .text_html [role=region], " +
      ".pst-scrollable-table-container",
  ),
];
function reach(elements) {
  // To measure what is not drawn yet would draw it, and between two changes all would be laid out.
  const drawn = elements.filter((el) => el.checkVisibility({ contentVisibilityAuto: true }));
  const scrolls = drawn.map((el) => el.scrollWidth > el.clientWidth);
  drawn.forEach((el, i) => (el.tabIndex = scrolls[i] ? 0 : -1));
}
const sized = new ResizeObserver((entries) => reach(entries.map((entry) => entry.target)));
for (const el of scrollers) sized.observe(el);
// A font that arrives late widens a formula within its box, whose own size stays as it was.
document.fonts.addEventListener("loadingdone", () => reach(scrollers));

// A link into the page leads to its place while the sections above it are still estimates. What
// they turn out to be, and widgets that come alive, may push the place away before the browser
// holds on to it, so for a while it is brought back, until the reader moves.
const [arrival] = performance.getEntriesByType("navigation");
if (location.hash && /** @type {PerformanceNavigationTiming} */ (arrival)?.type === "navigate") {
  const grown = new ResizeObserver(() =>
    document.querySelector("article :target")?.scrollIntoView({ behavior: "instant" }),
  );
  grown.observe(document.querySelector("article"));
  const stop = () => grown.disconnect();
  for (const event of ["wheel", "touchstart", "pointerdown", "keydown"])
    addEventListener(event, stop, { once: true, passive: true });
  addEventListener("load", () => setTimeout(stop, 3000));
}

// An answer to a question shows by a sign, too, what its first word says.
for (const answer of document.querySelectorAll(".predict details")) {
  const said = answer.textContent.slice(answer.querySelector("summary").textContent.length).trim();
  answer.classList.add(/^(Right|Correct)\b/.test(said) ? "right" : "wrong");
}

// On paper everything is open, and in light colours even if the page is read in dark ones.
let theme;
let closed = [];
addEventListener("beforeprint", () => {
  theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  document.body.dataset.printing = "yes"; // nobody has answered anything now
  closed = [...document.querySelectorAll("article details:not([open])")].map((folded) => {
    const name = folded.getAttribute("name"); // of those with one name only one may be open
    folded.removeAttribute("name");
    return { folded, name };
  });
  for (const { folded } of closed) folded.setAttribute("open", "");
});
addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = theme;
  for (const { folded } of closed) folded.removeAttribute("open");
  for (const { folded, name } of closed) if (name) folded.setAttribute("name", name);
  setTimeout(() => delete document.body.dataset.printing, 100); // after the events of opening
});

// A formula stands in a page three times, for sight, for screen readers and as it was written. What
// a search shows of the page has it once.
// @ts-expect-error: of Sphinx's script, on the page that searches
const search = typeof Search === "undefined" ? undefined : Search; // eslint-disable-line no-undef
if (search) {
  const textOf = search.htmlToText;
  search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const again = ".onlyprint, .katex-html, annotation, .fold > summary, .answer-row";
    for (const part of page.querySelectorAll(again)) part.remove();
    return textOf(page.documentElement.outerHTML, anchor);
  };
}

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
