// The parts of a widget that trains: what starts and stops it, its loss as a curve, and keeping it.

import { choice } from "./controls.js";
import { h, mark, percent, whole, write } from "./parts.js";
import { plane, through } from "./plot.js";
import { fillList } from "./sentences.js";
import { forget, fromSafetensors, keep, kept, toSafetensors } from "../page/keeping.js";
import { ask, halt } from "../page/trainer.js";

const BITE = 800; // ms of training between two edits of the steps; in a page it is seen meanwhile
const SLOW = 350; // ms between two steps that a reader can follow
const OFTEN = 8000; // ms between two times that a run is kept in the browser

/** @type {(ms: number) => string} */
const silent = (_ms) => "";

/** A new training: other settings begin again at step 0. */
const anew = (next) => {
  next.steps = 0;
};

/** A choice of an input that a training depends on. */
export const setting = (widget, name, label, entries) =>
  choice(widget, name, label, entries, {
    edits: name,
    choose: (value) =>
      widget.edit(Symbol(name), (next) => {
        next[name] = value;
        anew(next);
      }),
    read: (inputs) => inputs[name],
  });

/** The rate as a share of the usual one. */
export const rates = (widget, label = "learning rate") =>
  setting(widget, "rate", label, [
    { title: "a tenth", value: 0.1 },
    { title: "as usual", value: 1 },
    { title: "ten times", value: 10 },
  ]);

/** Another seed: other parameters to begin with, and other batches. */
export function seeds(widget) {
  const name = h("span", { class: "label" });
  const button = h(
    "button",
    {
      type: "button",
      "data-input": "seed",
      click: () =>
        widget.edit(Symbol("seed"), (next) => {
          next.seed = (next.seed % widget.spec.limits.seed[1]) + 1;
          anew(next);
        }),
    },
    "Another seed",
  );
  return {
    element: h("div", { class: "seeds" }, name, button),
    shows: "inputs",
    update: ({ seed }) => write(name, `seed ${seed}`),
  };
}

const duration = (ms) => (ms < 100 ? `${ms.toFixed(1)} ms` : `${whole(Math.round(ms))} ms`);

/**
 * Start, Pause, one step, and back to the beginning; how far it is. `says(ms)` tells what so
 * many ms a step mean. With `pause`, each step is seen, so many ms after the one before. In a
 * page a run can be kept, saved as a file and loaded again, as `saved` says:
 * { metadata(inputs, outputs), wrong(metadata, inputs), also(inputs), take(kept) }.
 */
