import { idsOf, knows, tokenise, unspaced, wordsOf } from "./inputs.js";
import { h, live, mark, scroller, short, tint, within, write } from "./parts.js";
import { beam, greedy, topK } from "./search.js";
import { fillList, heldOut, sentence, translation } from "./sentences.js";
import { BOS, EOS } from "./translator.js";
import { nothingWritten, writer } from "./writer.js";

/** What torch does in a kernel, in compute() of transformer.py. */
export async function program(run, { source, start, width, alpha }, spec) {
  const { keys, values, encoder } = await run("transformer-read", { source });
  const english = { keys, values };
  const step = writer(run, english);
  let [state, fed] = [nothingWritten(spec), BOS];
  for (const token of start) {
    ({ state } = await step(state, [fed]));
    fed = token;
  }
  const room = spec.limits.T[1] - start.length;
  const { found, single } = width > 1
    ? await beams(run, step, state, fed, room, width, alpha)
    : await alone(step, state, fed, room, alpha);
  const said = single.map(({ token }) => token);
  const best = found[0].tokens;
  const ends = best.indexOf(EOS) + 1 || best.length;
  const tokens = [...start, ...best.slice(0, ends)];
  return {
    english: source,
    tokens,
    encoder,
    ...await run("transformer-look", { tokens, ...english }),
    beams: found.map((one) => [...start, ...one.tokens]),
    log_probs: found.map(({ logProb }) => logProb),
    scores: found.map(({ score }) => score),
    greedy: [...start, ...said],
    greedy_log_prob: single.at(-1).soFar,
  };
}

/** Greedy search, told as a beam of one. */
async function alone(step, state, fed, room, alpha) {
  const single = await greedy(step, state, fed, EOS, room);
  const { soFar } = single.at(-1);
  const score = soFar / single.length ** alpha;
  return { single, found: [{ tokens: single.map(({ token }) => token), logProb: soFar, score }] };
}

/** Beam search: the sentences that it ends with, each followed back to the start. */
async function beams(run, step, state, fed, room, width, alpha) {
  const consider = (feeds) => run("decoding-consider", feeds);
  const { steps, single } = await beam(step, consider, state, fed, EOS, room, width, alpha);
  const last = steps.at(-1);
  const found = Array.from({ length: width }, (_, w) => {
    let at = w;
    const tokens = [];
    for (const { parent, token } of [...steps].reverse()) {
      tokens.unshift(Number(token.data[at]));
      at = Number(parent.data[at]);
    }
    return { tokens, logProb: last.log_prob.data[w], score: last.score.data[w] };
  });
  return { single, found };
}

// ---------------------------------------------------------------- French, for a reader

const ELIDED = /^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu|quoiqu)'$/;
const [THIN, HARD] = ["\u202f", "\u00a0"]; // spaces at which no line ends

/** The space before a token, behind the one before it. */
function gap(before, token) {
  if (before === "«") return HARD;
  if (ELIDED.test(before) || before === "(" || /^(?:-.+|[.,…)])$/.test(token)) return "";
  return /^[!?;%]$/.test(token) ? THIN : /^[:»]$/.test(token) ? HARD : " ";
}

/** Tokens as French is written: "l'ami" for "l'" and "ami", "viens-tu ?" with its space. */
export function joined(tokens) {
  let [text, quoted] = ["", false];
  tokens.forEach((token, i) => {
    const mark = token === '"';
    const inside = quoted && (tokens[i - 1] === '"' || mark);
    if (mark) quoted = !quoted;
    text += (i === 0 || inside ? "" : gap(tokens[i - 1], token)) + token;
  });
  return text;
}

