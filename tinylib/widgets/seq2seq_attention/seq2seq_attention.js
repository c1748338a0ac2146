import { alignment, misplaced, missing, surplus } from "../../live/page/dictionary.js";
import { greedy, topK } from "../../live/page/search.js";
import { BOS, EOS } from "../../live/page/translator.js";
import { results } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { h, setText } from "../../live/ui/dom.js";
import { chance, explainable, roveLines, weighed } from "../../live/ui/explain.js";
import { LEAST, wordMap } from "../../live/ui/maps.js";
import { format, listed, percentOf } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, heldOut, sentence, translation, translated } from "../../live/ui/sentences.js";

/** What torch does in a kernel, in compute() of seq2seq_attention.py. */
export async function program(run, { source }, spec) {
  const { keys, values, state } = await run("seq2seq_attention-read", { source });
  const trace = { likeliest: [], probabilities: [], logits: [], scores: [], weights: [] };
  const step = async (hidden, token) => {
    const written = await run("seq2seq_attention-write", { token, keys, values, hidden });
    for (const [name, rows] of Object.entries(trace))
      rows.push(Array.from(written[name].data, Number));
    return { logProbs: written.log_probs, state: written.state };
  };
  const steps = await greedy(step, state, BOS, EOS, spec.limits.T[1]);
  const tokens = steps.map(({ token }) => token);
  const english = source.map((id) => spec.sentences.source[id]);
  const french = tokens.map((id) => spec.vocabularies.target[id]);
  const from = alignment(spec.facts.dictionary, english, french);
  return {
    tokens,
    ...trace,
    gold: from.map((places) => source.map((_, s) => Number(places.includes(s)))),
  };
}

// ---------------------------------------------------------------- what was written

const read = new WeakMap(); // outputs -> what is written there, for all parts that show it

/**
 * Each French word: the weights of the English words in it, the one it attends to most, its gold.
 */
function written(widget, inputs, outputs) {
  if (!read.has(outputs)) read.set(outputs, writtenIn(widget, inputs, outputs));
  return read.get(outputs);
}

function writtenIn(widget, inputs, { tokens, weights, scores: before = weights, gold }) {
  const names = widget.spec.vocabularies.target;
  const english = widget.words("S", inputs);
  const [T, S] = weights.shape;
  const rows = Array.from({ length: T }, (_, t) => {
    const [shares, scores, from] = [weights, before, gold].map(({ data }) =>
      data.subarray(t * S, (t + 1) * S),
    );
    const [most] = topK(shares, 1);
    return {
      word: names[tokens.data[t]],
      ended: tokens.data[t] === EOS,
      shares,
      scores,
      from,
      most,
      known: from.includes(1),
      right: from[most] === 1,
    };
  });
  return { english, rows };
}

/** The answer is that to the inputs: neither is it on its way, nor that to a sentence before. */
function answers(widget, inputs, { weights }) {
  const given = widget.model.get("outputs");
  const english = widget.words("S", inputs);
  if (given !== widget.given) {
    // another sentence has other rows: the one that was chosen is none of them
    if (widget.asked !== undefined && widget.asked !== english.join(" ")) widget.row = undefined;
    [widget.given, widget.asked] = [given, english.join(" ")];
  }
  return widget.asked === english.join(" ") && english.length === weights.shape[1];
}

/**
 * The row that is shown: the one chosen, else the first word that attends elsewhere than to
 * where it comes from, else the first for which the decoder went back in the English, as it has to
 * for "la voiture rouge".
 */
function chosenRow(widget, rows) {
  if (widget.row !== undefined) return widget.row;
  const astray = rows.findIndex(({ known, right }) => known && !right);
  if (astray >= 0) return astray;
  return Math.max(
    0,
    rows.findIndex(({ most }, t) => t > 0 && most < rows[t - 1].most),
  );
}

const quote = (word) => `“${word}”`;

/** "front" and "of" as one: “in front of”. */
const phrase = (english, from) => quote(english.filter((_, s) => from[s]).join(" "));

// ---------------------------------------------------------------- parts

/**
 * The French with the English below each word, how many words attend to what they should, and the
 * correct French.
 */
function french(widget) {
  const line = h("p.french", { lang: "fr" });
  const kinds = ["ending", "marked", "compared", "left", "verdict"];
  const [ending, marked, compared, left, verdict] = kinds.map((kind) =>
    h("p", { class: `note ${kind}` }),
  );
  return {
    element: results(
      "column",
      h("span.label", "French"),
      line,
      ending,
      marked,
      compared,
      left,
      verdict,
    ),
    shows: "outputs",
    update(inputs, outputs) {
      if (!answers(widget, inputs, outputs)) return;
      const { english, rows } = written(widget, inputs, outputs);
      const words = rows.filter(({ ended }) => !ended);
      const ended = words.length < rows.length;
      const text = words.map(({ word }) => word).join(" ");
      const off = faults(widget, english, words);
      spell(line, english, words, off);
      if (!ended) line.append(" …");
      setText(ending, ended ? "" : endless(english, words));
      setText(marked, off.includes(true) ? "Wavy lines mark words too many or out of place." : "");
      const truth = translation(widget, inputs.source);
      setText(
        compared,
        truth === text ? "Every word is correct." : truth ? `The correct French is: ${truth}` : "",
      );
      setText(
        left,
        leftOut(
          missing(
            widget.spec.facts.dictionary,
            english,
            words.map(({ word }) => word),
          ),
          english,
        ),
      );
      setText(verdict, judgement(english, words));
    },
  };
}

