import { uniform } from "../../live/page/chance.js";
import { topK } from "../../live/page/search.js";
import { offers, redraw } from "../../live/ui/controls.js";
import { h, setAttribute, setLength, setText, notifyPage } from "../../live/ui/dom.js";
import { chance, explainable, rove, sum } from "../../live/ui/explain.js";
import { knob } from "../../live/ui/knobs.js";
import { appear, isCalm } from "../../live/ui/motion.js";
import { percent, whole } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { plane, through } from "../../live/ui/plot.js";
import { fillList, text, visible } from "../../live/ui/sentences.js";
import { isToured } from "../../live/ui/widget.js";

/** What torch does in a kernel, in compute() of time_machine.py. */
export async function program(
  run,
  { prompt, step, seed },
  {
    limits: {
      L: [L],
      D: [D],
    },
    facts,
    outputs,
  },
  partly = (_make, _now) => {},
) {
  const none = { dims: [L, 0, D], data: new Float32Array(0) };
  let [token, cached_keys, cached_values] = [prompt, none, none];
  let first; // what the first character is drawn from
  const written = [];
  for (const u of uniform(seed, Number(outputs.written))) {
    const output = await run("time_machine-go_on", {
      index: step,
      token,
      u,
      cached_keys,
      cached_values,
    });
    if (!first) {
      const { logits: next_logits, probabilities: next } = output;
      const usual = [facts.unigram, facts.bigram[prompt.at(-1)]];
      first = { next_logits, next, ...(await run("time_machine-compare", { p: next, usual })) };
    }
    token = [Number(output.drawn.data[0])];
    [cached_keys, cached_values] = [output.now_keys, output.now_values];
    written.push(token[0]);
    const begun = written.length === 1; // what is likely after the prompt is known from here on
    partly(() => ({ which: step, given: prompt, ...first, written }), begun);
  }
  return { which: step, given: prompt, ...first, written };
}

/** Where snapshot i stands in a drawing: they are evenly apart, as on the slider. */
const acrossTime = (i, count) => `${((100 * i) / (count - 1)).toFixed(2)}%`;
const inShort = (steps) => (steps < 1000 ? String(steps) : `${steps / 1000}k`);
const afterSteps = (steps) =>
  steps === 0 ? "before training" : `after ${whole(steps)} step${steps === 1 ? "" : "s"}`;

const READ_MS = 2200; // ms: a text that is whole stays for so long before the next one comes
const READ_IN_TOUR_MS = 600; // ms, and so much more for each snapshot: letters need no reading
const MORE_TO_READ_MS = 80;

/** Whether all of the text is there that the chosen snapshot writes. */
const isWhole = (widget) =>
  widget.readOutputs().which.data[0] === widget.inputs.step &&
  !(widget.behind || widget.model.get("unfinished"));

/**
 * The slider through time: every stop is a snapshot. A button plays it from the first one, each
 * text as a whole; for a reader who wants no motion, each press shows the next.
 */
function timeSlider(widget) {
  const { steps } = widget.spec.facts;
  const last = steps.length - 1;
  const offer = isCalm() ? "Step" : "Play";
  const toured = isToured(widget.model); // then the first one is seen before
  const stay = (step) => (toured ? READ_IN_TOUR_MS + MORE_TO_READ_MS * step : READ_MS);
  let [begun, timer] = [toured, 0];
  let playing = ""; // the inputs that it has made last
  const go = (to) => {
    begun = true;
    widget.edit("step", (next) => {
      next.step = to;
    });
  };
  const plays = (on) => {
    widget.stream(on, on);
    if (toured) notifyPage(widget, { what: "film", plays: on });
  };
  const stop = () => {
    clearTimeout(timer);
    if (playing) plays(false);
    [playing, timer] = ["", 0];
    setText(play, offer);
  };
  const show = (to) => {
    timer = 0;
    playing = JSON.stringify({ ...widget.inputs, step: to });
    go(to);
    follow();
  };
  const follow = () => {
    const { step } = widget.inputs;
    if (!play.isConnected || JSON.stringify(widget.inputs) !== playing) stop();
    else if (isWhole(widget) && step === last) stop();
    else if (isWhole(widget)) timer ||= setTimeout(() => show(step + 1), stay(step));
  };
  const slider = knob(widget, "step", toured ? "rounds of practice" : "training step", {
    slide: (to) => {
      stop();
      go(to);
    },
    describe: (step) => (toured ? whole(steps[step]) : afterSteps(steps[step])),
  });
  const press = () => {
    const from = begun ? widget.inputs.step + 1 : 0;
    const to = from > last ? 0 : from;
    if (playing) stop();
    else if (isCalm()) go(to);
    else {
      setText(play, "Pause");
      plays(true);
      show(to);
    }
  };
  const play = h("button.play", { "data-input": "step", click: press }, offer);
  const ticks = steps.map((step, i) =>
    h(
      "button",
      {
        tabindex: "-1",
        "data-input": "step",
        "aria-hidden": "true",
        style: `left: ${acrossTime(i, steps.length)}`,
        click: () => {
          stop();
          go(i);
        },
      },
      inShort(step),
    ),
  );
  slider.called.append(play);
  if (!toured) slider.element.append(h("div.stops", ...ticks));
  return {
    element: h("div.time", slider.element),
    reset() {
      stop();
      begun = false;
    },
    update(inputs) {
      slider.update(inputs);
      if (playing) follow();
      const { step } = inputs;
      ticks.forEach((tick, i) => tick.classList.toggle("chosen", i === step));
    },
  };
}

