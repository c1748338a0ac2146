import { uniform } from "../../live/page/chance.js";
import { chosenAt, lastOf, memoryOf, nodeAfter, nodesOf } from "../../live/page/reading.js";
import { topK } from "../../live/page/search.js";
import { results } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate, scaleFor } from "../../live/ui/candidates.js";
import { action, radio, redraw } from "../../live/ui/controls.js";
import { h, readOnce, setAttribute, setHeat, setLength, setText } from "../../live/ui/dom.js";
import { chance, explainable, partsOf } from "../../live/ui/explain.js";
import { headMaps } from "../../live/ui/heads.js";
import { journey } from "../../live/ui/journey.js";
import { drop } from "../../live/ui/motion.js";
import { format, percent, percentOf, within } from "../../live/ui/numbers.js";
import { folded, live } from "../../live/ui/parts.js";
import { paint } from "../../live/ui/pixels.js";
import { fillList, text, visible } from "../../live/ui/sentences.js";
import {
  attendsMostTo,
  autoContinue,
  beginnings,
  byArrows,
  called,
  fillText,
  followEnd,
  heats,
  likeliestTable,
  nuclei,
  TEXT_STYLE,
  tops,
} from "../../live/ui/texts.js";

// ---------------------------------------------------------------- what is computed

/**
 * Of each branch, how many tokens it has, and which were taken by hand; resolve() of
 * generation.py.
 */
function resolve(branches, room, V) {
  const found = [];
  branches.forEach(([parent, place, token, length], i) => {
    const before = i ? [...found[Math.min(parent, i - 1)].taken].filter(([at]) => at < place) : [];
    const taken = new Map(i ? [...before, [place, Math.min(token, V - 1)]] : []);
    found.push({ length: within(length, [1, room]), taken });
  });
  return found;
}

/** What torch does in a kernel, in compute() of generation.py. */
export async function program(run, values, spec, partly = (_make) => {}) {
  const { prompt, temperature, k, p, seed, branches, branch, place } = values;
  const [V] = spec.limits.V;
  const maxLen = spec.facts.max_len;
  const room = maxLen - prompt.length;
  const numbers = uniform(seed, room);
  const memory = memoryOf(spec);

  const knobs = [temperature, k, p];
  const writeOne = async ({ length, taken }, each) => {
    const key = JSON.stringify([prompt, knobs, seed, [...taken], length]);
    if (memory.written.has(key)) return memory.written.get(key);
    const [nodes, ids, choices] = [nodesOf(memory, prompt), [...prompt], []];
    for (let n = 0; n < length; n += 1) {
      const node = nodes.at(-1);
      const isNew = !node.last;
      const last = await lastOf(run, memory, spec, nodes, ids);
      const chosen = await chosenAt(run, node, last, { temperature, k, p }, numbers[n]);
      const token = taken.get(n) ?? chosen.token;
      choices.push({ token, surprise: -last.logProbs[token], last, chosen });
      ids.push(token);
      nodes.push(nodeAfter(memory, node, token));
      if (isNew) each(choices); // else the text would shrink to what is remembered, and grow again
    }
    if (memory.written.size > 100) memory.written.clear();
    memory.written.set(key, choices);
    return choices;
  };

  const todo = resolve(branches, room, V);
  const shown = Math.min(branch, todo.length - 1);
  const written = todo.map(() => []);
  const results = () => {
    const choices = written[shown];
    const at = place > 0 && place <= choices.length ? place - 1 : choices.length - 1;
    const { last, chosen } = choices[at];
    const widest = Math.max(...written.map((one) => one.length));
    return {
      given: prompt,
      shown,
      at,
      logits: last.logits,
      processed: chosen.processed,
      adjusted: chosen.adjusted,
      attention: last.attention,
      tokens: choices.map(({ token }) => token),
      surprise: choices.map(({ surprise }) => surprise),
      probabilities: Array.from(last.logProbs, Math.exp),
      texts: written.map((one) => Array.from({ length: widest }, (_, n) => one[n]?.token ?? -1)),
      totals: written.map((one) => one.reduce((sum, { surprise }) => sum + surprise, 0)),
    };
  };
  written[shown] = await writeOne(todo[shown], (choices) => {
    written[shown] = choices;
    partly(results);
  });
  for (const [i, one] of todo.entries())
    if (i !== shown) written[i] = await writeOne(one, () => {});
  return results();
}

