import { uniform } from "../../live/page/chance.js";
import { idsOf } from "../../live/page/inputs.js";
import { beam } from "../../live/page/search.js";
import { BOS, EOS } from "../../live/page/translator.js";
import { beamEnds, beamTree, candidatesOf, endsOf, grow, pathOf } from "../../live/ui/beams.js";
import { results } from "../../live/ui/boxes.js";
import { redraw } from "../../live/ui/controls.js";
import { h, setText } from "../../live/ui/dom.js";
import { textOfEach } from "../../live/ui/models.js";
import { format } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { visible } from "../../live/ui/sentences.js";

const ENDLESS = -1; // as in beam_tree.py
const DRAWN = 2;
const TEXTS = ["prompt", "story"]; // what each model reads

/** What torch does in a kernel, in compute() of beam_tree.py. */
export async function program(run, inputs, spec) {
  const { prompt, story, variant, width, alpha, length, seed } = inputs;
  const given = variant ? [BOS, ...story] : prompt;
  const [bos, eos] = [given.at(-1), variant ? EOS : ENDLESS];
  const memory = memoryOf(spec, variant, given);
  memory.read ??= await read(run, spec.facts.models[variant], given);
  const consider = (feeds) => run(variant ? "beam-consider" : "beam_tree-consider_endless", feeds);
  const pick = (next_log_probs, u) => run("beam_tree-pick", { next_log_probs, u });
  const drawn = drawing(pick, bos, eos, length, uniform(seed, DRAWN * length));
  const step = stepOf(run, memory);
  const start = { node: { dims: [1], data: new Float32Array([0]) } };
  const { steps, single } = await beam(step, consider, start, bos, eos, length, width, alpha, [
    drawn,
  ]);
  return {
    which: variant,
    given,
    ...candidatesOf(steps),
    greedy: single.map(({ token }) => token),
    greedy_log_prob: single.at(-1).soFar,
    ...drawn.outputs(),
  };
}

/** Texts are drawn, as sampled() of beam_tree.py draws them: a row of the batch each. */
function drawing(pick, bos, eos, length, us) {
  const texts = Array.from({ length: DRAWN }, () => ({ tokens: [], logProb: 0, done: false }));
  let n = 0;
  const writer = {
    fed: texts.map(() => bos),
    goesOn: () => n < length && !texts.every(({ done }) => done),
    async hear(logProbs) {
      const { token, log_prob } = await pick(logProbs, us.slice(DRAWN * n, DRAWN * (n + 1)));
      n += 1;
      texts.forEach((one, r) => {
        if (one.done) return;
        const id = Number(token.data[r]);
        one.tokens.push(id);
        one.logProb = Math.fround(one.logProb + log_prob.data[r]); // in fp32, as torch adds
        one.done = id === eos;
      });
      writer.fed = texts.map(({ tokens }) => tokens.at(-1));
      return texts.map((_, r) => r);
    },
    /** What has been drawn: after its end a text is `eos`. */
    outputs: () => ({
      drawn: texts.map(({ tokens }) => [...tokens, ...Array(length - tokens.length).fill(eos)]),
      drawn_length: texts.map(({ tokens }) => tokens.length),
      drawn_log_prob: texts.map(({ logProb }) => logProb),
    }),
  };
  return writer;
}

// ---------------------------------------------------------------- what was read

const MOST_KNOWN = 2000; // tokens of which it is remembered what they led to
const memories = new WeakMap(); // spec -> what was read of the last text

/**
 * What the model has read of texts that begin with `given`: of each token, by its number, the way
 * to it, what it led to, and its keys and values. Another width, penalty, length or draw asks for
 * little else, and texts that begin alike are read once.
 */
function memoryOf(spec, variant, given) {
  const key = `${variant} ${given}`;
  const known = memories.get(spec);
  if (known?.key === key && known.nodes.length < MOST_KNOWN) return known;
  memories.set(spec, { key, read: null, nodes: [{ path: [], after: new Map() }] });
  return memories.get(spec);
}

