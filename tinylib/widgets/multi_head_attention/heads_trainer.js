import { trains } from "../../live/page/trainer.js";
import { results } from "../../live/ui/boxes.js";
import { h, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { gauge } from "../../live/ui/gauge.js";
import { animate } from "../../live/ui/motion.js";
import { weightKey } from "../../live/ui/keys.js";
import { shaded } from "../../live/ui/look.js";
import { format, listed, percent, times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint, pixelMap, readOut } from "../../live/ui/pixels.js";
import {
  lossCurve,
  rates,
  reachedIn,
  seeds,
  setting,
  settings,
  trainingBar,
} from "../../live/ui/training.js";

export const program = trains("multi_head_attention/heads_trainer_task.js");

const GUESSING = Math.log(10); // nats: each of ten digits is as likely
const SETTLED = 0.5; // a head that attends so often to a question's places has found a role
const LOOK_EVERY_MS = 400; // ms between two looks: a look takes as long as three steps
const ABOUT = [
  "A head that finds what a question asks for ",
  "in 50\u00a0% of cases has this role: frames show these places. Other words may attend anywhere.",
];

const kindOf = (question) => `question-${question}`;
const forms = ({ facts }) => facts.training.forms;
const ANSWERS = ["the correct answers", "answers of another sentence"];

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

/** The heads that have found a question's places. */
const headsOf = ({ shape: [, H], data }, q) =>
  times(H, (i) => i).filter((i) => data[q * H + i] >= SETTLED);

/**
 * For each head its role, and what it attends to in one sentence. Then a row for each question: how
 * many answers are correct, and how often each head attends to the place asked for.
 */
function table(widget) {
  const { questions, words, places, goal } = widget.spec.facts;
  const head = h("tr");
  const over = h(
    "tr.over",
    h("th", { scope: "col" }, `correct answers, goal ${100 * goal}\u00a0%`),
    h("th", { scope: "colgroup" }, "how often a head’s largest weight is on the place asked for"),
  );
  const rows = questions.map((question) => {
    const measured = gauge(question, { goal });
    measured.element.dataset.output = "accuracy";
    const row = h("tr", { class: kindOf(question) }, h("th", { scope: "row" }, measured.element));
    return { row, measured };
  });
  const names = h("ol", { "aria-hidden": "true" }, ...words.map((word) => h("li", word)));
  const key = weightKey("");
  const pointed = h("p", "Rows attend to columns, the same words.");
  const about = h(
    "div.about",
    h(
      "div",
      h("b", "Attention weights"),
      h("p", `in “${words.join(" ")}”.`),
      pointed,
      h("p", ...ABOUT),
      key,
    ),
    names,
  );
  const drawn = h("tr.drawn", h("th", { scope: "row" }, about));
  const T = words.length;
  let heads = []; // of each its name, its role, its map
  const build = (H) => {
    heads = times(H, (i) => {
      const role = h("span.role");
      const top = h("th", { scope: "col" }, h("span.badge", String(i)), h("b", `head ${i}`), role);
      const map = pixelMap();
      readOut(map.canvas, pointed, (row, column) => {
        const weight = map.canvas.values[row * T + column];
        const [from, to] = [row, column].map((at) => `“${words[at]}”, place ${at + 1}`);
        return `${from}, to ${to}: ${format(weight)}`;
      });
      return { role, top, map, i };
    });
    head.replaceChildren(h("td"), ...heads.map(({ top }) => top));
    for (const { row } of rows) {
      const cells = times(H, () => h("td", { "data-output": "roles" }, h("span")));
      row.replaceChildren(row.firstChild, ...cells);
    }
    const maps = heads.map(({ map }) => h("td", { "data-output": "weights" }, map.element));
    drawn.replaceChildren(drawn.firstChild, ...maps);
  };
  return {
    element: results(
      "column",
      h("table.roles", h("thead", head), h("tbody", drawn, over, ...rows.map(({ row }) => row))),
    ),
    shows: "outputs",
    update(_inputs, { accuracy, roles, weights, losses: { data: past } }) {
      const reached = reachedIn(widget).map(({ name }) => name);
      const [, H] = roles.shape;
      if (heads.length !== H) build(H);
      const most = Math.max(...weights.data); // before training all are small
      key.lastChild.textContent = most < 0.995 ? `${format(most)}, the largest` : "1";
      rows.forEach(({ row, measured }, q) => {
        measured.set(accuracy.data[q], reached.includes(`${questions[q]} answered`));
        setAttribute(measured.element, "data-value", String(accuracy.data[q]));
        [...row.cells].slice(1).forEach((cell, i) => {
          const share = roles.data[q * H + i];
          setText(cell.firstChild, percent(share));
          setAttribute(cell, "data-value", String(share));
          setHeat(cell, share);
          cell.classList.toggle("own", share >= SETTLED);
        });
      });
      for (const { role, top, map, i } of heads) {
        const own = weights.data.subarray(i * T * T, (i + 1) * T * T);
        const found = rolesOf(questions, roles, i);
        setText(
          role,
          found.length ? listed(found) : `${past.length ? "no role" : "not trained"} yet`,
        );
        const kind = found.length ? kindOf(found[0]) : "";
        if (kind && top.className !== kind)
          animate(top, [{ transform: "scale(.3)" }, { transform: "none" }], { duration: 500 });
        setAttribute(top, "class", kind);
        paint(map.canvas, own, T, { ink: "weight", most });
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
.sides { --left: 1fr; --right: 1.65fr; }
.roles { --row: min(.85rem * var(--grow, 1), 1.45cqi - 1px); display: block; }
.roles :is(thead, tbody) { display: grid; gap: 4px; }
.roles tr { display: grid; grid-template-columns: minmax(0, 3fr) repeat(4, minmax(0, 1.75fr));
  gap: 6px; align-items: center; }
.roles th { max-width: none; padding: 0; text-align: left; white-space: normal; overflow: visible; }
.roles thead { margin-bottom: 4px; }
.roles thead tr { align-items: end; }
.roles [scope=colgroup] { grid-column: 2 / -1; }
.roles thead th { font-size: var(--size-note); line-height: 1.3; text-align: center; }
.roles .own { box-shadow: inset 0 0 0 2px var(--tone); }
.roles .badge { display: inline-block; min-width: 1.25rem; margin-right: 6px; border-radius: 10px;
  font: 650 var(--size-small)/1.25rem var(--mono); color: var(--text);
  background: color-mix(in oklab, var(--ground), var(--tone, var(--soft)) 30%); }
.roles thead b { color: var(--text); font-weight: 600; }
.roles .role { display: block; min-height: 1.4em; font-size: var(--size-text); }
.roles [class*=question] .role { font-weight: 700; color: var(--tone); }
.roles tbody td { padding: 0; text-align: center; font-size: var(--size-note); border-radius: 4px;
  line-height: 1.5rem; }
.roles tr:not(.drawn) td[data-output] { ${shaded("probability")} }
.roles .gauge { grid-template-columns: 4.4em minmax(2.5rem, 1fr) 5em; }
.roles .gauge :is(.label, b) { font-size: var(--size-note); }
.roles .drawn { align-items: start; margin-bottom: 4px; }
.drawn .pixel-map { --gold: var(--text); width: calc(12 * var(--row)); max-width: 100%;
  border-color: var(--soft); margin: 0 auto; }
.drawn .about { display: flex; gap: 10px; justify-content: space-between; }
.drawn .about b { font-size: var(--size-note); color: var(--text); }
.drawn .about p { margin: 2px 0 0; }
.drawn ol { list-style: none; margin: 0; padding: 0; text-align: right; }
.drawn li { height: var(--row); line-height: var(--row); color: var(--text); white-space: nowrap; }
@container widget (max-width: 43.75rem) {
  .roles { --row: .85rem; }
  .roles tr { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 3px; }
  .roles :is(tbody th, [scope=colgroup]) { grid-column: 1 / -1; text-align: left; }
  .roles .drawn th { order: 1; } /* the maps come first */
  .roles :is(thead td, .badge), .drawn ol { display: none; }
  .roles .role { font-size: var(--size-note); min-height: 2lh; }
  .roles tbody { gap: 8px; }
}
`;

/** What starts it, and what it says when the heads have divided the questions among them. */
function bar(widget) {
  const { questions, goal } = widget.spec.facts;
  const has = (q, { roles, accuracy }) =>
    headsOf(roles, q).length > 0 && accuracy.data[q] >= SETTLED;
  const share = ({ accuracy: { data } }) => percent(data.reduce((a, b) => a + b) / data.length);
  return trainingBar(widget, {
    chunkMs: LOOK_EVERY_MS,
    success: {
      goal: "The goal: each of the four questions finds a head that attends to its places.",
      milestones: [
        ...questions.flatMap((question, q) => [
          {
            name: `${question} found`,
            flag: question,
            tone: kindOf(question),
            when: (_inputs, outputs) => has(q, outputs),
          },
          {
            name: `${question} answered`,
            when: (_inputs, { accuracy }) => accuracy.data[q] >= goal,
          },
        ]),
        {
          name: "all",
          when: (_inputs, outputs) => questions.every((_, q) => has(q, outputs)),
          message: (crossed) => `${crossed}: each question had found its head.`,
        },
      ],
      now: (outputs) => `${share(outputs)} of the answers are correct.`,
      next: ({ form, seed }, reached) =>
        reached && !form
          ? [
              ["1 head", { form: 2 }],
              ["another seed", { seed: seed + 1 }],
            ]
          : [["4 heads, as usual", { form: 0, answers: 0, rate: 1 }]],
      read: ({ accuracy, roles }) => [...accuracy.data, ...roles.data],
    },
  });
}
bar.style = `${trainingBar.style}
.success { --room-on-phones: 5; }
`;

const losses = (widget) =>
  lossCurve(widget, {
    top: 3,
    height: 100,
    name: called(widget),
    title: "mean loss (left), correct answers (right)",
    shares: {
      names: widget.spec.facts.questions,
      kinds: widget.spec.facts.questions.map(kindOf),
      read: ({ accuracy }) => [...accuracy.data],
    },
    rules: () => [[GUESSING, "guessing: ln 10"]],
  });
losses.style = lossCurve.style;

export default live(
  "Train heads on four questions",
  (ui) => {
    const { use } = ui;
    return [
      use(bar),
      use(table),
      ui.sides(
        use(losses),
        use(
          settings,
          use((own) => setting(own, "form", "model", forms(own.spec))),
          use((own) => setting(own, "answers", "it learns", ANSWERS)),
          use((own) => rates(own)),
          use(seeds),
        ),
      ),
    ];
  },
  { wide: true },
);
