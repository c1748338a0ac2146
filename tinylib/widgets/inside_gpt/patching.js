import { idsOf, wordsOf } from "../../live/page/inputs.js";
import { topK } from "../../live/page/search.js";
import { BOS } from "../../live/page/translator.js";
import { results, scroller } from "../../live/ui/boxes.js";
import { action, choice, offers } from "../../live/ui/controls.js";
import { copyAsTorch } from "../../live/ui/copy.js";
import { h, readOnce, setAttribute, setHeat, setLength, setText } from "../../live/ui/dom.js";
import { weightKey } from "../../live/ui/keys.js";
import { shaded } from "../../live/ui/look.js";
import { format, percentOf, times, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, text } from "../../live/ui/sentences.js";
import { autoContinue, called } from "../../live/ui/texts.js";

// As in patching.py: the position for all words, the stream before block 0, parts, and sources.
const [EVERYWHERE, EMBEDDED] = [-1, -1];
const [STREAM, FEED_FORWARD, FIRST_HEAD] = [0, 1, 2];
const [FROM_CORRUPTED, ZEROED] = [0, 1];
const [PATCHED_RUN, CLEAN_RUN, CORRUPTED_RUN] = [0, 1, 2]; // the three runs

/** Where something is replaced: there is no head and no network before block 0. */
const clampedSite = ({ block, part, position, source }, length) => ({
  block: part === STREAM ? block : Math.max(block, 0),
  part,
  position: Math.min(position, length - 1),
  source,
});

/** What torch does in a kernel, in compute() of patching.py. */
export async function program(run, inputs) {
  const { story, twin: corrupted } = inputs;
  const { block, part, position, source } = clampedSite(inputs, story.length);
  const [tokens, others] = [
    [BOS, ...story],
    [BOS, ...corrupted],
  ];
  const at = position === EVERYWHERE ? EVERYWHERE : position + 1;
  const three = (own, other, from) =>
    run("patching-three_runs", { own, other, block, part, at, source: from });
  let logits;
  if (tokens.length === others.length) {
    ({ logits } = await three(tokens, others, source));
  } else {
    // a story that is patched from itself stays as it is
    const [one, two] = [
      (await three(tokens, tokens, FROM_CORRUPTED)).logits,
      (await three(others, others, FROM_CORRUPTED)).logits,
    ];
    const from = CORRUPTED_RUN * one.dims[1];
    const data = new Float32Array([...one.data.subarray(0, from), ...two.data.subarray(from)]);
    logits = { dims: one.dims, data };
  }
  const site = [block, part, position, source];
  return { tokens, others, site, logits, ...(await run("patching-judge", { runs: logits })) };
}

// ---------------------------------------------------------------- what came out

const viewOf = readOnce(readRuns);

function readRuns({ spec }, { tokens, others, site, probabilities, answers, differences, moved }) {
  const vocabulary = spec.sentences.story;
  const wordsIn = (ids) => Array.from(ids.data.subarray(1), (id) => vocabulary[id]);
  const [V] = probabilities.shape.slice(1);
  const [block, part, position, source] = site.data;
  const [answer, other] = answers.data;
  const isPair = tokens.data.length === others.data.length;
  return {
    words: wordsIn(tokens),
    others: wordsIn(others),
    ids: `${tokens.data} ${others.data}`,
    site: { block, part, position, source },
    shares: (one) => probabilities.data.subarray(one * V, (one + 1) * V),
    vocabulary,
    answer,
    other,
    differences: differences.data,
    moved: moved.data[0],
    isPair,
    isMeasurable: isPair && answer !== other,
  };
}

const keyOf = ({ block, part, position, source }) => `${part} ${source} ${block} ${position}`;

/** What each site that was tried has recovered; forgotten when the stories change. */
function triedBy(widget) {
  const view = viewOf(widget);
  if (widget.tried?.ids !== view.ids) widget.tried = { ids: view.ids, recovered: new Map() };
  if (view.isMeasurable) widget.tried.recovered.set(keyOf(view.site), view.moved);
  return widget.tried.recovered;
}

