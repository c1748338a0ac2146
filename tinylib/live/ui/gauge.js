// A share that grows while a model learns.

import { h, setText } from "./dom.js";
import { animate } from "./motion.js";
import { percent } from "./numbers.js";

/** A share that grows while a model learns: a bar with its name and its value; ✓ once it may. */
export function gauge(label, { most = 1, goal = undefined } = {}) {
  const bar = h("i");
  const value = h("b");
  const check = h("b.check", { hidden: true }, "✓");
  const element = h(
    "div.gauge",
    h("span.label", label),
    h("span.track", bar, ...(goal ? [h("u", { style: `left: ${100 * goal}%` })] : [])),
    h("span.value", value, check),
  );
  return {
    element,
    set(share, reached = false) {
      if (reached && check.hidden)
        animate(check, [{ transform: "scale(2.5)" }, { transform: "none" }], { duration: 600 });
      check.hidden = !reached;
      bar.style.width = `${(100 * Math.min(1, share / most)).toFixed(1)}%`;
      setText(value, percent(share));
    },
  };
}
gauge.style = `
.gauge { display: grid; grid-template-columns: minmax(0, 11em) minmax(5rem, 1fr) 5em; gap: 10px;
  align-items: center; font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.gauge .track { position: relative; height: .625rem; background: color-mix(in oklab, var(--ground),
  var(--line) 60%); border-radius: 5px; }
.gauge .track i { display: block; height: 100%; border-radius: 5px;
  background: var(--tone, var(--probability)); }
.gauge .value { display: flex; gap: 5px; }
.gauge .check { color: var(--tone, var(--probability)); }
.gauge .track u { position: absolute; top: -3px; bottom: -3px; border-left: 2px solid var(--text); }
`;