/** The text but for its last token: keys and values for all that may follow. */
async function read(run, { L, D }, given) {
  const nothing = { dims: [L, 0, D], data: new Float32Array(0) };
  if (given.length === 1) return { keys: nothing, values: nothing };
  return run("beam_tree-read", { tokens: given.slice(0, -1) });
}

/** The model's step for search.js; its state is the numbers of the tokens that came last. */
function stepOf(run, { nodes, read: { keys, values } }) {
  const [L, , D] = keys.dims;
  const after = (parent, token) => {
    const { path, after: children } = nodes[parent];
    if (!children.has(token)) {
      children.set(token, nodes.length);
      nodes.push({ token, path: [...path, nodes.length], after: new Map() });
    }
    return nodes[children.get(token)];
  };
  /** The keys or the values of what came before each of these tokens. */
  const cacheOf = (rows, name) => {
    const G = rows[0].path.length - 1;
    const data = new Float32Array(rows.length * L * G * D);
    rows.forEach(({ path }, b) =>
      path.slice(0, -1).forEach((node, g) => {
        for (let l = 0; l < L; l += 1) {
          const own = nodes[node][name].subarray(l * D, (l + 1) * D);
          data.set(own, ((b * L + l) * G + g) * D);
        }
      }),
    );
    return { dims: [rows.length, L, G, D], data };
  };
  /** Read tokens that are not known yet, all as far from the start. */
  const readAll = async (rows) => {
    const output = await run("beam_tree-write", {
      token: rows.map(({ token }) => token),
      keys,
      values,
      cached_keys: cacheOf(rows, "keys"),
      cached_values: cacheOf(rows, "values"),
    });
    const [V, M] = [output.log_probs.dims[1], output.now_keys.dims[2]];
    rows.forEach((node, b) => {
      node.logProbs = output.log_probs.data.slice(b * V, (b + 1) * V);
      for (const name of ["keys", "values"]) {
        const all = output[`now_${name}`].data;
        node[name] = new Float32Array(L * D);
        for (let l = 0; l < L; l += 1) {
          const last = ((b * L + l) * M + M - 1) * D;
          node[name].set(all.subarray(last, last + D), l * D);
        }
      }
    });
  };
  return async ({ node: { data: parents } }, tokens) => {
    const rows = tokens.map((token, i) => after(parents[i], token));
    const unknown = [...new Set(rows)].filter(({ logProbs }) => !logProbs);
    if (unknown.length) await readAll(unknown);
    const V = rows[0].logProbs.length;
    const data = new Float32Array(rows.length * V);
    rows.forEach(({ logProbs }, i) => data.set(logProbs, i * V));
    const last = Float32Array.from(rows, ({ path }) => path.at(-1));
    return {
      logProbs: { dims: [rows.length, V], data },
      state: { node: { dims: [rows.length], data: last } },
    };
  };
}

// ---------------------------------------------------------------- what was found

/** For beams.js: what the search ends with, the greedy text, and those that were drawn. */
function searched(widget, inputs, outputs) {
  const { spec } = widget;
  const { variant } = inputs;
  const given = Array.from(outputs.given.data);
  const read = idsOf(spec, inputs)[TEXTS[variant]];
  if (outputs.which.data[0] !== variant || String(given.slice(variant)) !== String(read))
    return null;
  const eos = variant ? EOS : ENDLESS;
  const names = spec.sentences[TEXTS[variant]].map(visible);
  const steps = grow(inputs, outputs, names, eos);
  if (!steps) return null;
  const decode = (ids) =>
    wordsOut(
      spec.sentences[TEXTS[variant]],
      variant,
      ids.filter((id) => id !== eos),
    );
  const { greedily, rows } = endsOf(steps, inputs, outputs, decode, eos);
  const N = outputs.drawn.shape[1];
  outputs.drawn_log_prob.data.forEach((logProb, r) => {
    const ids = [...outputs.drawn.data.subarray(r * N, (r + 1) * N)];
    rows.push({
      path: pathOf(ids, steps, eos),
      text: decode(ids),
      by: "drawn",
      length: outputs.drawn_length.data[r],
      logProb,
      score: null,
    });
  });
  const verdict = compared(
    rows.slice(0, -1 - DRAWN),
    rows.at(-1 - DRAWN),
    rows.slice(-DRAWN),
    greedily,
    steps.length,
  );
  return {
    steps,
    greedily,
    rows,
    verdict,
    decode,
    source: `${variant} ${inputs[TEXTS[variant]]}`,
    root: names[given.at(-1)],
    token: variant ? "word" : "character",
    text: "text",
  };
}