/** Whether what came out is of the inputs as they are: the answer may still be on its way. */
function isAnswered({ spec, inputs }, { ids, site, words }) {
  const { story, twin: corrupted } = idsOf(spec, inputs);
  const read = `${[BOS, ...story]} ${[BOS, ...corrupted]}`;
  return ids === read && keyOf(site) === keyOf(clampedSite(inputs, words.length));
}

// ---------------------------------------------------------------- in words

const isHead = (part) => part >= FIRST_HEAD;
const partName = (part) =>
  part === STREAM
    ? "residual stream"
    : part === FEED_FORWARD
      ? "feed-forward"
      : `head ${part - FIRST_HEAD}`;

/** What is replaced, for a sentence. */
function whatAt({ block, part }) {
  if (part === STREAM)
    return block === EMBEDDED ? "the embedding" : `the residual stream after block ${block}`;
  if (isHead(part)) return `the output of head ${part - FIRST_HEAD} in block ${block}`;
  return `the output of the feed-forward network in block ${block}`;
}
const whereAt = ({ words }, position) =>
  position === EVERYWHERE
    ? "at all words"
    : `at ${called(words[position])}, word ${position + 1} of ${words.length}`;

/** What is done, and what the model says then. */
function outcome({ site, words, vocabulary, shares }) {
  const [best] = topK(shares(PATCHED_RUN), 1);
  const done = site.source === ZEROED ? "set to 0" : "taken from the twin";
  const begin = `With ${whatAt(site)}, ${whereAt({ words }, site.position)}, ${done}, `;
  const most = shares(PATCHED_RUN)[best];
  if (most - Math.min(...shares(PATCHED_RUN)) < 1e-6)
    return `${begin}all ${vocabulary.length} words are equally likely.`;
  return `${begin}the story's answer is ${called(vocabulary[best])} (${percentOf(most)}).`;
}

/** What the recovered logit difference means; never more than it shows. */
function meaning({ site, moved, vocabulary, answer, other, shares }) {
  const several = site.position === EVERYWHERE;
  const one = several ? "these vectors" : "this one vector";
  const begin = several ? "These vectors" : "This one vector";
  const carry = several ? "carry" : "carries";
  const [best] = topK(shares(PATCHED_RUN), 1);
  if (site.source === ZEROED) {
    if (best === answer)
      return Math.abs(moved) < 0.1
        ? `The answer hardly depends on ${one}.`
        : `The answer stays, but its lead over ${called(vocabulary[other])} has changed.`;
    return (
      `Without ${one} the answer is lost. That alone does not say that the fact stood there: ` +
      "a 0 is something that later blocks have never seen, and may simply do damage."
    );
  }
  if (moved >= 0.9) {
    const whole =
      moved > 1.1 ? "more than the whole" : moved >= 0.97 ? "the whole" : "nearly the whole";
    return best === other
      ? `${begin} ${carry} ${whole} answer from the one story to the other.`
      : `${begin} ${carry} ${whole} difference between the two answers, but another word wins.`;
  }
  const recover = `${begin} recover${several ? "" : "s"}`;
  if (moved >= 0.5)
    return (
      `${recover} more than half of the difference: most of what decides the answer is here, ` +
      "not all."
    );
  if (moved >= 0.1)
    return (
      `${recover} less than half of the difference: most of what decides the answer is ` +
      "elsewhere."
    );
  if (Math.abs(moved) < 0.005)
    return `Nothing changes: the answer does not depend on what differs in ${one}.`;
  if (moved > -0.1)
    return `Almost nothing changes: the answer hardly depends on what differs in ${one}.`;
  return `${begin} push${several ? "" : "es"} the answer away from the twin's.`;
}

/** Why no recovered logit difference is defined, and what to do; "" if one is. */
function whyUnmeasurable({ isPair, words, others, ids, vocabulary, answer, other }) {
  if (!isPair)
    return (
      `The story has ${words.length} word${words.length === 1 ? "" : "s"} and its twin ` +
      `${others.length}. A vector needs a partner at the same position, so nothing is patched: ` +
      "write as many words in both, or press “Copy the story here” and then change a word of " +
      "the copy."
    );
  const [one, two] = [words.join(" "), others.join(" ")];
  if (one === two && new Set(ids.split(" ")).size === 1)
    return "The twin is the story itself: change a word of it, so that its answer is another.";
  if (answer !== other) return "";
  return (
    `Both texts are answered by ${called(vocabulary[answer])}, so there is no difference ` +
    "to recover: change a word of the twin, so that its answer is another."
  );
}