/** The same as whole sentences, which begin with a capital. */
export const printed = (tokens) => joined(tokens).replace(/(^|[.?!…]\s+)(["«(]?\s*)(\p{Ll})/gu,
  (_, end, sign, letter) => end + sign + letter.toUpperCase());

const TIGHT = /(?<=[\p{L}\p{N}]') (?=[\p{L}\p{N}])| (?=['-][\p{L}\p{N}]|n't)| (?=[.,;:!?%)\]…»”])|(?<=[([«“]) /gu;

/** Tokens as another language writes them: joined() of translation.py, without French's own spaces. */
const joinedPlainly = (tokens) => unspaced(tokens.join(" ").replace(TIGHT, ""));

/** The two languages: the course's, or those of a reader's own pairs. */
const languages = ({ spec }) => spec.facts.languages ?? ["English", "French"];
const isOwn = ({ spec }) => Boolean(spec.facts.languages);
const written = (widget, tokens) => (isOwn(widget) ? joinedPlainly(tokens) : printed(tokens));

const said = (word) => `“${word}”`;
const named = (id, names) => (id === EOS ? "the end" : names[id]);

// ---------------------------------------------------------------- what was translated

const KINDS = {
  cross: { ends: [1, 0], from: "french", to: "english", about: "cross-attention of the decoder" },
  decoder: { ends: [1, 1], from: "french", to: "before", about: "self-attention of the decoder" },
  encoder: { ends: [0, 0], from: "english", to: "english", about: "self-attention of the encoder" },
};

const translated = new WeakMap(); // outputs -> what they tell, for all parts that show it

/**
 * What the outputs say, or null if they are not the answer to these inputs: the words on either side,
 * those that the decoder had `before` it at each step, and what is chosen to be looked at.
 */
function answer(widget, inputs, outputs) {
  const { spec } = widget;
  const ids = idsOf(spec, inputs).source;
  const { english, tokens } = outputs;
  if (ids.length !== english.data.length || ids.some((id, s) => id !== english.data[s])) return null;
  if (inputs.start.some((id, t) => id !== tokens.data[t])) return null;
  if (!translated.has(outputs)) {
    const names = spec.vocabularies.target;
    const all = [...tokens.data];
    const french = all.map((id) => named(id, names));
    const before = ["the start", ...french.slice(0, -1)];
    translated.set(outputs, { english: wordsOf(spec, "source", inputs.source), french, before, ids: all,
      ended: all.at(-1) === EOS, text: written(widget, all.filter((id) => id !== EOS).map((id) => names[id])) });
  }
  const told = translated.get(outputs);
  const kind = widget.kind ?? "cross";
  const at = { french: within(widget.at ?? longest(told), [0, told.ids.length - 1]), english: widget.query };
  widget.heads ??= Object.fromEntries(Object.keys(KINDS).map((name) => [name, sharpest(outputs[name])]));
  return { ...told, kind, at, head: widget.heads[kind], from: told[KINDS[kind].from], to: told[KINDS[kind].to],
    row: at[KINDS[kind].from] };
}

/** The word to look at first: a long one is one with a meaning of its own. */
const longest = ({ french, ended }) => french.slice(0, ended ? -1 : undefined)
  .reduce((best, word, t) => (word.length > french[best].length ? t : best), 0);

/** The head to look at first, as { layer, head }: the one whose looks are most of all at one word. */
function sharpest({ shape: [L, H, T, S], data }) {
  const sharpness = Array.from({ length: L * H }, (_, i) => {
    let sum = 0;
    for (let t = i * T; t < (i + 1) * T; t += 1) { // but for the last word: on a full stop many heads rest
      sum += data.subarray(t * S, (t + 1) * S - 1).reduce((most, share) => Math.max(most, share), 0);
    }
    return sum;
  });
  const [best] = topK(sharpness, 1);
  return { layer: Math.floor(best / H), head: best % H };
}

/** The weights of one head: rows are those who look. */
function weightsOf({ shape: [, H, T, S], data }, { layer, head }) {
  const first = (layer * H + head) * T * S;
  return Array.from({ length: T }, (_, t) => data.subarray(first + t * S, first + (t + 1) * S));
}

/** Look at this word, or this head, or this kind of attention. */
function choose(widget, what) {
  const { at, kind, head } = what;
  if (kind !== undefined) widget.kind = kind;
  if (head !== undefined) widget.heads[widget.kind ?? "cross"] = head;
  if (at?.french !== undefined) widget.at = at.french;
  if (at?.english !== undefined) widget.query = at.english;
  widget.repaint();
}

// ---------------------------------------------------------------- the French

/** The French as it is printed, and what is to be said of it. */
function french(widget) {
  const line = h("p", { class: "french", lang: isOwn(widget) ? "" : "fr" });
  const [person, doubt, begun] = ["person", "doubt", "begun"].map((kind) => h("p", { class: `note ${kind}` }));
  const free = h("button", { type: "button", hidden: true, click: () => {
    widget.leave(free);
    widget.edit(Symbol("free"), (next) => { next.start = []; });
  } }, "Let it choose again");
  return {
    element: h("div", { class: "column result written" },
      h("span", { class: "label" }, languages(widget)[1]), line, person, doubt, h("div", { class: "begun-row" }, begun, free)),
    shows: "outputs",
    update(inputs, outputs) {
      const told = answer(widget, inputs, outputs);
      if (!told) return;
      write(line, told.ended ? told.text : `${told.text} …`);
      const theirs = translation(widget, inputs.source);
      const same = theirs && written(widget, tokenise(theirs)) === told.text;
      write(person, same ? "Word for word what a person wrote." : theirs ? `A person wrote: ${theirs}` : "");
      write(doubt, doubts(widget, told));
      const words = told.french.slice(0, inputs.start.length);
      write(begun, words.length ? `You made it begin with ${said(written(widget, words))}; the rest is its own.` : "");
      free.hidden = !words.length;
    },
  };
}

/** Why this translation may be worth little. */
function doubts({ spec }, { english, ids, ended }) {
  const strange = !english.some((word) => /[\p{L}\p{N}]/u.test(word) && knows(spec.sentences.source, word));
  return [
    ...(strange ? ["It knows no word of this sentence: what it writes is a guess."] : []),
    ...(ended ? [] : [`It did not end: after ${ids.length} words the page stops it.`]),
  ].join(" ");
}
french.style = `
.written { gap: 6px; }
.french { margin: 0; font-size: clamp(20px, 3.4vw, 26px); line-height: 1.3; font-weight: 600; text-wrap: balance; overflow-wrap: anywhere; }
.written .note:empty { display: none; }
.person { color: var(--soft); }
.begun-row { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; }
.begun-row:not(:has(button:not([hidden]))) { display: none; }
`;

/** The sentences that beam search ends with, and how they compare with that of greedy search. */
function rivals(widget) {
  const body = h("tbody");
  const verdict = h("p", { class: "note" });
  const line = () => h("tr", {}, h("th", { scope: "row", lang: isOwn(widget) ? "" : "fr" }), h("td"), h("td"));
  const element = h("details", { class: "rivals result", open: true },
    h("summary", {}, "What beam search ends with"),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "the sentences of the beam" }, h("table", {},
      h("thead", {}, h("tr", {}, ...["sentence, best first", "log p", "score"].map((name) => h("th", { scope: "col" }, name)))),
      body)), verdict);
  return {
    element,
    shows: "outputs",
    update(inputs, outputs) {
      if (!answer(widget, inputs, outputs)) return;
      const { beams: { shape: [W, N], data }, log_probs, scores, greedy: single, greedy_log_prob } = outputs;
      const names = widget.spec.vocabularies.target;
      const text = (ids) => written(widget, [...ids].filter((id) => id !== EOS).map((id) => names[id]));
      element.hidden = W === 1;
      const rows = Array.from({ length: W }, (_, w) => [text(data.subarray(w * N, (w + 1) * N)),
        short(log_probs.data[w]), short(scores.data[w])]);
      fillList(body, rows, line, (tr, cells) => cells.forEach((cell, i) => write(tr.children[i], cell)));
      const greedily = text(single.data);
      const than = [log_probs, greedy_log_prob].map(({ data: [first] }) => short(first));
      write(verdict, greedily === rows[0][0] ? "Greedy search says the same as the best of them."
        : `Greedy search says: ${greedily} Its log p is ${than[1]}, that of the best ${than[0]}.`);
    },
  };
}
rivals.style = `
.rivals summary { cursor: pointer; font-size: 13.5px; font-weight: 600; min-height: 26px; width: max-content; max-width: 100%; }
.rivals table { font-size: 14px; min-width: min(100%, 440px); }
.rivals :is(td, th) { padding: 3px 0 3px 12px; text-align: right; vertical-align: top; }
.rivals :is(td, th):first-child { padding-left: 0; text-align: left; }
.rivals tbody th { max-width: none; white-space: normal; min-width: 180px; color: var(--text); font-size: 14px; }
.rivals tbody tr { border-top: 1px solid var(--line); }
.rivals .note { margin-top: 6px; }
`;

