// The shared parts of every widget: editors, heat maps, and the frame around them.
//
// A view is a list of parts:  export default live("title", (ui) => [ui.words(),
// ui.heat("weights")]); `partsFor`, below, lists those that any view may have; what they are made
// of is in dom.js, and the controls are in controls.js and knobs.js.
// Parts of other files, or of the view itself, join by  ui.use(part, ...its arguments).
// It only edits `inputs` and shows `outputs`. Who computes them, torch in a kernel or the exported
// graph in the page, is the business of the model that it is given (anywidget's, or page/host.js).

import { GENERATOR } from "../page/chance.js";
import {
  hashedNumbers,
  linksTo,
  parseBlock,
  problem,
  readLink,
  wordsOf,
  writeLink,
} from "../page/inputs.js";
import { plainly } from "../page/words.js";
import { CONTROLS, choice, offers, toggle } from "./controls.js";
import {
  AS_IS,
  columnHeads,
  h,
  isComposing,
  times,
  setAttribute,
  mathText,
  namedRow,
  entryText,
  format,
  svgPart,
  setHeat,
  setText,
} from "./dom.js";
import { explainable, explanation, rove } from "./explain.js";
import { KEYS, signedKey, weightKey } from "./keys.js";
import { KNOBS, entrySlider, everywhere, knob, numberBox, rowsOf } from "./knobs.js";
import { LOOK, followScheme, shaded } from "./look.js";

export * from "./dom.js";
export { shaded } from "./look.js";

const copyOf = (value) => JSON.parse(JSON.stringify(value));

const PENCIL = "M2.5 13.5l.8-3.2 7.4-7.4 2.4 2.4-7.4 7.4zM9.2 4.4l2.4 2.4";
const CSS_FITS = CSS.supports("field-sizing", "content");

// ---------------------------------------------------------------- the frame

/**
 * A widget of the parts that `build(ui)` lists, as anywidget and the page host expect it.
 * `query` is the word that is looked from at first; -1 is the last one. A `wide` widget takes more
 * room than the text around it, where a page has it.
 */
export function live(title, build, { query = 0, wide = false } = {}) {
  return {
    render({ model, el }) {
      el.classList.toggle("wide", wide);
      el.dataset.lmSuppressShortcuts = "true"; // in JupyterLab, X would cut the widget's cell
      const widget = new Widget(model, el, query);
      widget.mount(title, build);
      return () => widget.unmount();
    },
  };
}

const WAITING = "Still waiting for the new numbers. Is the kernel running?";
const OLDER =
  "This link was made with an older generator of random numbers: the same seed draws others now.";
const COMPUTING = "Computing…";
const BUSY_AFTER_MS = 80; // an answer that comes earlier is shown without any sign of work

/**
 * What shows results has an attribute data-output, and is greyed while it is out of date. If it
 * shows an output number by number, the attribute names it, and the elements in it, or it itself,
 * hold the numbers, as the property `values` or the attribute data-value: then the tests compare
 * them with torch's, all entries of the output in its order. Else the attribute is empty.
 */
const RESULTS = "[data-output]";

class Widget {
  constructor(model, el, query) {
    this.model = model;
    this.el = el;
    this.spec = model.get("spec");
    this.first = copyOf(model.get("inputs"));
    this.history = [];
    this.parts = [];
    this.styles = new Set(); // of the parts that have their own
    this.tables = new Map(); // name of an input or an output -> its table of cells, as rows
    this.unusable = new Set(); // the lines of text that hold what cannot be used
    this.lastRow = this.rows(this.first).length - 1;
    this.tail = query === -1; // then whoever looks at the last row goes on to look at the last
    this.query = this.start = this.tail ? this.lastRow : query; // the row that the reader looks at
    this.entry = null; // the matrix entry that the slider moves: { name, row, column }
    this.late = this.busy = false; // no answer came within BUSY_AFTER_MS; the frame shows it
    this.quiet = false;
    this.streams = false; // a part edits step by step, and each answer goes on from the one before
  }

  get inputs() {
    return this.model.get("inputs");
  }

  /** Whether the outputs are those of older inputs. Inputs are numbered as they are sent. */
  get behind() {
    return this.sent !== (this.model.get("answered") ?? 0);
  }

  get sent() {
    return this.model.get("asked") ?? 0;
  }

  /**
   * The outputs as { shape, data: Float32Array }; they may still be of the inputs before. They are
   * the same object until others come.
   */
  readOutputs() {
    const came = this.model.get("outputs");
    if (this.came !== came) {
      this.read = Object.fromEntries(
        Object.entries(came).map(([name, { shape, data }]) => {
          const { buffer, byteOffset, byteLength } = data;
          const own = buffer.slice(byteOffset, byteOffset + byteLength);
          return [name, { shape, data: new Float32Array(own) }];
        }),
      );
      this.came = came;
    }
    return this.read;
  }

