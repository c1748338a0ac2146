import {
  alignment,
  common,
  missing,
  strange,
  surplus,
  wrongWords,
} from "../../live/page/dictionary.js";
import { greedy, topK } from "../../live/page/search.js";
import { BOS, EOS } from "../../live/page/translator.js";
import { nothingWritten } from "../../live/page/writer.js";
import { columnHeads, results } from "../../live/ui/boxes.js";
import { radio } from "../../live/ui/controls.js";
import { h, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { weighed } from "../../live/ui/explain.js";
import { headMaps } from "../../live/ui/heads.js";
import { wordMap } from "../../live/ui/maps.js";
import { listed } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint } from "../../live/ui/pixels.js";
import { fillList, heldOut, sentence, translation } from "../../live/ui/sentences.js";

/** What torch does in a kernel, in compute() of ablation.py. */
export async function program(run, { source, variant }, spec) {
  const { keys, values } = await run("cached_transformer-read", { source });
  const [weights, scores] = [[], []];
  const step = async (seen, token) => {
    const spoken = await run("ablation-speak", { token, keys, values, ...seen });
    weights.push(...spoken.cross.data);
    scores.push(...spoken.scores.data);
    return {
      logProbs: spoken.log_probs,
      state: { cached_keys: spoken.now_keys, cached_values: spoken.now_values },
    };
  };
  const steps = await greedy(step, nothingWritten(spec), BOS, EOS, spec.limits.T[1]);
  const tokens = steps.map(({ token }) => token);
  const english = source.map((id) => spec.sentences.source[id]);
  const french = tokens.map((id) => spec.vocabularies.target[id]);
  const [L] = spec.limits.L;
  const [H] = spec.limits.H;
  const { dictionary } = spec.facts;
  return {
    which: variant,
    read: source,
    tokens,
    probabilities: steps.map(({ logProbs, token }) => Math.exp(logProbs[token])),
    cross: { dims: [tokens.length, L, H, source.length], data: weights },
    scores: { dims: [tokens.length, L, H, source.length], data: scores },
    gold: alignment(dictionary, english, french).map((places) =>
      source.map((_, s) => places.includes(s)),
    ),
    wrong: wrongWords(dictionary, translation({ spec }, english.join(" ")), english, french),
  };
}

// ---------------------------------------------------------------- what was predicted

const reported = new WeakMap(); // outputs -> what they say, for all parts that show it

/**
 * The sentence that was read, the French words, what is wrong with them, and what each head
 * attends to.
 */
function report(widget, outputs) {
  if (!reported.has(outputs)) reported.set(outputs, reportOf(widget, outputs));
  return reported.get(outputs);
}

function reportOf(widget, { which, read, tokens, probabilities, cross, scores, gold, wrong }) {
  const { spec } = widget;
  const english = Array.from(read.data, (id) => spec.sentences.source[id]);
  const [S, [, L, H]] = [english.length, cross.shape];
  const words = Array.from(tokens.data, (id, t) => ({
    word: spec.vocabularies.target[id],
    end: id === EOS,
    share: probabilities.data[t],
    wrong: wrong.data[t] === 1,
    from: gold.data.subarray(t * S, (t + 1) * S),
    attentionRow: (head) => cross.data.subarray((t * L * H + head) * S, (t * L * H + head + 1) * S),
    scores: (head) => scores.data.subarray((t * L * H + head) * S, (t * L * H + head + 1) * S),
  }));
  const predicted = words.filter(({ end }) => !end);
  const truth = translation(widget, english.join(" "))?.split(" ");
  const kept =
    truth &&
    new Set(
      common(
        predicted.map(({ word }) => word),
        truth,
      ).values(),
    );
  const lost = truth
    ? truth.filter((_, i) => !kept.has(i)).length
    : missing(
        spec.facts.dictionary,
        english,
        predicted.map(({ word }) => word),
      ).gone.length;
  const faults = predicted.filter((one) => one.wrong).length;
  const ended = predicted.length < words.length;
  const unknown = truth
    ? [0, 0]
    : strange(
        spec.facts.dictionary,
        english,
        predicted.map(({ word }) => word),
      );
  return {
    variant: which.data[0],
    english,
    words,
    predicted,
    ended,
    truth,
    kept,
    lost,
    faults,
    unknown,
    right: ended && faults === 0 && lost === 0 && !unknown.some(Boolean),
  };
}

