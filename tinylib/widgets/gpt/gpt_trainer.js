import { numberOf, textIn, usable } from "../../live/page/own_text.js";
import { ownTextOf, setOwnText, trains } from "../../live/page/trainer.js";
import { results } from "../../live/ui/boxes.js";
import { shareCard } from "../../live/ui/card.js";
import { radio } from "../../live/ui/controls.js";
import { AS_IS, AS_TYPED, h, setAttribute, setText, notifyPage } from "../../live/ui/dom.js";
import { headMaps } from "../../live/ui/heads.js";
import { knob } from "../../live/ui/knobs.js";
import { share } from "../../live/ui/links.js";
import { animate } from "../../live/ui/motion.js";
import { times, whole } from "../../live/ui/numbers.js";
import { folded, live } from "../../live/ui/parts.js";
import { paint, pixelAt, pixelMap } from "../../live/ui/pixels.js";
import { fillList } from "../../live/ui/sentences.js";
import { called } from "../../live/ui/texts.js";
import { lossCurve, pastOf, rates, seeds, setting, trainingBar } from "../../live/ui/training.js";
import { isToured } from "../../live/ui/widget.js";

export const program = trains("gpt/gpt_trainer_task.js");

const CORPORA = ["our stories", "Shakespeare", "your own"];
const [STORIES, SHAKESPEARE, OWN] = [0, 1, 2];
const OFFERED = { [OWN]: "Paste a text", [SHAKESPEARE]: "Shakespeare", [STORIES]: "Our stories" };
const ABOUT = {
  [SHAKESPEARE]: "Scenes of his plays, a million letters.",
  [STORIES]: "3 000 little stories in plain words: who is where, and who has what.",
};
const LAYERS = 4;
const IN_BOX = 20_000; // characters of a text that the box shows
const LOOK_EVERY_MS = 3000; // ms between two looks: each takes as long as some steps
const NO_MASK = 2; // the form that sees what it is to predict
const fileNames = new Map(); // number of a text -> the name of the file that it was in

