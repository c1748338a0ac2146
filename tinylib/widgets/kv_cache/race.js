import { uniform } from "../../live/page/chance.js";
import { results } from "../../live/ui/boxes.js";
import { redraw } from "../../live/ui/controls.js";
import { h, setAttribute, setText } from "../../live/ui/dom.js";
import { animate } from "../../live/ui/motion.js";
import { live } from "../../live/ui/parts.js";
import { paint } from "../../live/ui/pixels.js";
import { dotsAt, plane } from "../../live/ui/plot.js";
import { text } from "../../live/ui/sentences.js";
import { autoContinue, fillText, followEnd, TEXT_STYLE } from "../../live/ui/texts.js";

const KINDS = [
  { name: "with cache", output: "kept" },
  { name: "without cache", output: "again" },
];

// ---------------------------------------------------------------- what is computed

const races = new WeakMap(); // spec -> the race that is on, or was last

/** A writer as in race.py: what it has written, the keys and values, and what each letter took. */
function newWriter({ facts, limits }, prompt, cached) {
  const [[L], [D]] = [limits.L, limits.D];
  const [keys, values] = [0, 1].map(() => new Float32Array(facts.max_len * L * D));
  return { cached, L, D, keys, values, tokens: [...prompt], times: [] };
}

/** One more letter. The clock runs while the model reads: what is drawn takes both alike. */
async function writeLetter(run, writer, { facts: { temperature }, limits: { V } }, u) {
  const { cached, L, D, tokens, times } = writer;
  const P = cached && times.length ? tokens.length - 1 : 0;
  const first = (numbers) => ({ dims: [P, L, D], data: numbers.subarray(0, P * L * D) });
  const [cached_keys, cached_values] = [first(writer.keys), first(writer.values)];
  const started = performance.now();
  const last = await run("writing-read", { tokens: tokens.slice(P), cached_keys, cached_values });
  const took = performance.now() - started;
  const { logits } = last;
  const { token } = await run("writing-choose", { logits, temperature, k: V[1], p: 1, u });
  for (const name of ["keys", "values"]) writer[name].set(last[name].data, P * L * D);
  times.push(took);
  tokens.push(Number(token.data[0]));
}

/** The rows of the head that is shown. */
function ofHead(numbers, rows, { L, D }, { facts: { head, heads } }) {
  const width = D / heads;
  const start = Math.floor(head / heads) * D + (head % heads) * width;
  const data = new Float32Array(rows * width);
  for (let i = 0; i < rows; i += 1) {
    const from = i * L * D + start;
    data.set(numbers.subarray(from, from + width), i * width);
  }
  return { dims: [rows, width], data };
}

/** What torch does in a kernel, in compute() of race.py. */
export async function program(run, { prompt, seed, written }, spec, partly = (_make) => {}) {
  const u = uniform(seed, spec.facts.letters);
  const named = JSON.stringify([prompt, seed]);
  if (races.get(spec)?.named !== named || !written.some(Boolean)) {
    const both = [true, false].map((cached) => newWriter(spec, prompt, cached));
    await writeLetter(run, newWriter(spec, prompt, false), spec, u[0]); // to warm up, for both
    races.set(spec, { named, both });
  }
  const { both } = races.get(spec);
  const raced = () => {
    const found = {};
    KINDS.forEach(({ output }, i) => {
      const { tokens, times, ...writer } = both[i];
      const count = Math.min(written[i], times.length);
      const rows = count ? prompt.length + count - 1 : 0;
      found[output] = tokens.slice(prompt.length, prompt.length + count);
      for (const of of ["keys", "values"])
        found[`${output}_${of}`] = ofHead(writer[of], rows, writer, spec);
    });
    return found;
  };
  for (const [i, writer] of both.entries()) {
    while (writer.times.length < written[i]) {
      await writeLetter(run, writer, spec, u[writer.times.length]);
      partly(raced);
    }
  }
  return raced();
}

// ---------------------------------------------------------------- what is shown

// So faint that it may come many times a second: it changes the light by less than a tenth.
const FLASH = { backgroundColor: "color-mix(in srgb, var(--accent) 13%, transparent)" };
const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
const inSeconds = (times) => `${(total(times) / 1000).toFixed(1)} s`;

/** What each letter took that is shown, in ms, with a cache and without. */
function timesOf({ model, spec, inputs }) {
  const both = model.get("spent") ?? races.get(spec)?.both.map(({ times }) => times) ?? [[], []];
  return both.map((times, i) => times.slice(0, inputs.written[i]));
}

function restart(next) {
  next.written = [0, 0];
}

