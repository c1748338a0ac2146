// An answer that is written: Python, checked as in the notebook.

import { editor, put, selectLine } from "./editor.js";
import { ask, keepOffline, listen, start, stop } from "./python.js";
import { announce, el, verdictOf } from "./words.js";

const PAUSE = 400; // ms without a key after which a draft is kept
const KINDS = ["right", "wrong", "raised", "open", "syntax"]; // verdicts on an answer

/** A short hash of what an exercise begins with, to know it again.
 * @param {string} text */
export function hashOf(text) {
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193);
  return (hash >>> 0).toString(36);
}

/** The page's own links to where all of Python is.
 * @param {HTMLElement} place */
function elsewhere(place) {
  const links = [...(place.nextElementSibling?.querySelectorAll("a") ?? [])];
  return links.flatMap((link, i) => [i ? ", " : "", link.cloneNode(true)]);
}

/** The form, with the draft that was left: of an answer, or, if there is a `model` of one, of a
 * test that should pass the right program and fail the wrong ones.
 * @param {HTMLElement} place @param {string} name
 * @param {import("./gaps.js").Exercise} exercise @param {string} [model] */
export function writeForm(place, name, exercise, model = "") {
  const signature = /^def (.*):/.exec(place.dataset.starter)?.[1];
  const starter = model
    ? `def test(answer):\n    # it is called as ${signature}\n    assert ...`
    : place.dataset.starter;
  const task = place.dataset.task ?? hashOf(starter);
  const [draft, begun] = model ? ["test", "testTask"] : ["draft", "task"];
  const [stem, slug] = name.split("/");
  const heading = place.closest("section")?.querySelector("h1, h2, h3, h4");
  const title = heading?.textContent.replace(/#$/, "").trim() ?? slug;
  const left = exercise.kept();
  let begunFrom = left[draft] === undefined ? task : left[begun];
  /** @type {string | undefined} */
  let putAway; // what was written before the reader started again, until something else is
  let waiting = 0; // until the draft is kept
  let checks = 0;

  const { area, parts } = editor(
    left[draft] ?? starter,
    `Your ${model ? "test" : "answer"} in Python: ${title}`,
    {
      changed,
      submit: check,
    },
  );
  const checkButton = el("button", { type: "button", textContent: "Check", onclick: check });
  const stopButton = el("button", { type: "button", textContent: "Stop", onclick: stop });
  const again = el("button", { type: "button", className: "quiet", onclick: startAgain });
  const state = el("p", { className: "soft" });
  const changedTask = el(
    "p",
    { hidden: begunFrom === task },
    "This exercise has changed since you ",
  );
  const see = el("button", { type: "button", className: "link", textContent: "See its new start" });
  const newStart = el("pre", { textContent: starter, tabIndex: 0, hidden: true });
  see.onclick = () => {
    newStart.hidden = false;
    begunFrom = task;
    keepDraft();
  };
  changedTask.append("began. ", see);
  stopButton.disabled = true;
  const ours = el("details", { hidden: true }, el("summary", {}, "A test that finds them all"));
  ours.append(el("pre", { textContent: model, tabIndex: 0 }));

  function label() {
    again.textContent = putAway === undefined ? "Start again" : "Back to what I wrote";
  }

  function keepDraft() {
    clearTimeout(waiting);
    waiting = 0;
    if (putAway === undefined) exercise.keep({ [draft]: area.value, [begun]: begunFrom });
  }

  function changed() {
    putAway = undefined;
    label();
    clearTimeout(waiting);
    waiting = setTimeout(keepDraft, PAUSE);
  }

  /** The exercise's start, or from there back to the draft, which is kept until something else is
   * written. */
  function startAgain() {
    if (putAway === undefined && area.value === starter) return;
    if (waiting) keepDraft();
    const other = putAway === undefined ? area.value : undefined;
    begunFrom = task;
    area.focus();
    area.select();
    put(area, putAway ?? starter);
    clearTimeout(waiting);
    waiting = 0;
    putAway = other;
    label();
  }

  async function check() {
    if (waiting) keepDraft();
    const own = ++checks;
    stopButton.disabled = false;
    announce(
      exercise.said,
      model ? "Your test is tried on each program." : "Your answer is being checked.",
    );
    const source = area.value;
    const verdict = await (exercise.judge?.(source) ??
      ask(model ? "kill" : "check", stem, slug, source));
    if (own !== checks) return; // another check has ended this one
    stopButton.disabled = true;
    if (verdict.kind === "right") exercise.keep(model ? { tested: true } : { solved: "whole" });
    ours.hidden = !model;
    if (area.isConnected) announce(exercise.said, verdictOf(verdict, ...more(verdict)));
    if (KINDS.includes(verdict.kind)) keepOffline();
  }

  /** @param {import("./python.js").Verdict} verdict */
  function more({ kind, line, printed }) {
    const found = [];
    if (line) {
      const button = el("button", { type: "button", className: "link" });
      button.textContent = `Select line ${line}`;
      button.onclick = () => selectLine(area, line);
      found.push(el("p", {}, button));
    }
    if (printed) {
      const pre = el("pre", { textContent: printed, tabIndex: 0 });
      found.push(el("p", { textContent: "It printed:" }), pre);
    }
    if (kind === "missing") found.push(el("p", {}, ...elsewhere(place)));
    return found;
  }

  area.addEventListener("focus", () => start().catch(() => {}));
  area.addEventListener("blur", () => waiting && keepDraft());
  addEventListener("pagehide", () => waiting && keepDraft());
  listen((news) => (state.textContent = news));
  label();
  const buttons = el("div", { className: "answer-buttons" }, checkButton, stopButton, again);
  const about = el("p", {
    textContent:
      "Write a test that the right program passes. Each of the wrong ones differs from it in one " +
      "place: how many does your test find?",
  });
  return el(
    "div",
    {},
    ...(model ? [about] : []),
    changedTask,
    newStart,
    ...parts,
    buttons,
    ours,
    state,
  );
}
