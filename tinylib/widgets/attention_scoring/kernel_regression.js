import { choice } from "../../live/ui/controls.js";
import { h, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { explainable, explainableNumber, roveLines, sum, weighed } from "../../live/ui/explain.js";
import { numberBox } from "../../live/ui/knobs.js";
import { shaded } from "../../live/ui/look.js";
import { format, listed, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { drag, plane, through } from "../../live/ui/plot.js";
import { fillList } from "../../live/ui/sentences.js";

const [STEP_X, STEP_Y] = [0.05, 0.1]; // of the arrow keys; with Shift ten times as far
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const hundredths = (value) => Number(value.toFixed(2));

/** A weight in words: what is more than nothing never reads 0.00. */
const weighs = (share) => (share > 0 && share < 0.005 ? "<0.01" : format(share));

/** Move a point of the widget; its numbers stay within their ends. */
function movePoint(widget, i, x, y) {
  const { limits } = widget.spec;
  widget.edit(`point ${i}`, (next) => {
    // one that stays keeps its digits
    if (x !== next.x[i]) next.x[i] = hundredths(within(x, limits.x));
    if (y !== next.y[i]) next.y[i] = hundredths(within(y, limits.y));
  });
}

function moveQuery(widget, x) {
  widget.edit("query", (next) => {
    next.query = hundredths(within(x, widget.spec.limits.query));
  });
}

function removePoint(widget, i) {
  return widget.edit(Symbol("remove"), (next) => {
    next.x.splice(i, 1);
    next.y.splice(i, 1);
  });
}

/** The point that the reader touched last. */
const pointOf = (widget) => Math.min(widget.point ?? 0, widget.inputs.x.length - 1);

function touchPoint(widget, i) {
  if (widget.point === i) return;
  widget.point = i;
  widget.repaint();
}

/** Points, the query, the curve, the kernel around the query, and faintly the true function. */
function plot(widget) {
  const [left, right] = widget.spec.limits.x;
  const [bottom, top] = widget.spec.limits.y;
  const [width, height] = [right - left, top - bottom];
  const ticks = (low, high, step) =>
    Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
  const { element, svg, put, at, paths } = plane({
    name: "plot",
    label: "points, query and curve",
    x: [left, right],
    y: [bottom, top],
    height: 300,
    ticks: { x: ticks(left, right, 1), y: ticks(bottom, top, 2) },
    paths: ["kernel", "truth", "curve"],
  });
  const { kernel, truth, curve } = paths;
  svg.dataset.output = "";
  const answer = h("span.answer", { "data-output": "", "aria-hidden": "true" });
  const query = h(
    "div.query-line",
    {
      role: "slider",
      tabindex: "0",
      "data-input": "query",
      "aria-label": "query x",
      "aria-valuemin": String(left),
      "aria-valuemax": String(right),
      keydown: (event) => {
        const { query: x } = widget.inputs;
        const step = STEP_X * (event.shiftKey ? 10 : 1) * (ARROWS[event.key]?.find(Boolean) ?? 0);
        const to = { Home: left, End: right }[event.key] ?? (step ? x + step : null);
        if (to === null) return;
        event.preventDefault();
        moveQuery(widget, to);
      },
    },
    h("span", "x"),
  );
  drag(
    query,
    (event) => at(event).x - widget.inputs.query,
    (event, off) => moveQuery(widget, at(event).x - off),
  );

  const points = h("div.points-layer");
  const make = (i) => {
    const point = h(
      "div.point",
      {
        role: "slider",
        tabindex: "0",
        "data-input": "x y",
        "aria-valuemin": String(left),
        "aria-valuemax": String(right),
        focus: () => touchPoint(widget, i),
        keydown: (event) => {
          if (event.key === "Delete" || event.key === "Backspace") {
            event.preventDefault();
            if (widget.inputs.x.length > 1 && removePoint(widget, i))
              points.children[pointOf(widget)].focus();
            return;
          }
          const [dx, dy] = ARROWS[event.key] ?? [0, 0];
          if (!dx && !dy) return;
          event.preventDefault();
          const far = event.shiftKey ? 10 : 1;
          const { x, y } = widget.inputs;
          movePoint(widget, i, x[i] + far * dx * STEP_X, y[i] + far * dy * STEP_Y);
        },
      },
      h("span.dot", { "data-output": "alpha" }),
      h("span.number", String(i + 1)),
    );
    drag(
      point,
      (event) => {
        const { x, y } = at(event);
        return [x - widget.inputs.x[i], y - widget.inputs.y[i]];
      },
      (event, [dx, dy]) => {
        const { x, y } = at(event);
        movePoint(widget, i, x - dx, y - dy);
      },
    );
    return point;
  };

  /** The last point before the i-th whose number would cover that of the i-th; or −1. */
  const near = (x, y, i) =>
    x.findLastIndex(
      (other, j) =>
        j < i && Math.abs(other - x[i]) < 0.035 * width && Math.abs(y[j] - y[i]) < 0.07 * height,
    );

  let traced; // the outputs that the curves show
  const trace = ({
    places: { data: places },
    curve: { data: answers },
    covered,
    reach,
    truth: real,
  }) => {
    // the boxcar's steps have upright sides
    const flat = reach.data.every((K) => K === 0 || K === 1);
    const place = (y, i) => `${places[i].toFixed(3)} ${y.toFixed(3)}`;
    const to = (y, i) =>
      (flat && i ? `H${((places[i - 1] + places[i]) / 2).toFixed(4)}V${y.toFixed(3)}` : "") +
      `L${place(y, i)}`;
    const steps = Array.from(answers, (y, i) => {
      if (!covered.data[i]) return "";
      return covered.data[i - 1] ? to(y, i) : `M${place(y, i)}h0`; // h0: one alone is a dot
    });
    setAttribute(curve, "d", steps.join(""));
    if (!truth.hasAttribute("d"))
      setAttribute(truth, "d", through(Array.from(real.data, (y, i) => [places[i], y])));
    const heights = Array.from(reach.data, (K, i) => to(bottom + 0.2 * (top - bottom) * K, i));
    setAttribute(kernel, "d", `M${left} ${bottom}${heights.join("")}L${right} ${bottom}Z`);
  };

  drag(
    svg,
    () => {},
    (event) => moveQuery(widget, at(event).x),
  );
  svg.addEventListener("click", (event) => moveQuery(widget, at(event).x));
  element.append(query, points, answer);
  return {
    element,
    update(inputs, outputs) {
      const { x, y } = inputs;
      const { data: alpha } = outputs.alpha;
      const known = alpha.length === x.length; // else the answer is still on its way
      const below = [];
      fillList(points, x, make, (point, _, i) => {
        put(point, x[i], y[i]);
        setAttribute(point, "aria-label", `point ${i + 1}`);
        setAttribute(point, "aria-valuenow", String(x[i]));
        setAttribute(
          point,
          "aria-valuetext",
          `x ${coordinate(x[i])}, y ` +
            `${coordinate(y[i])}${known ? `, weight ${weighs(alpha[i])}` : ""}`,
        );
        point.classList.toggle("chosen", i === pointOf(widget));
        below[i] = !(below[near(x, y, i)] ?? true); // numbers of neighbours on both sides
        point.classList.toggle("below", below[i]);
        if (!known) return;
        point.classList.toggle("away", alpha[i] === 0);
        const size = `${(9 + 15 * Math.sqrt(alpha[i])).toFixed(1)}px`;
        const dot = point.firstChild;
        setAttribute(dot, "data-value", String(alpha[i]));
        if (dot.style.width !== size) dot.style.width = dot.style.height = size;
        setHeat(dot, Math.min(1, 0.2 + 2.5 * alpha[i]));
      });
      put(query, inputs.query, top);
      setAttribute(query, "aria-valuenow", String(inputs.query));
      setAttribute(query, "aria-valuetext", coordinate(inputs.query));
      answer.hidden = !outputs.reached.data[0];
      put(answer, inputs.query, within(outputs.answer.data[0], [bottom, top]));
      const given = widget.model.get("outputs");
      if (given === traced) return;
      traced = given;
      trace(outputs);
    },
  };
}

const coordinate = (value) => String(hundredths(value)).replace("-", "−");

function legend() {
  const entry = (kind, text) => h("li", h("i", { class: `key ${kind}` }), text);
  return {
    element: h(
      "ul.legend",
      entry("curve", "the answer at every x"),
      entry("kernel", "the kernel around the query"),
      entry("truth", "the true function, without noise"),
      entry("weight", "a point: the larger, the more weight"),
      h("li", "Drag points and x, or move them with the arrow keys; Delete removes a point."),
    ),
    update() {},
  };
}

const kernelChoice = (widget) =>
  choice(widget, "kernel", "kernel", widget.spec.vocabularies.kernel);

/** K of a distance, counted in bandwidths, for kernels in the order of the choice. */
const KERNELS = [
  (u) => Math.exp((-u * u) / 2),
  (u) => Number(Math.abs(u) <= 1),
  (u) => Math.max(0, 1 - u * u),
  () => 1,
];
const KERNEL_TEXTS = [
  "each exponent is −u²/2, where u = (x − xᵢ) / bandwidth",
  "its K, 1 within the bandwidth, by the sum of all K",
  "its K, 1 − u² with u = (x − xᵢ) / bandwidth, by the sum of all K",
  "every K is 1, by the sum of all",
];

/** Where the weight of point i comes from. */
function weightOf(widget, i, cells) {
  const { x, query, bandwidth, kernel } = widget.inputs;
  const near = Math.fround; // as torch rounds: a point may lie just at the kernel's end
  const from = x.map((place) => near(near(near(query) - near(place)) / near(bandwidth)));
  const what = `Weight of point ${i + 1}: ${KERNEL_TEXTS[kernel]}:`;
  if (kernel === 0)
    return weighed(
      what,
      from.map((u) => (-u * u) / 2),
      i,
      cells,
    );
  const all = from.map(KERNELS[kernel]);
  if (!all[i]) {
    const far = `${format(Math.abs(from[i]))} bandwidths from x, where K is 0`;
    return {
      kind: "said",
      what: `Point ${i + 1} is ${far}, so it has no weight.`,
      lit: [{ cells }],
    };
  }
  const total = all.reduce((mass, K) => mass + K, 0);
  const figure = (K) => (Number.isInteger(K) ? String(K) : format(K));
  const by = { value: total, name: figure(total) };
  return sum(what, [[all[i]]], undefined, { by, figure, lit: [{ cells }] });
}

const ALIKE = 1.05; // weights whose ratio is smaller are called equal
const NAMED = 4; // points at most, if together they have half of the weight

/** The query, and what it is answered, in words. */
function queryAndAnswer(widget) {
  const box = numberBox(widget, "query", { called: "x", label: "query x, typed", class: "number" });
  widget.queryBox = box;
  /** Each weight times the y of its point, those that weigh most first. */
  const answer = explainableNumber(
    widget,
    () => {
      const weights = widget.readOutputs().alpha.data;
      const { x, y, query } = widget.inputs;
      const order = [...x.keys()].filter((i) => weights[i] > 0);
      order.sort((i, j) => weights[j] - weights[i]);
      const terms = order.map((i) => [weights[i], y[i]]);
      const cells = order.flatMap((i) => widget.partsOf(i).slice(1));
      const what = `Answer at x = ${coordinate(query)}, each weight times the y of its point:`;
      return sum(what, terms, undefined, { tones: ["weight", "value"], lit: [{ cells }] });
    },
    () => widget.readOutputs().answer.data[0],
  );
  const [before, after] = [h("span"), h("span")];
  const parts = [before, answer, after];
  const message = h("p.note.says", { "data-output": "", role: "status" }, ...parts);
  const why = (alpha, weights) => {
    if (!alpha.length)
      return (
        "no point is in reach. All weights are 0, so there is no answer, and the curve has " +
        "a gap. Widen the bandwidth, or bring a point nearer."
      );
    const names = alpha.map(({ i }) => String(i + 1));
    if (alpha.length === 1) return `that of point ${names[0]} alone`;
    const all = alpha.length === weights;
    const [largest, smallest] = [alpha[0].share, alpha.at(-1).share];
    if (largest - smallest < 1e-6) {
      return all
        ? `the mean of all ${weights} points`
        : `the mean of points ${listed(
            alpha
              .map(({ i }) => i)
              .sort((a, b) => a - b)
              .map((i) => String(i + 1)),
          )}`;
    }
    const points = `${all ? "all " : ""}${alpha.length} points`;
    if (largest < ALIKE * smallest)
      return `nearly the mean of ${points}: each weighs about ${format(1 / alpha.length)}`;
    let sum = 0;
    const most = alpha.filter(({ share }) => {
      const take = sum < 0.5;
      sum += share;
      return take;
    });
    if (most.length > NAMED)
      return `from ${points}, none of which weighs more than ${format(largest)}`;
    const point = most.length === 1 ? "point" : "points";
    return (
      `mostly from ${point} ` +
      `${listed(most.map(({ i, share }) => `${i + 1} (${format(share)})`))}`
    );
  };
  return {
    element: h(
      "div.queried",
      h("label.called", h("span", { "aria-hidden": "true" }, "query x"), box),
      message,
    ),
    update(inputs, outputs) {
      box.follow();
      const { data } = outputs.alpha;
      if (data.length !== inputs.x.length) return; // the answer is still on its way
      const alpha = Array.from(data, (share, i) => ({ i, share }))
        .filter(({ share }) => share > 0)
        .sort((a, b) => b.share - a.share);
      const reached = Boolean(outputs.reached.data[0]);
      answer.hidden = !reached;
      setText(answer, reached ? format(outputs.answer.data[0]) : "");
      setText(before, `At x = ${coordinate(inputs.query)} ${reached ? "the answer is " : ""}`);
      setText(after, `${reached ? ", " : ""}${why(alpha, data.length)}${reached ? "." : ""}`);
    },
  };
}

const APART = 0.15; // in x: then the dots of two points lie side by side

/** The place nearest to the query where a new point has room, or as much of it as there is. */
function roomFor({ x: taken, query }, ends) {
  const room = (x) => Math.min(APART, ...taken.map((other) => hundredths(Math.abs(other - x))));
  const places = [query];
  for (let away = APART; away <= ends[1] - ends[0]; away += APART)
    places.push(query + away, query - away);
  return places
    .filter((x) => x === within(x, ends))
    .map(hundredths)
    .reduce((best, x) => (room(x) > room(best) ? x : best));
}

/** What the curve says at x; 0 where it has a gap. */
function curveAt(widget, x) {
  const { query } = widget.inputs;
  const {
    answer,
    places: { data: places },
    curve,
  } = widget.readOutputs();
  if (x === query) return answer.data[0];
  const i = Math.round(((x - places[0]) / (places.at(-1) - places[0])) * (places.length - 1));
  return curve.data[i];
}

/** The points as numbers, each with its weight; and buttons to add and remove one. */
function pointTable(widget) {
  const { limits } = widget.spec;
  const list = h("ol.points", { "aria-label": "points and their weights" });
  const boxes = new WeakMap(); // li -> its boxes
  const reach = roveLines(list);
  /** The boxes of a point and its weight: x, y, weight. */
  widget.partsOf = (i) => [...boxes.get(list.children[i]), list.children[i].lastChild];
  const make = (i) => {
    const pair = ["x", "y"].map((name) => {
      const label = `${name} of point ${i + 1}`;
      const focus = () => touchPoint(widget, i);
      return numberBox(widget, name, { entry: i, called: name, label, focus });
    });
    const share = h("span.share.askable", { "data-output": "alpha" });
    explainable(widget, share, () => weightOf(widget, i, [pair[0], widget.queryBox]));
    const li = h("li", ...pair, h("span.of", String(i + 1)), share);
    boxes.set(li, pair);
    return li;
  };
  const add = h(
    "button",
    {
      "data-input": "x y",
      click: () => {
        const { inputs } = widget;
        const { length } = inputs.x;
        if (length >= limits.S[1]) {
          widget.announce(`There is room for ${limits.S[1]} points: remove one first.`);
          return;
        }
        const x = roomFor(inputs, limits.x);
        const y = hundredths(within(curveAt(widget, x), limits.y));
        if (
          widget.edit(Symbol("add"), (next) => {
            next.x.push(x);
            next.y.push(y);
          })
        ) {
          touchPoint(widget, length);
        }
      },
    },
    "Add a point near the query",
  );
  const remove = h("button", {
    "data-input": "x y",
    click: () => {
      if (widget.inputs.x.length === 2) add.focus();
      removePoint(widget, pointOf(widget));
    },
  });
  return {
    element: h(
      "div.column",
      h("p.caption", h("b", "points (x, y)"), " and their weights"),
      list,
      h("div.foot", add, remove),
    ),
    reset() {
      widget.point = 0;
    },
    update({ x }, outputs) {
      const { data: alpha } = outputs.alpha;
      fillList(list, x, make, (li, _, i) => {
        boxes.get(li).forEach((box) => box.follow());
        li.classList.toggle("chosen", i === pointOf(widget));
        if (alpha.length !== x.length) return;
        setText(li.lastChild, weighs(alpha[i]));
        setAttribute(li.lastChild, "data-value", String(alpha[i]));
        setHeat(li, Math.min(1, 2 * alpha[i]));
      });
      reach();
      setText(remove, `Remove point ${pointOf(widget) + 1}`);
      remove.disabled = x.length === 1;
    },
  };
}

plot.style = `${plane.style}
.plot svg { cursor: crosshair; }
.plot path.kernel { stroke: none; fill: color-mix(in oklab, transparent, var(--query) 22%); }
.plot path.truth { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 2 5; }
.plot path.curve { stroke-width: 3; }
.query-line { position: absolute; width: 1.75rem; margin-left: -.875rem; height: 100%; cursor:
  ew-resize; touch-action: none; pointer-events: none; }
.query-line::before { content: ""; position: absolute; left: .8125rem; top: 0; bottom: 0;
  width: 2px; background: var(--query); }
.query-line span { position: absolute; top: -.8125rem; left: .0625rem; width: 1.625rem; height:
  1.625rem; border-radius: 13px; text-align: center; line-height: 1.5rem; font-size:
  var(--size-note); font-style: italic; color: var(--text); pointer-events: auto; background:
  color-mix(in oklab, var(--ground), var(--query) 30%); border: 1.5px solid var(--query); }
.query-line:focus-visible { outline: none; }
.query-line:focus-visible span { outline: 2px solid var(--accent); outline-offset: 2px; }
.answer { position: absolute; width: .8125rem; height: .8125rem; margin: -.40625rem; transform:
  rotate(45deg); background: var(--query); border: 2px solid var(--ground); pointer-events: none; }
.points-layer { position: absolute; inset: 0; pointer-events: none; }
.point { position: absolute; width: 1.75rem; height: 1.75rem; margin: -.875rem; border-radius: 50%;
  cursor: grab; touch-action: none; pointer-events: auto; display: grid; place-items: center; }
.point:active { cursor: grabbing; }
.dot { border-radius: 50%; border: 1.5px solid var(--weight); ${shaded("weight")} }
.away .dot { border-style: dotted; background: var(--ground); }
.point.chosen .dot { box-shadow: 0 0 0 2px var(--ground), 0 0 0 3.5px var(--accent); }
.point .number { position: absolute; bottom: 100%; margin-bottom: -6px;
  font-size: var(--size-small);
  line-height: 1; color: var(--soft); }
.point.below .number { bottom: auto; top: 100%; margin: -6px 0 0; }
`;
legend.style = `
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; list-style: none; margin: 0; padding: 0;
  font-size: var(--size-note); color: var(--soft); }
.legend li { display: flex; gap: 7px; align-items: center; }
.key { width: 1.25rem; height: 0; border-top: 3px solid var(--blue); border-radius: 2px;
  flex: none; }
.key.truth { border-top: 2px dotted var(--soft); }
.key.kernel { height: .625rem; border: 0;
  background: color-mix(in oklab, var(--ground), var(--query) 30%); }
.key.weight { width: .75rem; height: .75rem; border: 1.5px solid var(--weight); border-radius: 50%;
  background: color-mix(in oklab, var(--ground), var(--weight) 60%); }
`;
queryAndAnswer.style = `
.queried { display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: baseline; }
.says { flex: 1 1 16.25rem; min-height: 3.2em; }
`;
pointTable.style = `
.caption { margin: 0; font-size: var(--size-note); color: var(--soft); }
.caption b { font-weight: 600; color: var(--text); }
.points { list-style: none; margin: 0 0 6px; padding: 0; display: grid; gap: 5px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 6.125rem), 1fr)); }
.points li { display: grid; grid-template-columns: 1fr 1fr; border: 1px solid var(--line);
  border-radius: 8px; padding: 2px; ${shaded("weight")} }
.points li.chosen { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.points input { color: inherit; min-width: 0; width: 100%; padding: 2px; text-align: right;
  font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.points .of { font-size: var(--size-small); padding: 0 5px 1px; }
.points .share { font-size: var(--size-small); text-align: right; padding: 0 5px 1px;
  font-variant-numeric: tabular-nums; }
`;

/** Controls and legend at the left of the plot where there is room, else above and below it. */
function scene(_widget, controls, picture, key) {
  const part = (name, { element }) => h("div", { class: name }, element);
  return {
    element: h("div.scene", controls.element, picture.element, part("key-to", key)),
    update() {},
  };
}
scene.style = `
.scene { display: grid; gap: 14px 24px; min-width: 0; }
.scene > * { min-width: 0; }
.scene .asking { display: flex; flex-direction: column; gap: 14px; }
@container widget (min-width: 53.75rem) {
  .scene { grid-template: auto 1fr / 22.75rem minmax(0, 1fr); }
  .scene .plot { grid-area: 1 / 2 / 3; }
  .scene .says { flex-basis: 100%; min-height: 4.8em; }
  .scene .legend { flex-direction: column; }
}
`;

export default live(
  "Kernel regression, live",
  (ui) => [
    ui.use(
      scene,
      ui.boxed(
        "asking",
        ui.use(kernelChoice),
        ui.knob("bandwidth", "bandwidth", { scale: "log", step: 0.1 }),
        ui.use(queryAndAnswer),
      ),
      ui.use(plot),
      ui.use(legend),
    ),
    ui.use(pointTable),
    ui.explanation(),
  ],
  { wide: true },
);
