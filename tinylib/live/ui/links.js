// Links to what a widget shows, and what it showed at each entry of the browser's history.

import { GENERATOR } from "../page/chance.js";
import { linksTo, problem, readLink, writeLink } from "../page/inputs.js";

const OLDER =
  "This link was made with an older generator of random numbers: the same seed draws others now.";

const THANKS_MS = 8000; // for which it is said that the link was copied

/**
 * Put a link to what the widget shows into the address and the clipboard. A view may say by
 * `toShare()` to which `page` it leads, the `state` that it holds, if any, and a `message` on it.
 */
export async function share(widget, id) {
  const {
    state,
    page = location.href.split("#")[0],
    message = "It holds your words and numbers.",
  } = widget.toShare?.() ?? { state: widget.state() };
  const hash = state ? new URL(writeLink(id, state)).hash : "";
  if (state) history.replaceState(history.state, "", hash);
  const link = `${page}${hash}`;
  try {
    await navigator.clipboard.writeText(link);
    const thanks = `The link is in the clipboard. ${message}`;
    widget.announce(thanks, "hint");
    setTimeout(() => widget.problemLine.textContent === thanks && widget.announce(""), THANKS_MS);
  } catch {
    // no permission, or not a secure page: let the reader copy it
    widget.linkField.hidden = false;
    widget.linkField.value = link;
    widget.linkField.select();
    widget.announce(`Copy the link below. ${message}`, "hint");
  }
}

/**
 * Follow the page's address from now on. Each entry of the browser's history remembers during
 * which visit, of this page or of a link, it was seen: Back to it then brings what was there at
 * the end of that visit, and not the state of its link once more.
 */
export function followAddress(widget, id, signal) {
  const key = `live-${id}`;
  const stored = `${key} ${location.pathname}`; // of the last page that was left in this tab
  const left = new Map(); // visit -> the state in which it was left
  let current = ""; // the visit
  const enter = (visit) => {
    current = visit ?? String(Math.random());
    history.replaceState({ ...history.state, [key]: current }, "");
  };
  enter(history.state?.[key]);
  const [navigationEntry] = performance.getEntriesByType("navigation");
  try {
    const { visit, state } = JSON.parse(sessionStorage.getItem(stored)) ?? {};
    if (visit && /** @type {any} */ (navigationEntry)?.type === "back_forward")
      left.set(visit, state);
  } catch {
    // this browser keeps nothing
  }
  const bring = () => {
    const state = left.get(current);
    if (state && !problem(widget.spec, state.inputs)) widget.hold(state);
    else restore(widget, id);
  };
  bring();
  const follow = () => {
    const visit = history.state?.[key];
    if (visit === current) return;
    const here = visit ?? (linksTo(id) ? undefined : current);
    left.set(current, widget.state());
    const stays = here === current;
    enter(here);
    if (!stays) bring();
  };
  addEventListener("popstate", follow, { signal });
  const keep = () => {
    if (widget.spec.facts?.training) return; // it is not to be trained once more
    try {
      sessionStorage.setItem(stored, JSON.stringify({ visit: current, state: widget.state() }));
    } catch {
      // this browser keeps nothing, or has no room
    }
  };
  addEventListener("pagehide", keep, { signal });
}

/** Show the state that the address holds for this widget, if there is one. */
function restore(widget, id) {
  let state;
  try {
    state = readLink(id);
    if (state === undefined) return;
    const wrong = problem(widget.spec, state.inputs);
    if (wrong) throw new Error(wrong);
  } catch (error) {
    const why =
      error instanceof SyntaxError || error instanceof DOMException || error instanceof TypeError
        ? "It is cut off or changed."
        : error.message;
    widget.announce(`The link to this state is damaged. ${why} Nothing was changed.`);
    return;
  }
  widget.hold(state);
  if ("seed" in state.inputs && state.generator !== GENERATOR) widget.announce(OLDER, "hint");
  // The host still has to take the stored table away; then the widget stands where it stays.
  requestAnimationFrame(() => widget.el.scrollIntoView({ block: "nearest" }));
}