/** Prompts to choose from. */
const offeredPrompts = (widget) =>
  offers(widget, "prompt", "or one of these:", widget.spec.facts.prompts);

/**
 * What it writes after the prompt; a new draw is the same model with other luck. A letter that the
 * snapshot before has written in the same place stays, and others fade in over it.
 */
function continuation(widget) {
  const { steps } = widget.spec.facts;
  const tokens = widget.spec.sentences.prompt;
  const given = h("span.given");
  const own = h("span.own");
  const when = h("span.label", { role: "status" });
  const luck = h("span.luck");
  const toured = isToured(widget.model);
  const drawn = toured ? [] : [h("span.drawn", luck, redraw(widget, "New draw"))];
  let done; // the outputs of the last snapshot that were told of
  return {
    element: h(
      "section.column",
      h("div.line", when, ...drawn),
      h(
        "p.page-of",
        { dir: "auto", "data-output": "", role: "group", "aria-label": "what it writes" },
        given,
        own,
      ),
    ),
    update({ prompt, step, seed }, { which, given: before, written }) {
      const letters = Array.from(written.data, (id) => tokens[id]);
      const text = Array.from(before.data, (id) => tokens[id]).join("");
      const known = which.data[0] === step && text === prompt ? letters.length : 0;
      const since = toured ? `after ${whole(steps[step])} rounds` : afterSteps(steps[step]);
      setText(when, `It writes, ${since}`);
      setText(luck, `draw ${seed}`);
      setText(given, prompt);
      // what is on its way leaves the letters of before, pale, where none has come yet
      const older = [...own.children].slice(letters.length).map((span) => span.textContent);
      const shown = isWhole(widget) || !known ? letters : [...letters, ...older];
      fillList(own, shown, "span", (span, letter, i) => {
        const pale = known <= i;
        if (span.textContent !== letter) {
          setText(span, letter);
          if (!pale) appear([span], FADE_MS);
        }
        span.classList.toggle("old", pale);
      });
      const outputs = widget.model.get("outputs");
      if (step !== steps.length - 1 || !isWhole(widget) || done === outputs) return;
      done = outputs;
      notifyPage(widget, { what: "last", prompt, text: letters.join("") });
    },
  };
}

const FADE_MS = 500; // ms: a letter of another snapshot appears

const CANDIDATES = 8;

/**
 * The likeliest next characters, beside how often they come after the prompt's last one, and at
 * all.
 */
