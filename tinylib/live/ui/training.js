// The parts of a widget that trains: what starts and stops it, its loss as a curve, and keeping it.

import { GENERATOR } from "../page/chance.js";
import { problem } from "../page/inputs.js";
import {
  forget,
  fromSafetensors,
  keep,
  kept,
  sizeOf,
  stampOf,
  toSafetensors,
} from "../page/keeping.js";
import { ask, halt } from "../page/trainer.js";
import { choice } from "./controls.js";
import { h, mathText, setAttribute, setText, notifyPage } from "./dom.js";
import { curveEnds } from "./ends.js";
import { appear } from "./motion.js";
import { whole } from "./numbers.js";
import { plane, through } from "./plot.js";
import { fillList } from "./sentences.js";
import { isToured } from "./widget.js";

const CHUNK_MS = 800; // of training between two edits of the steps; a page shows it meanwhile
const SLOW_MS = 330; // between two steps or chunks of steps, when the training is slowed down
const SAVE_EVERY_MS = 8000; // between two times that a run is kept in the browser

/** @type {(of?: any) => string} */
const silent = (_of) => "";

/** The settings of a training: on a phone folded, since what they change stands above them. */
export function settings(_widget, ...parts) {
  const button = h(
    "button.unfold",
    {
      "aria-expanded": "false",
      click() {
        const open = element.classList.toggle("open");
        setAttribute(button, "aria-expanded", String(open));
      },
    },
    "Settings",
  );
  const element = h("div.settings", button, h("div.row", ...parts.map((part) => part.element)));
  return { element, shows: "inputs", update() {} };
}
settings.style = `
.settings .unfold { display: none; }
.settings > .row { align-items: flex-end; gap: 8px 10px; }
.settings .column .seeds { display: flex; align-items: center; }
@container widget (max-width: 32.5rem) {
  .settings .unfold { display: block; }
  .settings .unfold::before { content: "▸ " / ""; }
  .settings.open .unfold::before { content: "▾ " / ""; }
  .settings:not(.open) > .row { display: none; }
  .settings.open > .row { margin-top: 8px; }
}
`;

/** A new training: other settings begin again at step 0. */
const restart = (next) => {
  next.steps = 0;
};

