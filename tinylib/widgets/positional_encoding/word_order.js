import { choice } from "../../live/ui/controls.js";
import { h, setAttribute, setHeat, setText, svgPart } from "../../live/ui/dom.js";
import { explainable, numbersIn, rove, wordAt } from "../../live/ui/explain.js";
import { appear, travel } from "../../live/ui/motion.js";
import { format } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { drag } from "../../live/ui/plot.js";
import { fillList } from "../../live/ui/sentences.js";

const ROUNDING = 1e-6; // below it, two outputs are the same

const span = (at, length) => Array.from({ length }, (_, j) => at + j);

/** The words as they stand, from their places: where two share one, the first of them is first. */
const standing = (place) => span(0, place.length).sort((a, b) => place[a] - place[b] || a - b);

/** The places of words that stand like this. */
const placesOf = (order) =>
  order.reduce((place, word, t) => {
    place[word] = t;
    return place;
  }, []);

/** Where words were added, renamed or removed, the others stay as they stand. */
function keepStanding(next, at, count, length) {
  const order = standing(next.place).flatMap((word) => {
    if (word < at) return [word];
    return word >= at + count ? [word + length - count] : word === at ? span(at, length) : [];
  });
  next.place = placesOf(count ? order : [...order, ...span(at, length)]);
}

function arrange(widget, field, order) {
  return widget.edit(field, (next) => {
    next.place = placesOf(order);
  });
}

/** Move the word that stands at `from` to where another stands. */
function moveWord(widget, from, to) {
  const order = standing(widget.inputs.place);
  if (from === to || to < 0 || to >= order.length) return false;
  order.splice(to, 0, ...order.splice(from, 1));
  return arrange(widget, "place", order);
}

/** The words in their new order, to be dragged or moved by keys and buttons. */
function lineUp(widget) {
  const list = h("div.line-up", { role: "group", "aria-label": "the new order" });
  const keys = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -9, End: 9 };
  const chosen = () => standing(widget.inputs.place).indexOf(widget.query);
  const step = (from, by) => {
    const to = Math.max(0, Math.min(list.children.length - 1, from + by));
    moveWord(widget, from, to);
    return to;
  };
  /**
   * The place that the pointer has dragged a word to: it has passed the middle of who stands
   * there.
   */
  const under = ({ clientX, clientY }, from) => {
    const chip = list.getRootNode().elementFromPoint(clientX, clientY)?.closest(".stands");
    const to = [...list.children].indexOf(chip);
    if (to < 0 || to === from) return from;
    const [box, own] = [chip, list.children[from]].map((element) =>
      element.getBoundingClientRect(),
    );
    const middle = box.left + box.width / 2;
    const passed = box.top !== own.top || (to > from ? clientX > middle : clientX < middle);
    return passed ? to : from;
  };
  const make = (t) => {
    const chip = h("div.stands", {
      role: "slider",
      "data-input": "place",
      tabindex: "0",
      "aria-valuemin": "1",
      focus: () => widget.look(standing(widget.inputs.place)[t]),
      keydown: (event) => {
        const by = keys[event.key];
        if (!by) return;
        event.preventDefault();
        list.children[step(t, by)].focus();
      },
    });
    drag(
      chip,
      () => ({ at: t }),
      (event, held) => {
        const to = under(event, held.at);
        if (moveWord(widget, held.at, to)) held.at = to;
      },
      ({ at }) => list.children[at].focus(),
    );
    return chip;
  };
  let travels = false; // whether the words go to their new places by themselves
  const button = (label, move) => {
    const click = () => {
      travels = true;
      move();
    };
    return h("button", { "data-input": "place", click }, label);
  };
  const [left, right] = [
    [-1, "←"],
    [1, "→"],
  ].map(([by, arrow]) => button(arrow, () => step(chosen(), by)));
  const shuffle = button("Shuffle", () => {
    const before = standing(widget.inputs.place);
    const order = [...before];
    do {
      for (let i = order.length - 1; i > 0; i -= 1) {
        const j = Math.floor(Math.random() * (i + 1));
        [order[i], order[j]] = [order[j], order[i]];
      }
    } while (order.length > 1 && order.every((word, t) => word === before[t]));
    arrange(widget, Symbol("shuffle"), order);
  });
  const reverse = button("Reverse", () =>
    arrange(widget, Symbol("reverse"), standing(widget.inputs.place).reverse()),
  );
  const back = button("As before", () =>
    arrange(widget, Symbol("back"), span(0, widget.inputs.place.length)),
  );
  return {
    element: h(
      "div.sentence",
      h("span.gaze", "In another order (drag a word, or move it with the arrow keys):"),
      list,
      h("div.foot", left, right, shuffle, reverse, back),
    ),
    shows: "inputs",
    update({ words, place }) {
      const order = standing(place);
      const chips = () => [...list.children].map((chip) => [chip.word, chip]);
      const fill = () => fillList(list, order, make, show);
      const show = (chip, word, t) => {
        chip.word = word;
        setText(chip, words[word]);
        setAttribute(chip, "aria-label", `place of ${words[word]}`);
        setAttribute(chip, "aria-valuenow", String(t + 1));
        setAttribute(chip, "aria-valuemax", String(order.length));
        setAttribute(chip, "aria-valuetext", `${t + 1} of ${order.length}`);
        chip.classList.toggle("query", word === widget.query);
      };
      if (travels) travel(chips, fill);
      else fill(); // what is dragged stands where the pointer is
      travels = false;
      const at = chosen();
      setAttribute(left, "aria-label", `move ${words[widget.query]} left`);
      setAttribute(right, "aria-label", `move ${words[widget.query]} right`);
      left.disabled = at === 0;
      right.disabled = at === order.length - 1;
      back.disabled = order.every((word, t) => word === t);
      shuffle.disabled = reverse.disabled = order.length === 1;
    },
  };
}