/** The verdict on the sentence, for each model that the reader has tried: for the table. */
function remembered(widget, { variant, english, right, faults, lost, ended, truth, unknown }) {
  const text = english.join(" ");
  if (widget.tried?.text !== text) widget.tried = { text, verdicts: [] };
  widget.tried.verdicts[variant] = {
    right,
    faults,
    lost,
    ended,
    truth: Boolean(truth),
    scored: !unknown.some(Boolean),
  };
  return widget.tried.verdicts;
}

const quoteOf = (word) => `“${word}”`;
const counted = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

// ---------------------------------------------------------------- the models

/**
 * The models, one of which translates; how often each was right on held-out sentences, and on this
 * one.
 */
function modelTable(widget) {
  const { models, splits } = widget.spec.facts;
  const caption = h(
    "caption",
    "Which model translates? And how many held-out sentences has it right, in %?",
  );
  const rows = models.map(({ name, exact, percent }, i) => {
    const button = radio(widget, "variant", i);
    const cells = exact.map((share, split) => {
      const cell = h("td", percent[split]);
      setHeat(cell, share);
      return cell;
    });
    const here = h("td.here");
    const tr = h(
      "tr",
      h("th", { scope: "row" }, h("label", button, h("span", name))),
      ...cells,
      here,
    );
    return { button, here, tr };
  });
  const table = h(
    "table.models",
    caption,
    columnHeads(null, ...Object.values(splits), "this sentence"),
    h("tbody", ...rows.map(({ tr }) => tr)),
  );
  return {
    element: h("div.scroll", table),
    update({ variant }, outputs) {
      const verdicts = remembered(widget, report(widget, outputs));
      rows.forEach(({ button, here, tr }, i) => {
        button.checked = i === variant;
        tr.classList.toggle("chosen", i === variant);
        const verdict = verdicts[i];
        setText(here, verdict ? shortVerdict(verdict) : "");
        const kind =
          !verdict || shortVerdict(verdict) === NOT_SCORED
            ? ""
            : !verdict.right
              ? " amiss"
              : verdict.truth
                ? " right"
                : "";
        setAttribute(here, "class", `here${kind}`);
      });
    },
  };
}

const NOT_SCORED = "not judged";

/** A verdict in a word or two, for the table. */
function shortVerdict({ right, faults, lost, ended, truth, scored }) {
  if (right) return truth ? "✓" : "no fault found";
  if (faults) return `${faults} wrong`;
  if (!ended) return "no end";
  return lost ? `${lost} missing` : scored ? "" : NOT_SCORED;
}

/** How the chosen model is built, and that it was trained so. */
function construction(widget) {
  const line = h("p.note.built");
  return {
    element: line,
    shows: "inputs",
    update({ variant }) {
      const { built } = widget.spec.facts.models[variant];
      setText(
        line,
        variant === 0
          ? built
          : `${built} It was trained so from the first step: nothing was taken out of a ` +
              `finished model.`,
      );
    },
  };
}

// ---------------------------------------------------------------- the French

