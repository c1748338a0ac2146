// Where the answers stand: places() and nested() of tinylib/lab/data/lookup.py, for the page; a
// test compares the two.

const PARTNER = { "(": ")", "[": "]" };
const CLOSING = Object.values(PARTNER);

/** Of each word the place of the word before, after, the same one, its partner; -1 for none. */
export function places(words) {
  const [partner, last, opened] = [new Map(), new Map(), []];
  words.forEach((word, t) => {
    if (Object.hasOwn(PARTNER, word)) {
      opened.push(t);
    } else if (opened.length && word === PARTNER[words[opened.at(-1)]]) {
      const start = opened.pop();
      partner.set(start, t).set(t, start);
    }
  });
  return words.map((word, t) => {
    const same = last.get(word) ?? -1;
    last.set(word, t);
    return [t - 1, t + 1 < words.length ? t + 1 : -1, same, partner.get(t) ?? -1];
  });
}

/** Does every bracket have its partner, and no pair one of its own kind inside? */
export function nested(words) {
  const opened = [];
  for (const word of words) {
    if (opened.includes(word)) return false;
    if (Object.hasOwn(PARTNER, word)) opened.push(word);
    else if (CLOSING.includes(word) && PARTNER[opened.pop()] !== word) return false;
  }
  return opened.length === 0;
}