/** A choice of an input that a training depends on. */
export const setting = (widget, name, label, entries) =>
  choice(widget, name, label, entries, {
    edits: name,
    choose: (value) =>
      widget.edit(Symbol(name), (next) => {
        next[name] = value;
        restart(next);
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
  const name = h("span.label");
  const button = h(
    "button",
    {
      "data-input": "seed",
      click: () =>
        widget.edit(Symbol("seed"), (next) => {
          next.seed = (next.seed % widget.spec.limits.seed[1]) + 1;
          restart(next);
        }),
    },
    "Another seed",
  );
  return {
    element: h("div.seeds", name, button),
    shows: "inputs",
    update: ({ seed }) => setText(name, `seed ${seed}`),
  };
}

const duration = (ms) => (ms < 100 ? `${ms.toFixed(1)} ms` : `${whole(Math.round(ms))} ms`);

/**
 * `begin()` readies what is learned; if it is false, nothing starts. The part's `keeper` is the
 * element that offers to keep a run.
 *
 * Start, Pause, one step, and back to the beginning; how far it is. `says(ms)` puts the time of a
 * step in other words. With `pause`, each step is seen, `pause` ms after the one before. In a
 * page a run can be kept, saved as a file and loaded again, as `saved` says:
 * { metadata(inputs, outputs), wrong(metadata, inputs), also(inputs), take(kept), how }. Nothing
 * starts while there is something `lacking`, which it says; `another` names the start of a run that
 * is not on show. What can be reached is `success`: see successLine().
 */
export function trainingBar(
  widget,
  {
    begin = () => true,
    rateText = silent,
    chunkMs = CHUNK_MS,
    pause: gap = 0,
    saved = undefined,
    lacking = silent,
    another = silent,
    success = undefined,
    label = "Start training",
  } = {},
) {
  const { most } = widget.spec.facts.training;
  const { stem } = widget.spec;
  const inPage = Boolean(widget.model.get("link_id"));
  const speeds = gap ? [0, 1] : [0, 10, 1]; // steps each time; 0: as many as it can
  let running = false;
  let slow = 0; // one of the speeds
  let began = 0; // when the steps that are under way were asked for, and from where
  let from = 0;
  let pace = 0; // ms a step
  let warm = false; // what the first steps take is mostly loading
  let wanted = false; // a single step, as soon as what is computed now is there
  let timer = 0;
  let heard; // the last answer: inputs that were just sent have none yet

  const at = () => pastOf(widget).steps;
  const ready = () => !widget.behind && !widget.model.get("unfinished");
  const advance = (count) => {
    from = at();
    began = performance.now();
    widget.send({ ...widget.inputs, steps: Math.min(most, from + count) });
  };
  const step = () => {
    wanted = !ready();
    if (!wanted) advance(1);
  };
  const chunkSize = () => {
    if (slow || gap) return slow || 1;
    return Math.max(1, Math.round(chunkMs / (pace || chunkMs / 2)));
  };
  const run = () => {
    if (!running) return;
    if (at() >= most || lacking()) stop();
    else advance(chunkSize());
  };
  const show = () => {
    const focused = bar.getRootNode().activeElement;
    [go.hidden, pause.hidden] = [running, !running];
    const over = at() >= most && !another();
    go.disabled = one.disabled = over || Boolean(lacking());
    if (focused === go && running) pause.focus();
    if (focused === pause && !running) (go.disabled ? back : go).focus();
    const usual = over ? "All steps are done" : at() > 0 ? "Go on" : label;
    setText(go, lacking() || another() || usual);
  };
  const stop = () => {
    [running, wanted] = [false, false];
    clearTimeout(timer);
    if (inPage) halt(stem);
    widget.stream(false);
    show();
    announcement?.update(widget.inputs);
  };
  const start = () => {
    if (!begin()) return;
    widget.remember(Symbol("training"));
    [running, wanted, from] = [true, false, 0];
    widget.stream(true, true);
    show();
    if (ready() || widget.model.get("error")) run(); // else as soon as the answer is there
  };
  const go = h("button.main", { "data-input": "steps", click: start });
  const pause = h("button.main", { hidden: true, click: stop }, "Pause");
  const one = h(
    "button",
    {
      "data-input": "steps",
      click: () => {
        if (running) stop();
        if (begin()) step();
      },
    },
    "One step",
  );
  const back = h(
    "button",
    {
      "data-input": "steps",
      click: async () => {
        stop();
        if (inPage) await ask(stem, { act: "forget" }).catch(() => {}); // another worker has no run
        widget.edit(Symbol("back"), restart);
      },
    },
    "Back to step 0",
  );
  const names = speeds.map((steps) =>
    steps ? `${Math.round((1000 * steps) / SLOW_MS)} steps/s` : "full speed",
  );
  const speed = h(
    "select",
    {
      "aria-label": "speed",
      change: () => {
        slow = speeds[speed.selectedIndex];
        if (running && inPage) halt(stem); // it need not end what it was to do at once
      },
    },
    ...names.map((name) => h("option", name)),
  );
  const far = h("progress", { max: String(most), "aria-label": "steps done" });
  const status = h("span.pace");
  const bar = h(
    "div.bar",
    go,
    pause,
    ...(isToured(widget.model)
      ? []
      : [one, back, h("span.offer", speed), h("span.far", far, status)]),
  );
  widget.model.on("change:error", () => {
    if (widget.model.get("error") && running) stop();
  });
  widget.rest = stop;
  const isRunning = () => running;
  const announcement = success && successLine(widget, success, { stop, go, isRunning });
  const keeping = inPage && saved ? keeper(widget, saved, { at, stop, ready }) : null;
  return {
    element: h(
      "div.column",
      bar,
      ...[announcement, keeping].flatMap((part) => part?.element ?? []),
    ),
    reset: stop,
    keeper: keeping?.element,
    update(inputs) {
      const steps = at();
      far.value = steps;
      const passed = performance.now() - began;
      if (running && steps > from && warm) pace = passed / (steps - from);
      const speed =
        running && pace && !slow && !gap ? `, ${duration(pace)} a step${rateText(pace)}` : "";
      setText(status, `step ${whole(steps)} of ${whole(most)}${speed}`);
      const answer = widget.model.get("answers");
      if (ready() && heard !== answer) {
        heard = answer;
        warm ||= steps > 0;
        // A halt ends it before the steps that were asked for: then those that are there count.
        if (inputs.steps > steps) widget.model.set("inputs", { ...inputs, steps });
        if (running && inputs.steps === 0 && from > 0) stop();
        clearTimeout(timer);
        if (running) timer = setTimeout(run, slow ? SLOW_MS : gap);
        else if (wanted) timer = setTimeout(step, 0); // the next answer may come before it is taken
      }
      show();
      announcement?.update(inputs);
      keeping?.update(inputs, running);
    },
  };
}

/**
 * What the run on show has reached, the first milestone first: { name, at, from, said, flag }. A
 * milestone is reached at step `at` if it is met there and for a while after it, and was not met
 * at the answer before, of step `from`: a single lucky answer is none, and of a run that was loaded
 * nothing is claimed but what it holds.
 */
export function reachedIn(widget) {
  const past = pastOf(widget);
  const answer = widget.model.get("answers");
  const fresh = past.known && past.checked !== answer && !widget.model.get("unfinished");
  if (!fresh) return past.reached;
  past.checked = answer;
  const { steps, reached, unmet } = past;
  const { most } = widget.spec.facts.training;
  const outputs = widget.readOutputs();
  for (const { name, flag, tone, when, message } of widget.milestones ?? []) {
    if (reached.some((one) => one.name === name)) continue;
    const since = unmet[name];
    if (!when(widget.inputs, outputs, past)) {
      unmet[name] = { from: steps };
    } else if (since) {
      if (since.at === undefined) {
        since.at = steps;
        const crossed = steps === since.from + 1 ? "Step" : "By step";
        since.said = message?.(`${crossed} ${whole(steps)}`, outputs, widget.inputs) ?? "";
      }
      const { from, at, said } = since;
      if (steps - at < most * STAYS && steps < most) continue;
      reached.push({ name, flag, tone, at, from, said });
      reached.sort((one, other) => one.at - other.at);
    }
  }
  return reached;
}

/** Whether the numbers of `read(outputs)`, and the loss, are what they were a quarter before. */
function isStill(widget, read, all) {
  const { trend, steps, known } = pastOf(widget);
  if (!known || widget.model.get("unfinished")) return false;
  const outputs = widget.readOutputs();
  if (trend.at(-1)?.[0] !== steps) trend.push([steps, read(outputs)]);
  const { most } = widget.spec.facts.training;
  if (steps >= most || steps < most / (all ? 8 : 2)) return false;
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [before, now] = [0.5, 0.75].map((share) => {
    const [from, to] = [share * steps, (share + 0.25) * steps];
    const looks = trend.filter(([at]) => at >= from && at <= to).map(([, values]) => values);
    const loss = mean(outputs.losses.data.subarray(Math.floor(from), Math.floor(to)));
    return [loss / 5, ...(looks[0] ?? [NaN]).map((_, i) => mean(looks.map((all) => all[i])))];
  });
  return before.every((value, i) => Math.abs(value - now[i]) < STILL);
}

/**
 * The room between the buttons and the results, kept from the start: `goal` is what the training is
 * for; when it is reached, or another of the `milestones`, a sentence says so. Each is { name,
 * when(inputs, outputs, past), message(crossed, outputs, inputs), flag, tone }: `crossed` is
 * “Step 128” or, where steps lie between two looks, “By step 130”; if it has no `message`, there is
 * only the `flag` on the curve, in the class `tone`. The last one of the list is the goal. Then
 * `now(outputs)` says after the last step what is true by then, since a message keeps what was true
 * at its own step; `next(inputs, reached)` offers experiments, [label, settings]; and once the
 * numbers of `read(outputs)` stand still, to stop.
 */
function successLine(
  widget,
  { goal, milestones, next = (_inputs, _reached) => [], read = undefined, now: state = silent },
  { stop, go, isRunning },
) {
  widget.milestones = milestones;
  const { most } = widget.spec.facts.training;
  const aim = h("p.note.aim", goal);
  const sentence = h("b");
  const end = h("span");
  const said = h("p.said", { role: "status" });
  const offers = h("div.next");
  let [shown, offered, still] = ["", "", false];
  const rest = () => {
    stop();
    go.focus();
  };
  const halted = h("button", { click: rest }, "Nothing changes any more: stop here");
  const experiment = ([label, settings]) =>
    h(
      "button",
      {
        "data-input": Object.keys(settings).join(" "),
        click: () => {
          rest();
          widget.edit(Symbol("next"), (to) => Object.assign(to, settings, { steps: 0 }));
        },
      },
      label,
    );
  return {
    element: h("div.success", aim, said, ...(isToured(widget.model) ? [] : [" ", offers])),
    update(inputs) {
      const reached = reachedIn(widget);
      const { steps, known } = pastOf(widget);
      const spoken = reached.filter((one) => one.said).at(-1)?.said ?? "";
      const all = reached.some(({ name }) => name === milestones.at(-1).name);
      const over = known && steps >= most && !isRunning();
      const reads = over && all ? state(widget.readOutputs()) : "";
      const missed = all ? "." : ", and the goal is not reached.";
      setText(end, over ? `All ${whole(most)} steps are done${reads ? `: ${reads}` : missed}` : "");
      setAttribute(end, "class", spoken && !reads ? "spoken-only" : "");
      const now = `${spoken}${over}`;
      if (now !== shown) {
        sentence.replaceChildren(...mathText(spoken));
        said.replaceChildren(...(spoken ? [sentence, " "] : []), ...(over ? [end] : []));
        if (spoken && !shown.startsWith(spoken)) {
          appear([sentence]);
          notifyPage(widget, reached.at(-1));
        }
        shown = now;
      }
      aim.classList.toggle("over", Boolean(spoken) || over);
      said.classList.toggle("done", Boolean(spoken));
      still = steps > 0 && isRunning() && read && (still || isStill(widget, read, all));
      const list = still ? [] : all || over ? next(inputs, all) : [];
      const key = JSON.stringify([still, list]);
      if (key === offered) return;
      offered = key;
      const tries = list.length ? [h("span.label", "Try:"), ...list.map(experiment)] : [];
      offers.replaceChildren(...(still ? [halted] : tries));
    },
  };
}

const stepsOf = ({ losses }) => `${whole(losses.length)} step${losses.length === 1 ? "" : "s"}`;

/** The training in a file, and its inputs, if it is a whole one and goes on with this text. */
function wholeRun(widget, { vector, means, metadata }) {
  const { count, losses, ...settings } = metadata.training ?? {};
  const numbers = Array.isArray(losses) && losses.every(Number.isFinite);
  if (!means || !numbers || count !== losses.length || settings.corpus !== widget.inputs.corpus)
    return undefined;
  const inputs = { ...widget.inputs, ...settings, steps: count };
  const state = { parameters: vector, ...means, count, losses, generator: metadata.generator };
  return problem(widget.spec, inputs) ? undefined : { state, inputs };
}

/** What to say of a run that was drawn otherwise, at first at least, than a new one would be. */
const older = ({ generator }) =>
  generator === GENERATOR
    ? ""
    : " Its first steps drew their numbers from an older generator; the next ones use the new one.";

/**
 * Keep a run in the browser, save it as a file, load one: what a page without a kernel offers. Both
 * hold all that a training is, so that it goes on as if it had never been away.
 */
function keeper(widget, { metadata, wrong, also, take, how = "" }, { at, stop, ready }) {
  const { stem, facts } = widget.spec;
  let last = 0; // when it was kept
  let held = { key: "", steps: 0 }; // which run is kept, and how far
  let known; // the stamp of what is kept, as far as this page knows
  const note = h("p.note", { role: "status" });
  const announce = (text, ...buttons) => {
    setAttribute(note, "aria-live", "polite");
    if (!buttons.length) setText(note, text);
    else note.replaceChildren(text, ...buttons.flatMap((button) => [" ", button]));
  };
  const press = (label, click) => h("button", { click }, label);
  const stateNow = () => ask(stem, { act: "state" });
  const restore = async (state, inputs) => {
    stop();
    await take?.(state);
    const next = { ...inputs, steps: state.losses.length };
    await ask(stem, { act: "restore", spec: widget.spec, inputs: next, saved: state });
    widget.remember(Symbol("restore"));
    const past = { ...state.past, restored: true };
    widget.past = newPast(keyOf(widget, next), widget.model.get("outputs").losses, past);
    widget.send(next);
  };
  const settingsOf = (inputs) =>
    Object.fromEntries(facts.training.settings.map((name) => [name, inputs[name]]));
  const cannot = (error) => {
    box.checked = false;
    const full = error?.name === "QuotaExceededError";
    const why = full ? "there is no room left" : "it does not let this page keep anything";
    announce(
      `The browser cannot keep this run: ${why}. The run goes on; save it as a file instead.`,
    );
  };
  const box = h("input", {
    type: "checkbox",
    change: async () => {
      held = { key: "", steps: 0 };
      if (box.checked) return void (at() > 0 && keepNow()); // of a worker, another run may be left
      try {
        const other = await forget(stem, known);
        announce(
          other ? `The run that is kept is another one, of ${stepsOf(other)}: it stays.` : "",
        );
        if (!other) known = undefined;
      } catch {
        announce("");
      }
    },
  });
  /** Another run is kept, which the reader has not been asked about: this one waits for a word. */
  const askFor = (other) => {
    box.checked = false;
    const replaceIt = () => {
      known = stampOf(other);
      box.checked = true;
      keepNow();
    };
    announce(
      `Another run is kept in this browser, of ${stepsOf(other)}. This one is not kept.`,
      press("Keep this one in its place", replaceIt),
      press("Leave that one", () => announce("")),
    );
  };
  let keeps = Promise.resolve(); // one at a time: the next one is over the stamp of this one
  const keepNow = () => {
    last = performance.now();
    const { inputs } = widget;
    const key = keyOf(widget, inputs);
    keeps = keeps.then(async () => {
      try {
        const state = await stateNow();
        if (!state || !box.checked || key !== keyOf(widget, widget.inputs)) return;
        const { measured, shares, snapshots, reached } = pastOf(widget);
        const past = { measured, shares, reached, looks: snapshots }; // kept runs have this key
        const stamp = `${Date.now()} ${Math.random()}`;
        const run = { ...state, inputs, past, ...also?.(inputs), stamp };
        const other = await keep(stem, run, known);
        if (other) return askFor(other);
        known = stamp;
        held = { key, steps: state.losses.length };
        setAttribute(note, "aria-live", "off"); // it comes again and again
        setText(note, `Kept in this browser: step ${whole(held.steps)}.`);
      } catch (error) {
        cannot(error);
      }
    });
  };
  const save = h(
    "button",
    {
      click: async () => {
        const state = await stateNow().catch(() => null);
        if (!state) return void announce("There is nothing to save yet: train some steps first.");
        const { names, shapes } = facts;
        const { count, losses } = state;
        const training = { ...settingsOf(widget.inputs), count, losses };
        const { generator } = state;
        const about = { ...metadata(widget.inputs, widget.readOutputs()), training, generator };
        const file = toSafetensors(state, names, shapes, about);
        const name = `${stem}-${state.losses.length}.safetensors`;
        const link = h("a", { href: URL.createObjectURL(file), download: name });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
        announce(`Saved as ${name}.`);
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
        const found = wholeRun(widget, read);
        const fresh = { parameters: read.vector, losses: [], generator: GENERATOR };
        const state = found?.state ?? { ...fresh, past: { loaded: true } };
        await restore(state, found?.inputs ?? widget.inputs);
        announce(
          found
            ? `${file.name} is loaded: its training goes on at step ${whole(found.inputs.steps)}.` +
                older(state)
            : `${file.name} is loaded: what it has learned goes on learning this text, at step 0.`,
        );
      } catch (error) {
        announce(error.message);
      }
    },
  });
  const load = h("button", { click: () => chosen.click() }, "Load a file");
  const there = h("p.note.there", { hidden: true });
  const greet = async () => {
    const found = await kept(stem).catch(() => undefined);
    // One of another version of this page may have parameters that do not fit.
    there.hidden = !found || at() > 0 || found.parameters.length !== sizeOf(facts.shapes);
    if (there.hidden) return;
    const end = found.losses.length;
    const loss = found.losses.slice(-20).reduce((a, b) => a + b, 0) / Math.min(20, end || 1);
    const goOn = async () => {
      there.replaceChildren("Your run is being loaded …");
      try {
        const newest = (await kept(stem)) ?? found; // another tab may have trained it on
        known = stampOf(newest);
        box.checked = true;
        held = { key: keyOf(widget, newest.inputs), steps: newest.losses.length };
        await restore(newest, { ...widget.inputs, ...newest.inputs });
      } catch (error) {
        announce(error.message);
      }
      there.hidden = true;
    };
    const forgetIt = async () => {
      there.hidden = true;
      if (await forget(stem, stampOf(found)).catch(() => undefined)) greet(); // it is another one
    };
    there.replaceChildren(
      `A run of yours is kept here: step ${whole(end)}, loss ${loss.toFixed(2)}.${older(found)} `,
      press("Go on with it", goOn),
      " ",
      press("Forget it", forgetIt),
    );
  };
  greet();
  return {
    element: h(
      "div.column",
      there,
      h(
        "details.folded",
        h("summary", "Keep this run"),
        h(
          "div.bar",
          h("label.toggle", box, h("span", "keep it in this browser")),
          save,
          load,
          chosen,
        ),
        ...(how ? [h("p.note", ...how)] : []),
        note,
      ),
    ),
    update(inputs, running) {
      const key = keyOf(widget, inputs);
      if (box.checked && held.key && key !== held.key) {
        box.checked = false; // other settings begin another run: it does not replace the kept one
        const far = whole(held.steps);
        announce(`Your run of ${far} steps stays kept. Tick again to keep this one in its place.`);
      }
      if (key === held.key && at() <= held.steps) return;
      const due = performance.now() - last > SAVE_EVERY_MS || !running;
      if (box.checked && at() > 0 && ready() && due) keepNow();
    },
  };
}

trainingBar.style = `
.bar { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; }
.bar .main { min-width: 9.6em; }
.tour .bar .main { padding: 8px 24px; font-size: var(--size-text); }
.far { display: flex; flex: 1 1 21.875rem; min-width: min(100%, 21.875rem); gap: 4px 10px;
  align-items: center; font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.far progress { flex: 1 1 3.75rem; min-width: 3.75rem; max-width: 15rem; }
.pace { flex: 1 0 min(15.625rem, 100%); }
.bar .offer select { flex: none; }
@container widget (max-width: 32.5rem) { .far progress { flex: 0 0 4.5rem; }
  .pace { flex: 1; min-height: 2.8em; align-content: center; } }
.there button { margin-left: 4px; }
.seeds { display: grid; gap: 4px; } .seeds .label { font-weight: 400; color: var(--soft); }
.success { min-height: calc(var(--room, 2) * 1.625rem); line-height: 1.625rem; }
.success > * { display: inline; margin: 0; line-height: inherit; max-width: none; }
.success > .aim.over { display: none; }
.said { font-size: var(--size-text); }
.said sub { line-height: 0; }
.said.done::before { content: "✓ "; content: "✓ " / ""; font-weight: 700;
  color: var(--probability); }
.next > * { margin-left: 8px; }
.next button { min-height: 1.5rem; padding: 0 8px; line-height: 1.4; }
@container widget (max-width: 32.5rem) {
  .success { min-height: calc(var(--room-on-phones, 2) * 1.5rem); line-height: 1.5rem; }
}
`;

const STAYS = 0.02; // of all steps: so long a milestone must be met
const STILL = 0.01; // a number that changes less within a quarter of the steps stands still

const SHOWN = 400; // points of a curve: more are not seen

/**
 * The losses as points: the steps before it, and the mean of it and its neighbours, so that batches
 * do not hide the way.
 */
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
    if (i % stride === 0 || i === losses.length - 1) points.push([i, sum / (i - start + 1)]);
  }
  return points;
}

