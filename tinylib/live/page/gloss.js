// English under French, as tinylib/lab/data/gloss.py has it; a test compares the two.

const DENIED = /\b(pas|jamais)( souvent| toujours)? (de|d')$/; // not any

/** What each word says in English, "le" before a verb as him; "?" for one that is not known. */
export function gloss({ words, before_verb: beforeVerb, verbs }, french) {
  const entry = (table, word) => (Object.hasOwn(table, word) ? table[word] : undefined);
  return french.map(
    (word, t) =>
      (verbs.includes(french[t + 1]) && entry(beforeVerb, word)) ||
      (DENIED.test(french.slice(0, t + 1).join(" ")) && "any") ||
      (entry(words, word) ?? "?"),
  );
}
