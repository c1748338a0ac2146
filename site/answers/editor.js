// A box to write Python in. It is the browser's own, so that phones, screen readers and undo work
// as everywhere; it only indents.

import { el } from "./words.js";

const STEP = 4; // spaces of an indentation
const KEYS = ["⇥", "(", ")", "[", "]", ":", "_", "=", "@", "−"]; // that phones hide
const FEWEST = 4;
const MOST = 24; // lines that are in view
let count = 0;

/** Write in place of what is selected, such that the browser can undo it.
 * @param {HTMLTextAreaElement} area @param {string} text */
export function put(area, text) {
  const done = text
    ? document.execCommand("insertText", false, text)
    : document.execCommand("delete");
  if (done) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input"));
}

/** Select a line, counted from 1.
 * @param {HTMLTextAreaElement} area @param {number} line */
export function selectLine(area, line) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
}

/** What stands before the caret in its line.
 * @param {HTMLTextAreaElement} area */
function lineBefore({ value, selectionStart }) {
  return value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
}

/** Indent the selected lines by a step, or back.
 * @param {HTMLTextAreaElement} area @param {boolean} back */
function shift(area, back) {
  const { value, selectionStart, selectionEnd } = area;
  const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
  const found = value.indexOf("\n", Math.max(selectionEnd - 1, start));
  const end = found < 0 ? value.length : found;
  const lines = value.slice(start, end).split("\n");
  const shifted = lines.map((line) => {
    if (back) return line.replace(/^(?: {1,4}|\t)/, "");
    return line ? " ".repeat(STEP) + line : line;
  });
  const by = shifted[0].length - lines[0].length;
  const text = shifted.join("\n");
  if (text === value.slice(start, end)) return;
  area.setSelectionRange(start, end);
  put(area, text);
  const last = selectionEnd + text.length - (end - start);
  area.setSelectionRange(Math.max(start, selectionStart + by), Math.max(start, last));
}

/** @param {HTMLTextAreaElement} area */
function tab(area) {
  const selected = area.value.slice(area.selectionStart, area.selectionEnd);
  if (selected.includes("\n")) shift(area, false);
  else put(area, " ".repeat(STEP - (lineBefore(area).length % STEP)));
}

/** @param {HTMLTextAreaElement} area */
function newLine(area) {
  const before = lineBefore(area);
  const opens = /:\s*(#.*)?$/.test(before);
  area.scrollLeft = 0;
  put(area, `\n${/^[ \t]*/.exec(before)[0]}${opens ? " ".repeat(STEP) : ""}`);
}

/** The editor: a box of text, how to leave it, and on phones a row of keys.
 * @param {string} text @param {string} label
 * @param {{ changed: () => void, submit: () => void }} hooks */
export function editor(text, label, { changed, submit }) {
  const area = /** @type {HTMLTextAreaElement} */ (el("textarea", { className: "editor" }));
  Object.assign(area, { value: text, spellcheck: false, autocapitalize: "off", ariaLabel: label });
  area.setAttribute("autocorrect", "off");
  area.setAttribute("autocomplete", "off");
  const help = el("p", { className: "soft editor-help", id: `editor-help-${++count}` });
  help.textContent =
    "Tab indents; Esc and then Tab leaves the editor. Ctrl+Enter, or ⌘+Enter, checks.";
  area.setAttribute("aria-describedby", help.id);
  let leaves = false; // Esc was the key before: Tab is the browser's own

  const fit = () => {
    area.rows = Math.min(Math.max(area.value.split("\n").length, FEWEST), MOST);
  };
  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.isComposing || event.key === "Shift") return;
    const left = leaves;
    leaves = event.key === "Escape";
    const single = area.selectionStart === area.selectionEnd;
    const before = lineBefore(area);
    /** @type {(() => void) | undefined} */
    let act;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) act = submit;
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "Enter" && !event.shiftKey) act = () => newLine(area);
    else if (event.key === "Tab" && !left)
      act = () => (event.shiftKey ? shift(area, true) : tab(area));
    else if (event.key === "Backspace" && single && /^ {2,}$/.test(before))
      act = () => {
        const to = area.selectionStart;
        area.setSelectionRange(to - ((before.length - 1) % STEP) - 1, to);
        put(area, "");
      };
    if (!act) return;
    event.preventDefault();
    act();
  }
  area.addEventListener("keydown", pressed);
  area.addEventListener("blur", () => (leaves = false));
  area.addEventListener("input", () => {
    fit();
    changed();
  });
  fit();

  const keys = KEYS.map((key) => {
    const button = el("button", { type: "button", textContent: key, tabIndex: -1 });
    if (key === "⇥") button.ariaLabel = "Indent";
    button.onpointerdown = (event) => event.preventDefault(); // the box keeps the focus
    button.onclick = () => {
      area.focus();
      if (key === "⇥") tab(area);
      else put(area, key === "−" ? "-" : key);
    };
    return button;
  });
  const row = el("div", { className: "editor-keys", role: "group", ariaLabel: "Keys" }, ...keys);
  return { area, parts: [area, row, help] };
}
