// Where French words come from: tinylib/lab/data/dictionary.py, for the page; a test compares the
// two.

const LONGEST = 3; // words of the longest English entry

/** What `table` has for these words, if anything: "constructor" is a word like any other. */
const entered = (table, words) => (Object.hasOwn(table, words) ? table[words] : undefined);

/** The keys of the longest entry that begins at `start`, and where it ends. */
function entryAt(entries, words, start) {
  for (let end = Math.min(start + LONGEST, words.length); end > start; end -= 1) {
    const keys = entered(entries, words.slice(start, end).join(" "));
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
  const words = target.map(
    (word, t) =>
      (verbs.includes(target[t + 1]) && entered(beforeVerb, word)) || (entered(french, word) ?? []),
  );
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

/** Which French words repeat a meaning of the English, or have one that it does not have. */
export function surplus(book, source, target) {
  const places = placesOf(entriesOf(book, source));
  const turns = {};
  return keysOf(book, target).words.map((keys) => {
    for (const key of keys) turns[key] = (turns[key] ?? 0) + 1;
    return keys.some((key) => turns[key] > (places[key]?.length ?? 0));
  });
}

/** Which French words do not stand where the grammar puts them. */
export function misplaced(book, source, target) {
  const { words: keys } = keysOf(book, target);
  const origin = alignment(book, source, target);
  const some = (own, kind) => own.some((key) => book[kind].includes(key));
  const fixed = target.map((_, t) => t).filter((t) => origin[t].length && !some(keys[t], "moving"));
  const kept = rising(fixed.map((t) => origin[t][0]));
  const found = target.map((_, t) => fixed.includes(t) && !kept.has(fixed.indexOf(t)));

  const entries = source.map((_, s) => entryAt(book.english, source, s).keys);
  const [ours, theirs] = [entries, keys].map((all) => all.map((own) => some(own, "adjectives")));
  const place = new Map(origin.flatMap((at, t) => (at.length ? [[at[0], t]] : [])));
  origin.forEach((at, t) => {
    if (!at.length || !theirs[t]) return;
    const [, noun] = beside(ours, at[0]);
    if (!place.has(noun) || !some(entries[noun], "nouns")) return;
    if (!beside(theirs, t).includes(place.get(noun))) found[t] = true;
  });
  return found;
}

/** Where the numbers of a longest subsequence stand in which each is larger than the last. */
function rising(numbers) {
  const longest = (runs) => runs.reduce((best, run) => (run.length > best.length ? run : best), []);
  const runs = []; // the longest that ends at each place
  numbers.forEach((number, i) => {
    runs.push([...longest(runs.filter((run) => numbers[run.at(-1)] < number)), i]);
  });
  return new Set(longest(runs));
}

/** The places before and behind the run of marked ones in which `place` stands. */
function beside(marked, place) {
  let [first, last] = [place, place];
  while (marked[first - 1]) first -= 1;
  while (marked[last + 1]) last += 1;
  return [first - 1, last + 1];
}

/** How many words of each language the dictionary does not know: it cannot judge their sentence. */
export function strange(book, source, target) {
  const known = new Set(Object.keys(book.english).flatMap((words) => words.split(" ")));
  return [
    source.filter((word) => !known.has(word)).length,
    target.filter((word) => !entered(book.french, word)).length,
  ];
}

/**
 * What the French leaves out: the places of each English entry of which it has nothing, and those
 * of entries of one kind of which it has some, but not all ("the" and "a" are of one kind).
 */
export function missing(book, source, target) {
  const entries = entriesOf(book, source);
  const { often } = keysOf(book, target);
  const gone = entries.filter(({ keys }) => keys.length && !keys.some((key) => often[key]));
  const few = Object.entries(placesOf(entries)).filter(
    ([key, places]) => often[key] < places.length,
  );
  return {
    gone: gone.map(({ at }) => at),
    few: few.map(([key, places]) => ({ places, there: often[key] })),
  };
}

/** A longest common subsequence: the places in `words`, each with that in `others`. */
export function common(words, others) {
  const longest = Array.from({ length: words.length + 1 }, () => Array(others.length + 1).fill(0));
  for (let i = words.length - 1; i >= 0; i -= 1) {
    for (let j = others.length - 1; j >= 0; j -= 1) {
      longest[i][j] =
        words[i] === others[j]
          ? 1 + longest[i + 1][j + 1]
          : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const kept = new Map();
  for (let i = 0, j = 0; i < words.length && j < others.length;) {
    if (words[i] === others[j]) {
      kept.set(i, j);
      i += 1;
      j += 1;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) {
      i += 1;
    } else {
      j += 1;
    }
  }
  return kept;
}

/**
 * Which French words the grammar would not say: wrong_words() of ablation.py. If the `truth` is
 * known, those outside a longest common subsequence with it; else what the dictionary finds.
 */
export function wrongWords(book, truth, source, target) {
  if (truth === undefined) {
    const places = misplaced(book, source, target);
    return surplus(book, source, target).map((one, t) => one || places[t]);
  }
  const kept = common(target, [...truth.split(" "), "<eos>"]);
  return target.map((word, t) => word !== "<eos>" && !kept.has(t));
}