// ---------------------------------------------------------------- word by word

/** The kind of attention in which the words of that side look: the one that is shown, if it is one. */
const kindOf = ({ kind = "cross" }, side) =>
  (KINDS[kind].from === side ? kind : Object.keys(KINDS).find((name) => KINDS[name].from === side));

/** Words to choose one of: by a click, or with the arrow keys. */
function line(widget, side, lang, label) {
  const list = h("div", { class: "chips", role: "radiogroup", "aria-label": label });
  const chip = (i) => h("div", {}, h("label", {},
    h("input", { type: "radio", name: side, change: () => choose(widget, { kind: kindOf(widget, side), at: { [side]: i } }) }),
    h("b", { lang }), h("span")));
  /** `shares` shade the words, `notes` stand below them; `kind(i)` are the classes of a word. */
  const fill = (words, chosen, shares, notes, kind) => fillList(list, words, chip, (one, word, i) => {
    const [radio, text, note] = one.firstChild.children;
    radio.checked = i === chosen;
    mark(radio, "aria-label", notes[i] ? `${word}, ${notes[i]}` : word);
    write(text, word);
    write(note, notes[i] ?? "");
    mark(one, "class", `${i === chosen ? "chosen " : ""}${kind(i)}`);
    tint(one, shares[i] ?? 0);
  });
  return { element: list, fill };
}

