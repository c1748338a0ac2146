// Beam search drawn: every step as a column, what is kept above what is pruned; and how it ends.

import { columnHeads, resized, results } from "./boxes.js";
import { h, setAttribute, setText, svgPart } from "./dom.js";
import { explainable, logs, perLength, rove } from "./explain.js";
import { letters, shaded } from "./look.js";
import { animate, isCalm } from "./motion.js";
import { format, percent, times } from "./numbers.js";
import { fillList } from "./sentences.js";

export const PRUNED = 3; // as in decoding.py
const FIELDS = [
  ...["parent", "token", "probability", "token_log_prob"],
  ...["log_prob", "length", "finished", "score"],
];

/** The candidates that beam() of search.js gives at each step, as a widget's outputs. */
export function candidatesOf(steps) {
  const rows = (name) => steps.map((seen) => Array.from(seen[name].data, Number));
  return Object.fromEntries(FIELDS.map((name) => [name, rows(name)]));
}

/**
 * The steps of the search, each a list of candidates that know their parents; the first `width` of
 * a step were kept. null if the answer is still on its way: that to another width stands there.
 */
export function grow({ width }, outputs, names, eos) {
  const [T, C] = outputs.token.shape;
  if (C !== width + PRUNED) return null;
  const steps = [];
  for (let t = 0; t < T; t += 1) {
    const at = (name, c) => outputs[name].data[t * C + c];
    steps.push(
      times(C, (c) => {
        const parent = steps[t - 1]?.[at("parent", c)] ?? null;
        return {
          t,
          c,
          parent,
          token: at("token", c),
          word: names[at("token", c)],
          kept: c < width,
          ended: parent?.token === eos, // before this step
          probability: at("probability", c),
          logP: at("token_log_prob", c),
          logProb: at("log_prob", c),
          length: at("length", c),
          score: at("score", c),
        };
      }),
    );
  }
  return steps;
}

/** The candidates from the first step to this one. */
const pathTo = (node) => (node ? [...pathTo(node.parent), node] : []);

/** The candidates that say what `tokens` say, until one was pruned. */
export function pathOf(tokens, steps, eos) {
  const path = [];
  for (const candidates of steps) {
    const [token, parent] = [tokens[path.length] ?? eos, path.at(-1) ?? null];
    const next = candidates.find((node) => node.parent === parent && node.token === token);
    if (!next) break;
    path.push(next);
  }
  return path;
}

/**
 * What the search ends with, best first, and last what greedy search, `outputs.greedy`, says;
 * `decode(tokens)` is a text. And the path of greedy search.
 */
export function endsOf(steps, { width }, outputs, decode, eos) {
  const best = steps
    .at(-1)
    .slice(0, width)
    .map((end) => ({ ...end, path: pathTo(end) }));
  const tokens = [...outputs.greedy.data];
  const greedily = pathOf(tokens, steps, eos);
  const [logProb] = outputs.greedy_log_prob.data;
  const { length } = tokens;
  return {
    greedily,
    rows: [
      ...best.map((end) => ({ ...end, text: decode(end.path.map(({ token }) => token)) })),
      { path: greedily, text: decode(tokens), by: "greedy", length, logProb, score: null },
    ],
  };
}

/** Which of the texts is shown. */
export const rowOf = (widget, rows) => Math.min(widget.row ?? 0, rows.length - 1);

// Both parts below ask `searched(widget, inputs, outputs)` what was found, null while that is on
// its way:
// { steps; greedily: the path of greedy search through them, as far as they go; source: what was
//   searched from; decode: a function from tokens to their text; root: the last token of the
//   source; token, text: what they are called; rows: the texts to choose from, best first:
//   { path, text, by: how it was found, logProb, length, score }; verdict: a sentence that compares
//   them; and, if they are in a foreign language, gloss: a text's translation word for word }.

// ---------------------------------------------------------------- the tree

const SIZES = [20, 42, 45, 18, 52, 22]; // pixels; the last is between what is kept and pruned
const OFFSET = 2.5; // from the middle of two ways where they coincide, to each
const PADDING = 16; // of the box that scrolls, left and right together, as in the style below
const NARROW = 420; // pixels: where there is less room, a box holds a word and its probability
const FAINT = 0.01; // a pruned rival less likely than this is left out
const [MOVE, PACE] = [420, 1100]; // ms: the way of a box, and from step to step