// ---------------------------------------------------------------- what was written

/** The text as far as it is written, and all of the choice that is shown. */
const readBy = readOnce(readingOf);

function readingOf({ spec }, outputs) {
  const { given, shown, tokens, surprise, at, attention, texts, totals } = outputs;
  const vocabulary = spec.sentences.prompt;
  const [[L, H, S], [, W]] = [attention.shape, texts.shape];
  const [T, N] = [given.data.length, tokens.data.length];
  return {
    L,
    H,
    S,
    T,
    N,
    vocabulary,
    prompt: Array.from(given.data, (id) => vocabulary[id]).join(""),
    shown: shown.data[0],
    at: at.data[0],
    tokens: tokens.data,
    names: [...given.data, ...tokens.data].map((id) => vocabulary[id]),
    surprise: surprise.data,
    before: outputs.probabilities.data,
    logits: outputs.logits.data,
    processed: outputs.processed.data,
    after: outputs.adjusted.data,
    attentionRow: (head) => attention.data.subarray(head * S, (head + 1) * S),
    branch: (i) => Array.from(texts.data.subarray(i * W, (i + 1) * W)).filter((id) => id >= 0),
    totals: totals.data,
  };
}

const one = (length) => [[0, 0, 0, length]]; // the text as it is drawn, and no other branch
const lengthOf = ({ branches, branch }) => branches[Math.min(branch, branches.length - 1)][3];

/** After a change that concerns the whole text, the other branches are out of date. */
function resetBranches(next) {
  [next.branches, next.branch] = [one(lengthOf(next)), 0];
}

/** How many tokens the branch that is shown has, once it is written. */
function wanted({
  inputs,
  spec: {
    facts: { max_len: maxLen },
  },
}) {
  return within(lengthOf(inputs), [1, maxLen - [...inputs.prompt].length]);
}

/** Whether the text that is shown is whole: it may be on its way. */
function isWhole(widget) {
  const { prompt, N } = readBy(widget);
  return prompt === widget.inputs.prompt && N === wanted(widget);
}

/** Other luck. */
function luck(widget) {
  const label = h("span");
  return {
    element: h("div.luck", label, redraw(widget, "New draw", resetBranches)),
    shows: "inputs",
    update({ seed }) {
      setText(label, `draw ${seed}`);
    },
  };
}

// ---------------------------------------------------------------- writing on

/** Writes on until the context is full. */
function writer(widget) {
  const { spec } = widget;
  const { max_len: maxLen } = spec.facts;
  const count = h("span.count");
  const go = h("button", { class: "main", "data-input": "branches" }, "Write on");
  const written = autoContinue(widget, go, (field) => {
    if (!isWhole(widget)) return false;
    const length = wanted(widget) + 1;
    const { T, N } = readBy(widget);
    if (T + N >= maxLen) {
      return (
        `The context is full: the model reads ${maxLen} characters at most. Shorten the ` +
        `prompt, or take a new draw.`
      );
    }
    widget.edit(field, (next) => {
      next.branches[Math.min(next.branch, next.branches.length - 1)][3] = length;
      next.place = 0; // the reader sees each choice as it is made
    });
    return true;
  });
  return {
    element: results("column", h("div.onward", go, written.halt, count), written.note),
    reset: () => written.stop(),
    update() {
      const { T, N } = readBy(widget);
      setText(count, `${T} + ${N} of ${maxLen} characters, ${maxLen - T - N} left`);
      setAttribute(go, "aria-disabled", String(T + N >= maxLen)); // it keeps the focus
      written.update();
    },
  };
}

// ---------------------------------------------------------------- the text

/** The head that is shown on the text: a step's or the reader's, else the one that is offered. */
const headOf = (widget) => widget.shown?.head ?? widget.head ?? widget.spec.facts.head;

function choose(widget, place) {
  const { N } = readBy(widget);
  widget.edit("place", (next) => {
    next.place = place === N - 1 ? 0 : place + 1;
  });
}

/**
 * Prompt and text; a character that was written can be chosen, and the tints tell what a head
 * attends to.
 */
