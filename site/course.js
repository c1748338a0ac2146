// What the pages do beside their widgets.

import "./progress.js";

// The keyboard can scroll whatever is wider than its column. The theme's own look would draw the
// whole page (lighten.mjs takes it out); this also sees formulas and what a <details> opens later.
const scrollers = [
  ...document.querySelectorAll(
    "pre, div.math, .cell_output > .output, .text_html [role=region], " +
      ".pst-scrollable-table-container, figure.numbered > a",
  ),
];
function makeScrollable(elements) {
  // To measure what is not drawn yet would draw it, and between two changes all would be laid out.
  const drawn = elements.filter((el) => el.checkVisibility({ contentVisibilityAuto: true }));
  const scrolls = drawn.map((el) => el.scrollWidth > el.clientWidth);
  const going = drawn.map(goesOn);
  drawn.forEach((el, i) => {
    if (!el.matches("a")) el.tabIndex = scrolls[i] ? 0 : -1;
    el.classList.toggle("goes-on", going[i]);
  });
}
/** Whether more of it can be scrolled to on the right: around.css fades it there. What only reaches
 * out of its box, as a wide widget does, is seen whole. @param {Element} el */
function goesOn(el) {
  const more = el.scrollLeft + el.clientWidth < el.scrollWidth - 2;
  return more && getComputedStyle(el).overflowX !== "visible";
}
// In the next frame, since to measure may change sizes that are still to be reported, which Firefox
// takes for an error.
const sized = new ResizeObserver((entries) =>
  requestAnimationFrame(() => makeScrollable(entries.map((entry) => entry.target))),
);
for (const el of scrollers) {
  sized.observe(el);
  const fade = () => el.classList.toggle("goes-on", goesOn(el));
  el.addEventListener("scroll", fade, { passive: true });
}
// A font that arrives late widens a formula within its box, whose own size stays as it was.
document.fonts.addEventListener("loadingdone", () => makeScrollable(scrollers));

// A link into the page leads to its place while the sections above it are still estimates. What
// they turn out to be, and widgets that come alive, may push the place away before the browser
// holds on to it, so for a while it is brought back, until the reader moves.
const [arrival] = performance.getEntriesByType("navigation");
if (location.hash && /** @type {PerformanceNavigationTiming} */ (arrival)?.type === "navigate") {
  const grown = new ResizeObserver(() =>
    requestAnimationFrame(() =>
      document.querySelector("article :target")?.scrollIntoView({ behavior: "instant" }),
    ),
  );
  grown.observe(document.querySelector("article"));
  const stop = () => grown.disconnect();
  for (const event of ["wheel", "touchstart", "pointerdown", "keydown"])
    addEventListener(event, stop, { once: true, passive: true });
  addEventListener("load", () => setTimeout(stop, 3000));
}

// One switch shows all code that a reader can do without, and takes it away again.
const codeSwitch = document.querySelector(".code-switch");
const codeFolds = [...document.querySelectorAll("article details.fold")];
if (codeFolds.length === 0) codeSwitch?.remove();
codeSwitch?.addEventListener("click", () => {
  const all = document.documentElement.classList.toggle("all-code");
  codeSwitch.textContent = all ? "Put the code away" : "Show all code";
  for (const fold of codeFolds) fold.toggleAttribute("open", all);
});

// A link to a widget that now stands on the page behind the chapter leads on to it. There it may be
// another one of its kind.
const MOVED = {
  "block_stack-2": "block_stack",
  "self_attention-2": "self_attention-3",
  "self_attention-4": "self_attention",
  "self_attention-3": "self_attention-2",
  "decoding-2": "decoding",
};
const [, copied] = /^#live-([\w-]+)=/.exec(location.hash) ?? [];
const behindThis = location.pathname.replace(/\.html$/, "_further.html");
if (copied && document.querySelector(`a[href^="${behindThis.split("/").pop()}"]`)) {
  const [kind, number = "1"] = copied.split("-");
  if (document.querySelectorAll(`.tl-live[data-widget="${kind}"]`).length < Number(number))
    location.replace(behindThis + location.hash.replace(copied, MOVED[copied] ?? copied));
}

// Whoever came by the straight road is led along it, from each chapter to the next.
const ROAD = "road-to-gpt-road";
const chosen = new URLSearchParams(location.search).get("road");
if (chosen) localStorage.setItem(ROAD, chosen);
if (localStorage.getItem(ROAD) === "straight") {
  const here = location.pathname
    .split("/")
    .pop()
    .replace(/(_further)?\.html$/, "");
  const stops = [...document.querySelectorAll(".bd-sidebar-primary li[data-straight]")];
  const at = stops.findIndex((stop) => stop.getAttribute("data-chapter") === here);
  const behind = location.pathname.endsWith("_further.html");
  if (at >= 0) {
    if (!behind) lead("left-prev", stops[at - 1]);
    lead("right-next", stops[at + 1]);
  }
}

