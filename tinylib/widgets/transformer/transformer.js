import { idsOf, knows, wordsOf } from "../../live/page/inputs.js";
import { beam, greedy, topK } from "../../live/page/search.js";
import { BOS, EOS } from "../../live/page/translator.js";
import { spelt, tokenise } from "../../live/page/words.js";
import { nothingWritten, writer } from "../../live/page/writer.js";
import { columnHeads, results } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { action, choice } from "../../live/ui/controls.js";
import { h, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import {
  chance,
  explainable,
  logs,
  partsOf,
  perLength,
  rove,
  weighed,
} from "../../live/ui/explain.js";
import { blocksOf, headMaps } from "../../live/ui/heads.js";
import { journey } from "../../live/ui/journey.js";
import { shaded } from "../../live/ui/look.js";
import { LEAST, wordMap } from "../../live/ui/maps.js";
import { format, percentOf, whole, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint } from "../../live/ui/pixels.js";
import { fillList, heldOut, sentence, translation } from "../../live/ui/sentences.js";

/** What torch does in a kernel, in compute() of transformer.py. */
export async function program(run, { source, start, width, alpha }, spec) {
  const { keys, values, ...read } = await run("cached_transformer-read", { source });
  const english = { keys, values };
  const step = writer(run, english);
  let [state, fed] = [nothingWritten(spec), BOS];
  for (const token of start) {
    ({ state } = await step(state, [fed]));
    fed = token;
  }
  const room = spec.limits.T[1] - start.length;
  const { found, single } =
    width > 1
      ? await beams(run, step, state, fed, room, width, alpha)
      : await greedySearch(step, state, fed, room, alpha);
  const greedyTokens = single.map(({ token }) => token);
  const best = found[0].tokens;
  const ends = best.indexOf(EOS) + 1 || best.length;
  const tokens = [...start, ...best.slice(0, ends)];
  return {
    english: source,
    tokens,
    ...read,
    ...(await run("transformer-look", { tokens, ...english })),
    beams: found.map((one) => [...start, ...one.tokens]),
    log_probs: found.map(({ logProb }) => logProb),
    scores: found.map(({ score }) => score),
    greedy: [...start, ...greedyTokens],
    greedy_log_prob: single.at(-1).soFar,
  };
}

/** Greedy search, with its result in the form of a beam of width 1. */
async function greedySearch(step, state, fed, room, alpha) {
  const single = await greedy(step, state, fed, EOS, room);
  const { soFar } = single.at(-1);
  const score = soFar / single.length ** alpha;
  return { single, found: [{ tokens: single.map(({ token }) => token), logProb: soFar, score }] };
}

/** Beam search: the sentences that it ends with, each followed back to the start. */
async function beams(run, step, state, fed, room, width, alpha) {
  const consider = (feeds) => run("beam-consider", feeds);
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

const [THIN, HARD] = ["\u202f", "\u00a0"]; // spaces at which no line ends

/** Tokens as French is written: "l'ami" for "l'" and "ami", "viens-tu ?" with its space. */
export const joined = (tokens) =>
  spelt(tokens)
    .replace(/(?<=.)([!?]+|[;%])(?=[^\p{L}\p{N}]|$)/gu, `${THIN}$1`)
    .replace(/(?<=.) ?(»|:(?= |$))/gu, `${HARD}$1`)
    .replace(/« ?/gu, `«${HARD}`);

/** The same as whole sentences, which begin with a capital. */
export const printed = (tokens) =>
  joined(tokens).replace(
    /(^|[.?!…]\s+)(["«(]?\s*)(\p{Ll})/gu,
    (_, end, sign, letter) => end + sign + letter.toUpperCase(),
  );

/** The two languages: the course's, or those of a reader's own pairs. */
const languages = ({ spec }) => spec.facts.languages ?? ["English", "French"];
const isOwn = ({ spec }) => Boolean(spec.facts.languages);
const written = (widget, tokens) => (isOwn(widget) ? spelt(tokens) : printed(tokens));

const quote = (word) => `“${word}”`;
const named = (id, names) => (id === EOS ? "the end" : names[id]);

// ---------------------------------------------------------------- what was translated

const KINDS = {
  cross: { ends: [1, 0], from: "french", to: "english", about: "cross-attention of the decoder" },
  decoder: { ends: [1, 1], from: "french", to: "before", about: "self-attention of the decoder" },
  encoder: { ends: [0, 0], from: "english", to: "english", about: "self-attention of the encoder" },
};

/** The kind that is shown: a step's, or the reader's. */
const shownKind = ({ shown, kind }) => shown?.kind ?? kind ?? "cross";

const viewOf = new WeakMap(); // outputs -> what they tell, for all parts that show it

/**
 * What the outputs say, or null if they are not the answer to these inputs: the words on either
 * side, those that the decoder had `before` it at each step, and what is chosen to be shown.
 */
function answer(widget, inputs, outputs) {
  const { spec } = widget;
  const ids = idsOf(spec, inputs).source;
  const { english, tokens } = outputs;
  if (ids.length !== english.data.length || ids.some((id, s) => id !== english.data[s]))
    return null;
  if (inputs.start.some((id, t) => id !== tokens.data[t])) return null;
  if (!viewOf.has(outputs)) {
    const names = spec.vocabularies.target;
    const all = [...tokens.data];
    const french = all.map((id) => named(id, names));
    const before = ["the start", ...french.slice(0, -1)];
    viewOf.set(outputs, {
      english: wordsOf(spec, "source", inputs.source),
      french,
      before,
      ids: all,
      ended: all.at(-1) === EOS,
      text: written(
        widget,
        all.filter((id) => id !== EOS).map((id) => names[id]),
      ),
    });
  }
  const view = viewOf.get(outputs);
  const kind = shownKind(widget);
  const at = {
    french: within(widget.at ?? longest(view), [0, view.ids.length - 1]),
    english: widget.query,
  };
  widget.heads ??= Object.fromEntries(
    Object.keys(KINDS).map((name) => [name, sharpest(outputs[name])]),
  );
  return {
    ...view,
    kind,
    at,
    head: widget.shown?.head ?? widget.heads[kind],
    from: view[KINDS[kind].from],
    to: view[KINDS[kind].to],
    row: at[KINDS[kind].from],
  };
}

/** The word to show first: a long one is one with a meaning of its own. */
const longest = ({ french, ended }) =>
  french
    .slice(0, ended ? -1 : undefined)
    .reduce((best, word, t) => (word.length > french[best].length ? t : best), 0);

/**
 * The head to show first, as { layer, head }: the one whose weights lie most of all on one word.
 */
function sharpest({ shape: [L, H, T, S], data }) {
  const counted = Math.max(1, T - 2); // on a full stop, and at the end, many heads rest
  const sharpness = Array.from({ length: L * H }, (_, i) => {
    let sum = 0;
    for (let t = i * T; t < i * T + counted; t += 1) {
      sum += data
        .subarray(t * S, (t + 1) * S - 1) // nor does a weight on the full stop tell anything
        .reduce((most, share) => Math.max(most, share), 0);
    }
    return sum;
  });
  const [best] = topK(sharpness, 1);
  return { layer: Math.floor(best / H), head: best % H };
}

/** The weights of one head, or their scores: rows are the words that attend. */
function weightsOf({ shape: [, H, T, S], data }, { layer, head }) {
  const first = (layer * H + head) * T * S;
  return Array.from({ length: T }, (_, t) => data.subarray(first + t * S, first + (t + 1) * S));
}

/** Show this word, or this head, or this kind of attention. */
function choose(widget, what) {
  const { at, kind, head } = what;
  if (head !== undefined || (kind ?? shownKind(widget)) !== shownKind(widget))
    [widget.kind, widget.shown] = [kind ?? shownKind(widget), undefined];
  if (head !== undefined) widget.heads[widget.kind] = head;
  if (at?.french !== undefined) widget.at = at.french;
  if (at?.english !== undefined) widget.query = at.english;
  widget.repaint();
}

// ---------------------------------------------------------------- the French

/** The French as it is printed, and notes on it. */
function french(widget) {
  const line = h("p.french", { lang: isOwn(widget) ? "" : "fr" });
  const [person, doubt, begun] = ["person", "doubt", "begun"].map((kind) =>
    h("p", { class: `note ${kind}` }),
  );
  const free = action(widget, "start", "Let it choose again", clearStart, { goes: true });
  free.hidden = true;
  return {
    element: results(
      "column written",
      h("span.label", languages(widget)[1]),
      line,
      person,
      doubt,
      h("div.begun-row", begun, free),
    ),
    shows: "outputs",
    update(inputs, outputs) {
      const view = answer(widget, inputs, outputs);
      if (!view) return;
      setText(line, view.ended ? view.text : `${view.text} …`);
      const theirs = translation(widget, inputs.source);
      const same = theirs && written(widget, tokenise(theirs)) === view.text;
      setText(
        person,
        same ? "Word for word what a person wrote." : theirs ? `A person wrote: ${theirs}` : "",
      );
      setText(doubt, doubts(widget, view));
      const words = view.french.slice(0, inputs.start.length);
      setText(
        begun,
        words.length
          ? `You made it begin with ${quote(written(widget, words))}; the rest is its own.`
          : "",
      );
      free.hidden = !words.length;
    },
  };
}

/** Why this translation may be bad. */
function doubts({ spec }, { english, ids, ended }) {
  const strange = !english.some(
    (word) => /[\p{L}\p{N}]/u.test(word) && knows(spec.sentences.source, word),
  );
  return [
    ...(strange ? ["It knows no word of this sentence: what it writes is a guess."] : []),
    ...(ended ? [] : [`It did not end: after ${ids.length} words the page stops it.`]),
  ].join(" ");
}
french.style = `
.written { gap: 6px; }
.french { margin: 0; font-size: var(--size-text); line-height: 1.3; font-weight: 600;
  text-wrap: balance; overflow-wrap: anywhere; }
.written .note:empty { display: none; }
.person { color: var(--soft); }
.begun-row { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; }
.begun-row:not(:has(button:not([hidden]))) { display: none; }
`;

/** The sentences that beam search ends with, and how they compare with that of greedy search. */
function rivals(widget) {
  const body = h("tbody");
  const verdict = h("p.note");
  let now = []; // of each sentence: { text, logProb, score, length, alpha, tokens }
  const line = (w) => {
    const [logProb, score] = [h("td"), h("td")];
    // of the others it is not known which words they had to outdo
    if (w === 0)
      explainable(widget, logProb, () =>
        logs(`ln p of ${quote(now[0].text)}:`, now[0].tokens, [logProb]),
      );
    explainable(widget, score, () => {
      const { text, logProb: log, length, alpha } = now[w];
      const what = `Score of ${quote(text)}, its ln p divided by length to the power α:`;
      return perLength(what, log, length, alpha, [logProb]);
    });
    return h("tr", h("th", { scope: "row", lang: isOwn(widget) ? "" : "fr" }), logProb, score);
  };
  const element = h(
    "details.rivals",
    { "data-output": "", open: true },
    h("summary", "What beam search ends with"),
    h(
      "div.scroll",
      { tabindex: "0", role: "group", "aria-label": "the sentences of the beam" },
      h("table", columnHeads("sentence, best first", "ln p", "score"), body),
    ),
    verdict,
  );
  const reach = rove(body.parentElement);
  return {
    element,
    shows: "outputs",
    update(inputs, outputs) {
      if (!answer(widget, inputs, outputs)) return;
      const { log_probs, scores, greedy: single, greedy_log_prob } = outputs;
      const { data } = outputs.beams;
      const [W, N] = outputs.beams.shape;
      const names = widget.spec.vocabularies.target;
      const text = (ids) =>
        written(
          widget,
          [...ids].filter((id) => id !== EOS).map((id) => names[id]),
        );
      element.hidden = W === 1;
      const begun = inputs.start.length;
      const own = [...outputs.probability.data].slice(begun);
      const tokens = own.map((probability) => ({ probability, logP: Math.log(probability) }));
      now = Array.from({ length: W }, (_, w) => {
        const ids = data.subarray(w * N, (w + 1) * N);
        const free = ids.slice(begun);
        return {
          text: text(ids),
          logProb: log_probs.data[w],
          score: scores.data[w],
          length: free.indexOf(EOS) + 1 || free.length,
          alpha: inputs.alpha,
          tokens,
        };
      });
      fillList(body, now, line, (tr, { text: sentence, logProb, score }) => {
        setText(tr.children[0], sentence);
        [logProb, score].forEach((number, i) => {
          setText(tr.children[i + 1], format(number));
          setAttribute(tr.children[i + 1], "data-value", String(number));
        });
      });
      reach();
      const greedily = text(single.data);
      const than = [log_probs, greedy_log_prob].map(({ data: [first] }) => format(first));
      setText(
        verdict,
        greedily === now[0].text
          ? "Greedy search says the same as the best of them."
          : `Greedy search says: ${greedily} Its ln p is ${than[1]}, that of the best ${than[0]}.`,
      );
    },
  };
}
rivals.style = `
.rivals summary { cursor: pointer; font-size: var(--size-note); font-weight: 600; min-height:
  1.625rem; width: max-content; max-width: 100%; }
.rivals table { font-size: var(--size-note); min-width: min(100%, 27.5rem); }
.rivals :is(td, th) { padding: 3px 0 3px 12px; text-align: right; vertical-align: top; }
.rivals :is(td, th):first-child { padding-left: 0; text-align: left; }
.rivals tbody th { max-width: none; white-space: normal; min-width: 11.25rem; color: var(--text);
  font-size: var(--size-note); }
.rivals tbody tr { border-top: 1px solid var(--line); }
.rivals .note { margin-top: 6px; }
`;

// ---------------------------------------------------------------- word by word

/**
 * The kind of attention in which the words of that side attend: the one shown, if it is one.
 */
const kindOf = (widget, side) =>
  [shownKind(widget), ...Object.keys(KINDS)].find((name) => KINDS[name].from === side);

/** Words to choose one of: by a click, or with the arrow keys. */
function line(widget, side, lang, label) {
  const list = h("div.chips", { role: "radiogroup", "aria-label": label });
  const chip = (i) =>
    h(
      "div",
      h(
        "label",
        h("input", {
          type: "radio",
          name: side,
          change: () => choose(widget, { kind: kindOf(widget, side), at: { [side]: i } }),
        }),
        h("b", { lang }),
        h("span"),
      ),
    );
  /** `shares` shade the words, `notes` stand below them; `kind(i)` are the classes of a word. */
  const fill = (words, chosen, shares, notes, kind) =>
    fillList(list, words, chip, (one, word, i) => {
      const [radio, text, note] = one.firstChild.children;
      radio.checked = i === chosen;
      setAttribute(radio, "aria-label", notes[i] ? `${word}, ${notes[i]}` : word);
      setText(text, word);
      setText(note, notes[i] ?? "");
      setAttribute(one, "class", `${i === chosen ? "chosen " : ""}${kind(i)}`);
      setHeat(one, shares[i] ?? 0);
    });
  return { element: list, fill };
}

/**
 * Both sentences, word by word: the chosen word, what it attends to, and the steps there and back.
 */
function stage(widget) {
  const [from, to] = languages(widget);
  const codes = isOwn(widget) ? ["", ""] : ["en", "fr"];
  const [english, french] = [
    line(widget, "english", codes[0], `${from} words`),
    line(widget, "french", codes[1], `${to} words`),
  ];
  for (const [name, { element }] of Object.entries({ english, french }))
    widget.tables.set(name, () => [[...element.children]]);
  const caption = h("p.note.caption", { role: "status" });
  const count = h("span.count");
  const step = (text, label, to) =>
    h(
      "button",
      {
        "aria-label": label,
        click: () =>
          choose(widget, {
            kind: kindOf(widget, "french"),
            at: { french: to(now.at.french, now.ids.length - 1) },
          }),
      },
      text,
    );
  const steps = [
    step("|◀", "to the first word", () => 0),
    step("◀ Back", "one word back", (t) => t - 1),
    step("Next ▶", "write the next word", (t) => t + 1),
    step("▶|", "to the last word", (_, last) => last),
  ];
  let now;
  return {
    element: results(
      "column stage",
      h("span.label", { "aria-hidden": "true" }, from),
      english.element,
      h(
        "div.steps",
        h("span.label", { "aria-hidden": "true" }, `${to}, word by word`),
        h("span.buttons", { role: "group", "aria-label": "word by word" }, ...steps),
        count,
      ),
      french.element,
      caption,
    ),
    reset() {
      widget.at = widget.kind = widget.heads = undefined;
    },
    shows: "outputs",
    update(inputs, outputs) {
      const view = answer(widget, inputs, outputs);
      if (!view) return;
      // other words
      if (now && now.english.join(" ") !== view.english.join(" ")) widget.at = undefined;
      now = answer(widget, inputs, outputs);
      const { at, kind, row } = now;
      const shares = weightsOf(outputs[kind], now.head)[row];
      const looked = (side) => (KINDS[kind].to === side ? [...shares] : []);
      const numbers = (list) => list.map((share) => (share < LEAST ? "" : format(share)));
      const onEnglish = looked("english");
      const reads = kind === "encoder";
      english.fill(now.english, reads ? at.english : -1, onEnglish, numbers(onEnglish), () => "");
      const t = at.french;
      // what was fed at a step is the word of the step before
      const back = looked("before").slice(1, t + 1);
      french.fill(now.french, reads ? -1 : t, back, numbers(back), (i) =>
        [
          i > t && !reads ? "later" : "",
          i < inputs.start.length ? "yours" : "",
          now.ids[i] === EOS ? "end" : "",
        ].join(" "),
      );
      steps.forEach((button, i) => {
        button.disabled = i < 2 ? t === 0 : t === now.ids.length - 1;
      });
      setText(count, `${t + 1} of ${now.ids.length}`);
      setText(caption, captionOf(now, [...shares]));
    },
  };
}

function captionOf({ kind, at, english, french, to, head: { layer, head } }, shares) {
  const [best] = topK(shares, 1);
  const whose =
    kind === "encoder"
      ? `Reading ${quote(english[at.english])}`
      : at.french === french.length - 1 && french[at.french] === "the end"
        ? "Ending the sentence"
        : `Writing ${quote(french[at.french])}`;
  const where = to[best] === "the start" ? to[best] : quote(to[best]);
  const most = `${where}, ${format(shares[best])}`;
  return `${whose}, head ${head} of block ${layer} attends most to ${most}.`;
}
stage.style = `
.sides { --left: 19.125rem; --right: 1fr; }
@container widget (min-width: 53.75rem) {
  .side { --label: 9.8em; --number: 3.25rem; }
}
.chips .lit { outline: 2px solid var(--accent); outline-offset: 1px; }
.stage { gap: 6px; }
.chips { display: flex; flex-wrap: wrap; gap: 6px; }
.chips > div { position: relative; border: 1px solid var(--line); border-radius: 8px; min-width:
  2.125rem; text-align: center; ${shaded("weight")} }
.chips > div:hover { border-color: var(--accent); }
.chips .chosen { border-color: var(--accent); box-shadow: 0 0 0 1.5px var(--accent); }
.chips .later { border-style: dashed; background: none; }
.chips .later b { color: var(--soft); font-weight: 450; }
.chips .yours b { text-decoration: underline 2px dashed var(--text); text-underline-offset: 3px; }
.chips .end b { font-style: italic; font-weight: 450; }
.chips label { display: block; padding: 6px 9px 13px; cursor: pointer; }
.chips b { display: block; font-weight: 550; line-height: 1.3; }
.chips span { position: absolute; left: 0; right: 0; bottom: 1px; font-size: var(--size-small);
  line-height: .8125rem; font-variant-numeric: tabular-nums; }
.chips input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0;
  cursor: pointer; }
.chips > div:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 2px; }
.steps { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; margin-top: 8px; }
.steps .buttons { display: flex; gap: 4px; }
.steps .count { font-size: var(--size-note); color: var(--soft);
  font-variant-numeric: tabular-nums; }
.stage .caption { margin-top: 2px; }
`;

/** What else could have stood in the chosen place; one click, and it does. */
function candidates(widget) {
  const names = widget.spec.vocabularies.target;
  const heading = h("p.label");
  const own = h("p.note.soft");
  const list = candidateList("the five likeliest words here");
  let now;
  const take = (i) => {
    const start = [...now.ids.slice(0, now.at.french), now.likeliest[i]];
    widget.at = now.at.french;
    widget.edit(Symbol("candidate"), (next) => {
      next.start = start;
    });
  };
  const lang = isOwn(widget) ? "" : "fr";
  const item = (i) => {
    const click = () => now.free(i) && take(i);
    const attributes = { "data-input": "start", click };
    const button = candidateLine("button", attributes, { on: true, lang });
    const rule = () => {
      const what = `Probability of ${quote(named(now.likeliest[i], names))} here:`;
      return chance(what, now.logits, i, list.querySelectorAll(".bars"), names.length - 5);
    };
    explainable(widget, button, rule, () => now.shares[i]);
    return h("li", button);
  };
  return {
    element: results("column choices", heading, list, own),
    shows: "outputs",
    update(inputs, outputs) {
      const view = answer(widget, inputs, outputs);
      if (!view) return;
      const t = view.at.french;
      const row = ({ data }, size = 5) => [...data.subarray(size * t, size * (t + 1))];
      const [likeliest, shares] = [row(outputs.likeliest), row(outputs.probabilities)];
      const free = (i) =>
        likeliest[i] !== EOS && likeliest[i] !== view.ids[t] && t < widget.spec.limits.P[1];
      now = { ...view, likeliest, shares, free, logits: row(outputs.logits, 6) };
      const join = isOwn(widget) ? spelt : joined;
      const before = (t > 3 ? "… " : "") + join(view.french.slice(Math.max(0, t - 3), t));
      setText(heading, t ? `After ${quote(before)}, what next?` : "How does it begin?");
      fillList(list, likeliest, item, ({ firstChild: button }, id, i) => {
        fillCandidate(button, named(id, names), [shares[i]], [percentOf(shares[i])]);
        setAttribute(button, "aria-current", String(id === view.ids[t]));
        setAttribute(button, "aria-disabled", String(!free(i))); // it can still be explained
      });
      const p = outputs.probability.data[t];
      setText(
        own,
        likeliest.includes(view.ids[t])
          ? "Choose another one, and it goes on from there."
          : `${quote(view.french[t])} is not among them: its probability is ` +
              `${percentOf(p).replace("<", "less than")}.`,
      );
    },
  };
}
candidates.style = `${candidateList.style}
.row > .choices { flex: 1 1 14.375rem; max-width: 26.25rem; gap: 6px; }
@media (max-width: 37.5rem) { .row > .choices { order: -1; max-width: none; } }
.choices .label { margin: 0; }
.nexts [aria-current=true] { border-color: var(--accent); }
.nexts [aria-current=true] .token { font-weight: 650; }
.soft { font-size: var(--size-note); }
`;

// ---------------------------------------------------------------- what the heads attend to

/** Which kind of attention. */
function kinds(widget) {
  const names = Object.keys(KINDS);
  const tabs = choice(
    widget,
    "kind",
    "which attention",
    names.map((kind) => KINDS[kind].ends.map((end) => languages(widget)[end]).join(" → ")),
    {
      read: () => names.indexOf(shownKind(widget)),
      choose: (i) => choose(widget, { kind: names[i] }),
    },
  );
  const about = h("p.note.soft");
  return {
    element: h("div.column", { "data-output": "" }, tabs.element, about),
    shows: "outputs",
    update(inputs, outputs) {
      const now = answer(widget, inputs, outputs);
      if (!now) return;
      tabs.update(inputs);
      setText(about, `The ${KINDS[now.kind].about}: each row is a word, with what it attends to.`);
    },
  };
}

/** Every head of every block as a small map, to choose one. */
function heads(widget) {
  const [L] = widget.spec.limits.L;
  const [H] = widget.spec.limits.H;
  return {
    shows: "outputs",
    ...headMaps({
      label: `All ${L * H} heads`,
      read: (inputs, outputs) => {
        const now = answer(widget, inputs, outputs);
        return now && { ...now, L, H, output: now.kind, weights: outputs[now.kind] };
      },
      chosen: ({ head: { layer, head } }) => layer * H + head,
      choose: (i) => choose(widget, { head: { layer: Math.floor(i / H), head: i % H } }),
      draw({ canvas, markRow, fresh }, { weights, row, to }, i) {
        const rows = weightsOf(weights, { layer: Math.floor(i / H), head: i % H });
        if (fresh(weights)) {
          paint(
            canvas,
            rows.flatMap((shares) => [...shares]),
            to.length,
            { ink: "weight" },
          );
        }
        setAttribute(canvas, "aria-hidden", "true"); // the radio button describes it
        markRow(row, rows.length, to.length);
        const [most] = topK(rows[row], 1);
        return `attends most to ${to[most]}, ${format(rows[row][most])}`;
      },
    }),
  };
}
kinds.style = ".column > .choice > .kind > .of { display: none; } .soft { max-width: none; }";
heads.style = headMaps.style;

/** The chosen head large, with words on both axes; a row is chosen by its word. */
function chart(widget) {
  let now;
  const map = wordMap({
    label: "the weights of the chosen head",
    pick(i) {
      if (now.row !== i) choose(widget, { at: { [KINDS[now.kind].from]: i } });
    },
    explain(t, s) {
      const { kind, from, to, head } = now;
      const scores = weightsOf(widget.readOutputs()[`${kind}_scores`], head)[t];
      if (scores[s] === -Infinity) {
        const what =
          `${quote(to[s])} is written only after ${quote(from[t])}: the causal mask makes its ` +
          "score −∞, so that its weight is 0.";
        return { kind: "said", what, lit: [{ cells: map.cellsOf(t) }] };
      }
      const what = `Weight that ${quote(from[t])} gives to ${quote(to[s])}:`;
      return weighed(what, scores, s, map.cellsOf(t));
    },
  });
  return {
    element: map.element,
    shows: "outputs",
    update(inputs, outputs) {
      const view = answer(widget, inputs, outputs);
      if (!view) return;
      now = view;
      const { kind, head, from, to, row } = now;
      const weights = weightsOf(outputs[kind], head);
      map.fill({
        title: `Block ${head.layer}, head ${head.head}`,
        across: to,
        rows: from.map((word, t) => ({
          word,
          shares: weights[t],
          seen: kind === "decoder" ? t + 1 : undefined,
        })),
        chosen: row,
      });
    },
  };
}
chart.style = wordMap.style;

// ---------------------------------------------------------------- one word, followed

/** The view of the word that is being written, whichever kind of attention is shown. */
function followed(widget) {
  if (!widget.heads) return undefined; // after a reset the first answer chooses them
  const outputs = widget.readOutputs();
  const view = answer(widget, widget.inputs, outputs);
  if (!view) return undefined;
  const [[L], t] = [outputs.cross.shape, view.at.french];
  const fed = view.before[t] === "the start" ? "the start" : quote(view.before[t]);
  return { ...view, widget, outputs, L, t, fed, code: widget.spec.facts.code };
}

/** The largest weight at this word, of all heads of one block. */
function largest({ outputs, t }, kind, layer) {
  const [, H] = outputs[kind].shape;
  const found = Array.from({ length: H }, (_, head) => {
    const row = weightsOf(outputs[kind], { layer, head })[t];
    const [most] = topK(row, 1);
    return { head, most, weight: row[most] };
  });
  return found.reduce((best, one) => (one.weight > best.weight ? one : best));
}

const wordOf = (name, column) => ({ name, row: 0, column });

/** What shows this head of this kind of attention, and the maps of these blocks. */
const looks = ({ widget }, kind, layer, head, blocks) => ({
  shows: { kind, head: { layer, head } },
  fills: [blocksOf(widget, blocks), partsOf(widget, SHOWN)],
});
const SHOWN = ".atlas .word-map, .stage .caption, .chips span"; // by the head that is shown

const STEPS = [
  (view) => ({
    message:
      `The encoder has read the ${view.english.length} words. In each of its ${view.L} blocks ` +
      "every word attended to all of them, so that each vector tells of its neighbours, too. " +
      "This is done once.",
    lit: [wordOf("english")],
    code: view.code.encode,
  }),
  ({ french, t, fed, code }) => ({
    message:
      `To write ${t === french.length - 1 ? french[t] : quote(french[t])}, word ${t + 1}, the ` +
      `decoder is fed the word before it: ${fed}. Its row of the embedding table, times √D, plus ` +
      "the code of its position is the vector that we follow.",
    lit: t ? [wordOf("french", t), wordOf("french", t - 1)] : [wordOf("french", 0)],
    code: code.embed,
  }),
  (view) => {
    const { before, t, fed, code } = view;
    const { head, most, weight } = largest(view, "decoder", 0);
    return {
      message: t
        ? `First the self-attention of block 0: ${fed} attends to the words that are written ` +
          `already, and the start. The largest weight is ${format(weight)}, which head ${head} ` +
          `gives to ${most ? quote(before[most]) : "the start"}.`
        : "First the self-attention of block 0. Nothing is written yet, so that the start can " +
          "only attend to itself.",
      lit: [wordOf("french", t), ...(most ? [wordOf("french", most - 1)] : [])],
      moves: most ? [{ from: wordOf("french", most - 1), to: wordOf("french", t) }] : [],
      ...looks(view, "decoder", 0, head, [0, 1]),
      code: code.back,
    };
  },
  (view) => {
    const { english, t, code } = view;
    const { head, most, weight } = largest(view, "cross", 0);
    return {
      message:
        "Then cross-attention: the query is the decoder's, keys and values are made of the " +
        `encoder's vectors. The largest weight is ${format(weight)}, which head ${head} gives to ` +
        `${quote(english[most])}.`,
      lit: [wordOf("english", most), wordOf("french", t)],
      moves: [{ from: wordOf("english", most), to: wordOf("french", t) }],
      ...looks(view, "cross", 0, head, [0, 1]),
      code: code.across,
    };
  },
  ({ t, code }) => ({
    message:
      "Last the feed-forward network, which reads this vector alone. Around each of the three, " +
      "what comes out is added to what went in, and normalised.",
    lit: [wordOf("french", t)],
    code: code.forward,
  }),
  (view) => {
    const { english, L, t, code } = view;
    const { head, most, weight } = largest(view, "cross", L - 1);
    const more = L > 2 ? `Blocks 1 ${L > 3 ? "to" : "and"} ${L - 1} do` : "Block 1 does";
    return {
      message:
        (L > 1 ? `${more} the same three things. ` : "This decoder has no further block. ") +
        `In the last cross-attention the largest weight is ${format(weight)}, which head ${head} ` +
        `gives to ${quote(english[most])}.`,
      lit: [wordOf("english", most), wordOf("french", t)],
      moves: [{ from: wordOf("english", most), to: wordOf("french", t) }],
      ...looks(view, "cross", L - 1, head, [1, L]),
      code: code.block,
    };
  },
  ({ widget, outputs, t, code, names }) => {
    const row = ({ data }, size = 5) => [...data.subarray(size * t, size * (t + 1))];
    const [likeliest, shares] = [row(outputs.likeliest), row(outputs.probabilities)];
    const words = likeliest.map((id) => named(id, names));
    return {
      message:
        `The dot products with the rows of the embedding table are ${whole(names.length)} ` +
        `logits, and their softmax gives ${words[0] === "the end" ? words[0] : quote(words[0])} ` +
        `the probability ${percentOf(shares[0])}.`,
      lit: [wordOf("french", t)],
      fills: [partsOf(widget, ".choices .candidate, .choices .note")],
      code: code.output,
      table: {
        labels: words,
        rows: [
          { name: "logit", numbers: row(outputs.logits, 6).slice(0, 5) },
          { name: "probability", numbers: shares },
        ],
      },
    };
  },
  ({ widget, french, t, outputs, inputs, ids }) => {
    const p = percentOf(outputs.probability.data[t]);
    const who =
      t < inputs.start.length
        ? "You have chosen"
        : inputs.width > 1
          ? "Beam search, which compares whole sentences, takes"
          : "Greedy search takes the likeliest,";
    const word = ids[t] === EOS ? french[t] : quote(french[t]);
    return {
      message:
        `${who} ${word} (${p}). ` +
        (ids[t] === EOS
          ? "With it the translation is finished."
          : "It is fed next, and all but the encoder's part begins again with it."),
      lit: [wordOf("french", t)],
      fills: [{ cells: widget.cellsOf("french").slice(t) }, partsOf(widget, ".written, .rivals")],
    };
  },
].map((step) => (widget) => {
  const view = followed(widget);
  if (!view) return { message: "The answer is on its way.", lit: [wordOf("french", 0)] };
  return step({ ...view, inputs: widget.inputs, names: widget.spec.vocabularies.target });
});

const name = (widget) => {
  const view = followed(widget);
  if (!view) return "a word";
  return view.ids[view.t] === EOS ? view.french[view.t] : quote(view.french[view.t]);
};
/** Another sentence has another translation: its start is not forced. */
const clearStart = (next) => {
  next.start = [];
};

/**
 * The line to type in, and what else there is to translate: of the course's pairs or of one's own.
 */
const typed = (widget) =>
  sentence(widget, "source", `${languages(widget)[0]} sentence`, clearStart);
typed.style = sentence.style;
const offered = (widget) =>
  heldOut(widget, "source", isOwn(widget) ? "" : " from Tatoeba", clearStart);

export default live(
  "Translate and look inside, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ui.column(ui.use(typed), ui.use(offered)),
        ui.knobs(
          ui.slider("width", "beam width", 1, 5, 1),
          ui.slider("alpha", "length penalty α", 0, 1.5, 0.1),
        ),
        ui.use(french),
        ui.use(rivals),
        ui.use(candidates),
      ),
      ui.boxed(
        "side",
        ui.use(stage),
        ui.use(journey, { name, steps: STEPS }),
        ui.use(kinds),
        ui.boxed("atlas", ui.use(heads), ui.use(chart)),
        ui.explanation(),
      ),
    ),
  ],
  { wide: true, answer: ".written" },
);
