import { uniform } from "../../live/page/chance.js";
import { columnHeads, resized, results } from "../../live/ui/boxes.js";
import { action, choice, redraw } from "../../live/ui/controls.js";
import { h, setAttribute, setLength, setText } from "../../live/ui/dom.js";
import { chance, explainable, rove, sum } from "../../live/ui/explain.js";
import { knob } from "../../live/ui/knobs.js";
import { drop } from "../../live/ui/motion.js";
import { formatExact, percent } from "../../live/ui/numbers.js";
import { folded, live } from "../../live/ui/parts.js";
import { fillList, visible } from "../../live/ui/sentences.js";
import { called, heats, nuclei, tops } from "../../live/ui/texts.js";

const DRAWS = 100; // as in sampling.py
const SHOWN = 10;
const STAGES = ["model", "temperature", "top-k", "top-p"];

/** What torch does in a kernel, in compute() of sampling.py. */
export async function program(run, { logit, which, temperature, k, p, u, seed }, { facts }) {
  const logits = facts.distributions[which]?.logits ?? logit;
  const us = uniform(seed, DRAWS);
  return { shown: which, ...(await run("sampling-chain", { logits, temperature, k, p, u, us })) };
}

// ---------------------------------------------------------------- what was computed

/** The tokens' names, those of a vocabulary or the reader's own, and how many there are. */
function namesOf({ spec }, { which, words }) {
  const real = spec.facts.distributions[which];
  return real ? spec.vocabularies[real.kind].slice(0, real.logits.length) : words;
}

/**
 * All that the outputs say, token by token; null while the answer to another choice still stands.
 * `rows` are the likeliest tokens, and last, if there are more, all others together.
 */
function viewOf(widget, inputs, outputs) {
  const names = namesOf(widget, inputs);
  const V = outputs.ends.data.length;
  if (outputs.shown.data[0] !== inputs.which || V !== names.length) return null;
  const stage = (i, id) => outputs.stages.data[i * V + id];
  const token = outputs.token.data[0];
  const order = []; // likeliest first
  outputs.rank.data.forEach((place, id) => {
    order[place] = id;
  });
  const rows = order.slice(0, SHOWN).map((id) => ({
    ids: [id],
    name: visible(names[id]),
    unseen: visible(names[id]) !== names[id],
    others: false,
    left: undefined,
    hit: id === token,
    shares: STAGES.map((_, i) => stage(i, id)),
    expected: outputs.expected.data[id],
    drawn: outputs.drawn.data[id],
  }));
  if (V > SHOWN) {
    const rest = Array.from(outputs.rest.data);
    const left = STAGES.map(
      (_, i) => outputs.left.data[i] - rows.filter(({ shares }) => shares[i] > 0).length,
    );
    rows.push({
      ids: order.slice(SHOWN),
      name: othersOf(V - SHOWN),
      unseen: false,
      others: true,
      hit: !rows.some(({ hit }) => hit),
      left,
      shares: rest.slice(0, 4),
      expected: rest[4],
      drawn: rest[5],
    });
  }
  const ends = outputs.ends.data;
  const segments = names
    .map((name, id) => ({ id, name: visible(name), from: id ? ends[id - 1] : 0, to: ends[id] }))
    .filter(({ id }) => stage(3, id) > 0);
  const [count, mass, entropy] = ["left", "mass", "entropy"].map((name) =>
    Array.from(outputs[name].data),
  );
  const hit = segments.find(({ id }) => id === token);
  return { V, names, stage, rows, segments, hit, count, mass, entropy };
}

const othersOf = (count) => `${count} ${count === 1 ? "other" : "others"}`;
const nats = (value) => Math.abs(value).toFixed(2);

// ---------------------------------------------------------------- which distribution

/** What each group of distributions is called, by its kind. */
const KINDS = {
  characters: "The next character, by the GPT of Shakespeare, after",
  words: "The next word, by the GPT of stories, after",
  own: "Or logits of",
};

