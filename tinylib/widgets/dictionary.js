// Where French words come from: tinylib/lab/dictionary.py, for the page; a test compares the two.

const LONGEST = 3; // words of the longest English entry

/** The keys of the longest entry that begins at `start`, and where it ends. */
function entryAt(entries, words, start) {
  for (let end = Math.min(start + LONGEST, words.length); end > start; end -= 1) {
    const keys = entries[words.slice(start, end).join(" ")];
    if (keys) return { keys, end };
  }
  return { keys: [], end: start + 1 };
}

/** The English as entries of the dictionary: each with its keys and its places. */
function entriesOf({ english }, source) {
  const entries = [];
  for (let start = 0; start < source.length;) {
    const { keys, end } = entryAt(english, source, start);
    entries.push({ keys, at: Array.from({ length: end - start }, (_, i) => start + i) });
    start = end;
  }
  return entries;
}

/** For each key the places of the English words that carry it, in turn. */
function placesOf(entries) {
  const places = {};
  for (const { keys, at } of entries) for (const key of keys) (places[key] ??= []).push(at);
  return places;
}

/** The keys of each French word, and how often each key comes. */
function keysOf({ french, before_verb: beforeVerb, verbs }, target) {
  const words = target.map((word, t) =>
    (verbs.includes(target[t + 1]) && beforeVerb[word]) || (french[word] ?? []));
  const often = {};
  for (const key of words.flat()) often[key] = (often[key] ?? 0) + 1;
  return { words, often };
}

/** For each French word the places of the English words that it comes from; none if not known. */
export function alignment(book, source, target) {
  const places = placesOf(entriesOf(book, source));
  const { words, often } = keysOf(book, target);
  const turns = {}; // of each key, how often it came
  return words.map((keys) => {
    const sure = keys.every((key) => places[key]?.length === often[key]);
    const at = sure ? keys.flatMap((key) => places[key][turns[key] ?? 0]) : [];
    for (const key of keys) turns[key] = (turns[key] ?? 0) + 1;
    return at;
  });
}

/** Which French words say once more what the English has said already, or never says. */
export function surplus(book, source, target) {
  const places = placesOf(entriesOf(book, source));
  const turns = {};
  return keysOf(book, target).words.map((keys) => {
    for (const key of keys) turns[key] = (turns[key] ?? 0) + 1;
    return keys.some((key) => turns[key] > (places[key]?.length ?? 0));
  });
}

/**
 * What the French leaves out: the places of each English entry of which it has nothing, and those of
 * entries of one kind of which it has some, but not all ("the" and "a" are of one kind).
 */
export function missing(book, source, target) {
  const entries = entriesOf(book, source);
  const { often } = keysOf(book, target);
  const gone = entries.filter(({ keys }) => keys.length && !keys.some((key) => often[key]));
  const few = Object.entries(placesOf(entries)).filter(([key, places]) => often[key] < places.length);
  return {
    gone: gone.map(({ at }) => at),
    few: few.map(([key, places]) => ({ places, there: often[key] })),
  };
}