/** Which text is learned; the reader's own is pasted, or read from a file. */
function corpus(widget) {
  const { facts, stem } = widget.spec;
  const note = h("p.note", { role: "status" });
  const wrong = h("p.problem.wrong", { role: "alert" });
  let opened = { text: "", excerpt: "" }; // a text that is longer than the box, and what it shows
  let wanted = false; // the reader is about to give a text
  let typed = false; // the box holds what has not been used yet
  let shown = 0; // the number of the text in the box
  const box = h("textarea.line", {
    rows: "4",
    spellcheck: "false",
    "aria-label": "your own text",
    placeholder: "Paste a text here: a book, a diary, messages … It stays in your browser.",
    input: ({ inputType }) => {
      typed = true;
      setText(wrong, "");
      const [few, least] = [isShort(), whole(facts.characters[0])];
      setText(note, few ? `${whole(given().length)} of at least ${least} characters` : "");
      if (inputType === "insertFromPaste" && !few) take(given()); // its beginning is then in sight
      widget.repaint("inputs");
    },
  });
  const show = (text) => {
    box.value = text.slice(0, IN_BOX).replace(/[\ud800-\udbff]$/, "");
    opened = { text, excerpt: text.length > IN_BOX ? box.value : "" };
  };
  const given = () => (opened.excerpt && box.value === opened.excerpt ? opened.text : box.value);
  const isShort = () => given().length < facts.characters[0];
  const begin = (id) =>
    widget.edit(Symbol("corpus"), (next) => {
      next.corpus = id;
      next.steps = 0;
    });
  const use = (id, text) => {
    typed = false;
    setOwnText(stem, id, text);
    if (!widget.model.get("link_id")) widget.model.set("own", text);
    if (id !== widget.inputs.corpus) begin(id);
    else if (widget.model.get("error"))
      widget.send(widget.inputs); // now the text is there
    else leave();
  };
  const leave = () => {
    wanted = false;
    widget.repaint("inputs");
  };
  /** Use the text, if it can be learned and no run is lost by it; whether it is used. */
  const take = (text, file = "", fill = () => {}) => {
    const { error, text: kept, length, note: caution } = usable(text, facts.characters);
    setText(wrong, error ?? "");
    setText(note, "");
    if (error) return false;
    fill();
    const all = text === opened.text && box.value === opened.excerpt;
    const seen = all
      ? "The box shows only its beginning."
      : opened.excerpt && "What the box does not show is not used.";
    if (!all) opened = { text: "", excerpt: "" };
    const about = [`Your text has ${whole(length)} characters.`, seen, caution].filter(Boolean);
    const id = numberOf(kept);
    const { steps } = pastOf(widget);
    const go = () => {
      setText(note, about.join(" "));
      if (file) fileNames.set(id, file);
      use(id, kept);
      return true;
    };
    if (id === widget.inputs.corpus || !steps) return go();
    const stay = () => {
      typed = false;
      setText(note, "");
      leave();
    };
    note.replaceChildren(
      `To learn this text begins at step 0, and the run on show has ${whole(steps)} steps. `,
      h("button", { click: go }, "Begin with this text"),
      " ",
      h("button", { click: stay }, "Stay with the run"),
    );
    return false;
  };
  const read = async (chosen) => {
    wanted = true;
    widget.repaint("inputs");
    try {
      const text = await textIn(chosen, facts.characters[1]);
      take(text, chosen.name, () => show(text));
    } catch (error) {
      setText(wrong, error.message);
    }
  };
  const open = h("button", { click: () => file.click() }, "Open a file");
  const toured = isToured(widget.model);
  const about = h("p.note.about");
  const file = h("input", {
    type: "file",
    hidden: true,
    change: () => {
      const [chosen] = file.files;
      file.value = "";
      if (chosen) read(chosen);
    },
  });
  const own = h(
    "div.column.own",
    {
      hidden: true,
      dragover: (event) => {
        if (event.dataTransfer.types.includes("Files")) event.preventDefault();
      },
      drop: (event) => {
        const [dropped] = event.dataTransfer.files;
        if (!dropped) return;
        event.preventDefault(); // else the browser leaves the page for the file
        read(dropped);
      },
    },
    box,
    wrong,
    note,
    ...(toured ? [open] : []),
  );
  widget.lacksText = () =>
    (wanted || typed) && isShort() ? `First paste a ${box.value ? "longer " : ""}text` : "";
  widget.useTyped = () => !(wanted || typed) || take(given());
  const follow = () => {
    if (widget.inputs.corpus >= OWN && !typed) wanted = false;
    const now = wanted ? OWN : Math.min(widget.inputs.corpus, OWN);
    own.hidden = now !== OWN;
    setText(about, ABOUT[now] ?? "");
    own.classList.toggle("used", !typed && widget.inputs.corpus >= OWN);
    const ownText = ownTextOf(stem);
    if (now === OWN && ownText && ownText.id !== shown) {
      shown = ownText.id;
      if (!box.value) show(ownText.text); // it was kept from another visit
    }
    picks.forEach(({ button, element }) => {
      button.checked = Number(button.value) === now;
      element.classList.toggle("chosen", button.checked);
    });
  };
  const choose = (i) => {
    wanted = i === OWN;
    if (!wanted) {
      typed = false;
      if (i === widget.inputs.corpus) leave();
      else begin(i);
      return;
    }
    widget.repaint("inputs");
    const ownText = ownTextOf(stem);
    if (ownText) take(ownText.text);
    else box.focus();
  };
  // A kernel can fetch any text, a copy of the site may have been built without one.
  const there = widget.model.get("texts");
  const lacksPlays = there && !there.includes("shakespeare");
  const offered = toured && lacksPlays ? [OWN, STORIES] : [OWN, SHAKESPEARE, STORIES];
  const picks = offered.map((i) => {
    // of one's own, the box below edits the corpus
    const edits = i === OWN ? "" : "corpus";
    const button = radio(widget, "corpus", i, { edits, choose: () => choose(i) });
    const lacks = i === SHAKESPEARE && lacksPlays;
    button.disabled = lacks;
    const about = lacks ? "This copy of the site was built without Shakespeare’s text." : "";
    const pick = { class: "pick", title: about || false };
    return { button, element: h("label", pick, button, h("span", OFFERED[i])) };
  });
  return {
    element: h(
      "div.corpus",
      h(
        "div.choice",
        { role: "radiogroup", "aria-label": "text to learn" },
        h("div.picks", ...picks.map((pick) => pick.element)),
      ),
      ...(toured ? [about] : [open]),
      file,
      own,
    ),
    shows: "inputs",
    reset() {
      wanted = typed = false;
    },
    update: follow,
  };
}
corpus.style = `
.begin { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; }
.begin :is(.corpus, .corpus + .column, .corpus + .column > .bar) { display: contents; }
.begin :is(.own, .about:not(:empty)) { order: 1; flex: 1 0 100%; }
.begin .bar > :not(.main) { order: 2; }
.begin .success { order: 3; flex: 1 0 100%; min-height: 1.5rem; }
@container widget (max-width: 40rem) {
  .begin { gap: 8px; }
  .begin .success { min-height: 4.2rem; }
  .begin :is(button:not(.main), select) { padding-inline: 6px; }
}
.own textarea { width: 100%; min-height: 5.625rem; max-height: 16.25rem; resize: vertical; font:
  inherit; font-size: var(--size-touch); color: var(--text); background: transparent; border: 1px
  solid var(--line); border-radius: 5px; padding: 6px 10px; }
.own.used textarea { height: 3.4rem; min-height: 0; }
.own :is(.wrong, .note):empty { display: none; }
.own > button { align-self: start; }
`;

