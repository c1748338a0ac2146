import { h, setAttribute, setText, svgPart } from "../../live/ui/dom.js";
import { explainable, explainableNumber, numbersIn, roveLines } from "../../live/ui/explain.js";
import { knob } from "../../live/ui/knobs.js";
import { format, formatExact, times, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint, pixelAt } from "../../live/ui/pixels.js";
import { dotsAt, plane, through } from "../../live/ui/plot.js";
import { fillList } from "../../live/ui/sentences.js";

const [FEW_ROWS, FEW_COLUMNS] = [10, 8]; // up to here the cells of the map hold their numbers

/** The row of the table that the query, or the key, stands in; and its position. */
const rowOf = (inputs, who) => Math.min(inputs[who], inputs.positions - 1);
/** By the logarithm, and to 0: small offsets matter, and they go up to thousands. */
const FROM_ZERO = {
  at: (value) => Math.log2(value + 1),
  of: (place) => Math.round(2 ** place - 1),
  next: (value, by) => value + by,
};

const positionOf = (inputs, who) => inputs.offset + rowOf(inputs, who);

/** Which hand a column of the table belongs to, and which of its two coordinates it is. */
function handOf({ hands, concatenated }, column) {
  return concatenated
    ? { hand: column % hands, wave: column < hands ? "sin" : "cos" }
    : { hand: column >> 1, wave: column % 2 ? "cos" : "sin" };
}

/** The columns of a hand's sine and cosine. */
const columnsOf = ({ hands, concatenated }, hand) =>
  concatenated ? [hand, hands + hand] : [2 * hand, 2 * hand + 1];

/** The column that the reader looks at. */
const columnOf = (widget) => Math.min(widget.column ?? 0, 2 * widget.inputs.hands - 1);

function lookAt(widget, row, column) {
  const { positions, hands } = widget.inputs;
  widget.column = within(column, [0, 2 * hands - 1]);
  const to = within(row, [0, positions - 1]);
  if (to === rowOf(widget.inputs, "query")) widget.repaint();
  else
    widget.edit("query", (next) => {
      next.query = to;
    });
}

/** Outputs that are still of another table than the inputs ask for. */
const late = ({ positions, hands }, { code }) =>
  code.shape[0] !== positions || code.shape[1] !== 2 * hands;

const angle = (theta) =>
  Math.abs(theta) < 100 ? theta.toFixed(2) : theta.toFixed(theta < 1000 ? 1 : 0);
const periodic = (turn) =>
  turn < 100 ? format(turn) : String(Math.round(turn)).replace(/\B(?=(\d{3})+$)/g, ",");

// ---------------------------------------------------------------- the table

/** At which position the query, or the key, stands. */
const standing = (widget, who) =>
  knob(widget, who, `${who} at`, {
    read: (inputs) => rowOf(inputs, who),
    ends: ({ positions }) => [0, positions - 1],
    describe: (row, { offset }) => String(offset + row),
  });

/** By what positions are divided; its box lights up where it counts. */
function baseKnob(widget) {
  const part = knob(widget, "base", "base", { scale: "log" });
  widget.tables.set("base", () => [[part.element.querySelector(".number")]]);
  return part;
}

