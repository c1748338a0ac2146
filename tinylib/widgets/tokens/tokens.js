import {
  BytePairs,
  countEach,
  fromBytes,
  learnMerges,
  split,
  toBytes,
} from "../../live/page/byte_pairs.js";
import { columnHeads } from "../../live/ui/boxes.js";
import { offers } from "../../live/ui/controls.js";
import { h, readOnce, setAttribute, setLength, setText } from "../../live/ui/dom.js";
import { knob } from "../../live/ui/knobs.js";
import { whole, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, freeText } from "../../live/ui/sentences.js";

// ---------------------------------------------------------------- what is computed

const RANKED = 5; // the pair that merges next, and those that it leaves behind
const known = new Map(); // corpus -> what it taught: a text is typed letter by letter
const MOST_CORPORA = 8;

function taught(corpus, most) {
  if (!known.has(corpus)) {
    if (known.size >= MOST_CORPORA) known.delete(known.keys().next().value);
    const pieces = countEach(split(corpus));
    known.set(corpus, { ...learnMerges(corpus, most, RANKED), pieces, after: new Map() });
  }
  return known.get(corpus);
}

const table = (rows) => ({ dims: [rows.length, 2], data: rows.flat() });
const list = (data) => ({ dims: [data.length], data });

/** What Python does in a kernel, in compute() of tokens.py. */
export async function program(_run, { corpus, text, merges }, { limits }) {
  const lesson = taught(fromBytes(corpus), limits.merges[1]);
  const { rankings, pieces, after } = lesson;
  const R = Math.min(merges, lesson.merges.length);
  if (!after.has(R)) after.set(R, new BytePairs(lesson.merges.slice(0, R)));
  const pairs = after.get(R);
  const words = [...pieces.keys()].map((piece) => pairs.idsOfPiece(piece));
  const often = [...pieces.values()];
  const cut = split(fromBytes(text)).map((piece) => pairs.idsOfPiece(piece));
  return {
    available: lesson.merges.length,
    pairs: table(pairs.merges),
    counts: list(rankings.slice(0, R).map(([{ count }]) => count)),
    best: table(rankings[R].map(({ pair }) => pair)),
    best_counts: list(rankings[R].map(({ count }) => count)),
    word_counts: list(often),
    word_sizes: list(words.map((ids) => ids.length)),
    word_ids: list(words.flat()),
    corpus_tokens: words.reduce((sum, ids, w) => sum + ids.length * often[w], 0),
    ids: list(cut.flat()),
    pieces: list(cut.flatMap((ids, number) => ids.map(() => number))),
  };
}

// ---------------------------------------------------------------- what it says

const twos = ({ data }) =>
  Array.from({ length: data.length / 2 }, (_, i) => [data[2 * i], data[2 * i + 1]]);

const readBy = readOnce(
  (_widget, { pairs, counts, best, best_counts, word_counts, word_sizes, word_ids, ...more }) => {
    const { tokens } = new BytePairs(twos(pairs));
    let end = 0;
    const words = Array.from(word_sizes.data, (size, w) => {
      end += size;
      return {
        ids: Array.from(word_ids.data.subarray(end - size, end)),
        count: word_counts.data[w],
      };
    });
    return {
      tokens,
      seen: tokens.map(seenAs),
      available: more.available.data[0],
      merges: twos(pairs).map((pair, i) => ({ pair, count: counts.data[i] })),
      ranking: twos(best).map((pair, i) => ({ pair, count: best_counts.data[i] })),
      words,
      size: more.corpus_tokens.data[0],
      ids: Array.from(more.ids.data),
      pieces: more.pieces.data,
    };
  },
);

const SIGN = { " ": "␣", "\n": "↵", "\t": "⇥" };

