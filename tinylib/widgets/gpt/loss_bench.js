import { wordsOf } from "../../live/page/inputs.js";
import { h, setAttribute, setLength, setText, typeset } from "../../live/ui/dom.js";
import {
  explainable,
  explainableNumber,
  expOf,
  logOf,
  roveLines,
  sum,
} from "../../live/ui/explain.js";
import { knob } from "../../live/ui/knobs.js";
import { formatExact, powerOfTen, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { drag, plane, through } from "../../live/ui/plot.js";
import { fillList, sentence } from "../../live/ui/sentences.js";

const TOP = 5; // of the curve's plot, in nats: −ln 0.0067
const OTHERS = 9; // wrong words, with logit 0: as in loss_bench.py

/** Four decimals, or fewer of a large number; ∞ by its sign. */
function figure(value) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text =
    size >= 1e6
      ? value.toExponential(2).replace("e+", "e")
      : value.toFixed(size >= 1000 ? 1 : size >= 100 ? 2 : 4);
  return text.replace("-", "−");
}

/** The words of the sentence, the given one first; those that stay keep their probability. */
function keepProbabilities(next, widget) {
  const [old, now] = [widget.inputs, next].map((inputs) =>
    wordsOf(widget.spec, "text", inputs.text),
  );
  if (old.length === now.length) return;
  const least = Math.min(old.length, now.length);
  let [head, tail] = [0, 0];
  while (head < least && old[head] === now[head]) head += 1;
  while (tail < least - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const { p } = widget.inputs;
  next.p = [
    ...p.slice(0, head),
    ...Array(now.length - head - tail).fill(0.5),
    ...p.slice(p.length - tail),
  ];
}

const setShare = (widget, i, value) =>
  widget.edit(`p ${i}`, (next) => {
    next.p[i] = Number(within(value, [0, 1]).toFixed(3));
  });

/** The words to be said, each with its probability to be slid or typed, and what it costs. */
function wordCosts(widget) {
  const given = h("p.given", h("b"), " is given: the model reads it, and has not to say it.");
  const list = h("ol.costs", { "aria-label": "words to be said" });
  const reach = roveLines(list);
  const knobs = []; // one for each row
  /** What the word of a row costs, made of its probability. */
  const rule = (row) => {
    const { text, p } = widget.inputs;
    const word = wordsOf(widget.spec, "text", text)[row + 1];
    const box = knobs[row].called.querySelector("input");
    return logOf(`What “${word}” costs, −ln of its probability:`, p[row + 1], [box]);
  };
  const make = (row) => {
    const i = row + 1;
    const word = ({ text }) => wordsOf(widget.spec, "text", text)[i];
    knobs[row] = knob(widget, "p", word, {
      entry: i,
      named: (inputs) => `probability of ${word(inputs)}, word ${i + 1}`,
      ends: [0, 1],
      step: 0.01,
    });
    const cost = h("b.nll.askable", { "data-output": "nll" });
    explainable(widget, cost, () => rule(row));
    const bar = h("span.bar", { "data-output": "" }, h("i"));
    return h("li", knobs[row].element, bar, cost);
  };
  return {
    element: h("section.block", given, list),
    update(inputs, { nll: { data: nll } }) {
      const words = wordsOf(widget.spec, "text", inputs.text);
      setText(given.firstChild, `“${words[0]}”`);
      const most = Math.max(TOP, ...Array.from(nll).filter(Number.isFinite));
      fillList(list, words.slice(1), make, (li, _, row) => {
        const [, bar, cost] = li.children;
        knobs[row].update(inputs);
        const value = nll[row];
        if (value === undefined) return; // the answer is still on its way
        const endless = value === Infinity;
        bar.classList.toggle("endless", endless);
        setLength(bar.firstChild, endless ? 1 : value / most);
        setAttribute(cost, "data-value", String(value));
        setText(cost, figure(value));
      });
      reach();
    },
  };
}

/** The sum, the mean, which is the loss, and the perplexity; and who makes the most of it. */
function totals(widget) {
  const cell = (output, label, formula, rule) =>
    h(
      "div",
      { "data-output": output },
      h("span", label),
      explainableNumber(widget, rule),
      h("span.formula", formula),
    );
  const costs = () => [...widget.frame.querySelectorAll(".nll")];
  const numberOf = (name) => widget.readOutputs()[name].data[0];
  const cells = [
    cell("total", "sum", "Σ −ln p", () => {
      const terms = Array.from(widget.readOutputs().nll.data, (cost) => [cost]);
      return sum("What all words cost together:", terms, undefined, { lit: [{ cells: costs() }] });
    }),
    cell("loss", "mean: the loss", "sum / words", () => {
      const count = widget.readOutputs().nll.data.length;
      return sum(
        "The loss, the sum divided by the number of words:",
        [[numberOf("total")]],
        undefined,
        { by: { value: count, name: String(count) }, lit: [{ cells: [cells[0].children[1]] }] },
      );
    }),
    cell("perplexity", "perplexity", "e to the loss", () =>
      expOf("Perplexity, e to the power of the loss:", numberOf("loss"), [cells[1].children[1]]),
    ),
  ];
  const message = h("p.note.verdict", { role: "status" });
  return {
    element: h("section.block", { "data-output": "" }, h("div.totals", ...cells), message),
    update(inputs, outputs) {
      const values = ["total", "loss", "perplexity"].map((name) => outputs[name].data[0]);
      cells.forEach((element, i) => {
        setText(element.children[1], figure(values[i]));
        setAttribute(element.children[1], "data-value", String(values[i]));
      });
      const nll = outputs.nll.data;
      const words = wordsOf(widget.spec, "text", inputs.text).slice(1);
      if (words.length !== nll.length) return; // on its way
      setText(cells[1].children[2], `sum / ${words.length}`);
      setAttribute(message, "data-verdict", values[0] === Infinity ? "endless" : "");
      setText(message, verdictOf(words, Array.from(nll), values));
    },
  };
}

/** What the values (total, loss, perplexity) say of the model. @param {number[]} values */
function verdictOf(words, nll, values) {
  const [total, , perplexity] = values;
  const endless = words.filter((_, i) => nll[i] === Infinity);
  if (endless.length) {
    const names = endless.map((word) => `“${word}”`).join(", ");
    return (
      `The model held ${names} impossible, and it was said: −ln 0 = +∞. One such word, however ` +
      `long the text, ` +
      "and the mean is +∞ too. A softmax of finite logits never gives 0, as long as it does " +
      "not underflow: see below."
    );
  }
  if (total === 0)
    return (
      "Every word was certain: −ln 1 = 0, and nothing is left to learn. Perplexity 1: one " +
      "word to choose from."
    );
  const among = perplexity < 100 ? perplexity.toFixed(2) : figure(perplexity);
  const chosen = `as unsure as if it chose evenly among ${among} words each time.`;
  const worst = nll.indexOf(Math.max(...nll));
  if (words.length === 1) return `The model is ${chosen}`;
  const share = Math.round((100 * nll[worst]) / total);
  return `“${words[worst]}” alone makes ${share} % of the sum. On the whole the model is ${chosen}`;
}

/** The curve −ln p, with the words on it; they can be dragged along it. */
function costCurve(widget) {
  const plot = plane({
    name: "cost-plot",
    x: [0, 1],
    y: [0, TOP],
    height: 210,
    ticks: { x: [0, 0.2, 0.4, 0.6, 0.8, 1], y: [0, 1, 2, 3, 4, 5] },
    paths: ["curve"],
  });
  const mean = plot.rule("y");
  const points = h("div.points", { "data-output": "" });
  plot.element.append(points);
  drag(
    plot.element,
    (event) => {
      const { x, y } = plot.at(event);
      const { data: nll } = widget.readOutputs().nll;
      const far = (i) => Math.hypot(widget.inputs.p[i + 1] - x, (Math.min(nll[i], TOP) - y) / TOP);
      const [nearest] = Array.from(nll, (_, i) => i).sort((a, b) => far(a) - far(b));
      if (far(nearest) > 0.12) return null;
      event.preventDefault();
      return nearest;
    },
    (event, i) => setShare(widget, i + 1, Number(plot.at(event).x.toFixed(2))),
  );
  const make = () => h("div.point", h("span.dot.spot"), h("span.name"));
  return {
    element: h("section.block", h("h3", "−ln p against p (drag a word along it)"), plot.element),
    shows: "outputs",
    update(inputs, outputs) {
      const places = outputs.places.data;
      const curve = outputs.curve.data;
      const nll = outputs.nll.data;
      const [loss] = outputs.loss.data;
      setAttribute(
        plot.paths.curve,
        "d",
        through(Array.from(places, (place, i) => [place, curve[i]])),
      );
      const words = wordsOf(widget.spec, "text", inputs.text).slice(1);
      if (words.length !== nll.length) return; // on its way
      const p = inputs.p.slice(1);
      const heights = Array.from(nll, (value) => Math.min(value, TOP));
      const near = (i) =>
        p.findIndex(
          (other, j) =>
            j < i && Math.abs(other - p[i]) < 0.13 && Math.abs(heights[j] - heights[i]) < 0.36,
        );
      const names = words.map((word, i) => (near(i) < 0 ? [word] : []));
      words.forEach((word, i) => {
        let first = i;
        while (near(first) >= 0) first = near(first);
        if (first !== i) names[first].push(word);
      });
      fillList(points, words, make, (point, word, i) => {
        plot.put(point, p[i], heights[i]);
        const above = nll[i] > TOP ? ` ${nll[i] === Infinity ? "∞" : figure(nll[i])} ↑` : "";
        setText(
          point.lastChild,
          names[i].length ? names[i].join(", ") + (names[i].length === 1 ? above : "") : "",
        );
        point.classList.toggle("beyond", nll[i] > TOP);
        point.classList.toggle("late", p[i] > 0.75);
      });
      mean(loss, `the loss, ${figure(loss)}`);
    },
  };
}

/** log(softmax(x)) and log_softmax(x) side by side: numbers, and where the first one ends. */
function logSoftmaxes(widget) {
  const [low, high] = widget.spec.limits.x;
  const card = (kind, output, code, rule) =>
    h(
      "div",
      { class: `card ${kind}`, "data-output": output },
      h("code", code),
      explainableNumber(widget, rule),
      h("span"),
    );
  const naive = card("naive", "log_of_softmax", "log(softmax(x))", () => {
    const what = "The logarithm of the probability, which float32 has rounded by then:";
    return logOf(what, widget.readOutputs().share.data[0], [naive.lastChild], false);
  });
  const stable = card("stable", "log_softmax", "log_softmax(x)", () => ({
    kind: "log_softmax",
    what: "The logit, less the largest, less log of the sum of ten powers of e:",
    scores: [widget.inputs.x, ...Array(OTHERS).fill(0)],
    column: 0,
    lit: [{ cells: [...widget.frame.querySelectorAll(".second .knob input.number")] }],
  }));
  typeset(stable.lastChild, "= x − max − log Σ e^{x − max}");
  const plot = plane({
    name: "logit-plot",
    x: [low, high],
    y: [low - 6, 6],
    height: 120,
    ticks: { x: [low, -100, 0, 100, high] },
    grid: { x: [] },
    paths: ["gone", "stable", "naive"],
  });
  const here = plot.rule("x");
  const lost = h("span.lost", "log(softmax) is −∞ here");
  plot.element.append(lost);
  const message = h("p.note.verdict", { role: "status" });
  return {
    element: h(
      "section.block",
      { "data-output": "" },
      h("div.cards", naive, stable),
      plot.element,
      message,
    ),
    update({ x }, outputs) {
      const [share, of, at] = ["share", "log_of_softmax", "log_softmax"].map(
        (name) => outputs[name].data[0],
      );
      [
        [naive, of],
        [stable, at],
      ].forEach(([element, value]) => {
        setText(element.children[1], figure(value));
        setAttribute(element.children[1], "data-value", String(value));
      });
      const printed =
        share === 0 || share === 1
          ? String(share)
          : share < 1e-4 || share > 0.9999
            ? powerOfTen(share.toExponential(3))
            : share.toFixed(4);
      typeset(naive.children[2], `softmax(x) = ${printed} in float32`);
      naive.classList.toggle("endless", of === -Infinity);
      here(x, `x = ${formatExact(x).replace("-", "−")}`);
      typeset(
        message,
        of === -Infinity
          ? "softmax came first, and rounded the right word’s probability to 0: the smallest " +
              "float32 above 0 is 1.4 × 10^{−45}, about e^{−103.3}. Its logarithm is −∞, the " +
              "loss +∞, the gradient not a number. log_softmax takes the logarithm while all " +
              "is still finite."
          : share === 1
            ? "softmax rounds to 1, and both say 0: the wrong words’ share is below what " +
              "float32 can hold beside 1."
            : "Both say the same, to rounding. Make the right word unlikelier: x = −102 is enough.",
      );
      if (plot.paths.stable.hasAttribute("d")) return;
      const logits = outputs.logits.data;
      const first = outputs.curve_of_softmax.data;
      const second = outputs.curve_log_softmax.data;
      const trace = (values) =>
        through(Array.from(values, (y, i) => [logits[i], y]).filter(([, y]) => Number.isFinite(y)));
      setAttribute(plot.paths.stable, "d", trace(second));
      setAttribute(plot.paths.naive, "d", trace(first));
      const begins = logits[Array.from(first).findIndex(Number.isFinite)];
      setAttribute(plot.paths.gone, "d", `M${low} ${low - 6}H${begins}V6H${low}Z`);
      lost.style.width = `${(100 * (begins - low)) / (high - low)}%`;
    },
  };
}

wordCosts.style = `
.given { margin: 0 0 6px; font-size: var(--size-note); color: var(--soft); }
.given b { color: var(--text); font-weight: 600; }
.costs { list-style: none; margin: 0; padding: 0; display: grid; gap: 6px;
  font-variant-numeric: tabular-nums; }
.costs li { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(7.5rem, 1fr) 3.875rem;
  gap: 4px 14px; align-items: center; }
.costs .called > :first-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.costs .bar { height: .875rem; border-radius: 3px; overflow: hidden;
  background: color-mix(in oklab, var(--ground), var(--line) 38%); }
.costs .bar i { display: block; height: 100%; min-width: 1px; background: var(--probability);
  border-radius: 3px; }
.costs .endless i { background: repeating-linear-gradient(135deg, var(--error) 0 7px, color-mix(in
  oklab, var(--ground), var(--error) 55%) 7px 12px); }
.nll { text-align: right; font-weight: 600; }
@container widget (min-width: 53.75rem) {
  .costs li { --label: 5.25rem; grid-template-columns: minmax(0, 1fr) 4.875rem 3.875rem;
  gap: 4px 10px; }
}
@media (max-width: 37.5rem) {
  .costs { gap: 12px; }
  .costs li { grid-template-columns: minmax(0, 1fr) 3.625rem; align-items: start; }
  .costs .knob { grid-area: 1 / 1; } .costs .nll { grid-area: 1 / 2; }
  .costs .bar { grid-column: 1 / -1; }
}
`;
totals.style = `
.totals { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 8px 12px;
  margin-bottom: 8px; }
.totals div { border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px 7px;
  display: grid; font-size: var(--size-note); }
.totals div:nth-child(2) { border-color: var(--accent); box-shadow: inset 0 0 0 .5px var(--accent);
  }
.totals b { font-size: var(--size-text); line-height: 1.25; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.totals .formula { color: var(--soft); font-size: var(--size-small); }
.verdict { max-width: none; min-height: 3.2em; }
.verdict[data-verdict=endless] { border-left: 3px solid var(--error); padding-left: 10px; }
@media (max-width: 37.5rem) { .totals { gap: 6px; } .totals div { padding: 5px 8px;
  } .totals b { font-size: var(--size-text); } .totals span { font-size: var(--size-small); } }
`;
costCurve.style = `${plane.style}
.cost-plot { -webkit-user-select: none; user-select: none; }
.points { position: absolute; inset: 0; }
.point { position: absolute; width: 0; height: 0; cursor: ew-resize; }
.beyond .dot { --tone: var(--error); }
.name { position: absolute; left: 11px; bottom: 3px; white-space: nowrap;
  font-size: var(--size-note);
  font-weight: 600; max-width: 13.75rem; overflow: hidden; text-overflow: ellipsis; }
.beyond .name { bottom: auto; top: -9px; left: 14px; }
.late .name { left: auto; right: 2px; bottom: 9px; }
@media (max-width: 37.5rem) { .name { max-width: 6.875rem; } }
`;
logSoftmaxes.style = `
.sides { --left: 1fr; --right: 1fr; }
.second { border-top: 1px solid var(--line); padding-top: 12px; }
.begins p { margin: 0; }
.begins h3 { margin: 0 0 4px; font-size: var(--size-text); font-weight: 650; }
@container widget (min-width: 53.75rem) { /* beside the first half, as high as it */
  .second { border-top: 0; border-left: 1px solid var(--line); padding: 0 0 0 28px;
    align-self: stretch; }
  .second .knob { --label: 1.5em; }
  .second .logit-plot { height: 11.875rem !important; }
}
.cards { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 12px; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 7px 12px 8px; display: grid;
  border-left: 4px solid var(--tone); }
.card code { font-size: var(--size-note); overflow-wrap: anywhere; }
.card b { font-size: var(--size-text); line-height: 1.35; font-weight: 650;
  font-variant-numeric: tabular-nums;
  }
.card span { font-size: var(--size-small); color: var(--soft); font-variant-numeric: tabular-nums; }
.naive { --tone: var(--vermilion); } .stable { --tone: var(--blue); }
.card.endless { background: color-mix(in oklab, var(--ground), var(--error) 14%); }
.logit-plot path.naive { stroke-width: 2; }
.logit-plot path.stable { stroke-width: 6;
  stroke: color-mix(in oklab, var(--ground), var(--blue) 55%); }
.logit-plot path.gone { stroke: none; fill: color-mix(in oklab, var(--ground), var(--error) 18%); }
.lost { position: absolute; left: 1px; top: 1px; padding: 4px 0 4px 6px; color: var(--text);
  background: color-mix(in oklab, var(--ground), var(--error) 18%); /* over the line of x */
  line-height: 1.25; } @media (max-width: 37.5rem) { .card { padding: 6px 8px; } .card code {
    font-size: var(--size-small); } .lost { display: none; } }
`;

export default live(
  "What a word costs, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ui.use(sentence, "text", "Sentence", keepProbabilities),
        ui.use(wordCosts),
        ui.use(totals),
        ui.use(costCurve),
      ),
      ui.boxed(
        "side second",
        {
          element: h(
            "div.begins",
            h("h3", "With logits: log(softmax) against log_softmax"),
            h(
              "p.note",
              "Of ten words, the nine wrong ones have the logit 0. Slide the logit x of the " +
                "right one.",
            ),
          ),
        },
        ui.knob("x", "x", { named: "x, the right word’s logit" }),
        ui.use(logSoftmaxes),
        ui.explanation(),
      ),
    ),
  ],
  { wide: true },
);