/** The table P as colours, a row for each position; one entry of it is read out as a formula. */
function tableMap(widget) {
  const canvas = h("canvas", { "aria-hidden": "true", "data-output": "code" });
  const [queryRow, keyRow, cell] = ["query", "key", "cell"].map((kind) =>
    h("span", { class: `mark ${kind}` }),
  );
  const tags = [h("span.tag.query"), h("span.tag.key")];
  const digits = h("div.digits", { "aria-hidden": "true" });
  const at = (event) => pixelAt(canvas, event);
  const keys = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-10, 0],
    PageDown: [10, 0],
    Home: [0, -1e3],
    End: [0, 1e3],
  };
  const map = h(
    "div.map",
    {
      role: "slider",
      tabindex: "0",
      "data-input": "query",
      "aria-label": "entry of P",
      "aria-valuemin": "0",
      click: (event) => lookAt(widget, ...at(event)),
      pointermove: (event) => {
        if (event.pointerType === "mouse" && event.buttons === 1) lookAt(widget, ...at(event));
        else read(...at(event));
      },
      pointerleave: () => read(rowOf(widget.inputs, "query"), columnOf(widget)),
      keydown: (event) => {
        const by = keys[event.key];
        if (!by) return;
        event.preventDefault();
        lookAt(widget, rowOf(widget.inputs, "query") + by[0], columnOf(widget) + by[1]);
      },
    },
    canvas,
    digits,
    keyRow,
    queryRow,
    cell,
  );

  const [name, wave, power, rest] = [h("b"), h("span"), h("sup"), h("span")];
  const line = h("p.note.formula", { "data-output": "" }, name, wave, power, rest);
  let shown;
  const read = (row, column) => {
    const { inputs } = widget;
    const { code, theta } = shown;
    if (late(inputs, shown)) return "";
    const { hand, wave: f } = handOf(inputs, column);
    const [value, turned] = [
      code.data[row * code.shape[1] + column],
      theta.data[row * inputs.hands + hand],
    ];
    const position = inputs.offset + row;
    const exponent = `${2 * hand}/${2 * inputs.hands}`;
    setText(name, `P[${position}, ${column}] `);
    setText(wave, `= ${f}(${position} / ${formatExact(inputs.base)}`);
    setText(power, exponent);
    setText(rest, `) = ${f}(${angle(turned)}) = ${value.toFixed(4).replace("-", "−")}`);
    return `${name.textContent}${wave.textContent}^(${exponent})${rest.textContent}`;
  };

  const ends = [h("span"), h("span")];
  ["query", "key"].forEach((who, i) => widget.tables.set(`position of ${who}`, () => [[tags[i]]]));
  let painted;
  const share = (n, of) => `${((100 * n) / of).toFixed(3)}%`;
  const box = (element, top, height, left = 0, width = 1, columns = 1, rows = 1) => {
    const style =
      `top:${share(top, rows)};height:${share(height, rows)};` +
      `left:${share(left, columns)};width:${share(width, columns)}`;
    setAttribute(element, "style", style);
  };
  return {
    element: h(
      "div.column.table-map",
      h("p.caption", h("b", "P"), ": positions down, entries across"),
      h(
        "div.framed",
        { "data-output": "" },
        h("div.gutter", { "aria-hidden": "true" }, ...tags),
        map,
      ),
      h("p.axis", { "aria-hidden": "true" }, ...ends),
      line,
    ),
    shows: "outputs",
    reset() {
      widget.column = 0;
    },
    update(inputs, outputs) {
      shown = outputs;
      if (late(inputs, outputs)) return;
      const [rows, columns] = outputs.code.shape;
      const few = rows <= FEW_ROWS && columns <= FEW_COLUMNS;
      const given = widget.model.get("outputs");
      if (given !== painted) {
        // numbers are to be read
        paint(canvas, outputs.code.data, columns, { most: few ? 1.5 : 1 });
        fillList(digits, few ? [...outputs.code.data] : [], "span", (span, value) =>
          setText(span, format(value)),
        );
        setAttribute(digits, "style", `grid-template-columns:repeat(${columns},1fr)`);
        painted = given;
      }
      const [query, key, column] = [rowOf(inputs, "query"), rowOf(inputs, "key"), columnOf(widget)];
      box(queryRow, query, 1, 0, 1, 1, rows);
      box(keyRow, key, 1, 0, 1, 1, rows);
      box(cell, query, 1, column, 1, columns, rows);
      const room = 0.092; // a tag's height
      const tops = [query, key].map((row) => within((row + 0.5) / rows, [room / 2, 1 - room / 2]));
      const [middle, first] = [
        within((tops[0] + tops[1]) / 2, [room, 1 - room]),
        query <= key ? 0 : 1,
      ];
      const close = Math.abs(tops[0] - tops[1]) < room; // then side by side, not one on the other
      [
        ["q", query],
        ["k", key],
      ].forEach(([letter, row], i) => {
        setText(tags[i], `${letter} ${inputs.offset + row}`);
        const top = close ? middle + (i === first ? -room : room) / 2 : tops[i];
        setAttribute(tags[i], "style", `top:${share(top, 1)}`);
      });
      const split = inputs.concatenated
        ? ["all sines", "all cosines"]
        : ["fast hands", "slow hands"];
      ends.forEach((end, i) => setText(end, i ? `${split[i]} →` : `← ${split[i]}`));
      setAttribute(map, "aria-valuemax", String(inputs.offset + rows - 1));
      setAttribute(map, "aria-valuemin", String(inputs.offset));
      setAttribute(map, "aria-valuenow", String(inputs.offset + query));
      setAttribute(map, "aria-valuetext", read(query, column));
    },
  };
}

