// A program with gaps: every filling has a verdict, which torch gave when the table was made.

import { announce, code, el, verdictOf, words } from "./words.js";

const CLUE = 3; // tries after which a gap is pointed at
const LETTERS = { r: "right", w: "wrong", x: "raised" };

/**
 * @typedef {{ between: string[], pieces: string[][], messages: string[], cases: string[],
 *   yours: string[], verdicts: number[], numbers?: any, test?: string }} Table  see tests/gaps.py
 * @typedef {{ kept: () => import("../store.js").Exercise, tried: (right: boolean) => number,
 *   keep: (part: import("../store.js").Exercise) => void, said: HTMLElement,
 *   next: () => Node[], judge?: (source: string) => Promise<import("./python.js").Verdict> }}
 *   Exercise  one of the page, and what its forms share
 */

/** The place of a filling in the table, in which the last gap changes first.
 * @param {Table} table @param {number[]} picks */
export const placeOf = ({ pieces }, picks) =>
  picks.reduce((at, pick, gap) => at * pieces[gap].length + pick, 0);

/** The picks at a place of the table.
 * @param {Table} table @param {number} place */
function picksAt({ pieces }, place) {
  const picks = [];
  for (const { length } of pieces.toReversed()) {
    picks.unshift(place % length);
    place = Math.floor(place / length);
  }
  return picks;
}

/** What torch said of a filling.
 * @param {Table} table @param {number} place */
export function verdictAt({ messages, cases, yours, verdicts }, place) {
  const [message, case_, own] = verdicts.slice(3 * place, 3 * place + 3);
  let example = yours[own] ?? "";
  if (case_ >= 0) {
    // the row of the own answer stands before that of the right one
    const [, given, right] = /^(.*?)^( *right answer = .*)$/ms.exec(cases[case_]);
    const name = "your answer".padStart(right.indexOf(" ="));
    example = `${given}${name} = ${example}\n${right}`;
  }
  return { kind: LETTERS[messages[message][0]], message: messages[message].slice(1), example };
}

/** Of the right fillings the one that shares the most pieces with this one, or the first.
 * @param {Table} table @param {number[]} picks */
export function rightPicks(table, picks = []) {
  const apart = (other) => other.filter((pick, gap) => pick !== picks[gap]).length;
  const count = table.verdicts.length / 3;
  return Array.from({ length: count }, (_, place) => place)
    .filter((place) => verdictAt(table, place).kind === "right")
    .map((place) => picksAt(table, place))
    .reduce((best, one) => (apart(one) < apart(best) ? one : best));
}

/** The form, as it was left.
 * @param {Table} table @param {Exercise} exercise */