function page(widget) {
  const before = h("span.given");
  const line = h("span.own", {
    role: "listbox",
    tabindex: "0",
    "data-input": "place",
    "aria-label": "what it writes: choose a character by the arrow keys",
    keydown: (event) => {
      const { at, N } = readBy(widget);
      const to = byArrows(event, at, N - 1);
      if (to !== undefined) choose(widget, to);
    },
    click: ({ target }) => {
      if (target.place !== undefined) choose(widget, target.place);
    },
  });
  widget.tables.set("page", () => [[...before.children, ...line.children]]);
  const note = h("p.note.looks");
  const box = h("div.text.page", { dir: "auto" }, before, line);
  const follow = followEnd(box);
  const option = (place) =>
    Object.assign(h("span", { role: "option", id: `written-${place}` }), { place });
  const element = results(
    "column",
    h("span.label", "What it writes: click a character, or choose one by the arrow keys"),
    box,
    note,
  );
  return {
    element,
    reset() {
      widget.head = undefined;
    },
    update() {
      const { names, T, S, H, at, attentionRow } = readBy(widget);
      const head = headOf(widget);
      const row = attentionRow(head);
      const heated = (item, t) => {
        setHeat(item, t < S ? Math.sqrt(row[t]) : 0);
        return t === T + at ? " at" : t === S - 1 ? " from" : t > S ? " later" : "";
      };
      fillText(before, { names: names.slice(0, T), first: 0 }, "span", heated);
      fillText(line, { names: names.slice(T), first: 0 }, option, (item, n) => {
        setAttribute(item, "aria-selected", String(n === at));
        setAttribute(item, "aria-label", visible(names[T + n]));
        return heated(item, T + n);
      });
      follow(names);
      setAttribute(line, "aria-activedescendant", `written-${at}`);
      setText(
        note,
        `Tinted: what block ${Math.floor(head / H)}, head ${head % H} attends to when ` +
          `${called(names[T + at])} is chosen, ` +
          `from ${called(names[S - 1])}, the last character read. ` +
          `${attendsMostTo(names, row, S - 1)}`,
      );
    },
  };
}

const COLUMNS = 32; // of a head's picture: the text so far, row by row

/** What all the heads attend to. */
function heads(widget) {
  return headMaps({
    output: "attention",
    label: `The text before it, ${COLUMNS} characters a row`,
    read: () => readBy(widget),
    chosen: () => headOf(widget),
    choose(i) {
      widget.head = i;
      widget.shown = undefined;
      widget.repaint("outputs");
    },
    draw({ canvas, fresh }, view, i) {
      if (!fresh(view)) return;
      paint(canvas, view.attentionRow(i), COLUMNS, { ink: "weight", root: true });
      setAttribute(canvas, "aria-label", `weights on ${view.S} characters`);
    },
  });
}

// ---------------------------------------------------------------- one choice

const CANDIDATES = 10;

/** How many characters may be drawn; what is stored is rounded, and may be 0. */
function drawable({ temperature, k, p }, after) {
  const all = temperature > 0 && k >= after.length && p >= 1;
  return all ? after.length : after.filter((share) => share > 0).length;
}

