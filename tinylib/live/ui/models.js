// A choice among trained models, each with a text of its own: for widgets with several weights.

import { choice } from "./controls.js";
import { h, setText } from "./dom.js";
import { text } from "./sentences.js";
import { beginnings } from "./texts.js";

/**
 * The models to choose from, and for each the box of its text with others to begin with: the one of
 * plays, which reads `prompt`, and the one of stories, whose box has the label `story`.
 */
export const textOfEach = (ui, story) => [
  ui.use(chooser),
  ui.use(ofModel, 0, ui.use(text, "prompt", "Your text"), ui.use(beginnings, "prompt", "prompts")),
  ui.use(ofModel, 1, ui.use(text, "story", story), ui.use(beginnings, "story", "stories")),
];

/** The models, one of which reads; what each is. */
function chooser(widget) {
  const { models } = widget.spec.facts;
  const titles = models.map(({ title }) => title);
  const picks = choice(widget, "variant", "The model", titles);
  const note = h("p.note");
  return {
    element: h("div.column", picks.element, note),
    shows: "inputs",
    update(inputs) {
      picks.update(inputs);
      const { layers, heads, parameters, about } = models[inputs.variant];
      setText(
        note,
        `${about} ${(parameters / 1e6).toFixed(1)} million parameters in ${layers} blocks of ` +
          `${heads} heads.`,
      );
    },
  };
}

/** A box and what belongs to it, there while the model `variant` is chosen. */
function ofModel(widget, variant, box, ...others) {
  const element = h("div.column", box.element, ...others.map((part) => part.element));
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
