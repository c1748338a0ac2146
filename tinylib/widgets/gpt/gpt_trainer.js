import { numberOf, textIn, usable } from "../../live/page/own_text.js";
import { ownTextOf, setOwnText, trains } from "../../live/page/trainer.js";
import { results } from "../../live/ui/boxes.js";
import { radio } from "../../live/ui/controls.js";
import { AS_IS, AS_TYPED, h, setAttribute, setText } from "../../live/ui/dom.js";
import { headMaps } from "../../live/ui/heads.js";
import { knob } from "../../live/ui/knobs.js";
import { times, whole } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint, pixelAt, pixelMap } from "../../live/ui/pixels.js";
import { fillList } from "../../live/ui/sentences.js";
import { called } from "../../live/ui/texts.js";
import { lossCurve, pastOf, rates, seeds, setting, trainingBar } from "../../live/ui/training.js";

export const program = trains("gpt/gpt_trainer_task.js");

const CORPORA = ["our stories", "Shakespeare", "your own"];
const [SHAKESPEARE, OWN] = [1, 2];
const LAYERS = 4;
const IN_BOX = 20_000; // characters of a text that the box shows
const LOOK_EVERY_MS = 4000; // ms between two looks: each takes as long as some steps

/** Which text is learned; the reader's own is pasted, or read from a file. */
function corpus(widget) {
  const { facts, stem } = widget.spec;
  const note = h("p.note", { role: "status" });
  const wrong = h("p.problem.wrong", { role: "alert" });
  const box = h("textarea.line", {
    rows: "4",
    spellcheck: "false",
    "aria-label": "your own text",
    placeholder: "Paste a text here: a book, a diary, a program …",
    input: () => setText(wrong, ""),
  });
  let opened = { text: "", excerpt: "" }; // a text that is longer than the box, and what it shows
  const show = (text) => {
    box.value = text.slice(0, IN_BOX).replace(/[\ud800-\udbff]$/, "");
    opened = { text, excerpt: text.length > IN_BOX ? box.value : "" };
  };
  const given = () => (opened.excerpt && box.value === opened.excerpt ? opened.text : box.value);
  const begin = (id) =>
    widget.edit(Symbol("corpus"), (next) => {
      next.corpus = id;
      next.steps = 0;
    });
  const use = (id, text) => {
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
  const take = (text, fill = () => {}) => {
    const { error, text: kept, length, note: caution } = usable(text, facts.characters);
    setText(wrong, error ?? "");
    if (error) return;
    fill();
    const all = text === opened.text && box.value === opened.excerpt;
    const seen = all
      ? "The box shows only its beginning."
      : opened.excerpt && "What the box does not show is not used.";
    if (!all) opened = { text: "", excerpt: "" };
    const about = [`Your text has ${whole(length)} characters.`, seen, caution].filter(Boolean);
    const id = numberOf(kept);
    const steps = widget.readOutputs().losses.data.length;
    const go = () => {
      setText(note, about.join(" "));
      use(id, kept);
    };
    if (id === widget.inputs.corpus || !steps) return go();
    const stay = () => {
      setText(note, "");
      leave();
    };
    note.replaceChildren(
      `To learn this text begins at step 0, and the run on show has ${whole(steps)} steps. `,
      h("button", { click: go }, "Begin with this text"),
      " ",
      h("button", { click: stay }, "Stay with the run"),
    );
  };
  const read = async (chosen) => {
    try {
      const text = await textIn(chosen, facts.characters[1]);
      take(text, () => show(text));
    } catch (error) {
      setText(wrong, error.message);
    }
  };
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
    h(
      "div.bar",
      h("button", { click: () => take(given()) }, "Use this text"),
      h("button", { click: () => file.click() }, "Open a text file"),
      file,
    ),
    note,
  );
  let wanted = false; // the reader is about to give a text
  let shown = 0; // the number of the text in the box
  const follow = () => {
    if (widget.inputs.corpus >= OWN) wanted = false;
    const now = wanted ? OWN : Math.min(widget.inputs.corpus, OWN);
    own.hidden = now !== OWN;
    widget.lacksText = wanted;
    const ownText = ownTextOf(stem);
    if (now === OWN && ownText && ownText.id !== shown) {
      shown = ownText.id;
      if (!box.value) show(ownText.text); // it was kept from another visit
    }
    picks.forEach(({ button, element }, i) => {
      button.checked = i === now;
      element.classList.toggle("chosen", button.checked);
    });
  };
  const picks = CORPORA.map((title, i) => {
    const button = radio(widget, "corpus", i, {
      edits: i === OWN ? "" : "corpus", // the box below edits the corpus
      choose: () => {
        wanted = i === OWN;
        if (wanted) {
          widget.repaint("inputs");
          const ownText = ownTextOf(stem);
          if (ownText) take(ownText.text);
          else box.focus();
          return;
        }
        if (i === widget.inputs.corpus) leave();
        else begin(i);
      },
    });
    // A kernel can fetch any text, a copy of the site may have been built without one.
    const there = widget.model.get("texts");
    const lacks = i === SHAKESPEARE && there && !there.includes("shakespeare");
    button.disabled = lacks;
    const about = lacks ? "This copy of the site was built without Shakespeare’s text." : "";
    const pick = { class: "pick", title: about || false };
    return { button, element: h("label", pick, button, h("span", title)) };
  });
  return {
    element: h(
      "div.column",
      h(
        "div.choice",
        { role: "radiogroup", "aria-label": "text" },
        h(
          "div.kind",
          h("span.of", "text to learn"),
          h("div.picks", ...picks.map((pick) => pick.element)),
        ),
      ),
      own,
    ),
    shows: "inputs",
    reset() {
      wanted = false;
    },
    update: follow,
  };
}
corpus.style = `
.own textarea { width: 100%; min-height: 5.625rem; max-height: 16.25rem; resize: vertical; font:
  inherit; font-size: var(--size-touch); color: var(--text); background: transparent; border: 1px
  solid var(--line); border-radius: 5px; padding: 6px 10px; }
.own .wrong:empty { display: none; }
`;