const KINDS = {
  none: "no positions",
  sinusoidal: "sinusoidal, added",
  rotary: "rotary, turned",
  alibi: "ALiBi, a bias",
};

/** Which positional encoding attention uses. */
const positionKind = (widget) =>
  choice(
    widget,
    "kind",
    "What attention knows of positions",
    widget.spec.vocabularies.kind.map((kind) => KINDS[kind]),
  );

/** Where entry j of an output comes from: of row t before, or now. */
function entryOf(widget, side, t, j) {
  const now = side === "now" ? "_now" : "";
  const [weights, values] = ["weights", "values"].map((name) => numbersIn(widget, name + now));
  const word = now ? standing(widget.inputs.place)[t] : t;
  const added = KINDS[widget.spec.vocabularies.kind[widget.inputs.kind]] === KINDS.sinusoidal;
  return {
    kind: "sum",
    what:
      `Output of ${wordAt(widget, word)}${now ? " in the new order" : ""}, entry ` +
      `${j + 1}, each word’s weight times entry ${j + 1} of its ` +
      `${added ? "x plus the code of its position" : "x"}, in the order of the words:`,
    terms: span(0, weights.columns).map((s) => [weights.at(t, s), values.at(s, j)]),
    tones: ["weight", "value"],
    lit: [
      { name: "x", row: word },
      { name: "x", column: j },
    ],
  };
}

/** Where the change of the word in row t comes from: its entry that differs most. */
function changeOf(widget, t) {
  const [before, now] = ["before", "now"].map((name) => numbersIn(widget, name));
  const word = standing(widget.inputs.place)[t];
  const differences = span(0, 4).map((j) => now.at(t, j) - before.at(word, j));
  const sizes = differences.map(Math.abs);
  const j = sizes.indexOf(Math.max(...sizes));
  const [more, less] = [now.at(t, j), -before.at(word, j)];
  const sign = differences[j] < 0 ? -1 : 1;
  return {
    kind: "sum",
    what:
      `Of the four entries of ${wordAt(widget, word)}, entry ${j + 1} differs most, ` +
      `${sign < 0 ? "before less now" : "now less before"}:`,
    terms: (sign < 0 ? [less, more] : [more, less]).map((number) => [sign * number]),
    lit: [
      { name: "before", row: word, column: j },
      { name: "now", row: t, column: j },
    ],
  };
}