/** Both write on in turn, always the one whose own clock is behind, until both have all letters. */
function starter(widget) {
  let begun = false;
  const begin = () => {
    begun = false;
  };
  const go = h("button", { class: "main", "data-input": "written", click: begin }, "Race");
  const race = autoContinue(widget, go, (field) => {
    if (widget.behind || widget.model.get("unfinished")) return false;
    const [{ written }, { letters }] = [widget.inputs, widget.spec.facts];
    if (!begun) {
      begun = true;
      if (written.some(Boolean)) return widget.edit(Symbol("another race"), restart);
    }
    const clocks = timesOf(widget).map((times, i) =>
      written[i] < letters ? total(times) : Infinity,
    );
    if (clocks.every((clock) => clock === Infinity)) return verdict(widget);
    const next = clocks[0] <= clocks[1] ? 0 : 1;
    return widget.edit(field, ({ written: now }) => {
      now[next] += 1;
    });
  });
  go.addEventListener("click", () => widget.stream(true, true)); // what grows shows enough
  setText(race.halt, "Stop");
  race.note.classList.add("verdict");
  return { element: h("div.onward", go, race.halt), ...race, reset: () => race.stop() };
}

/** Who was faster, and whether both texts are the same. */
function verdict(widget) {
  const [kept, again] = timesOf(widget);
  const outputs = widget.readOutputs();
  const differs = outputs.kept.data.findIndex((id, n) => id !== outputs.again.data[n]);
  const ratio = (total(again) / total(kept)).toFixed(1);
  return (
    `${inSeconds(again)} without cache, ${inSeconds(kept)} with it: ${ratio} times as long for ` +
    (differs < 0
      ? "the same text, letter for letter."
      : `as many letters. The texts differ from letter ${differs + 1} on: the logits are rounded ` +
        "in another way, and a draw fell just between.")
  );
}

/** One of the two: its clock, its text, and one head's keys and values, a column a letter. */
function column(widget, i) {
  const { letters } = widget.spec.facts;
  const { name, output } = KINDS[i];
  const clock = h("span.clock");
  const line = h("span");
  const box = h("div.text.raced", { dir: "auto" }, line);
  const follow = followEnd(box);
  const pictures = ["key", "value"].map((ink) => {
    const canvas = h("canvas", { "data-output": `${output}_${ink}s`, role: "img" });
    const fresh = h("i.fresh");
    return { ink, canvas, fresh, element: h("div.rows", canvas, fresh) };
  });
  const read = h("p.note.read");
  const of = (what) => h("span.label", what);
  const element = h(
    `div.lane.of-${output}`,
    h("p.head", h("b", name), clock),
    box,
    of("keys, of one head"),
    pictures[0].element,
    of("values"),
    pictures[1].element,
    read,
  );
  let [shown, before] = ["", 0];
  return {
    element,
    update({ prompt }, outputs) {
      setText(clock, inSeconds(timesOf(widget)[i]));
      const { data } = outputs[output];
      if (shown === `${prompt} ${data}`) return; // the other one has written
      shown = `${prompt} ${data}`;
      const vocabulary = widget.spec.sentences.prompt;
      const names = [...prompt, ...Array.from(data, (id) => vocabulary[id])];
      fillText(line, { names, first: 0 }, "span", (_, t) => (t < prompt.length ? " given" : ""));
      follow(names);
      const [rows, width] = outputs[`${output}_keys`].shape;
      const columns = [...prompt].length + letters - 1;
      const computed = output === "kept" && data.length > 1 ? 1 : rows;
      setText(
        read,
        rows === 0
          ? "Nothing is read yet: press Race."
          : computed < rows
            ? `1 column is new, ${rows - 1} are kept`
            : `all ${rows} columns are computed${data.length > 1 ? " again" : ""}`,
      );
      for (const { ink, canvas, fresh } of pictures) {
        canvas.hidden = fresh.hidden = rows === 0;
        canvas.style.width = `${(100 * rows) / columns}%`;
        const numbers = outputs[`${output}_${ink}s`].data;
        canvas.values = numbers;
        if (!rows) continue;
        const turned = Float32Array.from(
          numbers,
          (_, at) => numbers[(at % rows) * width + Math.floor(at / rows)],
        );
        paint(canvas, turned, rows, { ink, most: ink === "key" ? 2 : 1 });
        canvas.values = numbers; // and not as they were turned
        setAttribute(canvas, "aria-label", `${ink}s of ${rows} letters, in one head`);
        fresh.style.left = `${(100 * (rows - computed)) / columns}%`;
        fresh.style.width = `max(3px, ${(100 * computed) / columns}%)`;
        if (data.length > before) animate(fresh, [FLASH, {}], { duration: 250 });
      }
      before = data.length;
    },
  };
}