export function trainingBar(
  widget,
  { says = silent, bite = BITE, pause: gap = 0, saved = undefined } = {},
) {
  const { most } = widget.spec.facts.training;
  const { stem } = widget.spec;
  const inPage = Boolean(widget.model.get("link_id"));
  let running = false;
  let slow = false;
  let began = 0; // when the steps that are under way were asked for, and from where
  let from = 0;
  let pace = 0; // ms a step
  let timer = 0;
  let heard; // the last answer: inputs that were just sent have none yet

  const at = () => widget.readOutputs().losses.data.length;
  const ready = () => !widget.behind && !widget.model.get("unfinished");
  const advance = (count) => {
    from = at();
    began = performance.now();
    widget.send({ ...widget.inputs, steps: Math.min(most, from + count) });
  };
  const bitten = () => (slow || gap ? 1 : Math.max(1, Math.round(bite / (pace || bite / 2))));
  const run = () => {
    if (!running) return;
    if (at() >= most) stop();
    else advance(bitten());
  };
  const show = () => {
    const focused = bar.getRootNode().activeElement;
    [go.hidden, pause.hidden] = [running, !running];
    if (focused === go && running) pause.focus();
    if (focused === pause && !running) go.focus();
    go.disabled = one.disabled = at() >= most;
    write(go, at() > 0 && at() < most ? "Go on" : "Start training");
  };
  const stop = () => {
    running = false;
    clearTimeout(timer);
    if (inPage) halt(stem);
    widget.stream(false);
    show();
  };
  const start = () => {
    widget.remember(Symbol("training"));
    running = true;
    widget.stream(true, true);
    show();
    run();
  };
  const go = h("button", { type: "button", class: "main", "data-input": "steps", click: start });
  const pause = h("button", { type: "button", class: "main", hidden: true, click: stop }, "Pause");
  const one = h(
    "button",
    {
      type: "button",
      "data-input": "steps",
      click: () => {
        if (running) stop();
        if (ready()) advance(1);
      },
    },
    "One step",
  );
  const back = h(
    "button",
    {
      type: "button",
      "data-input": "steps",
      click: async () => {
        stop();
        if (inPage) await ask(stem, { act: "forget" });
        widget.edit(Symbol("back"), anew);
      },
    },
    "Back to step 0",
  );
  const slowly = h("input", {
    type: "checkbox",
    change: () => {
      slow = slowly.checked;
    },
  });
  const far = h("progress", { max: String(most), "aria-label": "steps done" });
  const told = h("span", { class: "pace", role: "status" });
  const bar = h(
    "div",
    { class: "bar" },
    go,
    pause,
    one,
    back,
    h("label", { class: "toggle" }, slowly, h("span", {}, "slowly")),
    h("span", { class: "far" }, far, told),
  );
  widget.model.on("change:error", () => {
    if (widget.model.get("error") && running) stop();
  });
  const keeping = inPage && saved ? keeper(widget, saved, { at, stop, ready }) : null;
  return {
    element: h("div", { class: "column" }, bar, ...(keeping ? [keeping.element] : [])),
    reset: stop,
    update(inputs) {
      const steps = at();
      far.value = steps;
      const passed = performance.now() - began;
      if (steps > from && began) pace = passed / (steps - from);
      const speed =
        running && pace && !slow && !gap ? `, ${duration(pace)} a step${says(pace)}` : "";
      write(told, `step ${whole(steps)} of ${whole(most)}${speed}`);
      const answer = widget.model.get("answers");
      if (ready() && heard !== answer) {
        heard = answer;
        // A halt ends it before the steps that were asked for: then those that are there count.
        if (inputs.steps > steps) widget.model.set("inputs", { ...inputs, steps });
        if (running && inputs.steps === 0 && from > 0) stop();
        clearTimeout(timer);
        if (running) timer = setTimeout(run, slow ? SLOW : gap);
      }
      show();
      keeping?.update(inputs, running);
    },
  };
}

/** Keep a run in the browser, save it as a file, load one: what a page without a kernel offers. */
function keeper(widget, { metadata, wrong, also, take }, { at, stop, ready }) {
  const { stem, facts } = widget.spec;
  let last = 0; // when it was kept
  const note = h("p", { class: "note", role: "status" });
  const say = (text) => write(note, text);
  const stateNow = () => ask(stem, { act: "state" });
  const restore = async (state, inputs) => {
    stop();
    await take?.(state);
    const next = { ...inputs, steps: state.losses.length };
    await ask(stem, { act: "restore", spec: widget.spec, inputs: next, saved: state });
    widget.remember(Symbol("restore"));
    widget.send(next);
  };
  const box = h("input", {
    type: "checkbox",
    change: async () => {
      if (box.checked) return void keepNow();
      await forget(stem).catch(() => {});
      say("");
    },
  });
  const keepNow = async () => {
    last = performance.now();
    const inputs = widget.inputs;
    try {
      const state = await stateNow();
      if (!state) return;
      await keep(stem, { ...state, inputs, ...also?.(inputs) });
      say(`Kept in this browser: step ${whole(state.losses.length)}.`);
    } catch (error) {
      box.checked = false;
      const full = error?.name === "QuotaExceededError";
      const why = full ? "there is no room left" : "it does not let this page keep anything";
      say(`The browser cannot keep this run: ${why}. The run goes on; save it as a file instead.`);
    }
  };
  const save = h(
    "button",
    {
      type: "button",
      click: async () => {
        const state = await stateNow();
        if (!state) return void say("There is nothing to save yet: train some steps first.");
        const { names, shapes } = facts;
        const about = metadata(widget.inputs, widget.readOutputs(), state.losses);
        const file = toSafetensors(state.parameters, names, shapes, about);
        const name = `${stem}-${state.losses.length}.safetensors`;
        const link = h("a", { href: URL.createObjectURL(file), download: name });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
        say(`Saved as ${name}, which tinylib loads.`);
      },
    },
    "Save as a file",
  );
  const chosen = h("input", {
    type: "file",
    accept: ".safetensors",
    hidden: true,
    change: async () => {
      const [file] = chosen.files;
      chosen.value = "";
      if (!file) return;
      try {
        const { names, shapes } = facts;
        const read = fromSafetensors(await file.arrayBuffer(), names, shapes);
        const why = wrong?.(read.metadata, widget.inputs, widget.readOutputs());
        if (why) throw new Error(`This file cannot be used: ${why} Your run is as it was.`);
        await restore({ parameters: read.vector, losses: [] }, widget.inputs);
        say(`${file.name} is loaded: the model goes on from what it has learned, at step 0.`);
      } catch (error) {
        say(error.message);
      }
    },
  });
  const load = h("button", { type: "button", click: () => chosen.click() }, "Load a file");
  const there = h("p", { class: "note there", hidden: true });
  const greet = async () => {
    const found = await kept(stem).catch(() => undefined);
    if (!found || at() > 0) return;
    const end = found.losses.length;
    const loss = found.losses.slice(-20).reduce((a, b) => a + b, 0) / Math.min(20, end || 1);
    there.hidden = false;
    there.replaceChildren(
      `A run of yours is kept here: step ${whole(end)}, loss ${loss.toFixed(2)}. `,
      h(
        "button",
        {
          type: "button",
          click: async () => {
            there.hidden = true;
            box.checked = true;
            await restore(found, found.inputs).catch((error) => say(error.message));
          },
        },
        "Go on with it",
      ),
      " ",
      h(
        "button",
        {
          type: "button",
          click: () => {
            there.hidden = true;
            forget(stem).catch(() => {});
          },
        },
        "Forget it",
      ),
    );
  };
  greet();
  return {
    element: h(
      "div",
      { class: "column" },
      there,
      h(
        "details",
        { class: "folded" },
        h("summary", {}, "Keep this run"),
        h(
          "div",
          { class: "bar" },
          h("label", { class: "toggle" }, box, h("span", {}, "keep it in this browser")),
          save,
          load,
          chosen,
        ),
        note,
      ),
    ),
    update(_inputs, running) {
      const due = performance.now() - last > OFTEN || !running;
      if (box.checked && at() > 0 && ready() && due) keepNow();
    },
  };
}