/** The distributions, in groups: those of the models, each after its text, and the reader's own. */
function grouped(distributions) {
  const tail = (text) => {
    const plain = text.replaceAll("\n", "↵");
    return plain.length > 22 ? `… ${plain.slice(-18).trimStart()}` : plain;
  };
  const entries = distributions.map(({ prompt, note, kind }, value) => ({
    kind,
    value,
    title: tail(prompt),
    about: note,
  }));
  entries.push({
    kind: "own",
    value: entries.length,
    title: "your own",
    about: "up to eight words",
  });
  const of = (name) => entries.filter(({ kind }) => kind === name);
  return Object.fromEntries(Object.entries(KINDS).map(([kind, title]) => [title, of(kind)]));
}

const distributions = (widget) =>
  choice(widget, "which", "the distribution", grouped(widget.spec.facts.distributions));

/** What the chosen distribution is. */
function after(widget) {
  const line = h("p.note.after-all");
  return {
    element: line,
    shows: "inputs",
    update({ which, words }) {
      const one = widget.spec.facts.distributions[which];
      setText(
        line,
        one
          ? `After “${one.prompt.replaceAll("\n", "↵")}” the model gives each of its ` +
              `${one.logits.length} ${one.kind} a logit, here to two decimals.`
          : `Your ${words.length === 1 ? "word" : `${words.length} words`}, each with its logit.`,
      );
    },
  };
}

/** The reader's own words and logits, there while they are chosen. */
function own(widget, words) {
  const list = h("ol.logits", { "aria-label": "logits" });
  const knobs = []; // one for each row
  const make = (i) => {
    knobs[i] = knob(widget, "logit", (inputs) => inputs.words[i], {
      entry: i,
      named: (inputs) => `the logit of ${inputs.words[i]}`,
      ends: [-5, 5],
      step: 0.1,
    });
    return h("li", knobs[i].element);
  };
  const element = h("div.column.own", words.element, list);
  return {
    element,
    shows: "inputs",
    update(inputs) {
      element.hidden = inputs.which !== widget.spec.facts.distributions.length;
      fillList(list, inputs.words, make, (_li, _word, i) => knobs[i].update(inputs));
    },
  };
}

/** Logits keep pace with the words: a new one's is 0. */
function keepLogits(next, at, count, length) {
  const kept = next.logit.slice(at, at + Math.min(count, length));
  next.logit.splice(at, count, ...kept, ...Array(length - kept.length).fill(0));
}

// ---------------------------------------------------------------- the chain

const AFTER = ["by the model", "after the temperature", "after top-k", "after top-p"];

/** Where the probability in this row comes from that stands in column `i`, after that step. */
function explainShare(widget, body, row, i) {
  const { inputs, spec } = widget;
  const now = viewOf(widget, inputs, widget.readOutputs());
  if (!now?.rows[row]) return undefined; // the answer is still on its way
  const { V, names, stage, rows, count } = now;
  const { ids, others } = rows[row];
  const [id] = ids;
  const name = others ? `all ${othersOf(ids.length)} together` : called(names[id]);
  const what = `Probability of ${name} ${AFTER[i]}`;
  const stays = (one) => stage(i, one) > 0;
  /** The cells of a column whose tokens are left. */
  const cells = (column) =>
    rows.flatMap((one, at) => (one.ids.some(stays) ? [body.rows[at].cells[column + 1]] : []));
  const shares = { unit: "%", figure: percent };
  if (i > 1 && !ids.some(stays)) {
    const already = ids.every((one) => stage(i - 1, one) === 0);
    const why = already
      ? `because top-k cut ${others ? "them" : "it"} already`
      : i === 2
        ? `because ${others ? "they are" : "it is"} not among the k = ${inputs.k} likeliest`
        : `because the likelier tokens together reach p = ${formatExact(inputs.p)}`;
    return { kind: "said", what: `${what} is 0, ${why}.`, lit: [{ cells: cells(i) }] };
  }
  if (others) {
    const terms = ids.filter(stays).map((one) => [stage(i, one)]);
    return sum(`${what}:`, terms, undefined, {
      ...shares,
      lit: [{ cells: [body.rows[row].cells[0]] }],
    });
  }
  const lit = [{ cells: cells(Math.max(0, i - 1)) }];
  if (i > 1) {
    const left = Array.from({ length: V }, (_, one) => one).filter(stays);
    const total = left.reduce((mass, one) => mass + stage(i - 1, one), 0);
    return sum(
      `${what}, which is its share of what the ${count[i]} tokens left had:`,
      [[stage(i - 1, id)]],
      undefined,
      { ...shares, by: { value: total, name: percent(total) }, lit },
    );
  }
  const logits = spec.facts.distributions[inputs.which]?.logits ?? inputs.logit;
  if (i === 0) return chance(`${what}:`, logits, id, cells(0));
  const { temperature } = inputs;
  if (temperature > 0) {
    const scores = logits.map((z) => z / temperature);
    return { ...chance(`${what}:`, scores, id, cells(0)), called: "z / τ" };
  }
  const zero = `${what}, which is 0,`;
  if (!stays(id))
    return { kind: "said", what: `${zero} is 0, because another token is likelier.`, lit };
  const by = { value: count[1], name: String(count[1]) };
  const more = { unit: "%", figure: String, by, lit };
  return sum(`${zero} so that the likeliest tokens share all of it:`, [[1]], undefined, more);
}

