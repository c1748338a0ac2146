// What a reader may put into a widget, and how it travels in a link: plain functions, no page.
// The rules of problem() are those of schema.py; a test feeds both the same inputs.

import { GENERATOR } from "./chance.js";
import { plainly, SPACE, tokenise } from "./words.js";

const countLetters = (text) => [...text].length;
const clip = (text) => (countLetters(text) > 24 ? `${[...text].slice(0, 24).join("")}…` : text);

const exactly = (number) => String(number).replace("-", "−");

/** The number that a reader typed, or what is wrong with it; `name` is what it is one of. */
export function parseNumber(text, [low, high], name = "") {
  const typed = plainly(text, (sign) => sign < "\x7f").trim();
  if (!typed) return { error: "An entry cannot be empty: write a number." };
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(typed)) {
    return { error: `“${clip(typed)}” is not a number: write it like 0.43.` };
  }
  const value = Number(typed);
  if (!(value >= low && value <= high)) {
    const ends = `between ${exactly(low)} and ${exactly(high)}.`;
    return {
      error: name
        ? `${name} must lie ${ends}`
        : `${clip(typed)} is out of range: keep entries ${ends}`,
    };
  }
  return { value };
}

/** Rows of numbers out of pasted text: a spreadsheet's, a Python list's, or plain columns. */
export function parseBlock(text, ends) {
  // In a table copied with tabs, and in a lone number, a comma can only be a decimal comma.
  const comma =
    /^\s*[+-]?\d+,\d+\s*$/.test(text) || text.includes("\t") ? /\d+,\d+/.exec(text) : null;
  if (comma) return { error: `“${comma[0]}” is not a number: write it with a point, like 0.43.` };
  const rows = text
    .replace(/tensor|array/g, "")
    .split(/[\n;]|\]\s*,/)
    .map((row) => row.replace(/[[\](),]/g, " ").trim())
    .filter(Boolean)
    .map((row) => row.split(/\s+/).map((cell) => parseNumber(cell, ends)));
  const wrong = rows.flat().find((cell) => cell.error);
  return wrong ?? { rows: rows.map((row) => row.map((cell) => cell.value)) };
}

const GAPS = new RegExp(`[${SPACE}\\ufeff]+`, "u");

/** Whether the vocabulary holds characters alone: each character of a text is then a word. */
export const ofCharacters = (vocabulary) =>
  vocabulary.length > 0 && vocabulary.every((token) => countLetters(token) === 1);

/** Whether any word will do: the vocabulary has no <unk>. */
export const isOpen = (vocabulary) => !knows(vocabulary, "<unk>") && !ofCharacters(vocabulary);

/** The tokens that a reader can write: all but <pad> and its like. */
export const ownTokens = (vocabulary) => vocabulary.filter((token) => !/^<.+>$/.test(token));

/**
 * A sentence's words: as the model's were, or, if any word will do, what spaces part; tokens of the
 * vocabulary, brackets for example, are then words even where no space parts them from others. A
 * model that has not learned "n't" reads "not" for it: "isn't" is "is not".
 */
export function wordsOf(spec, name, text) {
  const vocabulary = spec.sentences[name];
  text = plainly(text, (sign) => knows(vocabulary, sign));
  if (ofCharacters(vocabulary)) return [...text];
  if (isOpen(vocabulary)) {
    const apart = ownTokens(vocabulary).reduce(
      (all, token) => all.replaceAll(token, () => ` ${token} `),
      text,
    );
    return apart.split(GAPS).filter(Boolean);
  }
  return tokenise(text).map((word) => (word === "n't" && !knows(vocabulary, word) ? "not" : word));
}

const numbered = new WeakMap(); // vocabulary -> its words' numbers
function numbersOf(vocabulary) {
  if (!numbered.has(vocabulary))
    numbered.set(vocabulary, new Map(vocabulary.map((w, i) => [w, i])));
  return numbered.get(vocabulary);
}

