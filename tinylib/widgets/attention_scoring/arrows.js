import { columnHeads } from "../../live/ui/boxes.js";
import { choice } from "../../live/ui/controls.js";
import { h, setAttribute, setHeat, setText, svgPart } from "../../live/ui/dom.js";
import { explainable, rove, wordAt } from "../../live/ui/explain.js";
import { numberBox } from "../../live/ui/knobs.js";
import { shaded } from "../../live/ui/look.js";
import { format, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { drag, plane, through } from "../../live/ui/plot.js";
import { fillList } from "../../live/ui/sentences.js";

const BY_ARROW = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const STEP = 0.1; // of the arrow keys; with Shift ten times as far
const DOT = 0; // the number of the dot product among the scores

const hundredths = (value) => Number(value.toFixed(2));
const coordinates = (vector) => vector.map((value) => format(value)).join(", ");

/** The line of an arrow from the origin, and its two barbs, as the attribute d of a path. */
function arrowTo([x, y]) {
  const length = Math.hypot(x, y);
  if (length < 0.05) return "M0 0";
  const barb = (angle) => {
    const [cos, sin] = [Math.cos(angle) / length, Math.sin(angle) / length];
    return [x - 0.22 * (x * cos - y * sin), y - 0.22 * (x * sin + y * cos)];
  };
  return through([[0, 0], [x, y], barb(0.45), [x, y], barb(-0.45)]);
}

/**
 * The tip of an arrow, to drag or to move with the arrow keys: the vector that `read(inputs)` finds
 * in the input `input`. What is written beside it is in `named`.
 */
function tip(widget, at, input, field, read) {
  const ends = widget.spec.limits[input];
  const move = (x, y) =>
    widget.edit(field, (next) => {
      const vector = read(next);
      [x, y].forEach((value, j) => {
        if (value !== vector[j]) vector[j] = hundredths(within(value, ends)); // else as typed
      });
    });
  const named = h("span.named");
  const element = h(
    "div",
    {
      class: `tip of-${input === "query" ? "query" : "key"}`,
      role: "slider",
      tabindex: "0",
      "data-input": input,
      "aria-valuemin": String(ends[0]),
      "aria-valuemax": String(ends[1]),
      keydown: (event) => {
        const [dx, dy] = BY_ARROW[event.key] ?? [0, 0];
        if (!dx && !dy) return;
        event.preventDefault();
        const far = STEP * (event.shiftKey ? 10 : 1);
        const [x, y] = read(widget.inputs);
        move(dx ? x + far * dx : x, dy ? y + far * dy : y);
      },
    },
    named,
  );
  drag(
    element,
    (event) => {
      const [{ x, y }, [a, b]] = [at(event), read(widget.inputs)];
      return [x - a, y - b];
    },
    (event, [dx, dy]) => {
      const { x, y } = at(event);
      move(x - dx, y - dy);
    },
  );
  return { element, named };
}

/** Where a name is written: beyond the tip of its arrow; of a short one, and at an edge, beside. */
function place(named, [x, y], far) {
  const length = Math.hypot(x, y);
  const edge = Math.max(Math.abs(x), Math.abs(y)) > 0.8 * far;
  let [across, down] = [(30 * x) / length, (-21 * y) / length || -21];
  if (edge) [across, down] = [-14 * Math.sign(x), 21 * Math.sign(y || -1)];
  if (length < 0.6) [across, down] = [0, 23];
  const move = `translate(-50%, -50%) translate(${across.toFixed(0)}px, ${down.toFixed(0)}px)`;
  if (named.style.transform !== move) named.style.transform = move;
}

/** The query and the keys as arrows. A thin line from each key ends where its score is read. */
function field2d(widget) {
  const [low, far] = widget.spec.limits.keys;
  const ticks = Array.from({ length: far - low + 1 }, (_, i) => low + i);
  const { element, svg, put, at, paths } = plane({
    name: "arrows",
    label: "the query and the keys as arrows",
    x: [low, far],
    y: [low, far],
    height: 400,
    ticks: { x: ticks, y: ticks },
    paths: ["line", "feet", "asking"],
  });
  const keys = svgPart("g");
  svg.firstChild.insertBefore(keys, paths.asking);
  svg.dataset.output = "";
  setAttribute(paths.feet, "data-output", "feet");
  const tips = h("div.tips");
  const query = tip(widget, at, "query", "query", (inputs) => inputs.query);
  setText(query.named, "query");
  const names = [];
  const make = (i) => {
    const drawnTip = tip(widget, at, "keys", `key ${i}`, (inputs) => inputs.keys[i]);
    names[i] = drawnTip.named;
    return drawnTip.element;
  };
  element.append(tips, query.element);
  return {
    element,
    update({ words, query: q, keys: given, score }, { weights, feet }) {
      const known = weights.data.length === given.length; // else the answer is still on its way
      setAttribute(paths.asking, "d", arrowTo(q));
      put(query.element, ...q);
      place(query.named, [q[1], -q[0]], far); // at its side: a key's name may stand beyond its tip
      const text = `(${coordinates(q)})`;
      setAttribute(query.element, "aria-label", "query");
      setAttribute(query.element, "aria-valuenow", String(q[0]));
      setAttribute(query.element, "aria-valuetext", text);
      const length = Math.hypot(...q);
      const ahead = q.map((value) => (2 * far * value) / (length || 1));
      const lies = score === DOT && length > 0.05;
      setAttribute(paths.line, "d", lies ? through([ahead.map((value) => -value), ahead]) : "M0 0");
      fillList(
        keys,
        given,
        () => svgPart("path", { class: "key-arrow" }),
        (path, key) => setAttribute(path, "d", arrowTo(key)),
      );
      fillList(tips, given, make, (element, key, i) => {
        put(element, ...key);
        place(names[i], key, far);
        const share = known ? `, weight ${format(weights.data[i])}` : "";
        setAttribute(element, "aria-label", `key of ${words[i]}`);
        setAttribute(element, "aria-valuenow", String(key[0]));
        setAttribute(element, "aria-valuetext", `(${coordinates(key)})${share}`);
        if (!known) return;
        setText(names[i], `${words[i]} ${format(weights.data[i])}`);
        setHeat(names[i], weights.data[i]);
        const thick = `${(1.5 + 5.5 * weights.data[i]).toFixed(2)}px`;
        if (keys.children[i].style.strokeWidth !== thick)
          keys.children[i].style.strokeWidth = thick;
      });
      if (!known) return;
      const from = (i) => [feet.data[2 * i], feet.data[2 * i + 1]];
      setAttribute(paths.feet, "d", given.map((key, i) => through([key, from(i)])).join(""));
      paths.feet.values = feet.data;
    },
  };
}

/** Where a score comes from: the query times the key, or their distance. */
function scoreAt(widget, s) {
  const { query, keys, score } = widget.inputs;
  const key = keys[s];
  const lit = [{ name: "query" }, { name: "keys", row: s }];
  if (score === DOT) {
    const terms = query.map((q, j) => [q, key[j]]);
    const what = `Score of ${wordAt(widget, s)}, the query times the key:`;
    return { kind: "sum", what, terms, tones: ["query", "key"], lit };
  }
  const terms = query.map((q, j) => [-0.5, q - key[j], q - key[j]]);
  const what = `Score of ${wordAt(widget, s)}, −½ times the squared distance to the query:`;
  return { kind: "sum", what, terms, lit };
}

/** The numbers of the arrows, to type, and the score and the weight of each key. */
function numbers2d(widget) {
  const boxes = new WeakMap(); // a row -> its boxes
  const pair = (input, read, field, label) =>
    [0, 1].map((j) =>
      numberBox(widget, input, {
        read: (inputs) => read(inputs)?.[j],
        put: (next, value) => {
          read(next)[j] = value;
        },
        field: () => `${field} ${j}`,
        label: `${label}, ${j + 1}`,
        class: "number",
      }),
    );
  const row = (name, own, ...rest) => {
    const line = h(
      "tr",
      h("th", { scope: "row" }, name),
      ...own.map((box) => h("td", box)),
      ...rest,
    );
    boxes.set(line, own);
    return line;
  };
  const ofQuery = row(
    "query",
    pair("query", (inputs) => inputs.query, "query", "query"),
    h("td", { colspan: "2" }),
  );
  ofQuery.classList.add("asks");
  const body = h("tbody");
  const table = h(
    "table.numbers",
    columnHeads(null, "1st number", "2nd", "score", "weight"),
    h("tbody", ofQuery),
    body,
  );
  const make = (i) => {
    const [score, weight] = ["scores", "weights"].map((name) =>
      h("td", { class: name === "weights" ? "bar" : "", "data-output": name }),
    );
    explainable(widget, score, () => scoreAt(widget, i));
    explainable(widget, weight, () => ({
      kind: "softmax",
      what: `Weight of ${wordAt(widget, i)}:`,
      scores: [...widget.readOutputs().scores.data],
      column: i,
      lit: [{ name: "scores" }],
    }));
    return row(
      "",
      pair("keys", (inputs) => inputs.keys[i], `key ${i}`, `key ${i + 1}`),
      score,
      weight,
    );
  };
  widget.tables.set("query", () => [boxes.get(ofQuery)]);
  widget.tables.set("keys", () => [...body.rows].map((tr) => boxes.get(tr)));
  widget.tables.set("scores", () => [...body.rows].map((tr) => [tr.cells[3]]));
  const reach = rove(table);
  return {
    element: h("div.scroll", table),
    update({ words, keys }, outputs) {
      for (const box of boxes.get(ofQuery)) box.follow();
      const { scores, weights } = outputs;
      const known = scores.data.length === keys.length;
      fillList(body, keys, make, (tr, _, i) => {
        setText(tr.cells[0], words[i]);
        setAttribute(tr.cells[0], "title", words[i]);
        for (const box of boxes.get(tr)) box.follow();
        if (!known) return;
        [scores, weights].forEach((output, j) => {
          const cell = tr.cells[3 + j];
          setText(cell, format(output.data[i]));
          setAttribute(cell, "data-value", String(output.data[i]));
        });
        setHeat(tr.cells[4], weights.data[i]);
      });
      reach();
    },
  };
}

/** The query, twice as long or half as long. */
function queryLengths(widget) {
  const longer = (text, factor) =>
    h(
      "button",
      {
        "data-input": "query",
        click: () => {
          const next = widget.inputs.query.map((value) => factor * value);
          const [low, high] = widget.spec.limits.query;
          if (next.some((value) => value < low || value > high)) {
            widget.announce(`The query would leave the plane: its numbers end at ${high}.`);
            return;
          }
          widget.edit(Symbol("length"), (inputs) => {
            inputs.query = next;
          });
        },
      },
      text,
    );
  return {
    element: h("div.foot", longer("Double the query", 2), longer("Halve it", 0.5)),
    update() {},
  };
}

/** Which word gets most, in words, and how to go on. */
function winner() {
  const line = h("p.note.most", { "data-output": "", role: "status" });
  const rays = h("p.soft.rays");
  return {
    element: h("div", line, rays),
    update({ words, score }, { weights: { data } }) {
      setText(
        rays,
        "Drag the tips, or move them with the arrow keys. " +
          (score === DOT
            ? "A dotted line leads from each key to its shadow on the line of the query."
            : "A dotted line leads from each key to the query: the shorter, the higher the score."),
      );
      if (data.length !== words.length) return; // the answer is still on its way
      const order = [...data.keys()].sort((i, j) => data[j] - data[i]);
      const [first, second] = order.map((i) => `“${words[i]}”`);
      const most = data[order[0]];
      const how = score === DOT ? "reaches farthest along the query" : "is nearest to the query";
      const next = second && `, and ${second} ${format(data[order[1]])}`;
      setText(
        line,
        second && most - data[order[1]] < 0.005
          ? `The query cannot decide between ${first} and ${second}.`
          : `${first} ${how} and gets the weight ${format(most)}${next ?? ""}.`,
      );
    },
  };
}

field2d.style = `${plane.style}
.arrows.plane { height: auto !important; aspect-ratio: 1; max-width: 26.25rem; }
@container widget (min-width: 53.75rem) { /* with the verdict below it, in a low window, too */
  .arrows.plane { max-width: calc(23.25rem * var(--grow, 1)); }
}
.arrows path.line { stroke: var(--query); stroke-width: 1; stroke-dasharray: 3 5; opacity: .6; }
.arrows path.feet { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 2 4; }
.arrows path.asking { stroke: var(--query); stroke-width: 3.5; }
.arrows path.key-arrow { stroke: var(--key); }
.tips { position: absolute; inset: 0; pointer-events: none; }
.tip { position: absolute; width: 1.875rem; height: 1.875rem; margin: -.9375rem; border-radius: 50%;
  border: 1.5px dashed color-mix(in oklab, transparent, var(--tone) 55%); cursor: grab;
  touch-action: none; pointer-events: auto; }
.tip:active { cursor: grabbing; }
.tip:hover { border-style: solid; }
.tip.of-query { border-width: 2px; background: color-mix(in oklab, transparent, var(--tone) 18%); }
.named { position: absolute; left: 50%; top: 50%; white-space: nowrap; padding: 0 4px;
  border-radius: 5px; font-size: var(--size-small); line-height: 1.4; pointer-events: none;
  font-variant-numeric: tabular-nums; }
.of-query > .named { color: var(--query); font-weight: 650;
  background: color-mix(in oklab, transparent, var(--ground) 75%); }
.of-key > .named { ${shaded("weight")} }
`;
numbers2d.style = `
.numbers { width: max-content; max-width: 100%; }
.numbers td { padding: 1px 3px; height: 1.875rem; text-align: right; font-size: var(--size-note); }
.numbers thead th { text-align: right; padding: 0 5px 2px; max-width: none; }
.numbers tbody th { font-size: var(--size-note); color: var(--text); max-width: 5.75rem; }
.numbers .asks th { color: var(--query); font-weight: 650; }
.numbers input.number { width: 3.625rem; }
.numbers .asks input { border-color: var(--query); }
.numbers tbody + tbody input { border-color: color-mix(in oklab, var(--line), var(--key) 60%); }
.numbers td[data-output] { width: 4.25rem; min-width: 3.125rem; padding: 1px 6px; }
.numbers .bar { --tone: var(--weight); border: solid var(--ground); border-width: 2px 0; background:
  linear-gradient(to right, color-mix(in oklab, var(--ground), var(--tone) 45%) calc(var(--tl-heat,
  0) * (100% - 40px)), transparent 0) no-repeat padding-box; }
.numbers td.bar { width: 7.5rem; }
@media (max-width: 21.5625rem) {
  .numbers input.number { width: 3.125rem; }
  .numbers td[data-output] { padding: 1px 3px; }
}
`;
winner.style = `.note.most { min-height: 3.2em; }
.rays { margin: 4px 0 0; max-width: 28rem; font-size: var(--size-small); min-height: 2.9em; }
`;

export default live(
  "A query among keys, live",
  (ui) => [
    ui.words(),
    ui.sides(
      ui.boxed("side", ui.use(field2d), ui.use(queryLengths), ui.use(winner)),
      ui.boxed(
        "side",
        ui.use((widget) =>
          choice(widget, "score", "the score is the", widget.spec.vocabularies.score),
        ),
        ui.use(numbers2d),
        ui.explanation(),
      ),
    ),
  ],
  { wide: true },
);