/**
 * The likeliest tokens after each step, a column each; what is cut is struck out where it is cut.
 */
function steps(widget) {
  const HEADS = [
    ["model", "softmax(z)"],
    ["temper\u00adature", "softmax(z / τ)"], // on a phone it takes two lines
    ["top-k", "renormalised"],
    ["top-p", "renormalised"],
  ];
  const body = h("tbody");
  const total = (kind, name) =>
    h(
      "tr",
      { class: `total ${kind}`, "data-output": kind },
      h("th", { scope: "row" }, name),
      ...STAGES.map(() => h("td")),
    );
  const feet = [
    total("left", "tokens left"),
    total("mass", "mass not cut"),
    total("entropy", "entropy, nats"),
  ];
  const table = h(
    "table.chain",
    h("caption", "Step by step, likeliest first"),
    columnHeads(null, ...HEADS.map(([name, formula]) => [h("b", name), h("span", formula)])),
    body,
    h("tfoot", ...feet),
  );
  const message = h("p.note.verdict", { role: "status" });
  const broken = h(
    "p.broken-key",
    h("span", { "aria-hidden": "true" }, h("i.broken")),
    "A bar with a gap is cut short: the others together are too many for the scale.",
  );
  const reach = rove(table);
  const make = (row) => {
    const cells = STAGES.map((_, i) => {
      const cell = h("td", h("i"), h("span"));
      explainable(widget, cell, () => explainShare(widget, body, row, i));
      return cell;
    });
    return h("tr", h("th", { scope: "row" }), ...cells);
  };
  return {
    element: results("column", table, broken, message),
    update(inputs, outputs) {
      const now = viewOf(widget, inputs, outputs);
      if (!now) return;
      const most = scaleOf(now.rows);
      broken.hidden = !now.rows.some(({ shares }) => shares.some((share) => share > most));
      fillList(body, now.rows, make, (tr, { name, unseen, others, hit, shares, left }) => {
        setText(tr.firstChild, name);
        setAttribute(
          tr,
          "class",
          [hit && "hit", unseen && "unseen", others && "others"].filter(Boolean).join(" "),
        );
        shares.forEach((share, i) => {
          const cell = tr.children[i + 1];
          const [bar, text] = cell.children;
          const before = i > 0 ? shares[i - 1] : share;
          const cut = share === 0 && before > 0 && i > 1;
          const length = (cut ? before : share) / most; // in units of the scale
          const drawn = Math.min(1, length).toFixed(3);
          if (bar.style.getPropertyValue("--length") !== drawn)
            bar.style.setProperty("--length", drawn);
          setAttribute(bar, "class", length > 1 ? "broken" : "");
          // the cut went through the middle of them
          const some = others && share > 0 && left[i] < left[0];
          setAttribute(cell, "class", cut ? "cut" : share === 0 ? "gone" : some ? "noted" : "");
          setAttribute(cell, "data-value", String(share));
          setText(
            text,
            cut
              ? "cut"
              : share === 0 && i > 1
                ? ""
                : `${percent(share)}${some ? `, ${left[i]} left` : ""}`,
          );
        });
      });
      reach();
      feet.forEach((tr, row) =>
        STAGES.forEach((_, i) => {
          const value = [now.count, now.mass, now.entropy][row][i];
          setAttribute(tr.children[i + 1], "data-value", String(value));
          setText(
            tr.children[i + 1],
            row === 0 ? String(value) : row === 1 ? (i === 0 ? "" : percent(value)) : nats(value),
          );
        }),
      );
      setText(message, summary(now));
    },
  };
}