export const knows = (vocabulary, word) => numbersOf(vocabulary).has(word);

/**
 * Each sentence as numbers: those of its vocabulary, else the next ones as words first appear;
 * without a vocabulary those are 0, 1, 2 …
 */
export function idsOf(spec, inputs) {
  const seen = new Map();
  const number = (word) => seen.get(word) ?? (seen.set(word, seen.size), seen.size - 1);
  return Object.fromEntries(
    Object.entries(spec.sentences ?? {}).map(([name, vocabulary]) => {
      const known = numbersOf(vocabulary);
      const own = isOpen(vocabulary) && new Set(ownTokens(vocabulary));
      const id = (word) =>
        own && !own.has(word)
          ? vocabulary.length + number(word)
          : (known.get(word) ?? known.get("<unk>"));
      return [name, wordsOf(spec, name, inputs[name]).map(id)];
    }),
  );
}

const utf8 = new TextEncoder();

/** Each text of any characters as its UTF-8 bytes. */
export const bytesOf = ({ texts = [] }, inputs) =>
  Object.fromEntries(texts.map((name) => [name, utf8.encode(inputs[name])]));

/** What is wrong with `inputs`, in words, or "" if nothing is. The same rules as in Python. */
export function problem(spec, inputs) {
  if (typeof inputs !== "object" || inputs === null) return "There is no state in it.";
  const names = [...(spec.words ? ["words"] : []), ...Object.keys(spec.inputs)];
  const strange = Object.keys(inputs).find((name) => !names.includes(name));
  if (strange) return `“${clip(strange)}” is not an input here.`;
  const sizes = {};
  if (spec.words) {
    const { words } = inputs;
    if (!Array.isArray(words) || !words.every((word) => typeof word === "string")) {
      return "The words are missing.";
    }
    if (words.length < 1 || words.length > spec.max.words) {
      return `${words.length} words: there is room for 1 to ${spec.max.words}.`;
    }
    for (const word of words) {
      if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(word))
        return "A word cannot be empty: type some letters.";
      if (/\s/.test(word)) return `“${clip(word)}” is not one word.`;
      if (countLetters(word) > spec.max.letters) {
        return `“${clip(word)}” has ${countLetters(word)} letters: ${spec.max.letters} at most.`;
      }
    }
    sizes.T = words.length;
  }
  const limits = spec.limits ?? {};
  for (const [name, axes] of Object.entries(spec.inputs)) {
    const value = inputs[name];
    if (spec.sentences?.[name]) {
      const wrong = sentenceProblem(spec, name, value);
      if (wrong) return wrong;
      sizes[axes] = wordsOf(spec, name, value).length;
      continue;
    }
    if (spec.texts?.includes(name)) {
      const wrong = freeTextProblem(value, limits[axes]);
      if (wrong) return wrong;
      sizes[axes] = utf8.encode(value).length;
      continue;
    }
    if (spec.kinds[name] === "Bool") {
      if (typeof value !== "boolean") return `${name} must be on or off.`;
      continue;
    }
    const wanted = axes.split(" ").filter(Boolean);
    const shape = shapeOf(value);
    const fits =
      shape &&
      shape.length === wanted.length &&
      wanted.every((axis, i) => {
        const [low, high] = limits[axis] ?? [1, shape[i]];
        return (
          shape[i] >= low &&
          shape[i] <= high &&
          shape[i] === (/^\d+$/.test(axis) ? Number(axis) : (sizes[axis] ??= shape[i]))
        );
      });
    if (!fits) return `${name} does not have the right number of rows and columns.`;
    const entries = [value].flat(Infinity);
    if (spec.kinds[name] === "Int" && !entries.every(Number.isInteger)) {
      return `${name} must be a whole number.`;
    }
    const [low, high] = limits[name] ?? [-spec.max.entry, spec.max.entry];
    if (entries.some((entry) => !(entry >= low && entry <= high))) {
      return `${name} must lie between ${exactly(low)} and ${exactly(high)}.`;
    }
  }
  return "";
}

