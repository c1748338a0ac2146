// Finds places of the course for what somebody types: search.js shows them.

const [TITLE, NAME, TEXT, KIND] = [10, 7, 3, 2]; // what a word is worth, by where it stands
const KINDS = ["section", "glossary term definition formula", "widget"]; // of the groups
const MOST = [6, 5, 3]; // of each group
const BEST = -1; // the group of the term that is asked for, or else of the best entry
const STOP = new Set(
  (
    "a all an and are as at be by can do does for from how i in is it me my need of on or our " +
    "that the this to vs we what when where which why with work works you your"
  ).split(" "),
);
const GREEK =
  "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma " +
  "sigma tau upsilon phi chi psi omega";
const ENDING = /(?<=\w{3})(is(ations?|ing|ed?)|ations?|ing|ies|ers?|ed|es|[sey])$/;

/** A text in one spelling: LayerNorm is layer-norm, normalize normalise, √ root, α alpha, dₖ d_k.
 * @param {string} text */
export function folded(text) {
  return text
    .replace(/(\p{Ll}{3})(\p{Lu})/gu, "$1 $2")
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll("√", " root ")
    .replace(/[α-ω]/g, (letter) => ` ${GREEK.split(" ")[letter.charCodeAt(0) - 945]} `)
    .replace(/\p{M}|_|['’]s\b/gu, "")
    .replace(/iz(?=[aei])/g, "is")
    .replace(/(?<=\w\w)our\b/g, "or")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}

/** How a word that is meant begins. Of one or two letters it is the whole word. */
const start = (word) => (word.length < 3 ? `${word} ` : word.replace(ENDING, ""));

/** A name, and its neighbouring words joined: whoever types “layernorm” looks for layer norm. */
function named(text) {
  const words = folded(text).split(" ");
  return ` ${words.join(" ")} | ${words.map((word, i) => word + (words[i + 1] ?? "")).join(" ")} `;
}

/** What site/search_index.py tells, made ready.
 * @param {{pages: any[][], entries: any[][], synonyms: Record<string, string[]>}} index */
export function prepared({ pages, entries, synonyms }) {
  const all = entries.map(([group, page, place, title, also, text, kind = ""]) => {
    const [address, number, name] = pages[page];
    const fields = [
      [TITLE, named(title)],
      [NAME, also.map(named).join("|")],
      [TEXT, ` ${folded(text)} `],
      [KIND, ` ${KINDS[group]} ${kind} ${folded(`${number} ${name}`)} `],
    ];
    const [length, further] = [folded(title).split(" ").length, address.includes("_further")];
    const shown = { number, name, title, also, text, further, address: `${address}#${place}` };
    return { ...shown, group, kind, fields, length };
  });
  const pairs = Object.entries(synonyms).flatMap(([one, others]) => others.map((to) => [one, to]));
  for (const { group, title, also } of all)
    if (group === 1) pairs.push(...also.map((name) => [folded(name), folded(title)]));
  const words = new Set(all.flatMap(({ title }) => folded(title).split(" ")));
  return { all, pairs, known: new Map(), words: [...words].filter((word) => word.length > 3) };
}

/** How many letters differ, are missing or too many. */
function distance(one, other) {
  let row = [...other, ""].map((_, j) => j);
  for (const [i, letter] of [...one].entries()) {
    const next = [i + 1];
    for (const [j, its] of [...other].entries())
      next.push(Math.min(row[j] + Number(letter !== its), row[j + 1] + 1, next[j] + 1));
    row = next;
  }
  return row.at(-1);
}

/** The two words of headings that are spelt most like this one. */
export function nearest({ words }, word, most) {
  const near = words.filter((other) => Math.abs(other.length - word.length) <= most);
  const known = near.map((other) => ({ other, far: distance(word, other) }));
  const best = known.filter(({ far }) => far <= most).sort((a, b) => a.far - b.far);
  return best.slice(0, 2).map(({ other }) => other);
}

/** The words of a query that say something; all, if none does. */
function wordsOf(query) {
  const words = query.split(" ").filter((word) => !STOP.has(word));
  return words.length ? words : query.split(" ");
}

/** What a word is worth for each entry. */
function scores({ all, known }, word, begun) {
  const key = `${word} ${begun}`;
  if (known.has(key)) return known.get(key);
  const score = ([value, text]) => {
    if (!text.includes(` ${begun}`)) return 0;
    return text.includes(` ${word} `) || text.includes(` ${word}s `) ? value : 0.7 * value;
  };
  const hits = all.map(({ fields }) => Math.max(...fields.map(score)));
  const rare = Math.log(1 + all.length / (1 + hits.filter(Boolean).length));
  const weighted = hits.map((hit) => hit * rare);
  known.set(key, weighted);
  return weighted;
}

/** A question without its first words: of “what is a token” it is “token”. */
const bare = (query) => query.replace(/^(what|how|why) (is|are|do|does|can) ((an?|the) )?/, "");

/** What each entry is worth for a query, of which it has all or some words. */
function scored(index, query) {
  const words = wordsOf(query);
  const phrase = ` ${bare(query)}`;
  const begun = (word) => (words[1] ? start(word) : start(word).trim());
  const every = words.map((word) => scores(index, word, begun(word)));
  const whole = ([value, text]) => (text.includes(phrase) ? value / 25 : 0);
  return index.all.flatMap((entry, i) => {
    const hits = every.map((one) => one[i]).filter(Boolean);
    const part = hits.length / words.length;
    if (part <= 0.4) return [];
    const sum = hits.reduce((one, other) => one + other) * part ** 2;
    const score = sum * (1 + Math.max(...entry.fields.map(whole)));
    const ofTitle = 5 * part * Math.min(1, words.length / entry.length);
    const aside = entry.further || entry.kind === "exercise" ? 0.85 : 1;
    return { entry, score: aside * (score + ofTitle) };
  });
}

/** The best entry, others by groups, and how words begin that were typed or meant. */
export function find(index, text) {
  const query = folded(text.slice(0, 100));
  if (!query) return { found: [], typed: [], meant: [] };
  const isUnknown = (word) => word.length > 4 && !scores(index, word, start(word)).some(Boolean);
  let own = [query]; // as it is spelt, or as it was meant
  for (const word of query.split(" ").filter(isUnknown)) {
    const others = nearest(index, word, 1);
    if (others.length) own = own.flatMap((one) => others.map((to) => one.replace(word, to)));
  }
  const queries = new Set(own.slice(0, 8));
  const swap = (one, other) => {
    for (const known of queries)
      if (queries.size < 8 && ` ${known} `.includes(` ${one} `))
        queries.add(` ${known} `.replace(` ${one} `, ` ${other} `).trim());
  };
  for (const [one, other] of index.pairs) if (!other.includes(one)) swap(one, other);
  const best = new Map();
  for (const one of queries)
    for (const hit of scored(index, one)) {
      if (!own.includes(one)) hit.score *= query.includes(" ") ? 0.8 : 0.7;
      if (!(best.get(hit.entry)?.score >= hit.score)) best.set(hit.entry, hit);
    }
  const hits = [...best.values()].sort((a, b) => b.score - a.score);
  const begins = (words) => words.split(" ").map(start).join(" ");
  const terms = own.map((one) => begins(bare(one)));
  const isTerm = ({ address, title, also }) =>
    address.includes("glossary") &&
    [title, ...also].some((name) => terms.includes(begins(folded(name))));
  const first = hits.find(({ entry }) => isTerm(entry)) ?? hits[0];
  const good = [0, 1, 2].flatMap((group) => {
    const some = hits.filter((hit) => hit.entry.group === group && hit !== first);
    return some.filter(({ score }) => score > 0.3 * some[0].score).slice(0, MOST[group]);
  });
  const starts = (some) => some.flatMap(wordsOf).map(start);
  const found = good.map(({ entry }) => entry);
  if (first) found.unshift({ ...first.entry, group: BEST });
  return { found, typed: starts([query]), meant: starts([...queries]) };
}