const WIDER = 2.5; // so much longer than a token's bar those of all others together may be

/** The share that the longest bar stands for. What is beyond it is drawn with a gap. */
function scaleOf(rows) {
  const longest = (own) =>
    Math.max(
      0,
      ...rows.filter(({ others }) => Boolean(others) === own).flatMap(({ shares }) => shares),
    );
  const [single, together] = [longest(false), longest(true)];
  return together > WIDER * single ? single : Math.max(single, together);
}

function summary({ V, count, mass, entropy }) {
  const left = `${count[3]} of ${V} tokens ${count[3] === 1 ? "is" : "are"} left`;
  const [byK, byP] = [1 - mass[2], mass[2] - mass[3]];
  const cut =
    1 - mass[3] < 1e-7
      ? "top-k and top-p cut nothing"
      : `cut was ${percent(1 - mass[3])} of the mass (${percent(byK)} by top-k, ` +
        `${percent(byP)} by top-p)`;
  return `${left}; ${cut}. Entropy: ${nats(entropy[0])} nats before, ${nats(entropy[3])} after.`;
}

// ---------------------------------------------------------------- the draw

/** The line from 0 to 1, a piece of it for each token that is left, and u, which can be dragged. */
function line(widget) {
  const pieces = h("div.pieces");
  const pin = h("span.pin");
  let falls = false; // once the reader has drawn a number
  const again = action(widget, "u", "Draw a number u", (next) => {
    next.u = Number((0.9999 * Math.random()).toFixed(3));
    falls = true;
  });
  const { range, called: typed, update } = knob(widget, "u", "u", { ends: [0, 1], step: 0.001 });
  const message = h("p.note.lands", { role: "status" });
  const ground = h(
    "div.ground.pointer",
    h("div.bar", { "data-output": "", "aria-hidden": "true" }, pieces, pin),
    range,
    h(
      "p.ends",
      { "aria-hidden": "true" },
      ...["0", "0.25", "0.5", "0.75", "1"].map((text) => h("span", text)),
    ),
  );
  let wide = 640; // pixels
  resized(() => {
    const width = pieces.clientWidth;
    if (!width || width === wide) return;
    wide = width;
    widget.repaint("outputs");
  }, pieces);
  return {
    element: h(
      "section.block",
      h("h3", "The draw: which token does u fall on?"),
      ground,
      h("div.typed", again, typed, h("span", { "data-output": "" }, message)),
    ),
    update(inputs, outputs) {
      const { u } = inputs;
      update(inputs, outputs);
      setLength(pin, u, "left");
      const now = viewOf(widget, inputs, outputs);
      if (!now) return;
      fillList(pieces, now.segments, "span", (piece, { id, name, from, to }, i) => {
        setAttribute(
          piece,
          "style",
          `left: ${(100 * from).toFixed(3)}%; width: ${(100 * (to - from)).toFixed(3)}%`,
        );
        setAttribute(
          piece,
          "class",
          [i % 2 ? "odd" : "even", id === now.hit?.id && "hit"].filter(Boolean).join(" "),
        );
        setText(piece, (to - from) * wide > 8 * [...name].length + 5 ? name : "");
      });
      const { hit } = now;
      if (falls && !widget.behind) {
        falls = false;
        drop(pin, pieces.querySelector(".hit"));
      }
      if (hit)
        setText(
          message,
          `falls on ${called(namesOf(widget, inputs)[hit.id])}, from ${formatExact(hit.from)} to ` +
            `${formatExact(hit.to)}: the first token whose probability, added to all before it, ` +
            `lies above u.`,
        );
    },
  };
}