/** What the chosen character was drawn from; a click on another one takes it instead. */
function candidates(widget) {
  const label = h("span.label");
  const list = candidateList("candidates: by the model, and after the knobs");
  widget.tables.set("next", () => [[...list.children].map((li) => li.firstChild)]);
  const cut = h("p.note.cut-mass");
  const full = h("span.full");
  const make = (place) => {
    const id = () => list.children[place].token;
    const button = candidateLine(
      "button",
      { "data-input": "branches branch place", click: () => take(widget, id()) },
      { bars: 2 },
    );
    const rule = () => {
      const { processed, vocabulary } = readBy(widget);
      const what = `Probability of ${called(vocabulary[id()])} after the knobs:`;
      return chance(what, processed, id(), list.querySelectorAll(".bar.q"));
    };
    explainable(widget, button, rule, () => readBy(widget).after[id()]);
    return h("li", button);
  };
  return {
    element: results(
      "column",
      label,
      h(
        "p.key",
        { style: "--bars: 2" },
        h("i.bar.p"),
        " by the model, ",
        h("i.bar.q"),
        " after the knobs; click another one to take it",
        full,
      ),
      list,
      cut,
    ),
    update() {
      const { before, after, vocabulary, names, tokens, T, at } = readBy(widget);
      const own = tokens[at];
      const best = topK(before, CANDIDATES);
      if (!best.includes(own)) best[CANDIDATES - 1] = own;
      setText(label, `${called(names[T + at])}, character ${at + 1}, was chosen from`);
      const most = scaleFor(best.flatMap((id) => [before[id], after[id]]));
      setText(full, `full bar: ${100 * most} %`);
      const left = drawable(widget.inputs, after);
      const stays = (id) => left === vocabulary.length || after[id] > 0; // stored ones are rounded
      fillList(list, best, make, (li, id) => {
        li.token = id;
        const [name, shares] = [visible(vocabulary[id]), [before[id], after[id]]];
        const message = [percentOf(before[id]), stays(id) ? percentOf(after[id]) : "cut"];
        fillCandidate(li.firstChild, name, shares, message, name !== vocabulary[id], most);
        setAttribute(li, "class", `${stays(id) ? "" : "cut"}${id === own ? " taken" : ""}`);
        setAttribute(li.firstChild, "aria-pressed", String(id === own));
      });
      const gone = before.reduce((mass, share, id) => (stays(id) ? mass : mass + share), 0);
      setText(
        cut,
        left === vocabulary.length
          ? `All ${left} characters may be drawn.`
          : `${left} of ${vocabulary.length} characters may be drawn; the model had given the ` +
              `others ${percent(gone)} together.`,
      );
    },
  };
}

/** Another token at the chosen place: the branch that has it, or a new one. */
function take(widget, token) {
  const { at, tokens, shown, branch } = readBy(widget);
  if (tokens[at] === token) return;
  const { inputs } = widget;
  const [, most] = widget.spec.limits.M;
  const same = inputs.branches.findIndex((_, i) => {
    const text = branch(i);
    return text[at] === token && text.slice(0, at).every((id, n) => id === tokens[n]);
  });
  if (same < 0 && inputs.branches.length === most) {
    widget.announce(
      `There is room for ${most} branches: forget them, and begin with the first again.`,
    );
    return;
  }
  widget.edit(Symbol("take"), (next) => {
    if (same < 0) next.branches.push([shown, at, token, Math.max(lengthOf(next), at + 1)]);
    next.branch = same < 0 ? next.branches.length - 1 : same;
    next.place = at + 1;
  });
}

/** The line from 0 to 1, cut into the probabilities, and where u fell. */
function fall(widget) {
  const strip = h("div.strip", { "aria-hidden": "true" });
  const arrow = h("i.u");
  const note = h("p.note.fell");
  let fallen; // where u fell last
  return {
    element: results(
      "column",
      h("span.label", "Where u fell, on the line from 0 to 1"),
      h("div.line", strip, arrow),
      note,
    ),
    update({ seed }) {
      const { after, vocabulary, tokens, at } = readBy(widget);
      const u = uniform(seed, at + 1)[at];
      const pieces = [];
      let end = 0;
      after.forEach((share, id) => {
        if (share) pieces.push({ id, share, start: end });
        end += share;
      });
      const hit = pieces.findLast(({ start }) => start <= u * end);
      fillList(strip, pieces, "span", (span, { id, share }) => {
        setLength(span, share);
        setText(
          span,
          share > 0.035
            ? visible(vocabulary[id]).replace("space", "␣").replace("new line", "↵")
            : "",
        );
        setAttribute(span, "class", id === hit.id ? "hit" : "");
      });
      setAttribute(arrow, "style", `left: ${(100 * u).toFixed(2)}%`);
      setAttribute(arrow, "data-value", String(Math.fround(u)));
      const again = fallen !== undefined && fallen !== u && !widget.streams;
      fallen = u;
      if (again) drop(arrow, strip.querySelector(".hit"));
      const [from, to] = [hit.start, hit.start + hit.share].map((number) => number.toFixed(3));
      const fell =
        `u = ${u.toFixed(4)} fell on ${called(vocabulary[hit.id])}, from ${from} to ` + `${to}`;
      setText(
        note,
        tokens[at] === hit.id
          ? `${fell}.`
          : `${fell}; you took ${called(vocabulary[tokens[at]])} instead.`,
      );
    },
  };
}