/** How far it had learned; in the tour, how long. */
function stepOf(widget, { steps }) {
  const { ms, loaded } = pastOf(widget);
  if (isToured(widget.model)) return steps ? `after ${timeOf(ms ?? 0)}` : "before it learned";
  return steps === 0 && loaded ? "as it was loaded" : `step ${whole(steps)}`;
}

/** What it continues; of a reader's longer line it reads no more than the end. */
function givenOf({ model }, { given }) {
  const [text, line] = [given.join(""), model.get("line") ?? ""];
  return line.endsWith(text) ? line : text;
}

/** The snapshot that the reader goes back to, or the newest: what it wrote, and its weights. */
const lookOf = (widget) => {
  const { snapshots, chosen = -1 } = pastOf(widget);
  return snapshots.at(chosen < snapshots.length ? chosen : -1);
};

/** What was written; before the first step, line after line of it would mean nothing. */
const textOf = ({ said, steps }) => (steps ? said.join("") : said.join("").replace(/\s+/g, " "));

/** Note what is seen now, among what was seen before in this run. */
function noted(widget, outputs) {
  const { snapshots, steps, known: isNew } = pastOf(widget);
  const { weights } = outputs;
  const known = charactersIn(outputs);
  const typed = (i) => String.fromCodePoint(widget.inputs.beginning[i] ?? 0x25a1);
  const given = Array.from(outputs.read.data, (id, i) => known[id] ?? typed(i));
  const nameless = (id) =>
    known.length < widget.spec.facts.V - 1 ? known[id % known.length] : "□";
  const written = Array.from(outputs.written.data, (id) => known[id] ?? nameless(id));
  const last = snapshots.at(-1);
  const same = last && String([last.given, last.said]) === String([given, written]);
  if ((!isNew && last) || same) return;
  if (last?.steps === steps) snapshots.pop(); // it only had another beginning
  const [count, R] = weights.shape;
  snapshots.push({ steps, given, said: written, heads: count / LAYERS, R, weights: weights.data });
}

