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
import { results, scroller } from "../../live/ui/boxes.js";
import { toggle } from "../../live/ui/controls.js";
import { AS_IS, h, readOnce, setAttribute, setText } from "../../live/ui/dom.js";
import { gauge } from "../../live/ui/gauge.js";
import { wordMap } from "../../live/ui/maps.js";
import { listed, percent, whole } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, heldOut, sentence, translation } from "../../live/ui/sentences.js";
import {
  lossCurve,
  pastOf,
  rates,
  reachedIn,
  seeds,
  setting,
  settings,
  trainingBar,
} from "../../live/ui/training.js";

export const program = trains("transformer/translation_trainer_task.js");

const LOOK_EVERY_MS = 1800; // ms
const GOAL = 0.8;
const EOS = 2;
const FRAMES = [0, 100, 250, 500, 1000, 2000]; // steps whose translations are kept

// ---------------------------------------------------------------- the reader's sentence

/** The sentence, its French now, what is wrong with it, and where each word attends to. */
const readNow = readOnce(({ spec }, { read, tokens, cross }) => {
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

const isCorrect = ({ words, truth, ended }) =>
  Boolean(truth) && ended && words.map(({ word }) => word).join(" ") === truth.join(" ");

/** Of this sentence, what was kept of the run: at the first look at, or after, each of FRAMES. */
function filmOf(widget) {
  const past = pastOf(widget);
  const { snapshots, steps, known } = past;
  const view = readNow(widget);
  const sentence = view.english.join(" ");
  const own = () => snapshots.filter((one) => one.sentence === sentence);
  const frame = FRAMES.filter((at) => at <= steps).length;
  const fresh = known && !widget.model.get("unfinished");
  if (fresh && !own().some((one) => one.frame === frame))
    snapshots.push({ frame, steps, sentence, view });
  return own();
}

/** What is shown: what the reader looks back at, or what is now. */
function viewOf(widget) {
  const { chosen } = pastOf(widget);
  const kept = filmOf(widget).find(({ steps }) => steps === chosen);
  return kept ? { ...kept.view, steps: kept.steps } : { ...readNow(widget), steps: undefined };
}

/** The translations of the sentence while the training goes on; each can be looked back at. */
function film(widget) {
  const strip = h("ol.film", { "aria-label": "translations so far" });
  const look = (steps) => {
    const past = pastOf(widget);
    past.chosen = past.chosen === steps ? undefined : steps;
    widget.repaint("outputs");
  };
  return {
    element: results("film-box", scroller({}, strip)),
    shows: "outputs",
    update() {
      const frames = filmOf(widget);
      const { chosen } = pastOf(widget);
      const empty = FRAMES.slice(frames.at(-1)?.frame ?? 0).map((steps) => ({ steps }));
      const last = frames.findLastIndex(({ view }) => isCorrect(view));
      fillList(
        strip,
        [...frames, ...empty],
        () => {
          const button = h("button", h("span.when"), h("span", { lang: "fr", ...AS_IS }));
          button.addEventListener("click", () => look(Number(button.dataset.steps)));
          return h("li", button);
        },
        ({ firstElementChild: button }, { steps, view }, i) => {
          const right = view && isCorrect(view);
          setAttribute(button, "data-steps", String(steps));
          setAttribute(button, "aria-pressed", String(view !== undefined && chosen === steps));
          setAttribute(button, "class", i === last ? "right" : "");
          button.disabled = !view;
          setText(
            button.children[0],
            `${view ? "" : "from "}step ${whole(steps)}${right ? " ✓" : ""}`,
          );
          const said = view?.words.map(({ word }) => word).join(" ") ?? "";
          setText(button.children[1], view ? said || "—" : "");
        },
      );
    },
  };
}
film.style = `
.film { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 6px;
  list-style: none; margin: 0; padding: 1px; }
.film button { display: grid; align-content: start; width: 100%; height: 4.375rem; padding: 3px 7px;
  text-align: left; font-size: var(--size-small); line-height: 1.3; overflow: hidden; }
.film [lang] { max-height: 3lh; overflow: hidden; }
@container widget (max-width: 32.5rem) {
  .film { grid-template-columns: repeat(${FRAMES.length}, 8.5rem); width: max-content; }
}
.film button:disabled { opacity: 1; border-style: dashed; color: var(--soft); }
.film .when { color: var(--soft); font-variant-numeric: tabular-nums; }
.film .right { border: 2px solid var(--probability); }
.film .right .when { color: var(--probability); font-weight: 650; }
.film [aria-pressed=true] { background: color-mix(in oklab, var(--ground), var(--accent) 14%); }
`;

/** The French as it is shown, with its English word for word; wrong words are marked. */
function french(widget) {
  const steps = h("span.label");
  const line = h("ol.french", { lang: "fr", "aria-label": "French" });
  const verdict = h("p.note", { role: "status" });
  return {
    element: results("column", steps, line, verdict),
    shows: "outputs",
    update(_inputs, { losses }) {
      const view = viewOf(widget);
      const { words, ended } = view;
      const trained = view.steps ?? losses.data.length;
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
      setAttribute(verdict, "aria-live", widget.streams ? "off" : "polite");
      verdict.replaceChildren(...judgement(view), ...hint(view));
    },
  };
}
french.style = `
.french { display: flex; flex-wrap: wrap; gap: 2px 10px; list-style: none; margin: 0; padding: 0; }
.french b { display: block; font-weight: 550; line-height: 1.75; }
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
  if (isCorrect({ words, truth, ended })) return ["Correct, word for word."];
  const kept = new Set(common(heard, truth).values());
  const right = truth.map((word, i) => (kept.has(i) ? word : h("span.lost", word)));
  return ["Correct is: ", h("span", { lang: "fr" }, ...right.flatMap((word) => [word, " "]))];
}

/** The cross-attention as it grows into the alignment: a row for each French word. */
function crossing(widget) {
  const map = wordMap({
    label: "what each French word attends to",
    lang: "fr",
    key: "its English word; ✓ if most weight is there",
  });
  return {
    element: map.element,
    shows: "outputs",
    update(_inputs, { losses }) {
      const { english, words, steps = losses.data.length } = viewOf(widget);
      const title = `What each French word attends to${steps ? "" : ", not trained yet"}`;
      map.fill({ title, across: english, rows: words });
    },
  };
}
crossing.style = `${wordMap.style}
.word-map tbody td { box-shadow: inset 0 0 0 .5px var(--line); }
.success { --room: 2; --room-on-phones: 4; }
.board { display: flex; flex-direction: column; gap: 14px; }
.outcome { display: contents; }
.outcome > :last-child, .board > .film-box ~ * { order: 2; } /* so that the film is above the map */
.film-box { order: 1; min-width: 0; }
.french { min-height: 7.6em; align-content: flex-start; }
@container widget (max-width: 53.6875rem) { .mapped { min-height: 35rem; } }
@container widget (max-width: 32.5rem) { .word-map td span { width: 1.125rem; font-size: 0; } }
@container widget (min-width: 53.75rem) {
  .row > .toggle { align-self: end; }
  input.line { font-size: var(--size-note); }
  .frame, .board { gap: 10px; }
  .board { display: grid; column-gap: 28px; align-items: start;
    grid-template: "sentence outcome" "film outcome" "curve outcome" "gauges gauges"
      "settings settings" / minmax(0, 1.12fr) minmax(0, 1fr); }
  .board > :nth-child(1) { grid-area: sentence; }
  .board > .outcome { display: flex; flex-direction: column; grid-area: outcome; gap: 10px;
    min-height: 32.5rem; }
  .board > .film-box { grid-area: film; }
  .board > :nth-child(4) { grid-area: gauges; }
  .board > :nth-child(5) { grid-area: curve; }
  .board > .settings { grid-area: settings; }
  .french { min-height: 6.9em; }
  .word-map td span { width: clamp(1.6875rem, 2.8cqi, 1.875rem); }
  .french b { font-size: var(--size-note); }
  .word-map td span { height: .9375rem; line-height: .9375rem; }
  .word-map tbody th > :is(button, div) { height: .9375rem; min-height: .9375rem; }
}
`;

// ---------------------------------------------------------------- the held-out sentences

const GAUGES = [
  { name: "exact", label: "translated exactly", goal: GOAL },
  { name: "bleu", label: "BLEU", goal: undefined },
  { name: "aligned", label: "weight on the correct word", goal: undefined },
];

/** How the sentences are translated that the model does not learn from. */
function heldOutGauges(widget) {
  const { spec } = widget;
  const gauges = GAUGES.map(({ name, label, goal }) => {
    const own = gauge(label, { goal });
    setAttribute(own.element, "data-output", name);
    return { name, element: own.element, set: own.set };
  });
  const { held } = spec.facts.sizes;
  const label = `of ${held} held-out sentences; the line is at ${100 * GOAL}\u00a0%`;
  return {
    element: h(
      "div.gauges",
      { role: "group", "aria-label": label },
      ...gauges.map(({ element }) => element),
    ),
    shows: "outputs",
    update(_inputs, outputs) {
      for (const { name, element, set } of gauges) {
        const [share] = outputs[name].data;
        /** @type {any} */ (element).values = [share];
        set(share, name === "exact" && reachedIn(widget).some((one) => one.name === "goal"));
      }
    },
  };
}
heldOutGauges.style = `${gauge.style}
.gauges { display: grid; gap: 4px 28px; }
@container widget (min-width: 53.75rem) {
  .gauges { grid-template-columns: repeat(3, auto); }
  .gauges .gauge { grid-template-columns: auto minmax(4rem, 1fr) 5em; }
  .gauges .label { white-space: nowrap; }
}
`;

// ---------------------------------------------------------------- the run

const called = (widget) => (inputs) =>
  [
    widget.spec.facts.training.forms[inputs.form],
    ...(inputs.shuffled ? ["shuffled"] : []),
    ...(inputs.rate === 1 ? [] : [`rate × ${inputs.rate}`]),
    `seed ${inputs.seed}`,
  ].join(", ");

/** What starts it, and what it says when it translates. */
function bar(widget) {
  const { held } = widget.spec.facts.sizes;
  return trainingBar(widget, {
    chunkMs: LOOK_EVERY_MS,
    success: {
      goal:
        `The goal: ${100 * GOAL}\u00a0% of ${held} sentences that it does not learn from ` +
        "are translated exactly.",
      milestones: [
        {
          name: "sentence",
          flag: "this sentence",
          when: () => isCorrect(readNow(widget)),
          message: (crossed) =>
            `${crossed}: this sentence was translated correctly, word for word.`,
        },
        {
          name: "goal",
          flag: `${100 * GOAL}\u00a0% exact`,
          when: (_inputs, { exact }) => exact.data[0] >= GOAL,
          message: (crossed, { exact }) =>
            `${crossed}: ${percent(exact.data[0])} of the ${held} new sentences were ` +
            "translated exactly.",
        },
      ],
      now: ({ exact }) => `${percent(exact.data[0])} of the new sentences are translated exactly.`,
      next: ({ form, shuffled }, reached) =>
        reached && !form && !shuffled
          ? [
              ["no mask", { form: 1 }],
              ["shuffled translations", { shuffled: true }],
            ]
          : [["the whole model", { form: 0, rate: 1, shuffled: false }]],
      read: ({ exact, bleu, aligned }) => [exact.data[0], bleu.data[0], aligned.data[0]],
    },
  });
}
bar.style = trainingBar.style;

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
      height: 85,
      name: called(widget),
      title: "mean loss (left), translated exactly (right)",
      second: ({ valid }) => valid.data[0],
      shares: {
        names: ["translated exactly"],
        kinds: ["exact"],
        read: ({ exact }) => [exact.data[0]],
      },
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
      use(bar),
      ui.boxed(
        "board",
        ui.column(
          use(sentence, "source", "English sentence", undefined, { ids: false }),
          use(heldOut, "source"),
        ),
        ui.boxed("outcome", use(french), use(crossing)),
        use(film),
        use(heldOutGauges),
        use(curve),
        use(
          settings,
          use((own) => setting(own, "form", "model", own.spec.facts.training.forms)),
          use((own) => rates(own)),
          ui.column(use(shuffling), use(seeds)),
        ),
      ),
    ];
  },
  { wide: true },
);