// ---------------------------------------------------------------- one step, followed

const SHOWN = 5; // candidates whose numbers are shown

/** The character that was read last, what it led to, and what was drawn from that. */
function followed(widget) {
  const view = readBy(widget);
  const { T, S, at, names, before, vocabulary } = view;
  return {
    ...view,
    read: called(names[S - 1]),
    chosen: called(names[T + at]),
    best: topK(before, Math.min(SHOWN, vocabulary.length)),
    afterPrompt: S > T, // else the prompt is read, all at once
    widget,
    inputs: widget.inputs,
    code: widget.spec.facts.code,
  };
}

const characterAt = (t) => ({ name: "page", row: 0, column: t });

const STEPS = [
  ({ S, read, chosen, afterPrompt, code }) => ({
    message:
      `${chosen} is chosen from what follows ${read}, character ${S}. ` +
      (afterPrompt
        ? `The model is fed ${read} alone: the ${S - 1} before it were read in earlier steps.`
        : `This is the first step, so the prompt is read: all ${S} characters at once.`),
    lit: [characterAt(S - 1)],
    code: code.read,
  }),
  ({ S, L, read, afterPrompt, code }) => ({
    message:
      `In each of the ${L} blocks ${read} gets a query, a key and a value` +
      (afterPrompt ? "." : `, and so does each of the ${S - 1} characters before it.`),
    lit: [characterAt(S - 1)],
    code: code.project,
  }),
  ({ S, read, afterPrompt, code }) => ({
    message:
      (afterPrompt
        ? `Its key and its value are put behind the ${S - 1} that were kept, so that there are ` +
          `${S}.`
        : `The ${S} keys and values are kept for the steps to come.`) +
      ` The query of ${read} is needed only now, so no query is kept.`,
    lit: [characterAt(S - 1)],
    code: code.append,
  }),
  ({ widget, L, H, S, names, read, attentionRow, code }) => {
    const found = Array.from({ length: L * H }, (_, head) => {
      const [most] = topK(attentionRow(head), 1);
      return { head, most, weight: attentionRow(head)[most] };
    }).sort((a, b) => b.weight - a.weight);
    const [{ head, most, weight }] = found;
    const whose = (i) => `block ${Math.floor(i / H)}, head ${i % H}`;
    return {
      message:
        `The query of ${read} meets all ${S} keys, none of which comes later, so that no mask is ` +
        `needed. The largest weight is ${format(weight)}, which ${whose(head)} gives to ` +
        `${most === S - 1 ? `${read} itself` : called(names[most])}.`,
      lit: [characterAt(most), characterAt(S - 1)],
      moves: most < S - 1 ? [{ from: characterAt(most), to: characterAt(S - 1) }] : [],
      shows: { head },
      fills: [partsOf(widget, ".heads .small, .looks")],
      code: code.attend,
      table: {
        labels: found
          .slice(0, SHOWN)
          .map((one) => `${whose(one.head)}: ${called(names[one.most])}`),
        rows: [{ name: "largest weight", numbers: found.slice(0, SHOWN).map((one) => one.weight) }],
      },
    };
  },
  (view) => {
    const { S, read, vocabulary, best, logits, before, code } = view;
    return {
      message:
        `Only the vector of ${read} is turned into logits, ${vocabulary.length} of them. By the ` +
        `model ${called(vocabulary[best[0]])} is the likeliest, with ` +
        `${percentOf(before[best[0]])}.`,
      lit: [characterAt(S - 1)],
      fills: [{ name: "next" }],
      code: code.last,
      table: likeliestTable(view, { logit: logits, probability: before }),
    };
  },
  (view) => {
    const { widget, before, after, vocabulary, inputs, code } = view;
    const { temperature } = inputs;
    const left = drawable(inputs, after);
    const idle = temperature === 1 && left === vocabulary.length;
    return {
      message: idle
        ? "Temperature, top-k and top-p stand so that they change nothing: it is drawn from the " +
          "model's own probabilities."
        : `Temperature, top-k and top-p leave ${left} of ${vocabulary.length} characters, and ` +
          "their probabilities sum to 1 again.",
      lit: [{ name: "next", row: 0, column: 0 }],
      fills: [partsOf(widget, ".nexts .q, .cut-mass")],
      code: code.process,
      table: likeliestTable(view, { "by the model": before, "after the knobs": after }),
    };
  },
  ({ widget, at, tokens, vocabulary, after, chosen, T, inputs: { seed }, code }) => {
    const u = uniform(seed, at + 1)[at];
    const own = after[tokens[at]];
    const certain = after.some((share) => share === 1);
    return {
      message:
        (certain
          ? "There is nothing to draw, because only the likeliest is left. "
          : `A random number between 0 and 1 falls on one of them: u = ${u.toFixed(4)}. `) +
        (own
          ? `${chosen} is written, which had ${percent(own)}.`
          : `You have taken ${chosen} of the ${vocabulary.length} instead.`),
      lit: [characterAt(T + at)],
      fills: [characterAt(T + at), partsOf(widget, ".line:has(.strip), .fell")],
      code: code.draw,
    };
  },
  ({ widget, T, at, S, chosen }) => ({
    message:
      `Now ${chosen} is the last character, and the next step feeds it to the model: ` +
      `one character instead of ${S + 1}, because ${S} keys and values are there already.`,
    lit: [characterAt(T + at)],
    fills: [partsOf(widget, `.own > :nth-child(n + ${at + 1})`)],
    code: undefined,
  }),
];

