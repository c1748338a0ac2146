import { common, missing, strange, surplus } from "../../live/page/dictionary.js";
import { gloss } from "../../live/page/gloss.js";
import { greedy } from "../../live/page/search.js";
import { BOS, decoder, encode, EOS, reading, top } from "../../live/page/translator.js";
import { results } from "../../live/ui/boxes.js";
import { h, setText } from "../../live/ui/dom.js";
import { listed } from "../../live/ui/numbers.js";
import { folded, live } from "../../live/ui/parts.js";
import {
  glossed,
  heldOut,
  lengths,
  readout,
  sentence,
  translation,
  translated,
} from "../../live/ui/sentences.js";
import { editableVector, strips } from "../../live/ui/vectors.js";

/** What torch does in a kernel, in compute() of encoder_decoder.py. */
export async function program(run, { source, by }, spec) {
  const { embeddings, states, hidden } = await encode(run, source, spec);
  const { state: perturbed } = await run("translator-perturb", { hidden, by });
  const steps = await greedy(decoder(run), reading(perturbed), BOS, EOS, spec.limits.T[1]);
  return {
    embeddings,
    states,
    vector: { dims: spec.limits.D.slice(1), data: top(perturbed).data },
    tokens: steps.map(({ token }) => token),
    probabilities: steps.map(({ logProbs, token }) => Math.exp(logProbs[token])),
  };
}

// With the shipped weights, "the cat is happy ." and this entry moved to −1: "un chat", not "le
// chat".
const FIRST = 15;

/** The sentence, as it is judged: all that this model has learned from end with a full stop. */
const asSentence = (english) => (english.at(-1) === "." ? english : [...english, "."]);

const quote = (words) => `“${words}”`;

/**
 * The French without its end, the correct translation if that is known, and which of the French
 * words are wrong: those that the two do not share, or else those that the dictionary finds no
 * English for.
 */
function compared({ spec }, english, tokens) {
  const { dictionary } = spec.facts;
  const ids = [...tokens].filter((id) => id !== EOS);
  const french = ids.map((id) => spec.vocabularies.target[id]);
  const truth = translation({ spec }, english.join(" "))?.split(" ");
  const kept = truth && common(french, truth);
  const faults = kept ? french.map((_, t) => !kept.has(t)) : surplus(dictionary, english, french);
  return { french, truth, faults };
}

/** The verdict on a translation. */
function judgement({ spec }, english, { french, truth, faults }) {
  const { dictionary } = spec.facts;
  const wrong = faults.filter(Boolean).length;
  if (truth) {
    if (truth.join(" ") === french.join(" ")) return "✓ Correct: every word is as it should be.";
    return `✗ Wrong${wrong ? `: ${wrong} of its ${french.length} words` : ""}.`;
  }
  if (strange(dictionary, english, french).some(Boolean))
    return "Not judged: a word here is not in the dictionary.";
  const lost = lostIn({ spec }, english, french);
  if (!wrong && !lost.length)
    return "✓ No word is missing, and none too many (endings and order are not checked).";
  const parts = [
    ...(wrong ? ["what is marked ✗ is not in the English"] : []),
    ...(lost.length ? [`${listed(lost)} is not translated in full`] : []),
  ];
  return `✗ Wrong: ${parts.join(", and ")}.`;
}

/** The English words that no French word translates. */
function lostIn({ spec: { facts } }, english, french) {
  return lostPlaces(facts, english, french).map((places) =>
    quote(places.map((s) => english[s]).join(" ")),
  );
}

/** The places in the English of what is not in the French. */
function lostPlaces({ dictionary }, english, french) {
  const { gone, few } = missing(dictionary, english, french);
  return [...gone, ...few.map(({ places }) => places.flat())];
}

const meanings = ({ spec: { facts } }, words) => gloss(facts.glosses, words);

/** Whether the French is correct, and if it is not, what would be. */
function verdict(widget) {
  const message = h("p.judged", { role: "status" });
  const words = h("ol.said.plain");
  const right = h("div.right", h("p.label", "Correct:"), words);
  return {
    element: results("column", message, right),
    shows: "outputs",
    update(inputs, outputs) {
      const given = widget.words("S", inputs);
      const english = asSentence(given);
      const found = compared(widget, english, outputs.tokens.data);
      const stop = given === english ? "" : " A sentence of this model ends with a full stop.";
      setText(message, `${judgement(widget, english, found)}${stop}`);
      right.hidden = !found.truth || found.truth.join(" ") === found.french.join(" ");
      if (!right.hidden) glossed(words, found.truth, meanings(widget, found.truth));
    },
  };
}