/**
 * What the run on show was like before this step: `measured` and `shares` as lossCurve() draws
 * them, `snapshots` as a view keeps them. Another run, or one that begins again, has another past;
 * where Undo returns to the run before it, that past returns, too.
 */
export function pastOf(widget) {
  const key = keyOf(widget, widget.inputs);
  const { losses } = widget.model.get("outputs");
  const { past } = widget;
  // Inputs that were just changed have no results yet: those that are shown are of another run.
  const stale = past && past.key !== key ? losses : past?.stale;
  const steps = losses === stale ? 0 : losses.shape[0];
  if (past?.key !== key || steps < past.steps) {
    if (past?.steps && !past.restored) [widget.left, widget.older] = [past, widget.left];
    widget.past = newPast(key, stale);
  }
  const back = [widget.left, widget.older].find((one) => one?.key === key && one.steps === steps);
  if (steps && !widget.past.steps && back) widget.past = back;
  return Object.assign(widget.past, { steps, known: losses !== stale });
}

/** On what a training depends; its steps do not change what it is. */
function keyOf(widget, inputs) {
  return JSON.stringify(widget.spec.facts.training.settings.map((one) => inputs[one]));
}
const newPast = (key, stale, { looks: snapshots = [], ...more } = /** @type {any} */ ({})) => ({
  ...{ key, stale, snapshots },
  ...{ steps: 0, measured: [], shares: [], reached: [], unmet: {}, trend: [], ...more },
});

