import { trains } from "../../live/page/trainer.js";
import { results } from "../../live/ui/boxes.js";
import { h, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { weightKey } from "../../live/ui/keys.js";
import { shaded } from "../../live/ui/look.js";
import { listed, percent, times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint, pixelMap } from "../../live/ui/pixels.js";
import { gauge, lossCurve, rates, seeds, setting, trainingBar } from "../../live/ui/training.js";

export const program = trains("multi_head_attention/heads_trainer_task.js");

const GUESSING = Math.log(10); // nats: each of ten digits is as likely
const SETTLED = 0.5; // a head that attends so often to a question's places has found a role
const LOOK_EVERY_MS = 400; // ms between two looks: a look takes as long as three steps
const ABOUT = [
  "Rows attend to columns, the same words. From 50\u00a0% on a head has a role, and frames show ",
  "the places that its question asks for. A word without such a place may attend anywhere.",
];

const forms = ({ facts }) => facts.training.forms;
const ANSWERS = ["the correct ones", "those of another sentence"];

const called = (widget) => (inputs) =>
  [
    forms(widget.spec)[inputs.form],
    ...(inputs.answers ? ["other answers"] : []),
    ...(inputs.rate === 1 ? [] : [`rate × ${inputs.rate}`]),
    `seed ${inputs.seed}`,
  ].join(", ");

/** The questions whose places a head attends to in most cases. */
const rolesOf = (questions, { shape, data }, head) =>
  questions.filter((_, q) => data[q * shape[1] + head] >= SETTLED);

/**
 * A row for each question: how many answers are correct, and how often each head attends to the
 * place asked for. Below each head, what it attends to in one sentence.
 */
function table(widget) {
  const { questions, words, places, goal } = widget.spec.facts;
  const head = h("tr");
  const heading = h(
    "thead",
    h(
      "tr",
      h("th", { scope: "col" }, `correct answers, goal ${100 * goal}\u00a0%`),
      h("th", { scope: "colgroup" }, "how often a head’s largest weight is on the place asked for"),
    ),
    head,
  );
  const rows = questions.map((question) => {
    const measured = gauge(question, { goal });
    measured.element.dataset.output = "accuracy";
    const row = h("tr", h("th", { scope: "row" }, measured.element));
    return { row, measured };
  });
  const names = h("ol", { "aria-hidden": "true" }, ...words.map((word) => h("li", word)));
  const about = h(
    "div.about",
    h(
      "div",
      h("b", "Attention weights"),
      h("p", `in “${words.join(" ")}”.`),
      h("p", ...ABOUT),
      weightKey(""),
    ),
    names,
  );
  const drawn = h("tr.drawn", h("th", { scope: "row" }, about));
  let heads = []; // of each its name, its role, its map
  const build = (H) => {
    heads = times(H, (i) => ({ role: h("span.role"), map: pixelMap(), i }));
    head.replaceChildren(
      h("td"),
      ...heads.map(({ role, i }) =>
        h(
          "th",
          { scope: "col", class: `h${i}` },
          h("span.badge", String(i)),
          h("b", `head ${i}`),
          role,
        ),
      ),
    );
    for (const { row } of rows) {
      const cells = times(H, () => h("td", { "data-output": "roles" }, h("span")));
      row.replaceChildren(row.firstChild, ...cells);
    }
    const maps = heads.map(({ map }) => h("td", { "data-output": "weights" }, map.element));
    drawn.replaceChildren(drawn.firstChild, ...maps);
  };
  const T = words.length;
  return {
    element: results(
      "column",
      h("table.roles", heading, h("tbody", ...rows.map(({ row }) => row), drawn)),
    ),
    shows: "outputs",
    update(_inputs, { accuracy, roles, weights }) {
      const [, H] = roles.shape;
      if (heads.length !== H) build(H);
      rows.forEach(({ row, measured }, q) => {
        measured.set(accuracy.data[q]);
        setAttribute(measured.element, "data-value", String(accuracy.data[q]));
        measured.element.classList.toggle("reached", accuracy.data[q] >= goal);
        [...row.cells].slice(1).forEach((cell, i) => {
          const share = roles.data[q * H + i];
          setText(cell.firstChild, percent(share));
          setAttribute(cell, "data-value", String(share));
          setHeat(cell, share);
        });
      });
      for (const { role, map, i } of heads) {
        const own = weights.data.subarray(i * T * T, (i + 1) * T * T);
        const found = rolesOf(questions, roles, i);
        setText(role, found.length ? listed(found) : "no role yet");
        role.classList.toggle("found", found.length > 0);
        paint(map.canvas, own, T, { ink: "weight" });
        const best = found.map((question) => places[questions.indexOf(question)]);
        map.outline(
          words.map((_, t) => words.map((_w, s) => best.some((of) => of[t] === s))),
          T,
          T,
        );
        setAttribute(map.canvas, "aria-label", `the weights of head ${i}, ${T} × ${T}`);
      }
    },
  };
}
table.style = `${pixelMap.style}${gauge.style}
.roles { --row: .7625rem; display: block; }
.roles :is(thead, tbody) { display: grid; gap: 4px; }
.roles tr { display: grid; grid-template-columns: minmax(0, 3fr) repeat(4, minmax(0, 1.75fr));
  gap: 6px; align-items: center; }
.roles th { max-width: none; padding: 0; text-align: left; white-space: normal; overflow: visible; }
.roles thead { margin-bottom: 4px; }
.roles thead tr { align-items: end; }
.roles [scope=colgroup] { grid-column: 2 / -1; }
.roles thead tr + tr th { font-size: var(--size-note); line-height: 1.3; text-align: center; }
.roles .badge { display: inline-block; min-width: 1.25rem; margin-right: 6px; border-radius: 10px;
  font: 650 var(--size-small)/1.25rem var(--mono); color: var(--text);
  background: color-mix(in oklab, var(--ground), var(--tone) 30%); }
.roles thead b { color: var(--text); font-weight: 600; }
.roles .role { display: block; }
.roles .role.found { color: var(--text); }
.roles tbody td { padding: 0; text-align: center; font-size: var(--size-note); border-radius: 4px;
  line-height: 1.5rem; }
.roles tr:not(.drawn) td[data-output] { ${shaded("probability")} }
.roles .gauge { grid-template-columns: 4.4em minmax(2.5rem, 1fr) 4.2em; }
.roles .gauge :is(.label, b) { font-size: var(--size-note); color: var(--text); }
.roles .gauge b { text-align: right; }
.roles .drawn { align-items: start; margin-top: 4px; }
.drawn .pixel-map { --gold: var(--text); width: calc(12 * var(--row)); max-width: 100%;
  margin: 0 auto; }
.drawn .about { display: flex; gap: 10px; justify-content: space-between; }
.drawn .about b { font-size: var(--size-note); color: var(--text); }
.drawn .about p { margin: 2px 0 0; }
.drawn ol { list-style: none; margin: 0; padding: 0; text-align: right; }
.drawn li { height: var(--row); line-height: var(--row); color: var(--text); white-space: nowrap; }
@container widget (max-width: 43.75rem) {
  .roles tr { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 3px; }
  .roles :is(tbody th, [scope=colgroup]) { grid-column: 1 / -1; text-align: left; }
  .roles thead tr:first-child > :first-child { grid-column: 1 / -1; }
  .roles :is(thead td, .badge), .drawn ol { display: none; }
  .roles tbody { gap: 8px; }
}
`;

export default live(
  "Train heads on four questions",
  (ui) => {
    const { use } = ui;
    return [
      ui.sides(
        ui.boxed(
          "side",
          use((own) => setting(own, "form", "model", forms(own.spec))),
          use((own) => setting(own, "answers", "answers that are taught", ANSWERS)),
          use((own) => rates(own)),
          use(seeds),
        ),
        ui.boxed(
          "side",
          use(
            Object.assign(
              (own) =>
                lossCurve(own, {
                  top: 3,
                  height: 150,
                  name: called(own),
                  title: "mean loss of 16 batches (left), correct answers (right)",
                  shares: {
                    names: own.spec.facts.questions,
                    read: ({ accuracy }) => [...accuracy.data],
                  },
                  rules: () => [[GUESSING, `guessing: ln 10 = ${GUESSING.toFixed(2)}`]],
                }),
              { style: lossCurve.style },
            ),
          ),
        ),
      ),
      use(
        Object.assign((own) => trainingBar(own, { chunkMs: LOOK_EVERY_MS }), {
          style: trainingBar.style,
        }),
      ),
      use(table),
    ];
  },
  { wide: true },
);
