import {
  alignment,
  common,
  missing,
  strange,
  surplus,
  wrongWords,
} from "../../live/page/dictionary.js";
import { gloss } from "../../live/page/gloss.js";
import { trains } from "../../live/page/trainer.js";
import { results } from "../../live/ui/boxes.js";
import { toggle } from "../../live/ui/controls.js";
import { AS_IS, h, readOnce, setAttribute, setText } from "../../live/ui/dom.js";
import { wordMap } from "../../live/ui/maps.js";
import { listed, whole } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, heldOut, sentence, translation } from "../../live/ui/sentences.js";
import { gauge, lossCurve, rates, seeds, setting, trainingBar } from "../../live/ui/training.js";

export const program = trains("transformer/translation_trainer_task.js");

const LOOK_EVERY_MS = 1800; // ms
const GOAL = 0.8;
const EOS = 2;

// ---------------------------------------------------------------- the reader's sentence

/** The sentence, its French so far, what is wrong with it, and where each word attends to. */
const viewOf = readOnce(({ spec }, { read, tokens, cross }) => {
  const { dictionary: book, gloss: glosses } = spec.facts;
  const english = Array.from(read.data, (id) => spec.sentences.source[id]);
  const ids = Array.from(tokens.data).filter((id) => id !== EOS);
  const french = ids.map((id) => spec.vocabularies.target[id]);
  const truth = translation({ spec }, english.join(" "));
  const [wrong, origin] = [
    wrongWords(book, truth, english, french),
    alignment(book, english, french),
  ];
  const [meant, S] = [gloss(glosses, french), english.length];
  const extra = surplus(book, english, french);
  return {
    english,
    unknown: strange(book, english, french),
    gone: missing(book, english, french).gone.map((at) => at.map((s) => english[s]).join(" ")),
    truth: truth?.split(" "),
    ended: ids.length < tokens.data.length,
    words: french.map((word, t) => ({
      word,
      meant: meant[t],
      wrong: wrong[t],
      from: english.map((_, s) => (origin[t].includes(s) && !extra[t] ? 1 : 0)),
      shares: cross.data.subarray(t * S, (t + 1) * S),
    })),
  };
});

/** The French as it is now, with its English word for word; wrong words are marked. */
function french(widget) {
  const steps = h("span.label");
  const line = h("ol.french", { lang: "fr", "aria-label": "French" });
  const verdict = h("p.note", { role: "status" });
  return {
    element: results("column", steps, line, verdict),
    shows: "outputs",
    update(_inputs, { losses }) {
      const { words, ended } = viewOf(widget);
      const trained = losses.data.length;
      setText(
        steps,
        `In French, ${trained ? `after ${whole(trained)} steps` : "before any training"}:`,
      );
      const end = ended ? { word: "—", meant: "it ends at once" } : { word: "…", meant: "no end" };
      const shown = ended && words.length ? words : [...words, end];
      fillList(
        line,
        shown,
        () => h("li", AS_IS, h("b"), " ", h("i", { lang: "en" })),
        (li, { word, meant, wrong }) => {
          setText(li.children[0], word);
          setText(li.children[1], meant);
          setAttribute(li, "class", wrong ? "amiss" : "");
        },
      );
      verdict.replaceChildren(...judgement(viewOf(widget)), ...hint(viewOf(widget)));
    },
  };
}
french.style = `
.french { display: flex; flex-wrap: wrap; gap: 2px 10px; list-style: none; margin: 0; padding: 0; }
.french b { display: block; font-weight: 550; line-height: 1.5; }
.french i { display: block; font-size: var(--size-small); line-height: 1.25; color: var(--soft); }
.french .amiss b { text-decoration: underline wavy var(--error) 1.5px; text-underline-offset: 4px;
  text-decoration-skip-ink: none;
  background: color-mix(in oklab, var(--ground), var(--error) 18%); border-radius: 4px; }
.lost { text-decoration: underline 1.5px; text-underline-offset: 4px; color: var(--text); }
`;

/** What its training sentences had, and the reader's has not. */
function hint({ english }) {
  return english.at(-1) === "." ? [] : [" All sentences that it learns from end with “.”."];
}

/** The correct French, and which of its words are missing. */
function judgement({ words, truth, ended, unknown, gone }) {
  if (!truth) {
    if (unknown[0]) return ["Not judged: the dictionary does not know all of these words."];
    if (unknown[1]) return ["What it writes is no French yet."];
    const wrong = words.filter((one) => one.wrong).length;
    const found = wrong === 1 ? "One word is" : `${wrong} words are`;
    const parts = [
      ...(wrong ? [`${found} too many or in the wrong place.`] : []),
      ...(gone.length ? [`Nothing translates ${listed(gone.map((of) => `“${of}”`))}.`] : []),
    ];
    return [parts.join(" ") || "No word is missing, too many, or in the wrong place."];
  }
  const heard = words.map(({ word }) => word);
  if (ended && heard.join(" ") === truth.join(" ")) return ["Correct, word for word."];
  const kept = new Set(common(heard, truth).values());
  const right = truth.map((word, i) => (kept.has(i) ? word : h("span.lost", word)));
  return ["Correct is: ", h("span", { lang: "fr" }, ...right.flatMap((word) => [word, " "]))];
}