/** A hundred draws: how often each token came, beside how often it should. */
function draws(widget) {
  const body = h("tbody");
  const caption = h("caption");
  const table = h("table.draws", caption, columnHeads(null, null, "drawn", "expected"), body);
  const again = redraw(widget, `Draw ${DRAWS} anew`);
  const make = () =>
    h(
      "tr",
      h("th", { scope: "row" }),
      h("td.track", h("span", { "aria-hidden": "true" }, h("i"), h("b"))),
      h("td"),
      h("td"),
    );
  const roomy = matchMedia("(min-width: 601px)").matches; // on a phone it is folded at first
  const unfolds = folded(widget, `${DRAWS} draws`, { element: table }, () => false);
  unfolds.element.toggleAttribute("open", roomy);
  return {
    element: h("section.block.hundred", { "data-output": "" }, unfolds.element, again),
    update(inputs, outputs) {
      setText(
        caption,
        `With ${DRAWS} numbers u of seed ${inputs.seed}. Bar: drawn; line: expected`,
      );
      const now = viewOf(widget, inputs, outputs);
      if (!now) return;
      const rows = now.rows.filter(({ shares }) => shares[3] > 0);
      const most = Math.max(...rows.map(({ expected, drawn }) => Math.max(expected, drawn)));
      fillList(
        body,
        rows,
        make,
        (tr, { name, unseen, others, left: remaining, expected, drawn }) => {
          const [token, track, came, should] = tr.children;
          setText(token, others ? othersOf(remaining[3]) : name);
          setAttribute(tr, "class", unseen || others ? "unseen" : "");
          const [bar, tick] = track.firstChild.children;
          setLength(bar, drawn / most);
          setLength(tick, expected / most, "left");
          setText(came, String(drawn));
          setAttribute(came, "data-value", String(drawn));
          setText(should, expected.toFixed(1));
        },
      );
    },
  };
}