/** Which words are too many, or in the wrong place, as far as the dictionary knows. */
function faults(widget, english, words) {
  const texts = words.map(({ word }) => word);
  const [many, moved] = [surplus, misplaced].map((rule) =>
    rule(widget.spec.facts.dictionary, english, texts),
  );
  return many.map((one, t) => one || moved[t]);
}

/** Each word, with the English that it comes from below it: by CSS, so that it is no part of it. */
function spell(line, english, words, off) {
  line.replaceChildren(
    ...words.flatMap(({ word, from }, t) => [
      ...(t ? [" "] : []),
      h(
        "span",
        { "data-gloss": english.filter((_, s) => from[s]).join(" ") || "\u00a0" },
        h("b", { class: off[t] ? "off" : "" }, word),
      ),
    ]),
  );
}

/** Which English words no French word comes from, in words. */
function leftOut({ gone, few }, english) {
  const names = (places) => places.map((at) => quote(at.map((s) => english[s]).join(" ")));
  const words =
    gone.length === 1 ? "One word of the English is" : `${gone.length} words of the English are`;
  const sentences = gone.length
    ? [`${words} missing in this French: ${names(gone).join(", ")}.`]
    : [];
  for (const { places, there } of few) {
    sentences.push(
      `Of the English words ${listed(names(places))}, only ${there} ` +
        `${there === 1 ? "is" : "are"} in the French.`,
    );
  }
  return sentences.join(" ");
}

/** How many words attend to what they should, and what the others attend to. */
function judgement(english, words) {
  const known = words.filter((word) => word.known);
  const unknown = [...new Set(words.filter((word) => !word.known).map(({ word }) => quote(word)))];
  if (!known.length)
    return "Our dictionary cannot tell where these words come from, so nothing is outlined.";
  const named =
    unknown.length > 4 ? [...unknown.slice(0, 3), `${unknown.length - 3} more`] : unknown;
  const claim = !named.length
    ? ""
    : "Our dictionary cannot tell which English " +
      `${named.length === 1 ? `word ${named[0]} comes` : `words ${listed(named)} come`} from. `;
  const astray = known.filter(({ right }) => !right);
  const [all, right] = [known.length, known.length - astray.length];
  const [other, others] = unknown.length ? ["other ", "others"] : ["", "words"];
  const count =
    all === 1
      ? `The ${other || "one "}word ${right ? "attends" : "does not attend"}`
      : right === all
        ? `All ${all} ${other}words attend`
        : `${right || "None"} of the ${all} ${others} ${right > 1 ? "attend" : "attends"}`;
  const they = right > 1 ? "they come" : "it comes";
  const examples = astray
    .slice(0, 3)
    .map(
      ({ word, most, from }) =>
        `${quote(word)} attends to ${quote(english[most])}, but comes from ` +
        `${phrase(english, from)}`,
    );
  const more = astray.length > 3 ? `; and so on for ${astray.length - 3} more` : "";
  return (
    `${claim}${count} most to a word that ${they} ` +
    `from${astray.length ? `: ${examples.join("; ")}${more}.` : "."}`
  );
}

/** Why a translation that does not end may not. */
const endless = (english, words) =>
  `It did not end: after ${words.length} words the page stops it.` +
  (english.at(-1) === "."
    ? ""
    : " It was trained on sentences that end with a full stop; yours has none.");

/** The weights, a row for every French word; what a word comes from is outlined. */
function attentionMap(widget) {
  let seen; // the rows that are shown
  const map = wordMap({
    label: "the weights, a row for each French word",
    output: "weights",
    lang: "fr",
    key: "the English that the French word translates",
    pick(t) {
      if (widget.row === t) return;
      widget.row = t;
      widget.repaint();
      map.show(t, seen[t].most);
    },
    explain(t, s) {
      const what = `Weight that ${quote(seen[t].word)} gives to ${quote(seen.english[s])}:`;
      return weighed(what, seen[t].scores, s, map.cellsOf(t));
    },
  });
  return {
    element: map.element,
    reset() {
      widget.row = undefined;
    },
    shows: "outputs",
    update(inputs, outputs) {
      if (!answers(widget, inputs, outputs)) return;
      const { english, rows } = written(widget, inputs, outputs);
      seen = Object.assign(rows, { english });
      const chosen = chosenRow(widget, rows);
      map.fill({ title: "weights of the English words", across: english, rows, chosen });
    },
  };
}

