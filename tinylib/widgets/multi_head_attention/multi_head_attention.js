import { scroller } from "../../live/ui/boxes.js";
import { h, setAttribute, setText } from "../../live/ui/dom.js";
import { explainable } from "../../live/ui/explain.js";
import { knob, numberBox } from "../../live/ui/knobs.js";
import { fly } from "../../live/ui/motion.js";
import { format } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList } from "../../live/ui/sentences.js";

const AXES = { B: "sentences B", T: "words T", H: "heads H", k: "head width d_k" };
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** The sizes of x, which holds its table (B, T, D) cut into heads. */
const sizesOf = ({ x }) => ({
  B: x.length,
  T: x[0].length,
  H: x[0][0].length,
  k: x[0][0][0].length,
});

const HINT =
  "Point at a number anywhere to light it everywhere; type over those of x. By keyboard: arrow " +
  "keys, and Tab to follow it.";

const count = (size) => Array.from({ length: size }, (_, i) => i);

const shown = (value) =>
  Number.isInteger(value) ? String(value).replace("-", "−") : format(value);

/**
 * How large x is. Its numbers are counted through; those that the reader wrote stay at their
 * [b, t, column], and what is cut off is kept for later.
 */
function sizeSliders(widget) {
  const written = new Map(); // "b t column" -> a number that is not its count
  const knobs = Object.entries(AXES).map(([axis, label]) =>
    knob(widget, axis, label, {
      edits: "x",
      read: (inputs) => sizesOf(inputs)[axis],
      put(next, size) {
        const { B, T, H, k } = Object.assign(sizesOf(next), { [axis]: size });
        const entry = (b, t, column) =>
          written.get(`${b} ${t} ${column}`) ?? (b * T + t) * H * k + column;
        next.x = count(B).map((b) =>
          count(T).map((t) =>
            count(H).map((head) => count(k).map((j) => entry(b, t, head * k + j))),
          ),
        );
      },
      box: false,
    }),
  );
  return {
    element: h("div.knobs", ...knobs.map(({ element }) => element)),
    shows: "inputs",
    reset() {
      written.clear();
    },
    update(inputs) {
      let n = 0;
      inputs.x.forEach((rows, b) =>
        rows.forEach((row, t) =>
          row.flat().forEach((value, column) => {
            if (value === n) written.delete(`${b} ${t} ${column}`);
            else written.set(`${b} ${t} ${column}`, value);
            n += 1;
          }),
        ),
      );
      for (const { update } of knobs) update(inputs);
    },
  };
}

/** The place, counted through, as one index for each axis. */
const indexIn = (shape, place) =>
  shape.reduceRight(
    ([rest, index], size) => [Math.floor(rest / size), [rest % size, ...index]],
    [place, []],
  )[1];

/**
 * One stage of the walk, as one table for each of its first axes. `shapeOf(sizes)` is its shape as
 * numbers, `letters` in letters; `box(n)` makes the content of a cell that can be edited, and
 * `explain()` is the explanation of the number that is lit.
 */