/** A text as it is read; a new line shows its sign. */
const wordsOut = (vocabulary, variant, ids) =>
  ids
    .map((id) => vocabulary[id])
    .join(variant ? " " : "")
    .replaceAll("\n", "↵");

/** The beam's best beside the greedy text, and both beside what the model writes when it draws. */
function compared(found, single, drawn, greedily, T) {
  const [best] = found;
  const kept = greedily.filter((node) => node.kept).length;
  const beside =
    best.text === single.text
      ? "The beam's best is the greedy text. "
      : `The beam's best is ${best.logProb > single.logProb ? "likelier" : "less likely"} than ` +
        `the greedy text: ln p ${format(best.logProb)} against ` +
        format(single.logProb) +
        (kept < T ? `; the greedy text was pruned at step ${kept + 1}. ` : ". ");
  const both = drawn.map(({ logProb }) => format(logProb)).join(" and ");
  return (
    beside +
    (drawn.every(({ logProb }) => logProb < best.logProb)
      ? `The drawn ones are less likely, ln p ${both}, and they are what this model's texts ` +
        `are like: the likeliest text is no typical one.`
      : `Drawn ones: ln p ${both}. Where few texts are possible, the likeliest is also drawn; ` +
        `and a text that ends early has few factors.`)
  );
}

/** Other draws; and of a story that was offered, whether the answer is right. */
function others(widget) {
  const again = redraw(widget, "Draw two others");
  const which = h("span.which");
  const truth = h("p.note.truth");
  return {
    element: results("column", h("div.again", again, which), truth),
    update(inputs, outputs) {
      setText(which, `Drawn at temperature 1, with the numbers of seed ${inputs.seed}.`);
      const { facts } = widget.spec;
      const answer =
        inputs.variant &&
        Object.values(facts.stories).find((group) => Object.hasOwn(group, inputs.story))?.[
          inputs.story
        ];
      const found = searched(widget, inputs, outputs);
      setText(truth, answer && found ? correctness(answer, found.rows) : "");
    },
  };
}

/** Which texts begin with the true answer, as far as they are long enough to tell. */
function correctness(answer, rows) {
  const right = (row) => `${row.text} `.startsWith(`${answer} `);
  const [best, single, ...drawn] = [rows[0], ...rows.slice(-1 - DRAWN)];
  const yes = (row) => (right(row) ? "right" : "not so");
  return (
    `By the story the answer is “${answer}”. The beam's best: ${yes(best)}; greedy: ` +
    `${yes(single)}; drawn: ${drawn.map(yes).join(", ")}.`
  );
}

others.style = `
.sides { --left: 1fr; --right: 1.15fr; }
.again { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; }
.again .which { font-size: var(--size-note); color: var(--soft); }
.truth:empty { display: none; }
.ends tbody th { overflow-wrap: anywhere; min-width: 6.25rem; }
@media (max-width: 37.5rem) { .ends :is(td, th) { padding-left: 6px; } }
`;

export default live(
  "Beam search writes on, live",
  (ui) => [
    ui.sides(
      ui.boxed(
        "side",
        ...textOfEach(ui, "Your story, up to a question"),
        ui.knobs(
          ui.slider("width", "beam width", 1, 5, 1),
          ui.slider("alpha", "length penalty α", 0, 1.5, 0.1),
          ui.slider("length", "tokens to write", 1, 32, 1),
        ),
      ),
      ui.boxed("side", ui.use(beamEnds, "text", searched), ui.use(others), ui.explanation()),
    ),
    ui.use(beamTree, searched),
  ],
  { wide: true, main: ".ends", answer: ".ends" },
);