function nextCharacters(widget) {
  const { facts } = widget.spec;
  const tokens = widget.spec.sentences.prompt;
  const kinds = ["model", "single", "pair"];
  const heads = [h("td"), ...kinds.map((kind) => h("th", { scope: "col", class: kind }))];
  const body = h("tbody");
  const shared = h(
    "tr.shared",
    { "data-output": "overlaps" },
    h("th", { scope: "row", colspan: "2" }, "in common with the model"),
    ...kinds.slice(1).map(() => h("td.share-of")),
  );
  let now; // ids of the likeliest, logits of all, and probabilities of all by column
  const barsOf = (...columns) =>
    [...body.rows].flatMap((row) => columns.map((k) => row.cells[k + 1].firstChild));
  const make = (i) => {
    const cells = kinds.map((kind) => {
      const parts = [h("span.bar", h("i")), h("span.share")];
      return h("td", { class: kind }, ...parts);
    });
    const rule = () => {
      const what = `Probability of “${visible(tokens[now.ids[i]])}”:`;
      return chance(what, now.logits, now.ids[i], barsOf(0));
    };
    explainable(widget, cells[0], rule, () => now.columns[0][now.ids[i]]); // others are counts
    return h("tr", h("th", { scope: "row" }), ...cells);
  };
  [1, 2].forEach((k) => {
    explainable(widget, shared.cells[k], () => {
      const least = Array.from(now.columns[0], (p, id) => Math.min(p, now.columns[k][id]));
      const terms = least.sort((a, b) => b - a).map((share) => [share]);
      const what = "In common: of each character the smaller of both probabilities, added up:";
      return sum(what, terms, undefined, { unit: "%", lit: [{ cells: barsOf(0, k) }] });
    });
  });
  const caption = h("caption", "The next character, of each 100");
  const table = h(
    "table.next-table",
    caption,
    h("thead", h("tr", ...heads)),
    body,
    h("tfoot", shared),
  );
  const reach = rove(table);
  return {
    element: h("section.column", { "data-output": "" }, table),
    shows: "outputs",
    update(inputs, { which, given, next: { data: next }, next_logits: logits, overlaps }) {
      const before = given.data.at(-1);
      setText(heads[1], `the model, ${afterSteps(facts.steps[which.data[0]])}`);
      setText(heads[2], "in the text, anywhere");
      setText(heads[3], `in the text, after “${visible(tokens[before])}”`);
      const columns = [next, facts.unigram, facts.bigram[before]];
      const ids = topK(next, CANDIDATES);
      now = { ids, columns, logits: logits.data };
      const most = Math.max(...columns.flatMap((column) => ids.map((id) => column[id])), 0.25);
      fillList(body, ids, make, (row, id) => {
        setText(row.firstChild, visible(tokens[id]));
        columns.forEach((column, k) => {
          const [bar, share] = row.children[k + 1].children;
          setLength(bar.firstChild, column[id] / most);
          setAttribute(bar, "data-value", String(column[id]));
          const count = 100 * column[id];
          setText(share, count === 0 ? "0" : count < 0.05 ? "<0.1" : count.toFixed(1));
        });
      });
      Array.from(overlaps.data, (share, k) => {
        setText(shared.children[k + 1], percent(share));
        setAttribute(shared.children[k + 1], "data-value", String(share));
      });
      reach();
    },
  };
}

/** The validation loss at every snapshot; who knows frequencies alone stays at a line. */
function lossCurve(widget) {
  const { steps, losses } = widget.spec.facts;
  const { loss } = widget.spec.facts.curves;
  const [low, high] = [Math.floor(2 * Math.min(...loss)) / 2, Math.ceil(2 * Math.max(...loss)) / 2];
  const whole = Array.from({ length: high - low + 1 }, (_, i) => Math.ceil(low) + i);
  const plot = plane({
    name: "loss-plot",
    x: [0, loss.length - 1],
    y: [low, high],
    height: 116,
    ticks: { y: whole.filter((y) => y <= high) },
    grid: { y: [] },
    paths: ["curve"],
  });
  setAttribute(plot.paths.curve, "d", through([...loss.entries()]));
  plot.rule("y", "level", losses.unigram, `frequencies alone: ${losses.unigram.toFixed(2)}`);
  plot.rule("y", "level", losses.bigram, `pairs alone: ${losses.bigram.toFixed(2)}`);
  loss.forEach((value, i) => plot.spot("spot small")(i, value));
  const here = h("span.moment.spot", h("b"));
  plot.element.append(here);
  const message = h("p.note.says", { role: "status" });
  return {
    element: h(
      "section.column",
      h("span.label", "Validation loss, in nats for each character"),
      plot.element,
      message,
    ),
    shows: "inputs",
    update({ step }) {
      plot.put(here, step, loss[step]);
      setText(here.firstChild, loss[step].toFixed(2));
      here.classList.toggle("late", step > loss.length / 2);
      const rank =
        loss[step] < losses.bigram
          ? "lower than with the frequencies of all pairs, so it uses more than the last character"
          : loss[step] < losses.unigram
            ? "lower than with the frequencies of characters alone, but not than with those of " +
              "pairs"
            : "higher than with the frequencies of characters alone";
      setText(
        message,
        `${afterSteps(steps[step])[0].toUpperCase()}${afterSteps(steps[step]).slice(1)} the ` +
          `loss is ${loss[step].toFixed(2)}, perplexity ${Math.exp(loss[step]).toFixed(1)}: ` +
          `${rank}.`,
      );
    },
  };
}