// ---------------------------------------------------------------- the site

const firstDifference = (one, two) => {
  const at = one.findIndex((word, i) => word !== two[i]);
  return at < 0 ? one.length - 1 : at;
};

/** Pairs of stories to begin with. */
function offeredPairs(widget) {
  const { pairs } = widget.spec.facts;
  const groups = Object.entries(pairs).map(([title, group]) => [title, Object.keys(group)]);
  return offers(widget, "story", "or begin with:", Object.fromEntries(groups), (next) => {
    next.twin = Object.values(pairs).find((group) => Object.hasOwn(group, next.story))[next.story];
    next.position = firstDifference(next.story.split(" "), next.twin.split(" "));
  });
}

const copyStory = (widget) => ({
  element: action(widget, "twin", "Copy the story here", (next) => {
    next.twin = next.story;
  }),
  update() {},
});

function partChoice(widget) {
  const names = times(FIRST_HEAD + widget.spec.facts.heads, partName);
  const part = choice(widget, "part", "Replace", names, {
    edits: "part",
    read: (inputs) => inputs.part,
    choose: (value) =>
      widget.edit(Symbol("part"), (next) => {
        Object.assign(next, clampedSite({ ...next, part: value }, Infinity));
      }),
  });
  setAttribute(part.element, "aria-label", "what is replaced");
  return part;
}

function sourceChoice(widget) {
  const source = choice(widget, "source", "by", ["the twin's vector", "0 (ablation)"]);
  setAttribute(source.element, "aria-label", "what is put there");
  return source;
}

/** Rows from the embedding, or from the first block, down to the last one. */
const blocksOf = ({ spec }, part) => {
  const { layers } = spec.facts;
  return part === STREAM ? times(layers + 1, (i) => i - 1) : times(layers, (i) => i);
};
const rowName = (block) => (block === EMBEDDED ? "embedding" : `block ${block}`);