/** The sentence, and others to choose from. */
function asked(ui) {
  const box = ui.use(sentence, "source", "English sentence", undefined, { ids: false });
  const others = ui.use(heldOut, "source", "", undefined, { menu: true });
  return { element: h("div.ask", box.element, others.element) };
}

/** English, one vector, French: from left to right, or from top to bottom on a phone. */
function flow(...parts) {
  return { element: h("div.flow", ...parts.map((part) => part.element)) };
}
verdict.style = `
.ask { display: grid; grid-template-columns: minmax(0, 1fr); gap: 4px 24px; min-width: 0; }
.ask .offer { align-content: start; }
.flow { display: grid; grid-template-columns: minmax(0, 1fr); gap: 14px; min-width: 0; }
.flow > .strip:nth-child(2) > .caption b::before, .flow > .spoken > .label::before {
  content: "↓ "; content: "↓ " / ""; font-weight: 700; color: var(--learned); }
.spoken .leads > .lines { display: none; }
.flow .bend > .knob > .called > :first-child { min-height: 0; }
.strip > .field { aspect-ratio: 2; }
@container widget (min-width: 50rem) {
  .ask { grid-template-columns: minmax(0, 1fr) 18.125rem; }
  .flow { grid-template: "hs . hv . hf" auto "s s v f f" auto "m . b . j" auto
    / minmax(0, 1fr) 2.75rem 15rem 2.75rem minmax(0, 1fr); gap: 6px 0; align-items: center; }
  .flow > .strip, .flow > .spoken { display: contents; }
  .flow > .strip > .caption { grid-area: hs; align-self: end; }
  .flow > .strip > .leads { grid-area: s; }
  .flow > .strip:nth-child(2) > .caption { grid-area: hv; }
  .flow > .strip:nth-child(2) > .field { grid-area: v; aspect-ratio: 6 / 5; }
  .flow > .strip:nth-child(2) > .bend { grid-area: b; align-self: start; }
  .flow > .strip:nth-child(2) > .caption b::before, .flow > .spoken > .label::before {
    content: none; }
  .flow > .spoken > .label { grid-area: hf; align-self: end; padding-left: 6px; }
  .flow > .spoken > .leads { grid-area: f; }
  .flow > .column:nth-child(4) { grid-area: j; align-self: start; padding-left: 6px; }
  .flow > details { grid-area: m; align-self: start; }
  .flow .leads { display: grid; align-self: center; }
  .flow > .strip > .leads { grid-template-columns: minmax(0, 1fr) 2.75rem; }
  .flow > .spoken > .leads { grid-template-columns: 2.75rem minmax(0, 1fr); }
  .flow .leads > .lines, .spoken .leads > .lines { display: block; }
}
`;

/** What the tour shows: the French, each word with its meaning, and what is wrong with it. */
function translationOf(widget, inputs, { tokens }) {
  const english = asSentence(widget.words("S", inputs));
  const { french: words, faults } = compared(widget, english, tokens.data);
  const gone = lostIn(widget, english, words);
  const lost = gone.length ? `✗ Lost: ${gone.join(", ")}.` : "";
  return { words, below: meanings(widget, words), faults, lost };
}

/** Where in the English the words are that the tour's translation has lost. */
function goneOf(widget, inputs, { tokens }) {
  const english = asSentence(widget.words("S", inputs));
  const { french } = compared(widget, english, tokens.data);
  return lostPlaces(widget.spec.facts, english, french).flat();
}

export default live(
  "Into one vector and out again, live",
  (ui) => [
    asked(ui),
    flow(
      ui.use(strips, "states", "English: the state after each word", {
        vocabulary: "source",
        handed: true,
      }),
      ui.use(editableVector, "vector", "One vector", { delta: "by", from: "states", first: FIRST }),
      ui.use(readout, "French, and how sure the decoder is", "tokens", "probabilities", {
        vocabulary: "target",
        gloss: meanings,
        faults: (widget, inputs, tokens) =>
          compared(widget, asSentence(widget.words("S", inputs)), tokens).faults,
      }),
      ui.use(verdict),
      ui.use(
        folded,
        "Show the embedding of each word",
        ui.use(strips, "embeddings", "The embedding of each word"),
      ),
    ),
  ],
  {
    query: -1,
    wide: true,
    answer: "ol.said:not(.plain)",
    tour: (ui) => [
      ui.use(lengths, "source", goneOf),
      ui.use(translated, "Turns the English into 120 numbers:", translationOf),
    ],
  },
);