/** In the tour: among how many signs it hesitates, as the loss of each snapshot has it. */
function doubts(widget) {
  const letters = widget.spec.facts.curves.loss.map(Math.exp);
  const all = widget.spec.sentences.prompt.length;
  const message = h("p.label.doubts");
  return {
    element: message,
    shows: "inputs",
    update({ step }) {
      const many = Math.round(letters[step]);
      setText(message, `It hesitates between about ${many} of ${all} letters and signs`);
    },
  };
}
doubts.style = ".doubts { margin: 0; min-height: 1lh; }";

const ABILITIES = [
  [
    "unigram",
    "how often each character comes",
    "in common with these frequencies; less again as it learns more",
  ],
  [
    "bigram",
    "which character follows which",
    "in common with the frequencies after the character before",
  ],
  ["words", "words", "of the words that it writes, those in the training text"],
  [
    "agreement",
    "thou art, I am, he is",
    "pairs like “thou art / thou are”: how often the right one is likelier (chance: 50 %)",
  ],
];

/** What is learnt when: one small curve for each ability. */
function abilities(widget) {
  const { curves } = widget.spec.facts;
  const rows = ABILITIES.map(([name, label, about]) => {
    const shares = curves[name];
    const [low, high] = [Math.min(...shares), Math.max(...shares)];
    const plot = plane({
      name: "spark",
      x: [0, shares.length - 1],
      y: [low, Math.max(high, low + 1e-9)],
      height: 34,
      paths: ["curve"],
    });
    setAttribute(plot.paths.curve, "d", through([...shares.entries()]));
    const put = plot.spot("spot");
    const value = h("b.value");
    const element = h(
      "li",
      h("span.what", h("b", label), h("span.about", about)),
      plot.element,
      value,
    );
    return { element, shares, value, follow: (step) => put(step, shares[step]) };
  });
  return {
    element: h(
      "section.column",
      h("span.label", "What it can do by then"),
      h("ol.abilities", ...rows.map(({ element }) => element)),
    ),
    shows: "inputs",
    update({ step }) {
      rows.forEach(({ shares, value, follow }) => {
        follow(step);
        setText(value, percent(shares[step]));
        setAttribute(value, "data-value", String(shares[step]));
      });
    },
  };
}