function stageOf({ name, letters, shapeOf, explain, box = undefined }) {
  const step = h("b");
  const shape = h("span");
  const address = h("span.address", { "aria-hidden": "true" });
  const bands = h("div.bands");
  const element = h(
    "div",
    {
      class: `stage ${name}`,
      role: "group",
      "aria-label": name,
      ...(box ? {} : { "data-output": name }),
    },
    h("p.stage-name", step),
    h("p.stage-shape", shape),
    address,
    scroller({}, bands),
  );
  let built = "";
  let cells = []; // in the order of the stage
  let at = []; // place in x -> its cell here
  let grids = []; // tables as rows of cells
  let across = 1; // tables side by side

  const build = (sizes) => {
    const { B, T, H, k } = sizes;
    const whole = letters.endsWith("D");
    across = whole ? 1 : H;
    const [columns, lead] = [whole ? H * k : k, (b) => (name === "rows" ? "" : `b ${b}`)];
    const tables = count(B).flatMap((b) =>
      count(across).map((head) => {
        const heads = whole ? count(H) : [head];
        const title = (i) => (name === "rows" ? `row ${b * H + i}` : `h ${i}`);
        const label = [name, lead(b), ...(whole ? [] : [title(head)])].filter(Boolean).join(", ");
        return h(
          "table",
          { role: "grid", "aria-label": label },
          h(
            "thead",
            h(
              "tr",
              name === "rows" ? h("td") : h("th.corner", lead(b)),
              ...heads.map((i) =>
                h("th", { class: `head h${i}`, scope: "colgroup", colspan: String(k) }, title(i)),
              ),
            ),
            h(
              "tr",
              h("th.corner", "word"),
              ...count(columns).map((j) =>
                h("th", { scope: "col", class: j % k ? "" : "first" }, String(j)),
              ),
            ),
          ),
          h(
            "tbody",
            ...count(T).map((t) =>
              h(
                "tr",
                h("th", { scope: "row" }),
                ...count(columns).map((j) =>
                  h(
                    "td",
                    { class: j % k ? "" : "first", ...(box ? {} : { tabindex: "-1" }) },
                    ...(box ? [box((b * T + t) * columns + j)] : []),
                  ),
                ),
              ),
            ),
          ),
        );
      }),
    );
    const band = (content) => h("div.band", ...content);
    bands.replaceChildren(
      ...count(B).map((b) => {
        const own = tables.slice(b * across, (b + 1) * across);
        // not three and one
        return band([own.slice(0, 2), own.slice(2)].filter(({ length }) => length).map(band));
      }),
    );
    grids = tables.map((table) => [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1)));
    cells = grids.flat(2);
  };

  /** The element of a cell that takes the focus. */
  const target = (cell) => (box ? cell.firstChild : cell);

  return {
    name,
    element,
    target,
    /** Show `numbers`, each of which came from one of the `places` of x. */
    fill(sizes, numbers, places, code) {
      const size = Object.values(sizes).join();
      if (built !== size) build(sizes);
      built = size;
      setText(step, code);
      setText(shape, `(${letters}) = (${shapeOf(sizes).join(", ")})`);
      const { T, H, k } = sizes;
      const row = H * k;
      at = [];
      cells.forEach((cell, i) => {
        const place = places[i];
        at[place] = cell;
        if (cell.place !== place || !cell.tone) {
          const tone = `h${Math.floor((place % row) / k)}`;
          if (cell.tone !== tone) {
            if (cell.tone) cell.classList.remove(cell.tone);
            cell.classList.add(tone);
          }
          [cell.place, cell.tone] = [place, tone];
        }
        if (box) {
          target(cell).follow();
        } else {
          if (!cell.explain) explainable(null, cell, explain);
          setText(cell, shown(numbers[i]));
          setAttribute(cell, "data-value", String(numbers[i]));
        }
      });
      for (const grid of grids) {
        grid.forEach((line, t) => {
          const words = new Set(line.map(({ place }) => Math.floor(place / row) % T));
          const head = line[0].parentElement.firstChild;
          setText(head, [...words].join(", "));
          head.classList.toggle("strange", words.size > 1 || !words.has(t));
        });
      }
    },
    /** The cells by the place in x that their numbers come from. */
    byPlace: () => at,
    /** Light the number that comes from this place of x; `index` is where it stands here. */
    light(place, index) {
      const [old, cell] = [element.querySelector(".lit"), at[place]];
      setText(address, index ? `${name}[${index.join(", ")}]` : "");
      if (!cell) return;
      if (old && old !== cell) {
        old.classList.remove("lit", "source");
        target(old).tabIndex = -1;
      }
      cell.classList.add("lit", ...(box ? ["source"] : []));
      target(cell).tabIndex = 0;
    },
    /** Where in the stage the number from this place stands. */
    find: (place) => cells.indexOf(at[place]),
    /** The cell that an arrow key leads to from `cell`, over the edge of a table into the next. */
    beside(cell, [down, right]) {
      const g = grids.findIndex((grid) => grid.some((row) => row.includes(cell)));
      const t = grids[g].findIndex((row) => row.includes(cell));
      const j = grids[g][t].indexOf(cell);
      const inside = grids[g][t + down]?.[j + right];
      if (inside) return inside;
      if (right) {
        const next =
          Math.floor((g + right) / across) === Math.floor(g / across) ? grids[g + right] : null;
        return next?.[t].at(right < 0 ? -1 : 0) ?? cell;
      }
      return grids[g + down * across]?.at(down < 0 ? -1 : 0)[j] ?? cell;
    },
  };
}

/** What happens on the way to a stage. */
const STEPS = {
  split: ({ T, H, k }, untransposed) =>
    untransposed
      ? `Head 0 gets the first ${T * k} numbers of each sentence, head 1 the next, and so ` +
        "on, instead of a slice of each word."
      : `The row of each word is cut into ${H} slices of ${k}, and slice h goes to head h, so ` +
        "every head gets a row for every word.",
  rows: ({ B, H }) =>
    "The axes of sentences and of heads become one, so that one batched product can multiply all " +
    `B·H = ${B}·${H} = ${B * H} tables.`,
  merged: () => "The slices of a row are put side by side again, that of head 0 first.",
};

