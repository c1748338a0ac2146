// A widget: its inputs and outputs, the frame around its parts, and what can be undone.

import { problem, wordsOf } from "../page/inputs.js";
import { answerStrip } from "./answer.js";
import { fade } from "./boxes.js";
import { h, isComposing, setAttribute, setText } from "./dom.js";
import { followAddress, share } from "./links.js";
import { followScheme } from "./look.js";
import { times } from "./numbers.js";
import { fullWindow, linkButton } from "./stage.js";
import { RESULTS, STYLE } from "./style.js";

const copyOf = (value) => JSON.parse(JSON.stringify(value));

const WAITING = "Still waiting for the new numbers. Is the kernel running?";
const COMPUTING = "Computing…";
const BUSY_AFTER_MS = 80; // an answer that comes earlier is shown without any sign of work

/** Whether it stands on a screen of the tour, which has a heading of its own and one control. */
export const isToured = (model) => Boolean(model.get("view")?.startsWith("tour"));

export class Widget {
  constructor(model, el, query) {
    this.model = model;
    this.el = el;
    this.spec = model.get("spec");
    this.first = copyOf(model.get("inputs"));
    this.history = [];
    this.parts = [];
    this.styles = new Set(); // of the parts that have their own
    this.tables = new Map(); // name of an input or an output -> its table of cells, as rows
    this.strip = undefined; // what it says, in short
    this.sums = undefined; // the line in which sums are written out, below all parts
    this.unusable = new Set(); // the lines of text that hold what cannot be used
    this.lastRow = this.rows(this.first).length - 1;
    this.tail = query === -1; // the choice follows the last row while words are added
    this.query = this.start = this.tail ? this.lastRow : query; // the row that is chosen
    this.entry = null; // the matrix entry that the slider moves: { name, row, column }
    this.late = this.busy = false; // no answer came within BUSY_AFTER_MS; the frame shows it
    this.quiet = false;
    this.streams = false; // a part edits step by step, and each answer goes on from the one before
    this.notice = ""; // what is said beside the title until the next edit
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

  mount(title, parts, { main = "", answer = "" } = {}) {
    const root = this.el.shadowRoot ?? this.el.attachShadow({ mode: "open" });
    this.problemLine = h("p.problem", { role: "alert" });
    this.failureLine = h("p.problem.failure", { role: "alert" });
    this.where = h("span.where", { role: "status" });
    this.progress = h("progress", {
      hidden: true,
      "aria-label": "the trained model, loaded so far",
    });
    this.turning = h("span.turning", { hidden: true, "aria-hidden": "true" });
    this.origin = h("p.origin"); // what there is to say of it, for who asks
    const state = h("summary", this.turning, this.where, this.progress);
    this.undoButton = h("button", { click: () => this.undo() }, "Undo");
    this.againButton = h(
      "button.again",
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
    const name = isToured(this.model) ? "frame tour" : "frame";
    this.frame = h("div", { class: name, role: "group", "aria-label": title });
    this.ownWindow = fullWindow(this, id);
    const copy = id ? [linkButton(() => share(this, id))] : [];
    const { againButton, undoButton, resetButton } = this;
    this.frame.append(
      h(
        "div.title-row",
        h("p.title", title),
        h("details.state", state),
        h("span.acts", againButton, undoButton, resetButton, ...copy, this.ownWindow.button),
      ),
      this.origin,
      ...parts.map((part) => part.element),
      h("div.slot", ...(this.sums ? [this.sums] : []), this.problemLine),
      this.failureLine,
      this.linkField,
    );
    if (main) this.frame.dataset.main = main;
    if (answer) {
      this.strip = answerStrip(this.frame, answer);
      this.frame.querySelector(".title-row").after(this.strip.element);
    }
    root.replaceChildren(h("style", STYLE, ...this.styles), this.ownWindow.room);
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
      // Only the page host sets these: what it loads and how much of it has arrived, that an answer
      // will be slow, and why there is no answer.
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
      followAddress(this, id, this.leaving.signal);
      this.ownWindow.follow(this.leaving.signal);
    }
    this.frame.querySelectorAll(".scroll:not(.tree)").forEach(fade);
    new MutationObserver((changes) => {
      for (const change of changes) {
        const target = /** @type {any} */ (change.target);
        if (target.disabled || target.hidden) this.leave(target);
      }
    }).observe(this.frame, { subtree: true, attributeFilter: ["disabled", "hidden"] });
    this.forgetScheme = followScheme(this.el, () => {
      for (const canvas of this.frame.querySelectorAll("canvas")) canvas.again?.();
    });
    this.showState();
    this.repaint();
  }

  unmount() {
    this.ownWindow.close();
    this.strip?.end();
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
    this.announce(report ? "" : wrong);
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
    this.announce("");
    this.send(this.history.pop());
  }

  reset() {
    const steps = this.history.length;
    this.streams = false;
    for (const part of this.parts) part.reset?.(); // what is typed but could not be used
    this.query = this.start;
    this.change(this.first, Symbol("reset"));
    this.repaint();
    if (this.history.length === steps) return;
    this.notice = "Reset: Undo takes it back.";
    this.showState();
  }

  send(inputs) {
    clearTimeout(this.patience);
    this.notice = "";
    if (!this.model.get("link_id")) {
      this.patience = setTimeout(() => this.announce(WAITING, "hint"), 5000);
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
    if (this.problemLine.textContent === WAITING) this.announce("");
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
    } else this.leave(this.againButton);
    this.againButton.hidden = !why || Boolean(this.model.get("final"));
    this.showState();
  }

  /**
   * Grey the results of older inputs, and say beside the title what is under way, if it is late,
   * else that all is reset, or where the results come from: the first sentence of it, which opens
   * the others.
   */
  showState() {
    const behind = this.late && this.behind && !this.streams;
    const loading = this.model.get("loading");
    this.frame.classList.toggle("stale", behind || Boolean(this.model.get("error")));
    this.turning.hidden = !this.late || (this.quiet && !loading);
    const said = loading || (this.late ? COMPUTING : this.notice || this.model.get("where"));
    const [first, ...how] = said.split(/(?<=\.) /);
    setText(this.where, first);
    setAttribute(this.where, "class", how.length ? "where opens" : "where");
    setText(this.origin, how.join(" "));
    setAttribute(this.where.parentElement, "title", how.join(" "));
    if (this.busy === this.late) return;
    this.busy = this.late;
    for (const result of this.frame.querySelectorAll(RESULTS))
      setAttribute(result, "aria-busy", String(this.busy));
  }

  /** Edits follow each other from now on, or no longer: what is shown is true as far as it goes. */
  stream(on, quiet = false) {
    this.streams = on;
    this.frame.classList.toggle("trains", on);
    this.quiet = on && quiet; // nothing turns beside the title: what changes shows enough
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

  /** Take the focus off a button that is about to go, or is of no use now, to one beside it. */
  leave(button) {
    if (button.getRootNode().activeElement !== button) return;
    const stays = (other) => other !== button && !other.disabled && other.checkVisibility();
    const beside = [...button.parentElement.querySelectorAll(":scope > button")].find(stays);
    (beside ?? this.resetButton).focus({ preventScroll: true });
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
            if (this.pendingMessage) this.announce(...this.pendingMessage);
          });
        },
        { signal: release.signal },
      );
    }
  }

  announce(text, kind = "") {
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

  /** Show another state, such as a link's. */
  hold({ inputs, query, view }) {
    this.change(inputs, "link");
    this.look(Number.isInteger(query) ? query : 0);
    for (const part of this.parts) part.restore?.(Object(view));
  }

  /** How much of the trained model has been loaded: { loaded, total } in bytes, or null. */
  showProgress(progress) {
    const { loaded, total } = progress ?? {};
    this.progress.hidden = !(loaded < total);
    this.showState();
    if (progress) [this.progress.max, this.progress.value] = [total, loaded];
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
