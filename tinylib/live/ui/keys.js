// What the colours of a table of numbers say: printed beneath it.

import { h } from "./dom.js";
import { formatTiny } from "./numbers.js";

/** The key of shares, 0 to 1 for all of them; `masked` says what is hatched. */
export function weightKey(masked = "masked") {
  const hatched = h("span.hatched");
  const message = masked ? [hatched, h("span", masked)] : [];
  return h("p.ramp-key", { "aria-hidden": "true" }, "0", h("i"), "1", ...message);
}

/** The key of numbers above and below 0; `reach(most)` says how far its ends lie from 0. */
export function signedKey() {
  const [low, high] = [h("span"), h("span")];
  const element = h("p.ramp-key.signed", { "aria-hidden": "true" }, low, h("i"), high);
  return {
    element,
    reach(most) {
      element.style.visibility = most ? "" : "hidden";
      low.textContent = formatTiny(-most);
      high.textContent = formatTiny(most);
    },
  };
}

export const KEYS = `
.ramp-key { display: flex; flex-wrap: wrap; gap: 2px 6px; align-items: center; margin: 6px 0 0;
  color: var(--soft); font-size: var(--size-small); font-variant-numeric: tabular-nums; }
.ramp-key i { width: 4.5rem; height: .625rem; border: 1px solid var(--line); border-radius: 2px;
  background: linear-gradient(to right in oklab, var(--ground), var(--tone, var(--weight))); }
/* where the ink grows with the square root of the weight */
.ramp-key.root i { background: linear-gradient(to right in oklab, var(--ground), color-mix(in oklab,
  var(--ground), var(--weight) 32%) 10%, color-mix(in oklab, var(--ground), var(--weight) 50%) 25%,
  color-mix(in oklab, var(--ground), var(--weight) 71%) 50%, var(--weight)); }
.ramp-key.signed i { background: linear-gradient(to right in oklab,
  color-mix(in oklab, var(--ground), var(--negative) 80%), var(--ground),
  color-mix(in oklab, var(--ground), var(--positive) 80%)); }
.ramp-key .hatched { width: 1.125rem; height: .75rem; margin-left: 8px; border: 1px solid
  var(--line); background: var(--hatch); }
`;