/** The French with its wrong words marked; the correct French; and the verdict in words. */
function frenchOf(widget) {
  const line = h("ol.french", { lang: "fr", "aria-label": "French" });
  const verdict = h("p.note.verdict");
  const truthLine = h("ol.french.truth", { lang: "fr", "aria-label": "the correct French" });
  const truthRow = h(
    "div.grammar",
    h("span.label", { "aria-hidden": "true" }, "The correct French"),
    truthLine,
  );
  const whose = h("span.label", { "aria-hidden": "true" });
  const element = results("column said", whose, line, truthRow, verdict);
  return {
    element,
    update({ variant }, outputs) {
      const view = report(widget, outputs);
      const { predicted, ended, truth, kept } = view;
      element.classList.toggle("waiting", view.variant !== variant);
      setText(
        whose,
        `French, by the model ${widget.spec.facts.models[view.variant].name}`
          .replace("model the", "")
          .replace("  ", " "),
      );
      fillList(
        line,
        ended ? predicted : [...predicted, { word: "…" }],
        "li",
        (li, { word, wrong, share }) => {
          setText(li, word);
          setAttribute(li, "class", wrong ? "amiss" : "");
          if (share === undefined) li.removeAttribute("data-value");
          else setAttribute(li, "data-value", String(share));
        },
      );
      truthRow.hidden = !truth || view.right;
      fillList(truthLine, truth ?? [], "li", (li, word, i) => {
        setText(li, word);
        setAttribute(li, "class", kept.has(i) ? "" : "lost");
      });
      setText(verdict, judgementOf(widget, view));
    },
  };
}

/** “: “chat” and “chien””, unless there are too many of them. */
function namesOf(words) {
  const names = [...new Set(words.map(({ word }) => quoteOf(word)))];
  return names.length > 4 ? "" : `: ${listed(names)}`;
}

/** The verdict: what is wrong, what is missing, and who says so. */
function judgementOf(
  widget,
  { english, predicted, ended, truth, kept, right, faults, lost, unknown },
) {
  const end = ended ? "" : ` It did not end: after ${predicted.length} words the page stops it.`;
  const bad = namesOf(predicted.filter(({ wrong }) => wrong));
  if (truth) {
    if (right) return "Every word is correct.";
    const [strange, absent] = [
      predicted.filter((one) => one.wrong).map(({ word }) => word),
      truth.filter((_, i) => !kept.has(i)),
    ];
    if (ended && faults && String(strange.sort()) === String(absent.sort())) {
      return (
        `It has all the correct words, but ${faults} of the ${predicted.length} ` +
        `${faults === 1 ? "stands" : "stand"} in the wrong place${bad}.`
      );
    }
    if (!predicted.length)
      return `It says nothing at all: all ${counted(lost, "word")} are missing.`;
    const parts = [
      ...(faults
        ? [
            `${faults} of its ${counted(predicted.length, "word")} ` +
              `${faults === 1 ? "is" : "are"} wrong${bad}`,
          ]
        : []),
      ...(lost
        ? [`${counted(lost, "word")} of the correct French ${lost === 1 ? "is" : "are"} missing`]
        : []),
    ];
    const text = parts.join(", and ");
    return `${text ? `${text}.` : ""}${end}`.trim();
  }
  const { dictionary } = widget.spec.facts;
  const french = predicted.map(({ word }) => word);
  const left = missing(dictionary, english, french).gone.map((at) =>
    quoteOf(at.map((s) => english[s]).join(" ")),
  );
  const extra = surplus(dictionary, english, french);
  const [many, moved] = [
    predicted.filter((one, t) => one.wrong && extra[t]),
    predicted.filter((one, t) => one.wrong && !extra[t]),
  ];
  const parts = [
    ...(many.length ? [`${counted(many.length, "word")} too many${namesOf(many)}.`] : []),
    ...(moved.length
      ? [`${counted(moved.length, "word")} in the wrong place${namesOf(moved)}.`]
      : []),
    ...(left.length ? [`Nothing in the French comes from ${listed(left)}.`] : []),
  ];
  if (unknown.some(Boolean)) {
    const where = ["English", "French"].flatMap((language, i) =>
      unknown[i] ? `${counted(unknown[i], "word")} of the ${language}` : [],
    );
    parts.push(
      `${parts.length ? "The rest is not judged" : "Not judged"}: the dictionary does not know ` +
        `${where.join(" and ")}.`,
    );
  }
  const found =
    parts.join(" ") ||
    (predicted.length
      ? "No fault is found: no word is missing or too many, and none is in the wrong place."
      : "There is no French to judge.");
  return (
    `${found}${end} Here the dictionary judges: it does not see whether endings agree, ` +
    `nor where adverbs and “ne … pas” stand.`
  );
}

