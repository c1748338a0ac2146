import { idsOf } from "../../live/page/inputs.js";
import { topK } from "../../live/page/search.js";
import { BOS } from "../../live/page/translator.js";
import { results } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { h, readOnce, setAttribute, setHeat, setText, typeset } from "../../live/ui/dom.js";
import { chance, explainable, logOf, partsOf, weighed } from "../../live/ui/explain.js";
import { blocksOf, headMaps } from "../../live/ui/heads.js";
import { journey } from "../../live/ui/journey.js";
import { textOfEach } from "../../live/ui/models.js";
import { format, percentOf, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { paint, pixelAt, pixelMap } from "../../live/ui/pixels.js";
import { fillList, visible } from "../../live/ui/sentences.js";
import {
  attendsMostTo,
  autoContinue,
  byArrows,
  called,
  fillText,
  followEnd,
  likeliestTable,
  tail,
  TEXT_STYLE,
} from "../../live/ui/texts.js";

/** What torch does in a kernel, in compute() of gpt.py. */
export async function program(run, { prompt, story, variant }) {
  const tokens = variant ? [BOS, ...story] : prompt;
  return { which: variant, tokens, ...(await run("gpt-look", { tokens })) };
}

const TEXTS = ["prompt", "story"]; // what each model reads
const CANDIDATES = 10;
const NATS = 5; // the surprise from which on a token has the full tint
const SEVERAL = { characters: 40, words: 12 }; // written by one press

// ---------------------------------------------------------------- what was read

/**
 * The tokens that the model read; at each of them what it expects next, and what its heads attend
 * to.
 */
const readBy = readOnce(readingOf);

/** Whether that is the text that stands there now: the answer may still be on its way. */
function isCurrent({ spec, inputs }, { variant, ids, first }) {
  const read = Array.from(ids.subarray(first));
  return variant === inputs.variant && String(read) === String(idsOf(spec, inputs)[TEXTS[variant]]);
}

function readingOf(
  { spec },
  { which, tokens, logits, probabilities, surprise, loss, perplexity, attention, scores },
) {
  const [variant] = which.data;
  const { kind } = spec.facts.models[variant];
  const vocabulary = spec.sentences[TEXTS[variant]];
  const [[N, V], [L, H]] = [probabilities.shape, attention.shape];
  return {
    variant,
    kind,
    N,
    L,
    H,
    vocabulary,
    ids: tokens.data,
    first: kind === "words" ? 1 : 0, // <bos> is not the reader's
    names: Array.from(tokens.data, (id) => vocabulary[id]),
    logits: (t) => logits.data.subarray(t * V, (t + 1) * V),
    shares: (t) => probabilities.data.subarray(t * V, (t + 1) * V),
    surprise: (t) => (t > 0 ? surprise.data[t - 1] : undefined),
    predictions: surprise.data.length,
    loss: loss.data[0],
    perplexity: perplexity.data[0],
    map: (head) => attention.data.subarray(head * N * N, (head + 1) * N * N),
    attentionRow: (head, t) =>
      attention.data.subarray((head * N + t) * N, (head * N + t) * N + t + 1),
    // a page does not store them
    scores: (head, t) => scores?.data.subarray((head * N + t) * N, (head * N + t) * N + t + 1),
  };
}

const chosenAt = ({ query }, { N, first }) => within(query + first, [first, N - 1]);

/** The token in view: the one under the pointer, else the one that was chosen. */
function lookedAt(widget, view) {
  const { N, first } = view;
  return widget.hovered === undefined
    ? chosenAt(widget, view)
    : within(widget.hovered, [first, N - 1]);
}

const nats = (surprise) => `${surprise.toFixed(2)} nats`;

// ---------------------------------------------------------------- what comes next

const kindOf = ({ spec, inputs: { variant } }) => spec.facts.models[variant].kind;

/** Write a token at the end; an error in the new text is shown, or `report` gets it. */
function put(widget, token, field, report) {
  widget.edit(
    field,
    (inputs) => {
      if (inputs.variant) inputs.story = `${inputs.story.trimEnd()} ${token}`;
      else inputs.prompt += token;
    },
    report,
  );
}

/** The likeliest token at the end of the text. */
function likeliest({ shares, N, vocabulary }) {
  return vocabulary[topK(shares(N - 1), 1)[0]];
}

/** What cannot be written: <eos>, which ends a story, and its like. */
const isSpecial = (token) => /^<.+>$/.test(token);

/** The likeliest next tokens; a click writes one. */
function candidates(widget) {
  const answer = h("p.note.answer");
  const list = candidateList("the likeliest next tokens");
  widget.tables.set("next", () => [[...list.children].map((li) => li.firstChild)]);
  const make = (place) => {
    const tokenOf = () => readBy(widget).vocabulary[list.children[place].token];
    const click = () => !isSpecial(tokenOf()) && put(widget, tokenOf(), Symbol("next"));
    const button = candidateLine("button", { click }, {});
    const rule = () => {
      const { logits, N } = readBy(widget);
      const what = `Probability of ${called(tokenOf())} next:`;
      const id = list.children[place].token;
      return chance(what, logits(N - 1), id, list.querySelectorAll(".bars"));
    };
    explainable(widget, button, rule, () => {
      const { shares, N } = readBy(widget);
      return shares(N - 1)[list.children[place].token];
    });
    return h("li", button);
  };
  const element = results(
    "column",
    h("span.label", "What comes next? Click one to write it"),
    list,
    answer,
  );
  return {
    element,
    update(inputs) {
      const read = readBy(widget);
      const { shares, N, vocabulary, variant } = read;
      element.classList.toggle("waiting", variant !== inputs.variant);
      const row = shares(N - 1);
      fillList(list, topK(row, CANDIDATES), make, (li, id) => {
        li.token = id;
        const button = li.firstChild;
        const name = visible(vocabulary[id]);
        fillCandidate(button, name, [row[id]], [percentOf(row[id])], name !== vocabulary[id]);
        // that of what cannot be written can still be asked
        setAttribute(button, "aria-disabled", String(isSpecial(vocabulary[id])));
        setAttribute(button, "data-input", TEXTS[inputs.variant]);
      });
      const truth = trueAnswer(widget, inputs);
      setText(
        answer,
        truth && isCurrent(widget, read)
          ? `By the story it is “${truth}”: the model gives that ` +
              `${percentOf(row[vocabulary.indexOf(truth)])}.`
          : "",
      );
    },
  };
}

/** The answer to the question that the text ends with, if it is a story that was offered. */
function trueAnswer({ spec: { facts } }, { story, variant }) {
  return variant
    ? Object.values(facts.stories).find((group) => Object.hasOwn(group, story))?.[story]
    : undefined;
}

/** Writes on, the likeliest each time, until it has written enough. */
function writer(widget) {
  let left = 0; // how many it is still to write
  const one = h(
    "button",
    {
      click: () => {
        const token = likeliest(readBy(widget));
        if (isSpecial(token)) written.stop(THE_END);
        else put(widget, token, Symbol("one more"));
      },
    },
    "Write 1 more",
  );
  const several = h("button", {
    click: () => {
      left = SEVERAL[kindOf(widget)];
    },
  });
  const written = autoContinue(widget, several, (field) => {
    const view = readBy(widget);
    if (left === 0) return "";
    if (!isCurrent(widget, view)) return false;
    left -= 1;
    const token = likeliest(view);
    if (isSpecial(token)) return THE_END;
    let wrong = "";
    put(widget, token, field, (what) => {
      wrong = what;
    });
    return wrong ? `The text is full: ${wrong}` : true;
  });
  return {
    element: results(
      "column",
      h("div.onward", one, several, written.halt, h("span", "always the likeliest")),
      written.note,
    ),
    reset: () => written.stop(),
    update({ variant }) {
      setText(several, `Write ${SEVERAL[kindOf(widget)]} more`);
      for (const button of [one, several]) setAttribute(button, "data-input", TEXTS[variant]);
      written.update();
    },
  };
}

const THE_END = "The likeliest now is the end: the story is told.";

// ---------------------------------------------------------------- surprise, and the heads

/**
 * The text, tinted by how surprised the model was; arrows, a click or the pointer choose a token.
 */
function surprises(widget) {
  const line = h("div.text.surprise", {
    dir: "auto",
    "data-output": "surprise",
    role: "listbox",
    tabindex: "0",
    "aria-label": "your text: choose a token by the arrow keys",
    keydown: (event) => {
      const { N, first } = readBy(widget);
      const to = byArrows(event, lookedAt(widget, { N, first }) - first, N - 1 - first);
      if (to !== undefined) choose(widget, to);
    },
    click: ({ target }) => {
      if (target.place !== undefined) choose(widget, target.place);
    },
    pointerover: ({ target }) => hover(widget, target.place),
    pointerleave: () => hover(widget, undefined),
  });
  widget.tables.set("text", () => [[...line.children]]);
  const follow = followEnd(line);
  const note = h("p.note.at", { "aria-live": "polite" });
  const mean = h("p.note.mean");
  const element = results(
    "column",
    h(
      "div.above",
      h("span.label", "How surprised was it? Click, or use the arrows"),
      h("p.scale", h("span", "0"), h("span.ramp"), h("span", `${NATS}+ nats`)),
    ),
    line,
    note,
    mean,
  );
  const make = (place) => {
    const span = h("span", { role: "option", id: `token-${place}` });
    span.place = place;
    return span;
  };
  /** What the surprise about the token at t comes from. */
  const rule = (span) => () => {
    const { shares, ids, names, first } = readBy(widget);
    const t = span.place + first;
    const what = `Surprise about ${called(names[t])}, −ln of its probability:`;
    return logOf(what, shares(t - 1)[ids[t]], [span]);
  };
  return {
    element,
    update({ variant }) {
      const view = readBy(widget);
      element.classList.toggle("waiting", view.variant !== variant);
      const at = lookedAt(widget, view);
      fillText(line, view, make, (span, t) => {
        const surprise = view.surprise(t);
        setHeat(span, Math.min(1, (surprise ?? 0) / NATS));
        if (surprise === undefined) {
          span.removeAttribute("data-value");
          span.explain = undefined;
        } else {
          setAttribute(span, "data-value", String(surprise));
          span.explain ?? explainable(widget, span, rule(span));
        }
        setAttribute(span, "aria-selected", String(t === at));
        setAttribute(span, "aria-label", visible(view.names[t]));
        return t === at ? " at" : "";
      });
      follow(view.names.slice(view.first));
      setAttribute(line, "aria-activedescendant", `token-${at - view.first}`);
      typeset(note, surpriseAt(view, at));
      typeset(mean, describeLoss(view));
    },
  };
}

/** The probability that the model gave one token, in words. */
function surpriseAt(view, t) {
  const { shares, names, vocabulary, ids } = view;
  if (t === 0) return `${called(names[t])} comes first: nothing was said of it.`;
  const before = tail(view, t);
  const best = topK(shares(t - 1), 3).map(
    (id) => `${called(vocabulary[id])} ${percentOf(shares(t - 1)[id])}`,
  );
  return (
    `${called(names[t])}${before ? ` after “${before}”` : " at the start"}: p = ` +
    `${percentOf(shares(t - 1)[ids[t]])}, −ln p = ${nats(view.surprise(t))}. ` +
    `Likeliest there: ${best.join(", ")}.`
  );
}

/** The mean over the whole text, and what it means. */
function describeLoss({ predictions, kind, loss, perplexity, vocabulary }) {
  if (!predictions) return "The loss begins with the second character: write one more.";
  const [one, after] = kind === "words" ? ["word", ""] : ["character", " after the first"];
  return (
    `Loss, the mean over the ${predictions} ${one}${predictions === 1 ? "" : "s"}${after}: ` +
    `${loss.toFixed(3)} nats. ` +
    `Perplexity: e^{${loss.toFixed(3)}} = ${format(perplexity)}. ` +
    `A guess among all ${vocabulary.length}: ln ${vocabulary.length} = ` +
    `${Math.log(vocabulary.length).toFixed(2)} nats.`
  );
}

function choose(widget, place) {
  widget.hovered = undefined;
  widget.look(place);
}

/** The token under the pointer is looked at for as long as it is there. */
function hover(widget, place) {
  const { first } = readBy(widget);
  const at = place === undefined ? undefined : place + first;
  if (widget.hovered === at) return;
  widget.hovered = at;
  widget.repaint("outputs");
}

// ---------------------------------------------------------------- the heads

/** The head that is shown on the text: a step's or the reader's, else the one that is offered. */
function headOf({ shown, heads: own, spec }, { variant, L, H }) {
  const head = shown?.head ?? own?.[variant] ?? spec.facts.models[variant].head;
  return Math.min(head, L * H - 1);
}

/** The text, tinted by what one head attends to from the chosen token; and in words. */
function gaze(widget) {
  const label = h("span.label");
  const line = h("div.text.gazed", {
    dir: "auto",
    role: "listbox",
    tabindex: "0",
    click: ({ target }) => {
      if (target.place !== undefined) choose(widget, target.place);
    },
    keydown: (event) => {
      const { first } = readBy(widget);
      const last = lookedAt(widget, readBy(widget)) - first;
      const to = byArrows(event, Math.min(pointed ?? last, last), last);
      if (to === undefined) return;
      point(to);
      widget.ask(line.children[to]);
    },
    blur: () => point(undefined),
    pointerover: ({ target }) => point(target.place),
    pointerleave: () => point(undefined),
  });
  const note = h("p.note");
  const follow = followEnd(line);
  const element = results("column gaze-of", label, line, note);
  const make = (place) => {
    const span = h("span", { role: "option", id: `gazed-${place}` });
    span.place = place;
    const t = () => place + readBy(widget).first;
    const rowOf = (name) => {
      const view = readBy(widget);
      return view[name](headOf(widget, view), lookedAt(widget, view));
    };
    /** Where the weight of this token comes from, seen from the chosen one. */
    const rule = () => {
      const view = readBy(widget);
      const [at, scores] = [lookedAt(widget, view), rowOf("scores")];
      const [one, other] = [called(view.names[at]), called(view.names[t()])];
      const lit = [{ cells: [...line.children].slice(0, at - view.first + 1) }];
      if (t() > at)
        return { kind: "said", what: `${other} stands later: ${one} cannot attend to it.`, lit };
      if (!scores) return { kind: "said", what: "The scores are computed …", lit, missing: true };
      return weighed(`Weight that ${one} gives to ${other}:`, scores, t(), lit[0].cells);
    };
    explainable(widget, span, rule, () => rowOf("attentionRow")[t()] ?? 0);
    return span;
  };
  let pointed; // the token under the pointer
  const point = (place) => {
    pointed = place;
    describePointed(readBy(widget));
  };
  const describePointed = (view) => {
    const [head, at] = [headOf(widget, view), lookedAt(widget, view)];
    const row = view.attentionRow(head, at);
    const s = pointed === undefined ? undefined : pointed + view.first;
    if (s !== undefined) {
      setText(
        note,
        s > at
          ? `${called(view.names[s])} stands later: no head attends to it from there.`
          : `${called(view.names[s])} at place ${s}: weight ${row[s].toFixed(4)}.`,
      );
      return;
    }
    setText(note, attendsMostTo(view.names, row, at));
  };
  return {
    element,
    update({ variant }) {
      const view = readBy(widget);
      element.classList.toggle("waiting", view.variant !== variant);
      const [head, at] = [headOf(widget, view), lookedAt(widget, view)];
      const row = view.attentionRow(head, at);
      setText(
        label,
        `From ${called(view.names[at])}, block ${Math.floor(head / view.H)}, head ` +
          `${head % view.H} attends to`,
      );
      setAttribute(
        line,
        "aria-label",
        "your text, tinted by the weights: go through it by the arrow keys",
      );
      fillText(line, view, make, (span, t) => {
        setAttribute(span, "aria-selected", String(t - view.first === pointed));
        setAttribute(span, "aria-label", visible(view.names[t]));
        setHeat(span, t > at ? 0 : Math.sqrt(row[t]));
        return t === at ? " at" : t > at ? " later" : "";
      });
      follow(view.names.slice(view.first));
      describePointed(view);
    },
  };
}

/** All heads' maps, small: a row for each token, the chosen one marked. */
function heads(widget) {
  return headMaps({
    output: "attention",
    label: "All heads: rows attend to columns",
    read({ variant }) {
      const view = readBy(widget);
      return { ...view, waiting: view.variant !== variant };
    },
    chosen: (view) => headOf(widget, view),
    choose(i) {
      widget.heads = { ...widget.heads, [widget.inputs.variant]: i };
      widget.shown = undefined;
      widget.repaint("outputs");
    },
    draw({ canvas, markRow, fresh }, view, i) {
      const { N } = view;
      markRow(lookedAt(widget, view), N, N);
      if (!fresh(view.ids)) return;
      paint(canvas, view.map(i), N, { ink: "weight", root: true });
      setAttribute(canvas, "aria-label", `weights, ${N} by ${N}`);
    },
    reset() {
      widget.heads = undefined;
    },
  });
}

/** The map of the chosen head, large: a click on a row chooses its token. */
function largeMap(widget) {
  const title = h("span.label");
  const map = pixelMap({
    click: (event) => {
      const { first } = readBy(widget);
      choose(widget, Math.max(0, pixelAt(map.canvas, event)[0] - first));
    },
  });
  const element = results("column large", title, map.element);
  return {
    element,
    update({ variant }) {
      const view = readBy(widget);
      element.classList.toggle("waiting", view.variant !== variant);
      const [head, { H, N }] = [headOf(widget, view), view];
      const name = `Block ${Math.floor(head / H)}, head ${head % H}`;
      setText(title, name);
      map.markRow(lookedAt(widget, view), N, N);
      paint(map.canvas, view.map(head), N, { ink: "weight", root: true });
      setAttribute(map.canvas, "aria-label", `${name}: weights, ${N} by ${N}`);
    },
  };
}

// ---------------------------------------------------------------- one token, followed

const SHOWN = 5; // candidates whose numbers are shown

function followed(widget) {
  const view = readBy(widget);
  const [t, { code, models }] = [chosenAt(widget, view), widget.spec.facts];
  const best = topK(view.shares(t), Math.min(SHOWN, view.vocabulary.length));
  const { width } = models[view.variant];
  return { ...view, widget, t, token: called(view.names[t]), best, code, width };
}

const ATTENDED = ".gazed, .gaze-of .note, .large .pixel-map"; // by the head that is shown
const NEXT = { name: "next", row: 0 };
const cellOf = ({ first }, t) => ({ name: "text", row: 0, column: t - first });

/** What each of these heads attends to most from the token; the largest weight comes first. */
function favourites(view, heads) {
  const found = heads.map((head) => {
    const row = view.attentionRow(head, view.t);
    const [most] = topK(row, 1);
    return { head, most, weight: row[most] };
  });
  return found.sort((a, b) => b.weight - a.weight);
}

/** What the heads of some blocks do: `of` gives their numbers, `begin` the first sentence. */
const attendStep = (of, begin, line) => (view) => {
  const { widget, H, L, names, t, first, token, code } = view;
  const layers = of(L);
  const heads = layers.flatMap((layer) => Array.from({ length: H }, (_, h) => layer * H + h));
  const found = favourites(view, heads);
  const [{ head, most, weight }] = found;
  const nameOf = (i) => (layers.length > 1 ? `block ${Math.floor(i / H)}, ` : "") + `head ${i % H}`;
  const lit = [most, t].filter((place) => place >= first).map((place) => cellOf(view, place));
  return {
    message:
      `${begin(view, layers)} The largest weight is ${format(weight)}, which ${nameOf(head)} ` +
      `gives to ${most === t ? `${token} itself` : called(names[most])}.`,
    lit,
    moves: most < t && most >= first ? [{ from: cellOf(view, most), to: cellOf(view, t) }] : [],
    shows: { head },
    fills: [blocksOf(widget, [layers[0], layers.at(-1) + 1]), partsOf(widget, ATTENDED)],
    code: code[line],
    table: {
      labels: found.slice(0, SHOWN).map((one) => `${nameOf(one.head)}: ${called(names[one.most])}`),
      rows: [{ name: "largest weight", numbers: found.slice(0, SHOWN).map((one) => one.weight) }],
    },
  };
};

const STEPS = [
  (view) => {
    const { t, N, token, width, code } = view;
    return {
      message:
        `We follow ${token}, token ${t + 1} of ${N}. Its row of the embedding table is a vector ` +
        `of ${width} numbers, which holds nothing of the other tokens yet.`,
      lit: [cellOf(view, t)],
      code: code.embed,
    };
  },
  attendStep(
    () => [0],
    ({ token, t, H }) =>
      `In block 0, ${H} heads compare the query of ${token} with the keys of ` +
      `${t ? `the ${t + 1} tokens up to it` : "itself alone"}, and what they gather is added to ` +
      "its vector.",
    "attend",
  ),
  (view) => ({
    message:
      `Then the feed-forward network of block 0 reads the vector of ${view.token} alone, and ` +
      "its result is added, too. No other token takes part in this.",
    lit: [cellOf(view, view.t)],
    code: view.code.forward,
  }),
  attendStep(
    (L) => Array.from({ length: L - 2 }, (_, i) => i + 1),
    (_, layers) =>
      `Blocks ${layers[0]} ${layers.length > 2 ? "to" : "and"} ${layers.at(-1)} do the same, ` +
      "and each reads what the blocks before it have added.",
    "block",
  ),
  attendStep(
    (L) => [L - 1],
    (_, [last]) => `Block ${last} is the last that can fetch anything from other tokens.`,
    "block",
  ),
  (view) => {
    const { t, token, vocabulary, logits, best, code } = view;
    return {
      message:
        `The dot products of the vector of ${token} with the rows of the embedding table are ` +
        `${vocabulary.length} logits, one for each token of the vocabulary. The largest is that ` +
        `of ${called(vocabulary[best[0]])}.`,
      lit: [cellOf(view, t)],
      code: code.output,
      table: likeliestTable(view, { logit: logits(t) }),
    };
  },
  (view) => {
    const { t, N, vocabulary, logits, shares, best, code } = view;
    return {
      message:
        "The softmax turns the logits into probabilities, which sum to 1: " +
        `${called(vocabulary[best[0]])} is expected with ${percentOf(shares(t)[best[0]])}.`,
      lit: [cellOf(view, t)],
      fills: t === N - 1 ? [NEXT] : [],
      code: code.softmax,
      table: likeliestTable(view, { logit: logits(t), probability: shares(t) }),
    };
  },
  (view) => {
    const { t, N, names, ids, vocabulary, shares, best } = view;
    if (t === N - 1) {
      return {
        message:
          "Here the text ends, so this is what is written next: " +
          `${called(vocabulary[best[0]])}, if we always take the likeliest. Then it is read as ` +
          `token ${N + 1}, and all of this begins again with it.`,
        lit: [{ ...NEXT, column: 0 }],
        fills: [NEXT],
        code: undefined,
      };
    }
    return {
      message:
        `The text goes on with ${called(names[t + 1])}, which the model had given ` +
        `${percentOf(shares(t)[ids[t + 1]])}. So −ln p = ${nats(view.surprise(t + 1))} is its ` +
        "loss at this place. In training, all places are asked at once.",
      lit: [cellOf(view, t), cellOf(view, t + 1)],
      fills: [NEXT],
      code: undefined,
    };
  },
];

const name = (widget) =>
  widget.model.get("outputs")
    ? called(readBy(widget).names[chosenAt(widget, readBy(widget))])
    : "a token";

candidates.style = `${candidateList.style}
.answer:empty { display: none; }
`;
writer.style = `
.onward { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; font-size:
  var(--size-note); color: var(--soft); }
.told:empty { display: none; }
`;
surprises.style = `${TEXT_STYLE}
.surprise .t {
  background: color-mix(in oklab, var(--ground), var(--negative) calc(var(--tl-heat, 0) * 55%)); }
.above { display: flex; flex-wrap: wrap; gap: 2px 16px; justify-content: space-between; }
.scale { display: flex; gap: 8px; align-items: center; margin: 0; font-size: var(--size-small);
  color: var(--soft); }
.t.lit, .candidate.lit { outline: 2px solid var(--accent); outline-offset: -1px; }
.ramp { width: 3.5rem; height: .625rem; border-radius: 3px;
  background: linear-gradient(to right in oklab, var(--ground), color-mix(in oklab, var(--ground),
  var(--negative) 55%)); border: 1px solid var(--line); }
.at.note { min-height: 4.8em; }
.staged .followed :is(.at, .mean) { display: none; } /* no step speaks of them */
`;
heads.style = headMaps.style;
largeMap.style = `
.large .pixel-map { max-width: calc(15rem * var(--grow, 1)); cursor: pointer; }
@container widget (min-width: 53.75rem) {
  /* All of it fits in a window, with a story and six blocks, too. */
  .sides { --right: 1.36fr; }
  .frame { gap: 10px; }
  .side { gap: 9px; }
  .text { line-height: 1.5rem; padding-block: 3px; }
  .nexts { gap: 1px; }
  .candidate { min-height: 1.5625rem; }
  .atlas .heads .layers { --map: min(3.375rem, 14.25rem / var(--deep)); row-gap: 4px; }
  .at.note { min-height: 3.2em; }
}
@container widget (min-width: 78rem) {
  .candidate { min-height: 1.375rem; }
  textarea.line { line-height: 1.4; padding-block: 4px; }
}
`;

export default live(
  "A GPT that continues your text, live",
  (ui) => [
    ui.sides(
      ui.boxed("side", ...textOfEach(ui, "Your story"), ui.use(candidates), ui.use(writer)),
      ui.boxed(
        "side",
        ui.use(surprises),
        ui.use(journey, { name, steps: STEPS, follow: followed, beside: ".side > .column" }),
        ui.use(gaze),
        ui.boxed("atlas", ui.use(heads), ui.use(largeMap)),
        ui.explanation(),
      ),
    ),
  ],
  { query: -1, wide: true, main: ".nexts" },
);