/** What it continues: the reader's own words, or the first of the held-out text. */
function beginning(widget) {
  const typing = Symbol("beginning");
  const toured = isToured(widget.model);
  const [, most] = widget.spec.limits.C;
  const note = h("p.note", { role: "status" });
  const typed = () => Array.from(given.value, (character) => character.codePointAt(0));
  const given = h("input", {
    type: "text",
    ...AS_TYPED,
    "data-input": "beginning",
    placeholder: toured ? "a beginning of yours" : "the held-out text, or yours",
    input: () =>
      widget.edit(typing, (next) => {
        next.beginning = typed().slice(-most);
      }),
  });
  const label = toured ? "Let it continue" : "It continues";
  const line = h("label.given", h("span.label", label), given);
  return {
    element: h("div.column", line, note),
    update({ beginning: points }, { names }) {
      const own = given.getRootNode().activeElement === given;
      if (!own) given.value = String.fromCodePoint(...points);
      const cut = own && typed().length > most;
      const strange = [...new Set(points)].filter((point) => !names.data.includes(point));
      const more = strange.length > 3 ? " …" : "";
      const some = strange.slice(0, 3).map((point) => called(String.fromCodePoint(point)));
      setText(
        note,
        [
          ...(cut ? [`Only the last ${most} characters are read.`] : []),
          ...(strange.length
            ? [`It reads □ for what this text does not have: ${some.join(", ")}${more}.`]
            : []),
        ].join(" "),
      );
    },
  };
}
beginning.style = `
.given { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; }
.given input { flex: 1; min-width: 10em; font: inherit; font-size: var(--size-touch);
  color: var(--text); background: transparent; border: 1px solid var(--line);
  border-radius: 5px; padding: 3px 10px; }
`;

/** What the model wrote before it learned, and what it writes now, or wrote at an earlier step. */
function versus(widget) {
  const column = (kind) => {
    const [when, text] = [h("span.label"), h("pre.written", { ...AS_IS, dir: "auto" })];
    return { when, text, element: h(`div.column.${kind}`, h("p.head", when), text) };
  };
  const [before, now] = ["first", "newest"].map(column);
  const toured = isToured(widget.model);
  const squares = h("span.squares");
  before.when.after(squares);
  const write = (place, look) => {
    if (place.look === look) return;
    place.look = look;
    // Words, not letters: those of some scripts are joined, and an emoji may have several.
    const words = textOf(look).split(/(?<=\s)/);
    const parts = words.map((word) => Object.assign(h("span"), { textContent: word }));
    place.text.replaceChildren(h("b", givenOf(widget, look)), ...parts);
    if (place === before || look !== pastOf(widget).snapshots.at(-1)) return;
    const how = { duration: 240, fill: "backwards" };
    parts.forEach((part, i) => animate(part, [{ opacity: 0 }, {}], { ...how, delay: 30 * i }));
  };
  return {
    element: results("versus", before.element, now.element),
    shows: "outputs",
    update(inputs, outputs) {
      noted(widget, outputs);
      const [first] = pastOf(widget).snapshots;
      const look = lookOf(widget);
      if (!look) return;
      setText(before.when, toured ? "Before" : `Before: ${stepOf(widget, first)}`);
      write(before, first);
      const begun = look !== first;
      const newest = look === pastOf(widget).snapshots.at(-1);
      const time = newest ? "Now" : "Then";
      setText(now.when, begun ? `${time}${toured ? "," : ":"} ${stepOf(widget, look)}` : "Now");
      if (begun) write(now, look);
      else {
        now.look = undefined;
        now.text.replaceChildren(h("i", "What it writes while it learns appears here."));
      }
      const seen = begun ? [...first.said, ...look.said] : first.said;
      setText(squares, seen.includes("□") ? "□: one of the rarer characters" : "");
    },
  };
}
versus.style = `
.versus { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr));
  gap: 8px 16px; }
.written { margin: 0; padding: 8px 12px; white-space: pre-wrap; overflow-wrap: anywhere;
  font-family: var(--mono); font-size: var(--size-large); line-height: 1.3; min-height: 11.3em;
  flex: 1; border: 1px solid var(--line); border-radius: 6px; }
.newest .written { border-color: var(--accent); }
.head { display: flex; flex-wrap: wrap; gap: 0 16px; justify-content: space-between; margin: 0; }
.squares { color: var(--soft); font-size: var(--size-note); }
.written :is(b, i) { color: var(--soft); font-weight: 400; }
.written i { font-family: system-ui, sans-serif; font-size: var(--size-note); font-style: normal; }
@container widget (max-width: 40rem) {
  .frame:not(.tour) .newest { order: -1; }
  .tour .begin .success { min-height: 3.2rem; }
  .tour .begin .main { flex: 1 0 100%; }
  .tour .versus { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
}
.tour .written { flex: none; min-height: 0; height: calc(9lh + 10px); padding-bottom: 0;
  overflow: hidden; }
@container widget (max-width: 40rem) {
  .tour .written { padding: 6px 6px 0; font-size: var(--size-note); height: calc(13lh + 8px); }
}
.tour .squares, .tour:has(.own:not([hidden], .used)) .written > * { visibility: hidden; }
`;

