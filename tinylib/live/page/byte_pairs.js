// Byte-pair encoding as in tinylib/tokens.py, for the page: plain functions, and tests feed both
// the same texts.

// Python's \s, of which JavaScript's differs.
const WHITE = "\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const PIECE = new RegExp(
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+" +
    `| ?[^${WHITE}\\p{L}\\p{N}]+|[${WHITE}]+(?![^${WHITE}])|[${WHITE}]+`,
  "gu",
);

/** The text in pieces that no token may reach across: words, mostly. */
export const split = (text) => text.match(PIECE) ?? [];

/** UTF-8, also of half a surrogate pair, which a text may hold by mistake. */
export function toBytes(text) {
  const bytes = [];
  for (const character of text) {
    const code = character.codePointAt(0);
    if (code < 0x80) bytes.push(code);
    else {
      const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; // bytes after the first
      bytes.push([0, 0xc0, 0xe0, 0xf0][more] | (code >> (6 * more)));
      for (let i = more - 1; i >= 0; i -= 1) bytes.push(0x80 | ((code >> (6 * i)) & 0x3f));
    }
  }
  return bytes;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of these bytes, undefined if they are no whole characters. */
export function fromBytes(bytes) {
  try {
    return strict.decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

/** Two ids as one number. Of two such numbers the smaller has the smaller ids, the first first. */
const SHIFT = 2 ** 20;
const keyOf = (left, right) => left * SHIFT + right;
const pairOf = (key) => [Math.floor(key / SHIFT), key % SHIFT];

/** The ids with `fresh` wherever the pair stood, from left to right. */
export function mergePair(ids, [left, right], fresh) {
  const merged = [];
  for (const id of ids) {
    if (id === right && merged.length && merged.at(-1) === left) merged[merged.length - 1] = fresh;
    else merged.push(id);
  }
  return merged;
}

/** Each different entry with how often it comes, in the order in which they first come. */
export function countEach(entries) {
  const counts = new Map();
  for (const entry of entries) counts.set(entry, (counts.get(entry) ?? 0) + 1);
  return counts;
}

/** The `most` commonest pairs, as [key, count]; of equally frequent ones, small ids first. */
function commonest(counts, most) {
  const best = [];
  for (const [key, count] of counts) {
    const worst = best.at(-1);
    const full = best.length === most;
    if (full && (count < worst[1] || (count === worst[1] && key > worst[0]))) continue;
    let at = full ? most - 1 : best.length;
    while (
      at > 0 &&
      (best[at - 1][1] < count || (best[at - 1][1] === count && best[at - 1][0] > key))
    )
      at -= 1;
    best.splice(at, 0, [key, count]);
    if (best.length > most) best.pop();
  }
  return best;
}

/**
 * The pairs to merge, at most `size`: always the commonest, counted again only where one
 * merged. `rankings[i]` are the `ranked` commonest pairs before merge i, as { pair, count }; there
 * is one more ranking than merges.
 */
export function learnMerges(text, size, ranked = 2) {
  const pieces = countEach(split(text));
  const [words, often] = [[...pieces.keys()].map(toBytes), [...pieces.values()]];
  const [counts, where] = [new Map(), new Map()]; // of a pair, by its key; `where` are words
  const add = (w, sign) => {
    const ids = words[w];
    for (let i = 1; i < ids.length; i += 1) {
      const key = keyOf(ids[i - 1], ids[i]);
      const count = (counts.get(key) ?? 0) + sign * often[w];
      if (count) counts.set(key, count);
      else counts.delete(key);
      if (!where.has(key)) where.set(key, new Set());
      where.get(key).add(w);
    }
  };
  words.forEach((_, w) => add(w, 1));
  const [merges, rankings] = [[], []];
  for (;;) {
    const best = commonest(counts, ranked);
    rankings.push(best.map(([key, count]) => ({ pair: pairOf(key), count })));
    if (!best.length || merges.length === size) return { merges, rankings };
    const [{ pair }] = rankings.at(-1);
    for (const w of where.get(keyOf(...pair))) {
      add(w, -1);
      words[w] = mergePair(words[w], pair, 256 + merges.length);
      add(w, 1);
    }
    merges.push(pair);
  }
}

const MOST_PIECES = 4096; // pieces whose ids are kept

/** Tokens that are bytes, or two tokens merged, in the order of `merges`. */
export class BytePairs {
  constructor(merges) {
    this.merges = merges;
    this.rank = new Map(merges.map((pair, i) => [keyOf(...pair), 256 + i]));
    this.known = new Map(); // piece -> its ids
    /** The bytes of each id. */
    this.tokens = Array.from({ length: 256 }, (_, byte) => [byte]);
    for (const [left, right] of merges)
      this.tokens.push([...this.tokens[left], ...this.tokens[right]]);
  }

  /** Its bytes, of which the pair that was learned first merges, and so on. */
  idsOfPiece(piece) {
    if (this.known.has(piece)) return this.known.get(piece);
    let ids = toBytes(piece);
    for (;;) {
      let first = Infinity;
      for (let i = 1; i < ids.length; i += 1)
        first = Math.min(first, this.rank.get(keyOf(ids[i - 1], ids[i])) ?? Infinity);
      if (first === Infinity) break;
      ids = mergePair(ids, this.merges[first - 256], first);
    }
    if (this.known.size >= MOST_PIECES) this.known.clear();
    this.known.set(piece, ids);
    return ids;
  }

  /** The ids of the text's tokens, piece by piece. */
  ids(text) {
    return split(text).flatMap((piece) => this.idsOfPiece(piece));
  }

  /** The way back; undefined if the ids break a character off. */
  text(ids) {
    return fromBytes(ids.flatMap((id) => this.tokens[id]));
  }
}
