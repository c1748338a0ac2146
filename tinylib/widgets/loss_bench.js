import { wordsOf } from "./inputs.js";
import { exact, h, live, mark, numberBox, powerOfTen, svgPart, typeset, within, write } from "./parts.js";
import { fillList, sentence } from "./sentences.js";

const TOP = 5; // of the curve's plot, in nats: −ln 0.0067

/** Four decimals, or fewer of a large number; ∞ by its sign. */
function figure(value) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text = size >= 1e6 ? value.toExponential(2).replace("e+", "e")
    : value.toFixed(size >= 1000 ? 1 : size >= 100 ? 2 : 4);
  return text.replace("-", "−");
}

/** The words of the sentence, the given one first; those that stay keep their probability. */
function keepProbabilities(next, widget) {
  const [old, now] = [widget.inputs, next].map((inputs) => wordsOf(widget.spec, "text", inputs.text));
  if (old.length === now.length) return;
  const least = Math.min(old.length, now.length);
  let [head, tail] = [0, 0];
  while (head < least && old[head] === now[head]) head += 1;
  while (tail < least - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const { p } = widget.inputs;
  next.p = [...p.slice(0, head), ...Array(now.length - head - tail).fill(0.5), ...p.slice(p.length - tail)];
}

const setShare = (widget, i, value) =>
  widget.edit(`p ${i}`, (next) => { next.p[i] = Number(within(value, [0, 1]).toFixed(3)); });

/** The words to be said, each with its probability to be slid or typed, and what it costs. */
function wordCosts(widget) {
  const given = h("p", { class: "given" }, h("b"), " is given: the model reads it, and has not to say it.");
  const list = h("ol", { class: "costs", "aria-label": "words to be said" });
  const make = (row) => {
    const i = row + 1;
    const box = numberBox(widget, () => `p ${i}`, { read: ({ p }) => p[i], put: (next, value) => { next.p[i] = value; },
      limits: [0, 1], name: "p", step: 0.01, focus: () => box.select() });
    const range = h("input", { type: "range", min: "0", max: "1", step: "0.01",
      input: () => setShare(widget, i, Number(range.value)) });
    return h("li", {}, h("span", { class: "word-said" }), range, h("label", { class: "typed" }, h("span", {}, "p ="), box),
      h("span", { class: "bar result" }, h("i")), h("b", { class: "nll result" }));
  };
  return {
    element: h("section", { class: "block" }, given, list),
    update(inputs, { nll: { data: nll } }) {
      const words = wordsOf(widget.spec, "text", inputs.text);
      write(given.firstChild, `“${words[0]}”`);
      const most = Math.max(TOP, ...Array.from(nll).filter(Number.isFinite));
      fillList(list, words.slice(1), make, (li, word, row) => {
        const [said, range, typed, bar, cost] = li.children;
        const p = inputs.p[row + 1];
        write(said, word);
        mark(said, "title", word);
        range.value = String(p);
        mark(range, "aria-label", `probability of ${word}, word ${row + 2}`);
        mark(range, "aria-valuetext", exact(p));
        typed.lastChild.follow();
        mark(typed.lastChild, "aria-label", `p of ${word}, word ${row + 2}, typed`);
        const value = nll[row];
        if (value === undefined) return; // the answer is still on its way
        const endless = value === Infinity;
        bar.classList.toggle("endless", endless);
        const width = `${endless ? 100 : ((100 * value) / most).toFixed(2)}%`;
        if (bar.firstChild.style.width !== width) bar.firstChild.style.width = width;
        mark(cost, "data-value", String(value));
        write(cost, figure(value));
      });
    },
  };
}

/** The sum, the mean, which is the loss, and the perplexity; and who makes the most of it. */
function totals(widget) {
  const cell = (label, formula) => h("div", {}, h("span", {}, label), h("b"), h("span", { class: "formula" }, formula));
  const cells = [cell("sum", "Σ −ln p"), cell("mean: the loss", "sum / words"), cell("perplexity", "e to the loss")];
  const says = h("p", { class: "note verdict", role: "status" });
  return {
    element: h("section", { class: "block result" }, h("div", { class: "totals" }, ...cells), says),
    update(inputs, outputs) {
      const values = ["total", "loss", "perplexity"].map((name) => outputs[name].data[0]);
      cells.forEach((element, i) => {
        write(element.children[1], figure(values[i]));
        mark(element.children[1], "data-value", String(values[i]));
      });
      const { nll: { data: nll } } = outputs;
      const words = wordsOf(widget.spec, "text", inputs.text).slice(1);
      if (words.length !== nll.length) return; // on its way
      write(cells[1].children[2], `sum / ${words.length}`);
      mark(says, "data-verdict", values[0] === Infinity ? "endless" : "");
      write(says, verdictOf(words, Array.from(nll), values));
    },
  };
}

function verdictOf(words, nll, [total, , perplexity]) {
  const endless = words.filter((_, i) => nll[i] === Infinity);
  if (endless.length) {
    const names = endless.map((word) => `“${word}”`).join(", ");
    return `The model held ${names} impossible, and it was said: −ln 0 = +∞. One such word, however long the text, `
      + "and the mean is +∞ too. A softmax of finite logits never gives 0, as long as it does not underflow: see below.";
  }
  if (total === 0) return "Every word was certain: −ln 1 = 0, and nothing is left to learn. Perplexity 1: one word to choose from.";
  const among = perplexity < 100 ? perplexity.toFixed(2) : figure(perplexity);
  const chosen = `as unsure as if it chose evenly among ${among} words each time.`;
  const worst = nll.indexOf(Math.max(...nll));
  if (words.length === 1) return `The model is ${chosen}`;
  const share = Math.round((100 * nll[worst]) / total);
  return `“${words[worst]}” alone makes ${share} % of the sum. On the whole the model is ${chosen}`;
}

/** The curve −ln p, with the words on it; they can be dragged along it. */
function costCurve(widget) {
  const line = svgPart("path", { class: "curve" });
  const grid = svgPart("path", { class: "grid", d: [
    ...[0, 0.2, 0.4, 0.6, 0.8, 1].map((p) => `M${p} 0V${TOP}`), ...[0, 1, 2, 3, 4, 5].map((y) => `M0 ${y}H1`)].join("") });
  const svg = svgPart("svg", { viewBox: `0 0 1 ${TOP}`, preserveAspectRatio: "none", "aria-hidden": "true" }, grid, line);
  const put = (element, p, y) => {
    const [left, top] = [`${(100 * p).toFixed(2)}%`, `${(100 * (1 - within(y, [0, TOP]) / TOP)).toFixed(2)}%`];
    if (element.style.left !== left) element.style.left = left;
    if (element.style.top !== top) element.style.top = top;
  };
  const tick = (text, kind, p, y) => {
    const span = h("span", { class: `tick ${kind}` }, text);
    put(span, p, y);
    return span;
  };
  const mean = h("span", { class: "mean" }, h("b"));
  const points = h("div", { class: "points result" });
  const ground = h("div", { class: "cost-ground", "aria-hidden": "true" }, svg, mean, points,
    ...[0, 0.2, 0.4, 0.6, 0.8, 1].map((p) => tick(String(p), "x", p, 0)),
    ...[0, 1, 2, 3, 4, 5].map((y) => tick(String(y), "y", 0, y)));
  const at = ({ clientX, clientY }) => {
    const { left, top, width, height } = svg.getBoundingClientRect();
    return [(clientX - left) / width, TOP * (1 - (clientY - top) / height)];
  };
  let gripped = -1;
  ground.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [p, y] = at(event);
    const { nll: { data: nll } } = widget.readOutputs();
    const far = (i) => Math.hypot(widget.inputs.p[i + 1] - p, (Math.min(nll[i], TOP) - y) / TOP);
    const order = Array.from(nll, (_, i) => i).sort((a, b) => far(a) - far(b));
    if (far(order[0]) > 0.12) return;
    [gripped] = order;
    ground.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  ground.addEventListener("pointermove", (event) => {
    if (gripped >= 0) setShare(widget, gripped + 1, Number(at(event)[0].toFixed(2)));
  });
  ground.addEventListener("lostpointercapture", () => { gripped = -1; });
  const make = () => h("div", { class: "point" }, h("span", { class: "dot" }), h("span", { class: "name" }));
  return {
    element: h("section", { class: "block" }, h("h3", {}, "−ln p against p (drag a word along it)"), h("div", { class: "cost-plot" }, ground)),
    shows: "outputs",
    update(inputs, outputs) {
      const { places: { data: places }, curve: { data: curve }, nll: { data: nll }, loss: { data: [loss] } } = outputs;
      if (!line.hasAttribute("d")) {
        line.setAttribute("d", `M${Array.from(places, (p, i) => `${p.toFixed(4)} ${(TOP - curve[i]).toFixed(4)}`).join("L")}`);
      }
      const words = wordsOf(widget.spec, "text", inputs.text).slice(1);
      if (words.length !== nll.length) return; // on its way
      const p = inputs.p.slice(1);
      const heights = Array.from(nll, (value) => Math.min(value, TOP));
      const near = (i) => p.findIndex((other, j) => j < i && Math.abs(other - p[i]) < 0.13 && Math.abs(heights[j] - heights[i]) < 0.36);
      const names = words.map((word, i) => (near(i) < 0 ? [word] : []));
      words.forEach((word, i) => {
        let first = i;
        while (near(first) >= 0) first = near(first);
        if (first !== i) names[first].push(word);
      });
      fillList(points, words, make, (point, word, i) => {
        put(point, p[i], heights[i]);
        const above = nll[i] > TOP ? ` ${nll[i] === Infinity ? "∞" : figure(nll[i])} ↑` : "";
        write(point.lastChild, names[i].length ? names[i].join(", ") + (names[i].length === 1 ? above : "") : "");
        point.classList.toggle("beyond", nll[i] > TOP);
        point.classList.toggle("late", p[i] > 0.75);
      });
      mean.hidden = !(loss <= TOP);
      put(mean, 0, loss);
      write(mean.firstChild, `the loss, ${figure(loss)}`);
    },
  };
}

/** The right word's logit, and its log-probability taken both ways. */
function logitSlider(widget) {
  const ends = widget.spec.limits.x;
  const box = numberBox(widget, () => "x", { read: ({ x }) => x, put: (next, value) => { next.x = value; }, limits: ends,
    name: "x", step: 1, focus: () => box.select() });
  box.setAttribute("aria-label", "x, typed");
  const range = h("input", { type: "range", min: String(ends[0]), max: String(ends[1]), step: "1", "aria-label": "x, the right word’s logit",
    input: () => widget.edit("x", (next) => { next.x = Number(range.value); }) });
  return {
    element: h("div", { class: "logit" }, h("label", {}, h("b", { "aria-hidden": "true" }, "x ="), box), range),
    shows: "inputs",
    update({ x }) {
      box.follow();
      range.value = String(x);
      mark(range, "aria-valuetext", exact(x));
    },
  };
}

/** log(softmax(x)) and log_softmax(x) side by side: numbers, and where the first one ends. */
function bothWays(widget) {
  const [low, high] = widget.spec.limits.x;
  const card = (kind, code, note) => h("div", { class: `card ${kind}` }, h("code", {}, code), h("b"), h("span", {}, note));
  const naive = card("naive", "log(softmax(x))", "");
  const stable = card("stable", "log_softmax(x)", "");
  typeset(stable.lastChild, "= x − max − ln Σ e^{x − max}");
  const [safe, broken] = ["stable", "naive"].map((kind) => svgPart("path", { class: kind }));
  const gone = svgPart("rect", { class: "gone", y: "-6", height: String(12 - low) });
  const svg = svgPart("svg", { viewBox: `${low} -6 ${high - low} ${12 - low}`, preserveAspectRatio: "none", "aria-hidden": "true" }, gone, safe, broken);
  const here = h("span", { class: "here" }, h("b"));
  const across = (x) => `${((100 * (x - low)) / (high - low)).toFixed(2)}%`;
  const lost = h("span", { class: "lost" }, "log(softmax) is −∞ here");
  const says = h("p", { class: "note verdict", role: "status" });
  const ticks = [low, -100, 0, 100, high].map((x) => {
    const span = h("span", { class: "tick x" }, exact(x).replace("-", "−"));
    span.style.left = across(x);
    return span;
  });
  return {
    element: h("section", { class: "block result" }, h("div", { class: "cards" }, naive, stable),
      h("div", { class: "logit-plot" }, h("div", { class: "logit-ground", "aria-hidden": "true" }, svg, lost, here, ...ticks)), says),
    update({ x }, outputs) {
      const [share, of, at] = ["share", "log_of_softmax", "log_softmax"].map((name) => outputs[name].data[0]);
      [[naive, of], [stable, at]].forEach(([element, value]) => {
        write(element.children[1], figure(value));
        mark(element.children[1], "data-value", String(value));
      });
      const printed = share === 0 || share === 1 ? String(share) : share < 1e-4 || share > 0.9999 ? powerOfTen(share.toExponential(3)) : share.toFixed(4);
      typeset(naive.children[2], `softmax(x) = ${printed} in float32`);
      naive.classList.toggle("endless", of === -Infinity);
      const left = across(x);
      if (here.style.left !== left) here.style.left = left;
      here.classList.toggle("late", x > 0);
      write(here.firstChild, `x = ${exact(x).replace("-", "−")}`);
      typeset(says, of === -Infinity
        ? "softmax came first, and rounded the right word’s probability to 0: the smallest float32 above 0 is 1.4 × 10^{−45}, about e^{−103.3}. Its logarithm is −∞, the loss +∞, the gradient not a number. log_softmax takes the logarithm while all is still finite."
        : share === 1 ? "softmax rounds to 1, and both say 0: the wrong words’ share is below what float32 can hold beside 1."
          : "Both say the same, to rounding. Make the right word unlikelier: x = −102 is enough.");
      if (safe.hasAttribute("d")) return;
      const { logits: { data: logits }, curve_of_softmax: { data: first }, curve_log_softmax: { data: second } } = outputs;
      const trace = (values) => Array.from(values, (y, i) => (Number.isFinite(y) ? `${logits[i]} ${(-y).toFixed(3)}` : null)).filter(Boolean).join("L");
      safe.setAttribute("d", `M${trace(second)}`);
      broken.setAttribute("d", `M${trace(first)}`);
      const begins = logits[Array.from(first).findIndex(Number.isFinite)];
      gone.setAttribute("x", String(low));
      gone.setAttribute("width", String(begins - low));
      lost.style.width = across(begins);
    },
  };
}

wordCosts.style = `
.block { min-width: 0; }
.block h3 { margin: 0 0 6px; font-size: 14px; font-weight: 650; }
.given { margin: 0 0 6px; font-size: 13.5px; color: var(--soft); }
.given b { color: var(--text); font-weight: 600; }
.costs { list-style: none; margin: 0; padding: 0; display: grid; gap: 6px; font-variant-numeric: tabular-nums; }
.costs li { display: grid; grid-template-columns: 84px minmax(110px, 1fr) auto minmax(120px, 1.3fr) 62px; gap: 4px 14px; align-items: center; }
.costs input[type=range] { width: 100%; }
.word-said { font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.typed { display: flex; gap: 6px; align-items: center; font-size: 13.5px; color: var(--soft); }
.costs input[type=text], .logit input[type=text] { width: 62px; border-color: var(--line); text-align: right; font-variant-numeric: tabular-nums; }
.costs .bar { height: 14px; border-radius: 3px; overflow: hidden; background: color-mix(in oklab, var(--ground), var(--line) 38%); }
.costs .bar i { display: block; height: 100%; min-width: 1px; background: var(--above); border-radius: 3px; }
.costs .endless i { background: repeating-linear-gradient(135deg, var(--under) 0 7px, color-mix(in oklab, var(--ground), var(--under) 55%) 7px 12px); }
.nll { text-align: right; font-weight: 600; }
@media (max-width: 600px) {
  .costs { gap: 12px; }
  .costs li { grid-template-columns: minmax(0, 1fr) auto 58px; }
  .costs li .word-said { grid-area: 1 / 1; } .costs li .typed { grid-area: 1 / 2; } .costs li .nll { grid-area: 1 / 3; }
  .costs input[type=range], .costs .bar { grid-column: 1 / -1; }
}
`;
totals.style = `
.totals { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 8px 12px; margin-bottom: 8px; }
.totals div { border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px 7px; display: grid; font-size: 13px; }
.totals div:nth-child(2) { border-color: var(--accent); box-shadow: inset 0 0 0 .5px var(--accent); }
.totals b { font-size: 21px; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }
.totals .formula { color: var(--soft); font-size: 12.5px; }
.verdict { max-width: none; min-height: 3.2em; }
.verdict[data-verdict=endless] { border-left: 3px solid var(--under); padding-left: 10px; }
@media (max-width: 600px) { .totals { gap: 6px; } .totals div { padding: 5px 8px; } .totals b { font-size: 17px; } .totals span { font-size: 12px; } }
`;
costCurve.style = `
.cost-plot { padding: 8px 26px 22px 24px; }
.cost-ground { position: relative; height: 210px; font-size: 12px; user-select: none; touch-action: pan-y; }
.cost-ground svg { width: 100%; height: 100%; display: block; overflow: hidden; border-left: 1px solid var(--line); border-bottom: 1px solid var(--line); }
.grid { fill: none; stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; opacity: .45; }
.curve { fill: none; stroke: var(--above); stroke-width: 2; vector-effect: non-scaling-stroke; }
.tick { position: absolute; color: var(--soft); font-variant-numeric: tabular-nums; }
.tick.x { transform: translate(-50%, 4px); }
.tick.y { transform: translate(calc(-100% - 7px), -50%); }
.logit-ground .tick.x { top: 100%; }
.points { position: absolute; inset: 0; }
.point { position: absolute; width: 0; height: 0; cursor: ew-resize; }
.dot { position: absolute; left: -7px; top: -7px; width: 14px; height: 14px; border-radius: 50%; background: var(--text); border: 2.5px solid var(--ground); box-shadow: 0 0 0 1px var(--text); }
.beyond .dot { background: var(--under); }
.name { position: absolute; left: 11px; bottom: 3px; white-space: nowrap; font-size: 13px; font-weight: 600; max-width: 220px; overflow: hidden; text-overflow: ellipsis; }
.beyond .name { bottom: auto; top: -9px; left: 14px; }
.late .name { left: auto; right: 2px; bottom: 9px; }
.mean { position: absolute; right: 0; width: 100%; height: 0; border-top: 1.5px dashed var(--accent); }
.mean b { position: absolute; right: 4px; bottom: 2px; font-weight: 500; color: var(--accent); font-variant-numeric: tabular-nums; }
.mean[hidden] { display: none; }
@media (max-width: 600px) { .cost-plot { padding-right: 10px; } .name { max-width: 110px; } }
`;
logitSlider.style = `
.second { border-top: 1px solid var(--line); padding-top: 12px; }
.second p { margin: 0 0 4px; }
.second h3 { margin: 0 0 4px; font-size: 15px; font-weight: 650; }
.logit { display: grid; grid-template-columns: auto 1fr; gap: 4px 14px; align-items: center; }
.logit label { display: flex; gap: 7px; align-items: center; }
.logit input[type=range] { width: 100%; }
`;
bothWays.style = `
.cards { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 12px; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 7px 12px 8px; display: grid; border-left: 4px solid var(--tone); }
.card code { font-size: 13.5px; overflow-wrap: anywhere; }
.card b { font-size: 21px; line-height: 1.35; font-weight: 650; font-variant-numeric: tabular-nums; }
.card span { font-size: 12.5px; color: var(--soft); font-variant-numeric: tabular-nums; }
.naive { --tone: var(--under); } .stable { --tone: var(--above); }
.card.endless { background: color-mix(in oklab, var(--ground), var(--under) 14%); }
.logit-plot { padding: 24px 22px 24px; }
.logit-ground { position: relative; height: 120px; font-size: 12px; }
.logit-ground svg { width: 100%; height: 100%; display: block; border: 1px solid var(--line); }
.logit-ground path { fill: none; stroke: var(--tone); vector-effect: non-scaling-stroke; stroke-width: 6; }
.logit-ground path.naive { stroke-width: 2; }
.logit-ground path.stable { stroke: color-mix(in oklab, var(--ground), var(--above) 55%); }
.gone { fill: color-mix(in oklab, var(--ground), var(--under) 18%); }
.lost { position: absolute; left: 0; top: 5px; padding-left: 6px; color: var(--text); line-height: 1.25; }
.here { position: absolute; top: 0; bottom: 0; width: 0; border-left: 2px solid var(--text); pointer-events: none; }
.here b { position: absolute; bottom: 100%; left: -2px; white-space: nowrap; font-weight: 600; padding-bottom: 2px; }
.here.late b { left: auto; right: -2px; }
@media (max-width: 600px) { .card { padding: 6px 8px; } .card code { font-size: 12px; } .lost { display: none; } }
`;

export default live("What a word costs, live", (ui) => [
  ui.use(sentence, "text", "Sentence", keepProbabilities),
  ui.use(wordCosts),
  ui.use(totals),
  ui.use(costCurve),
  { element: h("div", { class: "second" }, h("h3", {}, "And with logits: log(softmax) against log_softmax"),
    h("p", { class: "note" }, "Of ten words, the nine wrong ones have the logit 0. Slide the logit x of the right one.")) },
  ui.use(logitSlider),
  ui.use(bothWays),
]);