// ---------------------------------------------------------------- what the heads attend to

/**
 * The words that the dictionary knows the origin of, and those for which this head attends most
 * to it.
 */
function aim(words, head) {
  const known = words.filter(({ from }) => from.includes(1));
  return {
    known: known.length,
    hit: known.filter(({ from, attentionRow }) => from[topK(attentionRow(head), 1)[0]] === 1)
      .length,
  };
}

/** The head whose map is shown large: the reader's, else the model's best on held-out sentences. */
function largeHead(widget, variant) {
  const { models } = widget.spec.facts;
  const { layer, head } = models[variant].head;
  return widget.head ?? layer * widget.spec.limits.H[0] + head;
}

/**
 * All maps of the decoder's attention to the English, small; the one chosen is shown large.
 */
function smallMaps(widget) {
  const [L] = widget.spec.limits.L;
  const [H] = widget.spec.limits.H;
  return headMaps({
    label: "What each head attends to in the English",
    read({ variant }, outputs) {
      const view = report(widget, outputs);
      return { ...view, L, H, waiting: view.variant !== variant };
    },
    chosen: ({ variant }) => largeHead(widget, variant),
    choose(i) {
      widget.head = i;
      widget.repaint();
    },
    draw({ canvas, outline, setCaption, fresh }, { english, words }, i) {
      const { hit, known } = aim(words, i);
      setCaption(known ? `${hit} of ${known}` : "");
      if (!fresh(words)) return;
      const [T, S] = [words.length, english.length];
      paint(
        canvas,
        words.flatMap(({ attentionRow }) => [...attentionRow(i)]),
        S,
        { ink: "weight" },
      );
      setAttribute(canvas, "aria-label", `weights, ${T} French by ${S} English words`);
      outline(
        words.map(({ from }) => from),
        T,
        S,
      );
    },
    reset() {
      widget.head = undefined;
    },
  });
}
smallMaps.style = `${headMaps.style}
.small .count { font-size: var(--size-small); }
@container widget (min-width: 53.75rem) {
  .side .heads .layers { --map: 3.75rem; gap: 3px 6px; }
}
`;

/** The map of one head: a row for each French word, its weights, and where it comes from. */
function largeMap(widget) {
  const note = h("p.note.aimed");
  let now; // the view, and which head is shown
  const map = wordMap({
    label: "the weights of one head",
    lang: "fr",
    key: "where a word comes from, by the dictionary",
    explain(t, s) {
      const { words, english, chosen } = now;
      const what = `Weight that ${quoteOf(words[t].word)} gives to ${quoteOf(english[s])}:`;
      return weighed(what, words[t].scores(chosen), s, map.cellsOf(t));
    },
  });
  const element = results("column", map.element, note);
  return {
    element,
    update({ variant }, outputs) {
      const view = report(widget, outputs);
      element.classList.toggle("waiting", view.variant !== variant);
      const chosen = largeHead(widget, view.variant);
      now = { ...view, chosen };
      const H = widget.spec.limits.H[0];
      map.fill({
        title: `Block ${Math.floor(chosen / H)}, head ${chosen % H}: its weights`,
        across: view.english,
        rows: view.words.map(({ word, from, attentionRow }) => ({
          word,
          from,
          shares: attentionRow(chosen),
        })),
      });
      setText(note, aimOf(widget, view, chosen));
    },
  };
}
largeMap.style = wordMap.style;

/** For how many words this head attends to where they come from; and whether it is the best one. */
function aimOf(widget, { words, variant }, chosen) {
  const { hit, known } = aim(words, chosen);
  const { models } = widget.spec.facts;
  const { layer, head } = models[variant].head;
  const best = layer * widget.spec.limits.H[0] + head === chosen;
  const of = known
    ? `For ${hit} of the ${counted(known, "word")} whose origin is known it attends most to it.`
    : "The dictionary knows of none of these words where it comes from.";
  const most = " No head of this model did better on the validation sentences.";
  return best && known ? of + most : of;
}