// ---------------------------------------------------------------- likeness

/** Where the dot product of two rows of P comes from. */
function productOf(widget, i, j) {
  const { at, columns } = numbersIn(widget, "code");
  const { offset } = widget.inputs;
  return {
    kind: "sum",
    what: `P[${offset + i}] · P[${offset + j}], entry times entry:`,
    terms: times(columns, (column) => [at(i, column), at(j, column)]),
    tones: ["query", "key"],
    lit: [{ name: "position of query" }, { name: "position of key" }],
  };
}

/** The dot products of the query's code with all others, by distance, on the line of position 0. */
function likenessPlot(widget) {
  const paths = ["line", "drop", "dots"];
  const plot = plane({ name: "chart", x: [-1, 1], y: [0, 1], height: 140, paths });
  plot.element.dataset.output = "likeness";
  const { line, dots, drop } = plot.paths;
  const marker = plot.spot("marker spot");
  const legend = h("p.note.soft");
  const product = explainableNumber(widget, () => {
    const { inputs } = widget;
    return productOf(widget, rowOf(inputs, "query"), rowOf(inputs, "key"));
  });
  const [name, more] = [h("span"), h("span")];
  const message = h("p.note.says", { "data-output": "", role: "status" });
  message.append(name, product, more);
  const number = (value) => value.toFixed(3).replace("-", "−");
  let drawn;
  return {
    element: h(
      "div.column.likeness",
      h("p.caption", h("b", "P", h("sub", "t"), " · P", h("sub", "s")), " by distance s − t"),
      plot.element,
      message,
      legend,
    ),
    shows: "outputs",
    update(inputs, outputs) {
      if (late(inputs, outputs)) return;
      const products = outputs.likeness.data;
      const zero = outputs.from_zero.data;
      const [T, top] = [inputs.positions, inputs.hands];
      const [query, key] = [rowOf(inputs, "query"), rowOf(inputs, "key")];
      const least = zero.reduce((m, v) => Math.min(m, v), 0);
      const bottom = -Math.ceil((-4 * least) / top - 1e-3) * (top / 4) || 0;
      const [left, right] = [-(T - 1), T - 1];
      const given = widget.model.get("outputs");
      if (given !== drawn) {
        drawn = given;
        plot.reach({
          x: [left, right],
          y: [bottom, top],
          ticks: {
            x: [left, 0, right],
            y: [
              [top, `D/2 = ${formatExact(top)}`],
              [0],
              ...(bottom ? [[bottom, formatExact(bottom)]] : []),
            ],
          },
          grid: { x: [0], y: [0] },
        });
        const both = Array.from({ length: 2 * T - 1 }, (_, i) => left + i);
        setAttribute(
          line,
          "d",
          through(both.map((distance) => [distance, zero[Math.abs(distance)]])),
        );
        dots.values = products;
        setAttribute(dots, "d", dotsAt(Array.from(products, (value, row) => [row - query, value])));
      }
      const distance = key - query;
      const ends = [products[key], bottom].map((height) => [distance, height]);
      setAttribute(drop, "d", through(ends));
      marker(distance, products[key]);
      const [t, s] = [positionOf(inputs, "query"), positionOf(inputs, "key")];
      const apart = Math.abs(distance);
      setText(name, `P[${t}] · P[${s}] = `);
      setText(product, number(products[key]));
      setAttribute(product, "data-value", String(products[key]));
      setText(
        more,
        apart
          ? `. As far apart are 0 and ${apart}: P[0] · P[${apart}] = ${number(zero[apart])}.`
          : ", as of every position with itself.",
      );
      setText(
        legend,
        `Dots: t = ${t}. Line: t = 0. Move the query or the offset: the dots stay on the line.`,
      );
    },
  };
}