/** Let the link at the page's foot lead to this chapter, if there is one.
 * @param {string} side @param {Element | undefined} stop */
function lead(side, stop) {
  const link = document.querySelector(`.prev-next-area .${side}`);
  const to = stop?.querySelector("a");
  if (!link || !to) return;
  link.setAttribute("href", to.getAttribute("href"));
  const title = /** @type {Element} */ (to.cloneNode(true));
  title.querySelector(".chapter-minutes")?.remove();
  link.querySelector(".prev-next-title").textContent = title.textContent.trim();
}

// A sentence that follows from the answer of a question waits until somebody has answered.
for (const next of document.querySelectorAll(".predict + p"))
  next.classList.toggle("concluded", /^So\b/.test(next.textContent));

// The chapters open at the one that is read.
document
  .querySelector(".primary-toggle")
  ?.addEventListener("click", () =>
    requestAnimationFrame(() =>
      document
        .querySelector("dialog .bd-links .current > a")
        ?.scrollIntoView({ block: "center", behavior: "instant" }),
    ),
  );

// An answer to a question shows by a sign, too, what its first word says.
for (const answer of document.querySelectorAll(".predict details")) {
  const text = answer.textContent.slice(answer.querySelector("summary").textContent.length).trim();
  answer.classList.add(/^(Right|Correct)\b/.test(text) ? "right" : "wrong");
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

// A wide widget and a miniature lie where the page's contents are, which are hidden meanwhile.
const wideInSight = new Set();
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries)
    wideInSight[isIntersecting ? "add" : "delete"](target);
  document.documentElement.classList.toggle("wide-in-sight", wideInSight.size > 0);
});
for (const loop of document.querySelectorAll(".bd-article > section > .loop")) sight.observe(loop);
// The bar makes way for a widget that is read, and comes back when the reader scrolls up. At the
// page's beginning it stays.
const inReading = new Set();
let [upwards, last] = [false, scrollY];
const showBar = () =>
  document.documentElement.classList.toggle(
    "reads",
    inReading.size > 0 && !upwards && scrollY > 80,
  );
const reading = new IntersectionObserver(
  (entries) => {
    for (const { target, intersectionRatio } of entries)
      inReading[intersectionRatio >= 0.6 ? "add" : "delete"](target);
    showBar();
  },
  { threshold: 0.6 },
);
addEventListener(
  "scroll",
  () => {
    if (Math.abs(scrollY - last) < 4) return;
    [upwards, last] = [scrollY < last, scrollY];
    showBar();
  },
  { passive: true },
);
const article = document.querySelector(".bd-article");
const watch = () => {
  for (const widget of document.querySelectorAll(".tl-widget")) {
    reading.observe(widget);
    if (widget.matches(".wide")) sight.observe(widget);
  }
};
if (article) new MutationObserver(watch).observe(article, { childList: true, subtree: true });

// Search is fetched once somebody is about to use it, or in its own page. What is typed meanwhile
// stands in its field.
const search = () => import("./search.js");
const dialog = /** @type {HTMLDialogElement} */ (document.querySelector(".search-dialog"));
function openSearch() {
  const input = document.querySelector(".search-box").querySelector("input");
  if (dialog && !dialog.open) dialog.showModal();
  input.focus();
  input.select();
  search().then(
    ({ start }) => start(),
    () => {
      const status = document.querySelector(".search-box [role=status]");
      status.textContent = "What is searched could not be loaded. Is there a connection?";
    },
  );
}
for (const button of document.querySelectorAll(".search-button__button")) {
  button.addEventListener("click", openSearch);
  for (const event of ["pointerenter", "focus"])
    button.addEventListener(event, () =>
      search()
        .then(({ load }) => load())
        .catch(() => {}),
    );
}
addEventListener("keydown", (event) => {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
  const at = /** @type {HTMLElement} */ (event.composedPath()[0]);
  const writing = at.isContentEditable || at.matches("input, textarea, select");
  const slash = key === "/" && !ctrlKey && !metaKey && !altKey && !writing;
  if (!slash && (key.toLowerCase() !== "k" || ctrlKey === metaKey || altKey || shiftKey)) return;
  event.preventDefault();
  if (dialog?.open) dialog.close();
  else openSearch();
});
if (!dialog) search();
