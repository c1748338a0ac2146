import { columnHeads, namedRow, results } from "../../live/ui/boxes.js";
import { choice } from "../../live/ui/controls.js";
import { h, setAttribute, setLength, setText } from "../../live/ui/dom.js";
import { explainable, rove, sum } from "../../live/ui/explain.js";
import { numberBox } from "../../live/ui/knobs.js";
import { percent, thousandths, times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, visible } from "../../live/ui/sentences.js";
import { called, heats } from "../../live/ui/texts.js";

const SHOWN = 8; // as in acceptance.py
const [P, DRAWN, COMPARED, ACCEPT, ACCEPTED, MISSING, INSTEAD, WRITTEN] = times(8, Number);

/** What torch does in a kernel, in compute() of acceptance.py. */
export async function program(run, { p, q, start, temperature, compared }, { facts }) {
  const own = { p: p.map(Math.log), q: q.map(Math.log) };
  const { p: z_p, q: z_q } = facts.starts[start - 1] ?? own;
  const found = await run("acceptance-outcome", { z_p, z_q, temperature, compared });
  return { shown: start, compared, ...found };
}

/**
 * The rows of the table: the first tokens, and last, if there are more, all others together;
 * null while the answer to another choice still stands.
 */
function viewOf({ spec }, { start }, { shown, rank, shares, rest, rate }) {
  if (shown.data[0] !== start) return null;
  const V = rank.data.length;
  const names = start ? spec.vocabularies.characters : spec.vocabularies.letters;
  const at = (row, id) => shares.data[row * V + id];
  const order = times(V, Number);
  if (start) order.sort((a, b) => rank.data[a] - rank.data[b]); // the letters keep their places
  const rows = order.slice(0, SHOWN).map((id) => ({
    ids: [id],
    name: visible(names[id]),
    shares: times(8, (row) => at(row, id)),
  }));
  if (V > SHOWN)
    rows.push({ ids: order.slice(SHOWN), name: `${V - SHOWN} others`, shares: [...rest.data] });
  return { names, at, order, rows, refused: 1 - rate.data[0] };
}

/** After which text the next token is drawn. */
const begin = (widget) =>
  choice(widget, "start", "the next token", {
    "The next of": ["three letters"],
    "Or the next character, after": widget.spec.facts.starts.map(({ text }) =>
      text.replaceAll("\n", "↵"),
    ),
  });

/** The reader's own p and q of the three letters, to be typed. */
function own(widget) {
  const { letters } = widget.spec.vocabularies;
  const boxes = ["p", "q"].map((name) =>
    letters.map((letter, entry) =>
      numberBox(widget, name, { entry, step: 0.05, label: `${name} of ${letter}` }),
    ),
  );
  const rows = [
    [h("i", "p"), ", the model"],
    [h("i", "q"), ", the draft"],
  ].map((name, i) =>
    namedRow(
      name,
      boxes[i].map((box) => [box]),
    ),
  );
  const table = h("table.matrix.own", columnHeads(null, ...letters), h("tbody", ...rows));
  const element = h("div", table, h("p.note", "Each row is divided by its sum."));
  return {
    element,
    shows: "inputs",
    update({ start }) {
      element.hidden = start > 0;
      for (const box of boxes.flat()) box.follow();
    },
  };
}
own.style = `
.own input { width: 3.5rem; }
.own th[scope="row"] { text-align: left; padding-right: 10px; max-width: none; }
`;

const compared = (widget) =>
  choice(widget, "compared", "p is compared with", widget.spec.vocabularies.compared);

const COLUMNS = [
  { row: P, name: "model", formula: "p" },
  { row: DRAWN, name: "draft", formula: "drawn from", line: COMPARED },
  { row: ACCEPTED, name: "ac\u00adcepted", formula: "drawn · min(1, p/q)" },
  { row: INSTEAD, name: "instead", formula: "refused · missing" },
  { row: WRITTEN, name: "written", formula: "both together", line: P, bars: [ACCEPTED, INSTEAD] },
];

/** What the number of this column in this row is made of. */
function explainShare(widget, body, at, column) {
  const { row, name } = COLUMNS[column];
  const now = viewOf(widget, widget.inputs, widget.readOutputs());
  const { ids, name: token } = now?.rows[at] ?? {};
  if (!ids) return undefined; // the answer is still on its way
  const cells = body.rows[at].cells;
  const own = (one) => now.at(one, ids[0]);
  const [lit, terms] =
    ids.length > 1
      ? [[cells[0]], ids.map((id) => [now.at(row, id)])]
      : {
          [ACCEPTED]: [[cells[1], cells[2]], [[own(DRAWN), own(ACCEPT)]]],
          [INSTEAD]: [[...body.rows].map((tr) => tr.cells[3]), [[now.refused, own(MISSING)]]],
          [WRITTEN]: [
            [cells[3], cells[4]],
            [[own(ACCEPTED)], [own(INSTEAD)]],
          ],
        }[row];
  const whose = ids.length > 1 ? token : called(now.names[ids[0]]);
  const more = { figure: thousandths, total: thousandths, lit: [{ cells: lit }] };
  return sum(`${whose}, ${name.replace("\u00ad", "")}:`, terms, undefined, more);
}

