import { exact, h, live, mark, numberBox, svgPart, within, write } from "./parts.js";
import { fillList } from "./sentences.js";

// 1 2 3 4 6 8 12 … 8192 12288 16384: where sliders stop.
const CHOICES = [1, ...Array.from({ length: 13 }, (_, i) => [2 ** (i + 1), 3 * 2 ** i]).flat(), 2 ** 14];
const nearestChoice = (log) => CHOICES.reduce((best, value) =>
  (Math.abs(Math.log2(value) - log) < Math.abs(Math.log2(best) - log) ? value : best));

/** A count that came in groups of three digits. */
const groups = ({ data }, row = 0) => [...data.subarray(5 * row, 5 * row + 5)];
const asNumber = (count) => count.reduce((sum, group) => 1000 * sum + group, 0);
function printed(count) {
  const from = count.findIndex(Boolean);
  return from < 0 ? "0" : count.slice(from)
    .map((group, i) => (i ? String(group).padStart(3, "0") : String(group))).join(",");
}
const whole = (value) => value.toLocaleString("en-GB");

/** A number with the unit that leaves it at most three digits: 3.4 G. */
function rough(value) {
  const units = ["", " k", " M", " G", " T"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  const size = value / 1000 ** step;
  return `${step && size < 9.95 ? size.toFixed(1) : String(Math.round(size))}${units[step]}`;
}

/**
 * One size, typed or slid. The slider goes by the logarithm, from choice to choice; while the
 * switch `by` is on, it is not free, and the `i`-th of the outputs `used` is shown.
 */
function sizeOf(widget, name, label, by = "", i = 0) {
  const ends = widget.spec.limits[name];
  const choices = CHOICES.filter((value) => value <= ends[1]);
  const box = numberBox(widget, () => name, { read: (inputs) => inputs[name],
    put: (next, value) => { next[name] = value; }, limits: ends, name, step: 1, focus: () => box.select() });
  box.setAttribute("aria-label", `${name}, typed`);
  const slide = (value) => widget.edit(name, (next) => { next[name] = value; });
  const range = h("input", { type: "range", min: "0", max: String(Math.log2(ends[1])), step: "any",
    "aria-label": `${name}, ${label}`,
    input: () => { slide(nearestChoice(Number(range.value))); },
    keydown: (event) => {
      const value = widget.inputs[name];
      const to = { ArrowUp: choices.find((c) => c > value), ArrowDown: choices.findLast((c) => c < value),
        Home: ends[0], End: ends[1] };
      [to.ArrowRight, to.ArrowLeft] = [to.ArrowUp, to.ArrowDown];
      if (!(event.key in to)) return;
      event.preventDefault();
      slide(to[event.key] ?? value);
    } });
  return {
    element: h("div", { class: "size" },
      h("label", {}, h("b", { "aria-hidden": "true" }, name), h("span", { "aria-hidden": "true" }, label), box), range),
    update(inputs, outputs) {
      const bound = Boolean(by) && inputs[by];
      box.disabled = range.disabled = bound;
      const value = bound ? outputs.used.data[i] : inputs[name];
      if (bound) box.value = exact(value);
      else box.follow();
      range.value = String(Math.log2(within(value, ends)));
      mark(range, "aria-valuetext", exact(value));
    },
  };
}

/** A switch that binds sizes to others; let go, they stay where they were bound. */
function bond(widget, name, label, bound) {
  const box = h("input", { type: "checkbox",
    change: () => {
      const { used, whole: can } = widget.readOutputs();
      widget.edit(Symbol(name), (next) => {
        next[name] = box.checked;
        if (!box.checked && can.data[0]) {
          for (const [size, i] of Object.entries(bound)) next[size] = Math.max(1, used.data[i]);
        }
      });
    } });
  return {
    element: h("label", { class: "toggle" }, box, h("span", {}, label)),
    shows: "inputs",
    update(inputs) { box.checked = inputs[name]; },
  };
}

const times = (...factors) => factors.map((f) => (typeof f === "number" ? whole(f) : f)).join(" · ");

/** The sizes that are counted with, by their letters. */
const counted = ({ D, H, T }, { used: { data: [k, v, S] } }) => ({ D, H, T, k, v, S });

/** The parameters: the formula, the formula with the numbers filled in, and what comes out. */
function parameterCount(widget) {
  const letters = h("p", { class: "letters" });
  const filled = h("p", { class: "filled" });
  const sum = h("p", { class: "sum" }, h("b", { class: "count" }), " parameters", h("span"));
  const list = h("ol", { class: "matrices", "aria-label": "parameters of each matrix" });
  const wrong = h("p", { class: "problem cut", role: "alert" });
  return {
    element: h("section", { class: "block" }, h("h3", {}, "Parameters"), wrong,
      h("div", { class: "result" }, letters, filled, sum, list)),
    update(inputs, outputs) {
      const { D, H, k, v } = counted(inputs, outputs);
      const { bias, divided } = inputs;
      const can = Boolean(outputs.whole.data[0]);
      write(wrong, can ? "" : `D = ${whole(D)} cannot be cut into ${H} heads: ${whole(D)} / ${H} is not a whole number. `
        + "Change D or H, or switch k = v = D/H off. The numbers below, greyed, are of no layer.");
      widget.setAside(list, !can);
      write(letters, `D·H·(2k + v) + H·v·D${bias ? " + H·(2k + v) + D" : ""}`);
      const matrices = [0, 1, 2, 3].map((i) => groups(outputs.matrices, i));
      const three = matrices.slice(0, 3).reduce((total, one) => total + asNumber(one), 0);
      const biases = groups(outputs.biases);
      write(filled, `${times(D, H, `(2 · ${whole(k)} + ${whole(v)})`)} + ${times(H, v, D)}`
        + `${bias ? ` + ${times(H, `(2 · ${whole(k)} + ${whole(v)})`)} + ${whole(D)}` : ""}`
        + ` = ${whole(three)} + ${printed(matrices[3])}${bias ? ` + ${printed(biases)}` : ""}`);
      const count = groups(outputs.parameters);
      write(sum.firstChild, printed(count));
      write(sum.lastChild, divided && can ? ` = 4D²${bias ? " + 4D" : ""}, whatever H is` : "");
      fillList(list, [..."qkvo"],
        (i) => h("li", {}, h("span", {}, h("i", {}, "W"), h("sub", {}, "qkvo"[i])), h("span", { class: "soft" }), h("b")),
        (li, _, i) => {
          const size = i < 3 ? [D, H * (i < 2 ? k : v)] : [H * v, D];
          write(li.children[1], size.map(whole).join(" × "));
          write(li.children[2], printed(matrices[i]));
        });
    },
  };
}

const STEPS = [
  ["project", "x → q, k, v", "2·D·H·(T·k + S·k + S·v)",
    ({ D, H, T, S, k, v }) => times(2, D, H, `(${times(T, k)} + ${times(S, k)} + ${times(S, v)})`)],
  ["compare", "q, k → scores", "2·H·T·S·k", ({ H, T, S, k }) => times(2, H, T, S, k)],
  ["mix", "weights, v → outputs", "2·H·T·S·v", ({ H, T, S, v }) => times(2, H, T, S, v)],
  ["merge", "outputs → y", "2·T·H·v·D", ({ D, H, T, v }) => times(2, T, H, v, D)],
];

const percent = (share) => (share > 0 && share < 0.0005 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`);

/** The operations of each step, as bars. */
function operations() {
  const rows = STEPS.map(([name, what, formula]) => h("li", { class: name },
    h("b", {}, name), h("span", { class: "what" }, what),
    h("span", { class: "count" }), h("span", { class: "share" }),
    h("span", { class: "bar" }, h("i")),
    h("span", { class: "formula" }, `${formula} = `, h("span"))));
  const total = h("b", { class: "count" });
  const about = h("span");
  return {
    element: h("section", { class: "block result" }, h("h3", {}, "Floating-point operations"),
      h("ol", { class: "steps", "aria-label": "operations of each step" }, ...rows),
      h("p", { class: "sum" }, total, " FLOPs", about)),
    update(inputs, outputs) {
      if (!outputs.whole.data[0]) return; // greyed; a head of width 0 would have no shares
      const sizes = counted(inputs, outputs);
      rows.forEach((row, i) => {
        const share = outputs.shares.data[i];
        write(row.children[2], printed(groups(outputs.steps, i)));
        write(row.children[3], percent(share));
        mark(row, "data-value", String(share));
        const width = `${(100 * share).toFixed(2)}%`;
        const bar = row.children[4].firstChild;
        if (bar.style.width !== width) bar.style.width = width;
        write(row.children[5].lastChild, STEPS[i][3](sizes));
      });
      const count = groups(outputs.total);
      write(total, printed(count));
      write(about, asNumber(count) < 1e4 ? "" : `, about ${rough(asNumber(count))}FLOPs`);
    },
  };
}

/** The shares at every length T, stacked: where comparing and mixing take over. */
function shareChart(widget) {
  const most = Math.log2(widget.spec.limits.T[1]);
  const areas = STEPS.map(([name]) => svgPart("path", { class: name }));
  const svg = svgPart("svg", { viewBox: "0 0 56 1", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(...[0, 3, 1, 2].map((i) => areas[i]));
  const across = (T) => `${(100 * Math.log2(Math.max(1, T))) / most}%`;
  const put = (element, T) => { if (element.style.left !== across(T)) element.style.left = across(T); };
  const here = h("span", { class: "here" }, h("b"));
  const even = h("span", { class: "even" }, h("b"));
  const ticks = [1, 8, 64, 512, 4096].map((T) => {
    const tick = h("span", { class: "tick" }, whole(T));
    put(tick, T);
    return tick;
  });
  const ground = h("div", { class: "chart-ground", "aria-hidden": "true" }, svg,
    even, here, ...ticks,
    h("span", { class: "name low" }, "project and merge"), h("span", { class: "name high" }, "compare and mix"));
  const verdict = h("p", { class: "note verdict", role: "status" });
  const drag = (event) => {
    if (!(event.buttons & 1)) return;
    const { left, width } = svg.getBoundingClientRect();
    const log = most * Math.max(0, Math.min(1, (event.clientX - left) / width));
    widget.edit("T", (next) => { next.T = nearestChoice(log); });
  };
  svg.addEventListener("pointermove", drag);
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    widget.field = undefined; // a new grip is a new step to undo
    drag(event);
  });
  let traced;
  const trace = ({ data }) => {
    const points = data.length / 4;
    const base = new Array(points).fill(0);
    for (const i of [0, 3, 1, 2]) {
      const floor = base.map((y, j) => `${j} ${(1 - y).toFixed(4)}`);
      for (let j = 0; j < points; j += 1) base[j] += data[i * points + j];
      const top = base.map((y, j) => `${j} ${(1 - y).toFixed(4)}`);
      mark(areas[i], "d", `M${top.join("L")}L${floor.reverse().join("L")}Z`);
    }
  };
  return {
    element: h("section", { class: "block result" }, h("h3", {}, "Shares of them, by the number of queries T (drag along it)"),
      h("div", { class: "chart" }, ground), verdict),
    update(inputs, outputs) {
      if (!outputs.whole.data[0]) return; // nor a share to draw
      const { T, D, S } = counted(inputs, outputs);
      const { itself } = inputs;
      const at = outputs.even.data[0];
      put(here, T);
      write(here.firstChild, `T = ${whole(T)}`);
      here.classList.toggle("late", T > 2 ** (most / 2));
      even.hidden = !(at >= 1 && at <= 2 ** most);
      put(even, at);
      write(even.firstChild, "half and half");
      even.classList.toggle("late", at > 2 ** (most / 2));
      const { data: [, compare, mix] } = outputs.shares;
      const now = `At T = ${whole(T)} and S = ${whole(S)}, comparing and mixing make ${percent(compare + mix)} of the operations. `;
      const when = itself
        ? `They grow with T², the rest with T: from T = 2D = ${whole(2 * D)} on they are more than half, whatever H, k and v are.`
        : at ? `With S = ${whole(S)} they are more than half from T = D·S / (S − D) = ${whole(Math.round(at * 10) / 10)} on.`
          : `With S = ${whole(S)}, not more than D, they never come to half, however many queries there are.`;
      write(verdict, now + when);
      if (traced === outputs.curve.data.join()) return;
      traced = outputs.curve.data.join();
      trace(outputs.curve);
    },
  };
}

/** The table that the readable form holds and the fast one does not. */
function memory() {
  const line = h("p", { class: "note memory result" });
  return {
    element: line,
    update(inputs, outputs) {
      const { H, T, S } = counted(inputs, outputs);
      const bytes = groups(outputs.table_bytes);
      write(line, `The weights of all heads, if they are kept: H·T·S·4 bytes = ${times(H, T, S, 4)} = ${printed(bytes)} bytes`
        + `${asNumber(bytes) < 1e4 ? "" : `, about ${rough(asNumber(bytes))}B`} for each sentence. The fast path never holds this table.`);
    },
  };
}

sizeOf.style = `
.size-grid { display: grid; grid-template-rows: repeat(2, auto); grid-auto-columns: minmax(0, 1fr); grid-auto-flow: column; gap: 8px 24px; }
@media (max-width: 600px) { .size-grid { grid-template: none / repeat(2, minmax(0, 1fr)); grid-auto-flow: row; gap: 8px 20px; } }
.size label { display: flex; gap: 7px; align-items: center; font-size: 13.5px; min-height: 30px; }
.size label b { font-weight: 650; }
.size label span { color: var(--soft); font-size: 12.5px; flex: 1 1 auto; line-height: 1.2; }
.size input[type=text] { flex: 0 1 62px; width: 62px; min-width: 44px; border-color: var(--line);
  text-align: right; font-variant-numeric: tabular-nums; }
.size input[type=range] { width: 100%; display: block; }
.size input:disabled { opacity: .55; }
.switches { display: flex; flex-wrap: wrap; gap: 4px 22px; }
`;
parameterCount.style = `
.block { min-width: 0; }
.block h3 { margin: 0 0 4px; font-size: 14px; font-weight: 650; }
.block p { margin: 0; font-variant-numeric: tabular-nums; }
.block .letters { font-style: italic; }
.block .filled { color: var(--soft); font-size: 13.5px; }
.block .sum { margin-top: 2px; }
.sum .count { font-size: 19px; font-weight: 650; color: var(--accent); }
.matrices { list-style: none; display: grid; grid-template-columns: repeat(auto-fit, minmax(148px, 1fr)); gap: 4px 12px;
  margin: 6px 0 0; padding: 0; font-size: 13px; font-variant-numeric: tabular-nums; }
.matrices li { display: flex; flex-wrap: wrap; gap: 0 6px; align-items: baseline; }
.matrices sub { line-height: 0; font-size: 11px; }
.matrices .soft { color: var(--soft); }
.matrices b { font-weight: 550; }
.block .cut { position: static; margin: 0 0 6px; }
`;
operations.style = `
.steps { list-style: none; margin: 0; padding: 0; display: grid; gap: 8px; font-size: 13.5px; font-variant-numeric: tabular-nums; }
.steps li { display: grid; grid-template-columns: 66px 1fr auto 62px; gap: 0 10px; align-items: baseline; }
.steps b { font-weight: 600; }
.steps .what, .steps .formula { color: var(--soft); font-size: 12.5px; }
.steps .share { text-align: right; }
.steps .bar { grid-column: 1 / -1; height: 9px; border-radius: 2px; overflow: hidden;
  background: color-mix(in oklab, var(--ground), var(--line) 45%); }
.steps .bar i { display: block; height: 100%; min-width: 1px; background: var(--tone); }
.steps .formula { grid-column: 1 / -1; }
@media (max-width: 600px) { .steps .what { grid-column: 1 / -1; grid-row: 3; } .steps .count { grid-column: 3; } }
.project { --tone: #2f7fd0; } .merge { --tone: #7db4e6; } .compare { --tone: #d98a2f; } .mix { --tone: #eeb873; }
`;
shareChart.style = `
.chart { padding: 22px 22px 20px; }
.chart-ground { position: relative; height: 130px; font-size: 12px; }
.chart-ground svg { cursor: ew-resize; touch-action: pan-y; width: 100%; height: 100%; display: block; border: 1px solid var(--line); }
.chart-ground path { fill: color-mix(in oklab, var(--ground), var(--tone) 60%); }
.chart-ground .tick { position: absolute; top: 100%; transform: translate(-50%, 3px); color: var(--soft); }
.chart-ground .name { position: absolute; font-weight: 600; pointer-events: none; }
.chart-ground :is(.name, .even b) { border-radius: 4px; padding: 0 4px; background: color-mix(in oklab, var(--ground) 75%, transparent); }
.chart-ground .low { left: 5px; bottom: 5px; }
.chart-ground .high { right: 5px; top: 5px; }
.here, .even { pointer-events: none; position: absolute; top: 0; bottom: 0; width: 0; border-left: 2px solid var(--text); }
.even { border-left: 1.5px dashed var(--text); }
.here b, .even b { position: absolute; bottom: 100%; left: -2px; white-space: nowrap; font-weight: 600; padding-bottom: 2px; }
.even b { bottom: auto; top: 42%; left: 5px; font-weight: 400; }
.late b { left: auto; right: -2px; }
.even.late b { right: 5px; }
.block .verdict, .memory { max-width: none; min-height: 3.2em; }
`;

export default live("What the heads cost, live", (ui) => {
  const sizes = [
    ui.use(sizeOf, "D", "width"), ui.use(sizeOf, "H", "heads"),
    ui.use(sizeOf, "k", "query width", "divided", 0), ui.use(sizeOf, "v", "value width", "divided", 1),
    ui.use(sizeOf, "T", "queries"), ui.use(sizeOf, "S", "keys", "itself", 2),
  ];
  return [
    { element: h("div", { class: "size-grid" }, ...sizes.map(({ element }) => element)) },
    { element: h("div", { class: "switches" }, ...[
      ui.use(bond, "divided", "k = v = D/H", { k: 0, v: 1 }),
      ui.use(bond, "itself", "self-attention: S = T", { S: 2 }),
      ui.toggle("bias", "with biases"),
    ].map(({ element }) => element)) },
    ui.use(parameterCount), ui.use(operations), ui.use(shareChart), ui.use(memory),
  ];
});