/** A slider over all that it has written in this run. */
function lookBack(widget) {
  const snapshots = () => pastOf(widget).snapshots;
  const slider = knob(widget, "", "look back", {
    read: () => snapshots().indexOf(lookOf(widget)),
    ends: () => [0, Math.max(1, snapshots().length - 1)],
    slide(to) {
      pastOf(widget).chosen = to >= snapshots().length - 1 ? -1 : to;
      widget.repaint("outputs");
    },
    describe: (i) => `step ${whole(snapshots()[Math.min(i, snapshots().length - 1)]?.steps ?? 0)}`,
    box: false,
  });
  return {
    element: slider.element,
    shows: "outputs",
    update(inputs) {
      slider.update(inputs);
      slider.range.disabled = snapshots().length < 2;
    },
  };
}

/** The attention of all heads on what it is given, and of one of them in large. */
function attention(widget) {
  let head = 0;
  const large = pixelMap();
  const name = h("span.label");
  const pointedNote = h("p.note.pointed", POINT);
  const [above, beside] = [0, 1].map(() => h("span.letters", { ...AS_IS }));
  const drawn = ({ weights, R }, i) => weights.subarray(i * R * R, (i + 1) * R * R);
  const maps = headMaps({
    label: "what each head attends to",
    output: "weights",
    read: () => ({ L: LAYERS, H: lookOf(widget).heads, look: lookOf(widget) }),
    chosen: () => head,
    choose: (i) => {
      head = i;
      widget.repaint();
    },
    draw(picture, { H, look }, i) {
      const place = `block ${Math.floor(i / H)}, head ${i % H}`;
      setAttribute(picture.canvas, "aria-label", `attention weights of ${place}`);
      paint(picture.canvas, drawn(look, i), look.R, { ink: "weight", root: true });
    },
  });
  const point = (event) => {
    const look = lookOf(widget);
    const [row, column] = pixelAt(large.canvas, event);
    const weight = drawn(look, head)[row * look.R + column];
    setText(
      pointedNote,
      `${called(look.given[row])}, place ${row + 1}, attends to ${called(look.given[column])},
      place ${column + 1}: ${weight.toFixed(2)}`,
    );
  };
  large.canvas.addEventListener("pointermove", point);
  large.canvas.addEventListener("pointerdown", point);
  large.canvas.addEventListener("pointerleave", () => setText(pointedNote, POINT));
  return {
    element: h(
      "div.atlas",
      maps.element,
      h("div.column.large", name, h("div.lettered", above, beside, large.element), pointedNote),
    ),
    shows: "outputs",
    update(inputs, outputs) {
      const look = lookOf(widget);
      if (!look) return;
      maps.update(inputs, outputs);
      setText(name, `block ${Math.floor(head / look.heads)}, head ${head % look.heads}`);
      setAttribute(large.canvas, "aria-label", `attention weights of ${name.textContent}`);
      paint(large.canvas, drawn(look, head), look.R, { ink: "weight", root: true });
      for (const side of [above, beside]) {
        fillList(side, look.given, "i", setText);
      }
    },
  };
}
const POINT = "Each row is a place that attends, each column one that it attends to.";
attention.style = `${headMaps.style}
.lettered { display: grid; grid-template: .8125rem auto / .8125rem minmax(0, 13.75rem); }
.lettered .pixel-map { grid-area: 2 / 2; width: 100%; }
.letters { display: flex; grid-area: 1 / 2; font-size: var(--size-small); }
.letters + .letters { flex-direction: column; grid-area: 2 / 1; }
.letters i { flex: 1 1 0; min-width: 0; min-height: 0; display: grid; place-items: center;
  overflow: hidden; color: var(--soft); white-space: pre;
  font-family: var(--mono); font-size: .75em; line-height: 1; }
.pointed { min-height: 3em; margin: 0; }
`;