const name = (widget) => (widget.model.get("outputs") ? followed(widget).read : "a character");

// ---------------------------------------------------------------- the branches

const FIRST = 18; // characters of a branch that are shown

/** All texts: as it was drawn, and those that began where another character was taken. */
function tree(widget) {
  const list = h("div.branches", { role: "radiogroup", "aria-label": "the branch that is shown" });
  const forget = action(widget, "branches branch place", "Forget the branches", (next) => {
    [next.branches, next.branch, next.place] = [next.branches.slice(0, 1), 0, 0];
  });
  const make = (i) =>
    h("label.pick.branch", radio(widget, "branch", i), h("span.begins"), h("span.sum"));
  const element = results("column", h("span.label", "Branches"), list, forget);
  let kept = []; // texts and totals: what is still on its way shows what it was
  return {
    element,
    update({ branches, branch }) {
      const { branch: textOf, totals, vocabulary } = readBy(widget);
      element.hidden = branches.length < 2;
      if (element.hidden) {
        kept = [];
        return;
      }
      kept = branches.map((_, i) => {
        const ids = i < totals.length ? textOf(i) : [];
        return ids.length ? { ids, total: totals[i] } : (kept[i] ?? { ids: [], total: 0 });
      });
      const earliest = Math.min(...branches.slice(1).map(([, place]) => place));
      fillList(list, branches, make, (label, [, place], i) => {
        const { ids, total } = kept[i];
        const [button, begins, sum] = label.children;
        button.checked = i === Math.min(branch, branches.length - 1);
        label.classList.toggle("chosen", button.checked);
        const from = i ? place : earliest;
        const words = ids
          .slice(from, from + FIRST)
          .map((id) => vocabulary[id])
          .join("")
          .replaceAll("\n", "↵");
        label.style.setProperty("--depth", depthOf(branches, i));
        setText(begins, `${i ? `${i}, from character ${from + 1}` : "as drawn"}: “${words}…”`);
        setText(
          sum,
          `−ln p = ${total.toFixed(1)} over ${ids.length}, ` +
            `${format(total / Math.max(1, ids.length))} each`,
        );
        setAttribute(sum, "data-value", String(total));
      });
    },
  };
}

/** How many branches lie between this one and the text as it was drawn. */
function depthOf(branches, i) {
  return i ? 1 + depthOf(branches, Math.min(branches[i][0], i - 1)) : 0;
}