/** The chosen word: what it attends to, and what else it might have been. */
function wordsNext(widget) {
  const names = widget.spec.vocabularies.target;
  const heading = h("b", { lang: "fr" });
  const looked = h("span");
  const list = candidateList("the five likeliest words here");
  let now; // ids, probabilities and logits of them
  const make = (i) => {
    const line = candidateLine("div", {}, { on: true, lang: "fr" });
    const rule = () => {
      const what = `Probability of ${quote(names[now.ids[i]])} here:`;
      return chance(what, now.logits, i, list.querySelectorAll(".bars"), names.length - 5);
    };
    explainable(widget, line, rule, () => now.values[i]);
    return h("li", line);
  };
  const reach = roveLines(list);
  return {
    element: results(
      "column chosen",
      h("p.note.looked", heading, looked),
      h("p.label", "The five likeliest words here"),
      list,
    ),
    shows: "outputs",
    update(inputs, outputs) {
      if (!answers(widget, inputs, outputs)) return;
      const { english, rows } = written(widget, inputs, outputs);
      const t = chosenRow(widget, rows);
      const { word, ended, shares, from, known, right } = rows[t];
      setText(heading, quote(word));
      const terms = topK(shares, shares.length)
        .filter((s) => shares[s] >= LEAST)
        .map((s) => `${format(shares[s])} × ${quote(english[s])}`);
      setText(
        looked,
        ` was written from ${terms.slice(0, 4).join(" + ")}${terms.length > 4 ? " + … " : ". "}` +
          (right
            ? "That is where it comes from."
            : known
              ? `It comes from ${phrase(english, from)}.`
              : ended
                ? ""
                : "From which of them it comes, the dictionary cannot tell."),
      );
      const [ids, values] = [outputs.likeliest, outputs.probabilities].map(({ data }) =>
        data.subarray(5 * t, 5 * t + 5),
      );
      now = { ids, values, logits: outputs.logits.data.subarray(6 * t, 6 * t + 6) };
      fillList(list, [...ids], make, ({ firstChild: line }, id, i) =>
        fillCandidate(line, names[id], [values[i]], [percentOf(values[i])]),
      );
      reach();
    },
  };
}

french.style = `
.french { margin: 0; font-size: var(--size-text); font-weight: 550; line-height: 1.3; }
.french span { display: inline-block; vertical-align: top; margin-right: 2px; text-align: center; }
.french span::after { content: attr(data-gloss); display: block; font-size: var(--size-small);
  font-weight: normal; color: var(--soft); }
.french b { font-weight: inherit; }
.french .off { text-decoration: underline wavy var(--error); }
.french ~ .note:empty { display: none; }
`;
attentionMap.style = `${wordMap.style}
.sides { --right: 1.62fr; }
.asked-of { display: grid; grid-template-columns: minmax(0, 1fr); gap: 4px 28px;
  align-items: start; }
@container widget (min-width: 78rem) {
  .word-map td span { height: 1.25rem; line-height: 1.25rem; }
  .word-map tbody th > :is(button, div) { height: 1.25rem; min-height: 1.25rem; }
}
@container widget (min-width: 53.75rem) { /* so that the longest sentence of the training fits */
  .asked-of { grid-template-columns: minmax(0, 1.6fr) minmax(0, 1fr); }
  .word-map td { font-size: var(--size-small); }
  .word-map td span { width: 1.75rem; }
}
`;
wordsNext.style = `${candidateList.style}
.chosen { max-width: 26.25rem; gap: 8px; }
.chosen .label { margin: 0; }
`;

/** What the tour shows: below each French word the one that it attends to, and what is wrong. */
function translationOf(widget, inputs, outputs) {
  if (!answers(widget, inputs, outputs)) return undefined;
  const { english, rows } = written(widget, inputs, outputs);
  const french = rows.filter(({ ended }) => !ended);
  const words = french.map(({ word }) => word);
  return {
    words,
    below: french.map(({ most, from }) =>
      from[most] ? english.filter((_, s) => from[s]).join(" ") : english[most],
    ),
    faults: faults(widget, english, french),
    lost: leftOut(missing(widget.spec.facts.dictionary, english, words), english),
  };
}

export default live(
  "Translate and see what it attends to, live",
  (ui) => [
    ui.boxed("asked-of", ui.use(sentence, "source", "English sentence"), ui.use(heldOut, "source")),
    ui.sides(
      ui.boxed("side", ui.use(french), ui.use(wordsNext)),
      ui.boxed("side", ui.use(attentionMap), ui.explanation()),
    ),
  ],
  {
    wide: true,
    main: ".mapped",
    answer: ".french",
    tour: (ui) => [ui.use(translated, "Looks back at words:", translationOf)],
  },
);