/**
 * Where a candidate's box stands, and the line that leads to it. If `count` columns are wider than
 * the `room` for them, they get so wide that, scrolled to the end, the first in view is whole.
 */
function layout(width, alpha, count, room) {
  const scale = letters();
  const [usual, high, pitch, head, first, apart] = SIZES.map((size) => scale * size);
  const narrow = room < NARROW;
  const gap = narrow ? 0.6 * usual : usual;
  // with a third number, or without
  const least = gap + scale * (narrow ? 62 : alpha > 0 ? 150 : 104);
  const span = room - PADDING - gap / 2;
  const scrolls = least < span && room < PADDING + first + count * least;
  const wide = (scrolls ? span / Math.floor(span / least) : least) - gap;
  const left = (t) => first + gap + t * (wide + gap);
  const top = (c) => head + c * pitch + (c < width ? 0 : apart);
  const line = ({ t, c, parent }, aside) => {
    const middle = (row) => top(row) + high / 2 + aside;
    const [x, y, from] = [left(t), middle(c), middle(parent?.c ?? 0)];
    return `M${x - gap} ${from}C${x - gap / 2} ${from} ${x - gap / 2} ${y} ${x} ${y}`;
  };
  const place = ({ t, c }) => `translate(${left(t)}px, ${top(c)}px)`;
  const origin = ({ parent }) => (parent ? place(parent) : `translate(0, ${head}px)`);
  /** Lines to these boxes, each so far below the middle as `aside` says of it. */
  const lines = (nodes, aside = (_node) => 0) => nodes.map((n) => line(n, aside(n))).join("");
  return { wide, gap, apart, narrow, left, top, place, origin, lines };
}

/** The first step at which the beam's best sentence and greedy search differ, or -1. */
const forkOf = ({ rows: [best], greedily }) =>
  best.path.findIndex((node, t) => node !== greedily[t]);

/**
 * A box that scrolls sideways, with a gutter at its left that does not, and says at its edges that
 * there is more. `show(left, right, end)` brings these pixels into view, up to the end if there is
 * room, unless the reader is busy in the box; `starts()` are places at which it is best cut off,
 * `scrolled(from, to)` gets the range of pixels in view, and `resize()` is called if the width that
 * is in view, `room()`, has changed.
 */
function sideways(label, content, gutter, starts, scrolled, resize) {
  const box = h(
    "div.scroll.tree",
    { tabindex: "0", role: "group", "aria-label": label, scroll: () => edges() },
    content,
  );
  const element = h("div.sideways", { "data-output": "" }, gutter, box);
  const edges = () => {
    scrolled(box.scrollLeft, box.scrollLeft + box.clientWidth);
    element.classList.toggle("before", box.scrollLeft > 4);
    element.classList.toggle("after", box.scrollLeft + box.clientWidth < box.scrollWidth - 4);
  };
  let room = 0;
  resized(() => {
    edges();
    if (room === box.clientWidth) return;
    room = box.clientWidth;
    resize();
  }, box);
  const show = (left, right, end = right) =>
    requestAnimationFrame(() => {
      // by then it stands in the page
      if (end - left <= box.clientWidth) right = end;
      const seen = box.scrollLeft <= left && right <= box.scrollLeft + box.clientWidth;
      if (seen || box.matches(":hover, :focus")) return;
      const place = Math.min(left, (left + right - box.clientWidth) / 2);
      const fit = starts().filter((x) => x <= left && right <= x + box.clientWidth);
      box.scrollLeft = fit.filter((x) => x <= place).at(-1) ?? fit[0] ?? place;
    });
  return { element, edges, show, room: () => room };
}

/**
 * Step through the search: `grown` of `count()` steps are shown, or all of them if it is undefined,
 * and `show(from, to)` shows another number.
 */