/** Every block and every word: a cell chooses a site, and is tinted by what was recovered there. */
function siteMap(widget) {
  const [head, body] = [h("tr", h("td")), h("tbody")];
  const pick = (change) => widget.edit(Symbol("site"), (next) => Object.assign(next, change));
  const positionOf = (cell, { words }) => {
    const at = [...cell.parentNode.children].indexOf(cell) - 1;
    return at === words.length ? EVERYWHERE : at;
  };
  const click = ({ target }) => {
    const cell = target.closest("th, td");
    if (!cell || cell === head.firstChild) return;
    const view = viewOf(widget);
    const change = {};
    if (cell !== cell.parentNode.firstChild) change.position = positionOf(cell, view);
    if (cell.parentNode !== head) change.block = cell.parentNode.block;
    pick(change);
  };
  const keydown = (event) => {
    const { words } = viewOf(widget);
    const { block, part, position } = clampedSite(widget.inputs, words.length);
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const column = position === EVERYWHERE ? words.length : position;
    const [x, y] = { ...by, Home: [-column, 0], End: [words.length - column, 0] }[event.key] ?? [];
    if (x === undefined) return;
    event.preventDefault();
    const rows = blocksOf(widget, part);
    const to = within(column + x, [0, words.length]);
    pick({
      block: within(block + y, [rows[0], rows.at(-1)]),
      position: to === words.length ? EVERYWHERE : to,
    });
  };
  const table = h(
    "table.sites",
    {
      role: "grid",
      tabindex: "0",
      "data-input": "block position",
      "aria-label": "blocks and words: choose by the arrow keys what is replaced",
      click,
      keydown,
    },
    h("thead", head),
    body,
  );
  const box = scroller({ class: "map" }, table);
  const key = weightKey("");
  key.prepend(h("span", "recovered share:"));
  let shown = ""; // the cell that was brought into sight
  const line = () => h("tr", h("th", { scope: "row" }));
  const heading = () => h("th", { scope: "col" }, h("span"), h("span.other"));
  return {
    element: results(
      "column",
      h("div.above", h("span.label", "Where? Click a cell or a word, or use the arrow keys"), key),
      box,
    ),
    update(inputs) {
      const view = viewOf(widget);
      const recovered = triedBy(widget);
      const { words, others, isPair } = view;
      const site = clampedSite(inputs, words.length);
      const columns = [...words, "all words"];
      table.style.setProperty("--count", String(columns.length));
      while (head.children.length > columns.length + 1) head.lastChild.remove();
      while (head.children.length < columns.length + 1) head.append(heading());
      const chosen = site.position === EVERYWHERE ? words.length : site.position;
      setText(head.firstChild, site.part === STREAM ? "after" : "in");
      columns.forEach((word, i) => {
        const th = head.children[i + 1];
        const differs = i < words.length && isPair && word !== others[i];
        setText(th.firstChild, word);
        setText(th.lastChild, differs ? others[i] : "");
        setAttribute(th, "aria-label", differs ? `${word}; in the twin ${others[i]}` : word);
        const kind = i === words.length ? " all" : differs ? " differs" : "";
        setAttribute(th, "class", `${i === chosen ? "at" : ""}${kind}`.trim());
      });
      fillList(body, blocksOf(widget, site.part), line, (tr, block) => {
        tr.block = block;
        setText(tr.firstChild, rowName(block));
        setAttribute(tr.firstChild, "class", block === site.block ? "at" : "");
        while (tr.children.length > columns.length + 1) tr.lastChild.remove();
        while (tr.children.length < columns.length + 1)
          tr.append(h("td", { role: "gridcell" }, h("span")));
        columns.forEach((word, i) => {
          const cell = tr.children[i + 1];
          const position = i === words.length ? EVERYWHERE : i;
          const moved = recovered.get(keyOf({ ...site, block, position }));
          const here = block === site.block && i === chosen;
          const kind = moved === undefined ? "" : moved < 0 ? "tried below" : "tried";
          const least = Math.abs(moved) < 0.05 ? " none" : "";
          setAttribute(
            cell,
            "class",
            `${kind}${least}${here ? " at" : ""}${i < words.length ? "" : " all"}`,
          );
          setAttribute(cell, "id", `site-${block}-${position}`);
          setAttribute(cell, "aria-selected", String(here));
          setText(cell.firstChild, moved === undefined ? "" : inOneDigit(moved));
          setHeat(cell, within(Math.abs(moved ?? 0), [0, 1]));
          const found = moved === undefined ? "not tried" : `recovered ${format(moved)}`;
          setAttribute(cell, "aria-label", `${word}, ${rowName(block)}: ${found}`);
        });
      });
      const id = `site-${site.block}-${site.position}`;
      setAttribute(table, "aria-activedescendant", id);
      if (shown !== id) {
        shown = id;
        const cell = head.children[chosen + 1];
        const [left, width] = [cell.offsetLeft - head.firstChild.offsetWidth, cell.offsetWidth];
        const room = box.clientWidth - head.firstChild.offsetWidth;
        if (left < box.scrollLeft || left + width > box.scrollLeft + room)
          box.scrollLeft = left - (room - width) / 2;
      }
    },
  };
}

const HALF = 0.5; // of the difference: a site that recovers as much is named

/** A recovered logit difference in a small cell. */
const inOneDigit = (moved) => (Math.abs(moved) < 0.05 ? "0" : moved.toFixed(1).replace("-", "−"));

/**
 * Buttons that try one site after the other, until all are known or the reader steps in. The way
 * that the answer takes shows soon: words that differ, and the last one, come before the others,
 * and late blocks before early ones.
 */