/** Both sentences, word by word: the chosen word, what it looks at, and the steps there and back. */
function stage(widget) {
  const [from, to] = languages(widget);
  const codes = isOwn(widget) ? ["", ""] : ["en", "fr"];
  const [english, french] = [line(widget, "english", codes[0], `${from} words`), line(widget, "french", codes[1], `${to} words`)];
  const caption = h("p", { class: "note caption", role: "status" });
  const count = h("span", { class: "count" });
  const step = (text, label, to) => h("button", { type: "button", "aria-label": label, click: () =>
    choose(widget, { kind: kindOf(widget, "french"), at: { french: to(now.at.french, now.ids.length - 1) } }) }, text);
  const steps = [
    step("|◀", "to the first word", () => 0),
    step("◀ Back", "one word back", (t) => t - 1),
    step("Next ▶", "write the next word", (t) => t + 1),
    step("▶|", "to the last word", (_, last) => last),
  ];
  let now;
  return {
    element: h("div", { class: "column result stage" },
      h("span", { class: "label", "aria-hidden": "true" }, from), english.element,
      h("div", { class: "steps" }, h("span", { class: "label", "aria-hidden": "true" }, `${to}, word by word`),
        h("span", { class: "buttons", role: "group", "aria-label": "word by word" }, ...steps), count),
      french.element, caption),
    reset() {
      [widget.at, widget.kind, widget.heads] = [];
    },
    shows: "outputs",
    update(inputs, outputs) {
      const told = answer(widget, inputs, outputs);
      if (!told) return;
      if (now && now.english.join(" ") !== told.english.join(" ")) widget.at = undefined; // other words
      now = answer(widget, inputs, outputs);
      const { at, kind, row } = now;
      const shares = weightsOf(outputs[kind], now.head)[row];
      const looked = (side) => (KINDS[kind].to === side ? [...shares] : []);
      const numbers = (list) => list.map((share) => (share < LEAST ? "" : short(share)));
      const onEnglish = looked("english");
      const reads = kind === "encoder";
      english.fill(now.english, reads ? at.english : -1, onEnglish, numbers(onEnglish), () => "");
      const t = at.french;
      const back = looked("before").slice(1, t + 1); // what was fed at a step is the word of the step before
      french.fill(now.french, reads ? -1 : t, back, numbers(back), (i) => [i > t && !reads ? "later" : "",
        i < inputs.start.length ? "yours" : "", now.ids[i] === EOS ? "end" : ""].join(" "));
      steps.forEach((button, i) => { button.disabled = i < 2 ? t === 0 : t === now.ids.length - 1; });
      write(count, `${t + 1} of ${now.ids.length}`);
      write(caption, captionOf(now, [...shares]));
    },
  };
}