/**
 * What the ids stand for. In a text of fewer characters ids are left over: only a model that has
 * not learned writes them, and there each stands for one of the characters once more.
 */
const charactersIn = ({ names }) => Array.from(names.data, (point) => String.fromCodePoint(point));

const forms = ({ facts }) => facts.training.forms;
const runName = (widget) => (inputs) =>
  [
    CORPORA[Math.min(inputs.corpus, OWN)],
    ...(inputs.form ? [forms(widget.spec)[inputs.form]] : []),
    ...(inputs.rate === 1 ? [] : [`rate × ${inputs.rate}`]),
    `seed ${inputs.seed}`,
  ].join(", ");

/** What a run can reach: it gets better than tables that count, or begins to learn by heart. */
const RULES = [
  ["letters", "it now knows which letters are frequent."],
  ["pairs", "it now knows which letters follow each other."],
  ["triples", "it now uses more than the last two letters, and words appear."],
];
const beats =
  (n) =>
  (inputs, { valid, ngrams }) =>
    inputs.form !== NO_MASK && valid.data[0] < ngrams.data[n] && ngrams.data[n] > 0.1;
/** The mean of the last losses until then. */
const meanAt = ({ data }, end) => {
  const some = data.slice(Math.max(0, end - 16), end);
  return some.reduce((sum, loss) => sum + loss, 0) / some.length;
};
const BY_HEART = {
  name: "by heart",
  flag: "by heart",
  message: (crossed) =>
    `${crossed}: it begins to learn the text by heart: what it has not read gets no better any ` +
    "more.",
  when({ form }, { losses, ngrams }, { measured }) {
    const values = measured.map(([, value]) => value);
    const best = Math.min(...values);
    const [since] = measured[values.indexOf(best)] ?? [0];
    const learns = meanAt(losses, losses.data.length) < meanAt(losses, since) - 0.02; // as it reads
    return form !== NO_MASK && best < ngrams.data[0] && values.at(-1) > best + 0.05 && learns;
  },
};
export const success = {
  goal: "The goal: it predicts better than tables that count letters, pairs and triples.",
  inTour: "After half a minute there is a picture to send.",
  heartInTour: "It begins to repeat the text by heart: time to stop.",
  milestones: [
    BY_HEART,
    ...RULES.map(([name, sentence], n) => ({
      name,
      flag: name,
      when: beats(n),
      message: (crossed) => `${crossed}: ${sentence}`,
    })),
  ],
};

/** What keeps the run, and what its speed means in characters. */
function bar(widget) {
  const { facts, stem } = widget.spec;
  const size = facts.T * facts.batch;
  const per = (ms) => whole(Math.round((10 * size) / ms) * 100);
  const isByHeart = (_inputs, { losses, valid }) =>
    meanAt(losses, losses.data.length) < valid.data[0] / 4; // what it reads, beside what it has not
  const inPlainWords = (one) =>
    one === BY_HEART
      ? { ...one, when: isByHeart, message: () => success.heartInTour }
      : { ...one, message: (_crossed, ...seen) => one.message("", ...seen).replace(": it", "It") };
  const milestones = success.milestones.map(inPlainWords);
  const plainly = { ...success, goal: success.inTour, milestones };
  return trainingBar(widget, {
    chunkMs: LOOK_EVERY_MS,
    success: isToured(widget.model) ? plainly : success,
    lacking: () => widget.lacksText(),
    begin: () => widget.useTyped(),
    rateText: (ms) => `, ${per(ms)} characters/s`,
    saved: !isToured(widget.model) && {
      metadata: (_inputs, outputs) => ({
        config: facts.config,
        kind: "characters",
        tokens: alphabet(outputs, facts.V),
      }),
      wrong: ({ tokens }, _inputs, outputs) =>
        JSON.stringify(tokens) === JSON.stringify(alphabet(outputs, facts.V))
          ? ""
          : "it was trained on a text of other characters. Choose that text first.",
      also: ({ corpus: id }) => (id >= OWN ? { text: ownTextOf(stem) } : {}),
      take: async ({ text }) => {
        if (text) setOwnText(stem, text.id, text.text);
      },
      how: [
        "In Python, ",
        h("code", "load_language_model(path)"),
        " of ",
        h("code", "tinylib.lab.models.language"),
        " reads such a file.",
      ],
    },
  });
}
bar.style = trainingBar.style;

