// Find the bug: the solution with one line changed, and what it gives beside what it should give.

import { editor } from "./editor.js";
import { placeOf, rightPicks, verdictAt } from "./gaps.js";
import { ask, listen, start } from "./python.js";
import { announce, code, el, verdictOf, words } from "./words.js";

const LINES = 4; // of a program, its first one included: in a shorter one there is little to find

/**
 * @typedef {import("./gaps.js").Table} Table
 * @typedef {{ name: string, piece: string, lines: string[], at: number[], message: string,
 *   example: string, solution: string[] }} Bug  the program's lines, at which of them it is wrong,
 *   and what torch says
 */

/** A text without its numbers: two outputs of one shape are alike in it. */
const shapeOf = (/** @type {string} */ text) =>
  text.includes("of shape")
    ? text
    : text.replace(/-?(?:\d[\d.e+-]*|inf|nan)|True|False/g, "#").replace(/\s+/g, "");

/** What a program gives, and what it should give. @param {string} example */
const outputs = (example) =>
  /^ *your answer = (.*?)^ *right answer = (.*)$/ms.exec(example)?.slice(1, 3) ?? ["", " "];

/** The program with these pieces, and in which of its lines each gap lies.
 * @param {Table} table @param {number[]} picks */
function written({ between, pieces }, picks) {
  let text = "";
  const spans = pieces.map((some, gap) => {
    text += between[gap];
    const first = text.split("\n").length - 1;
    text += some[picks[gap]];
    return [first, text.split("\n").length - 1];
  });
  return { lines: (text + between.at(-1)).trimEnd().split("\n"), spans };
}

/** The mistakes of one line that give wrong numbers in the right shape.
 * @param {Table} table @returns {Bug[]} */
export function bugsOf(table) {
  const right = rightPicks(table);
  const solution = written(table, right).lines;
  if (solution.length < LINES) return [];
  return table.pieces.flatMap((some, gap) =>
    some.flatMap((piece, pick) => {
      const picks = right.with(gap, pick);
      const { kind, message, example } = verdictAt(table, placeOf(table, picks));
      const [given, wanted] = outputs(example).map(shapeOf);
      if (pick === right[gap] || kind !== "wrong" || given !== wanted) return [];
      const { lines, spans } = written(table, picks);
      const [first, last] = spans[gap];
      const span = lines.slice(first, last + 1).map((_, i) => first + i);
      const at = span.filter((line) => !solution.includes(lines[line]));
      return at[0] > 0
        ? [{ name: `${gap} ${piece}`, piece, lines, at, message, example, solution }]
        : [];
    }),
  );
}

/** The form: one bug after the other, those first that were not found yet.
 * @param {HTMLElement} place @param {string} name @param {Table} table
 * @param {import("./gaps.js").Exercise} exercise */
export function bugForm(place, name, table, exercise) {
  const bugs = bugsOf(table);
  const found = () =>
    (exercise.kept().bugs ?? []).filter((one) => bugs.some((bug) => bug.name === one));
  /** @type {Bug} */
  let bug;
  let missed = 0; // lines that were pressed and are right

  const task = el("p", {
    textContent:
      "One line of this program is wrong, so that it gives other numbers than it should. Compare " +
      "them, and press the line that is wrong.",
  });
  const program = el("div", { className: "program", role: "group", ariaLabel: "The program" });
  const numbers = el("pre", { className: "given", tabIndex: 0 });
  const next = el("button", { type: "button", textContent: "Another bug", onclick: another });
  const own = el("button", {
    type: "button",
    textContent: "Try an input of yours",
    onclick: offer,
  });
  own.className = "quiet";
  const count = el("span", { className: "soft" });
  const bench = el("div");

  function another() {
    const known = found();
    const others = bugs.filter((one) => one !== bug);
    const left = others.filter((one) => !known.includes(one.name));
    const from = left.length ? left : others;
    bug = from[Math.floor(Math.random() * from.length)] ?? bug ?? bugs[0];
    missed = 0;
    exercise.said.replaceChildren();
    bench.replaceChildren();
    numbers.textContent = bug.example
      .replace("your answer", "it gives".padStart(11))
      .replace("right answer", "it should be");
    program.replaceChildren(
      ...bug.lines.map((text, i) => {
        const line = el(i ? "button" : "div", { className: "line" }, ...code(text));
        line.style.setProperty("--indent", `${/^ */.exec(text)[0].length + 2}ch`);
        if (i) Object.assign(line, { type: "button", onclick: () => judge(line, i) });
        return line;
      }),
    );
    label();
  }

  function label() {
    count.textContent = `${found().length} of ${bugs.length} found`;
  }

  /** @param {HTMLElement} line @param {number} i */
  function judge(line, i) {
    const right = bug.at.includes(i);
    line.className = `line ${right ? "found" : "fine"}`;
    if (right) {
      const known = found();
      if (!known.includes(bug.name)) exercise.keep({ bugs: [...known, bug.name] });
      const lines = program.querySelectorAll("button");
      lines.forEach((one) => (one.disabled = true));
      const how = missed ? `You found it at line ${i}, after ${missed + 1} lines.` : "";
      const missing = bug.solution.filter((text) => !bug.lines.includes(text));
      const should = missing.map((text) => text.trim()).join("\n");
      const said = {
        kind: "right",
        message: `Line ${i} is wrong. ${bug.message}`,
        example: should,
      };
      announce(
        exercise.said,
        verdictOf(said, ...(how ? [el("p", { className: "how" }, how)] : [])),
      );
      label();
      next.focus();
      return;
    }
    missed += 1;
    // what a mistake in that line would have given
    const other = bugs.find(({ at }) => at.includes(i));
    const said = [el("p", {}, `Line ${i} is as it should be. `)];
    if (other) {
      const contrast = `If it were wrong, for instance with \`${other.piece}\`, it would give:`;
      said[0].append(...words(contrast));
      said.push(el("pre", { textContent: outputs(other.example)[0].trimEnd(), tabIndex: 0 }));
    }
    announce(exercise.said, el("div", { className: "verdict wrong" }, ...said));
  }

  /** Both programs on inputs that the reader writes, in Python. */
  async function offer() {
    const [stem, slug] = name.split("/");
    const state = el("p", { className: "soft" });
    bench.replaceChildren(state);
    listen((news) => (state.textContent = news));
    const shown = bug;
    const verdict = await ask("inputs", stem, slug);
    if (shown !== bug) return;
    if (verdict.kind !== "open") return announce(exercise.said, verdictOf(verdict));
    const { area, parts } = editor(verdict.example, "The inputs, in Python", {
      changed: () => {},
      submit: compare,
    });
    const run = el("button", { type: "button", textContent: "Compute", onclick: compare });
    const said = el("div", { className: "answer-said", role: "status" });
    bench.replaceChildren(...parts, el("div", { className: "answer-buttons" }, run), said);
    area.focus();
    async function compare() {
      announce(said, "It is being computed.");
      announce(said, verdictOf(await ask("compare", stem, slug, bug.lines.join("\n"), area.value)));
    }
  }

  another();
  own.addEventListener("pointerenter", () => start().catch(() => {}), { once: true });
  return el(
    "div",
    { className: "bug" },
    task,
    program,
    numbers,
    el("div", { className: "answer-buttons" }, next, own, count),
    bench,
  );
}
