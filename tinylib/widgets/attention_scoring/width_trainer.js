import { numbers } from "../../live/page/chance.js";
import { trains } from "../../live/page/trainer.js";
import { results } from "../../live/ui/boxes.js";
import { h, setAttribute, setText } from "../../live/ui/dom.js";
import { numberBox } from "../../live/ui/knobs.js";
import { times, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { dotsAt, drag, plane, through } from "../../live/ui/plot.js";
import { fillList } from "../../live/ui/sentences.js";
import { lossCurve, setting, settings, trainingBar } from "../../live/ui/training.js";

export const program = trains("attention_scoring/width_trainer_task.js");

const PAUSE = 30; // ms between two steps
const TOP = 1.4; // of a loss that is drawn
const REACH = 0.3; // half a tangent's length, where it is level
const BY_ARROW = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const NEXT = { PageUp: -1, PageDown: 1 };

const hundredths = (value) => Number(value.toFixed(2));
const minus = (text) => text.replace("-", "−");
const figure = (value, digits = 3) => minus(value.toFixed(digits)).replace(/^−(0\.?0*)$/, "$1");
const stepsDone = (outputs) => outputs.losses.data.length;

/** The points of a seed, as points_of() of width_trainer.py has them. */
export function pointsOf(next, { noise, ends, heights, S }) {
  const x = times(S, () => ends[1] * next()).sort((a, b) => a - b);
  const y = x.map((at) => {
    const error = Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
    return within(2 * Math.sin(at) + at ** 0.8 + noise * error, heights);
  });
  return { x: x.map(hundredths), y: y.map(hundredths) };
}

/** Other points about the same curve. */
function otherPoints(widget) {
  const { facts, limits } = widget.spec;
  const button = h(
    "button",
    {
      "data-input": "seed x y",
      click: () =>
        widget.edit(Symbol("points"), (next) => {
          next.seed = (next.seed % limits.seed[1]) + 1;
          const drawn = { noise: facts.noise, ends: limits.x, heights: limits.y, S: next.x.length };
          Object.assign(next, pointsOf(numbers(next.seed), drawn), { steps: 0 });
        }),
    },
    "Other points",
  );
  return { element: h("div.others", button), shows: "inputs", update() {} };
}

/** The loss of one width, and where the ball is: before the first step, where it was put. */
function ballOf({ inputs, spec: { facts } }, outputs) {
  const { data } = outputs.landscape;
  if (inputs.steps === 0) {
    const i = Math.round((inputs.start - facts.narrow) / facts.step);
    return { sigma: inputs.start, loss: data[within(i, [0, data.length - 1])] };
  }
  return { sigma: outputs.sigma.data[0], loss: outputs.loss.data[0] };
}

/** The loss of every width, a ball on it, the slope there, and how far the next step goes. */
function landscape(widget) {
  const { facts, limits } = widget.spec;
  const [narrow, wide] = limits.start;
  const drawn = plane({
    name: "landscape",
    x: [0, wide],
    y: [0, TOP],
    height: 190,
    ticks: { x: [0, 0.5, 1, 1.5, 2, 2.5, 3], y: [0, 0.25, 0.5, 0.75, 1, 1.25] },
    paths: ["hills", "trail", "tangent", "stride"],
    label: "the loss of every width",
  });
  const { hills, trail, tangent, stride } = drawn.paths;
  drawn.svg.dataset.output = "landscape";
  const best = drawn.rule("x", "best");
  const move = (sigma) =>
    widget.edit("start", (next) => {
      next.start = hundredths(within(sigma, [narrow, wide]));
      next.steps = 0;
    });
  const ball = h("div.ball", {
    role: "slider",
    tabindex: "0",
    "data-input": "start",
    "data-output": "",
    "aria-label": "width to start from",
    "aria-valuemin": String(narrow),
    "aria-valuemax": String(wide),
    keydown: (event) => {
      const [by] = [BY_ARROW[event.key]?.find(Boolean)];
      const to = { Home: narrow, End: wide }[event.key];
      if (!by && to === undefined) return;
      event.preventDefault();
      const { sigma } = ballOf(widget, widget.readOutputs());
      move(to ?? Math.abs(sigma) + by * (event.shiftKey ? 0.5 : 0.05));
    },
  });
  drag(
    ball,
    () => widget.stopTraining?.() ?? 0,
    (event) => move(drawn.at(event).x),
  );
  drawn.element.append(ball);
  let seen = []; // where the ball has been in this run: [steps, width, loss]
  let run = "";
  return {
    element: h(
      "div.column",
      h("span.label", "loss of every width w; drag the ball to where it starts"),
      drawn.element,
    ),
    update(inputs, outputs) {
      const { data } = outputs.landscape;
      drawn.svg.values = data;
      const widths = Array.from(data, (_, i) => facts.narrow + i * facts.step);
      setAttribute(hills, "d", through(widths.map((width, i) => [width, Math.min(data[i], TOP)])));
      best(outputs.best.data[0], `best: ${figure(outputs.best.data[0], 2)}`);
      const { sigma, loss } = ballOf(widget, outputs);
      const at = Math.abs(sigma);
      const out = at > wide;
      drawn.put(ball, within(at, [0, wide]), Math.min(loss, TOP));
      ball.classList.toggle("out", out);
      setAttribute(ball, "aria-valuenow", String(hundredths(at)));
      setAttribute(ball, "aria-valuetext", `width ${figure(at, 2)}, loss ${figure(loss, 2)}`);
      const steps = stepsDone(outputs);
      const now = JSON.stringify([inputs.seed, inputs.start, inputs.rate, inputs.form, inputs.x]);
      if (now !== run || steps < (seen.at(-1)?.[0] ?? 0)) seen = [];
      run = now;
      if (steps === seen.at(-1)?.[0]) seen.pop(); // of other points, it may have been another loss
      seen.push([steps, at, loss]);
      const known = steps === inputs.steps && (steps > 0 || outputs.sigma.data[0] === sigma);
      const dots = seen.filter(([, width]) => width <= wide);
      setAttribute(
        trail,
        "d",
        dotsAt(dots.map(([, width, height]) => [width, Math.min(height, TOP)])),
      );
      const g = outputs.slope.data[0] * Math.sign(sigma);
      const reach = REACH / Math.hypot(1, g);
      const line = [-reach, reach].map((by) => [at + by, loss + by * g]);
      setAttribute(tangent, "d", known && !out ? through(line) : "M0 0");
      const to = within(at - facts.training.full * inputs.rate * g, [0, wide]);
      const level = [
        [at, loss],
        [to, loss],
      ];
      setAttribute(stride, "d", known && !out ? through(level) : "M0 0");
    },
  };
}

/** The points, the curve through them, how far each lies from its prediction, and the kernel. */
function fitted(widget) {
  const { limits } = widget.spec;
  const [[left, right], [bottom, top]] = [limits.x, limits.y];
  const drawn = plane({
    name: "fitted",
    x: [left, right],
    y: [bottom, top],
    height: 190,
    ticks: { x: [0, 1, 2, 3, 4, 5], y: [-1, 0, 1, 2, 3, 4, 5] },
    paths: ["kernel", "truth", "errors", "curve"],
    label: "points and curve",
  });
  const { kernel, truth, errors, curve } = drawn.paths;
  const places = times(101, (i) => (right * i) / 100);
  setAttribute(truth, "d", through(places.map((x) => [x, 2 * Math.sin(x) + x ** 0.8])));
  curve.dataset.output = "curve";
  errors.dataset.output = "predicted";
  const touch = (i) => {
    if (widget.point === i) return;
    widget.point = i;
    widget.repaint();
  };
  const move = (i, x, y) =>
    widget.edit(`point ${i}`, (next) => {
      next.x[i] = hundredths(within(x, limits.x));
      next.y[i] = hundredths(within(y, limits.y));
      next.steps = 0;
    });
  const layer = h("div.layer");
  const make = (i) => {
    const point = h("div.point", {
      role: "slider",
      "data-input": "x y",
      "aria-label": `point ${i + 1}`,
      "aria-valuemin": String(left),
      "aria-valuemax": String(right),
      focus: () => touch(i),
      keydown: (event) => {
        const { x, y } = widget.inputs;
        const other = NEXT[event.key] && layer.children[i + NEXT[event.key]];
        if (other) /** @type {HTMLElement} */ (other).focus();
        const by = BY_ARROW[event.key];
        if (!by && !NEXT[event.key]) return;
        event.preventDefault();
        const far = event.shiftKey ? 0.5 : 0.05;
        if (by) move(i, x[i] + far * by[0], y[i] + 2 * far * by[1]);
      },
    });
    drag(
      point,
      () => widget.stopTraining?.() ?? i,
      (event) => move(i, drawn.at(event).x, drawn.at(event).y),
    );
    return point;
  };
  drawn.element.append(layer);
  return {
    element: h(
      "div.column",
      h("span.label", "points to drag, and the curve"),
      drawn.element,
      h("p.note.legend", ...legend()),
    ),
    reset() {
      widget.point = undefined;
    },
    update({ x, y, form }, outputs) {
      const chosen = widget.point ?? Math.floor(x.length / 2);
      fillList(layer, x, make, (point, _, i) => {
        drawn.put(point, x[i], y[i]);
        point.tabIndex = i === chosen ? 0 : -1;
        point.classList.toggle("chosen", i === chosen);
        setAttribute(point, "aria-valuenow", String(x[i]));
        setAttribute(
          point,
          "aria-valuetext",
          minus(`x ${hundredths(x[i])}, y ${hundredths(y[i])}`),
        );
      });
      const { data: line } = outputs.curve;
      const { data: predicted } = outputs.predicted;
      curve.values = line;
      errors.values = predicted;
      setAttribute(curve, "d", through(places.map((at, i) => [at, line[i]])));
      const up = [...predicted].map((to, i) => `M${x[i]} ${y[i]}V${to.toFixed(3)}`);
      setAttribute(errors, "d", up.join(""));
      errors.classList.toggle("own", form === 1);
      const sigma = ballOf(widget, outputs).sigma;
      const K = (at) => Math.exp(-(((at - x[chosen]) / sigma) ** 2) / 2);
      const fine = times(401, (i) => (right * i) / 400);
      const hill = fine.map((at) => [at, bottom + 0.25 * (top - bottom) * K(at)]);
      setAttribute(kernel, "d", `${through([[left, bottom], ...hill, [right, bottom]])}Z`);
    },
  };
}

const legend = () => [
  ...[h("u.dotted"), "the truth "],
  ...[h("u.red"), "error of a point "],
  ...[h("u.round"), "query of this kernel"],
];

/** The numbers of the step that comes next, and how near the best width is. */
function stepNumbers(widget) {
  const { facts } = widget.spec;
  const number = (name) => h("b", { "data-output": name });
  const [sigma, loss, slope, best, lowest, fresh] = [
    ...["sigma", "loss", "slope", "best", "lowest", "fresh"].map(number),
  ];
  const [step, where] = [h("span"), h("span")];
  const name = (text) => h("i", text);
  return {
    element: results(
      "told",
      h("p", "slope there ", slope, step),
      h("p", "width ", name("w"), " = ", sigma, ", its loss ", loss, where),
      h("p", "best of the widths 0.02, 0.03, … 3: ", best, ", its loss ", lowest),
      h("p", "on new points, since we know the truth: loss ", fresh),
    ),
    shows: "outputs",
    update({ rate }, outputs) {
      const values = { sigma, loss, slope, best, lowest, fresh };
      for (const [key, element] of Object.entries(values)) {
        const [value] = outputs[key].data;
        setText(element, figure(value, key === "best" ? 2 : 3));
        setAttribute(element, "data-value", String(value));
      }
      const [now] = outputs.sigma.data;
      const eta = facts.training.full * rate;
      const by = -eta * outputs.slope.data[0];
      const near = hundredths(eta);
      const g = figure(outputs.slope.data[0]);
      const sum = `${figure(now)} − ${near} × ${g.startsWith("−") ? `(${g})` : g}`;
      setText(step, `; next step: ${sum} = ${figure(now + by)}`);
      const wide = widget.spec.limits.start[1];
      const far = Math.abs(now) > wide ? "; outside the picture" : "";
      setText(where, `${far}${now < 0 ? "; only w² counts, so the ball is at |w|" : ""}`);
    },
  };
}

landscape.style = `${plane.style}
.success { --room: 1; --room-on-phones: 4; }
.sides { --left: 1.25fr; --right: 1fr; }
.loss .rule.y.soft b { bottom: auto; top: 1px; }
.landscape path.hills { --tone: var(--soft); stroke-width: 2.2; }
.landscape path.trail { --tone: var(--query); stroke-width: 6; opacity: .6; }
.landscape path.tangent { --tone: var(--vermilion); stroke-width: 2.5; }
.landscape path.stride { --tone: var(--blue); stroke-width: 4; }
.landscape .rule.x.best { border-left: 1.5px dashed var(--soft); }
.landscape .rule.x.best b { color: var(--soft); font-weight: 500; }
.ball { position: absolute; width: 1.75rem; height: 1.75rem; margin: -.875rem; cursor: ew-resize;
  touch-action: none; display: grid; place-items: center; border-radius: 50%; }
.ball::before { content: ""; width: .75rem; height: .75rem; border-radius: 50%; background:
  var(--query); border: 2px solid var(--ground); box-shadow: 0 0 0 1.5px var(--query); }
.ball.out::before { opacity: .35; }
`;
fitted.style = `
.legend { margin: 2px 0 0; }
.legend u { display: inline-block; vertical-align: middle; width: 1.125rem; margin: 0 5px 0 8px;
  border-top: 2px dotted var(--soft); }
.legend .red { border-top: 2px solid var(--vermilion); }
.legend .round { width: .5625rem; height: .5625rem; border: 0; border-radius: 50%;
  background: var(--query); }
.others { align-self: flex-end; }
.pick { min-width: 2.25rem; }
.fitted path.kernel { stroke: none; fill: color-mix(in oklab, transparent, var(--query) 34%); }
.fitted path.truth { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 2 5; }
.fitted path.errors { --tone: var(--vermilion); stroke-width: 1.2; opacity: .7; }
.fitted path.curve { stroke-width: 3; }
.layer { position: absolute; inset: 0; pointer-events: none; }
.layer .point { position: absolute; width: 1.5rem; height: 1.5rem; margin: -.75rem; cursor: grab;
  border-radius: 50%; touch-action: none; pointer-events: auto; display: grid;
  place-items: center; }
.layer .point::before { content: ""; width: 7px; height: 7px; border-radius: 50%;
  background: var(--value); border: 1px solid var(--ground); }
.layer .point.chosen::before { width: .625rem; height: .625rem; background: var(--query); }
`;
stepNumbers.style = `
.told { display: grid; gap: 2px 28px; font-size: var(--size-note);
  font-variant-numeric: tabular-nums; }
.told p { margin: 0; min-height: 1.45em; }
.told b { font-weight: 650; }
@container widget (min-width: 53.75rem) { .told { grid-template-columns: 1fr 1fr; } }
`;

const RATES = [0.1, 1, 5, 10];

/** The rate itself, which a step multiplies the slope by. */
function learningRates(widget) {
  const { full } = widget.spec.facts.training;
  const entries = RATES.map((value) => ({ title: String(hundredths(full * value)), value }));
  return setting(widget, "rate", "learning rate", entries);
}

const STARTS = [0.05, 1, 3];

/** Too narrow, as in the chapter, and far too wide; or any other. */
function starts(widget) {
  const entries = STARTS.map((value) => ({ title: String(value), value }));
  const part = setting(widget, "start", "start at w =", entries);
  const box = numberBox(widget, "start", {
    called: "w",
    label: "width to start from, typed",
    step: 0.05,
    class: "number",
    put: (next, value) => Object.assign(next, { start: value, steps: 0 }),
  });
  return {
    element: h("div.starts", part.element, box),
    shows: "inputs",
    update(inputs) {
      part.update(inputs);
      box.follow();
    },
  };
}
starts.style = `
.starts { display: flex; gap: 8px; align-items: flex-end; }
`;

const predictedFrom = (widget) =>
  setting(widget, "form", "each point is predicted", widget.spec.facts.training.forms);

function called({ spec: { facts } }) {
  const { forms, full } = facts.training;
  return ({ start, rate, form, seed }) =>
    [
      ...(seed > 1 ? [`points ${seed}`] : []),
      `from ${hundredths(start)} at rate ${hundredths(full * rate)}`,
      ...(form ? [forms[form]] : []),
    ].join(", ");
}

/** What starts it; a drag of the ball or of a point stops it. */
function bar(widget) {
  const { step } = widget.spec.facts;
  const near = ({ sigma, best }) => Math.abs(sigma.data[0] - best.data[0]) <= step / 2;
  const part = trainingBar(widget, {
    pause: PAUSE,
    success: {
      goal: "The goal: from where it starts, the ball finds the width with the smallest loss.",
      milestones: [
        {
          name: "best",
          flag: "the best width",
          when: ({ form }, outputs) => form === 0 && near(outputs),
          message: (crossed, { sigma, best }) =>
            `${crossed}: the width had come to ${figure(sigma.data[0])}; ` +
            `the best of all we tried is ${figure(best.data[0], 2)}.`,
        },
      ],
      next: ({ start }, reached) =>
        reached && start < 3
          ? [
              ["start at 3", { start: 3 }],
              ["from itself, too", { form: 1 }],
            ]
          : [["start at 1, rate 0.1", { start: 1, rate: 1, form: 0 }]],
      read: ({ sigma, fresh }) => [sigma.data[0], fresh.data[0]],
    },
  });
  widget.stopTraining = () => part.reset();
  return part;
}
bar.style = trainingBar.style;

function losses(widget) {
  const { noise } = widget.spec.facts;
  return lossCurve(widget, {
    top: TOP,
    span: 1,
    height: 90,
    name: called(widget),
    title: "loss against the steps; dotted, the loss to expect on new points",
    last: (outputs) => outputs.loss.data[0],
    second: ({ fresh }) => fresh.data[0],
    other: "new points",
    rules: () => [[noise ** 2, `the noise alone: ${noise ** 2}`]],
  });
}
losses.style = lossCurve.style;

export default live(
  "Train the width of a kernel",
  (ui) => [
    ui.use(bar),
    ui.sides(ui.use(landscape), ui.use(fitted)),
    ui.use(stepNumbers),
    ui.use(losses),
    ui.use(
      settings,
      ...[predictedFrom, learningRates, starts, otherPoints].map((part) => ui.use(part)),
    ),
  ],
  { wide: true, main: "[data-output=landscape], .told", answer: ".told" },
);