trainingBar.style = `
.bar { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; }
.bar .main { font-weight: 650; min-width: 8.5em; }
.bar .main[hidden], .there[hidden] { display: none; }
.far { display: inline-flex; flex-wrap: wrap; gap: 4px 10px; align-items: center;
  font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.far progress { width: 120px; }
.pace { min-width: 17em; }
.there button { margin-left: 4px; }
.seeds { display: flex; gap: 10px; align-items: center; }
`;

const SHOWN = 400; // points of a curve: more are not seen

/** The losses as points, each the mean of its neighbours, so that batches do not hide the way. */
function smoothed(losses, span) {
  const points = [];
  const stride = Math.max(1, Math.ceil(losses.length / SHOWN));
  let sum = 0;
  let start = 0;
  for (let i = 0; i < losses.length; i += 1) {
    sum += losses[i];
    const width = Math.min(span, 1 + Math.floor(i / 2));
    while (i - start + 1 > width) {
      sum -= losses[start];
      start += 1;
    }
    if (i % stride === 0 || i === losses.length - 1) points.push([i + 1, sum / (i - start + 1)]);
  }
  return points;
}

/**
 * The loss against the steps. `rules(inputs, outputs)` are lines across it, [value, name]; `name`
 * of a run says what its settings are: the runs before stay, in grey, with their names. `second`
 * is another loss, called `other`.
 */