function tries(widget) {
  const counted = h("span.counted-tries", { "aria-hidden": "true" });
  const begun = h("p.begun", { role: "status" });
  const put = (field, { block, position }) =>
    widget.edit(field, (next) => Object.assign(next, { block, position }));
  const make = (label, sitesOf, things) => {
    let [all, start, running] = [[], undefined, false];
    const isKnown = (site) => triedBy(widget).has(keyOf(site));
    const go = h(
      "button",
      {
        "data-input": "block position",
        click() {
          const view = viewOf(widget);
          start = clampedSite(widget.inputs, view.words.length);
          all = sitesOf(start, view);
          running = true;
          setText(begun, `Trying ${all.length} ${things} …`);
        },
      },
      label,
    );
    const job = autoContinue(widget, go, (field) => {
      const view = viewOf(widget);
      if (!isAnswered(widget, view)) return false;
      if (!view.isMeasurable) return "";
      const { words, others } = view;
      const late = ({ block, position }) =>
        (words[position] === others[position] && position < words.length - 1 ? 0 : 100) + block;
      const [next] = all.filter((site) => !isKnown(site)).sort((a, b) => late(b) - late(a));
      if (next) {
        put(field, next);
        return true;
      }
      put(field, start);
      return summary(widget, view, all, things);
    });
    return {
      go,
      halt: job.halt,
      note: job.note,
      stop: job.stop,
      update() {
        job.update();
        const { isMeasurable } = viewOf(widget);
        setAttribute(go, "aria-disabled", String(!isMeasurable));
        go.disabled = !isMeasurable;
        if (running && job.halt.hidden) {
          running = false;
          setText(begun, "");
        }
        if (running) {
          const known = all.filter(isKnown);
          const found = known.filter((site) => triedBy(widget).get(keyOf(site)) >= HALF);
          return `${known.length} of ${all.length}, ${found.length} recover at least half`;
        }
        return "";
      },
    };
  };
  const everyWord = ({ words }) => times(words.length, (position) => position);
  const every = [
    make(
      "Try every word",
      (site, view) => everyWord(view).map((position) => ({ ...site, position })),
      "words",
    ),
    make(
      "Try every block",
      (site) => blocksOf(widget, site.part).map((block) => ({ ...site, block })),
      "blocks",
    ),
    make(
      "Try everything",
      (site, view) =>
        blocksOf(widget, site.part).flatMap((block) =>
          everyWord(view).map((position) => ({ ...site, block, position })),
        ),
      "sites",
    ),
  ];
  const update = () => setText(counted, every.map((one) => one.update()).join(""));
  // It also ends by a key or a click elsewhere, with no answer that would come after.
  const ended = new MutationObserver(() => every.every(({ halt }) => halt.hidden) && update());
  for (const { halt } of every) ended.observe(halt, { attributeFilter: ["hidden"] });
  return {
    element: h(
      "div.column",
      h(
        "div.tries",
        ...every.flatMap(({ go, halt }) => [go, halt]),
        counted,
        ...every.map(({ note }) => note),
      ),
      begun,
    ),
    reset: () => every.forEach(({ stop }) => stop()),
    update,
  };
}

/** Where at least half of the difference was recovered. */
function summary(widget, { words }, sites, things) {
  const recovered = triedBy(widget);
  const recoveredAt = (site) => recovered.get(keyOf(site));
  const found = sites.filter((site) => recoveredAt(site) >= HALF);
  const begin = `${found.length} of ${sites.length} ${things}`;
  if (!found.length) return `${begin} recover half of the difference.`;
  const several = found.length > 1 ? "recover" : "recovers";
  const numbers = found.map((site) => ({ ...site, moved: format(recoveredAt(site)) }));
  const nameOf = ({ block, position, moved }) =>
    things === "blocks"
      ? `${rowName(block)} ${moved}`
      : `${called(words[position])} (word ${position + 1}) ${moved}`;
  const counts = new Map();
  for (const { position } of found) counts.set(position, (counts.get(position) ?? 0) + 1);
  const names =
    things === "sites"
      ? [...counts].map(([at, n]) => `${n} at ${called(words[at])}, word ${at + 1}`)
      : numbers.map(nameOf);
  const most = 5;
  const more = names.length > most ? ` and ${names.length - most} more` : "";
  const list = names.slice(0, most).join("; ");
  return `${begin} ${several} at least half of the difference: ${list}${more}.`;
}

// ---------------------------------------------------------------- the three runs

const WORDS_SHOWN = 4;

