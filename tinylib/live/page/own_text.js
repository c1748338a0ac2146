// A reader's own text: what a file holds, whether a model can learn it, and a number that names it.

const FIRST_OWN = 2; // as in gpt_trainer.py: the course's texts have the numbers before
const NUMBERS = 16_000_000;
const MOST_DISTINCT = 127;

/** A number that names a text, as number_of() of gpt_trainer.py has it. */
export function numberOf(text) {
  let found = 0;
  for (const character of text) found = (found * 31 + character.codePointAt(0)) % NUMBERS;
  return FIRST_OWN + found;
}

const counted = (number) => number.toLocaleString("en-GB").replaceAll(",", "\u202f");

/** The last words of a text, on one line. */
const endOf = (characters) => `… ${characters.slice(-30).join("").trim().replace(/\s+/g, " ")}`;

const KINDS = [
  ["%PDF-", "a PDF document"],
  ["PK\x03\x04", "a document of a word processor, an e-book or another zip file"],
  ["\xd0\xcf\x11\xe0", "a document of an older word processor"],
  ["{\\rtf", "a document in Rich Text Format"],
  ["\x89PNG", "an image"],
  ["\xff\xd8\xff", "an image"],
  ["GIF8", "an image"],
  ["RIFF", "an image or a recording"],
  ["\x1f\x8b", "a compressed file"],
];
const PLAIN =
  "Choose a file of plain text in UTF-8: most programs can save what they hold as that.";

/** How bytes that begin like these are read; without a mark, as UTF-8. */
const encodingOf = ([first, second]) =>
  first === 0xff && second === 0xfe
    ? "utf-16le"
    : first === 0xfe && second === 0xff
      ? "utf-16be"
      : "utf-8";

/**
 * The text in a file: UTF-8, or UTF-16 with its mark. Of a large file no more is read than `most`
 * characters can take. An Error explains why there is none.
 */
export async function textIn(file, most) {
  const wrong = (why, remedy = PLAIN) => new Error(`“${file.name}” ${why} ${remedy}`);
  const room = 4 * (most + 2); // bytes: four a character, and a mark
  let bytes;
  try {
    bytes = new Uint8Array(await file.slice(0, room).arrayBuffer());
  } catch {
    const why = "cannot be read: it has been moved, renamed or changed, or it is a folder.";
    throw wrong(why, "Choose it again.");
  }
  if (!bytes.length) throw wrong("is empty.", "Choose another file.");
  const begins = String.fromCharCode(...bytes.subarray(0, 8));
  const [, kind] = KINDS.find(([signature]) => begins.startsWith(signature)) ?? [];
  if (kind) throw wrong(`is ${kind}, not a plain text.`);
  try {
    const decoder = new TextDecoder(encodingOf(bytes), { fatal: true });
    return decoder.decode(bytes, { stream: file.size > room }); // what is cut off is left out
  } catch {
    throw wrong("is not a text in UTF-8.");
  }
}

const CONTROL = /(?![\s\u0080-\u009f])\p{Cc}/u; // tabs, ends of lines and of pages are text

/** The text as it can be used, and a note on it; or what is wrong with it. */
export function usable(text, [fewest, most]) {
  const clean = text
    .slice(0, 4 * most) // even of pairs, \r\n or surrogates, more than `most` characters
    .replace(/\r\n?/g, "\n")
    .replace(/\p{Surrogate}/gu, "\ufffd");
  const [control] = CONTROL.exec(clean) ?? [];
  if (control) {
    const code = control.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return {
      error: `This is not a plain text: it holds the control character U+${code}. ${PLAIN}`,
    };
  }
  const characters = Array.from(clean);
  const { length } = characters;
  if (length < fewest) {
    return {
      error:
        `The text has ${counted(length)} characters: give ${counted(fewest)} or more, ` +
        "so that there is enough to learn from.",
    };
  }
  const kept = length > most ? characters.slice(0, most) : characters;
  const kinds = new Set(kept).size;
  const notes = [
    ...(length > most
      ? [`Only its first ${counted(most)} characters are used, up to “${endOf(kept)}”.`]
      : []),
    ...(kinds === 1 ? ["It is one character again and again: there is nothing to learn."] : []),
    ...(kinds > MOST_DISTINCT
      ? [
          `It has ${counted(kinds)} different characters: the ${MOST_DISTINCT} commonest are ` +
            "told apart, and all others are one, □.",
        ]
      : []),
  ];
  return { text: kept.join(""), length: kept.length, note: notes.join(" ") };
}