const after = (steps, loaded) => {
  if (steps === 0) return loaded ? "as it was loaded" : "before training";
  return `after ${whole(steps)} step${steps === 1 ? "" : "s"}`;
};

/** The snapshot that the reader goes back to, or the newest: what it wrote, and its weights. */
const lookOf = (widget) => {
  const { snapshots, chosen = -1 } = pastOf(widget);
  return snapshots.at(chosen < snapshots.length ? chosen : -1);
};

/** Note what is seen now, among what was seen before in this run. */
function noted(widget, outputs) {
  const { snapshots, steps, known } = pastOf(widget);
  const { weights } = outputs;
  const [given, written] = [outputs.read, outputs.written].map((ids) => charactersOf(ids, outputs));
  const last = snapshots.at(-1);
  const same = last && String([last.given, last.said]) === String([given, written]);
  if ((!known && last) || same) return;
  if (last?.steps === steps) snapshots.pop(); // it only had another beginning
  const [count, R] = weights.shape;
  snapshots.push({ steps, given, said: written, heads: count / LAYERS, R, weights: weights.data });
}

/** What it continues: the reader's own words, or the first of the held-out text. */
function beginning(widget) {
  const typing = Symbol("beginning");
  const [, most] = widget.spec.limits.C;
  const note = h("p.note", { role: "status" });
  const typed = () => Array.from(given.value, (character) => character.codePointAt(0));
  const given = h("input", {
    type: "text",
    ...AS_TYPED,
    "data-input": "beginning",
    placeholder: "the held-out text, or yours",
    input: () =>
      widget.edit(typing, (next) => {
        next.beginning = typed().slice(-most);
      }),
  });
  const line = h("label.given", h("span.label", "It continues"), given);
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
            ? [`□ stands for what this text does not have: ${some.join(", ")}${more}.`]
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

/** What the model has written at each look; a slider goes back to the ones before. */
function timeline(widget) {
  const writtenBox = h("pre.written", { ...AS_IS, dir: "auto" });
  const squares = h("p.note.squares");
  const rest = ({ names }) =>
    names.data.length < widget.spec.facts.V - 1
      ? "□: one of the 128 ids that stands for no character of this text."
      : "□: any of the rarer characters.";
  const when = h("span.label");
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
    element: results("column", when, writtenBox, squares, slider.element),
    shows: "outputs",
    update(inputs, outputs) {
      noted(widget, outputs);
      const look = lookOf(widget);
      slider.update(inputs);
      slider.range.disabled = snapshots().length < 2;
      if (!look) return;
      setText(when, `What it writes ${after(look.steps, pastOf(widget).loaded)}:`);
      writtenBox.replaceChildren(h("b", look.given.join("")), look.said.join(""));
      setText(squares, `${look.given}${look.said}`.includes("□") ? rest(outputs) : "");
    },
  };
}
timeline.style = `
.written { margin: 0; padding: 8px 12px; white-space: pre-wrap; overflow-wrap: anywhere;
  font-family: var(--mono); font-size: var(--size-note); line-height: 1.45; min-height: 9.5em;
  border: 1px solid var(--line); border-radius: 6px; }
.squares { margin: 0; min-height: 1.4em; }
.written b { color: var(--soft); font-weight: 400; }
`;

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