/** A character on paper: spaces have a sign, and others that are not seen their number. */
const charName = (char) =>
  SIGN[char] ??
  (/[\p{L}\p{N}\p{P}\p{S}]/u.test(char)
    ? char
    : /\p{M}/u.test(char)
      ? `◌${char}`
      : `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);

const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");

/** A token on paper; bytes that are no whole character are hexadecimal. */
function tokenName(bytes) {
  const chars = [];
  for (let at = 0; at < bytes.length;) {
    const lead = bytes[at];
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const char = fromBytes(bytes.slice(at, at + length));
    chars.push(char ?? lead);
    at += char === undefined ? 1 : length;
  }
  const parts = chars.map((char, i) =>
    typeof char === "number" ? hex(char) : i && /\p{M}/u.test(char) ? char : charName(char),
  );
  return parts.join(chars.some((char) => typeof char === "number") ? " " : "");
}

const seen = new Map(); // bytes -> how they are written, and whether they are whole characters
const MOST_SEEN = 4096;

function seenAs(bytes) {
  const key = String(bytes);
  if (!seen.has(key)) {
    if (seen.size >= MOST_SEEN) seen.clear();
    seen.set(key, { name: tokenName(bytes), broken: fromBytes(bytes) === undefined });
  }
  return seen.get(key);
}

/** How a token looks: one that was merged has a colour of its own, and the newest has a frame. */
function chipClass(id, { seen, merges }) {
  const fresh = merges.length && id === 255 + merges.length ? " fresh" : "";
  const kind = id < 256 ? "" : ` merged h${id % 8}`;
  return `token${kind}${seen[id].broken ? " bytes" : ""}${fresh}`;
}

/** Show the token `id` in a chip. */
function fillChip(chip, id, view) {
  setText(chip, view.seen[id].name);
  setAttribute(chip, "class", chipClass(id, view));
}

/** A chip that is a number of the output `name`. */
function fillNumber(chip, id, view, name) {
  fillChip(chip, id, view);
  setAttribute(chip, "data-output", name);
  setAttribute(chip, "data-value", String(id));
}

const timesInWords = (count) =>
  count === 1 ? "once" : count === 2 ? "twice" : `${whole(count)} times`;
const perToken = (bytes, size) => (size ? (bytes / size).toFixed(2) : "–");

// ---------------------------------------------------------------- the corpus

const inShort = (text) => {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > 44 ? `${line.slice(0, 42)}…` : text.replace(/\n/g, " ");
};

function corpora(widget) {
  const texts = widget.spec.facts.corpora;
  const titles = new Map(Object.entries(texts).map(([title, text]) => [text, title]));
  const named = (text) => titles.get(text);
  return offers(widget, "corpus", "or take:", { "a corpus": Object.values(texts) }, undefined, {
    named,
  });
}

const examples = (widget) =>
  offers(widget, "text", "or take:", widget.spec.facts.texts, undefined, { named: inShort });

/** How many pairs have merged: a slider, steps to and fro, and a button that plays them. */
function stepper(widget) {
  let timer = 0;
  const most = () => readBy(widget).available;
  const at = () => Math.min(widget.inputs.merges, most());
  const go = (to, field = /** @type {symbol | string} */ (Symbol("merge"))) =>
    widget.edit(field, (next) => {
      next.merges = within(to, [0, most()]);
    });
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    setText(play, "Play");
  };
  const tick = (field) => {
    if (!play.isConnected || at() >= most()) stop();
    else go(at() + 1, field);
    if (at() >= most()) stop();
  };
  const press = (label, does) => h("button", { "data-input": "merges", click: does }, label);
  const play = press("Play", () => {
    if (timer) {
      stop();
      return;
    }
    const field = Symbol("play");
    setText(play, "Pause");
    timer = setInterval(() => tick(field), 900);
    if (at() >= most()) go(0, field);
    else tick(field);
  });
  play.classList.add("play");
  play.hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const back = press("Back", () => {
    stop();
    go(at() - 1);
  });
  const next = press("Next merge", () => {
    stop();
    go(at() + 1);
  });
  const slider = knob(widget, "merges", "merges", {
    ends: () => [0, Math.max(1, most())],
    note: (value) =>
      value > most()
        ? `this corpus has only ${most()}, and all are done`
        : most() === widget.spec.limits.merges[1]
          ? `of the first ${most()}`
          : `of ${most()}: then each word is one token`,
    slide: (to) => {
      stop();
      go(to, "merges");
    },
  });
  return {
    element: h("div.stepper", slider.element, h("div", back, next, play)),
    reset: stop,
    update(inputs, outputs) {
      slider.update(inputs, outputs);
      back.disabled = at() === 0;
      next.disabled = play.disabled = at() >= most() && !timer;
      play.disabled = most() === 0;
    },
  };
}

const plus = () => h("span.sign", "+");
const arrow = () => h("span.sign", "→");
const chip = () => h("span");

/** The pair that merged last, and the commonest pairs now, of which the first merges next. */
function ranking(widget) {
  const last = h("p.note.last");
  const rows = h("ol.ranking", { "aria-label": "the most frequent pairs" });
  const note = h("p.note.why", { role: "status" });
  const heading = h("span.label", "The most frequent pairs now; the first merges next");
  const make = () =>
    h(
      "li",
      h("span.pair", chip(), plus(), chip(), arrow(), chip()),
      h("span.bar", { "aria-hidden": "true" }, h("i")),
      h("b", { "data-output": "best_counts" }),
    );
  return {
    element: h("section.column", { "data-output": "" }, last, heading, rows, note),
    shows: "outputs",
    update() {
      const view = readBy(widget);
      const { merges, ranking: best, words } = view;
      if (merges.length) {
        const [[left, right], { count }] = [merges.at(-1).pair, merges.at(-1)];
        const chips = [left, right, 255 + merges.length].map((id) => {
          const one = chip();
          fillChip(one, id, view);
          return one;
        });
        last.replaceChildren(
          `Merge ${merges.length}: `,
          chips[0],
          plus(),
          chips[1],
          arrow(),
          chips[2],
          ` occurred ${timesInWords(count)}; its id is ${255 + merges.length}.`,
        );
      } else {
        setText(last, "Before the first merge, each byte is a token, with the byte as its id.");
      }
      const top = best[0]?.count;
      heading.hidden = rows.hidden = !best.length;
      fillList(rows, best, make, (li, { pair, count }) => {
        const [left, , right, , both] = li.firstChild.children;
        fillNumber(left, pair[0], view, "best");
        fillNumber(right, pair[1], view, "best");
        setText(both, seenAs(pair.flatMap((id) => view.tokens[id])).name);
        setAttribute(both, "class", "token made");
        const [, bar, number] = li.children;
        setLength(bar.firstChild, count / top);
        setText(number, `${whole(count)}×`);
        setAttribute(number, "data-value", String(count));
      });
      setText(note, why(best, words));
    },
  };
}

/** Why the first of the pairs is the one to merge. */
function why(best, words) {
  if (!words.length) return "The corpus is empty: type something that pairs can be counted in.";
  if (!best.length) return "Each word of the corpus is one token now: no pair is left to merge.";
  const [{ pair, count }, rival] = best;
  if (count === 1) return "No pair occurs twice any more, so the next merge saves only one token.";
  if (!rival) return "It is the only pair that is left.";
  if (rival.count < count)
    return `It occurs ${timesInWords(count)}, more often than any other pair, so it merges next.`;
  const ids = (two) => `(${two.join(", ")})`;
  return (
    `Several pairs occur ${timesInWords(count)}, so the one with the smallest ids is merged ` +
    `first: ${ids(pair)} before ${ids(rival.pair)}.`
  );
}

const [MOST_WORDS, MOST_CHIPS] = [24, 100]; // that are shown before the reader asks for more

/**
 * A box that shows only the first items of a long list, and a button that shows all of them:
 * `shown(count)` is how many of `count` items are shown.
 */
function firstOf(most, content, label, again) {
  let all = false;
  const more = h("button.more-of", {
    click: () => {
      all = true;
      again();
      box.focus();
    },
  });
  const box = h("div.box", { tabindex: "0", role: "group", "aria-label": label }, content, more);
  return {
    box,
    fold() {
      all = false;
    },
    shown(count) {
      const few = all ? count : Math.min(count, most);
      more.hidden = few === count;
      if (few < count) setText(more, `Show ${whole(count - few)} more`);
      return few;
    },
  };
}

/** The corpus's different words, cut, and how often each of them comes. */
function words(widget) {
  const bytes = h("span");
  const size = h("b", { "data-output": "corpus_tokens" });
  const mean = h("span");
  const list = h("ol.words-cut", { "data-output": "word_ids" });
  const { box, fold, shown } = firstOf(MOST_WORDS, list, "the corpus, cut into tokens", () =>
    update(),
  );
  const update = () => {
    const view = readBy(widget);
    const total = view.words.reduce(
      (sum, { ids, count }) => sum + count * ids.reduce((n, id) => n + view.tokens[id].length, 0),
      0,
    );
    setText(bytes, `${whole(total)} bytes in `);
    setText(size, `${whole(view.size)} tokens`);
    setAttribute(size, "data-value", String(view.size));
    setText(mean, `: ${perToken(total, view.size)} bytes per token`);
    list.values = view.words.flatMap(({ ids }) => ids);
    const make = () => h("li", h("span.joined"), h("small"));
    const some = view.words.slice(0, shown(view.words.length));
    fillList(list, some, make, (li, { ids, count }) => {
      const [joined, often] = li.children;
      fillList(joined, ids, chip, (one, id) => fillChip(one, id, view));
      setText(often, count > 1 ? `×${count}` : "");
    });
  };
  return {
    element: h(
      "section.column",
      { "data-output": "" },
      h("span.label", "The corpus, each different word once"),
      h("p.note", bytes, size, mean),
      box,
    ),
    shows: "outputs",
    reset: fold,
    update,
  };
}

// ---------------------------------------------------------------- the text

/** Of each token the characters of which it holds a part, but not all. */
function brokenBy({ ids, tokens }) {
  const at = ids.flatMap((id, i) => tokens[id].map(() => i)); // the token of each byte
  const broken = ids.map(() => []);
  let end = 0;
  for (const char of fromBytes(ids.flatMap((id) => tokens[id])) ?? "") {
    const start = end;
    end += toBytes(char).length;
    const [first, last] = [at[start], at[end - 1]];
    if (first !== last) for (let i = first; i <= last; i += 1) broken[i].push({ char, start });
  }
  return broken;
}

/** Put as many of the entries' elements in place as differ from those that are there. */
function refill(box, keys, make) {
  const old = box.keys ?? [];
  let [first, last] = [0, 0];
  const shorter = Math.min(old.length, keys.length);
  while (first < shorter && old[first] === keys[first]) first += 1;
  while (last < shorter - first && old.at(-1 - last) === keys.at(-1 - last)) last += 1;
  for (let i = old.length - last - 1; i >= first; i -= 1) box.children[i].remove();
  const fresh = keys.slice(first, keys.length - last).map((_, i) => make(first + i));
  const before = box.children[first] ?? null;
  const added = document.createDocumentFragment();
  added.append(...fresh);
  box.insertBefore(added, before);
  box.keys = keys;
}

/** The text's tokens as chips, each with its id. */
function chips(widget) {
  const list = h("ol.chips", { "data-output": "ids" });
  const { box, fold, shown } = firstOf(MOST_CHIPS, list, "the text's tokens and their ids", () =>
    update(),
  );
  const amounts = ["characters", "bytes", "tokens", "bytes per token"].map((name) => {
    const number = h("b");
    return { number, element: h("span", number, ` ${name}`) };
  });
  const note = h("p.note.remark", { role: "status" });
  const blank = h("li", h("b"), h("span"));
  const update = () => {
    const view = readBy(widget);
    const { ids, pieces, tokens, seen: names } = view;
    const broken = brokenBy(view);
    list.values = ids;
    const some = ids.slice(0, shown(ids.length));
    const classes = some.map((id, i) => {
      const begins = i && pieces[i] !== pieces[i - 1] ? " begins" : "";
      const goesOn = broken[i - 1]?.at(-1)?.start === (broken[i][0]?.start ?? -1) ? " goes-on" : "";
      return `${chipClass(id, view)}${begins}${goesOn}`;
    });
    const parts = broken.map((chars) => chars.map(({ char }) => charName(char)).join(" and "));
    const keys = some.map((id, i) => `${id} ${classes[i]} ${parts[i]} ${names[id].name}`);
    refill(list, keys, (i) => {
      const li = blank.cloneNode(true);
      li.className = classes[i];
      if (parts[i]) li.title = `a part of ${parts[i]}`;
      li.firstChild.append(names[ids[i]].name);
      li.lastChild.append(String(ids[i]));
      return li;
    });
    const bytes = ids.flatMap((id) => tokens[id]);
    const characters = [...(fromBytes(bytes) ?? "")].length;
    const counts = [characters, bytes.length, ids.length].map(whole);
    [...counts, perToken(bytes.length, ids.length)].forEach((n, i) =>
      setText(amounts[i].number, n),
    );
    setText(note, remark(view, broken));
  };
  return {
    element: h(
      "section.column",
      h("span.label", "Its tokens, each above its id: a model reads the ids alone"),
      box,
      h("p.amounts", { "data-output": "" }, ...amounts.map(({ element }) => element)),
      h("div", { "data-output": "" }, note),
    ),
    shows: "outputs",
    reset: fold,
    update,
  };
}

/** A remark on something noticeable in the text, if there is any. */
function remark({ ids, pieces, ranking: [next], seen: names }, broken) {
  if (!ids.length) return "The text is empty: type something to cut.";
  const cut = broken.find((chars) => chars.length)?.[0];
  if (cut) {
    const over = broken.filter((chars) => chars.some(({ start }) => start === cut.start)).length;
    return (
      `“${charName(cut.char)}” has ${toBytes(cut.char).length} bytes, which lie in ${over} ` +
      "tokens: bytes that are no whole character are shown as hexadecimal numbers."
    );
  }
  const count = ids.filter(
    (id, i) =>
      i && pieces[i] === pieces[i - 1] && ids[i - 1] === next?.pair[0] && id === next?.pair[1],
  ).length;
  if (!count) return next ? "The next merge changes nothing in this text." : "";
  const [left, right] = next.pair.map((id) => names[id].name);
  return `The next merge, ${left} + ${right}, occurs ${timesInWords(count)} in this text.`;
}

// ---------------------------------------------------------------- the merges so far

function merged(widget) {
  const body = h("tbody");
  const box = h(
    "div.box.merges",
    {
      ...{ tabindex: "0", role: "group", "aria-label": "all merges so far" },
      scroll: () => box.classList.toggle("before", box.scrollTop > 4),
    },
    h("table", columnHeads("id", "pair", "token", "count"), body),
  );
  const none = h("p.note", "None yet: press “Next merge”.");
  const make = () =>
    h(
      "tr",
      h("th", { scope: "row" }),
      h("td", chip(), plus(), chip()),
      h("td", chip()),
      h("td", { "data-output": "counts" }),
    );
  let shown = 0;
  return {
    element: h(
      "section.column",
      { "data-output": "" },
      h("span.label", "The merges so far, in the order in which they are applied"),
      none,
      box,
    ),
    shows: "outputs",
    update() {
      const view = readBy(widget);
      none.hidden = view.merges.length > 0;
      box.hidden = !view.merges.length;
      fillList(body, view.merges, make, (tr, { pair, count }, i) => {
        const [id, two, one, number] = tr.cells;
        setText(id, String(256 + i));
        fillNumber(two.children[0], pair[0], view, "pairs");
        fillNumber(two.children[2], pair[1], view, "pairs");
        fillChip(one.firstChild, 256 + i, view);
        setText(number, `${whole(count)}×`);
        setAttribute(number, "data-value", String(count));
      });
      if (shown === view.merges.length) return;
      shown = view.merges.length;
      requestAnimationFrame(() => {
        box.scrollTop = box.scrollHeight; // the newest is in view
      });
    },
  };
}

freeText.style += `
.sides { --left: 1fr; --right: 1fr; }
textarea.line { min-height: 3.625rem !important; max-height: 5.25rem; }
`;
stepper.style = `
.stepper { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: center; }
.stepper .knob { flex: 1 1 15rem; --label: 4.4em; --number: 3.25rem; }
.stepper > div:last-child { display: flex; gap: 6px; }
.play { min-width: 4.125rem; }
`;
ranking.style = `
.token { display: inline-block; padding: 0 4px; border: 1px solid var(--line); border-radius: 4px;
  font: var(--size-note)/1.45 var(--mono); overflow-wrap: anywhere; max-width: 100%;
  background: var(--ground); }
.token.merged { border-color: color-mix(in oklab, var(--ground), var(--tone) 55%);
  background: color-mix(in oklab, var(--ground), var(--tone) 18%); }
.token.bytes { border-style: dashed; }
.token.fresh { outline: 2px solid var(--accent); outline-offset: 0; }
.token.made { border-style: dotted; }
.sign { color: var(--soft); margin: 0 4px; font-size: var(--size-note); }
.last { max-width: none; line-height: 1.9; }
.last .token:last-child { margin-right: 4px; }
.ranking { list-style: none; margin: 0; padding: 0; display: grid; gap: 3px; min-height: 8.125rem;
  align-content: start; }
.ranking li { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(2.5rem, 1fr) 2.5rem;
  gap: 10px; align-items: center; font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.ranking li b { text-align: right; font-weight: 400; }
.ranking li:first-child :is(b, .token) { font-weight: 700; }
.ranking .bar { height: .75rem; }
.ranking .bar i { display: block; height: 100%; min-width: 1px; border-radius: 2px;
  background: color-mix(in oklab, var(--ground), var(--accent) 30%); }
.ranking li:first-child .bar i { background: var(--accent); }
.why { max-width: none; min-height: 3.2em; line-height: 1.5; }
@media (max-width: 37.5rem) {
  .ranking li { grid-template-columns: minmax(0, 3fr) minmax(1.875rem, 1fr) 2.25rem; }
}
`;
words.style = `
.box { overflow-y: auto; contain: content; border: 1px solid var(--line); border-radius: 6px;
  margin: 0; }
.box:has(.words-cut) { max-height: 7.375rem; }
.box:has(.chips) { min-height: 3.75rem; max-height: 11.75rem; }
.more-of { margin: 0 9px 8px; }
.words-cut { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 12px; padding: 7px 9px;
  margin: 0; }
.words-cut li { display: flex; gap: 4px; align-items: baseline; min-width: 0; max-width: 100%; }
.words-cut .joined { display: flex; flex-wrap: wrap; gap: 1px; min-width: 0; }
.words-cut small { color: var(--soft); font-size: var(--size-small);
  font-variant-numeric: tabular-nums; }
`;
chips.style = `
.chips { list-style: none; display: flex; flex-wrap: wrap; gap: 5px 2px; padding: 8px 9px;
  margin: 0; }
.chips li { text-align: center; padding: 1px 5px; min-width: 1.625rem; }
.chips li :is(b, span) { display: block; }
.chips li b { font-weight: 550; font-size: var(--size-text); line-height: 1.3; }
.chips li span { color: var(--soft); font: var(--size-small)/1.2 var(--mono); }
.chips .begins { margin-left: 8px; }
.chips .bytes b { font-weight: 400; font-size: var(--size-note); line-height: 1.5; }
.chips .goes-on { margin-left: -3px; border-left-color: transparent; border-radius: 0 4px 4px 0; }
.amounts { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 2px 0 0; color: var(--soft);
  font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.amounts b { color: var(--text); font-weight: 650; }
.remark { max-width: none; min-height: 3em; line-height: 1.5; }
.remark:empty { min-height: 0; }
`;
merged.style = `
.merges { max-height: 11.25rem; }
section:has(.remark:empty) + section .merges { max-height: 14.25rem; }
.merges.before thead th::after { content: ""; position: absolute; inset: 100% 0 auto;
  height: 1.5rem; background: linear-gradient(var(--ground), transparent); pointer-events: none; }
.merges table { width: 100%; table-layout: fixed; }
.merges th:first-child { width: 3.5rem; } .merges :is(th, td):last-child { width: 4rem; }
.merges thead th { position: sticky; top: 0; background: var(--ground); text-align: left;
  padding: 3px 9px; z-index: 1; overflow: visible; }
.merges :is(td, tbody th) { padding: 2px 9px; font-size: var(--size-note); text-align: left; }
.merges :is(thead th, td):last-child { text-align: right; }
`;

export default live(
  "Byte pairs, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ui.column(ui.use(freeText, "corpus", "Corpus"), ui.use(corpora)),
        ui.use(stepper),
        ui.use(ranking),
        ui.use(words),
      ),
      ui.boxed(
        "side",
        ui.column(ui.use(freeText, "text", "Text"), ui.use(examples)),
        ui.use(chips),
        ui.use(merged),
      ),
    ),
  ],
  { wide: true },
);