timeSlider.style = `
/* The stops stand below the track, as wide as it is. */
.time .knob { max-width: none; grid-template: "label value" auto "track track" auto
  "stops stops" auto "about about" auto / minmax(0, 1fr) 8.5em; }
@container widget (min-width: 53.75rem) {
  .frame { padding-block: 9px; }
  .frame, .side { gap: 7px; }
  .time .knob { grid-template: "label track value about" auto ". stops . ." auto
    / auto 1fr 10.5em 4.25rem; }
}
.line { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center;
  justify-content: space-between; }
.time b { flex: 1; }
.stops { grid-area: stops; position: relative; height: 1.75rem; margin: 0 8px; } /* half a thumb */
.stops button { position: absolute; transform: translateX(-50%); border: 0; padding: 0;
  font-size: var(--size-small); color: var(--soft); font-variant-numeric: tabular-nums; }
.stops button:first-child { transform: translateX(-8px); text-align: left;
  } .stops button:last-child { transform: translateX(calc(8px - 100%)); text-align: right; }
.stops .chosen { color: var(--accent); font-weight: 650; }
.play { min-width: 4.125rem; }
@media (max-width: 37.5rem) { .stops button { font-size: var(--size-small); letter-spacing: -.4px;
  } .stops button:nth-child(even):not(.chosen, :last-child),
  .stops button:nth-last-child(2):not(.chosen), .stops .chosen + button,
  .stops button:has(+ .chosen) { visibility: hidden; } }
`;
continuation.style = `
.sides { --left: 1fr; --right: 1.2fr; }
textarea.line { min-height: 3.125rem !important; }
.drawn { display: flex; gap: 10px; align-items: center; }
.luck { color: var(--soft); font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.page-of { margin: 0; padding: 10px 14px; height: 10lh; overflow-y: auto;
  border: 1px solid var(--line); border-radius: 8px; white-space: pre-wrap;
  overflow-wrap: anywhere; font: var(--size-text)/1.5 var(--mono);
  background: color-mix(in oklab, var(--ground), var(--line) 14%); }
@container widget (min-width: 53.75rem) {
  .page-of { padding-block: 6px; font-size: var(--size-note); }
}
.page-of .given { color: var(--soft); }
.page-of .own { color: var(--text); }
.page-of .old { opacity: .35; }
`;
nextCharacters.style = `
.next-table { width: 100%; table-layout: fixed; }
.next-table caption { white-space: normal; }
.next-table th { max-width: none; }
.next-table thead th { text-align: left; font-size: var(--size-small); line-height: 1.25;
  white-space: normal; vertical-align: bottom; padding: 2px 10px 4px 0; }
.next-table tr > :first-child { width: 4.75rem; }
.next-table tbody th { color: var(--text); font-weight: 600; font-size: var(--size-note);
  padding-right: 10px;
  }
.next-table td { padding: 1px 10px 1px 0; }
.next-table td .bar { display: inline-block; vertical-align: middle; width: calc(100% - 2.75rem);
  height: .75rem; }
.next-table td i { display: block; height: 100%; min-width: 1px; border-radius: 2px;
  background: var(--tone); }
.next-table .share { display: inline-block; width: 2.5rem; text-align: right;
  font-size: var(--size-small); }
.model { --tone: var(--blue); } .pair { --tone: var(--vermilion);
  } .single { --tone: var(--olive); }
.shared td { font-weight: 600; font-size: var(--size-note); text-align: right; padding-top: 5px;
  padding-right: 14px; }
.next-table .shared th { white-space: normal; line-height: 1.2; text-align: left; padding-top: 5px;
  overflow: visible; }
@container widget (min-width: 53.75rem) { .next-table tr > :first-child { width: 7rem; } }
@media (max-width: 37.5rem) {
  .next-table .shared th { font-size: var(--size-small); padding-right: 0; }
  .next-table tr > :first-child { width: 3.625rem; }
  .next-table td { padding-right: 6px; } .next-table thead th { padding-right: 6px;
    font-size: var(--size-small); }
  .next-table td .bar { width: calc(100% - 2.125rem); } .next-table .share { width: 2rem;
    font-size: var(--size-small); }
}
`;
lossCurve.style = `${plane.style}
.plane:is(.loss-plot, .spark) svg { overflow: visible; }
@container widget (min-width: 53.75rem) { .plane.loss-plot { margin-top: 8px; } }
.rule.level { --tone: var(--vermilion); }
.moment { z-index: 1; }
.moment b { position: absolute; right: 15px; top: 2px; font-size: var(--size-note);
  font-variant-numeric: tabular-nums; padding: 0 3px; border-radius: 4px;
  background: color-mix(in oklab, var(--ground) 75%, transparent); }
.moment:not(.late) b { right: auto; left: 15px; }
.says { max-width: none; min-height: 1.6em; }
@media (max-width: 37.5rem) { .rule.level b { white-space: normal; } }
`;
abilities.style = `
.abilities { list-style: none; margin: 4px 0 0; padding: 0; display: grid; gap: 12px; }
.abilities li { display: grid; grid-template-columns: minmax(0, 1.25fr) minmax(7.5rem, 1fr)
  3.625rem; gap: 4px 18px; align-items: center; }
.abilities .what b { font-weight: 600; font-size: var(--size-note); display: block; }
.abilities .about { color: var(--soft); font-size: var(--size-small); line-height: 1.35;
  display: block; }
.plane.spark { margin: 4px 6px; }
.spark svg { border: 0; }
.abilities .value { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
@container widget (min-width: 53.75rem) {
  .abilities { gap: 8px; }
  .abilities .what { line-height: 1.25; font-size: var(--size-note); }
  .abilities :is(.what b, .about) { display: inline; margin-right: 4px; }
  .abilities li { grid-template-columns: minmax(0, 2fr) minmax(5.625rem, 1fr) 3.625rem; }
}
@media (max-width: 37.5rem) { .abilities li { grid-template-columns: minmax(0, 1fr) 3.625rem;
  } .spark { grid-column: 1 / -1; grid-row: 2; } }
`;

export default live(
  "A GPT learns, live",
  (ui) => {
    const [time, written] = [ui.use(timeSlider), ui.use(continuation)];
    if (ui.view === "tour") return [time, written, ui.use(doubts)];
    return [
      time,
      ui.sides(
        ui.boxed(
          "side",
          written,
          ui.column(ui.use(text, "prompt", "Prompt"), ui.use(offeredPrompts)),
          ui.use(lossCurve),
        ),
        ui.boxed("side", ui.use(nextCharacters), ui.use(abilities), ui.explanation()),
      ),
    ];
  },
  { wide: true },
);