// ---------------------------------------------------------------- clock hands

const dial = (...kinds) =>
  svgPart(
    "svg",
    { viewBox: "-1.12 -1.12 2.24 2.24", "aria-hidden": "true" },
    svgPart("circle", { r: "1.05" }),
    ...kinds.map((kind) => svgPart("line", { class: kind, x1: "0", y1: "0" })),
  );
const pointTo = (hand, x, y) => {
  setAttribute(hand, "x2", x.toFixed(3));
  setAttribute(hand, "y2", (-y).toFixed(3));
};

/** Where the angle of the query's hand number j comes from. */
function angleOf(widget, j) {
  const { base, hands } = widget.inputs;
  const i = positionOf(widget.inputs, "query");
  const exponent = (2 * j) / (2 * hands);
  return {
    kind: "sum",
    what: `θ of hand ${j} at position ${i}: the position, divided by a power of the base:`,
    terms: [[i]],
    by: { value: base ** exponent, name: `${formatExact(base)}^{${2 * j}/${2 * hands}}` },
    lit: [{ name: "position of query" }, { name: "base" }],
  };
}

/** The row of the query as clock hands, and that of the key behind it. */
function clocks(widget) {
  const list = h("ol.clocks", { "data-output": "period", "aria-label": "clock hands" });
  const reach = roveLines(list);
  const note = h("p.note", { "data-output": "" });
  const make = (j) => {
    const [svg, theta] = [dial("key", "query"), h("span", { role: "img" })];
    explainable(widget, theta, () => angleOf(widget, j));
    return h(
      "li",
      {
        click: () => lookAt(widget, rowOf(widget.inputs, "query"), columnsOf(widget.inputs, j)[0]),
      },
      svg,
      theta,
    );
  };
  return {
    element: h(
      "div.column",
      h(
        "p.caption",
        h("b", "Each pair (sin θ, cos θ) is a clock hand. "),
        h("i.swatch.query"),
        "query ",
        h("i.swatch.key"),
        "key; θ is the query’s",
      ),
      list,
      note,
    ),
    shows: "outputs",
    update(inputs, outputs) {
      if (late(inputs, outputs)) return;
      const { data } = outputs.code;
      const [, D] = outputs.code.shape;
      const theta = outputs.theta.data;
      const turns = outputs.period.data;
      const [query, key] = [rowOf(inputs, "query"), rowOf(inputs, "key")];
      const { hand: chosen } = handOf(inputs, columnOf(widget));
      fillList(list, Array.from(turns), make, (li, _, j) => {
        const [svg, text] = li.children;
        const [, keyHand, queryHand] = svg.children;
        const [sin, cos] = columnsOf(inputs, j);
        pointTo(queryHand, data[query * D + sin], data[query * D + cos]);
        pointTo(keyHand, data[key * D + sin], data[key * D + cos]);
        const turned = theta[query * inputs.hands + j];
        setText(text, angle(turned));
        setAttribute(text, "data-value", String(turned));
        setAttribute(text, "aria-label", `θ of hand ${j}: ${angle(turned)}`);
        li.classList.toggle("chosen", j === chosen);
        setAttribute(li, "data-value", String(turns[j]));
      });
      reach();
      const last = inputs.hands - 1;
      const at = (row) => angle(theta[row * inputs.hands + chosen]);
      const others =
        chosen === last || chosen > 0 ? "" : `, hand ${last} once in ${periodic(turns[last])}`;
      setText(
        note,
        `Hand ${chosen} turns once in ${periodic(turns[chosen])} positions${others}. ` +
          `At ${positionOf(inputs, "query")} its θ is ${at(query)}, ` +
          `at ${positionOf(inputs, "key")} it is ${at(key)}.`,
      );
    },
  };
}