luck.style = `
.luck { display: flex; flex-wrap: wrap; gap: 2px 10px; align-items: center; white-space: nowrap;
  font-size: var(--size-note); font-variant-numeric: tabular-nums; }
`;
writer.style = `
.onward { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; font-size:
  var(--size-note); color: var(--soft); font-variant-numeric: tabular-nums; }
.main { min-width: 5.75rem; }
.told:empty { display: none; }
`;
page.style = `${TEXT_STYLE}
.page { height: 11.375rem; overflow-y: auto; }
@container widget (min-width: 53.75rem) {
  .page { height: 9.375rem; }
}
.t.lit, .candidate.lit { outline: 2px solid var(--accent); outline-offset: -1px; }
.page:has(.own:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
.looks { min-height: 4.8em; }
.page:has(+ [data-yet]) .t { --tl-heat: 0 !important; }
.given { color: var(--soft); cursor: default; }
.given .t { color: inherit; }
.own { outline: none; }
.t.from { box-shadow: inset 0 -2px var(--accent); }
`;
heads.style = `${headMaps.style}
.small .pixel-map { aspect-ratio: 2; }
`;
candidates.style = `${candidateList.style}
.cut-mass { min-height: 3.2em; }
@container widget (min-width: 53.75rem) {
  .cut-mass { min-height: 1.6em; max-width: none; }
  .candidate { min-height: 1.5625rem; }
}
.key { margin: 0; font-size: var(--size-small); color: var(--soft); }
.key .full { float: right; }
.key .bar { display: inline-block; width: 1.375rem; height: 8px; vertical-align: baseline; }
.nexts .taken button { border-color: var(--accent); }
.cut .token { text-decoration: line-through; text-decoration-thickness: 1.5px; color: var(--soft); }
.nexts .cut .share.q { color: var(--soft); font-style: italic; }
.cut .bars { background: repeating-linear-gradient(135deg, transparent 0 4px, color-mix(in oklab,
  var(--ground), var(--line) 60%) 4px 5px); }
`;
fall.style = `
.line { position: relative; padding-top: 9px; }
.strip { display: flex; height: 1.625rem; border-radius: 4px; overflow: hidden;
  border: 1px solid var(--line); }
.strip span { box-shadow: inset -1px 0 var(--ground);
  background: color-mix(in oklab, var(--ground), var(--line) 50%); font-size: var(--size-small);
  line-height: 1.5625rem; text-align: center; overflow: hidden; flex: none; }
.strip .hit { background: color-mix(in oklab, var(--ground), var(--probability) 55%);
  font-weight: 650; }
.fell { min-height: 3.2em; }
@container widget (min-width: 53.75rem) { .fell { min-height: 1.6em; max-width: none; } }
.u { position: absolute; top: 0; bottom: -2px; width: 2px; margin-left: -1px;
  background: var(--text); }
.u::before { content: ""; position: absolute; left: -4px; border: 5px solid transparent;
  border-top: 7px solid var(--text); border-bottom: 0; }
`;
tree.style = `
.column > button { align-self: flex-start; margin-top: 2px; }
.branches { display: grid; gap: 4px; }
.branch { display: flex; flex-wrap: wrap; gap: 2px 10px;
  margin-left: min(calc(1.125rem * var(--depth, 0)), 20%); }
.branch .begins { flex: 1 1 11.25rem; overflow-wrap: anywhere; }
.branch .sum { color: var(--soft); font-size: var(--size-note); font-variant-numeric: tabular-nums;
  }
`;

export default live(
  "A GPT writes, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ui.column(
          ui.use(text, "prompt", "Prompt", resetBranches),
          ui.use(beginnings, "prompt", "prompts", resetBranches),
        ),
        ui.knobs(
          ui.knob("temperature", "temperature", { step: 0.05, also: resetBranches, note: heats }),
          ui.knob("k", "top-k", {
            also: resetBranches,
            note: (k, _, { spec }) => tops(k, spec.limits.V[1]),
          }),
          ui.knob("p", "top-p", { step: 0.01, also: resetBranches, note: nuclei }),
        ),
        ui.row(ui.use(writer), ui.use(luck)),
        ui.use(page),
      ),
      ui.boxed(
        "side",
        ui.use(candidates),
        ui.use(journey, { name, steps: STEPS, follow: followed, beside: ".side > .column" }),
        ui.use(fall),
        ui.use(folded, "What all heads attend to", ui.use(heads)),
        ui.explanation(),
      ),
    ),
    ui.use(tree),
  ],
  { wide: true, answer: ".page" },
);
