import { numberOf, usable } from "../page/own_text.js";
import { tellText, textTold, trains } from "../page/trainer.js";
import { radio } from "../ui/controls.js";
import { knob } from "../ui/knobs.js";
import { headMaps } from "../ui/heads.js";
import { h, live, many, mark, results, whole, write } from "../ui/parts.js";
import { paint, pixelAt, pixelMap } from "../ui/pixels.js";
import { called } from "../ui/texts.js";
import { lossCurve, rates, seeds, setting, trainingBar } from "../ui/training.js";

export const program = trains("gpt/gpt_trainer_task.js");

const CORPORA = ["our stories", "Shakespeare", "your own"];
const [SHAKESPEARE, OWN] = [1, 2];
const LAYERS = 4;
const APART = 4000; // ms between two looks: each takes as long as some steps

/** Which text is learned; the reader's own is pasted, or read from a file. */
function corpus(widget) {
  const { facts, stem } = widget.spec;
  const note = h("p", { class: "note", role: "status" });
  const wrong = h("p", { class: "problem wrong", role: "alert" });
  const box = h("textarea", {
    class: "line",
    rows: "4",
    spellcheck: "false",
    "aria-label": "your own text",
    placeholder: "Paste a text here: a book, a diary, a program …",
  });
  const take = (text) => {
    const { error, text: kept, length, note: said } = usable(text, facts.characters);
    write(wrong, error ?? "");
    if (error) return;
    const id = numberOf(kept);
    tellText(stem, id, kept);
    if (!widget.model.get("link_id")) widget.model.set("own", kept);
    write(note, `Your text has ${whole(length)} characters. ${said}`);
    widget.edit(Symbol("corpus"), (next) => {
      next.corpus = id;
      next.steps = 0;
    });
  };
  const file = h("input", {
    type: "file",
    hidden: true,
    change: async () => {
      const [chosen] = file.files;
      file.value = "";
      if (!chosen) return;
      const text = await chosen.text();
      box.value = text.slice(0, 20_000); // what it says is in view; all of it is used
      take(text);
    },
  });
  const own = h(
    "div",
    { class: "column own", hidden: true },
    box,
    wrong,
    h(
      "div",
      { class: "bar" },
      h("button", { type: "button", click: () => take(box.value) }, "Use this text"),
      h("button", { type: "button", click: () => file.click() }, "Open a text file"),
      file,
    ),
    note,
  );
  let wanted = false; // the reader is about to give a text
  const follow = () => {
    const now = wanted ? OWN : Math.min(widget.inputs.corpus, OWN);
    own.hidden = now !== OWN;
    picks.forEach(({ button, element }, i) => {
      button.checked = i === now;
      element.classList.toggle("chosen", button.checked);
    });
  };
  const picks = CORPORA.map((title, i) => {
    const button = radio(widget, "corpus", i, {
      edits: i === OWN ? "" : "corpus", // which text is one's own, the box below says
      choose: () => {
        wanted = i === OWN;
        if (wanted) {
          follow();
          const told = textTold(stem);
          if (told) take(told.text);
          else box.focus();
          return;
        }
        widget.edit(Symbol("corpus"), (next) => {
          next.corpus = i;
          next.steps = 0;
        });
      },
    });
    // A kernel can fetch any text, a copy of the site may have been built without one.
    const there = widget.model.get("texts");
    const lacks = i === SHAKESPEARE && there && !there.includes("shakespeare");
    button.disabled = lacks;
    const about = lacks ? "This copy of the site was built without Shakespeare’s text." : "";
    const pick = { class: "pick", title: about || false };
    return { button, element: h("label", pick, button, h("span", {}, title)) };
  });
  return {
    element: h(
      "div",
      { class: "column" },
      h(
        "div",
        { class: "choice", role: "radiogroup", "aria-label": "text" },
        h(
          "div",
          { class: "kind" },
          h("span", { class: "of" }, "text to learn"),
          h("div", { class: "picks" }, ...picks.map((pick) => pick.element)),
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
.own[hidden] { display: none; }
.own textarea { width: 100%; min-height: 90px; max-height: 260px; resize: vertical; font: inherit;
  font-size: var(--size-touch); color: var(--text); background: transparent;
  border: 1px solid var(--line); border-radius: 5px; padding: 6px 10px; }
.own .wrong:empty { display: none; }
`;

const after = (steps) =>
  steps === 0 ? "before training" : `after ${whole(steps)} step${steps === 1 ? "" : "s"}`;

/** What the model has written at each look; a slider goes back to the ones before. */
function timeline(widget) {
  const looks = []; // { steps, read, written }
  let key = "";
  let chosen = -1; // -1: the newest
  const said = h("pre", { class: "written" });
  const squares = h("p", { class: "note squares" });
  const rest = ({ names }) =>
    names.data.length < widget.spec.facts.V - 1
      ? "□ is a character that the text does not have."
      : "□ is any of the rarer characters.";
  const when = h("span", { class: "label" });
  const at = () => (chosen < 0 ? looks.length - 1 : chosen);
  const slider = knob(widget, "", "look back", {
    read: at,
    ends: () => [0, Math.max(1, looks.length - 1)],
    slide(to) {
      chosen = to >= looks.length - 1 ? -1 : to;
      draw();
    },
    say: (i) => after(looks[Math.min(i, looks.length - 1)].steps),
    box: false,
  });
  const draw = () => {
    const { steps, read, written } = looks[at()];
    slider.update(widget.inputs);
    slider.range.disabled = looks.length < 2;
    const then = after(steps);
    write(when, `It is given the first characters of the held-out text, and writes, ${then}:`);
    said.replaceChildren(h("b", {}, read), written);
    write(squares, `${read}${written}`.includes("□") ? rest(widget.readOutputs()) : "");
  };
  return {
    element: results("column", when, said, squares, slider.element),
    shows: "outputs",
    update(inputs, outputs) {
      const { seed, rate, form, corpus: text } = inputs;
      const now = `${seed} ${rate} ${form} ${text}`;
      const steps = outputs.losses.data.length;
      const spell = (ids) => charactersOf(ids, outputs).join("");
      const look = { steps, read: spell(outputs.read), written: spell(outputs.written) };
      if (now !== key || steps < (looks.at(-1)?.steps ?? 0)) {
        looks.length = 0;
        chosen = -1;
      }
      key = now;
      if (looks.at(-1)?.written !== look.written || looks.at(-1)?.read !== look.read)
        looks.push(look);
      draw();
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

/** The attention of all heads on the text that it is given, and of one of them in large. */
function attention(widget) {
  let head = 0;
  const large = pixelMap();
  const name = h("span", { class: "label" });
  const said = h("p", { class: "note pointed" }, POINT);
  const drawn = ({ weights: { shape, data } }, i) =>
    data.subarray(i * shape[1] * shape[1], (i + 1) * shape[1] * shape[1]);
  const maps = headMaps({
    label: "what each head attends to",
    output: "weights",
    told: (_inputs, outputs) => ({
      L: LAYERS,
      H: outputs.weights.shape[0] / LAYERS,
      R: outputs.weights.shape[1],
      outputs,
    }),
    chosen: () => head,
    choose: (i) => {
      head = i;
      widget.repaint();
    },
    draw(picture, { H, R, outputs }, i) {
      const place = `block ${Math.floor(i / H)}, head ${i % H}`;
      mark(picture.canvas, "aria-label", `attention weights of ${place}`);
      paint(picture.canvas, drawn(outputs, i), R, { ink: "weight", root: true });
    },
  });
  const point = (event) => {
    const outputs = widget.readOutputs();
    const R = outputs.weights.shape[1];
    const [row, column] = pixelAt(large.canvas, event);
    const names = charactersOf(outputs.read, outputs);
    const weight = drawn(outputs, head)[row * R + column];
    write(
      said,
      `${called(names[row])}, place ${row + 1}, attends to ${called(names[column])},
      place ${column + 1}: ${weight.toFixed(2)}`,
    );
  };
  large.canvas.addEventListener("pointermove", point);
  large.canvas.addEventListener("pointerdown", point);
  large.canvas.addEventListener("pointerleave", () => write(said, POINT));
  return {
    element: h(
      "div",
      { class: "atlas" },
      maps.element,
      h("div", { class: "column large" }, name, large.element, said),
    ),
    shows: "outputs",
    update(inputs, outputs) {
      maps.update(inputs, outputs);
      const R = outputs.weights.shape[1];
      const H = outputs.weights.shape[0] / LAYERS;
      write(name, `block ${Math.floor(head / H)}, head ${head % H}`);
      mark(large.canvas, "aria-label", `attention weights of ${name.textContent}`);
      paint(large.canvas, drawn(outputs, head), R, { ink: "weight", root: true });
    },
  };
}
const POINT = "Each row is a place that attends, each column one that it attends to.";
attention.style = `${headMaps.style}
.large .pixel-map { width: min(100%, 190px); }
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
    bite: APART,
    says: (ms) => `, ${per(ms)} characters/s`,
    saved: {
      metadata: (_inputs, outputs, losses) => ({
        config: facts.config,
        kind: "characters",
        tokens: alphabet(outputs, facts.V),
        trained: losses.length,
      }),
      wrong: ({ tokens }, _inputs, outputs) =>
        JSON.stringify(tokens) === JSON.stringify(alphabet(outputs, facts.V))
          ? ""
          : "it was trained on a text of other characters. Choose that text first.",
      also: ({ corpus: id }) => (id >= OWN ? { text: textTold(stem) } : {}),
      take: async ({ text }) => {
        if (text) tellText(stem, text.id, text.text);
      },
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
    height: 176,
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
        ui.use((widget) => setting(widget, "form", "model", forms(widget.spec))),
        ui.use(rates),
        ui.use(seeds),
      ),
      ui.column(ui.use(bar), ui.use(loss)),
    ),
    ui.sides(ui.use(timeline), ui.boxed("side", ui.use(attention))),
  ],
  { wide: true },
);

/** All tokens of the model, as its file names them: where there are fewer characters, fillers. */
function alphabet(outputs, V) {
  const names = Array.from(outputs.names.data, (point) => String.fromCodePoint(point));
  const more = many(V - names.length, (i) => String.fromCodePoint(0xf0000 + i));
  return [...names, ...more];
}