/** The cross-attention as it grows into the alignment: a row for each French word. */
function crossing(widget) {
  const map = wordMap({
    label: "what each French word attends to",
    lang: "fr",
    key: "the English word that it translates; ✓ if its largest weight is there",
  });
  return {
    element: map.element,
    shows: "outputs",
    update() {
      const { english, words } = viewOf(widget);
      map.fill({ title: "What each French word attends to", across: english, rows: words });
    },
  };
}
crossing.style = `${wordMap.style}
.french { min-height: 7.6em; align-content: flex-start; }
@container widget (max-width: 53.6875rem) { .mapped { min-height: 35rem; } }
@container widget (max-width: 32.5rem) { .word-map td span { width: 1.125rem; font-size: 0; } }
@container widget (min-width: 53.75rem) {
  .row > .toggle { align-self: end; }
  input.line { font-size: var(--size-note); }
  .sides { --left: 1fr; --right: 1.15fr; }
  .grown { min-height: 31.25rem; }
  .word-map td span { height: 1.1875rem; line-height: 1.1875rem; }
  .word-map tbody th > :is(button, div) { height: 1.1875rem; min-height: 1.1875rem; }
}
`;

// ---------------------------------------------------------------- the held-out sentences

const GAUGES = [
  { name: "exact", label: "translated exactly", goal: GOAL },
  { name: "bleu", label: "BLEU", goal: undefined },
  { name: "aligned", label: "largest weight on the correct word", goal: undefined },
];

/** How the sentences are translated that the model does not learn from. */
function heldOutGauges({ spec }) {
  const gauges = GAUGES.map(({ name, label, goal }) => {
    const own = gauge(label, { goal });
    setAttribute(own.element, "data-output", name);
    return { name, element: own.element, set: own.set };
  });
  const title = `${spec.facts.sizes.held} held-out sentences; the line is at ${100 * GOAL}\u00a0%`;
  return {
    element: h("div.column", h("span.label", title), ...gauges.map(({ element }) => element)),
    shows: "outputs",
    update(_inputs, outputs) {
      for (const { name, element, set } of gauges) {
        const [share] = outputs[name].data;
        /** @type {any} */ (element).values = [share];
        set(share);
      }
    },
  };
}
heldOutGauges.style = gauge.style;

// ---------------------------------------------------------------- the run

const called = (widget) => (inputs) =>
  [
    widget.spec.facts.training.forms[inputs.form],
    ...(inputs.shuffled ? ["shuffled"] : []),
    ...(inputs.rate === 1 ? [] : [`rate × ${inputs.rate}`]),
    `seed ${inputs.seed}`,
  ].join(", ");

const bar = Object.assign(
  (widget) => {
    return trainingBar(widget, { chunkMs: LOOK_EVERY_MS });
  },
  { style: trainingBar.style },
);

/** Whether each sentence is to become the translation of another one. */
const shuffling = (widget) =>
  toggle(widget, "shuffled", "shuffle the translations", (next) => {
    next.steps = 0;
  });

const curve = Object.assign(
  (widget) => {
    const words = widget.spec.vocabularies.target.length;
    const uniform = Math.log(words);
    return lossCurve(widget, {
      top: 7,
      height: 150,
      name: called(widget),
      title: "mean loss (left), translated exactly (right)",
      second: ({ valid }) => valid.data[0],
      shares: { names: ["translated exactly"], read: ({ exact }) => [exact.data[0]] },
      rules: () => [[uniform, `ln ${words}: all words alike`]],
    });
  },
  { style: lossCurve.style },
);

export default live(
  "Train a Transformer to translate",
  (ui) => {
    const { use } = ui;
    return [
      ui.row(
        use((own) => setting(own, "form", "model", own.spec.facts.training.forms)),
        use((own) => rates(own)),
        use(shuffling),
      ),
      use(bar),
      ui.sides(
        ui.boxed(
          "side",
          ui.column(
            use(sentence, "source", "English sentence", undefined, { ids: false }),
            use(heldOut, "source"),
          ),
          use(curve),
          use(heldOutGauges),
          use(seeds),
        ),
        ui.boxed("side grown", use(french), use(crossing)),
      ),
    ];
  },
  { wide: true },
);