const LEAST = 0.005; // what is less reads 0.00, and is left out

function captionOf({ kind, at, english, french, to, head: { layer, head } }, shares) {
  const [best] = topK(shares, 1);
  const whose = kind === "encoder" ? `Reading ${said(english[at.english])}`
    : at.french === french.length - 1 && french[at.french] === "the end" ? "Ending the sentence"
      : `Writing ${said(french[at.french])}`;
  const where = to[best] === "the start" ? to[best] : said(to[best]);
  return `${whose}, head ${head} of layer ${layer} looks most at ${where}, ${short(shares[best])}.`;
}
stage.style = `
.label { font-size: 13.5px; font-weight: 600; }
.stage { gap: 6px; }
.chips { display: flex; flex-wrap: wrap; gap: 6px; }
.chips > div { position: relative; border: 1px solid var(--line); border-radius: 8px; min-width: 34px; text-align: center;
  background: color-mix(in oklab, var(--ground), var(--above) calc(var(--tl-heat, 0) * 65%)); }
.chips > div:hover { border-color: var(--accent); }
.chips .chosen { border-color: var(--accent); box-shadow: 0 0 0 1.5px var(--accent); }
.chips .later { border-style: dashed; background: none; }
.chips .later b { color: var(--soft); font-weight: 450; }
.chips .yours b { text-decoration: underline 2px var(--under); text-underline-offset: 3px; }
.chips .end b { font-style: italic; font-weight: 450; }
.chips label { display: block; padding: 6px 9px 13px; cursor: pointer; }
.chips b { display: block; font-weight: 550; line-height: 1.3; }
.chips span { position: absolute; left: 0; right: 0; bottom: 1px; font-size: 11px; line-height: 13px; font-variant-numeric: tabular-nums; }
.chips input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.chips > div:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 2px; }
.steps { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; margin-top: 8px; }
.steps .buttons { display: flex; gap: 4px; }
.steps .count { font-size: 13px; color: var(--soft); font-variant-numeric: tabular-nums; }
.stage .caption { margin-top: 2px; }
`;