/**
 * x and what becomes of it, stage by stage, below the `controls`; one number is lit wherever it
 * stands.
 */
function walk(widget, controls) {
  let chosen = [Infinity, 1, Infinity]; // b, t and column of the number that is lit
  const first = chosen;
  let filled; // the outputs that the stages show
  const path = h("ol.path", { "data-output": "", "aria-label": "where the number goes" });
  const explanationBox = h("div.explained", { role: "status" }, path);
  const grid = h("div.walk");

  const hint = h("p.hint", { role: "status" }, HINT);

  const box = (n) => {
    const where = () => {
      const { B, T, H, k } = sizesOf(widget.inputs);
      return indexIn([B, T, H, k], n);
    };
    const entry = numberBox(widget, "x", {
      field: () => `x ${n}`,
      read: ({ x }) => x.flat(3)[n],
      put: (next, value) => {
        const [b, t, head, j] = where();
        next.x[b][t][head][j] = value;
      },
      called: "x",
    });
    const { T, H, k } = sizesOf(widget.inputs);
    entry.setAttribute("aria-label", `x ${indexIn([Infinity, T, H * k], n).join(", ")}`);
    entry.tabIndex = -1;
    return entry;
  };

  const leg = (label, from, to) => {
    const sign = h("span", { "aria-hidden": "true" }, "▶ ");
    return h("button", { click: () => travel(from, to) }, sign, label);
  };
  /** The numbers travel from stage `from` to stage `to`, the last head first: it fans them out. */
  const travel = (from, to) => {
    const sizes = sizesOf(widget.inputs);
    const row = sizes.H * sizes.k;
    const [given, targets] = [stages[from].byPlace(), stages[to].byPlace()];
    const pairs = given.map((cell, place) => [
      cell,
      targets[place],
      110 * (sizes.H - 1 - Math.floor((place % row) / sizes.k)),
    ]);
    setText(hint, STEPS[stages[to].name](sizes, widget.inputs.untransposed));
    fly(
      grid,
      pairs.filter((pair) => pair[1]),
    );
  };
  const steps = [leg("Split", 0, 1), leg("Flatten", 1, 2), leg("Merge", 1, 3)];
  const explain = () => explanationBox.explained;
  const stages = [
    stageOf({
      name: "x",
      letters: "B, T, D",
      shapeOf: ({ B, T, H, k }) => [B, T, H * k],
      explain,
      box,
    }),
    stageOf({
      name: "split",
      letters: "B, H, T, d_k",
      shapeOf: ({ B, T, H, k }) => [B, H, T, k],
      explain,
    }),
    stageOf({
      name: "rows",
      letters: "B·H, T, d_k",
      shapeOf: ({ B, T, H, k }) => [B * H, T, k],
      explain,
    }),
    stageOf({
      name: "merged",
      letters: "B, T, D",
      shapeOf: ({ B, T, H, k }) => [B, T, H * k],
      explain,
    }),
  ];
  const pair = (...two) => h("div.pair", ...two.map(({ element }) => element));
  grid.append(pair(...stages.slice(0, 2)), pair(...stages.slice(2)));
  const shapes = ({ B, T, H, k }) => [
    [B, T, H * k],
    [B, H, T, k],
    [B * H, T, k],
    [B, T, H * k],
  ];

  const light = () => {
    const { inputs } = widget;
    const sizes = sizesOf(inputs);
    const { B, T, H, k } = sizes;
    const [b, t, c] = chosen.map((i, axis) => Math.min(i, [B, T, H * k][axis] - 1));
    const place = (b * T + t) * H * k + c;
    const known = widget.readOutputs().split.shape.join() === [B, H, T, k].join();
    const index = stages.map((stage, i) => {
      const found = i && !known ? -1 : stage.find(place);
      const at = found < 0 ? null : indexIn(shapes(sizes)[i], found);
      stage.light(place, at);
      return at;
    });
    if (!index.every(Boolean)) return;
    explanationBox.explained = { kind: "moved", terms: [[inputs.x[b][t].flat()[c]]] };
    path.classList.toggle("long", inputs.untransposed);
    const why = reasons(index, sizes, inputs);
    fillList(
      path,
      stages,
      () => h("li", h("b"), " ", h("span")),
      (li, { name }, i) => {
        setText(li.firstChild, `${i ? "→ " : ""}${name}[${index[i].join(", ")}]`);
        setText(li.lastChild, why[i]);
      },
    );
  };

  const choose = (place) => {
    const { B, T, H, k } = sizesOf(widget.inputs);
    chosen = indexIn([B, T, H * k], place);
    light();
  };
  const cellOf = (event) => event.target.closest("tbody td");
  const look = (event) => {
    const cell = cellOf(event);
    if (cell) choose(cell.place);
  };
  const step = (stage) => (event) => {
    const [cell, arrow] = [cellOf(event), ARROWS[event.key]];
    if (!cell || !arrow || event.altKey || event.ctrlKey || event.metaKey) return;
    const { selectionStart: from, selectionEnd: to, value } = event.target;
    if (value !== undefined && arrow[1] && to - from < value.length) {
      // a number is being typed
      if (from !== to || from !== (arrow[1] < 0 ? 0 : value.length)) return;
    }
    event.preventDefault();
    event.stopPropagation(); // a number box would count up and down
    stage.target(stage.beside(cell, arrow)).focus();
  };
  for (const stage of stages) {
    stage.element.addEventListener("pointerover", look);
    stage.element.addEventListener("focusin", look);
    stage.element.addEventListener("click", look);
    stage.element.addEventListener("keydown", step(stage), true);
  }

  return {
    element: h(
      "div.column",
      h("div.sides", controls.element, explanationBox),
      h("div.steps", ...steps, hint),
      grid,
    ),
    reset() {
      chosen = first;
      setText(hint, HINT);
    },
    update(inputs, outputs) {
      const sizes = sizesOf(inputs);
      const { B, T, H, k } = sizes;
      const [x, split, rows, merged] = stages;
      setAttribute(grid, "style", `--columns: ${H * k}`);
      x.fill(sizes, [], count(B * T * H * k), "x");
      const given = widget.model.get("outputs");
      if (given !== filled && outputs.split.shape.join() === [B, H, T, k].join()) {
        // else it is on its way
        filled = given;
        const cut = inputs.untransposed ? `x.view(${B}, ${H}, ${T}, ${k})` : `split(x, ${k})`;
        split.fill(sizes, outputs.split.data, outputs.split_from.data, `→ ${cut}`);
        rows.fill(sizes, outputs.rows.data, outputs.split_from.data, "→ flatten(0, 1)");
        merged.fill(sizes, outputs.merged.data, outputs.merged_from.data, "→ merge");
      }
      light();
    },
  };
}

