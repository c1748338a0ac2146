// A widget alone in the window. Its elements stay where they are in the page, so that whatever they
// hold or have begun goes on; the browser only shows them above everything else.

import { h, setAttribute, svgPart, zoomOf } from "./dom.js";

const OPEN = "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4";
const LEAVE = "M3 3l10 10M13 3L3 13";
const LINK = "M6.5 9.5l3-3M7 4.5l2-2a3 3 0 0 1 4.5 4.5l-2 2M9 11.5l-2 2a3 3 0 0 1-4.5-4.5l2-2";
const IS_TYPED = "select, textarea, [contenteditable], input:not([type=range], [type=checkbox])";

const icon = (path) =>
  svgPart("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svgPart("path", { d: path }));

const WIDE = 860; // px: a widget that is narrower stands in one column
const [LETTERS, FRAME, FIGURES] = [1.25, 1.6, 2.2]; // how many times as large they are at most

/** The largest number from 1 to `top` that fits, to within a hundredth or two. */
function largestFitting(top, fits) {
  let [low, high] = [1, top];
  if (fits(top)) return top;
  for (let i = 0; i < 6; i += 1) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Enlarge what is in the `room` until it fills the window: letters take half of the height that is
 * left, at most a quarter, then the figures by themselves, and if these cannot, all of it again.
 * What runs over is left as it is, and so is what is followed, whose panel needs the room:
 * returns whether it is.
 */
function fill(room) {
  const frame = /** @type {HTMLElement} */ (room.firstElementChild);
  const { clientWidth: width, clientHeight: height } = room;
  const set = (zoom, grow) => {
    frame.style.zoom = zoom;
    room.style.setProperty("--grow", grow);
  };
  const wide = () =>
    [...frame.querySelectorAll(".scroll, .side, .sides > *, .row > *, .column, .block")].filter(
      (one) => one.scrollWidth > one.clientWidth + 1,
    ).length;
  const tall = () => frame.offsetHeight * zoomOf(frame);
  room.classList.add("filling");
  set(1, 1);
  const [least, over] = [tall(), wide()];
  room.classList.toggle("ample", least < height - 32);
  const fits = (zoom, grow, high = height) => {
    set(zoom, grow);
    return tall() <= high && wide() <= over;
  };
  let [zoom, grow] = [1, 1];
  const followed = frame.matches(".followed");
  if (width > WIDE && least < height && !followed) {
    const top = frame.currentCSSZoom ? Math.min(FRAME, width / WIDE) : 1;
    zoom = largestFitting(Math.min(LETTERS, top), (by) => fits(by, 1, (least + height) / 2));
    grow = largestFitting(FIGURES, (by) => fits(zoom, by));
    zoom = Math.max(
      zoom,
      largestFitting(top, (by) => fits(by, grow)),
    );
  }
  set(zoom, grow);
  room.classList.remove("filling");
  room.classList.toggle("enlarged", zoom * grow > 1);
  return followed;
}

/** The button that copies a link. */
export const linkButton = (click) =>
  h("button.icon", { click, "aria-label": "Copy link", title: "Copy link" }, icon(LINK));

/**
 * The button that gives this widget the window and takes it back, and the `room` around its frame,
 * which grows. On the course's pages, where the widget has an `id`, Back leaves it, too.
 */
export function fullWindow(widget, id) {
  const change = () => (leaving ? leave() : enter());
  const button = h("button.icon.full-window", { click: change, "aria-keyshortcuts": "f" });
  const room = h("div.room", widget.frame);
  let leaving; // what ends it, while the widget has the window
  const name = () => {
    const label = leaving ? "Leave the full window" : "Full window";
    setAttribute(button, "aria-label", label);
    setAttribute(button, "title", `${label} (${leaving ? "Esc" : "f"})`);
    button.replaceChildren(icon(leaving ? LEAVE : OPEN));
    room.classList.toggle("staged", Boolean(leaving));
    setAttribute(widget.frame, "role", leaving ? "dialog" : "group");
    widget.frame.toggleAttribute("aria-modal", Boolean(leaving));
  };
  const isHere = () => id && history.state?.stage === id;

  function enter() {
    leaving = new AbortController();
    const { signal } = leaving;
    const others = copyBeside(widget.el).filter((other) => !other.inert);
    const page = document.documentElement.style;
    widget.el.style.height = `${widget.el.offsetHeight}px`; // the page's text stays where it is
    name();
    room.popover = "manual";
    room.showPopover?.();
    for (const other of others) other.inert = true;
    let followed = fill(room);
    const sizes = new ResizeObserver(() => {
      const over = room.scrollHeight > room.clientHeight && room.matches(".enlarged");
      if (over || followed !== widget.frame.matches(".followed")) followed = fill(room);
    });
    for (const part of [widget.frame, ...widget.frame.children]) sizes.observe(part);
    signal.addEventListener("abort", () => sizes.disconnect());
    addEventListener("resize", () => fill(room), { signal });
    [page.overflow, page.scrollbarGutter] = ["hidden", "stable"];
    signal.addEventListener("abort", () => {
      [page.overflow, page.scrollbarGutter] = ["", ""];
      for (const other of others) other.inert = false;
      room.popover = null;
      room.style.removeProperty("--grow");
      widget.frame.style.zoom = "";
      widget.el.style.height = "";
      leaving = undefined;
      name();
      button.focus({ preventScroll: true });
    });
    const escape = (event) => event.key === "Escape" && !event.defaultPrevented && leave();
    addEventListener("keydown", escape, { signal });
    if (id && !isHere()) history.pushState({ ...history.state, stage: id }, "");
  }

  /** Leave it, and the entry of the browser's history that was made for it. */
  function leave() {
    leaving.abort();
    if (!isHere()) return;
    const { href } = location; // a link to the widget's state may have been put there
    const keep = () => href !== location.href && history.replaceState(history.state, "", href);
    addEventListener("popstate", keep, { once: true });
    history.back();
  }

  name();
  const heed = (event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    const [target] = event.composedPath();
    if (key !== "f" || ctrlKey || metaKey || altKey || event.defaultPrevented) return;
    if (target.matches(IS_TYPED) || (id && meant(target) !== widget.el)) return;
    event.preventDefault();
    change();
  };
  if (!id) widget.frame.addEventListener("keydown", heed);
  return {
    button,
    room,
    /** Follow the browser's history until the signal ends that. */
    follow(signal) {
      const follow = () => {
        if (isHere() && !leaving) enter();
        else if (!isHere()) leaving?.abort();
      };
      addEventListener("popstate", follow, { signal });
      if (!widget.frame.matches(".tour")) addEventListener("keydown", heed, { signal });
      follow();
    },
    close: () => leaving?.abort(),
  };
}

/** Of the widgets in a page the one that holds the `target`, or has the pointer, or shows most. */
function meant(target) {
  const all = [...document.querySelectorAll(".tl-widget")];
  const heightInSight = (el) => {
    const { top, bottom } = el.getBoundingClientRect();
    return Math.min(bottom, innerHeight) - Math.max(top, 0);
  };
  const first = (is) => all.find(is);
  return (
    first((el) => el.shadowRoot.querySelector(".staged")) ??
    first((el) => el.shadowRoot.contains(target)) ??
    first((el) => el.matches(":hover")) ??
    all.filter((el) => heightInSight(el) > 0).sort((a, b) => heightInSight(b) - heightInSight(a))[0]
  );
}

/** All elements of the page that neither hold this one nor are in it. */
function copyBeside(element) {
  const found = [];
  for (let at = element; at && at !== document.body; at = at.parentElement ?? at.getRootNode().host)
    found.push(...[...at.parentNode.children].filter((other) => other !== at));
  return found;
}

export const STAGE = `
.room { container: widget / inline-size; }
.icon { padding: 2px 5px; }
.icon svg { display: block; width: 1rem; height: 1rem; fill: none; stroke: currentColor;
  stroke-width: 1.6; }
.room.staged { position: fixed; inset: 0; z-index: 2000; width: min(100vw - 48px, 93.75rem);
  max-width: none; height: 100dvh; max-height: none; margin: 0 auto; border: 0; padding: 0;
  overflow: auto; overscroll-behavior: contain; color: inherit; background: var(--ground); }
.room::backdrop { background: var(--ground); }
.staged > .frame.frame { min-height: 100%; border: 0; border-radius: 0; padding: 8px 0; gap: 8px; }
.staged.ample > .frame.frame { padding-block: 24px; }
.filling > .frame.frame { min-height: 0 !important; }
.staged .heat { zoom: min(var(--grow), 1.25); }
.staged .frame .side { gap: 8px; }
.staged .frame .journey.journey:not(.under-way) { top: 10px; right: 0; }
.staged.ample .frame .journey.journey:not(.under-way) { top: 20px; }
.staged .title-row { position: sticky; top: 0; z-index: 2; background: var(--ground);
  margin-block: -6px; padding-block: 6px; }
`;
