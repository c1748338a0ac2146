// The text of a my_gpt.py: how it is cut into the pieces of the chapters, and put together again.
// No letter is lost on the way.

const MARK = /^# --- (\d\d|also yours)\b.*---\n?$/;
const ALSO = "# --- also yours ---\n";
const DEFINES = /^(?:async )?(?:def|class) (\w+)/m;
export const [HEAD, REST, FORM] = ["00", "also yours", "form"]; // kept beside the pieces

/**
 * @typedef {{ mark: string, text: string, starter: string }} Piece  of the course; the head of the
 *   file has no mark
 * @typedef {Record<string, Piece>} Course  by the chapter's number
 * @typedef {Record<string, { text: string }>} Own  what the reader has written
 */

/** The blocks of a text: each begins with a function or class, with what stands right above it.
 * @param {string} text */
function blocks(text) {
  const found = [""];
  let above = ""; // comments and decorators, which belong to what follows
  for (const line of text.split(/(?<=\n)/)) {
    if (/^[#@]/.test(line)) {
      above += line;
      continue;
    }
    if (DEFINES.test(line)) found.push("");
    found[found.length - 1] += above + line;
    above = "";
  }
  found[found.length - 1] += above;
  return found;
}

/** The text by the marks in it: [the piece's number, its text], in order.
 * @param {string} text @param {Course} course */
function marked(text, course) {
  /** @type {[string, string][]} */
  const found = [[HEAD, ""]];
  for (const line of text.split(/(?<=\n)/)) {
    const number = MARK.exec(line)?.[1];
    const known = number === REST || (number && course[number]);
    const own = known && !found.some(([other]) => other === number);
    if (own) found.push([number, ""]);
    if (!own || line !== (course[number]?.mark ?? ALSO)) found.at(-1)[1] += line;
  }
  return found;
}

/** Cut a file at its marks. Where the mark of a piece is gone, the names that it defines tell it;
 * what fits nowhere is in the rest. What is just as the course has it is left out.
 * @param {string} file @param {Course} course @returns {Own} */
export function cut(file, course) {
  const ends = file.split("\n").slice(0, -1);
  const windows = ends.length > 0 && ends.every((line) => line.endsWith("\r"));
  const bom = file.startsWith("\ufeff") ? "\ufeff" : "";
  const text = windows ? file.replaceAll("\r\n", "\n") : file;
  const home = {};
  for (const [number, piece] of Object.entries(course)) {
    for (const [, name] of piece.text.matchAll(/^(?:def|class) (\w+)/gm)) home[name] = number;
  }
  const slices = marked(text.slice(bom.length), course);
  const unmarked = (number) => number && !slices.some(([other]) => other === number);
  /** @type {Record<string, string>} */
  const parts = {};
  for (const [number, slice] of slices) {
    let here = number;
    for (const block of blocks(slice)) {
      const known = home[DEFINES.exec(block)?.[1]];
      if (unmarked(known)) here = known;
      else if (here !== number && DEFINES.test(block)) here = number === HEAD ? REST : number;
      parts[here] = (parts[here] ?? "") + block;
    }
  }
  const same = (number, part) => part.trimEnd() === course[number]?.text.trimEnd();
  const own = Object.entries(parts).filter(([number, part]) => part.trim() && !same(number, part));
  const last = Object.keys(parts).filter((number) => course[number]);
  own.push([FORM, bom + last.sort().at(-1) + (windows ? "\r\n" : "")]);
  return Object.fromEntries(own.map(([number, text]) => [number, { text }]));
}

/** The parts of the file: the course's pieces up to a chapter's, or as far as the file that was
 * opened went, and all of the reader's own.
 * @param {Own} own @param {Course} course @param {string} last  the chapter's number */
export function parts(own, course, last) {
  const opened = /\d\d/.exec(own[FORM]?.text ?? "")?.[0] ?? "";
  const found = Object.entries(course)
    .filter(([number]) => number <= last || number <= opened || own[number])
    .sort(([one], [other]) => Number(one) - Number(other))
    .map(([number, { mark, text }]) => {
      let written = own[number]?.text;
      if (written && number === HEAD) written = withImports(written, text);
      const hasMark = MARK.test(written?.split("\n")[0] ?? "");
      const whole = (hasMark ? "" : mark) + (written ?? text);
      return { number, yours: written !== undefined, text: whole };
    });
  if (own[REST]) found.push({ number: REST, yours: true, text: ALSO + own[REST].text });
  return found;
}

/** A head with what the course's pieces need to be imported, too.
 * @param {string} head @param {string} course  the head of the course's file */
function withImports(head, course) {
  const there = head.split("\n");
  const lacking = course.match(/^(?:import|from) .*/gm).filter((line) => !there.includes(line));
  return lacking.length ? `${head.trimEnd()}\n${lacking.join("\n")}\n` : head;
}

/** Parts as one text: two empty lines stand between them, or more if the reader has more.
 * @param {{ text: string }[]} some */
export function joined(some) {
  const apart = (text) => text.replace(/\n*$/, (ends) => ends.padEnd(3, "\n"));
  return some.map(({ text }, i) => (i < some.length - 1 ? apart(text) : text)).join("");
}

/** The reader's file, with the marks and the ends of lines that it came with.
 * @param {Own} own @param {Course} course @param {string} last */
export function fileOf(own, course, last) {
  const form = own[FORM]?.text ?? "";
  const text = joined(parts(own, course, last));
  const bom = form.startsWith("\ufeff") ? "\ufeff" : "";
  return bom + (form.endsWith("\n") ? text.replaceAll("\n", "\r\n") : text);
}

/** What stands above a piece when it is judged.
 * @param {Own} own @param {Course} course @param {string} number */
export function above(own, course, number) {
  const isAbove = (part) => part.number < number || part.number === REST;
  return joined(parts(own, course, number).filter(isAbove));
}
