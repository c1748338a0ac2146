// What a widget says in a line or two, at its top on a phone, while the reader changes it or while
// it trains: there the result itself often stands below the screen.

import { h } from "./dom.js";

const NOT_COPIED = ["id", "role", "tabindex", "data-input", "data-output", "data-value"];

/** A copy of the elements that `selector` finds in the frame; it follows them. */
export function answerStrip(frame, selector) {
  const strip = h("div.answer-strip", { "aria-hidden": "true", inert: true });
  const narrow = matchMedia("(max-width: 37.5rem)");
  const copy = () => {
    const found = narrow.matches ? [...frame.querySelectorAll(selector)] : [];
    const copies = found
      .filter((element) => !strip.contains(element))
      .map((element) => /** @type {Element} */ (element.cloneNode(true)));
    for (const element of copies.flatMap((one) => [one, ...one.querySelectorAll("*")]))
      for (const name of NOT_COPIED) element.removeAttribute(name);
    strip.replaceChildren(...copies);
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
  for (const element of frame.querySelectorAll(selector)) {
    changes.observe(element, { subtree: true, childList: true, characterData: true });
    sight.observe(element);
  }
  narrow.addEventListener("change", copy);
  // What is dragged stays under the finger: until it is let go, the strip keeps its height.
  const release = () => strip.style.removeProperty("height");
  frame.addEventListener("pointerdown", () => {
    strip.style.height = `${strip.offsetHeight}px`;
    for (const end of ["pointerup", "pointercancel"])
      addEventListener(end, release, { once: true });
  });
  copy();
  return {
    element: strip,
    end: () => {
      narrow.removeEventListener("change", copy);
      sight.disconnect();
    },
  };
}

export const ANSWER = `
.answer-strip { display: none; }
@media screen and (max-width: 37.5rem) {
  .answer-strip:not(:empty) { display: grid; gap: 4px; align-content: end; min-height: 2.5rem;
    max-height: 8.75rem; overflow: hidden; z-index: 2; margin: -4px -16px; padding: 4px 16px;
    background: var(--ground); border-block: 1px solid var(--line); opacity: 1; }
  .stale .answer-strip { opacity: .4; }
  .answer-strip.answer-strip > * { margin: 0; height: auto; min-height: 0; max-height: 4lh;
    border: 0; padding: 0; overflow: hidden; align-content: end; } /* the newest lines, whole */
  .answer-strip button:not(.pick-word) { display: none; }
  :is(.frame:focus-within, .trains) > .answer-strip:not(.seen) { position: sticky; top: 0; }
  :host(.tl-widget) :is(.frame:focus-within, .trains) > .answer-strip { top: 3.5rem; }
  .staged .answer-strip.answer-strip { top: 0; }
  .answer-strip:not(:empty) ~ * [data-input] { scroll-margin-top: 13rem; }
}
`;