function stepper(widget, count, show) {
  let timer = 0;
  const now = () => widget.grown ?? count();
  const go = (to) => {
    const from = now();
    widget.grown = to >= count() ? undefined : Math.max(1, to);
    show(from, now());
    follow();
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    setText(play, "Watch it grow");
  };
  const button = (sign, label, click) =>
    h("button", { "aria-label": label, title: label, click }, sign);
  const by = (change) => () => {
    stop();
    go(now() + change);
  };
  const back = button("◀", "one step back", by(-1));
  const next = button("▶", "one step on", () => by(now() < count() ? 1 : 1 - count())());
  const play = h("button.play", {
    click: () => {
      if (timer) {
        stop();
        return;
      }
      if (now() === count()) go(1);
      setText(play, "Pause");
      timer = setInterval(() => {
        if (play.isConnected) go(now() + 1);
        if (now() === count()) stop();
      }, PACE);
    },
  });
  play.hidden = isCalm();
  const place = h("span.place", { role: "status" });
  const follow = () => {
    back.disabled = now() <= 1;
    const [sign, label] =
      now() < count() ? ["▶", "one step on"] : ["▶ from step 1", "step by step from step 1"];
    setText(next, sign);
    for (const name of ["aria-label", "title"]) setAttribute(next, name, label);
    setText(place, widget.grown ? `step ${now()} of ${count()}` : `all ${count()} steps`);
  };
  stop();
  return {
    element: h("div.growing", play, back, next, place),
    follow,
    /** Show all of it. */
    reset() {
      stop();
      widget.grown = undefined;
    },
  };
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const FADES = [1, 0].map((opacity) => ({ opacity, visibility: "visible" }));

/** Every step of the search as a column of boxes, the kept above the pruned. */
export function beamTree(widget, searched) {
  const paths = Object.fromEntries(
    ["pruned", "kept", "shown", "greedy"].map((kind) => [kind, svgPart("path", { class: kind })]),
  );
  const columns = h("ol.columns", { "data-output": "log_prob" });
  const root = h("p.root");
  const border = h("p.border", { "aria-hidden": "true" });
  const gutter = h(
    "div.gutter",
    { "aria-hidden": "true" },
    ...["step", "kept", "pruned"].map((name) => h("span", name)),
  );
  const [earlier, later] = ["earlier", "later"].map((name) => h("span", { class: name }));
  const unseen = h("p.unseen-words", { "aria-hidden": "true" }, earlier, later);
  const canvas = h(
    "div.canvas",
    svgPart("svg", { "aria-hidden": "true" }, ...Object.values(paths)),
    border,
    root,
    columns,
  );
  const legend = h("p.note.legend", { "data-output": "" });
  const view = sideways(
    "the steps of beam search, from left to right; it scrolls sideways",
    canvas,
    gutter,
    () => now.steps.map((_, t) => now.left(t) - now.gap / 2),
    (from, to) => {
      // the words of the way that is shown, as far as they are cut off
      if (!now) return;
      const { path, left, wide, decode } = now;
      const tokens = (cut) =>
        decode(path.filter((node) => !node.ended && cut(node)).map(({ token }) => token));
      const [first, last] = [
        tokens(({ t }) => left(t) + wide / 2 < from),
        tokens(({ t }) => left(t) + wide / 2 > to),
      ];
      setText(earlier, first && `← earlier: ${first}`);
      setText(later, last && `later: ${last} →`);
    },
    () => {
      before = {};
      widget.repaint("outputs");
    },
  );
  let before = {}; // what was shown last
  const column = (t) =>
    h(
      "li",
      { "aria-label": `step ${t + 1}` },
      h("span.step", { "aria-hidden": "true" }, String(t + 1)),
      h("ol"),
    );
  const boxOf = ({ t, c }) => columns.children[t].lastChild.children[c];
  /** ln p of all tokens up to a box. */
  const explainLogProb = (t, c) => {
    const path = pathTo(now.steps[t][c]).filter(({ ended }) => !ended);
    const message = now.decode(path.map(({ token }) => token));
    return logs(`ln p of “${message}”:`, path, path.map(boxOf));
  };
  const box = (t) => (c) => {
    const parts = [h("b"), h("span"), h("span"), h("span"), h("span.unseen")];
    const item = h("li", { tabindex: t || c ? "-1" : "0" }, ...parts);
    item.place = [t, c];
    explainable(widget, item, () => explainLogProb(t, c));
    return item;
  };
  columns.addEventListener("keydown", (event) => {
    const { place: [t, c] = [], parentElement } = event.target;
    const [by, down] = ARROWS[event.key] ?? [];
    if (!parentElement || t === undefined || by === undefined) return;
    event.preventDefault(); // the box around it would scroll
    columns.children[t + by]?.lastChild.children[c + down]?.focus();
  });
  columns.addEventListener("focusin", ({ target }) => {
    for (const old of columns.querySelectorAll("[tabindex='0']")) old.tabIndex = -1;
    target.tabIndex = 0;
  });
  let now; // what is shown: all that was found, and `layout`
  let drawn; // the outputs that it is made of
  /** Which boxes are seen while it grows: what was pruned before the last step is gone. */
  const draw = () => {
    const { steps, greedily, path, lines } = now;
    const count = widget.grown ?? steps.length;
    const grows = count < steps.length;
    const followed = new Set([...path, ...greedily]);
    const both = new Set(path.filter((node) => greedily.includes(node)));
    const faint = (node) => !node.kept && node.probability < FAINT && !followed.has(node);
    const seen = ({ t, kept }) => t < count && (kept || !grows || t === count - 1);
    const beside = (by) => (node) => (both.has(node) ? by : 0);
    steps.forEach((candidates, t) => {
      columns.children[t].classList.toggle("later", t >= count);
      for (const node of candidates) {
        boxOf(node).classList.toggle("gone", t < count && !seen(node));
        boxOf(node).classList.toggle("faint", faint(node));
      }
    });
    const all = steps.flat().filter((node) => seen(node) && !faint(node));
    setAttribute(paths.kept, "d", lines(all.filter(({ kept }) => kept)));
    setAttribute(paths.pruned, "d", lines(all.filter(({ kept }) => !kept)));
    setAttribute(paths.shown, "d", lines(path.filter(seen), beside(-OFFSET)));
    setAttribute(paths.greedy, "d", lines(greedily.filter(seen), beside(OFFSET)));
  };
  const growth = stepper(
    widget,
    () => now?.steps.length ?? 1,
    (from, to) => {
      draw();
      const { steps, place, origin, left } = now;
      const time = { duration: MOVE };
      if (to !== from + 1) return;
      for (const node of steps[to - 1]) {
        const keyframes = [
          { transform: origin(node), opacity: 0 },
          { transform: place(node), opacity: 1 },
        ];
        animate(boxOf(node), keyframes, time);
      }
      const pruned = (steps[to - 2] ?? []).filter(({ kept }) => !kept);
      const fades = widget.grown === undefined ? [] : pruned;
      for (const node of fades) animate(boxOf(node), FADES, time);
      view.show(left(Math.max(0, to - 2)), left(to));
    },
  );

  return {
    element: h("div.column", h("div.over", growth.element, unseen), view.element, legend),
    shows: "outputs",
    reset: growth.reset,
    update(inputs, outputs) {
      const found = searched(widget, inputs, outputs);
      if (!found) return;
      if (drawn !== outputs) growth.reset();
      drawn = outputs;
      const { width, alpha } = inputs;
      const { steps, greedily, rows, source } = found;
      const { path } = rows[rowOf(widget, rows)];
      setText(root, found.root);
      const placed = layout(width, alpha, steps.length, view.room());
      const { wide, apart, narrow, left, top } = placed;
      now = { ...found, ...placed, path };
      canvas.classList.toggle("narrow", narrow);
      setAttribute(
        canvas,
        "style",
        `--wide: ${wide}px; width: ${left(steps.length)}px; height: ${top(width + PRUNED)}px`,
      );
      setAttribute(border, "style", `top: ${top(width) - apart / 2}px`);
      const middles = [0, top(width / 2), top(width + PRUNED / 2)];
      middles.forEach((y, i) => setAttribute(gutter.children[i], "style", `top: ${y}px`));
      fillList(columns, steps, column, (li, candidates, t) => {
        setAttribute(li.firstChild, "style", `left: ${left(t)}px`);
        fillList(li.lastChild, candidates, box(t), (item, node) => {
          const { probability, logProb, score, kept, ended, parent } = node;
          const [name, p, log, by, unseen] = item.children;
          setText(name, ended ? "ended" : node.word);
          setText(p, ended ? "" : percent(probability || Number.MIN_VALUE));
          setText(log, format(logProb));
          setText(by, alpha > 0 ? format(score) : "");
          setText(unseen, `, ${kept ? "kept" : "pruned"}, after ${parent?.word ?? found.root}`);
          setAttribute(item, "data-value", String(logProb));
          setAttribute(
            item,
            "style",
            `--tl-heat: ${ended ? 0 : probability.toFixed(3)}; transform: ${placed.place(node)}`,
          );
          setAttribute(
            item,
            "class",
            [
              kept ? "kept" : "pruned",
              ended && "ended",
              path.includes(node) && "shown",
              greedily.includes(node) && "greedy",
              item.classList.contains("source") && "source",
              item.classList.contains("asked") && "asked",
              item.classList.contains("faint") && "faint",
            ]
              .filter(Boolean)
              .join(" "),
          );
        });
      });
      draw();
      growth.follow();
      const fork = forkOf(found);
      if (source !== before.source) view.show(0, 0);
      if (fork >= 0 && (source !== before.source || fork !== before.fork || wide !== before.wide)) {
        view.show(left(Math.max(0, fork - 1)), left(fork + 1), left(steps.length));
      }
      before = { source, fork, wide };
      requestAnimationFrame(view.edges);
      setText(
        legend,
        `Each box shows a ${found.token}` +
          (narrow ? " and its probability; tap it for" : ", its probability, and") +
          ` ln p of the ${found.text} so far` +
          (alpha > 0
            ? `, ${narrow ? "of which comes" : "then"} the score that ranks the ${found.text}s: ` +
              `ln p divided by length to the power ${alpha}. `
            : `, which ranks the ${found.text}s. `) +
          `Blue: the ${found.text} chosen in the table. Orange, dotted: greedy search. Pruned ` +
          `${found.token}s with less than 1 % are not shown.`,
      );
    },
  };
}

/** How the search ends: the texts that are left, and others beside them. */
export function beamEnds(widget, text, searched, counted = "") {
  const body = h("tbody");
  const table = h(
    "table.ends",
    h("caption", `How the search ends, best first${counted}`),
    columnHeads("show", text, "ln p", "length", "score"),
    body,
  );
  const verdict = h("p.note");
  const gloss = h("div.gloss", { "data-output": "" });
  const reach = rove(table);
  let now; // what was found, and α
  const rule = (i, cell) => () => {
    const { path, text: decoded, logProb, length } = now.rows[i];
    const own = path.filter(({ ended }) => !ended);
    return cell.cellIndex === 2
      ? logs(`ln p of “${decoded}”:`, own, [...cell.parentElement.cells].slice(1, 2))
      : perLength(
          `Score of “${decoded}”, its ln p divided by length to the power α:`,
          logProb,
          length,
          now.alpha,
          [cell.parentElement.cells[2]],
        );
  };
  const line = (i) =>
    h(
      "tr",
      h(
        "td",
        h("input", {
          type: "radio",
          name: "row",
          change: () => {
            widget.row = i;
            widget.repaint();
          },
        }),
      ),
      h("th", { scope: "row" }),
      h("td"),
      h("td"),
      h("td"),
    );

  return {
    element: results("column", h("div.scroll", table), gloss, verdict),
    shows: "outputs",
    update(inputs, outputs) {
      const found = searched(widget, inputs, outputs);
      if (!found) return;
      const { rows, verdict: message } = found;
      now = { rows, alpha: inputs.alpha };
      const row = rowOf(widget, rows);
      fillList(body, rows, line, (tr, { text: decoded, by, logProb, length, score }, i) => {
        const [pick, sentence, ...numbers] = tr.children;
        setText(sentence, by ? `${by}: ${decoded}` : decoded);
        setAttribute(pick.firstChild, "aria-label", `show the path of ${sentence.textContent}`);
        pick.firstChild.checked = i === row;
        [format(logProb), String(length), score === null ? "" : format(score)].forEach(
          (number, k) => setText(numbers[k], number),
        );
        setAttribute(tr, "data-value", String(logProb));
        for (const [cell, number] of [
          [numbers[0], logProb],
          [numbers[2], score],
        ]) {
          // of texts found in another way not every step is known
          setAttribute(cell, "data-value", String(number));
          if (!by) explainable(widget, cell, rule(i, cell));
          else [cell.explain] = [undefined, cell.removeAttribute("tabindex")];
        }
      });
      reach();
      table.classList.toggle("plain", inputs.alpha === 0); // then the score is ln p
      setText(gloss, found.gloss ? `Word for word: ${found.gloss(rows[row].text)}` : "");
      gloss.hidden = !found.gloss;
      setText(verdict, message);
    },
  };
}

beamTree.style = `
.sideways { position: relative; border: 1px solid var(--line); border-radius: 8px; overflow: hidden;
  }
.sideways::before, .sideways::after { content: ""; position: absolute; inset: 0 auto 0 0;
  width: 1.75rem; z-index: 1; pointer-events: none; opacity: 0;
  background: linear-gradient(to right, var(--ground), transparent); }
.sideways::after { inset: 0 0 0 auto;
  background: linear-gradient(to left, var(--ground), transparent); }
.sideways.before::before, .sideways.after::after { opacity: 1; }
.sideways::before { left: 3.125rem; }
.tree { padding: 3px 8px 5px; margin-left: 3.125rem; max-width: calc(100% - 3.125rem);
  outline-offset: -2px; }
@supports selector(:has(*)) { /* else the fading edges would lie over the ring */
  .sideways:has(.tree:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
  .tree:focus-visible { outline: none; }
}
.canvas { position: relative; font-variant-numeric: tabular-nums; }
.canvas svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible;
  fill: none; }
.canvas path { stroke: var(--line); stroke-width: 1.5; }
path.pruned { stroke-width: 1; }
path.kept { stroke: color-mix(in oklab, var(--line), var(--text) 35%); }
path.shown { stroke: var(--accent); stroke-width: 3.5; }
path.greedy { stroke: var(--vermilion); stroke-width: 3.5; stroke-dasharray: 0.1 7;
  stroke-linecap: round; }
.growing { display: flex; flex-wrap: wrap; gap: 4px 6px; align-items: center; }
.growing .play { min-width: 7.375rem; }
.growing .place { color: var(--soft); font-size: var(--size-note); margin-left: 4px;
  font-variant-numeric: tabular-nums; }
.legend { max-width: none; }
.columns .later, .columns .gone, .columns .faint { visibility: hidden; }
.columns, .columns ol { list-style: none; margin: 0; padding: 0; }
.step { position: absolute; top: 0; width: var(--wide); text-align: center; font-size:
  var(--size-small); color: var(--soft); }
.canvas ol ol li, .root { position: absolute; left: 0; top: 0; width: var(--wide); height: 2.625rem;
  padding: 2px 5px; border: 1px solid var(--line); border-radius: 7px; display: flex; flex-wrap:
  wrap; align-content: center; gap: 0 4px; justify-content: space-between; line-height: 1.3;
  font-size: var(--size-note); contain: strict; ${shaded("probability")} }
.root { margin: 0; top: 1.125rem; width: 3.25rem; color: var(--soft); font-size: var(--size-small);
  }
.canvas li b { flex: 0 0 100%; font-weight: 600; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.canvas li span { font-size: var(--size-small); }
.canvas li span:empty { display: none; }
.narrow ol ol li { padding-inline: 3px; font-size: var(--size-small); }
.narrow ol ol li > span:nth-child(n + 3) { position: absolute; clip-path: inset(50%); }
.canvas .pruned { background: var(--ground); }
.canvas .pruned b { font-weight: 450; }
.canvas .pruned, .canvas .ended { color: var(--soft); }
.canvas li.greedy { border-left: 4px solid var(--vermilion); padding-left: 2px; }
.canvas li.shown { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.canvas li.shown.greedy { border-left-color: var(--vermilion); }
.border { position: absolute; left: 0; right: 0; margin: 0; border-top: 1px dashed var(--line); }
.gutter { position: absolute; inset: 3px auto 5px 0; width: 3.125rem; z-index: 2;
  border-right: 1px solid var(--line); background: var(--ground); }
.gutter span { position: absolute; left: 0; right: 0; text-align: center; line-height: 1;
  font-size: var(--size-small); color: var(--soft); }
.gutter span:not(:first-child) { transform: translateY(-50%); }
.over { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: center; }
.unseen-words { flex: 1 1 15rem; min-width: 0; display: flex; gap: 4px 16px;
  justify-content: space-between; margin: 0; color: var(--soft); font-size: var(--size-note); }
.unseen-words span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.unseen-words .later { margin-left: auto; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
`;
beamEnds.style = `
.sides { --right: 1.9fr; --label: 9.8em; --number: 3.25rem; }
@container widget (min-width: 53.75rem) { .frame { gap: 7px; padding-block: 9px; } }
.ends { font-size: var(--size-note); width: 100%; max-width: 38.75rem; }
.ends td, .ends th { padding: 2px 0 2px 8px; text-align: right; }
.ends tr :first-child { padding-left: 0; width: 2rem; }
.ends td:first-child { line-height: 0; }
.ends caption { white-space: normal; }
.answer-strip .ends tr:nth-child(n + 2) { display: none; }
.ends thead th { font-size: var(--size-small); }
.ends tbody th { max-width: none; white-space: normal; color: var(--text);
  font-size: var(--size-note); }
.ends tr :nth-child(-n+2) { text-align: left; }
.ends.plain :is(td, th):last-child { display: none; }
.gloss { margin: 0; color: var(--soft); font-size: var(--size-note); }
.ends tbody tr { border-top: 1px solid var(--line); }
`;