/** The outputs of both orders side by side, and a line from each word to itself. */
function comparison(widget) {
  const tableOf = (output) => {
    const body = h("tbody");
    const parts = [h("caption", output), body];
    const element = h("table.heat.signed.vectors", { "data-output": output }, ...parts);
    const entries = (row) => [...row.cells].filter((cell) => cell.matches(".entry"));
    widget.tables.set(output, () => [...body.rows].map(entries));
    return { body, element, reach: rove(element) };
  };
  const [before, now] = [tableOf("before"), tableOf("now")];
  const svg = svgPart("svg", { class: "ways", preserveAspectRatio: "none", "aria-hidden": "true" });
  const message = h("p.note.verdict", { "data-output": "largest", role: "status" });
  const look = (row) => h("button", { click: () => widget.look(Number(row.dataset.word)) });
  const make = (side) => (t) => {
    const row = h("tr");
    const head = h("th", { scope: "row" }, look(row));
    const cells = span(0, 4).map(() => h("td", h("span")));
    cells.forEach((cell, j) => explainable(widget, cell, () => entryOf(widget, side, t, j)));
    const change = h("td.change", { "data-output": "change" }, h("span"));
    explainable(widget, change, () => changeOf(widget, t));
    row.append(...(side === "now" ? [...cells, head, change] : [head, ...cells]));
    return row;
  };
  const fill =
    (side, { data }, most, words) =>
    (row, word, t) => {
      setAttribute(row, "data-word", String(word));
      row.classList.toggle("query", word === widget.query);
      setText(row.querySelector("button"), words[word]);
      setAttribute(row.querySelector("th"), "title", words[word]);
      [...row.querySelectorAll("td:not(.change)")].forEach((cell, j) => {
        const value = data[4 * t + j];
        const fits = Math.abs(value) < 9.995;
        const text = fits ? format(value) : value.toFixed(0).replace("-", "−");
        setText(cell.firstChild, text);
        setAttribute(cell, "data-value", String(value));
        const kind = `entry ${value < 0 ? "below" : "above"}`;
        if (cell.kind !== kind) setAttribute(cell, "class", kind);
        cell.kind = kind;
        setHeat(cell, Math.abs(value) / most);
      });
    };
  const makePath = () => svgPart("path");
  let drawn = ""; // the order that the lines lead to
  return {
    element: h(
      "div.column.compared",
      h("div.both.scroll", { "data-output": "" }, before.element, svg, now.element),
      message,
      h(
        "p.note.soft",
        "The scores are dot products, as in chapter 06. Each vector gets a fourth number, 0, " +
          "which leaves room for the codes of positions.",
      ),
    ),
    update({ words, place, kind }, outputs) {
      const T = words.length;
      const order = outputs.order.data;
      const change = outputs.change.data;
      const [largest] = outputs.largest.data;
      // on its way
      if (order.length !== T || standing(place).some((word, t) => word !== order[t])) return;
      const most = Math.max(1e-9, ...[...outputs.before.data, ...outputs.now.data].map(Math.abs));
      fillList(before.body, words, make("before"), (row, _, t) =>
        fill("before", outputs.before, most, words)(row, t, t),
      );
      const rows = () => [...now.body.rows].map((row) => [row.dataset.word, row]);
      const another = drawn && drawn !== order.join();
      drawn = order.join();
      const fillNow = () =>
        fillList(now.body, [...order], make("now"), fill("now", outputs.now, most, words));
      if (another) travel(rows, fillNow);
      else fillNow(); // without measuring where the rows stand
      before.reach();
      now.reach();
      setAttribute(svg, "viewBox", `0 0 1 ${T}`);
      setAttribute(svg, "style", `--rows:${T}`);
      fillList(svg, [...order], makePath, (path, word, t) => {
        const same = change[t] < ROUNDING;
        setAttribute(path, "d", `M0 ${word + 0.5}C.5 ${word + 0.5} .5 ${t + 0.5} 1 ${t + 0.5}`);
        setAttribute(
          path,
          "class",
          `${same ? "same" : "other"}${word === widget.query ? " query" : ""}`,
        );
        const cell = now.body.rows[t].querySelector(".change");
        const text = same ? "same" : change[t] < 0.005 ? "<0.01" : `±${format(change[t])}`;
        setText(cell.firstChild, text);
        setAttribute(cell, "data-value", String(change[t]));
        cell.classList.toggle("other", !same);
      });
      if (another) appear(svg.children);
      const moved = [...order].some((word, t) => word !== t);
      const others = change.filter((by) => by >= ROUNDING).length;
      const worst = words[order[change.indexOf(largest)]];
      const all = others === T ? `All ${T} words have` : `${others} of ${T} words have`;
      setText(
        message,
        T === 1
          ? "One word has only one order. Add words."
          : !moved
            ? "The words stand as before. Shuffle them."
            : others
              ? `${all} another output than before; that of “${worst}” differs by up ` +
                `to ${format(largest)}.`
              : `Every word has the same output as before${
                  kind
                    ? ": to this kind of positions, both orders are alike."
                    : ", in another row. To attention without positions, a sentence is a bag " +
                      "of words."
                }`,
      );
      setAttribute(message, "data-verdict", !moved ? "" : others ? "other" : "same");
      setAttribute(message, "data-value", String(largest));
    },
  };
}

