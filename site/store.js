// What is kept of a reader, in this browser alone: what they have read, answered and written.
// Nothing is sent.

const KEY = "road-to-gpt";

/**
 * @typedef {{ sections: string[], of: number, answers: Record<string, number[]> }} Chapter
 * @typedef {{ tries?: number, solved?: "half" | "whole", picks?: string[], numbers?: string[],
 *   draft?: string, task?: string, form?: string, bugs?: string[], test?: string,
 *   testTask?: string, tested?: boolean }} Exercise  task: what the draft was begun from
 * @typedef {{ version: 1, chapters: Record<string, Chapter>, last?: Record<string, string>,
 *   exercises?: Record<string, Exercise>, pieces?: Record<string, { text: string }> }} State
 */

/** Chapters that had another number when this state, or this file, was kept.
 * @type {Record<string, string>} */
const RENAMED = {
  "13_inside_gpt": "15_inside_gpt",
  "14_generation": "13_generation",
  "15_kv_cache": "14_kv_cache",
};

const isLasting = localStorage instanceof Storage; // layout.html may have put another in its place
let kept = isLasting;
/** @type {State} */
let memory = { version: 1, chapters: {} };

/** Whether the browser keeps it after the page is closed. */
export const isKept = () => kept;

/** @returns {State} */
export function load() {
  if (!kept) return memory; // what is stored, if anything, is older
  const stored = localStorage.getItem(KEY);
  try {
    if (stored) memory = checked(JSON.parse(stored));
  } catch {
    // It starts empty, and what cannot be read, perhaps of a newer edition, is put aside.
    if (isLasting && stored) setAside(stored);
  }
  return memory;
}

function setAside(stored) {
  try {
    localStorage.setItem(`${KEY}-unread`, stored);
  } catch {
    // there is no room
  }
}

/** Change the state, which another tab may have changed meanwhile, and tell the page.
 * @param {(state: State) => void} change */
export function keep(change) {
  const state = load();
  change(state);
  try {
    localStorage.setItem(KEY, JSON.stringify(state));
    kept = isLasting;
  } catch {
    kept = false;
  }
  document.dispatchEvent(new Event("kept"));
}

export function forget() {
  keep((state) => {
    for (const name of Object.keys(state)) delete state[name];
    Object.assign(state, { version: 1, chapters: {} });
  });
}

// Of a chapter, a question, an exercise or a piece; no name that every object has.
const isName = (name) => /^[a-z0-9][\w /-]*$/i.test(name) && !(name in {});
const all = (list, kind) => Array.isArray(list) && list.every((item) => typeof item === kind);
const isRecord = (of) => typeof of === "object" && of !== null && !Array.isArray(of);
const each = (of, is) =>
  isRecord(of) && Object.entries(of).every(([name, one]) => isName(name) && is(one));
const isOptional = (value, is) => value === undefined || is(value);
const isText = (value) => typeof value === "string";

const isChapter = (one) =>
  all(one?.sections, "string") &&
  typeof one.of === "number" &&
  each(one.answers, (opened) => all(opened, "number"));

const isExercise = (one) =>
  typeof one === "object" &&
  one !== null &&
  isOptional(one.tries, (tries) => Number.isInteger(tries) && tries >= 0) &&
  isOptional(one.solved, (how) => how === "half" || how === "whole") &&
  isOptional(one.picks, (picks) => all(picks, "string")) &&
  isOptional(one.numbers, (numbers) => all(numbers, "string")) &&
  isOptional(one.bugs, (bugs) => all(bugs, "string")) &&
  isOptional(one.draft, isText) &&
  [one.form, one.test, one.testTask].every((text) => isOptional(text, isText)) &&
  isOptional(one.task, isText);

/** The state if it is one, under today's names; a file may hold anything.
 * @returns {State} */
export function checked(found) {
  const right =
    found?.version === 1 &&
    each(found.chapters, isChapter) &&
    isOptional(found.last, (last) => isRecord(last) && all(Object.values(last), "string")) &&
    isOptional(found.exercises, (some) => each(some, isExercise)) &&
    isOptional(found.pieces, (some) => each(some, (piece) => isText(piece?.text)));
  if (!right) throw new Error("it is not a progress file of this course");
  const today = (name) => RENAMED[name] ?? name;
  const chapters = Object.entries(found.chapters).map(([name, one]) => [today(name), one]);
  found.chapters = Object.fromEntries(chapters);
  if (found.last) found.last.chapter = today(found.last.chapter);
  return found;
}

/** Add what is in a file to what is known here, which it does not replace.
 * @param {State} state @param {State} found */
export function merge(state, found) {
  for (const [name, chapter] of Object.entries(found.chapters)) {
    const own = (state.chapters[name] ??= { sections: [], of: chapter.of, answers: {} });
    own.sections = [...new Set([...own.sections, ...chapter.sections])];
    own.of ||= chapter.of;
    own.answers = { ...chapter.answers, ...own.answers };
  }
  for (const [name, exercise] of Object.entries(found.exercises ?? {})) {
    const own = ((state.exercises ??= {})[name] ??= {});
    const whole = [own.solved, exercise.solved].includes("whole");
    Object.assign(own, { ...exercise, ...own }, whole && { solved: "whole" });
  }
  state.pieces = { ...found.pieces, ...state.pieces };
  state.last ??= found.last;
}

/** Let the browser save a text as a file.
 * @param {string} name @param {string} text @param {string} type */
export function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