function sentenceProblem(spec, name, text) {
  if (typeof text !== "string") return "The sentence is missing.";
  const words = wordsOf(spec, name, text);
  const [low, high] = spec.limits[spec.inputs[name]];
  if (ofCharacters(spec.sentences[name]))
    return textProblem(spec.sentences[name], words, [low, high]);
  if (words.length < low && words.length) return `${words.length} word: write ${low} at least.`;
  if (words.length < low) return "The sentence is empty: write some words.";
  if (words.length > high) {
    const vocabulary = spec.sentences[name];
    const apart = !isOpen(vocabulary)
      ? ", punctuation among them"
      : ownTokens(vocabulary).length
        ? ", brackets among them"
        : "";
    return `${words.length} words${apart}: there is room for ${high}.`;
  }
  const long = words.find((word) => countLetters(word) > spec.max.letters);
  return long
    ? `“${clip(long)}” has ${countLetters(long)} letters: ${spec.max.letters} at most.`
    : "";
}

/** Of a text of any characters: half a surrogate pair is none, and UTF-8 has no form for it. */
function freeTextProblem(text, [low, high]) {
  if (typeof text !== "string") return "The text is missing.";
  if (/\p{Surrogate}/u.test(text)) return "The text holds half a character: take it out.";
  const { length } = utf8.encode(text);
  if (length < low) return "There is no text: write something.";
  if (length <= high) return "";
  return `The text has ${length} bytes, and there is room for ${high}: take ${length - high} out.`;
}

function textProblem(vocabulary, characters, [low, high]) {
  if (characters.length < low) return "There is no text: write something.";
  if (characters.length > high)
    return `${characters.length} characters: there is room for ${high}.`;
  const strange = characters.find((character) => !knows(vocabulary, character));
  if (strange === undefined) return "";
  const code = strange.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  const named = /[\p{L}\p{N}\p{P}\p{S}]/u.test(strange)
    ? `“${strange}”`
    : `The character U+${code}`;
  const others = vocabulary.filter((token) => !/[\p{L}\s]/u.test(token));
  return (
    `${named} is none of the ${vocabulary.length} characters that this model knows: ` +
    `letters, space, new line and ${others.join(" ")}`
  );
}

/** [6, 3] for six lists of three numbers; null where rows differ or hold something else. */
function shapeOf(value) {
  if (typeof value === "number") return [];
  if (!Array.isArray(value)) return null;
  if (value.length === 0) return [0];
  const inner = value.map(shapeOf);
  return inner.every((shape) => shape && String(shape) === String(inner[0]))
    ? [value.length, ...inner[0]]
    : null;
}

/** A made-up embedding for a word that the example does not know: always the same for a word. */
export function hashedNumbers(word, width) {
  let hash = 2166136261; // FNV-1a, then one xorshift a number
  for (const char of word) hash = Math.imul(hash ^ char.codePointAt(0), 16777619);
  return Array.from({ length: width }, () => {
    hash ^= hash << 13;
    hash ^= hash >>> 17;
    hash ^= hash << 5;
    return ((hash >>> 0) % 100) / 100;
  });
}

const linkKey = (id) => `live-${id}=`;

/** The page's address with `state` in it, after the hash. */
export function writeLink(id, state) {
  const bytes = new TextEncoder().encode(JSON.stringify({ ...state, generator: GENERATOR }));
  const text = btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
  return `${location.href.split("#")[0]}#${linkKey(id)}${text}`;
}

/** Whether the page's address holds a state of this widget. */
export const linksTo = (id) => location.hash.startsWith(`#${linkKey(id)}`);

/** The state in the page's address, undefined if there are none; throws if they are damaged. */
export function readLink(id) {
  if (!linksTo(id)) return undefined;
  const text = location.hash
    .slice(1 + linkKey(id).length)
    .replaceAll("-", "+")
    .replaceAll("_", "/");
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
}