/** The likeliest words in the three runs, side by side. */
function threeRuns(widget) {
  const names = ["the story", "its twin", "patched"];
  const order = [CLEAN_RUN, CORRUPTED_RUN, PATCHED_RUN];
  const body = h("tbody");
  const line = () =>
    h(
      "tr",
      h("th", { scope: "row" }),
      ...order.map((one) =>
        h(
          "td",
          { class: one === PATCHED_RUN ? "patched" : "" },
          h("span.bar", h("i")),
          h("span.share"),
        ),
      ),
    );
  const heads = names.map((name, i) =>
    h("th", { scope: "col", class: order[i] === PATCHED_RUN ? "patched" : "" }, name),
  );
  const table = h(
    "table.runs",
    h("caption", "The next word, in each run"),
    h("thead", h("tr", h("td"), ...heads)),
    body,
  );
  return {
    element: results("column", table),
    shows: "outputs",
    update() {
      const { shares, vocabulary, answer, other, isPair } = viewOf(widget);
      const runs = order.map(shares);
      const largest = Float32Array.from(runs[0], (_, id) => Math.max(...runs.map((p) => p[id])));
      const rest = topK(largest, vocabulary.length).filter(
        (id) => id !== answer && id !== other && !/^<.+>$/.test(vocabulary[id]),
      );
      const ids = [...new Set([answer, other]), ...rest].slice(0, WORDS_SHOWN);
      table.classList.toggle("unpatched", !isPair);
      fillList(body, ids, line, (tr, id) => {
        setText(tr.firstChild, vocabulary[id]);
        order.forEach((one, i) => {
          const [bar, share] = tr.children[i + 1].children;
          const p = shares(one)[id];
          setLength(bar.firstChild, p);
          setText(share, one === PATCHED_RUN && !isPair ? "–" : percentOf(p));
        });
      });
    },
  };
}

/** The recovered share of the logit difference, drawn and in words. */
function recoveredBar(widget) {
  const number = h("b", { "data-output": "moved" });
  const [from, to] = [h("span.end"), h("span.end")];
  const [fill, dot] = [h("i.fill"), h("i.dot")];
  const track = h("span.track", { "aria-hidden": "true" }, fill, dot);
  const drawn = h("div.bar-of", from, track, to);
  const difference = h("p.note.sums");
  const message = h("p.note.says", { "aria-live": "polite" });
  const title = h("span.label", "Recovered share of the difference: ", number);
  return {
    element: results("column moved", title, drawn, difference, message),
    shows: "outputs",
    update() {
      const view = viewOf(widget);
      const { vocabulary, answer, other, moved, isMeasurable, differences } = view;
      setAttribute(number, "data-value", String(moved));
      setText(number, isMeasurable ? format(moved) : "–");
      drawn.hidden = difference.hidden = !isMeasurable;
      if (!isMeasurable) {
        setText(message, whyUnmeasurable(view));
        return;
      }
      setText(from, vocabulary[answer]);
      setText(to, vocabulary[other]);
      setLength(fill, within(moved, [0, 1]));
      setLength(dot, within(moved, [0, 1]), "left");
      const [patched, own, corrupted] = differences;
      setText(
        difference,
        `Logit of “${vocabulary[other]}” less that of “${vocabulary[answer]}”: ${format(own)} in ` +
          `the story, ${format(corrupted)} in its twin, ${format(patched)} patched.`,
      );
      setAttribute(message, "aria-live", widget.streams ? "off" : "polite");
      setText(message, `${outcome(view)} ${meaning(view)}`);
    },
  };
}

// ---------------------------------------------------------------- the same in torch

/** Python that computes the numbers that are shown. */
export function snippetOf(spec, inputs) {
  const [story, corrupted] = ["story", "twin"].map((name) => wordsOf(spec, name, inputs[name]));
  const site = clampedSite(inputs, story.length);
  const at = site.position === EVERYWHERE ? "" : `, ${site.position + 1}`;
  const own = isHead(site.part)
    ? `head_site(model, ${site.block}, ${site.part - FIRST_HEAD}${at})`
    : site.part === STREAM
      ? `stream_site(${site.block + 1}${at})`
      : `Site("blocks.${site.block}.feed_forward"${at && `, at=(${site.position + 1},)`})`;
  const patched =
    site.source === ZEROED ? "ablate(model, story, site)" : "patch_from(model, story, twin, site)";
  const needed = [own.split("(")[0], patched.split("(")[0], "recovered"].sort();
  const quoted = (words) => JSON.stringify(words.join(" "));
  return `from tinylib.inside_gpt import ${needed.join(", ")}
from tinylib.lab.models.language import load_language_model

stories = load_language_model("${spec.facts.model}")
model = stories.model
story = stories.ids(${quoted(story)})
twin = stories.ids(${quoted(corrupted)})

# ${whatAt(site)}, ${whereAt({ words: story }, site.position)}${at && "; position 0 is <bos>"}
site = ${own}
logits = ${patched}[0, -1], model(story)[0, -1], model(twin)[0, -1]
answer, other = (z.argmax() for z in logits[1:])
differences = [(z[other] - z[answer]).item() for z in logits]
moved = recovered(*differences) if answer != other else 0.0
probabilities = [z.softmax(-1) for z in logits]

for name, p in zip(("patched", "story", "twin"), probabilities):
    shares = [f"{stories.tokens.tokens[i]} {p[i]:.3f}" for i in (answer, other)]
    print(f"{name:8}", *shares)
print(f"recovered {moved:.2f}")
`;
}