  mount(title, build) {
    const parts = build(partsFor(this));
    const root = this.el.shadowRoot ?? this.el.attachShadow({ mode: "open" });
    this.problemLine = h("p.problem", { role: "alert" });
    this.failureLine = h("p.problem.failure", { role: "alert" });
    this.where = h("span.where", { role: "status" });
    this.progress = h("progress", {
      hidden: true,
      "aria-label": "the trained model, loaded so far",
    });
    this.amount = h("span.amount", { hidden: true });
    // The foot says the same to a screen reader; this is seen wherever the reader is in the frame.
    this.work = h("span.what", { "aria-hidden": "true" });
    this.busyLine = h(
      "div.busy",
      { hidden: true },
      h("div", h("span.turning", { "aria-hidden": "true" }), this.work, this.amount, this.progress),
    );
    this.undoButton = h("button", { click: () => this.undo() }, "Undo");
    this.againButton = h(
      "button",
      { hidden: true, click: () => this.send(this.inputs) },
      "Try again",
    );
    this.resetButton = h("button", { click: () => this.reset() }, "Reset");
    const id = this.model.get("link_id"); // only the page host gives one
    this.linkField = h("input.link", {
      type: "text",
      readonly: true,
      hidden: true,
      "aria-label": "link to this state",
    });
    this.frame = h(
      "div.frame",
      { role: "group", "aria-label": title },
      this.busyLine,
      h("p.title", title),
      ...parts.map((part) => part.element),
      this.problemLine,
      this.failureLine,
      h(
        "div.foot",
        this.where,
        this.againButton,
        this.undoButton,
        this.resetButton,
        ...(id ? [h("button", { click: () => this.share(id) }, "Copy link")] : []),
      ),
      this.linkField,
    );
    root.replaceChildren(h("style", STYLE, ...this.styles), this.frame);
    // What an input method has half composed is nothing yet; all of it is typed when that ends.
    for (const event of ["input", "keydown"]) {
      const hold = (typed) => isComposing(typed) && typed.stopPropagation();
      this.frame.addEventListener(event, hold, true);
    }
    this.frame.addEventListener("compositionend", ({ target }) =>
      target.dispatchEvent(new Event("input", { bubbles: true })),
    );
    for (const event of ["focusout", "pointerdown"]) {
      this.frame.addEventListener(event, () => {
        this.field = undefined;
      });
    }
    this.frame.addEventListener("pointerdown", ({ button }) => {
      if (button === 0) this.press();
    });
    this.listeners = {
      "change:inputs": () => this.repaint("inputs"),
      "change:answers": () => this.answered(), // sent after the outputs, even if they are the same
      "change:where": () => this.showState(),
      // Only the page host has these: what it loads, and how much of that is there; that an answer
      // will take its time; and why there is none.
      "change:loading": () => {
        if (this.behind) this.awaitAnswer();
        this.showState();
      },
      "change:progress": () => this.showProgress(this.model.get("progress")),
      "change:slow": () => this.showBusy(),
      "change:error": () => this.fail(this.model.get("error")),
    };
    for (const [event, fn] of Object.entries(this.listeners)) this.model.on(event, fn);
    if (id) {
      this.leaving = new AbortController();
      this.arrive(id);
    }
    this.forgetScheme = followScheme(this.el, () => {
      for (const canvas of this.frame.querySelectorAll("canvas")) canvas.again?.();
    });
    this.showState();
    this.repaint();
  }

  unmount() {
    this.forgetScheme();
    clearTimeout(this.patience);
    clearTimeout(this.soon);
    for (const [event, fn] of Object.entries(this.listeners)) this.model.off(event, fn);
    this.leaving?.abort();
  }

  /** Change a copy of the inputs; keep it if it is valid, else show or `report` what is wrong. */
  edit(field, mutate, report) {
    const next = copyOf(this.inputs);
    mutate(next);
    return this.change(next, field, report);
  }

  /** Edits of one field are one step to undo, until the reader leaves it or grips it again. */
  remember(field) {
    if (field !== this.field) {
      this.history.push(this.inputs);
      if (this.history.length > 200) this.history.shift();
    }
    this.field = field;
  }

  change(next, field, report) {
    const wrong = problem(this.spec, next);
    this.say(report ? "" : wrong);
    report?.(wrong);
    if (wrong) return false;
    if (JSON.stringify(next) !== JSON.stringify(this.inputs)) {
      this.remember(field);
      this.send(next);
    }
    return true;
  }

  undo() {
    this.field = undefined;
    this.streams = false;
    this.say("");
    this.send(this.history.pop());
  }

  reset() {
    const steps = this.history.length;
    this.streams = false;
    for (const part of this.parts) part.reset?.(); // what is typed but could not be used
    this.query = this.start;
    this.change(this.first, Symbol("reset"));
    this.repaint();
    if (this.history.length > steps)
      this.say("Reset: done. Undo brings your numbers back.", "hint");
  }

  send(inputs) {
    clearTimeout(this.patience);
    if (!this.model.get("link_id")) {
      this.patience = setTimeout(() => this.say(WAITING, "hint"), 5000);
    }
    this.model.set("inputs", copyOf(inputs));
    this.model.set("asked", this.sent + 1);
    this.awaitAnswer();
    this.model.save_changes();
  }

  /** An answer is due: if none comes soon, the reader sees that what is shown is out of date. */
  awaitAnswer() {
    if (!this.late) this.soon ??= setTimeout(() => this.showBusy(), BUSY_AFTER_MS);
  }

  showBusy() {
    this.late = true;
    this.showState();
  }

  /** An answer has come, or none will: the wait is over. */
  stopWaiting() {
    clearTimeout(this.soon);
    this.soon = undefined;
  }

  answered() {
    clearTimeout(this.patience);
    this.stopWaiting();
    if (this.problemLine.textContent === WAITING) this.say("");
    if (!this.behind && !this.model.get("unfinished") && !this.streams) this.late = false;
    else this.awaitAnswer();
    this.showState();
    this.repaint("outputs");
  }

  /** Say why there are no new outputs; "" when there are. */
  fail(why) {
    setText(this.failureLine, why);
    if (why) {
      this.stopWaiting();
      this.late = false;
    } else {
      this.leave(this.againButton);
    }
    this.againButton.hidden = !why || Boolean(this.model.get("final"));
    this.showState();
  }