const HEADROOM = 1.12; // over the slowest dots, which are cut off otherwise

/** How long each letter took: a dot for each, with a cache and without. */
function paces(widget) {
  const { letters } = widget.spec.facts;
  const names = KINDS.map(({ output }) => output);
  const plot = plane({ name: "paces", x: [0, letters], y: [0, 10], height: 84, paths: names });
  let high = 0;
  return {
    element: results("column", h("span.label", "time for each letter"), plot.element),
    update() {
      const both = timesOf(widget);
      const sorted = both.flat().sort((a, b) => a - b);
      const usual = sorted[Math.floor(0.97 * sorted.length)] ?? 0; // few took longer
      const most = 10 * Math.ceil(Math.max(10, 1.2 * usual) / 10);
      const x = [0, letters / 2, [letters, `${letters} letters`]];
      const y = [0, [most, `${most} ms`]];
      if (most !== high) plot.reach({ y: [0, HEADROOM * most], ticks: { x, y } });
      high = most;
      both.forEach((times, i) => {
        const dots = times.map((ms, n) => [n + 1, Math.min(ms, most)]);
        setAttribute(plot.paths[names[i]], "d", dotsAt(dots));
      });
    },
  };
}

/** The button, both lanes, and who was faster. */
function race(widget) {
  const start = starter(widget);
  const both = KINDS.map((_, i) => column(widget, i));
  start.element.append(redraw(widget, "New draw", restart));
  const side = both.map(({ element }) => element);
  return {
    element: h("div.race", start.element, results("lanes", ...side), start.note),
    reset: start.stop,
    update(...args) {
      for (const part of [start, ...both]) part.update(...args);
    },
  };
}
race.style = `${TEXT_STYLE}
.race { display: grid; gap: 10px; min-width: 0; }
.race .main { min-width: 5.75rem; }
.onward { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; }
.lanes { display: grid; grid-template: repeat(7, auto) / 1fr 1fr; gap: 4px clamp(10px, 3cqw, 28px);
  }
.lane { display: grid; grid-row: span 7; grid-template-rows: subgrid; min-width: 0;
  --tone: var(--blue); }
.of-again { --tone: var(--vermilion); }
.head { display: flex; flex-wrap: wrap; gap: 0 8px; align-items: center; margin: 0; }
.head b { flex: 1 1 9.5rem; }
.head b::before { content: ""; display: inline-block; width: .625rem; height: .625rem;
  border-radius: 50%; margin-right: 7px; background: var(--tone); }
.clock { width: 5rem; height: 1.75rem; contain: strict; margin-left: auto; text-align: right;
  font-size: var(--size-large); font-weight: 650; line-height: 1.75rem;
  font-variant-numeric: tabular-nums; }
.raced.raced { height: calc(8.5rem * var(--grow, 1)); overflow-y: auto; contain: strict;
  cursor: default;
  line-height: 1.5rem; }
.given { color: var(--soft); }
.rows { position: relative; height: calc(2.75rem * var(--grow, 1)); overflow: hidden;
  border: 1px solid var(--line);
  contain: strict; }
.rows canvas { display: block; height: 100%; }
.rows [hidden] { display: none; }
.fresh { position: absolute; top: 0; bottom: 0; box-shadow: inset 0 0 0 1.5px var(--accent); }
.read { height: 3.2em; contain: strict; font-variant-numeric: tabular-nums; }
.verdict { min-height: 4.5rem; max-width: none; font-size: var(--size-text); font-weight: 600; }
.verdict:empty { min-height: 0; }
@container widget (min-width: 53.75rem) {
  .verdict.verdict { min-height: 1.5rem; }
  .read { height: 1.6em; }
}
`;

paces.style = `${plane.style}
.plane.paces { margin-left: 3.25rem; }
.paces path { stroke-width: 3; }
.paces path.again { stroke: var(--vermilion); }
.paces .tick.x:nth-child(3) { transform: translate(-100%, 7px); }
.below { display: grid; gap: 10px 28px; grid-template-columns: minmax(0, 1fr); }
@container widget (min-width: 53.75rem) { .below { grid-template-columns: 2fr 1fr; } }
`;

export default live(
  "One text, with a cache and without",
  (ui) => [
    ui.use(race),
    ui.boxed("below", ui.use(paces), ui.use(text, "prompt", "Beginning", restart)),
  ],
  {
    wide: true,
    main: ".lanes",
  },
);