function copyCode(widget) {
  const code = () => snippetOf(widget.spec, widget.inputs);
  const { element, button, follow } = copyAsTorch(code, "the numbers shown here");
  return {
    element: h("div.column.copied", element),
    update() {
      button.disabled = !viewOf(widget).isPair;
      follow();
    },
  };
}

siteMap.style = `
.above { display: flex; flex-wrap: wrap; gap: 2px 16px; justify-content: space-between; }
.above .ramp-key { margin: 0; --tone: var(--recovered); }
.sites { --first: 5.875rem; --each: 1.5625rem; table-layout: fixed; width: 100%; cursor: pointer;
  min-width: calc(var(--first) + var(--count) * var(--each) + 6px); border-collapse: separate;
  border-spacing: 0; }
.sites thead td, .sites tbody th { width: var(--first); max-width: none; position: sticky; left: 0;
  z-index: 1; background: var(--ground); padding: 0 8px 0 0; font-size: var(--size-note);
  text-align: right; color: var(--soft); }
.sites thead td { vertical-align: bottom; }
.sites thead th { max-width: none; height: 4.375rem; padding: 0 0 4px; vertical-align: bottom;
  overflow: visible; color: var(--text); font-size: var(--size-note); }
.sites thead th span { display: inline-block; writing-mode: vertical-rl; line-height: 1;
  transform: rotate(180deg); max-height: 4.125rem; overflow: hidden; text-overflow: ellipsis; }
.sites thead .other:empty { display: none; }
.sites .differs { font-weight: 650; font-size: var(--size-small); }
.sites .differs .other { color: var(--position); margin-left: 1px; }
.sites thead .all { color: var(--soft); font-style: italic; padding-left: 6px;
  width: calc(var(--each) + 6px); }
.sites :is(thead th, tbody th).at { color: var(--accent); }
.sites :is(thead th:not(.all), tbody th).at { font-weight: 650; }
.sites tbody td { height: 1.4375rem; padding: 0; text-align: center; font-size: var(--size-small);
  white-space: nowrap; border: 1px solid var(--ground); ${shaded("recovered")} }
.sites tbody td:not(.tried) { background: color-mix(in oklab, var(--ground), var(--line) 40%); }
.sites tbody td.below { ${shaded("negative")} }
.sites tbody td.none { color: var(--soft); }
.sites tbody td.all { border-left: 6px solid var(--ground); }
.sites tbody td.at { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: 3px; }
.sites tbody td:hover { box-shadow: inset 0 0 0 1px var(--accent); }
@media (max-width: 37.5rem) {
  .sites { --each: 1.875rem; }
  .sites tbody td { height: 1.6875rem; }
}
@container widget (min-width: 53.75rem) { .frame { gap: 10px; } }
`;
offeredPairs.style = `
.pair { display: grid; gap: 12px 24px; }
.text-of { position: relative; display: flex; flex-direction: column; gap: 6px; min-width: 0; }
.text-of > .column { flex-flow: row wrap; justify-content: space-between; }
.text-of > .column > * { flex: 1 0 100%; min-width: 0; }
.text-of > button { align-self: flex-start; }
.text-of .counted { padding-top: 3px; }
@container widget (min-width: 30rem) {
  .text-of > .column > :is(.counted, .known:not([open])) { flex: 0 1 auto; }
}
@container widget (min-width: 53.75rem) {
  .pair { grid-template-columns: 1fr 1fr; }
  .text-of > .column { gap: 6px; }
  .text-of > :is(.offer, button) { position: absolute; right: 0; top: -5px; }
  .text-of > .offer { left: 6rem; justify-content: flex-end; }
  .text-of .offer select { flex: 0 1 14.75rem; }
}
`;
partChoice.style = `
.sentence-of { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; }
.sentence-of .kind { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; }
.sentence-of .kind > .of { font-weight: 600; color: var(--text); }
.sentence-of .pick { padding-inline: 9px; }
`;
tries.style = `
.tries { display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: center; }
.tries .told { flex: 1 1 20rem; max-width: none; line-height: 1.35; }
.tries .told:empty { display: none; }
.counted-tries { font-size: var(--size-note); color: var(--soft);
  font-variant-numeric: tabular-nums; }
.counted-tries:empty { display: none; }
.begun { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden;
  clip-path: inset(50%); }
`;
threeRuns.style = `
.runs { width: 100%; table-layout: fixed; }
.runs thead td, .runs tbody th { width: 4.75rem; max-width: none; }
.runs tbody th { color: var(--text); font-weight: 600; font-size: var(--size-note);
  padding-right: 8px; }
.runs thead th { text-align: left; max-width: none; white-space: normal; vertical-align: bottom; }
.runs td { padding: 1px 8px 1px 0; white-space: nowrap; }
.runs .bar { display: inline-block; vertical-align: middle; width: calc(100% - 3.875rem); height:
  .875rem; border-radius: 3px; background: color-mix(in oklab, var(--ground), var(--line) 34%); }
.runs .bar i { display: block; height: 100%; border-radius: 3px;
  background: color-mix(in oklab, var(--ground), var(--text) 42%); }
.runs .patched .bar i { background: var(--probability); }
.runs thead .patched { color: var(--text); font-weight: 650; }
.runs .share { display: inline-block; width: 3.625rem; text-align: right;
  font-size: var(--size-note); }
.unpatched .patched .bar { visibility: hidden; }
@container widget (max-width: 31.25rem) {
  .runs :is(.bar, .share) { display: block; width: 100%; }
  .runs .bar { height: 8px; }
  .runs .share { text-align: left; }
  .runs :is(thead td, tbody th) { width: 4.875rem; }
  .runs td { padding: 4px 4px 0 0; }
}
`;
recoveredBar.style = `
.judged-of { position: relative; display: flex; flex-direction: column; gap: 6px; }
.moved { gap: 6px; }
.bar-of { display: flex; gap: 12px; align-items: center; font-size: var(--size-note);
  padding-right: 6px; }
.bar-of .end { font-weight: 600; }
.track { position: relative; flex: 1; height: 8px; border-radius: 4px;
  background: color-mix(in oklab, var(--ground), var(--line) 60%); }
.track .fill { position: absolute; inset: 0 auto 0 0; border-radius: 4px;
  background: var(--recovered); }
.track .dot { position: absolute; top: -4px; width: 1rem; height: 1rem; margin-left: -.5rem;
  border-radius: 50%; background: var(--recovered); border: 2px solid var(--ground); }
.moved b { font-variant-numeric: tabular-nums; }
.moved .note { line-height: 1.45; }
.sums { color: var(--soft); }
.says { min-height: 4.4em; }
@container widget (min-width: 53.75rem) {
  .sides { --left: 1.1fr; --right: 1fr; }
  .copied > .copying:not(:has(.snippet)) { position: absolute; right: 0; top: -5px; }
  .moved > .label { padding-right: 7.5rem; min-height: 1.5rem; }
}
`;
copyCode.style = `${copyAsTorch.style}
.copied { align-items: stretch; }
`;

export default live(
  "One vector from another story, live",
  (ui) => [
    ui.boxed(
      "pair",
      ui.boxed("text-of", ui.use(text, "story", "Your story"), ui.use(offeredPairs)),
      ui.boxed("text-of", ui.use(text, "twin", "Its twin, of as many words"), ui.use(copyStory)),
    ),
    ui.boxed("sentence-of", ui.use(partChoice), ui.use(sourceChoice)),
    ui.use(siteMap),
    ui.use(tries),
    ui.sides(ui.boxed("judged-of", ui.use(recoveredBar), ui.use(copyCode)), ui.use(threeRuns)),
  ],
  { wide: true, main: "[data-output]:has(.sites)", answer: ".moved .says" },
);