/** What else could have stood in the chosen place; one click, and it does. */
function candidates(widget) {
  const names = widget.spec.vocabularies.target;
  const heading = h("p", { class: "label" });
  const own = h("p", { class: "note soft" });
  const list = h("ol", { class: "nexts", "aria-label": "the five likeliest words here" });
  let now;
  const item = (i) => h("li", {}, h("button", { type: "button", click: () => {
    const start = [...now.ids.slice(0, now.at.french), now.likeliest[i]];
    widget.at = now.at.french;
    widget.edit(Symbol("candidate"), (next) => { next.start = start; });
  } }, h("span", { class: "bar" }), h("span", { class: "name", lang: isOwn(widget) ? "" : "fr" }), h("span", { class: "share" })));
  return {
    element: h("div", { class: "column result choices" }, heading, list, own),
    shows: "outputs",
    update(inputs, outputs) {
      const told = answer(widget, inputs, outputs);
      if (!told) return;
      const t = told.at.french;
      const row = ({ data }) => [...data.subarray(5 * t, 5 * t + 5)];
      const [likeliest, shares] = [row(outputs.likeliest), row(outputs.probabilities)];
      now = { ...told, likeliest };
      const before = `${t > 3 ? "… " : ""}${(isOwn(widget) ? joinedPlainly : joined)(told.french.slice(Math.max(0, t - 3), t))}`;
      write(heading, t ? `After ${said(before)}, what next?` : "How does it begin?");
      fillList(list, likeliest, item, ({ firstChild: button }, id, i) => {
        const [bar, name, share] = button.children;
        write(name, named(id, names));
        write(share, shares[i] < 0.0005 ? "< 0.001" : shares[i].toFixed(3));
        mark(button, "data-value", String(shares[i]));
        mark(bar, "style", `width: ${(100 * shares[i]).toFixed(1)}%`);
        mark(button, "aria-current", String(id === told.ids[t]));
        button.disabled = id === EOS || id === told.ids[t] || t > widget.spec.limits.P[1] - 1;
      });
      const p = outputs.probability.data[t];
      write(own, likeliest.includes(told.ids[t]) ? "Choose another one, and it goes on from there."
        : `${said(told.french[t])} is not among them: its probability is ${p < 0.0005 ? "less than 0.001" : p.toFixed(3)}.`);
    },
  };
}
candidates.style = `
.row > .choices { flex: 1 1 230px; max-width: 420px; gap: 6px; }
@media (max-width: 600px) { .row > .choices { order: -1; max-width: none; } }
.choices .label { margin: 0; }
.nexts { list-style: none; margin: 0; padding: 0; display: grid; gap: 3px; }
.nexts button { position: relative; width: 100%; display: flex; justify-content: space-between; gap: 8px; text-align: left; padding: 2px 9px;
  overflow: hidden; font-variant-numeric: tabular-nums; }
.nexts button:disabled { opacity: 1; }
.nexts button[aria-current=true] { border-color: var(--accent); }
.nexts [aria-current=true] .name { font-weight: 650; }
.nexts span { position: relative; }
.nexts .bar { position: absolute; left: 0; top: 0; bottom: 0; background: color-mix(in oklab, var(--ground), var(--above) 30%); }
.soft { color: var(--soft); font-size: 13px; }
`;

// ---------------------------------------------------------------- where the heads look

const COLOUR = [47, 134, 216]; // --above

/** The weights of one head as pixels: a weight is how much there is of the colour. */
function paint(canvas, rows) {
  const [T, S] = [rows.length, rows[0].length];
  if (canvas.width !== S || canvas.height !== T) [canvas.width, canvas.height] = [S, T];
  const pixels = new ImageData(S, T);
  rows.forEach((row, t) => row.forEach((share, s) =>
    pixels.data.set([...COLOUR, Math.round(255 * share)], 4 * (t * S + s))));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  canvas.values = rows.flatMap((row) => [...row]);
}

