// What a widget says in a line or two, at its top on a phone, while the reader changes it or while
// it trains, and the result itself is out of sight. It lies over the page, which it does not move,
// and never over what has the focus.

import { resized } from "./boxes.js";
import { h } from "./dom.js";

const NOT_COPIED = ["id", "role", "tabindex", "data-input", "data-output", "data-value"];

/** A copy of the elements that `selector` finds in the frame; it follows them. */
export function answerStrip(frame, selector) {
  const strip = h("div.answer-strip", { "aria-hidden": "true", tabindex: "-1" });
  const narrow = matchMedia("(max-width: 37.5rem)");
  const copy = () => {
    const found = narrow.matches ? [...frame.querySelectorAll(selector)] : [];
    const copies = found
      .filter((element) => !strip.contains(element))
      .map((element) => /** @type {Element} */ (element.cloneNode(true)));
    for (const element of copies.flatMap((one) => [one, ...one.querySelectorAll("*")]))
      for (const name of NOT_COPIED) element.removeAttribute(name);
    for (const element of copies) element.setAttribute("inert", "");
    strip.replaceChildren(...copies);
    const chosen = /** @type {HTMLElement} */ (strip.querySelector(".query"));
    if (chosen) strip.scrollLeft = chosen.offsetLeft - strip.clientWidth / 3;
  };
  let asked = 0;
  const changes = new MutationObserver(() => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(copy);
  });
  const seen = new Set();
  const sight = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        seen[isIntersecting ? "add" : "delete"](target);
      strip.classList.toggle("seen", seen.size > 0);
    },
    { rootMargin: "-56px 0px -40px" }, // the page's header, and what is too little to be read
  );
  const focused = new IntersectionObserver(
    (entries) => strip.classList.toggle("on-focus", entries.at(-1).isIntersecting),
    { rootMargin: "-56px 0px -70%" }, // where the strip is
  );
  frame.addEventListener("focusin", ({ target }) => {
    focused.disconnect();
    focused.observe(target);
  });
  for (const element of frame.querySelectorAll(selector)) {
    changes.observe(element, { subtree: true, childList: true, characterData: true });
    sight.observe(element.closest(".sentence") ?? element); // a list of words has no box
  }
  const element = h("div.over-all", strip);
  resized(() => element.style.setProperty("--tall", `${strip.offsetHeight}px`), strip);
  narrow.addEventListener("change", copy);
  copy();
  return {
    element,
    end: () => {
      narrow.removeEventListener("change", copy);
      sight.disconnect();
      focused.disconnect();
    },
  };
}

export const ANSWER = `
.over-all { display: none; }
@media screen and (max-width: 37.5rem) {
  /* What is followed has its own panel, and lies under nothing. */
  :is(.frame:focus-within:not(.followed), .trains) > .over-all:has(
    > :not(:empty, .seen, .on-focus)) { display: block; }
  .over-all { position: sticky; top: 0; z-index: 2; height: 0; order: -1; /* above the frame */
    margin: calc(-12px - var(--tall, 0px)) 0 calc(var(--tall, 0px) - 2px); }
  :host(.tl-widget) .over-all { top: 3.5rem; }
  :host(.tl-widget) .staged .over-all { top: 0; order: 0; margin: -14px 0 0; }
  .answer-strip { position: absolute; inset: 0 -16px auto; display: grid; gap: 4px;
    grid-template-columns: minmax(0, 1fr); align-content: end; min-height: 2.5rem;
    max-height: 8.75rem; padding: 4px 16px; overflow: hidden; background: var(--ground);
    border-block: 1px solid var(--line); pointer-events: none; }
  .stale .answer-strip { opacity: .4; }
  .answer-strip [inert] { opacity: 1; }
  .answer-strip.answer-strip > * { margin: 0; height: auto; min-height: 0; max-height: 4lh;
    border: 0; padding: 0; overflow: hidden; align-content: end; } /* the newest lines, whole */
  .answer-strip.answer-strip > .words { display: flex; flex-wrap: wrap; gap: 4px;
    max-height: none; align-content: start; }
  .answer-strip button:not(.pick-word) { display: none; }
  .frame:has(.answer-strip:not(:empty)) [data-input] { scroll-margin-top: 13rem; }
}
`;