// ---------------------------------------------------------------- rotary

/** How many pairs q and k have. What is cut off is kept for later. */
function pairs(widget) {
  const kept = { q: [], k: [] };
  const more = {
    q: [
      [0.4, 0.7],
      [-0.5, 0.6],
    ],
    k: [
      [0.6, -0.3],
      [0.2, 0.9],
    ],
  };
  const part = knob(widget, "pairs", "width d_k", {
    edits: "q k",
    read: ({ q }) => q.length,
    put: (next, n) => {
      for (const name of ["q", "k"]) {
        const all = [
          ...next[name],
          ...kept[name].slice(next[name].length),
          ...more[name],
          ...more[name],
        ];
        next[name] = all.slice(0, n);
      }
    },
    ends: widget.spec.limits.n,
    describe: (n) => String(2 * n),
  });
  const { update } = part;
  return {
    ...part,
    reset() {
      kept.q = [];
      kept.k = [];
    },
    update(inputs) {
      for (const name of ["q", "k"])
        kept[name] = [...inputs[name], ...kept[name].slice(inputs[name].length)];
      update(inputs);
    },
  };
}

/** Where the product of q and k comes from, as they are or turned. */
function pairsOf(widget, turned) {
  const names = turned ? ["turned_q", "turned_k"] : ["q", "k"];
  const [q, k] = names.map((name) => numbersIn(widget, name));
  const places = times(q.rows, (i) => [0, 1].map((j) => [i, j])).flat();
  return {
    kind: "sum",
    what: turned ? "Turned q times turned k, entry by entry:" : "q times k, entry by entry:",
    terms: places.map(([i, j]) => [q.at(i, j), k.at(i, j)]),
    tones: ["query", "key"],
    lit: turned ? [{ name: "pairs" }] : [{ name: "q" }, { name: "k" }],
  };
}

/** Each pair of q and k before and after it is turned, and what their product makes of it. */
function turnedPairs(widget) {
  const list = h("ol.clocks.turned", {
    "data-output": "",
    "aria-label": "pairs of q and k, turned",
  });
  const message = h("p.note.says", { "data-output": "", role: "status" });
  const make = (i) =>
    h("li", dial("key before", "query before", "key", "query"), h("span", `pair ${i + 1}`));
  widget.tables.set("pairs", () => [[...list.children].map((li) => li.firstChild)]);
  const numbers = {
    plain: explainableNumber(widget, () => pairsOf(widget, false)),
    turned: explainableNumber(widget, () => pairsOf(widget, true)),
    unmoved: h("b"),
  };
  for (const [output, number] of Object.entries(numbers)) number.dataset.output = output;
  const number = (output, value) => {
    setAttribute(numbers[output], "data-value", String(value));
    setText(numbers[output], value.toFixed(3).replace("-", "−"));
    return numbers[output];
  };
  let shownKey = "";
  return {
    element: h("div.column", h("p.caption", "faint: as they are; full: turned"), list),
    message: { element: message },
    shows: "outputs",
    update(inputs, outputs) {
      const { turned_q: turnedQ, turned_k: turnedK, plain, turned, unmoved } = outputs;
      if (turnedQ.shape[0] !== inputs.q.length) return; // the answer is still on its way
      const longest = Math.max(
        1e-6,
        ...[...inputs.q, ...inputs.k].map(([x, y]) => Math.hypot(x, y)),
      );
      fillList(list, inputs.q, make, (li, _, i) => {
        const [, k, q, kTurned, qTurned] = li.firstChild.children;
        const to = (hand, x, y) => pointTo(hand, x / longest, y / longest);
        to(q, ...inputs.q[i]);
        to(k, ...inputs.k[i]);
        to(qTurned, turnedQ.data[2 * i], turnedQ.data[2 * i + 1]);
        to(kTurned, turnedK.data[2 * i], turnedK.data[2 * i + 1]);
      });
      const [i, j] = [positionOf(inputs, "query"), positionOf(inputs, "key")];
      const [row, other] = [rowOf(inputs, "query"), rowOf(inputs, "key")];
      const values = [plain, turned, unmoved].map(({ data: [value] }) => value);
      const key = JSON.stringify([i, j, row, other, values]);
      if (key === shownKey) return;
      shownKey = key;
      const focused = Object.values(numbers).find((one) => one.matches(":focus"));
      message.replaceChildren(
        "As they are, q · k = ",
        number("plain", values[0]),
        `. Turned by their positions, ${i} and ${j}, the product is `,
        number("turned", values[1]),
        ...(inputs.offset
          ? [
              `; without the offset, at ${row} and ${other}, it is `,
              number("unmoved", values[2]),
              ".",
            ]
          : [". Now slide the offset: both turn on, and the product stays."]),
      );
      focused?.focus();
    },
  };
}