/** Which kind of attention; then every head of every layer as a small map, to choose one. */
function atlas(widget) {
  const { L: [L], H: [H] } = widget.spec.limits;
  const tabs = h("div", { class: "tabs", role: "radiogroup", "aria-label": "which attention" },
    ...Object.entries(KINDS).map(([kind, { ends }]) => h("label", {},
      h("input", { type: "radio", name: "kind", value: kind, change: () => choose(widget, { kind }) }),
      h("span", {}, ends.map((end) => languages(widget)[end]).join(" → ")))));
  const about = h("p", { class: "note soft" });
  const cell = (layer, head) => {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const radio = h("input", { type: "radio", name: "head", change: () => choose(widget, { head: { layer, head } }) });
    const row = h("i");
    return { element: h("label", { class: "mini" }, radio, canvas, row), canvas, radio, row, layer, head };
  };
  const cells = Array.from({ length: L * H }, (_, i) => cell(Math.floor(i / H), i % H));
  const grid = h("div", { class: "atlas", role: "radiogroup", "aria-label": "heads", style: `--H: ${H}` },
    h("span"), ...Array.from({ length: H }, (_, i) => h("span", { class: "axis" }, `head ${i}`)),
    ...cells.flatMap(({ element }, i) => (i % H ? [element] : [h("span", { class: "axis layer" }, `layer ${i / H}`), element])));
  let painted;
  return {
    element: h("div", { class: "column result heads" },
      h("span", { class: "label", "aria-hidden": "true" }, "Where every head looks"), tabs, about, grid),
    shows: "outputs",
    update(inputs, outputs) {
      const now = answer(widget, inputs, outputs);
      if (!now) return;
      for (const { firstChild: radio } of tabs.children) radio.checked = radio.value === now.kind;
      write(about, `The ${KINDS[now.kind].about}: ${L * H} heads. A row is a word that looks, a column one that is looked at.`);
      const given = widget.model.get("outputs"); // `outputs` is a copy of it
      const fresh = painted?.given !== given || painted.kind !== now.kind;
      painted = { given, kind: now.kind };
      for (const { element, canvas, radio, row, layer, head } of cells) {
        const rows = weightsOf(outputs[now.kind], { layer, head });
        if (fresh) paint(canvas, rows);
        const chosen = layer === now.head.layer && head === now.head.head;
        const [most] = topK(rows[now.row], 1);
        radio.checked = chosen;
        mark(radio, "aria-label", `layer ${layer}, head ${head}: looks most at ${now.to[most]}, ${short(rows[now.row][most])}`);
        mark(element, "title", `layer ${layer}, head ${head}`);
        element.classList.toggle("chosen", chosen);
        mark(row, "style", `top: ${((100 * now.row) / rows.length).toFixed(2)}%; height: ${(100 / rows.length).toFixed(2)}%`);
      }
    },
  };
}
atlas.style = `
.row > .heads { flex: 1 1 400px; min-width: 0; }
.heads { gap: 6px; }
.tabs { display: flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; width: max-content; max-width: 100%; }
.tabs label { position: relative; flex: 1 1 0; }
.tabs span { display: flex; align-items: center; justify-content: center; height: 100%; padding: 4px 8px; white-space: nowrap; min-height: 28px; font-size: 13.5px; text-align: center; }
.tabs label + label span { border-left: 1px solid var(--line); }
.tabs input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.tabs input:checked + span { background: color-mix(in oklab, var(--ground), var(--accent) 18%); font-weight: 600; }
.tabs input:focus-visible + span { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: 7px; }
.atlas { display: grid; grid-template-columns: max-content repeat(var(--H), minmax(28px, 92px)); gap: 6px; align-items: center; margin-top: 2px; }
.axis { font-size: 12px; color: var(--soft); text-align: center; white-space: nowrap; overflow: hidden; }
.layer { text-align: right; padding-right: 2px; }
.mini { position: relative; display: block; aspect-ratio: 1; border: 1px solid var(--line); border-radius: 4px; overflow: hidden; }
.mini canvas { display: block; width: 100%; height: 100%; image-rendering: pixelated; }
.mini input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; z-index: 1; }
.mini i { position: absolute; left: 0; right: 0; box-shadow: inset 0 0 0 1px color-mix(in oklab, transparent, var(--text) 55%); pointer-events: none; }
.mini:hover { border-color: var(--accent); }
.mini.chosen { border-color: var(--accent); box-shadow: 0 0 0 2px var(--accent); }
.mini:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 3px; }
@media (max-width: 600px) {
  .tabs { width: 100%; }
  .tabs span { padding: 4px 6px; font-size: 13px; white-space: normal; text-wrap: balance; line-height: 1.25; }
  .atlas { gap: 4px; }
}
`;