after.style = `
.after-all { overflow-wrap: anywhere; max-width: none; }
.sides { --left: 1fr; --right: 1fr; }
@container widget (width < 860px) {
  .side > .knobs { grid-template-columns: 1fr 1fr; }
  .side > .knobs > :first-child { grid-column: 1 / -1; }
  .sides { display: flex; flex-direction: column; gap: 10px; }
  .side { display: contents; }
}
@container widget (min-width: 53.75rem) {
  .frame { gap: 9px; }
  .sides { row-gap: 6px; }
  .side { gap: 8px; --label: 7.6em; }
  .after-all { line-height: 1.45; }
  .choice { row-gap: 8px; }
  .kind:first-child .picks { display: grid; grid-template-columns: 1fr 1fr; width: 100%; }
}
`;
own.style = `
.logits { list-style: none; margin: 4px 0 0; padding: 0; display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 18.75rem), 1fr)); gap: 4px 22px; }
.logits .called > :first-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
`;
steps.style = `
.chain { width: 100%; table-layout: fixed; border-collapse: separate; border-spacing: 0; }
.chain caption { padding-bottom: 2px; }
.chain thead td { width: 5.125rem; }
.chain thead th { max-width: none; text-align: left; padding: 0 0 4px 10px; vertical-align: bottom;
  white-space: normal; }
.chain thead b { display: block; font-size: var(--size-note); font-weight: 600; color: var(--text);
  }
.chain tbody th { font-size: var(--size-note); color: var(--text); font-weight: 600; padding: 0 4px;
  max-width: none; }
.chain .unseen th, .chain .others th { font-weight: 400; font-style: italic; font-size:
  var(--size-note); color: var(--soft); }
.chain tbody td { position: relative; height: 1.5rem; padding: 0 0 0 var(--pad); font-size:
  var(--size-small); white-space: nowrap; }
/* The number stands behind its bar, which leaves it room. */
.chain { --pad: 10px; --number: 3.125rem; }
.chain tbody td i { display: inline-block; vertical-align: middle; height: .875rem;
  width: calc((100% - var(--number)) * var(--length, 0)); min-width: 1px; border-radius: 2px;
  background: color-mix(in oklab, var(--ground), var(--probability) 65%); }
.chain tbody td span { position: relative; padding-left: 5px; vertical-align: middle; }
.chain .noted i { position: absolute; left: var(--pad); top: 3px; opacity: .5;
  width: calc((100% - var(--pad) - var(--number)) * var(--length, 0)); }
.chain .cut i { background: repeating-linear-gradient(135deg, color-mix(in oklab, var(--ground),
  var(--text) 40%) 0 4px, transparent 4px 7px); border: 1px solid color-mix(in oklab, var(--ground),
  var(--text) 55%); }
.chain .gone i { display: none; }
.broken { --ink: var(--text); --gap: transparent calc(100% - 22px), var(--ink) 0 calc(100% - 18px),
  transparent 0 calc(100% - 15px), var(--ink) 0 calc(100% - 11px), transparent 0 calc(100% - 8px),
  var(--ink) 0; mask-image: linear-gradient(105deg, var(--ink) calc(100% - 25px), var(--gap)); }
.broken-key { display: flex; gap: 8px; align-items: center; margin: 2px 0 0; font-size:
  var(--size-small); color: var(--soft); }
.broken-key i { display: block; width: 2.75rem; height: .875rem; border-radius: 2px;
  background: color-mix(in oklab, var(--ground), var(--probability) 50%); }
.chain .hit th, .chain .hit td { background: color-mix(in oklab, var(--ground), var(--accent) 13%);
  }
.chain tfoot th { text-align: left; white-space: nowrap; overflow: visible; max-width: none; }
.chain tfoot td { padding: 1px 0 1px 14px; font-size: var(--size-note); }
.chain tfoot tr:first-child > * { border-top: 1px solid var(--line); padding-top: 4px; }
.verdict { max-width: none; min-height: 1.45em; }
@container widget (min-width: 53.75rem) {
  .chain thead td { width: 4.875rem; }
  .chain { --pad: 6px; }
  .chain thead th { padding-left: 6px; }
  .chain thead b { font-size: var(--size-small); letter-spacing: -.2px; }
  .chain tbody td { height: 1.1875rem; }
  .chain tfoot td { padding: 0 0 0 10px; }
  .chain tfoot tr > * { line-height: 1.35; }
  .verdict { line-height: 1.45; min-height: 2.9em; }
}
@media (max-width: 37.5rem) {
  .chain thead td { width: 3.75rem; }
  .chain thead th { padding-left: 2px; } .chain thead b { font-size: var(--size-small);
    letter-spacing: -.2px; } .chain thead span { display: none; }
  /* There is no room behind a bar: the number stands on it. */
  .chain { --pad: 4px; --number: 0px; }
  .chain tbody td i { position: absolute; left: var(--pad); top: 3px; opacity: .5;
    width: calc((100% - var(--pad)) * var(--length, 0)); }
  .chain tbody td { font-size: var(--size-small); }
  .chain tbody td span { padding-left: 2px; }
  .chain .others td { white-space: normal; line-height: 1.15; padding-block: 3px;
    } .chain .others th { white-space: normal; line-height: 1.1; }
  .chain tfoot th { white-space: normal; font-size: var(--size-small); line-height: 1.2;
    } .chain tfoot td { padding-left: 6px; font-size: var(--size-small); }
  .chain tbody th, .chain .unseen th, .chain .others th { font-size: var(--size-small);
    padding: 0 2px 0 0; }
  .verdict { min-height: 4.4em; }
}
`;
line.style = `
.ground { position: relative; }
.bar { position: relative; height: 2.125rem; border: 1px solid var(--line); border-radius: 4px; }
.pieces { position: absolute; inset: 0; overflow: hidden; border-radius: 3px; }
.pieces span { position: absolute; top: 0; bottom: 0; overflow: hidden; text-align: center;
  line-height: 2rem; font-size: var(--size-note); white-space: nowrap; }
.pieces .even { background: color-mix(in oklab, var(--ground), var(--probability) 32%); }
.pieces .odd { background: color-mix(in oklab, var(--ground), var(--probability) 16%); }
.pieces .hit { background: color-mix(in oklab, var(--ground), var(--accent) 40%); font-weight: 650;
  }
.pin { position: absolute; top: -4px; bottom: -8px; width: 2px; margin-left: -1px;
  background: var(--text); pointer-events: none; }
.ground .ends { display: flex; justify-content: space-between; margin: 24px 0 0; font-size:
  var(--size-small); color: var(--soft); font-variant-numeric: tabular-nums; }
.typed { display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: baseline; margin-top: 4px;
  font-size: var(--size-note); }
.typed > [data-output] { flex: 1 1 16.25rem; }
.lands { margin: 0; max-width: none; min-height: 2.9em; }
`;
draws.style = `${folded.style}
.hundred { position: relative; }
.hundred summary { margin-bottom: 4px; }
.hundred > button { position: absolute; top: 0; right: 0; }
.draws { width: 100%; table-layout: fixed; }
.draws caption { font-weight: 400; font-size: var(--size-note); color: var(--soft);
  white-space: normal; }
.draws thead td:first-child { width: 5.125rem; }
.draws thead th { width: 4rem; max-width: none; text-align: right; padding: 0; }
.draws tbody th { font-size: var(--size-note); color: var(--text); font-weight: 600; padding: 0 4px;
  max-width: none; }
.draws .unseen th { font-weight: 400; font-style: italic; font-size: var(--size-note);
  color: var(--soft); }
.draws td { padding: 2px 0; font-size: var(--size-note); text-align: right; }
.draws .track { padding-left: 10px; }
.track span { position: relative; display: block; height: 1rem; margin-right: 2px;
  border-radius: 3px; background: color-mix(in oklab, var(--ground), var(--line) 34%); }
.track i { display: block; height: 100%; border-radius: 3px;
  background: color-mix(in oklab, var(--ground), var(--probability) 60%); }
.track b { position: absolute; top: -2px; bottom: -2px; width: 3px; margin-left: -1.5px;
  border-radius: 1px; background: var(--text); box-shadow: 0 0 0 1px var(--ground); }
@container widget (min-width: 53.75rem) {
  .draws thead td:first-child { width: 4.875rem; }
  .draws tbody tr > * { padding-block: 1px; line-height: 1.3; }
  .draws .track { padding-left: 6px; }
  .track span { height: .875rem; }
}
@media (max-width: 37.5rem) {
  .draws thead td:first-child { width: 3.875rem; }
  .draws thead th { width: 4.125rem; } .draws thead th:nth-child(3) { width: 2.75rem; }
  .draws .track { padding-left: 4px; }
  .draws tbody th, .draws .unseen th { font-size: var(--size-small); padding: 0 2px 0 0; }
}
`;

const V = (inputs, widget) => namesOf(widget, inputs).length;

export default live(
  "From logits to one token, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ui.use(distributions),
        ui.use(after),
        ui.use(own, ui.words("", keepLogits)),
        ui.knobs(
          ui.knob("temperature", "temperature", { step: 0.05, note: heats }),
          ui.knob("k", "top-k", {
            ends: (inputs, widget) => [1, V(inputs, widget)],
            note: (k, inputs, widget) => tops(k, V(inputs, widget)),
          }),
          ui.knob("p", "top-p", { step: 0.01, note: nuclei }),
        ),
      ),
      ui.boxed("side", ui.use(steps)),
      ui.boxed("side", ui.use(line), ui.explanation()),
      ui.boxed("side", ui.use(draws)),
    ),
  ],
  { wide: true, main: "[data-output]:has(.chain), .bar" },
);