  /**
   * Grey the results of older inputs, and say at the top of the frame, and in its foot, what is
   * under way, if it is late; else the foot says where the results come from.
   */
  showState() {
    const behind = this.late && this.behind && !this.streams;
    const loading = this.model.get("loading");
    this.frame.classList.toggle("stale", behind || Boolean(this.model.get("error")));
    this.busyLine.hidden = !this.late || (this.quiet && !loading);
    setText(this.work, this.progress.hidden ? loading || COMPUTING : "Loading the model");
    setText(this.where, loading || (this.late ? COMPUTING : this.model.get("where")));
    if (this.busy === this.late) return;
    this.busy = this.late;
    for (const result of this.frame.querySelectorAll(RESULTS))
      setAttribute(result, "aria-busy", String(this.busy));
  }

  /** Edits follow each other from now on, or no longer: what is shown is true as far as it goes. */
  stream(on, quiet = false) {
    this.streams = on;
    this.quiet = on && quiet; // no sign of work over the frame: what changes in it shows enough
    if (!on && !this.behind && !this.model.get("unfinished")) {
      this.stopWaiting();
      this.late = false;
    }
    this.showState();
  }

  /** Grey the results while the text in `line` is unusable: they belong to an older text. */
  setAside(line, unusable) {
    this.unusable[unusable ? "add" : "delete"](line);
    for (const result of this.frame.querySelectorAll(`${RESULTS}, .tokens`))
      result.inert = this.unusable.size > 0;
  }

  /** Take the focus off a button that is about to go, to one that stays. */
  leave(button) {
    if (button.getRootNode().activeElement === button) this.resetButton.focus();
  }

  /** Until the pointer is let go no message is shown: it would push a button from under it. */
  press() {
    const release = new AbortController();
    this.pressed = true;
    for (const event of ["pointerup", "pointercancel"]) {
      addEventListener(
        event,
        () => {
          release.abort();
          this.pressed = false;
          setTimeout(() => {
            if (this.pendingMessage) this.say(...this.pendingMessage);
          });
        },
        { signal: release.signal },
      );
    }
  }

  say(text, kind = "") {
    this.pendingMessage = this.pressed && text ? [text, kind] : undefined;
    if (this.pendingMessage) return;
    this.problemLine.textContent = text;
    this.problemLine.dataset.kind = kind;
  }

  /** What a link holds: the inputs, and what the reader looks at. */
  state() {
    const view = Object.assign({}, ...this.parts.map((part) => part.saved?.()));
    return { inputs: this.inputs, query: this.query, view };
  }

  async share(id) {
    const link = writeLink(id, this.state());
    history.replaceState(history.state, "", link);
    try {
      await navigator.clipboard.writeText(link);
      this.say("The link is in the clipboard; it holds your words and numbers.", "hint");
    } catch {
      // no permission, or not a secure page: let the reader copy it
      this.linkField.hidden = false;
      this.linkField.value = link;
      this.linkField.select();
      this.say("Copy the link below; it holds your words and numbers.", "hint");
    }
  }

  /**
   * Follow the page's address from now on. Each entry of the browser's history remembers during
   * which visit, of this page or of a link, it was seen: Back to it then brings what was there at
   * the end of that visit, and not once more what its link says.
   */
  arrive(id) {
    const key = `live-${id}`;
    const stored = `${key} ${location.pathname}`; // of the last page that was left in this tab
    const left = new Map(); // visit -> the state in which it was left
    const enter = (visit) => {
      this.visit = visit ?? String(Math.random());
      history.replaceState({ ...history.state, [key]: this.visit }, "");
    };
    const { signal } = this.leaving;
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
      const state = left.get(this.visit);
      if (state && !problem(this.spec, state.inputs)) this.hold(state);
      else this.restore(id);
    };
    bring();
    const follow = () => {
      const visit = history.state?.[key];
      if (visit === this.visit) return;
      const here = visit ?? (linksTo(id) ? undefined : this.visit);
      left.set(this.visit, this.state());
      const stays = here === this.visit;
      enter(here);
      if (!stays) bring();
    };
    addEventListener("popstate", follow, { signal });
    const keep = () => {
      if (this.spec.facts?.training) return; // it is not to be trained once more
      try {
        sessionStorage.setItem(stored, JSON.stringify({ visit: this.visit, state: this.state() }));
      } catch {
        // this browser keeps nothing, or has no room
      }
    };
    addEventListener("pagehide", keep, { signal });
  }

  restore(id) {
    let state;
    try {
      state = readLink(id);
      if (state === undefined) return;
      const wrong = problem(this.spec, state.inputs);
      if (wrong) throw new Error(wrong);
    } catch (error) {
      const why =
        error instanceof SyntaxError || error instanceof DOMException || error instanceof TypeError
          ? "It is cut off or changed."
          : error.message;
      this.say(`The link to this state is damaged. ${why} Nothing was changed.`);
      return;
    }
    this.hold(state);
    if ("seed" in state.inputs && state.generator !== GENERATOR) this.say(OLDER, "hint");
    // The host still has to take the stored table away; then the widget stands where it stays.
    requestAnimationFrame(() => this.el.scrollIntoView({ block: "nearest" }));
  }

  hold({ inputs, query, view }) {
    this.change(inputs, "link");
    this.look(Number.isInteger(query) ? query : 0);
    for (const part of this.parts) part.restore?.(Object(view));
  }

  /** How much of the trained model has been loaded: { loaded, total } in bytes, or null. */
  showProgress(progress) {
    const { loaded, total } = progress ?? {};
    this.progress.hidden = this.amount.hidden = !(loaded < total);
    this.showState();
    if (!progress) return;
    [this.progress.max, this.progress.value] = [total, loaded];
    setText(this.amount, `${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`);
  }

  /** The cells that show an input or an output: all, or those of a row, a column or an entry. */
  cellsOf(name, row, column) {
    const rows = this.tables.get(name)?.() ?? [];
    const some = (list, at) => (at === undefined ? list : list.slice(at, at + 1));
    return some(rows, row).flatMap((cells) => some(cells, column));
  }

  select(name, row, column) {
    this.entry = { name, row, column };
    this.repaint();
  }

  look(row) {
    this.query = row;
    this.repaint();
  }

  /** Let the parts that show `what` ("inputs", "outputs" or both) follow. */
  repaint(what = "") {
    const { inputs } = this;
    const outputs = this.readOutputs();
    const last = this.rows(inputs).length - 1;
    const follows = this.tail && this.query === this.lastRow;
    this.query = follows ? last : Math.max(0, Math.min(this.query || 0, last));
    this.lastRow = last;
    if (this.history.length === 0) this.leave(this.undoButton);
    this.undoButton.disabled = this.history.length === 0;
    for (const part of this.parts) {
      if (!what || !part.shows || part.shows === what) part.update(inputs, outputs);
    }
  }

  /** The words that an axis counts, if it counts words. */
  words(axis, inputs = this.inputs) {
    if (axis === "T" && this.spec.words) return inputs.words;
    const name = Object.keys(this.spec.sentences ?? {}).find(
      (key) => this.spec.inputs[key] === axis,
    );
    return name && wordsOf(this.spec, name, inputs[name]);
  }

  /** The words of which the reader looks at one: the list's, or the first sentence's; with several
   * models, those of the sentence that the chosen one reads, if each reads its own. */
  rows(inputs) {
    const names = Object.keys(this.spec.sentences ?? {});
    const name = names[inputs.variant] ?? names[0];
    return inputs.words ?? (name ? this.words(this.spec.inputs[name], inputs) : [""]);
  }

  /** The labels of an axis: words where it counts words, else 1, 2, 3. */
  labels(axis, size) {
    const words = this.words(axis);
    return words?.length === size ? words : times(size, (i) => String(i + 1));
  }
}