/** The ids as characters; what the model cannot tell apart is one square. */
function charactersOf({ data }, { names }) {
  const known = Array.from(names.data, (point) => String.fromCodePoint(point));
  return Array.from(data, (id) => known[id] ?? "□");
}

const forms = ({ facts }) => facts.training.forms;
const runName = (widget) => (inputs) =>
  [
    CORPORA[Math.min(inputs.corpus, OWN)],
    ...(inputs.form ? [forms(widget.spec)[inputs.form]] : []),
    ...(inputs.rate === 1 ? [] : [`rate × ${inputs.rate}`]),
    `seed ${inputs.seed}`,
  ].join(", ");

const RULES = ["counts of characters", "of pairs", "of triples"];

/** What keeps the run, and what its speed means in characters. */
function bar(widget) {
  const { facts, stem } = widget.spec;
  const size = facts.T * facts.batch;
  const per = (ms) => whole(Math.round((10 * size) / ms) * 100);
  return trainingBar(widget, {
    chunkMs: LOOK_EVERY_MS,
    lacking: () => (widget.lacksText ? "First use a text" : ""),
    rateText: (ms) => `, ${per(ms)} characters/s`,
    saved: {
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
    height: 160,
    second: ({ valid }) => valid.data[0],
    rules: ({ corpus: id }, { ngrams }) => [
      ...RULES.map((name, i) => [ngrams.data[i], `${name}: ${ngrams.data[i].toFixed(2)}`]),
      ...(id === 0 ? [[limit, `the limit: ${limit.toFixed(2)}`]] : []),
    ],
  });
}
loss.style = lossCurve.style;

export default live(
  "Train a GPT on a text",
  (ui) => [
    ui.sides(
      ui.column(
        ui.use(corpus),
        ui.use((widget) => setting(widget, "form", "model and optimiser", forms(widget.spec))),
        ui.use(rates),
        ui.use(seeds),
      ),
      ui.column(ui.use(bar), ui.use(loss)),
    ),
    ui.sides(ui.column(ui.use(beginning), ui.use(timeline)), ui.boxed("side", ui.use(attention))),
  ],
  { wide: true },
);

/** All tokens of the model, as its file names them: where there are fewer characters, fillers. */
function alphabet(outputs, V) {
  const names = Array.from(outputs.names.data, (point) => String.fromCodePoint(point));
  const more = times(V - names.length, (i) => String.fromCodePoint(0xf0000 + i));
  return [...names, ...more];
}