/** Why the number stands where it stands, for each stage: the formula of its index, filled in. */
function reasons(index, { T, H, k }, { x: numbers, untransposed }) {
  const [x, split, rows, merged] = index;
  const [b, t, c] = x;
  const [, head, row, j] = split;
  const flat = `b·H + h = ${b}·${H} + ${head} = ${rows[0]} of the rows of one batched product`;
  const column = `column h·d_k + j = ${head}·${k} + ${j} = ${merged[2]}`;
  const value = `= ${shown(numbers[b][t].flat()[c])}`;
  if (!untransposed) {
    const cut = `h = ${c} // ${k} = ${head} and j = ${c} % ${k} = ${j}; b and t stay`;
    return [value, cut, flat, `${column}, as in x`];
  }
  const n = t * H * k + c;
  const slice = Math.floor(c / k);
  const wrong = [
    ...(head === slice ? [] : [`head ${head} instead of ${slice}`]),
    ...(row === t ? [] : [`in the row of word ${row}, though it is word ${t}’s`]),
  ];
  const cut =
    `number t·D + ${c} = ${t}·${H * k} + ${c} = ${n} of its sentence, of which each head ` +
    `takes T·d_k = ${T * k}: ` +
    `h = ${n} // ${T * k} = ${head}, t = ${n} % ${T * k} // ${k} = ${row}, j = ${n} % ${k} = ` +
    `${j}. ` +
    (wrong.length ? `Wrong: ${wrong.join(", ")}` : "This one is where it belongs");
  const end = row === t && merged[2] === c ? ", as in x" : ": not where it was in x";
  return [value, cut, flat, `${column}, in row ${row}${end}`];
}

/** What leaving the transpose out does to all of them. */
function warning() {
  const line = h("p.note.mixed", { role: "status" });
  return {
    element: line,
    shows: "inputs",
    update(inputs) {
      const { T, H, k } = sizesOf(inputs);
      const same = H === 1 ? "With one head" : T === 1 ? "With one word" : "";
      setText(
        line,
        !inputs.untransposed
          ? ""
          : same
            ? `${same} both ways are the same: nothing can be mixed up.`
            : "Nothing fails and every shape is right, but the words are mixed up: of each " +
              `sentence, head 0 gets the first ${T * k} numbers, head 1 the next, and so ` +
              "on, instead of a slice of each word. A view back to (B, T, D) would even give x " +
              "again, so going there and back does not show it.",
      );
    },
  };
}

