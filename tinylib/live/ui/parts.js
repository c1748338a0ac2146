// The shared parts of every widget: editors, heat maps, and the frame around them.
//
// A view is a list of parts:  export default live("title", (ui) => [ui.words(),
// ui.heat("weights")]); `partsFor`, below, lists those that any view may have; what they are made
// of is in dom.js, and the controls are in controls.js and knobs.js.
// Parts of other files, or of the view itself, join by  ui.use(part, ...its arguments).
// It only edits `inputs` and shows `outputs`. Who computes them, torch in a kernel or the exported
// graph in the page, is the business of the model that it is given (anywidget's, or page/host.js).

import { choice, offers, toggle } from "./controls.js";
import { h } from "./dom.js";
import { explanation } from "./explain.js";
import { entrySlider, knob } from "./knobs.js";
import { heatMap, matrixEditor, mixture } from "./tables.js";
import { isToured, Widget } from "./widget.js";
import { wordEditor } from "./word_list.js";

/**
 * A widget of the parts that `build(ui)` lists, as anywidget and the page host expect it.
 * `query` is the word that is chosen at first; -1 is the last one. A `wide` widget takes more
 * room than the text around it, where a page has it. `main` is the selector of its main result, if
 * that is not all that it shows, and `answer` that of what says it in short, for phones. `tour`
 * lists the parts of a screen of the tour, which has one thing to do: once it is done, one of them
 * says so, see notifyPage() of dom.js.
 */
export function live(title, build, given = /** @type {any} */ ({})) {
  const { query = 0, wide = false, tour = undefined, ...named } = given;
  return {
    render({ model, el }) {
      const toured = tour && isToured(model);
      el.classList.toggle("wide", wide && !isToured(model));
      el.dataset.lmSuppressShortcuts = "true"; // in JupyterLab, X would cut the widget's cell
      const widget = new Widget(model, el, query);
      const screen = toured ? {} : named;
      const own = widget.spec.facts?.title ?? title; // one widget may be about several things
      widget.mount(own, (toured ? tour : build)(partsFor(widget)), screen);
      return () => widget.unmount();
    },
  };
}

/** The parts that a view may list, for one widget. */
function partsFor(widget) {
  const add =
    (make) =>
    (...args) => {
      const part = make(widget, ...args);
      widget.parts.push(part);
      return part;
    };
  const box = (name, ...parts) => ({
    element: h("div", { class: name }, ...parts.map((part) => part.element)),
  });
  return {
    view: widget.model.get("view"), // a page may show less of a widget, such as the tour
    /** Parts in a box of the view's own style. */
    boxed: box,
    row: (...parts) => box("row", ...parts),
    column: (...parts) => box("column", ...parts),
    /** Side by side where there is room, else one below the other: controls, say, and results. */
    sides: (...parts) => box("sides", ...parts),
    knobs: (...parts) => box("knobs", ...parts),
    words: add(wordEditor),
    matrix: add(matrixEditor),
    entrySlider: add(entrySlider),
    slider: (name, label, low, high, step) => add(knob)(name, label, { ends: [low, high], step }),
    knob: add(knob),
    choice: add(choice),
    offers: add(offers),
    toggle: add(toggle),
    heat: (name, label, shading, explain) => {
      if (explain) widget.styles.add(explanation.style);
      return add(heatMap)(name, label, shading, explain);
    },
    explanation: (...args) => {
      widget.styles.add(explanation.style);
      return add(explanation)(...args);
    },
    mixture: add(mixture),
    use: (make, ...args) => {
      if (make.style) widget.styles.add(make.style);
      return add(make)(...args);
    },
  };
}

/** What is secondary, folded under a line that says what it is, until it `matters`. */
export function folded(_widget, title, part, matters = (_inputs) => false) {
  const element = h("details.folded", h("summary", title), part.element);
  return {
    element,
    shows: "inputs",
    update(inputs) {
      if (matters(inputs)) /** @type {HTMLDetailsElement} */ (element).open = true;
    },
  };
}
folded.style = `
.folded summary { cursor: pointer; font-size: var(--size-note); font-weight: 600; min-height:
  1.625rem; width: max-content; max-width: 100%; }
`;