const headed = (text, ...parts) => ({
  element: h("div.headed", h("p.heading", text), ...parts.map(({ element }) => element)),
});

tableMap.style = `
.explorer, .halves { display: grid; gap: 14px 22px; min-width: 0; }
.explorer > *, .halves > * { min-width: 0; }
.explorer > .side { gap: 2px; }
@container widget (min-width: 38.75rem) {
  .explorer { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .explorer > .side { grid-column: 1 / -1; }
}
@container widget (min-width: 53.75rem) {
  .explorer { grid-template-columns: 15.625rem minmax(0, 1.1fr) minmax(0, 1fr); }
  .explorer > .side { grid-column: auto; }
  .explorer .knob { --label: 6.3em; --number: 3.625rem; gap: 0 8px; }
  .explorer .knob:has([data-input=offset]) { grid-template: "label value" auto "track track" auto
    / minmax(0, 1fr) var(--number); }
  .explorer .formula { min-height: 3.2em; }
  .halves { grid-template-columns: minmax(0, 0.9fr) minmax(0, 1fr); }
}
.caption { margin: 0; font-size: var(--size-note); color: var(--soft); }
.caption b { font-weight: 600; color: var(--text); }
.soft { font-variant-numeric: tabular-nums; }
.framed { display: flex; gap: 4px; height: 12.625rem; }
.gutter { position: relative; flex: none; width: 3.75rem; }
.tag { position: absolute; right: 0; transform: translateY(-50%); font-size: var(--size-small);
  line-height: 1rem; padding: 0 5px; border-radius: 4px; font-variant-numeric: tabular-nums;
  white-space: nowrap; color: var(--text); border: 1px solid var(--tone);
  background: color-mix(in oklab, var(--ground), var(--tone) 30%); }
.query { --tone: var(--query); }
.key { --tone: var(--key); }
.map { position: relative; flex: 1; min-width: 0; border: 1px solid var(--line); cursor: crosshair;
  touch-action: manipulation; }
.mark { position: absolute; pointer-events: none; min-height: 3px; }
.mark.query, .mark.key { outline: 1.5px solid var(--text); }
.mark.key { outline-style: dashed; }
.mark.cell { outline: 2.5px solid var(--text); min-width: 3px; }
.digits { position: absolute; inset: 0; display: grid; font-size: var(--size-small);
  font-variant-numeric: tabular-nums; pointer-events: none; }
.digits span { display: grid; place-items: center; min-width: 0; overflow: hidden; }
@media (max-width: 37.5rem) {
  .digits span { font-size: .75em; letter-spacing: -.3px; }
}
.axis { display: flex; justify-content: space-between; margin: 0 0 0 64px; font-size:
  var(--size-small); color: var(--soft); }
.formula { min-height: 1.7em; overflow-wrap: anywhere; }
.formula b { font-weight: 600; }
.formula sup { line-height: 0; font-size: var(--size-small); }
`;
likenessPlot.style = `${plane.style}
.chart { margin: 10px 10px 20px 62px; }
.chart path.line { stroke: var(--soft); stroke-width: 1.5; opacity: .75; }
.chart path.dots { stroke-width: 5; }
.chart path.drop { stroke: var(--key); stroke-width: 1.5; stroke-dasharray: 3 4; }
.chart .marker { --tone: var(--key); }
.likeness .says { min-height: 3.2em; }
.caption sub { line-height: 0; }
`;
clocks.style = `
.clocks { list-style: none; margin: 4px 0; padding: 0; display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 2.875rem), 1fr)); gap: 2px; }
.clocks li { display: grid; justify-items: center; max-width: 3.75rem; padding: 3px 0 1px; border:
  1px solid transparent; border-radius: 6px; font-size: var(--size-small); font-variant-numeric:
  tabular-nums; color: var(--soft); cursor: pointer; }
.clocks li.chosen { border-color: var(--accent); color: var(--text); }
.clocks .asked { outline-offset: 1px; border-radius: 3px; }
.clocks svg { width: 2.125rem; height: 2.125rem; display: block; }
.clocks circle { fill: none; stroke: var(--line); stroke-width: .05; }
.clocks line { stroke: var(--tone); stroke-width: .13; stroke-linecap: round; }
.clocks line.key { stroke-width: .1; stroke-dasharray: .2 .17; }
.swatch { display: inline-block; width: 1.125rem; border-top: 3px solid var(--tone);
  vertical-align: middle; margin: 0 4px; }
.swatch.key { border-top-style: dashed; }
`;
turnedPairs.style = `
.headed { display: flex; flex-direction: column; gap: 8px; border-top: 1px solid var(--line);
  padding-top: 12px; }
.heading { margin: 0; font-size: var(--size-note); font-weight: 600; }
.headed .row > .column { flex: 1 1 9.375rem; }
.headed .row > .knob, .headed .row > .narrow { flex: 1 1 11.25rem; }
.headed .row > .knob { grid-template: "label value" auto "track track" auto
  / minmax(0, 1fr) var(--number, 4.25rem); }
@container widget (min-width: 53.75rem) { /* beside the clocks */
  .halves > .headed { border-top: 0; padding-top: 0; }
}
.clocks.turned { grid-template-columns: repeat(auto-fill, 4.625rem); }
.clocks.turned li { max-width: none; cursor: default; font-size: var(--size-small); }
.clocks.turned svg { width: 4.375rem; height: 4.375rem; }
.clocks.turned line { stroke-width: .09; }
.clocks.turned line.before { opacity: .4; stroke-width: .07; }
`;

export default live(
  "Positions as clock hands, live",
  (ui) => {
    const turned = ui.use(turnedPairs);
    return [
      ui.boxed(
        "explorer",
        ui.boxed(
          "side",
          ui.knob("positions", "positions T"),
          ui.knob("hands", "width D", { describe: (hands) => String(2 * hands) }),
          ui.use(baseKnob),
          ui.toggle("concatenated", "all sines first, then all cosines"),
          ui.use(standing, "query"),
          ui.use(standing, "key"),
          ui.knob("offset", "offset", { scale: FROM_ZERO }),
        ),
        ui.use(tableMap),
        ui.use(likenessPlot),
      ),
      ui.boxed(
        "halves",
        ui.boxed("side", ui.use(clocks), ui.explanation()),
        headed(
          "Rotary: q and k are turned, pair by pair, by their positions",
          ui.row(ui.matrix("q", "query q"), ui.matrix("k", "key k"), turned),
          turned.message,
          ui.row(ui.use(pairs), ui.entrySlider()),
        ),
      ),
    ];
  },
  { wide: true, answer: ".formula" },
);
