// The output of a small case, to be worked out and written number by number.

import { el, announce, verdictOf } from "./words.js";

const NUMBER = "\\d*\\.?\\d+|\\d+\\.";
const FRACTION = new RegExp(`^([+-]?(?:${NUMBER})(?:e[+-]?\\d+)?)(?:/(${NUMBER}))?$`, "i");

/** A number as readers write it: -0.5, −.5, 0,5, 1e-3, 1/3, True; NaN for anything else.
 * @param {string} text */
export function numberIn(text) {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  if (/^(true|false)$/i.test(plain)) return Number(plain.toLowerCase() === "true");
  const [, above, below] = FRACTION.exec(plain) ?? [];
  return above === undefined ? NaN : Number(above) / Number(below ?? 1);
}

/** Whether it is right to two digits; a whole number has to be right altogether.
 * @param {number} number @param {string} wanted */
export function isNear(number, wanted) {
  const right = Number(wanted);
  const digits = Number.isInteger(right) ? -1 : Math.floor(Math.log10(Math.abs(right)));
  return Math.abs(number - right) <= 0.501 * 10 ** (digits - 1);
}

const near = (written, wanted) => written.every((number, i) => isNear(number, wanted[i]));

/** The form, as it was left.
 * @param {{ given: string, right: string[], shape: number[], truth: boolean, parts?: boolean,
 *   slips: [string[], string][] }} asked
 * @param {string} insight  what the check says of a right answer
 * @param {import("./gaps.js").Exercise} exercise */
export function numbersForm({ given, right, shape, truth, parts, slips }, insight, exercise) {
  const left = exercise.kept().numbers ?? [];
  const boxes = right.map((_, i) => {
    const box = /** @type {HTMLInputElement} */ (el("input", { value: left[i] ?? "" }));
    Object.assign(box, { inputMode: truth ? "text" : "decimal", autocomplete: "off", size: 6 });
    box.ariaLabel = `Number at [${placeIn(shape, i)}]`;
    box.oninput = () => {
      exercise.said.classList.add("old");
      box.classList.remove("right", "wrong");
      exercise.keep({ numbers: boxes.map((one) => one.value) });
    };
    box.onkeydown = ({ key }) => {
      if (key === "Enter") judge();
    };
    return box;
  });

  function judge() {
    const written = boxes.map((box) => numberIn(box.value));
    boxes.forEach((box, i) => (box.ariaInvalid = String(Number.isNaN(written[i]))));
    const missing = boxes.find((_, i) => Number.isNaN(written[i]));
    if (missing) {
      const what = missing.value.trim() ? `“${missing.value}” is not a number.` : "A box is empty.";
      announce(exercise.said, what);
      missing.focus();
      return;
    }
    boxes.forEach((box, i) => {
      const isRight = isNear(written[i], right[i]);
      box.classList.toggle("right", isRight);
      box.classList.toggle("wrong", !isRight);
    });
    const verdict = verdictOn(written);
    exercise.tried(verdict.kind === "right");
    const more = verdict.kind === "right" ? exercise.next() : [];
    announce(exercise.said, verdictOf(verdict, ...(more.length ? [el("p", {}, ...more)] : [])));
  }

  function verdictOn(written) {
    if (near(written, right)) return { kind: "right", message: insight };
    const [, lesson] = slips.find(([numbers]) => near(written, numbers)) ?? [];
    if (lesson) return { kind: "wrong", message: lesson };
    const count = written.filter((number, i) => isNear(number, right[i])).length;
    const message = `${count} of the ${right.length} numbers ${count === 1 ? "is" : "are"} right.`;
    return { kind: "wrong", message: right.length === 1 ? "Another number comes out." : message };
  }

  const columns = shape.at(-1) ?? 1;
  /** Of a row: the part of the answer, and the place in it. */
  const nameOf = (row) => {
    const [part, ...rest] = placeIn(shape.slice(0, -1), row).split(", ");
    if (!parts) return `[${[part, ...rest].join(", ")}]`;
    return `part ${Number(part) + 1}${rest.length ? ` [${rest.join(", ")}]` : ""}`;
  };
  const grid = el("div", { className: "numbers" });
  boxes.forEach((box, i) => {
    const starts = shape.length > 1 && i % columns === 0;
    if (starts) grid.append(el("span", {}, nameOf(i / columns)));
    grid.append(box);
  });
  const label = shape.length > 1 ? "max-content " : "";
  grid.style.gridTemplateColumns = `${label}repeat(${columns}, minmax(3.2rem, 6rem))`;
  const check = el("button", { type: "button", textContent: "Check", onclick: judge });
  const isWhole = right.every((number) => Number.isInteger(Number(number)));
  const form = isWhole ? "whole ones" : "two digits are enough, also as 1/3 or 1e-3";
  const what = truth ? "1 for True and 0 for False" : form;
  const [count, ...each] = shape;
  const several = `, ${count} parts of shape ${tuple(each)}`;
  const size = parts ? several : shape.length > 1 ? `, of shape ${tuple(shape)}` : "";
  return el(
    "div",
    {},
    el("pre", { className: "given", textContent: given, tabIndex: 0 }),
    el("p", {}, `What comes out${size}? Write numbers: ${what}.`),
    grid,
    el("div", { className: "answer-buttons" }, check),
  );
}

/** A shape as Python writes it: (3,) or (2, 2).
 * @param {number[]} shape */
const tuple = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

/** 1, 0 for the third of four numbers of a 2 × 2 matrix.
 * @param {number[]} shape @param {number} i */
function placeIn(shape, i) {
  const at = [];
  for (const length of shape.toReversed()) {
    at.unshift(i % length);
    i = Math.floor(i / length);
  }
  return at.join(", ");
}