/** The loss, against tables that count and, for the stories, against what nobody can know. */
function loss(widget) {
  const { limit } = widget.spec.facts;
  return lossCurve(widget, {
    top: 5,
    name: runName(widget),
    height: 96,
    second: ({ valid }) => valid.data[0],
    rules: ({ corpus: id }, { ngrams }) => [
      ...RULES.map(([name], i) => [ngrams.data[i], `${name}: ${ngrams.data[i].toFixed(2)}`]),
      ...(id === STORIES ? [[limit, `the limit: ${limit.toFixed(2)}`]] : []),
    ],
  });
}
loss.style = lossCurve.style;

const READY_STEPS = 300;
const READY_MS = 30_000;
const MORE_MS = 6000; // of training, until there is another picture
const [TRAIN_PAGE, TOUR_PAGE] = ["train.html", "ten_minutes.html"];
const CHAPTERS = "../../../../chapters/"; // from where the site has this file
const pageOf = (name) => new URL(`${CHAPTERS}${name}`, import.meta.url).href;

/** Where the tour is, for those who see a picture; a kernel has no site. */
function tourAddress() {
  const link = /** @type {HTMLLinkElement} */ (document.querySelector("link[rel=canonical]"));
  return link ? new URL(TOUR_PAGE, link.href).href.replace("https://", "") : "";
}

/** What it has learned from, as the picture says it. */
function textName({ stem }, id) {
  if (id < OWN) return id === SHAKESPEARE ? "Shakespeare’s plays" : "3 000 little stories";
  const length = Array.from(ownTextOf(stem)?.text ?? "").length;
  return `my own text, ${fileNames.get(id) ?? `${whole(length)} letters`}`;
}

/** A text for a picture: it ends with a word, and has no empty lines. */
const trimmed = (text) => text.replace(/\n+/g, "\n").replace(/\s+\S{0,12}$/, " …");

