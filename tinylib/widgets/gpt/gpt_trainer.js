import { numberOf, textIn, usable } from "../../live/page/own_text.js";
import { ask, ownTextOf, setOwnText, trains } from "../../live/page/trainer.js";
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
import { paint, readOut, pixelMap } from "../../live/ui/pixels.js";
import { fillList } from "../../live/ui/sentences.js";
import { called } from "../../live/ui/texts.js";
import { lossCurve, pastOf, rates, seeds, setting, trainingBar } from "../../live/ui/training.js";
import { isToured } from "../../live/ui/widget.js";

export const program = trains("gpt/gpt_trainer_task.js");

const CORPORA = ["our stories", "Shakespeare", "your own"];
const [STORIES, SHAKESPEARE, OWN] = [0, 1, 2];
const OFFERED = { [OWN]: "Paste a text", [SHAKESPEARE]: "Shakespeare", [STORIES]: "Our stories" };
const ABOUT = {
  [SHAKESPEARE]: "Scenes of his plays, a million characters.",
  [STORIES]: "3 000 little stories in plain words: who is where, and who has what.",
};
const LAYERS = 4;
const IN_BOX = 20_000; // characters of a text that the box shows
const IN_SIGHT = 80; // characters of a line that is continued
const LOOK_EVERY_MS = 3000; // ms between two looks: each takes as long as some steps
const NO_MASK = 2; // the form that sees what it is to predict
const givenTexts = new Map(); // number of a text -> { text, file: the name of what it was in }

