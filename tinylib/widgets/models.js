// A choice among trained models, each with a text of its own: for widgets with several weights.

import { h, write } from "./parts.js";

/** The models, one of which reads; what each is. */
export function chooser(widget) {
  const { models } = widget.spec.facts;
  const radios = models.map(({ title }, i) => {
    const radio = h("input", { type: "radio", name: "model", value: String(i),
      change: () => widget.edit(Symbol("model"), (next) => { next.variant = i; }) });
    return { radio, label: h("label", { class: "pick" }, radio, h("span", {}, title)) };
  });
  const note = h("p", { class: "note" });
  return {
    element: h("div", { class: "column" },
      h("div", { class: "picks", role: "radiogroup", "aria-label": "the model" }, ...radios.map(({ label }) => label)), note),
    shows: "inputs",
    update({ variant }) {
      radios.forEach(({ radio, label }, i) => {
        radio.checked = i === variant;
        label.classList.toggle("chosen", i === variant);
      });
      const { layers, heads, parameters, about } = models[variant];
      write(note, `${about} ${(parameters / 1e6).toFixed(1)} million parameters in ${layers} layers of ${heads} heads.`);
    },
  };
}

/** A box and what belongs to it, there while the model `variant` is chosen. */
export function ofModel(widget, variant, box, ...others) {
  const element = h("div", { class: "column" }, box.element, ...others.map((part) => part.element));
  return {
    element,
    shows: "inputs",
    update(inputs) {
      if (!element.hidden && inputs.variant !== variant) box.reset(); // what is half typed there is let go
      element.hidden = inputs.variant !== variant;
    },
  };
}

ofModel.style = ".column[hidden] { display: none; }";
chooser.style = `
.picks { display: flex; flex-wrap: wrap; gap: 6px; }
.pick { display: inline-flex; gap: 8px; align-items: center; min-height: 34px; padding: 3px 12px 3px 7px; border: 1px solid var(--line); border-radius: 8px; cursor: pointer; font-size: 14px; }
.pick input { width: 24px; height: 24px; margin: 0; accent-color: var(--accent); flex: none; }
.pick.chosen { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); font-weight: 600; }
`;