const timeOf = (ms) => {
  const seconds = Math.max(1, Math.round(ms / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
};

/** The picture to share, and the link, in which no text of the reader's is. */
function card(widget, goesOn = undefined) {
  const tour = isToured(widget.model);
  let looked = false; // the reader has asked for the picture
  const id = widget.model.get("link_id");
  let clock = 0; // when the run was last seen to go on
  let began = 0;
  let done; // the past of the run whose picture was announced
  widget.toShare = () => {
    const { inputs, ...state } = widget.state();
    const page = pageOf(tour ? TOUR_PAGE : TRAIN_PAGE);
    if (!tour && inputs.corpus < OWN)
      return { page, state: { inputs: { ...inputs, steps: 0 }, ...state } };
    const stays = inputs.corpus >= OWN ? " Your text stays with you." : "";
    return { page, message: `It leads to this ${tour ? "tour" : "trainer"}.${stays}` };
  };
  const read = () => {
    const { snapshots, ms } = pastOf(widget);
    const [[first], now] = [snapshots, lookOf(widget)];
    if (!now) return null;
    const name = textName(widget.spec, widget.inputs.corpus);
    const own = widget.inputs.beginning.length > 0; // what is held out begins anywhere, in a word
    const begun = (look) =>
      own ? givenOf(widget, look) : look.given.join("").replace(/^\S*\s+(?=\S)/, "… ");
    const side = (look) => ({
      head: stepOf(widget, look),
      text: trimmed(begun(look) + textOf(look)),
    });
    const ready = now !== first;
    return {
      ready,
      name: `my-gpt-step-${now.steps}.png`,
      title: "I taught a machine to write",
      before: side(first),
      now: ready ? side(now) : { head: "step …", text: "" },
      foot: `It learned from ${name}${ms ? `, for ${timeOf(ms)}` : ""}, in my browser`,
      course: "The Road to GPT",
      address: tourAddress() && `Teach one yourself: ${tourAddress()}`,
    };
  };
  const picture = shareCard(read, "Train some steps first: then there is a picture to share.");
  const shares = picture.element.children[1];
  if (tour && id) shares.append(h("button", { click: () => share(widget, id) }, "Copy link"));
  const more = () => {
    widget.goOn();
    setTimeout(widget.rest, MORE_MS);
  };
  const another = h("button", { click: more }, "Another one");
  if (tour) shares.append(another);
  const stop = () => {
    widget.rest();
    looked = true;
    widget.repaint("outputs");
    const own = widget.inputs.corpus >= OWN ? " It shows lines of your text: read it first." : "";
    picture.announce(`The training is paused, so that the picture stays.${own}`);
    element.scrollIntoView({ block: "start" });
  };
  widget.el.addEventListener("tl:picture", stop);
  const element = tour ? h("div.shared", goesOn.element, picture.element) : picture.element;
  return {
    element,
    shows: "outputs",
    update() {
      const past = pastOf(widget);
      const now = performance.now();
      if (past.known && past.steps === 0) past.ms = 0;
      if (!widget.streams) clock = 0;
      else {
        if (clock && past.ms !== undefined) past.ms += now - clock;
        if (!clock) began = now;
        clock = now;
      }
      const still = !(widget.streams || widget.behind || widget.model.get("unfinished"));
      if (!tour || (looked && (still || element.hidden))) picture.update(); // it does not change
      element.hidden = tour && !looked;
      another.disabled = !still;
      const { steps, snapshots } = past;
      const late = widget.streams ? now - began > READY_MS : steps >= 20;
      if (done === past || snapshots.length < 2 || !(steps >= READY_STEPS || late)) return;
      done = past;
      const [before, after] = [snapshots[0], snapshots.at(-1)].map(({ said }) => said.join(""));
      const detail = { what: "card", steps, before, now: after };
      notifyPage(widget, detail);
    },
  };
}
card.style = `${shareCard.style}
.proof { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 16rem); gap: 8px 28px; }
@container widget (max-width: 40rem) {
  :is(.proof, .tour .card):is(.proof, .card) { grid-template-columns: minmax(0, 1fr); }
}
.proof > .column, .aside > * { min-width: 0; }
.aside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr));
  gap: 8px 16px; align-items: center; }
.tour .card { grid-template: auto 1fr / minmax(0, 30rem) minmax(0, 1fr); gap: 8px 16px; }
.tour .card canvas { grid-row: 1 / span 2; }
.shared { display: grid; gap: 12px; }
.folds { display: flex; flex-wrap: wrap; gap: 8px 28px; }
.folds > details[open] { flex: 1 0 100%; }
.folds .bar { gap: 8px 12px; }
`;

export default live(
  "Train a GPT on your own text",
  (ui) => {
    const texts = ui.use(corpus);
    const control = ui.use(bar);
    const settings = ui.row(
      ui.use((widget) => setting(widget, "form", "model and optimiser", forms(widget.spec))),
      ui.use(rates),
      ui.use(seeds),
    );
    return [
      ui.boxed("begin", texts, control),
      ui.use(versus),
      ui.boxed("aside", ui.use(beginning), ui.use(lookBack)),
      ui.boxed("proof", ui.use(loss), ui.use(card)),
      ui.boxed(
        "folds",
        ui.use(folded, "Settings", settings),
        ui.use(folded, "What its heads attend to", ui.use(attention)),
        ...(control.keeper ? [{ element: control.keeper }] : []),
      ),
    ];
  },
  {
    wide: true,
    tour: (ui) => [
      ui.boxed("begin", ui.use(corpus), ui.use(bar)),
      ui.use(versus),
      ui.use(card, ui.use(beginning)),
    ],
  },
);

/** All tokens of the model, as its file names them: where there are fewer characters, fillers. */
function alphabet(outputs, V) {
  const names = charactersIn(outputs);
  const more = times(V - names.length, (i) => String.fromCodePoint(0xf0000 + i));
  return [...names, ...more];
}