export function lossCurve(
  widget,
  {
    top,
    rules = (_inputs, _outputs) => [],
    name,
    height = 190,
    span = 16,
    second = undefined,
    other = "held out",
    title = "loss of each batch, in nats, against the steps",
  },
) {
  const { most, settings } = widget.spec.facts.training;
  const OLD = 3;
  const drawn = plane({
    name: "loss",
    x: [0, most],
    y: [0, top],
    height,
    ticks: { x: [0, most / 4, most / 2, (3 * most) / 4, most], y: ticksTo(top) },
    paths: ["before", "before", "before", "second", "now"],
    label: "the loss of each batch against the steps",
  });
  const befores = [...drawn.svg.querySelectorAll("path.before")];
  const lines = [];
  const old = []; // [{ key, name, points }], the newest first
  const names = h("ul", { class: "runs" });
  let key = "";
  let points = [];
  let seconds = []; // [step, value] of what is measured now and then
  const keyOf = (inputs) => JSON.stringify(settings.map((one) => inputs[one]));
  return {
    element: h(
      "div",
      { class: "column", "data-output": "losses" },
      h("span", { class: "label" }, title),
      drawn.element,
      names,
    ),
    update(inputs, outputs) {
      const losses = outputs.losses.data;
      this.element.values = losses;
      const now = keyOf(inputs);
      if (key !== now || losses.length < (points.at(-1)?.[0] ?? 0)) {
        if (points.length > 1 && key !== now) {
          old.unshift({ key, name: this.called, points });
          const others = old.filter((run, i) => i === 0 || run.key !== key).slice(0, OLD);
          old.splice(0, old.length, ...others.filter((run) => run.key !== now));
        }
        seconds = [];
      }
      key = now;
      this.called = name(inputs);
      points = smoothed(losses, span);
      mark(drawn.paths.now, "d", through(points.map(([x, y]) => [x, Math.min(y, top)])));
      const value = second?.(outputs);
      if (value !== undefined && losses.length >= (seconds.at(-1)?.[0] ?? 0)) {
        if (seconds.at(-1)?.[1] !== value) seconds.push([losses.length, value]);
        const far = [...seconds, [losses.length, value]]; // also where it has not changed any more
        mark(drawn.paths.second, "d", through(far.map(([x, y]) => [x, Math.min(y, top)])));
      } else if (!seconds.length) mark(drawn.paths.second, "d", "M0 0");
      befores.forEach((path, i) => mark(path, "d", through(old[i]?.points ?? [])));
      const all = rules(inputs, outputs).filter(([at]) => at <= top);
      while (lines.length < all.length) lines.push(drawn.rule("y", "soft"));
      lines.forEach((line, i) => line(all[i]?.[0] ?? -1, all[i]?.[1] ?? ""));
      const told = [
        ...(points.length ? [[this.called, points.at(-1)[1], "now"]] : []),
        ...(seconds.length ? [[other, seconds.at(-1)[1], "second"]] : []),
        ...old.map((run) => [run.name, run.points.at(-1)[1], "before"]),
      ];
      fillList(
        names,
        told,
        () => h("li", {}, h("i"), h("span"), h("b")),
        (line, [called, loss, kind]) => {
          mark(line, "class", kind);
          write(line.children[1], called);
          write(line.children[2], loss.toFixed(3));
        },
      );
    },
  };
}
const ticksTo = (top) => {
  const step = top > 4 ? 1 : top > 2 ? 0.5 : 0.25;
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
};
lossCurve.style = `${plane.style}
.plane.loss { margin-left: 34px; }
.plane .now { --tone: var(--blue); stroke-width: 2.2; }
.plane .second { --tone: var(--vermilion); stroke-dasharray: 2 5; }
.plane .before { --tone: var(--grey); stroke-width: 1.4; opacity: .75; }
.rule.y.soft { --tone: var(--soft); border-top-width: 1px; }
.rule.y.soft b { font-weight: 400; font-size: var(--size-small); color: var(--soft); }
.runs { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 2px 18px;
  font-size: var(--size-note); font-variant-numeric: tabular-nums; min-height: 1.5em; }
.runs li { display: inline-flex; gap: 6px; align-items: center; }
.runs i { width: 18px; border-top: 2.5px solid var(--grey); }
.runs .now i { border-color: var(--blue); }
.runs .second i { border-color: var(--vermilion); border-top-style: dotted; }
.runs b { font-weight: 600; }
`;

/** A share that grows while a model learns: a bar with its name and its value. */
export function gauge(label, { most = 1, goal = undefined } = {}) {
  const bar = h("i");
  const value = h("b");
  const element = h(
    "div",
    { class: "gauge" },
    h("span", { class: "label" }, label),
    h(
      "span",
      { class: "track" },
      bar,
      ...(goal ? [h("u", { style: `left: ${100 * goal}%` })] : []),
    ),
    value,
  );
  return {
    element,
    set(share) {
      bar.style.width = `${(100 * Math.min(1, share / most)).toFixed(1)}%`;
      write(value, percent(share));
    },
  };
}
gauge.style = `
.gauge { display: grid; grid-template-columns: minmax(0, 11em) minmax(80px, 1fr) 4em; gap: 10px;
  align-items: center; font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.gauge .track { position: relative; height: 10px; background: color-mix(in oklab, var(--ground),
  var(--line) 60%); border-radius: 5px; }
.gauge .track i { display: block; height: 100%; border-radius: 5px;
  background: var(--probability); }
.gauge .track u { position: absolute; top: -3px; bottom: -3px; border-left: 2px solid var(--text); }
`;