// ---------------------------------------------------------------- the parts

/** The parts that a view may list, for one widget. */
function partsFor(widget) {
  const add =
    (make) =>
    (...args) => {
      const part = make(widget, ...args);
      widget.parts.push(part);
      return part;
    };
  return {
    row: (...parts) => ({ element: h("div.row", ...parts.map((p) => p.element)) }),
    column: (...parts) => ({ element: h("div.column", ...parts.map((p) => p.element)) }),
    /** Parts in a box of the view's own style. */
    boxed: (name, ...parts) => ({
      element: h("div", { class: name }, ...parts.map((p) => p.element)),
    }),
    /** Side by side where there is room, else one below the other: controls, say, and results. */
    sides: (...parts) => ({ element: h("div.sides", ...parts.map((p) => p.element)) }),
    knobs: (...parts) => ({ element: h("div.knobs", ...parts.map((p) => p.element)) }),
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
.folded summary { cursor: pointer; font-size: var(--size-note); font-weight: 600;
  min-height: 1.625rem;
  width: max-content; max-width: 100%; }
`;

/**
 * The words: choose, rename, add, remove. A click or a tap chooses a word, so that no keyboard
 * covers the screen of a phone; its pencil, a double click or Enter renames it. Each carries its
 * embedding with it in every input whose rows are words. If `weights` names an output, a word is
 * shaded by how much the chosen word attends to it.
 * `follow(next, at, count, length)` lets other inputs keep pace: from `at` on, `count` words have
 * become `length`. `lexicon()` has the embeddings of words that the widget knows, as { key, known:
 * { x: { word: row } } }; what a reader makes of them is kept apart for each key.
 */
function wordEditor(widget, weights, follow, lexicon = () => ({ key: "", known: {} })) {
  const { spec } = widget;
  const list = h("ol.words", { ...AS_IS, "aria-label": "words" });
  const caption = h("span.gaze");
  const addButton = h("button.add", { "data-input": "words", click: () => insert() }, "Add word");
  const tables = Object.entries(spec.inputs).filter(([, axes]) => axes.startsWith("T "));

  const rows = new Map(); // "x journey", after the key -> the last row that the word had
  const placeOf = (name, word) => `${lexicon().key} ${name} ${word}`;
  const embedding = (name, axes, word) => [
    ...(rows.get(placeOf(name, word)) ??
      lexicon().known[name]?.[word] ??
      hashedNumbers(word, Number(axes.split(" ")[1]))),
  ];
  /** Put `words` in the place of `count` words from `at` on; what is chosen stays chosen. */
  const splice = (field, at, count, ...words) => {
    const { query, entry } = widget;
    const row = entry?.row;
    const after = (index) => (index >= at + count ? index + words.length - count : index);
    widget.query = after(query);
    if (tables.some(([name]) => name === entry?.name)) entry.row = after(row);
    const done = widget.edit(field, (next) => {
      next.words.splice(at, count, ...words);
      follow?.(next, at, count, words.length);
      for (const [name, axes] of tables) {
        next[name].splice(at, count, ...words.map((word) => embedding(name, axes, word)));
      }
    });
    if (!done) {
      widget.query = query;
      if (entry) entry.row = row;
    }
    return done;
  };
  const insert = () => {
    const { length } = widget.inputs.words;
    if (length >= spec.max.words) {
      widget.say(`There is room for ${spec.max.words} words: remove one first.`);
      return;
    }
    splice(Symbol("add"), length, 0, "word");
    rename(length).select();
  };

  let edited = -1; // the word that is being renamed
  const rename = (i) => {
    edited = i;
    widget.look(i);
    const box = list.children[i].querySelector("input");
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
    return box;
  };
  const chip = (i) => {
    const use = () => {
      const typed = plainly(box.value, () => false)
        .trim()
        .split(/\s+/);
      box.kept = typed[0];
      const done = splice(`word ${i}`, i, 1, ...typed);
      if (!done) box.kept = widget.inputs.words[i];
      box.setAttribute("aria-invalid", String(!done));
      if (done && typed.length > 1) rename(i + typed.length - 1);
    };
    const close = () => {
      edited = -1;
      widget.repaint("inputs");
    };
    const pick = h(
      "button.pick-word",
      {
        click: () => widget.look(i),
        dblclick: () => rename(i),
        keydown: (event) => {
          const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (event.key !== "Enter" && !by) return;
          event.preventDefault();
          if (!by) rename(i);
          else if (list.children[i + by]) {
            widget.look(i + by);
            list.children[i + by].firstChild.focus();
          }
        },
      },
      h("span"),
    );
    const box = h("input", {
      type: "text",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "data-input": "words",
      "aria-label": `word ${i + 1}`,
      input: use,
      keydown: ({ key }) => {
        if (key !== "Enter" && key !== "Escape") return;
        close();
        pick.focus();
      },
      blur: () => {
        box.removeAttribute("aria-invalid");
        box.value = widget.inputs.words[i] ?? "";
        fit(box);
        // What is pressed now must not move away from under the pointer before it is let go.
        const soon = () => setTimeout(() => edited === i && close());
        if (widget.pressed) addEventListener("pointerup", soon, { once: true });
        else soon();
      },
    });
    const pencil = h(
      "button.rename",
      { click: () => rename(i) },
      svgPart("svg", { viewBox: "0 0 16 16" }, svgPart("path", { d: PENCIL })),
    );
    const remove = h(
      "button.remove",
      {
        "data-input": "words",
        click: () => {
          splice(Symbol("remove"), i, 1);
          addButton.focus();
        },
      },
      "×",
    );
    box.value = widget.inputs.words[i];
    box.kept = box.value; // the word that the box stands for, whatever is half typed in it
    const weight = h("span.weight", { "data-output": "" });
    return h("li.word", pick, box, weight, pencil, remove);
  };
  const fit = (box) => {
    // a browser that cannot do `field-sizing: content` gets a good guess
    if (!CSS_FITS) box.style.width = `${[...box.value].length + 2.5}ch`;
  };

  return {
    element: h("div.sentence", caption, list, addButton),
    update(inputs, outputs) {
      const { words } = inputs;
      if (list.children.length !== words.length) {
        list.replaceChildren(...words.map((_, i) => chip(i)));
      }
      const out = weights && outputs[weights];
      const row =
        out && out.shape[0] === words.length
          ? out.data.subarray(widget.query * words.length, (widget.query + 1) * words.length)
          : null;
      words.forEach((word, i) => {
        for (const [name] of tables) rows.set(placeOf(name, word), inputs[name][i]);
        const li = list.children[i];
        const [pick, box, weight, pencil, remove] = li.children;
        const typing = box === list.getRootNode().activeElement && box.kept === word;
        if (!typing && box.value !== word) {
          box.value = word;
          box.removeAttribute("aria-invalid");
        }
        box.kept = word;
        fit(box);
        setText(pick.firstChild, word);
        box.hidden = i !== edited;
        pick.hidden = i === edited;
        if (row) setAttribute(pick, "aria-pressed", String(i === widget.query));
        pick.tabIndex = i === widget.query ? 0 : -1;
        setAttribute(pencil, "aria-label", `rename ${word}`);
        setAttribute(remove, "aria-label", `remove ${word}`);
        remove.disabled = words.length === 1;
        if (row) {
          setText(weight, format(row[i]));
          setHeat(li, row[i]);
          li.classList.toggle("query", i === widget.query);
        }
      });
      setText(
        caption,
        weights ? `How much “${words[widget.query]}” attends to each word:` : "Words:",
      );
    },
  };
}

/** A table of number boxes over the input `name`; takes pasted blocks. */
function matrixEditor(widget, name, label) {
  const limits = widget.spec.limits?.[name];
  const axes = widget.spec.inputs[name].split(" ");
  const flat = axes.length === 1; // a vector: one row, named by the label
  const table = h("table.matrix");
  let size = "";
  const box = (row, column) => {
    const input = numberBox(widget, name, {
      field: () => `${name} ${row} ${column}`,
      read: (inputs) => rowsOf(inputs, name)[row]?.[column],
      form: entryText,
      put: (next, typed) => {
        rowsOf(next, name)[row][column] = typed;
      },
      focus: () => widget.select(name, row, column),
      paste: (event) => {
        const text = event.clipboardData.getData("text");
        if (!/[^\s[\](),;][\s,;]+[^\s[\](),;]/.test(text.trim())) return; // one number: as typed
        event.preventDefault();
        input.settle();
        pasteBlock(parseBlock(text, limits ?? everywhere(widget)), row, column);
        input.settle();
      },
    });
    return input;
  };
  const pasteBlock = ({ rows, error }, row, column) => {
    if (error) {
      widget.say(`Nothing was pasted. ${error}`);
      return;
    }
    const [height, width] = [rows.length, rows[0]?.length ?? 0];
    const held = rowsOf(widget.inputs, name);
    const [T, D] = [held.length, held[0].length];
    if (!rows.every((cells) => cells.length === width)) {
      widget.say("Nothing was pasted: the rows of the block are not equally long.");
      return;
    }
    if (height === T && width === D) [row, column] = [0, 0];
    if (row + height > T || column + width > D) {
      widget.say(
        `Nothing was pasted: the block is ${height} × ${width}, and from this entry on ` +
          `there is room for ${T - row} × ${D - column}.`,
      );
      return;
    }
    widget.edit(Symbol("paste"), (next) =>
      rows.forEach((cells, i) =>
        cells.forEach((value, j) => {
          rowsOf(next, name)[row + i][column + j] = value;
        }),
      ),
    );
  };
  widget.tables.set(name, () =>
    [...table.tBodies[0].rows].map((tr) => [...tr.cells].slice(1).map((td) => td.firstChild)),
  );
  const build = (rows, columns) => {
    const heading = () => (flat ? mathText(label) : []);
    table.replaceChildren(
      ...(flat ? [] : [h("caption", ...mathText(label))]),
      columnHeads(null, ...times(columns, (j) => String(j + 1))),
      h(
        "tbody",
        AS_IS,
        ...times(rows, (i) =>
          namedRow(
            heading(),
            times(columns, (j) => [box(i, j)]),
          ),
        ),
      ),
    );
  };
  return {
    element: h("div.scroll", table),
    shows: "inputs",
    update(inputs) {
      const matrix = rowsOf(inputs, name);
      const { entry } = widget;
      if (size !== `${matrix.length} ${matrix[0].length}`) {
        build(matrix.length, matrix[0].length);
        size = `${matrix.length} ${matrix[0].length}`;
      }
      const labels = flat ? [] : widget.labels(axes[0], matrix.length);
      matrix.forEach((values, i) => {
        const [head, ...cells] = table.tBodies[0].rows[i].children;
        if (!flat) {
          setText(head, labels[i]);
          setAttribute(head, "title", labels[i]);
        }
        values.forEach((_, j) => {
          const input = cells[j].firstChild;
          input.follow();
          setAttribute(
            input,
            "aria-label",
            flat ? `${name} ${j + 1}` : `${name} of ${labels[i]}, ${j + 1}`,
          );
          input.classList.toggle(
            "chosen",
            entry?.name === name && entry.row === i && entry.column === j,
          );
        });
      });
    },
  };
}

/**
 * The output `name` as a table of shaded numbers: "weight" shades 0 to 1, "signed" both ways.
 * `explain(widget, row, column)` says how an entry was computed, by a rule of explain.js.
 */
function heatMap(widget, name, label, shading = "weight", explain = undefined) {
  const axes = widget.spec.outputs[name].split(" ");
  if (axes.length !== 2)
    throw new Error(`heat("${name}") needs an output of two axes, such as "T 1"`);
  const chooses = axes[0] === "T" && widget.spec.words;
  const table = h("table", { class: `heat ${shading}`, "data-output": name });
  // A weight of 0 is masked, unless the mask is off: then it is only very small, and rounded.
  const masks = () => widget.inputs.causal !== false;
  const never = (value) => value === -Infinity || (shading === "weight" && value === 0 && masks());
  const scale = shading === "signed" ? signedKey() : undefined;
  const key = scale?.element ?? weightKey();
  const bodyRows = () => [...(table.tBodies[0]?.rows ?? [])]; // none before the first answer
  const cells = () => bodyRows().map((tr) => [...tr.cells].slice(1));
  widget.tables.set(name, cells);
  const reach = explain ? rove(table) : () => {};
  let size = "";
  const build = (rows, columns) => {
    const tabindex = explain ? "-1" : false; // roving tabindex: the arrow keys move the focus
    const look = (i) => ({ tabindex, click: () => widget.look(i) });
    const head = (i) => (chooses ? h("button", look(i)) : h("span"));
    const spans = () => times(columns, () => [h("span")]);
    table.replaceChildren(
      h("caption", ...mathText(label)),
      columnHeads(null, ...spans()),
      h("tbody", AS_IS, ...times(rows, (i) => namedRow([head(i)], spans()))),
    );
    if (!explain) return;
    cells().forEach((line, i) =>
      line.forEach((cell, j) => explainable(widget, cell, () => explain(widget, i, j))),
    );
    reach();
  };
  return {
    element: h("div.scroll", table, key),
    shows: "outputs",
    update(inputs, outputs) {
      const {
        shape: [rows, columns],
        data,
      } = outputs[name];
      if (chooses && rows !== inputs.words.length) return; // the answer is still on its way
      if (size !== `${rows} ${columns}`) build(rows, columns);
      size = `${rows} ${columns}`;
      const [across, down] = [widget.labels(axes[1], columns), widget.labels(axes[0], rows)];
      [...table.tHead.rows[0].children].slice(1).forEach((th, j) => {
        setText(th.firstChild, across[j]);
        th.classList.toggle("long", axes[1] === "T" && widget.spec.words);
        th.translate = false;
        setAttribute(th, "title", across[j]);
      });
      let most = 1;
      if (shading === "signed") {
        most = data.reduce((m, v) => (Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m), 1e-9);
        scale.reach(most);
      }
      [...table.tBodies[0].rows].forEach((tr, i) => {
        setText(tr.children[0].firstChild, down[i]);
        setAttribute(tr.children[0], "title", down[i]);
        tr.classList.toggle("query", chooses && i === widget.query);
        for (let j = 0; j < columns; j += 1) {
          const [cell, value] = [tr.children[j + 1], data[i * columns + j]];
          const hidden = shading === "weight" && never(value);
          setText(cell.firstChild, hidden ? "" : format(value));
          setAttribute(cell, "data-value", String(value));
          const kind = never(value) ? "never" : value < 0 ? "below" : "above";
          if (!cell.classList.contains(kind)) {
            cell.classList.remove("never", "below", "above");
            cell.classList.add(kind);
          }
          setHeat(cell, Number.isFinite(value) ? Math.abs(value) / most : 0);
        }
      });
    },
  };
}

/**
 * The chosen word's row in words: which shares of which words make its vector in `result`.
 * `of` names what is mixed, as in v(word); without it, it is the words' own vectors.
 */
function mixture(widget, weights, result, of = (_widget) => "") {
  const line = h("p.note", { "data-output": "" });
  return {
    element: line,
    shows: "outputs",
    update({ words }, outputs) {
      const [shares, mixed] = [outputs[weights], outputs[result]];
      if (shares.shape[0] !== words.length) return; // the answer is still on its way
      const row = (out) => [
        ...out.data.slice(widget.query * out.shape[1], (widget.query + 1) * out.shape[1]),
      ];
      const name = of(widget); // of the vectors that are mixed, such as v
      const terms = row(shares)
        .map((share, i) => ({ share, word: words[i] }))
        .filter(({ share }) => share >= 0.005)
        .sort((a, b) => b.share - a.share)
        .map(({ share, word }) => `${format(share)} × ${name ? `${name}(${word})` : word}`);
      line.replaceChildren(
        h("b", `“${words[widget.query]}” becomes `),
        terms.join(" + "),
        row(shares).some((share) => share > 0 && share < 0.005) ? " + …" : "",
        ` = (${row(mixed).map(format).join(", ")})`,
      );
    },
  };
}

// ---------------------------------------------------------------- how it looks

const STYLE = `${LOOK}
:host { --hatch: repeating-linear-gradient(135deg, transparent 0 4px, var(--line) 4px 5px);
  display: block; container: widget / inline-size;
  margin: 1.5rem 0; color: var(--text);
  font: var(--size-text)/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
* { box-sizing: border-box; }
.frame { border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px;
  background: var(--ground); display: flex; flex-direction: column; gap: 14px; }
.title { margin: 0; font-weight: 650; }
.row { display: flex; flex-wrap: wrap; gap: 14px 18px; align-items: flex-start; }
.row > .row, .row > .column, .row > .note { flex: 1 1 13.125rem; min-width: 0; }
.row > .note { align-self: center; }
.row > .row { flex-basis: 18.125rem; gap: 14px 16px; }
.column { display: flex; flex-direction: column; gap: 4px; }
.sides { display: grid; gap: 14px 28px; min-width: 0; }
.sides > * { min-width: 0; }
.side { display: flex; flex-direction: column; gap: 14px; }
@container widget (min-width: 53.75rem) { /* what is changed at the left,
  what follows at the right */
  .sides { grid-template-columns: minmax(0, var(--left, 1fr)) minmax(0, var(--right, 1.4fr));
    align-items: start; }
}
sup { font-size: .75em; line-height: 0; white-space: nowrap; }
.note { margin: 0; font-size: var(--size-note); line-height: 1.6; max-width: 62ch;
  font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; max-width: 100%; }
.scroll.more { mask-image: linear-gradient(to left, transparent, var(--text) 44px); }
button { font: inherit; font-size: var(--size-note); min-height: 1.75rem; min-width: 1.75rem;
  padding: 2px 10px;
  cursor: pointer;
  color: var(--text); background: transparent; border: 1px solid var(--line); border-radius: 6px; }
button:hover:not(:disabled) { border-color: var(--accent); }
button:disabled { opacity: .45; cursor: default; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
input[type=text] { font: inherit; color: var(--text); background: transparent;
  border: 1px solid transparent;
  border-radius: 5px; min-height: 1.75rem; padding: 2px 4px; }
input[type=text]:hover { border-color: var(--line); }
[aria-invalid=true] { outline: 2px solid var(--error) !important; }

.sentence { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.gaze { flex-basis: 100%; color: var(--soft); font-size: var(--size-note); }
.words { display: contents; list-style: none; }
.word { display: grid; grid-template-columns: auto auto auto; border: 1px solid var(--line);
  border-radius: 8px; ${shaded("weight")} }
.word.query { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.word input, .pick-word { color: inherit; padding: 2px 3px 2px 8px; font-size: var(--size-text);
  font-weight: 550; field-sizing: content; min-width: 1.875rem; max-width: 60vw;
  min-height: 1.75rem; }
.pick-word { border: 0; text-align: left; }
.pick-word span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.word [hidden] { display: none; }
.word .weight { grid-row: 2; padding: 0 0 3px 9px; font-size: var(--size-small);
  font-variant-numeric: tabular-nums; }
.word .weight:empty { display: none; }
.word > :is(.pick-word, input) { grid-area: 1 / 1; }
.word > button:not(.pick-word) { grid-area: 1 / 2; border: 0; padding: 0; min-width: 1.625rem;
  min-height: 1.5rem; color: inherit; }
.word > .rename:not(.weight:empty + *) { grid-area: 2 / 2; }
.word > .weight:empty ~ .remove { grid-area: 1 / 3; }
.rename svg { display: block; width: .9375rem; height: .9375rem; margin: auto; fill: none;
  stroke: currentColor; stroke-width: 1.3; stroke-linejoin: round; }

table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: var(--size-note); font-weight: 600; padding-bottom: 4px;
  white-space: nowrap; }
th { font-weight: 400; font-size: var(--size-small); color: var(--soft); text-align: right;
  padding: 0 5px 0 0;
  max-width: 4.5rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
thead th { text-align: center; padding: 0 0 2px; }
.matrix td { padding: 1px; }
.matrix { --box: 2.6875rem; }
.matrix input { width: var(--box); text-align: right; border-color: var(--line);
  font-size: var(--size-note);
  }
@supports (field-sizing: content) { /* a number that is longer has room, too */
  .matrix input {
    width: auto; min-width: max(var(--box), 100%); max-width: 6.875rem; field-sizing: content;
  }
}
.matrix input.chosen { border-color: var(--accent); }
.heat td span { display: block; width: 2.25rem; height: 1.75rem; line-height: 1.75rem;
  contain: strict;
  white-space: nowrap; }
.heat.signed td span { width: 2.6875rem; }
.heat td { text-align: center; font-size: var(--size-small); padding: 0;
  border: 1px solid var(--ground);
  ${shaded("weight")} }
.heat.signed td { ${shaded("positive")} }
.heat.signed td.below { ${shaded("negative")} }
.heat tbody td.never { color: var(--soft); background: var(--hatch); }
.heat thead td, .heat thead th { background: none; border: 0; min-width: 0; height: auto;
  vertical-align: bottom; }
.heat thead th { max-width: none; }
.heat .long span { display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg);
  max-height: 4.75rem; overflow: hidden; text-overflow: ellipsis; padding: 0 0 0 2px;
  line-height: 1.1;
    }
.heat tbody th { padding: 0; }
.heat tbody th button { border: 0; padding: 0 6px 0 2px; max-width: 4.5rem; overflow: hidden;
  text-overflow: ellipsis; font-size: var(--size-small); color: var(--soft); text-align: right;
    width: 100%; }
.heat tr.query td { box-shadow: inset 0 1.5px var(--accent), inset 0 -1.5px var(--accent); }
.heat tr.query th button { color: var(--accent); font-weight: 650; }

${KNOBS}${CONTROLS}${KEYS}
.problem { position: sticky; bottom: 8px; z-index: 1; margin: 0; font-size: var(--size-note);
  padding: 6px 10px; border-left: 3px solid var(--error);
  background: color-mix(in oklab, var(--ground), var(--error) 14%); }
.problem[data-kind=hint] { border-color: var(--accent);
  background: color-mix(in oklab, var(--ground), var(--accent) 10%); }
.problem:empty { display: none; }
.problem:not(:empty, [data-kind=hint])::before { content: "⚠ "; content: "⚠ " / ""; }
.failure { position: static; }
.stale ${RESULTS}, [inert] { opacity: .4; }
.scroll:has(> [inert]), [inert] .scroll { overflow: hidden; } /* no way in, so no way to scroll */
.stale ${RESULTS} ${RESULTS}, [inert] [inert] { opacity: 1; } /* once is enough */
.busy { position: sticky; top: calc(var(--pst-header-article-height, 0px) + 2.5rem); z-index: 3;
  height: 0; margin-bottom: -14px;
  display: flex; justify-content: flex-end; align-items: flex-start; pointer-events: none;
    } /* nothing moves for it */
.busy[hidden] { display: none; }
.busy > div { display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: center; max-width: 100%;
  margin-top: -1.375rem; padding: 4px 12px; font-size: var(--size-small); background: var(--ground);
  border: 1px solid var(--accent); border-radius: 8px; box-shadow: 0 2px 10px var(--line); }
.busy .what { flex: 1; }
.turning { width: .8125rem; height: .8125rem; flex: none; border: 2px solid var(--line);
  border-top-color: var(--accent); border-radius: 50%; animation: turn 1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .turning { animation: none; } }
.where { color: var(--soft); font-size: var(--size-note); flex: 1 1 13.75rem; }
@media (max-width: 37.5rem) {
  .row > .row > .column { order: -1; }
  .matrix { --box: 2.4375rem; }
  .where { flex-basis: 100%; } /* then the buttons stand in one line below it */
}
@media (pointer: coarse) {
  input[type=text] { font-size: var(--size-touch) !important; } /* smaller, and iOS zooms */
  .matrix { --box: 3.25rem; }
}
.foot { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; }
progress { flex: 0 0 100%; width: 100%; height: 8px; accent-color: var(--accent); }
.amount { color: var(--soft); font-variant-numeric: tabular-nums; }
.link { width: 100%; border-color: var(--line) !important; }
@media (max-width: 18rem) { /* very large letters: what cannot be narrower scrolls in the frame */
  .frame { overflow-x: auto; }
}
@media (forced-colors: active) { /* the system's colours, but for shades and bars that are data */
  :host { --ground: Canvas; --text: CanvasText; --soft: CanvasText; --line: ButtonBorder;
    --accent: Highlight; --error: CanvasText; }
  :is([style*="--tl-heat"], [data-value], .bar, .strip, .track),
  :is(.ramp, .ramp-key i, .hatched, .never),
  :is(.bar, .strip, .track) *, :is(b, i, span, u):empty,
  :is(.spot, .switch, .switch::after) { forced-color-adjust: none; }
  :is(.bar, .strip, .track, .ramp-key i) { outline: 1px solid ButtonBorder; }
  button:not([style*="--tl-heat"], :disabled) { background: ButtonFace !important;
    color: ButtonText !important; }
  .pick.chosen { forced-color-adjust: none; background: SelectedItem; color: SelectedItemText; }
  .pick.chosen .about { color: inherit; }
  :is([aria-pressed=true], [aria-selected=true], .chosen:not(.pick), .query:not([hidden])) {
    outline: 2px solid Highlight; outline-offset: -2px; }
  :is(button, input, select, textarea):disabled { color: GrayText; border-color: GrayText;
    opacity: 1; }
  .problem { border: 2px solid CanvasText; }
}
@media print { /* what only a reader at a screen can use goes; buttons that name a row stay */
  :host { break-inside: avoid; }
  * { print-color-adjust: exact; }
  .foot, .problem, .link, .remove, .rename, input[type=range],
  button:not(li button, th button, td button) { display: none !important; }
}
`;
