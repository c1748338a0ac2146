import { trains } from "../page/trainer.js";
import { weightKey } from "../ui/keys.js";
import { h, listed, live, many, mark, percent, results, shaded, tint, write } from "../ui/parts.js";
import { paint, pixelMap } from "../ui/pixels.js";
import { gauge, lossCurve, rates, seeds, setting, trainingBar } from "../ui/training.js";

export const program = trains("multi_head_attention/heads_trainer_task.js");

const GUESSING = Math.log(10); // nats: each of ten digits is as likely
const SETTLED = 0.5; // a head that attends so often to a question's places has found a role
const BITE = 1500; // ms between two looks

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
  const heading = h("thead", {}, head);
  const rows = questions.map((question) => {
    const measured = gauge(question, { goal });
    measured.element.dataset.output = "accuracy";
    const row = h("tr", {}, h("th", { scope: "row" }, measured.element));
    return { row, measured };
  });
  const names = h("ol", { class: "sentence-words", "aria-hidden": "true" });
  names.append(...words.map((word) => h("li", {}, word)));
  const drawn = h("tr", { class: "drawn" }, h("th", { scope: "row" }, names));
  let heads = []; // of each its name, its role, its map
  const build = (H) => {
    heads = many(H, (i) => ({ role: h("span", { class: "role" }), map: pixelMap(), i }));
    head.replaceChildren(
      h("th", { scope: "col" }, "correct answers, and the goal"),
      ...heads.map(({ role, i }) =>
        h(
          "th",
          { scope: "col", class: `h${i}` },
          h("span", { class: "badge" }, String(i)),
          h("b", {}, `head ${i}`),
          role,
        ),
      ),
    );
    for (const { row } of rows) {
      const cells = many(H, () => h("td", { "data-output": "roles" }, h("span")));
      row.replaceChildren(row.firstChild, ...cells);
    }
    const maps = heads.map(({ map }) => h("td", { "data-output": "weights" }, map.element));
    drawn.replaceChildren(drawn.firstChild, ...maps);
  };
  const T = words.length;
  return {
    element: results(
      "column",
      h(
        "table",
        { class: "roles" },
        heading,
        h("tbody", {}, ...rows.map(({ row }) => row), drawn),
      ),
      h(
        "div",
        { class: "legend" },
        h(
          "p",
          { class: "soft" },
          "Maps: rows are the words that attend, columns, in the same order, what they attend to; ",
          "outlined are the places that the head's question asks for, once it has one.",
        ),
        weightKey(""),
      ),
    ),
    shows: "outputs",
    update(_inputs, { accuracy, roles, weights }) {
      const [, H] = roles.shape;
      if (heads.length !== H) build(H);
      rows.forEach(({ row, measured }, q) => {
        measured.set(accuracy.data[q]);
        mark(measured.element, "data-value", String(accuracy.data[q]));
        measured.element.classList.toggle("reached", accuracy.data[q] >= goal);
        [...row.cells].slice(1).forEach((cell, i) => {
          const share = roles.data[q * H + i];
          write(cell.firstChild, percent(share));
          mark(cell, "data-value", String(share));
          tint(cell, share);
        });
      });
      for (const { role, map, i } of heads) {
        const own = weights.data.subarray(i * T * T, (i + 1) * T * T);
        const found = rolesOf(questions, roles, i);
        write(role, found.length ? listed(found) : "no role yet");
        role.classList.toggle("found", found.length > 0);
        paint(map.canvas, own, T, { ink: "weight" });
        const best = found.map((question) => places[questions.indexOf(question)]);
        map.outline(
          words.map((_, t) => words.map((_w, s) => best.some((of) => of[t] === s))),
          T,
          T,
        );
        mark(map.canvas, "aria-label", `the weights of head ${i}, ${T} × ${T}`);
      }
    },
  };
}
table.style = `${pixelMap.style}${gauge.style}
.roles { width: 100%; table-layout: fixed; border-collapse: separate; border-spacing: 6px 3px;
  margin: 0 -6px; }
.roles th { max-width: none; padding: 0; }
.roles thead th { font-size: var(--size-note); line-height: 1.3; white-space: normal; }
.roles thead th:first-child { width: 34%; text-align: left; vertical-align: bottom; }
.roles .badge { display: inline-block; min-width: 20px; margin-right: 6px; border-radius: 10px;
  font: 650 var(--size-small)/20px var(--mono); color: var(--text);
  background: color-mix(in oklab, var(--ground), var(--tone) 30%); }
.roles thead b { color: var(--text); font-weight: 600; }
.roles .role { display: block; }
.roles .role.found { color: var(--text); }
.roles tbody td { padding: 0; text-align: center; font-size: var(--size-note); border-radius: 4px;
  height: 24px; }
.roles tr:not(.drawn) td { ${shaded("probability")} }
.roles .gauge { grid-template-columns: 4.6em minmax(40px, 1fr) 3.6em; }
.roles .gauge .label { text-align: left; font-size: var(--size-note); color: var(--text); }
.roles .gauge b { text-align: right; color: var(--text); }
.roles .gauge .track u { border-left-color: var(--text); }
.drawn td { vertical-align: top; }
.drawn .pixel-map { --gold: var(--text); width: 100%; max-width: 168px; margin: 6px auto 0; }
.sentence-words { list-style: none; margin: 6px 0 0; padding: 1px 0 0; }
.sentence-words li { height: 13.83px; line-height: 13.83px; font-size: var(--size-small);
  color: var(--text); }
.legend { display: flex; flex-wrap: wrap; gap: 0 24px; }
.legend p { margin: 0; font-size: var(--size-small); }
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
              (own) => lossCurve(own, {
                top: 3,
                height: 150,
                name: called(own),
                rules: () => [[GUESSING, `guessing: ln 10 = ${GUESSING.toFixed(2)}`]],
              }),
              { style: lossCurve.style },
            ),
          ),
        ),
      ),
      use(Object.assign((own) => trainingBar(own, { bite: BITE }), { style: trainingBar.style })),
      use(table),
    ];
  },
  { wide: true },
);
