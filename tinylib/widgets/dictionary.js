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

/** For each French word the places of the English words that it comes from; none if not known. */
export function alignment({ english, french, before_verb: beforeVerb, verbs }, source, target) {
  const places = {}; // of each key in the English
  for (let start = 0; start < source.length;) {
    const { keys, end } = entryAt(english, source, start);
    const at = Array.from({ length: end - start }, (_, i) => start + i);
    for (const key of keys) (places[key] ??= []).push(at);
    start = end;
  }
  const keysOf = (word, t) =>
    (verbs.includes(target[t + 1]) && beforeVerb[word]) || (french[word] ?? []);
  const words = target.map(keysOf);
  const count = (key) => words.flat().filter((other) => other === key).length;
  const turns = {}; // of each key, how often it came
  return words.map((keys) => {
    const sure = keys.every((key) => places[key]?.length === count(key));
    const at = sure ? keys.flatMap((key) => places[key][turns[key] ?? 0]) : [];
    for (const key of keys) turns[key] = (turns[key] ?? 0) + 1;
    return at;
  });
}