/** Each token's way from the draft to the text, a column for each step. */
function steps(widget) {
  const body = h("tbody");
  const heads = COLUMNS.map(({ name, formula }) => [h("b", name), h("span", formula)]);
  const table = h(
    "table.steps",
    h("caption", "From the draft to the text"),
    columnHeads(null, ...heads),
    body,
  );
  const reach = rove(table);
  const make = (at) =>
    h(
      "tr",
      h("th", { scope: "row" }),
      ...COLUMNS.map(({ row, line, bars = [row] }, column) => {
        const tick = line === undefined ? [] : [h("b")];
        const cell = h(
          "td",
          h("span"),
          h(
            "div.track",
            { "aria-hidden": "true" },
            ...bars.map((of) => h("i", { class: `bar-${of}` })),
            ...tick,
          ),
        );
        if (row >= ACCEPTED)
          explainable(widget, cell, () => explainShare(widget, body, at, column));
        return cell;
      }),
    );
  return {
    element: results(
      "column",
      table,
      h(
        "p.note.key",
        "The mark under “draft” is the q that p is compared with; under “written” it is p.",
      ),
    ),
    update(inputs, outputs) {
      const now = viewOf(widget, inputs, outputs);
      if (!now) return;
      const single = now.rows.slice(0, SHOWN); // the others together would be too long a bar
      const barred = [P, DRAWN, COMPARED, WRITTEN];
      const most = Math.max(...single.flatMap(({ shares }) => barred.map((row) => shares[row])));
      fillList(body, now.rows, make, (tr, { name, shares }, at) => {
        setText(tr.firstChild, name);
        setAttribute(tr, "class", at < SHOWN ? "" : "others");
        COLUMNS.forEach(({ row, line, bars = [row] }, i) => {
          const cell = tr.children[i + 1];
          const parts = cell.lastChild.children;
          setAttribute(cell, "data-value", String(shares[row]));
          setText(cell.firstChild, thousandths(shares[row]));
          bars.forEach((of, place) => setLength(parts[place], shares[of] / most));
          if (line !== undefined) setLength(parts[bars.length], shares[line] / most, "left");
        });
      });
      reach();
    },
  };
}
steps.style = `
.steps { width: 100%; table-layout: fixed; }
.steps caption { white-space: normal; }
.steps thead td { width: 4.5rem; }
.steps thead th { text-align: left; vertical-align: bottom; padding: 0 0 2px 8px; max-width: none;
  white-space: normal; line-height: 1.2; }
.steps thead b { display: block; color: var(--text); font-size: var(--size-note); }
.steps tbody th { color: var(--text); font-size: var(--size-note); padding: 0 2px 0 0;
  max-width: none; white-space: normal; line-height: 1.1; }
.steps tbody td { padding: 1px 0 2px 8px; font-size: var(--size-small); line-height: 1.25; }
.track { position: relative; height: .5rem; margin-right: 2px; border-radius: 2px;
  background: color-mix(in oklab, var(--ground), var(--line) 34%); }
.track { display: flex; }
.track i { height: 100%; background: color-mix(in oklab, var(--ground), var(--tone) 65%); }
.bar-${P} { --tone: color-mix(in oklab, var(--ground), var(--text) 65%); }
:is(.bar-${DRAWN}, .bar-${ACCEPTED}) { --tone: var(--probability); }
.bar-${INSTEAD} { --tone: var(--vermilion); }
.others .track { display: none; }
.others > * { border-top: 1px solid var(--line); }
.steps + .key { color: var(--soft); }
.track b { position: absolute; top: -2px; bottom: -2px; width: 3px; margin-left: -1.5px;
  border-radius: 1px; background: var(--text); box-shadow: 0 0 0 1px var(--ground); }
@media (max-width: 37.5rem) {
  .steps thead td { width: 2.875rem; }
  .steps thead span { display: none; }
  .steps thead b { font-size: var(--size-small); letter-spacing: -.3px; }
  .steps thead th, .steps tbody td { padding-left: 4px; }
}
`;

/** Whether the text is the model's own, and how fast it comes. */
function verdict(widget) {
  const number = (name) => h("b", { "data-output": name });
  const shown = { off: number("off"), rate: number("rate"), per_read: number("per_read") };
  const message = h("p.note.means", { role: "status" });
  return {
    element: results(
      "verdict",
      message,
      h("p.note", "Total variation between written and p: ", shown.off, "."),
      h(
        "p.note",
        "Accepted: ",
        shown.rate,
        " of the proposals. With k\u00a0=\u00a04, a read gives ",
        shown.per_read,
        " tokens.",
      ),
    ),
    update(inputs, outputs) {
      for (const [name, element] of Object.entries(shown)) {
        const [value] = outputs[name].data;
        setAttribute(element, "data-value", String(value));
        setText(element, name === "rate" ? percent(value) : value.toFixed(2));
      }
      const now = viewOf(widget, inputs, outputs);
      if (!now) return;
      const over = (id) => now.at(WRITTEN, id) - now.at(P, id);
      const most = now.order.reduce((a, b) => (over(b) > over(a) ? b : a));
      const often = [WRITTEN, P].map((row) => thousandths(now.at(row, most)));
      const [off] = outputs.off.data;
      const [much, nearly] = off < 0.0005 ? ["no", ""] : ["little", "almost "];
      const whose = `text is distributed ${nearly}as the model’s own.`;
      const harm = `Here the mistake does ${much} harm: the`;
      const right = `${outputs.compared.data[0] ? harm : "The"} ${whose}`;
      const wrong = `Wrong: ${called(now.names[most])} comes in ${often[0]} of all cases`;
      setText(message, off < 0.005 ? right : `${wrong} instead of ${often[1]}.`);
    },
  };
}
verdict.style = `
.verdict .means { font-weight: 600; }
@media (max-width: 37.5rem) { .verdict .means { min-height: 2lh; } }
`;

export default live(
  "One proposal of a draft, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ui.use(begin),
        ui.use(own),
        ui.knob("temperature", "temperature of the draft", {
          step: 0.05,
          note: (tau) => heats(tau).replace("model", "draft"),
        }),
        ui.use(compared),
      ),
      ui.boxed("side", ui.use(steps), ui.use(verdict), ui.explanation()),
    ),
  ],
  { wide: true, main: ".steps", answer: ".means" },
);