const OLD = 3; // runs before that stay in sight: the first one, and the newest

/**
 * The loss against the steps. `rules(inputs, outputs)` are lines across it, [value, name]; `name`
 * of a run says what its settings are: the runs before stay, in grey, with their names. `second`
 * is another loss, called `other`; `last`, if a batch is all that there is, that after the last
 * step. `shares`, { names, kinds, read(outputs) }, are drawn from 0 to 100 %; a kind is a class.
 */
export function lossCurve(
  widget,
  {
    top,
    rules = (_inputs, _outputs) => [],
    name,
    height = 190,
    span = 16,
    last = undefined,
    second = undefined,
    other = "held out",
    shares = { names: [], kinds: [], read: (_outputs) => [] },
    title = `mean loss of ${span} batches, in nats`,
  },
) {
  const { most } = widget.spec.facts.training;
  const shareNames = shares.kinds.map((kind) => `share ${kind}`);
  const drawn = plane({
    name: shareNames.length ? "loss shared" : "loss",
    x: [0, most],
    y: [0, top],
    height,
    paths: ["before", "before", "before", ...shareNames, "second", "now"],
    label: "the loss of each batch against the steps",
  });
  const percents = shareNames.length ? [0, 50, 100] : [];
  const marks = percents.map((n) => {
    const put = drawn.spot("tick percent", `${n}\u00a0%`);
    return () => put(end, (top * n) / 100);
  });
  const several = shareNames.length > 1; // then each has its name at its end, and no legend
  const nameEnds = curveEnds(drawn, shares.names, several ? shares.kinds : [], { top, height });
  const round = (steps) => (steps > 200 ? 100 * Math.ceil(steps / 100) : steps);
  let end = 0; // of the axis of steps, which grows, since most is learned early
  const reach = (longest) => {
    const next = Math.max(round(most / 4), (most / 10) * Math.ceil((10 * longest) / most));
    if (next === end) return;
    end = next;
    const ticks = { x: ticksTo(end).map((at) => [at, whole(at)]), y: ticksTo(top, height / 24) };
    drawn.reach({ x: [0, end], ticks });
    for (const place of marks) place();
  };
  const putNewest = drawn.spot("spot small tip");
  const newest = /** @type {HTMLElement} */ (drawn.element.lastElementChild);
  const befores = [...drawn.svg.querySelectorAll("path.before")];
  const [lines, planted] = [[], []];
  let old = []; // [{ key, name, points }], the newest first
  let [past, called, points] = [undefined, "", []];
  const names = h("ul", { class: shareNames.length ? "runs shared" : "runs" });
  const low = ([x, y]) => [x, Math.min(y, top)];
  /** Note what is measured now and then: while a training goes on, it is of some steps before. */
  const note = (list, value) => {
    const [steps, before] = list.at(-1) ?? [];
    const same = JSON.stringify(before) === JSON.stringify(value);
    if (!past.known || (same && widget.model.get("unfinished"))) return;
    if (steps === past.steps) list.pop();
    list.push([past.steps, value]);
  };
  return {
    element: h(
      "div.column",
      { "data-output": "losses" },
      h("span.label", title),
      drawn.element,
      names,
    ),
    update(inputs, outputs) {
      this.element.values = outputs.losses.data;
      const now = pastOf(widget);
      if (past && now.key !== past.key) {
        const ended = points.length > 1 ? [{ key: past.key, name: called, points }] : [];
        old = [...ended, ...old.filter(({ key }) => key !== past.key)];
        old = old.filter(({ key }) => key !== now.key);
        if (old.length > OLD) old.splice(OLD - 1, 1);
      }
      past = now;
      called = name(inputs);
      points = past.steps ? smoothed(outputs.losses.data, span) : [];
      if (last && past.steps) points.push([past.steps, last(outputs)]);
      reach(
        Math.max(...[points, ...old.map((run) => run.points)].map((of) => of.at(-1)?.[0] ?? 0)),
      );
      setAttribute(drawn.paths.now, "d", through(points.map(low)));
      newest.hidden = points.length === 0;
      if (points.length) putNewest(...low(points.at(-1)));
      const value = second?.(outputs);
      if (value !== undefined) note(past.measured, value);
      setAttribute(drawn.paths.second, "d", through(past.measured.map(low)));
      if (shareNames.length) note(past.shares, shares.read(outputs));
      shareNames.forEach((path, i) => {
        const curve = past.shares.map(([steps, all]) => [steps, top * all[i]]);
        setAttribute(drawn.paths[path], "d", through(curve));
      });
      if (several) nameEnds(past.shares.length > 1 ? shares.read(outputs) : [], end);
      befores.forEach((path, i) =>
        setAttribute(path, "d", through((old[i]?.points ?? []).map(low))),
      );
      const all = rules(inputs, outputs).filter(([at]) => at <= top);
      while (lines.length < all.length) lines.push(drawn.rule("y", "soft"));
      lines.forEach((line, i) => line(all[i]?.[0] ?? -1, all[i]?.[1] ?? ""));
      const flags = reachedIn(widget).filter(({ flag }) => flag);
      while (planted.length < flags.length) {
        const line = drawn.rule("x", "flag");
        planted.push({ line, element: drawn.element.lastElementChild });
      }
      planted.forEach(({ line, element }, i) => {
        const { at = -1, flag = "", tone = "" } = flags[i] ?? {};
        line(at, several ? "" : flag); // its curve has that name
        setAttribute(element, "class", `rule x flag ${tone} ${at > end / 2 ? "late" : ""}`);
      });
      const figure = (loss) => loss.toFixed(3);
      const legend = [
        ...(points.length ? [[called, figure(points.at(-1)[1]), "now"]] : []),
        ...(past.measured.length ? [[other, figure(past.measured.at(-1)[1]), "second"]] : []),
        ...(several ? [] : shares.names).map((of, i) => [of, "", shareNames[i]]),
        ...old.map((run) => [run.name, figure(run.points.at(-1)[1]), "before"]),
      ];
      fillList(
        names,
        legend,
        () => h("li", h("i"), h("span"), h("b")),
        (line, [what, value, kind]) => {
          setAttribute(line, "class", kind);
          setText(line.children[1], what);
          setText(line.children[2], value);
        },
      );
    },
  };
}
/** Numbers from 0 on, at most so many steps of 1, 2 or 5 and a power of ten. */
const ticksTo = (top, most = 7) => {
  const power = 10 ** Math.floor(Math.log10(top / most));
  const step = power * [1, 2, 5, 10].find((by) => top / (by * power) <= most);
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) =>
    Number((i * step).toFixed(6)),
  );
};
lossCurve.style = `${plane.style}${curveEnds.style}
.plane.loss { margin-left: 2.125rem; }
.plane .now { --tone: var(--blue); stroke-width: 2.2; }
.plane.shared { margin-right: 2.75rem; }
.plane .percent { transform: translate(6px, -50%); }
.loss .tip { scale: 1.6; z-index: 1; }
.plane .second { --tone: var(--vermilion); stroke-dasharray: 2 5; }
.plane .share { stroke-width: 1.8; }
.share.exact { --tone: var(--probability); }
.plane.shared .now { --tone: var(--text); }
.plane .before { --tone: var(--grey); stroke-width: 1.6; }
.plane .before ~ .before { stroke-dasharray: 8 4; }
.plane .before ~ .before ~ .before { stroke-dasharray: 2 3; }
.rule.y.soft { --tone: var(--soft); border-top-width: 1px; }
.rule.y.soft b { font-weight: 400; font-size: var(--size-small); color: var(--soft); }
.rule:is(.soft, .flag) b { text-shadow: 0 0 2px var(--ground), 0 0 2px var(--ground),
  0 0 2px var(--ground); }
.rule.x.flag { border-left: 1.5px dashed var(--tone, var(--text)); }
.rule.x.flag b { top: 2px; bottom: auto; left: 0; padding: 0 4px; line-height: 1.3;
  color: var(--tone, var(--text)); background: var(--ground); }
.rule.x.flag.late b { left: auto; right: 2px; }
.flag ~ .flag b { margin-top: 1.3em; } .flag ~ .flag ~ .flag b { margin-top: 2.6em; }
.flag ~ .flag ~ .flag ~ .flag b { margin-top: 3.9em; } .runs b { font-weight: 600; }
.flag ~ .flag ~ .flag ~ .flag ~ .flag b { margin-top: 5.2em; }
.runs { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 2px 18px;
  font-size: var(--size-note); font-variant-numeric: tabular-nums; min-height: 1.6em; }
.runs li { display: inline-flex; gap: 6px; align-items: center; }
.runs i { width: 1.125rem; border-top: 2.5px solid var(--grey); }
.runs .before ~ .before i { border-top-style: dashed; }
.runs .before ~ .before ~ .before i { border-top-style: dotted; }
.runs .now i { border-color: var(--blue); }
.runs.shared .now i { border-color: var(--text); }
.runs .share i { border-color: var(--tone); }
.runs .second i { border-color: var(--vermilion); border-top-style: dotted; }
`;