modelTable.style = `
.sides { --left: 1fr; --right: 1fr; }
@container widget (min-width: 53.75rem) {
  .models thead th:nth-child(n) { width: 3.75rem; padding: 0 4px 4px; }
  .models thead th:nth-child(n):last-child { width: 5.75rem; }
  .models td:nth-child(n) { padding: 0 4px; }
  .models label { min-height: 1.6875rem; }
  .models label span { white-space: nowrap; }
  .models .here { white-space: nowrap; }
  .side { gap: 8px; }
}
.models { width: 100%; max-width: 38.75rem; font-size: var(--size-note); }
.models caption { white-space: normal; }
.models thead th { font-size: var(--size-small); line-height: 1.25; text-align: right;
  vertical-align: bottom;
  white-space: normal; width: 5.25rem; max-width: none; padding: 0 8px 4px; }
.models td { text-align: right; padding: 0 8px; white-space: nowrap; }
.models tbody td:not(.here) { background: color-mix(in oklab, var(--ground), var(--probability)
  calc(var(--tl-heat, 0) * 38%)); border: 1px solid var(--ground); }
.models tbody th { padding: 0; max-width: none; text-align: left; color: var(--text);
  font-size: var(--size-note); }
.models label { display: flex; gap: 9px; align-items: center; min-height: 1.875rem;
  padding: 0 8px 0 4px; cursor: pointer; white-space: normal; line-height: 1.2; }
.models .chosen th { font-weight: 650; }
.models .chosen > * { box-shadow: inset 0 1.5px var(--accent), inset 0 -1.5px var(--accent); }
.models .here { min-width: 4.625rem; }
.models .right { font-weight: 650; }
.models .amiss { color: var(--text);
  background: color-mix(in oklab, var(--ground), var(--error) 26%); }
.built { max-width: 72ch; }
@media (max-width: 37.5rem) {
  .models { font-size: var(--size-note); }
  .models thead th { font-size: var(--size-small); padding: 0 5px 4px; width: 3.3125rem; }
  .models td { padding: 0 5px; }
  .models tbody th { font-size: var(--size-note); }
  .models label { gap: 6px; padding: 3px 2px 3px 0; }
  .models .here { min-width: 0; white-space: normal; width: 3.25rem; }
}
@media (max-width: 21.875rem) {
  .models thead th, .models .here { width: 2.625rem; font-size: var(--size-small); }
  .models thead th { padding: 0 2px 4px; }
  .models td { padding: 0 2px; }
  .models tbody th { font-size: var(--size-small); }
}
`;
frenchOf.style = `
.french { display: flex; flex-wrap: wrap; gap: 2px 0.34em; list-style: none; margin: 0; padding: 0;
  font-size: var(--size-text); font-weight: 550; line-height: 1.5; }
.french:empty { display: none; }
.french .amiss { text-decoration: underline wavy var(--error) 1.5px; text-underline-offset: 4px;
  text-decoration-skip-ink: none;
  background: color-mix(in oklab, var(--ground), var(--error) 18%); border-radius: 4px; }
.grammar { display: flex; flex-wrap: wrap; gap: 2px 10px; align-items: baseline; color: var(--soft);
  }
.grammar .label { font-weight: 400; }
.french.truth { font-size: var(--size-text); font-weight: 400; }
.truth .lost { color: var(--text); text-decoration: underline 1.5px; text-underline-offset: 4px; }
`;
export default live(
  "The Transformer without one of its parts, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ui.column(ui.use(sentence, "source", "English sentence"), ui.use(heldOut, "source")),
        ui.column(ui.use(modelTable), ui.use(construction)),
        ui.use(frenchOf),
      ),
      ui.boxed("side", ui.use(smallMaps), ui.use(largeMap), ui.explanation()),
    ),
  ],
  { wide: true, main: ".said > ol", answer: ".said > :nth-child(2)" },
);