walk.style = `${fly.style}
.sides { --left: .8fr; --right: 1fr; }
.walk { position: relative; }
.flying > span { background: color-mix(in oklab, var(--ground), var(--tone) 45%); }
.steps { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; margin: 8px 0 12px; }
.walk, .pair { display: grid; gap: 20px 16px; align-items: start; min-width: 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, var(--least)), 1fr)); }
.walk { --cell: 2.0625rem; --entry: 2.0625rem; --widest: max(9.625rem, 5.125rem + var(--columns) *
  var(--entry)); --least: calc(2 * var(--widest) + 1rem); }
.pair { --least: var(--widest); } /* so there are four in a row, two and two, or one by one */
.stage { min-width: 0; }
.stage-name, .stage-shape { margin: 0; font-size: var(--size-note); white-space: nowrap; }
.stage-shape { color: var(--soft); font-variant-numeric: tabular-nums; }
.address { display: inline-block; min-height: 1.375rem; margin: 3px 0 8px; padding: 0 6px;
  border: 2px solid var(--text); border-radius: 5px; }
.bands { display: grid; gap: 14px; padding: 1px; width: max-content; max-width: 100%; }
.band { display: flex; flex-wrap: wrap; gap: 10px 8px; }
.stage th { font-size: var(--size-small); padding: 0 5px 0 0; min-width: 1.75rem; height: 1.125rem;
  line-height: 1.125rem;
  }
.stage thead th { text-align: center; padding: 0; }
.stage thead .corner { text-align: right; padding-right: 5px; }
.stage .head { font-weight: 600; color: var(--text); background: color-mix(in oklab, var(--ground),
  var(--tone) 26%); border: 1px solid var(--ground); border-radius: 4px; }
.stage tbody td { width: var(--cell); min-width: var(--cell); height: 1.75rem; padding: 0;
  text-align: center; font-size: var(--size-note); cursor: default; border: 1px solid var(--ground);
  background: color-mix(in oklab, var(--ground), var(--tone) 30%); }
.stage tbody .first { border-left-width: 3px; }
.stage td input { display: block; width: 100%; min-height: 1.625rem; padding: 0; text-align: center;
  font-size: var(--size-note); border: 0; border-radius: 0; font-variant-numeric: tabular-nums; }
.stage td:focus, .stage td input:focus { outline: none; }
.stage .lit { font-weight: 700; outline: 2.5px solid var(--text); outline-offset: -2.5px;
  background: color-mix(in oklab, var(--ground), var(--tone) 60%); }
.stage .lit input { font-weight: 700; }
.stage .lit:is(:focus, :focus-within) { outline-color: var(--accent); }
.stage th.strange { font-weight: 700; color: var(--text); background: color-mix(in oklab,
  var(--ground), var(--accent) 24%); padding-left: 5px; border-radius: 4px 0 0 4px; }
.path { list-style: none; margin: 0; padding: 0; min-height: 6.4em; font-size: var(--size-note);
  line-height: 1.6; font-variant-numeric: tabular-nums; }
.path.long { min-height: 9.6em; }
.path li { display: grid; grid-template-columns: 10.375rem 1fr; gap: 0 12px; }
.path b, .address, .stage-name b { font: 600 var(--size-small)/1.7 var(--mono); white-space: nowrap;
  }
.hint { flex: 1 1 16.25rem; margin: 0 0 0 8px; min-height: 2.9em; font-size: var(--size-note);
  color: var(--soft); }
@media (pointer: coarse) { .walk { --entry: 2.5rem; } .x { --cell: 2.5rem; } }
@media (max-width: 37.5rem) {
  .path { min-height: 13em; }
  .path.long { min-height: 19em; }
  .path li { display: block; }
  .path span { display: block; padding-left: 1.0625rem; }
}
`;
warning.style = `
.mixed { max-width: none; padding: 6px 10px; border-left: 3px solid var(--error); font-size:
  var(--size-note); background: color-mix(in oklab, var(--ground), var(--error) 14%); }
.mixed:empty { display: none; }
.mixed::before { content: "⚠ "; content: "⚠ " / ""; }
`;

export default live(
  "Splitting and merging heads, live",
  (ui) => [
    ui.use(
      walk,
      ui.boxed(
        "side",
        ui.use(sizeSliders),
        ui.toggle("untransposed", "leave the transpose out: x.view(B, H, T, d_k)"),
        ui.use(warning),
      ),
    ),
  ],
  { wide: true },
);