export function gapsForm(table, exercise) {
  const { pieces } = table;
  const left = exercise.kept().picks ?? [];
  /** @type {number[]} */
  const picks = pieces.map((some, gap) => some.indexOf(left[gap]));
  let open = -1; // the gap whose pieces are offered

  const gaps = pieces.map((_, gap) => {
    const button = el("button", { type: "button", onclick: () => toggle(gap) });
    button.setAttribute("aria-expanded", "false");
    return button;
  });
  const sheet = el("div", { className: "pieces", role: "radiogroup", onkeydown: move });
  const check = el("button", { type: "button", textContent: "Check", onclick: judge });
  const clue = el("button", { type: "button", textContent: "Give me a clue", onclick: point });
  clue.className = "quiet";
  const empty = el("button", { type: "button", textContent: "Empty the gaps", onclick: clear });
  empty.className = "quiet";

  function label(gap) {
    const piece = pieces[gap][picks[gap]];
    gaps[gap].replaceChildren(...code(piece ?? "?"));
    gaps[gap].className = piece === undefined ? "gap" : "gap full";
    const what = piece === undefined ? "empty" : piece || "nothing";
    gaps[gap].ariaLabel = `Gap ${gap + 1} of ${gaps.length}: ${what}`;
  }

  function toggle(gap) {
    const was = open;
    close();
    if (was === gap) return;
    open = gap;
    gaps[gap].setAttribute("aria-expanded", "true");
    sheet.ariaLabel = `Pieces for gap ${gap + 1}`;
    const choices = pieces[gap].map((piece, pick) => {
      const choice = el("button", { type: "button", role: "radio", className: "piece" });
      choice.append(...code(piece || "(nothing)"));
      choice.ariaChecked = String(picks[gap] === pick);
      choice.tabIndex = Math.max(picks[gap], 0) === pick ? 0 : -1;
      choice.onclick = () => choose(gap, pick);
      return choice;
    });
    sheet.replaceChildren(...choices);
    gaps[gap].closest(".line").after(sheet);
    choices[Math.max(picks[gap], 0)].focus();
  }

  function close() {
    if (open >= 0) gaps[open].setAttribute("aria-expanded", "false");
    open = -1;
    sheet.remove();
  }

  function choose(gap, pick) {
    picks[gap] = pick;
    label(gap);
    close();
    exercise.said.classList.add("old");
    exercise.keep({ picks: picks.map((pick, gap) => pieces[gap][pick] ?? "…") });
    const next = picks.findIndex((pick, other) => pick < 0 && other > gap);
    const other = next < 0 ? picks.indexOf(-1) : next;
    (other < 0 ? check : gaps[other]).focus();
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const choices = /** @type {HTMLElement[]} */ ([...sheet.children]);
    const at = choices.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const steps = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1 };
    const to = { ...steps, Home: 0, End: choices.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      choices.at(to % choices.length).focus();
    } else if (event.key === "Escape") {
      const gap = gaps[open];
      close();
      gap.focus();
    }
  }

  function judge() {
    const missing = picks.filter((pick) => pick < 0).length;
    if (missing) {
      const empty = missing === 1 ? "One gap is empty" : `${missing} gaps are empty`;
      announce(exercise.said, `${empty}: press a ? and choose a piece.`);
      return;
    }
    const verdict = verdictAt(table, placeOf(table, picks));
    const right = verdict.kind === "right";
    const tries = exercise.tried(right);
    clue.hidden = right || tries < CLUE;
    const how = `You assembled it ${tries === 1 ? "at the first try" : `in ${tries} tries`}.`;
    const more = right ? [el("p", { className: "how" }, how, " ", ...exercise.next())] : [];
    announce(exercise.said, verdictOf(verdict, ...more));
  }

  /** Name a gap that is wrong, with the lesson of what stands there. */
  function point() {
    const right = rightPicks(table, picks);
    const wrong = picks.findIndex((pick, gap) => pick !== right[gap]);
    if (wrong < 0) return;
    const verdict = exercise.said.querySelectorAll(".verdict");
    const single = right.with(wrong, picks[wrong]);
    const { message } = verdictAt(table, placeOf(table, single));
    gaps.forEach((gap, i) => gap.classList.toggle("clue", i === wrong));
    const look = `Look again at gap ${wrong + 1}, which is outlined. `;
    announce(exercise.said, el("p", {}, look, ...words(message)), ...verdict);
    gaps[wrong].focus();
  }

  function clear() {
    picks.fill(-1);
    gaps.forEach((_, gap) => label(gap));
    close();
    clue.hidden = true;
    exercise.said.replaceChildren();
    exercise.keep({ picks: [], tries: 0 });
    gaps[0].focus();
  }

  gaps.forEach((_, gap) => label(gap));
  clue.hidden = (exercise.kept().tries ?? 0) < CLUE || exercise.kept().solved !== undefined;
  return el(
    "div",
    {},
    program(table, gaps),
    el("div", { className: "answer-buttons" }, check, clue, empty),
  );
}

/** The program line by line, so that a long line is wrapped at its own indentation.
 * @param {Table} table @param {HTMLElement[]} gaps */
function program({ between }, gaps) {
  const whole = el("div", { className: "program" });
  let line = el("div", { className: "line" });
  between.forEach((text, i) => {
    text.split("\n").forEach((part, row) => {
      if (row) {
        whole.append(line);
        line = el("div", { className: "line" });
      }
      if (!line.textContent) {
        line.style.setProperty("--indent", `${/^ */.exec(part)[0].length + 2}ch`);
      }
      line.append(...code(part));
    });
    if (gaps[i]) line.append(gaps[i]);
  });
  whole.append(line);
  return whole;
}
