// A choice among trained models, each with a text of its own: for widgets with several weights.

import { choice } from "./controls.js";
import { h, write } from "./parts.js";

/** The models, one of which reads; what each is. */
export function chooser(widget) {
  const { models } = widget.spec.facts;
  const titles = models.map(({ title }) => title);
  const picks = choice(widget, "variant", "The model", titles);
  const note = h("p", { class: "note" });
  return {
    element: h("div", { class: "column" }, picks.element, note),
    shows: "inputs",
    update(inputs) {
      picks.update(inputs);
      const { layers, heads, parameters, about } = models[inputs.variant];
      write(
        note,
        `${about} ${(parameters / 1e6).toFixed(1)} million parameters in ${layers} layers of ` +
          `${heads} heads.`,
      );
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
      // what is half typed there is let go
      if (!element.hidden && inputs.variant !== variant) box.reset();
      element.hidden = inputs.variant !== variant;
    },
  };
}

ofModel.style = ".column[hidden] { display: none; }";