lineUp.style = `
.sides { --left: .5fr; --right: 1fr; }
.line-up { display: flex; flex-wrap: wrap; gap: 6px; }
.stands { border: 1px solid var(--line); border-radius: 8px; padding: 3px 10px; min-height:
  1.875rem; font-weight: 550; cursor: grab; -webkit-user-select: none; user-select: none;
  touch-action: pan-y; max-width: 60vw; overflow: hidden; text-overflow: ellipsis; }
.stands:active { cursor: grabbing; }
.stands.query { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.sentence > .foot { flex-basis: 100%; }
`;
comparison.style = `
.row > .compared { flex: 1 1 28.75rem; gap: 8px; }
.both { display: flex; align-items: flex-end; }
.vectors { flex: none; }
.vectors.heat td span { height: 1.875rem; line-height: 1.875rem; }
.vectors.heat th { padding: 0; height: 1.875rem; max-width: none; overflow: visible; }
.vectors.heat td + th { text-align: left; }
.vectors.heat th button { width: auto; padding: 0 6px; max-width: 5.25rem; font-size:
  var(--size-note); color: var(--text); vertical-align: middle; }
.vectors.heat .query th button { color: var(--accent); font-weight: 650; }
.vectors.heat .change { background: none; border: 0; box-shadow: none; color: var(--soft); }
.vectors.heat .change span { width: auto; min-width: 2.875rem; padding: 0 4px; contain: none;
  text-align: left; }
.vectors.heat .change.other { color: var(--text); }
.ways { flex: 1 1 .625rem; min-width: .625rem; max-width: 7.5rem; height: calc(var(--rows) *
  1.9375rem); margin: 0 2px; }
.ways path { fill: none; stroke: var(--soft); stroke-width: 1.8; vector-effect: non-scaling-stroke;
  opacity: .75; }
.ways .other { stroke: var(--error); stroke-dasharray: 4 4; }
.ways .query { stroke-width: 3.5; opacity: 1; }
.compared .soft { color: var(--soft); font-size: var(--size-note); }
.verdict { border-left: 3px solid var(--line); padding: 2px 10px; min-height: 3.4em; }
.verdict[data-verdict=same] { border-color: var(--accent); }
.verdict[data-verdict=other] { border-color: var(--error); }
@media (max-width: 37.5rem) {
  .vectors.heat td span { width: 1.625rem; letter-spacing: -.7px; }
  .vectors.heat th button { padding: 0 3px 0 0; max-width: 2.8125rem; font-size: var(--size-small);
    letter-spacing: -.4px; min-width: 1.5rem; min-height: 1.5rem; }
  .vectors[data-output=before] .entry { display: none; } /* the lines need the room */
  .vectors[data-output=before] th { height: 1.9375rem; }
  /* the word above what has become of it */
  .vectors.heat td + th button { display: block; height: 1.875rem; line-height: 1rem;
    padding: 0 0 13px 3px; }
  .vectors.heat td.change { position: relative; width: 0; }
  .vectors.heat td + th { width: var(--named, 2.8125rem); min-width: var(--named, 2.8125rem); }
  .vectors.heat td.change span { position: absolute; right: 0; bottom: 1px; width: var(--named,
    2.8125rem); min-width: 0; height: .875rem; line-height: .875rem; padding: 0 0 0 3px;
    letter-spacing: -.2px; }
}
@media (max-width: 21.875rem) {
  .vectors.heat td span { width: 1.3125rem; font-size: .75em; letter-spacing: -.6px; }
  .vectors.heat th button { max-width: 2.375rem; }
  .vectors { --named: 2.5rem; }
}
`;

export default live(
  "The same words in another order, live",
  (ui) => [
    ui.words("", keepStanding),
    ui.use(lineUp),
    ui.sides(
      ui.boxed(
        "side",
        ui.use(positionKind),
        ui.row(ui.matrix("x", "embeddings X"), ui.entrySlider()),
      ),
      ui.use(comparison),
    ),
    ui.explanation(),
  ],
  { query: 1, wide: true, answer: ".verdict" },
);