/** Which text is learned; the reader's own is pasted, or read from a file. */
function corpus(widget) {
  const { facts, stem } = widget.spec;
  const [least] = facts.characters;
  const note = h("p.note", { role: "status" });
  const wrong = h("p.problem.wrong", { role: "alert" });
  let opened = { text: "", excerpt: "", file: "" }; // what may be longer than the box shows
  let wanted = false; // the reader is about to give a text
  let typed = false; // the box holds what has not been used yet
  let shown = 0; // the number of the text in the box
  let replaced; // the inputs of the run in whose place another text is learned
  const box = h("textarea.line", {
    rows: "4",
    spellcheck: "false",
    "aria-label": "your own text",
    placeholder:
      `Paste at least ${whole(least)} characters here: a book, a diary, messages … ` +
      "They stay in your browser.",
    input: ({ inputType }) => {
      setText(wrong, "");
      const few = `${whole(lengthOf(given()))} of at least ${whole(least)} characters`;
      setText(note, isShort() ? few : "");
      offer(inputType === "insertFromPaste");
    },
  });
  /** There is a text: it is used at once where it replaces no run, so that its words are seen. */
  const offer = (now) => {
    const learned = widget.inputs.corpus >= OWN && given() === ownTextOf(stem)?.text;
    typed = !learned;
    if (typed && now && !isShort() && !pastOf(widget).steps) take();
    widget.repaint("inputs");
  };
  const show = (text, file = "") => {
    box.value = text.slice(0, IN_BOX).replace(/[\ud800-\udbff]$/, "");
    opened = { text, excerpt: box.value, file };
  };
  const given = () => (opened.excerpt && box.value === opened.excerpt ? opened.text : box.value);
  const lengthOf = (text) => Array.from(text.slice(0, 2 * least)).length; // as far as it matters
  const isShort = () => lengthOf(given()) < least;
  const begin = (id) => {
    replaced = pastOf(widget).steps && !widget.streams ? widget.inputs : replaced;
    widget.edit(Symbol("corpus"), (next) => {
      next.corpus = id;
      next.steps = 0;
    });
  };
  const use = (id, text, file) => {
    typed = false;
    givenTexts.set(id, { text, file });
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
  /** Use the text, if it can be learned; whether it is used. */
  const take = () => {
    const text = given();
    const { error, text: kept, length, note: caution } = usable(text, facts.characters);
    setText(wrong, error ?? "");
    setText(note, "");
    if (error) return false;
    const [all, more] = [text === opened.text, opened.text !== opened.excerpt];
    const seen = all ? "The box shows only its beginning." : "What it does not show is not used.";
    const about = [`Your text has ${whole(length)} characters.`, more && seen, caution];
    setText(note, about.filter(Boolean).join(" "));
    use(numberOf(kept), kept, all ? opened.file : "");
    return true;
  };
  const read = async (chosen) => {
    wanted = true;
    widget.repaint("inputs");
    try {
      const text = await textIn(chosen, facts.characters[1]);
      const { error } = usable(text, facts.characters);
      if (error) throw new Error(error);
      show(text, chosen.name);
      setText(wrong, "");
      setText(note, `${chosen.name} is in the box.`);
      offer(true);
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
    toured ? h("div.bar", open, note) : note,
  );
  const undo = h(
    "button",
    {
      hidden: true,
      click: () => {
        widget.rest();
        const before = replaced;
        wanted = typed = replaced = undefined;
        setText(note, "");
        widget.change(before, Symbol("undo"));
      },
    },
    "Undo",
  );
  widget.lacksText = () =>
    (wanted || typed) && isShort() ? `First paste a ${box.value ? "longer " : ""}text` : "";
  widget.useTyped = () => !(wanted || typed) || take();
  widget.namesOther = () => {
    const { steps, key } = pastOf(widget);
    const other = steps ? wanted || typed : widget.left && widget.left.key !== key;
    return other ? "Train on this text" : "";
  };
  const follow = () => {
    const { corpus: id } = widget.inputs;
    const back = ownTextOf(stem)?.id !== id && givenTexts.get(id); // Undo leads to it
    if (back) setOwnText(stem, id, back.text);
    undo.hidden = !replaced;
    if (widget.inputs.corpus >= OWN && !typed) wanted = false;
    const now = wanted ? OWN : Math.min(widget.inputs.corpus, OWN);
    own.hidden = now !== OWN;
    setText(about, ABOUT[now] ?? "");
    own.classList.toggle("used", !typed && widget.inputs.corpus >= OWN);
    own.classList.toggle("ran", pastOf(widget).steps > 0);
    const ownText = ownTextOf(stem);
    if (now === OWN && ownText && ownText.id !== shown) {
      shown = ownText.id;
      if (given() !== ownText.text && !typed) show(ownText.text, givenTexts.get(shown)?.file);
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
    if (box.value) offer(true);
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
      ...(toured ? [undo] : []),
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
.begin .bar .main { min-width: 16.5em; }
.own textarea { width: 100%; min-height: 5.625rem; max-height: 16.25rem; resize: vertical; font:
  inherit; font-size: var(--size-touch); color: var(--text); background: transparent; border: 1px
  solid var(--line); border-radius: 5px; padding: 6px 10px; }
.own.used textarea { height: 3.4rem; min-height: 0; }
.own :is(.wrong, .note):empty { display: none; }
`;

/** How far it had learned; in the tour, how long. */
function stepOf(widget, { steps }) {
  const { ms, loaded } = pastOf(widget);
  if (isToured(widget.model)) return steps ? `after ${timeOf(ms ?? 0)}` : "before it learned";
  return steps === 0 && loaded ? "as it was loaded" : `step ${whole(steps)}`;
}

/** The reader's own line, if this is its end: no more of it is read. */
function wholeLine({ model }, end) {
  const line = model.get("line") ?? "";
  if (!end || !line.toLowerCase().endsWith(end.toLowerCase())) return end; // some have no capitals
  const letters = Array.from(line);
  return letters.length > IN_SIGHT ? `… ${letters.slice(-IN_SIGHT).join("")}` : line;
}
const givenOf = (widget, { given }) => wholeLine(widget, given.join(""));

/** What is said of a beginning that the text has not all characters of. */
function strangeIn({ beginning: points }, { names, read }) {
  const nameless = points.filter((_, i) => names.data[read.data[i]] === undefined);
  const strange = [...new Set(nameless)];
  const some = strange.slice(0, 3).map((point) => called(String.fromCodePoint(point)));
  const more = strange.length > 3 ? " …" : "";
  return some.length ? `This text has no ${some.join(", ")}${more}: it reads □ instead.` : "";
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
  const past = pastOf(widget);
  const { snapshots, steps, known: isNew } = past;
  const { weights } = outputs;
  const known = charactersIn(outputs);
  const typed = (i) => String.fromCodePoint(widget.inputs.beginning[i] ?? 0x25a1);
  const given = Array.from(outputs.read.data, (id, i) => known[id] ?? typed(i));
  const nameless = (id) =>
    known.length < widget.spec.facts.V - 1 ? known[id % known.length] : "□";
  const named = ({ data }) => Array.from(data, (id) => known[id] ?? nameless(id));
  const written = named(outputs.written);
  if (isNew) {
    // anew for another beginning, so that both have the same
    const before = { steps: 0, given, said: named(outputs.before) };
    if (String([past.before?.given, past.before?.said]) !== String([given, before.said]))
      past.before = before;
  }
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
    placeholder: toured ? "a beginning of yours" : "words of the text, or yours",
    input: () =>
      widget.edit(typing, (next) => {
        next.beginning = typed().slice(-most);
        widget.model.set("line", given.value); // which the page alone knows
      }),
  });
  const label = toured ? "Let it continue" : "It continues";
  const line = h("label.given", h("span.label", label), given);
  return {
    element: h("div.column", line, note),
    update(inputs, outputs) {
      const own = given.getRootNode().activeElement === given;
      if (!own) given.value = wholeLine(widget, String.fromCodePoint(...inputs.beginning));
      const cut = typed().length > most ? `Only the last ${most} characters are read. ` : "";
      if (!widget.behind) setText(note, cut + strangeIn(inputs, outputs));
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
    const [when, text] = [
      h("span.label"),
      h("pre.written", { ...AS_IS, dir: "auto", tabindex: 0 }),
    ];
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
      const whose = inputs.beginning.length ? "your words" : "some words of the text";
      setText(widget.aim, `It continues ${whose}, in grey. ${strangeIn(inputs, outputs)}`);
      const [first] = pastOf(widget).snapshots;
      const look = lookOf(widget);
      if (!look) return;
      setText(before.when, toured ? "Before" : `Before: ${stepOf(widget, first)}`);
      write(before, pastOf(widget).before ?? first);
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
  font-family: var(--mono); font-size: var(--size-large); line-height: 1.3; height: 12.6em;
  overflow-y: auto; border: 1px solid var(--line); border-radius: 6px; }
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
.tour .written { height: calc(9lh + 10px); padding-bottom: 0;
  overflow: hidden; }
@container widget (max-width: 40rem) {
  .tour .written { padding: 6px 6px 0; font-size: var(--size-note); height: calc(13lh + 8px); }
  .tour:has(.own:not([hidden], .used, .ran)) .versus { display: none; }
  .tour:has(.own.used) .begin .success { min-height: 0; }
}
.tour .versus.versus { opacity: 1; } /* a text that waits for its model is no old result */
.tour .squares, .tour:has(.own:not([hidden], .used, .ran)) :is(.aim, .written > *) {
  visibility: hidden; }
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
  readOut(large.canvas, pointedNote, (row, column) => {
    const look = lookOf(widget);
    const weight = drawn(look, head)[row * look.R + column];
    return `${called(look.given[row])}, place ${row + 1}, attends to ${called(look.given[column])},
      place ${column + 1}: ${weight.toFixed(2)}`;
  });
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
  heartInTour: "It begins to learn pieces of the text by heart: more training adds little.",
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
  widget.aim = h("span"); // in the tour: what the model goes on from
  let messages = success;
  if (atStart(widget))
    messages = { ...success, goal: "The goal: it writes words like those of the text." };
  if (isToured(widget.model)) messages = { ...success, goal: widget.aim, milestones };
  return trainingBar(widget, {
    chunkMs: LOOK_EVERY_MS,
    success: messages,
    lacking: () => widget.lacksText(),
    another: () => widget.namesOther(),
    begin() {
      const begins = widget.useTyped();
      // on a phone the text stands below the window
      if (begins) widget.frame.querySelector(".newest").scrollIntoView({ block: "nearest" });
      return begins;
    },
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

/** Whether it meets readers of the first page, who know no loss yet. */
const atStart = ({ model }) => model.get("view") === "start";

/** For them: among how many characters it hesitates, by its loss on what it does not learn from. */
function doubts() {
  const message = h("p.label.doubts");
  return {
    element: message,
    shows: "outputs",
    update(_inputs, { valid, names }) {
      const [all, many] = [names.data.length, Math.round(Math.exp(valid.data[0]))];
      setText(
        message,
        `Before each letter, it hesitates between about ${Math.min(many, all)} of ${all} letters ` +
          "and signs.",
      );
    },
  };
}
doubts.style = ".doubts { margin: 0; }";

/** The loss, against tables that count and, for the stories, against what nobody can know. */
function loss(widget) {
  const { limit } = widget.spec.facts;
  return lossCurve(widget, {
    top: 5,
    name: runName(widget),
    height: 180,
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
const PATIENCE_MS = 90_000; // where it has reached nothing, and would show noise beside noise
/** Whether a run that goes on is worth a picture. */
export const isReady = ({ steps, ms = 0, reached }) =>
  steps >= READY_STEPS || ms > (reached.length ? READY_MS : PATIENCE_MS);
const QUOTES = "The picture may quote your text: read it before you send it.";
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
  return `my own text, ${givenTexts.get(id)?.file || `${whole(length)} characters`}`;
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
  let looked; // the past of the run whose picture the reader has asked for
  const id = widget.model.get("link_id");
  let clock = 0; // when the run was last seen to go on
  let [began, from] = [0, 0]; // when the training went on, and at which step
  let done; // the past of the run whose picture was announced
  let said = ""; // how long it takes until then
  widget.toShare = () => {
    const { inputs, ...state } = widget.state();
    const page = pageOf(tour ? TOUR_PAGE : TRAIN_PAGE);
    if (!tour && inputs.corpus < OWN)
      return { page, state: { inputs: { ...inputs, steps: 0 }, ...state } };
    const stays = inputs.corpus >= OWN ? " Your text stays with you." : "";
    return { page, message: `It leads to this ${tour ? "tour" : "trainer"}.${stays}` };
  };
  const read = () => {
    const { snapshots, ms, before } = pastOf(widget);
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
      before: side(before ?? first),
      now: ready ? side(now) : { head: "step …", text: "" },
      foot: `It learned from ${name}${ms ? `, for ${timeOf(ms)}` : ""}, in my browser`,
      course: "The Road to GPT",
      address: tourAddress() && `Teach one yourself: ${tourAddress()}`,
    };
  };
  const picture = shareCard(read, "Train some steps first: then there is a picture to share.");
  const shares = picture.element.children[1];
  if (tour && id) shares.append(h("button", { click: () => share(widget, id) }, "Copy link"));
  const again = async () => {
    setText(another, "Writing …");
    await ask(widget.spec.stem, { act: "redraw" });
    widget.send(widget.inputs);
  };
  const another = h("button", { click: again }, "Another one");
  if (tour && id) shares.append(another);
  const stop = () => {
    widget.rest();
    looked = done = pastOf(widget);
    said = "there";
    widget.repaint("outputs");
    element.scrollIntoView({ block: "start" });
  };
  widget.el.addEventListener("tl:picture", stop);
  const note = h("p.note", { role: "status" });
  picture.element.append(note);
  const element = tour ? h("div.shared", goesOn.element, picture.element) : picture.element;
  /** How long it takes until there is a picture, by the pace of the training so far. */
  const wait = ({ steps, ms = 0 }, passed) => {
    const pace = (READY_STEPS - steps) * (passed / (steps - from));
    const left = Math.min(READY_MS - ms, steps > from ? pace : READY_MS);
    if (left <= 0) return "It learns slowly here: the longer, the better";
    const seconds = left > 5000 ? `about ${10 * Math.ceil(left / 10_000)} s` : "a few seconds";
    return `It is learning: ${seconds} to your picture`;
  };
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
        if (!clock) [began, from] = [now, past.steps];
        clock = now;
      }
      const still = !(widget.streams || widget.behind || widget.model.get("unfinished"));
      const seen = !tour || looked === past;
      if (!tour || (seen && (still || element.hidden))) picture.update(); // it does not change
      element.hidden = !seen;
      another.disabled = !still;
      setText(another, widget.behind && !widget.streams ? "Writing …" : "Another one");
      const paused = tour && still ? "The training is paused, so that the picture stays. " : "";
      const own = widget.inputs.corpus >= OWN && lookOf(widget) !== past.snapshots[0];
      setText(note, paused + (own ? QUOTES : ""));
      const { steps, snapshots } = past;
      const ready = isReady(past) || (!widget.streams && steps >= 20);
      if (done === past) return;
      if (snapshots.length < 2 || !ready) {
        const waits = widget.streams ? wait(past, now - began) : steps ? "Press Go on" : "";
        if (waits === said) return;
        [said, done, looked] = [waits, undefined, undefined];
        return void notifyPage(widget, { what: "learns", said });
      }
      [done, said] = [past, "there"];
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
    const atFirst = ui.view === "start";
    const curve = ui.use(loss);
    const begun = [
      ui.boxed("begin", texts, control),
      ui.use(versus),
      ui.boxed("aside", ui.use(beginning), ui.use(lookBack)),
    ];
    const folds = ui.boxed(
      "folds",
      ...(atFirst ? [ui.use(folded, "How its loss falls", curve)] : []),
      ui.use(folded, "Settings", settings),
      ui.use(folded, "What its heads attend to", ui.use(attention)),
      ...(control.keeper ? [{ element: control.keeper }] : []),
    );
    if (atFirst) {
      const beside = ui.column(ui.use(doubts), folds);
      return [...begun, ui.boxed("proof", beside, ui.use(card))];
    }
    return [...begun, ui.boxed("proof", curve, ui.use(card)), folds];
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