/** The chosen head large, with words on both axes; a row is chosen by its word. */
function chart(widget) {
  const head = h("tr", {}, h("td"));
  const body = h("tbody");
  const caption = h("caption");
  const table = h("table", { class: "heat weight chart" }, caption, h("thead", {}, head), body);
  let now;
  const select = (i) => {
    if (now.row !== i) choose(widget, { at: { [KINDS[now.kind].from]: i } });
  };
  const tr = (columns) => (i) => h("tr", {},
    h("th", { scope: "row" }, h("button", { type: "button", click: () => select(i), focus: () => select(i) })),
    ...Array.from({ length: columns }, () => h("td", {}, h("span"))));
  let columns = 0;
  return {
    element: h("div", { class: "column result charted" }, scroller({ tabindex: "0", role: "group",
      "aria-label": "the weights of the chosen head; it scrolls sideways" }, table)),
    shows: "outputs",
    update(inputs, outputs) {
      now = answer(widget, inputs, outputs) ?? now;
      if (!answer(widget, inputs, outputs)) return;
      const { kind, head: { layer, head: h_ }, from, to, row } = now;
      const rows = weightsOf(outputs[kind], now.head);
      write(caption, `Layer ${layer}, head ${h_}`);
      if (columns !== to.length) {
        columns = to.length;
        head.replaceChildren(head.firstChild, ...to.map(() => h("th", { scope: "col", class: "long" }, h("span"))));
        body.replaceChildren();
      }
      to.forEach((word, s) => {
        write(head.children[s + 1].firstChild, word);
        tint(head.children[s + 1], rows[row][s]);
      });
      fillList(body, from, tr(columns), (line, word, t) => {
        const [{ firstChild: button }, ...cells] = line.children;
        write(button, word);
        mark(button, "aria-pressed", String(t === row));
        mark(line, "class", t === row ? "query" : "");
        cells.forEach((cell, s) => {
          const value = rows[t][s];
          const never = kind === "decoder" && s > t;
          if (cell.shown === value && cell.never === never) return;
          [cell.shown, cell.never] = [value, never];
          mark(cell, "class", never ? "never" : "");
          write(cell.firstChild, value < LEAST ? "" : short(value));
          mark(cell, "data-value", String(value));
          tint(cell, value);
        });
      });
    },
  };
}
chart.style = `
.charted { width: min-content; min-width: min(240px, 100%); max-width: 100%; }
.charted .scroll { scroll-padding-left: 110px; }
.chart td span { width: 31px; height: 26px; line-height: 26px; font-size: 11.5px; }
.chart tbody th, .chart thead td { position: sticky; left: 0; z-index: 1; background: var(--ground); }
.chart tbody th button { height: 26px; min-height: 0; max-width: 118px; padding: 0 8px 0 0; color: var(--text); font-size: 13px; }
.chart tbody tr.query th button { color: var(--accent); }
.chart thead .long { padding: 4px 0; border-radius: 4px 4px 0 0; color: var(--text); font-size: 13px;
  background: color-mix(in oklab, var(--ground), var(--above) calc(var(--tl-heat, 0) * 65%)); }
.chart thead .long span { max-height: 96px; }
@media (max-width: 600px) {
  .chart td span { width: 26px; font-size: 11px; }
}
`;

/** Other words are not begun as these were. */
const anew = (next) => { next.start = []; };

/** The line to type in, and what else there is to translate: of the course's pairs or of one's own. */
const typed = (widget) => sentence(widget, "source", `${languages(widget)[0]} sentence`, anew);
typed.style = sentence.style;
const offered = (widget) => heldOut(widget, "source", isOwn(widget) ? "" : " from Tatoeba", anew);
offered.style = heldOut.style;

export default live("Translate and look inside, live", (ui) => [
  ui.column(ui.use(typed), ui.use(offered)),
  ui.row(ui.slider("width", "beam width W", 1, 5, 1), ui.slider("alpha", "length penalty α", 0, 1.5, 0.1)),
  ui.use(french),
  ui.use(rivals),
  ui.use(stage),
  ui.row(ui.use(atlas), ui.use(candidates)),
  ui.use(chart),
]);
