// Parts for widgets that read and write sentences: a line to type, and words with probabilities.

import { bytesOf, idsOf, isOpen, knows, ofCharacters, ownTokens, wordsOf } from "../page/inputs.js";
import { plainly } from "../page/words.js";
import { keepHeight, results } from "./boxes.js";
import { offers } from "./controls.js";
import { AS_IS, AS_TYPED, h, notifyPage, setAttribute, setHeat, setText } from "./dom.js";
import { lines } from "./lines.js";
import { shaded } from "./look.js";
import { percent } from "./numbers.js";
import { isToured } from "./widget.js";

const quoted = (words) => [...new Set(words)].map((word) => `“${word}”`).join(", ");

/**
 * A list that always has one element per entry: `make(i)` returns a new element, or `make` is the
 * kind of element for h(); `fill(element, entry, i)` sets its content.
 */
export function fillList(list, entries, make, fill) {
  const added = (i) => (typeof make === "string" ? h(make) : make(i));
  while (list.children.length > entries.length) list.lastChild.remove();
  while (list.children.length < entries.length) list.append(added(list.children.length));
  entries.forEach((entry, i) => fill(list.children[i], entry, i));
}

/**
 * Makes `box` edit the sentence `name`, and `wrong` show the error in its text, if there is one.
 * `also(next, widget)` changes what else hangs on its words, `typed()` does what else there is to
 * do when the reader types, and `plain(text)` is what is meant by what is typed.
 */
function typing(widget, name, box, wrong, also, typed = () => {}, plain = (text) => text) {
  let kept; // the sentence that the box stands for, whatever else is half typed in it
  const report = (what) => {
    const greyed = " The results, greyed, are still those of before.";
    const whole = isToured(widget.model) ? what.replaceAll("model", "machine") : what + greyed;
    setText(wrong, what && whole);
    setAttribute(box, "aria-invalid", String(Boolean(what)));
    widget.setAside(box, Boolean(what));
  };
  const use = () => {
    const text = plain(box.value);
    kept = text;
    const put = (next) => {
      next[name] = text;
      also(next, widget);
    };
    if (!widget.edit(name, put, report)) kept = widget.inputs[name];
    typed();
  };
  box.addEventListener("input", use);
  const reset = () => {
    // show what the widget holds
    kept = widget.inputs[name];
    box.value = kept;
    report("");
  };
  return {
    reset,
    follow: (inputs) => {
      if (inputs[name] !== kept) reset();
    },
  };
}

/** The box in which `name` is typed, as wide as the widget, and what is wrong with its text. */
function lineOf(tag, name, label, { count = undefined, ...more }) {
  const wrong = h("p.problem.wrong", { role: "alert", id: `wrong-${name}` });
  const box = h(`${tag}.line`, {
    ...AS_TYPED,
    ...more,
    "aria-label": label,
    "aria-describedby": count ? `${wrong.id} ${count.id}` : wrong.id,
    "data-input": name,
  });
  return { box, wrong, caption: h("span.label", { "aria-hidden": "true" }, label) };
}

/**
 * A line for the sentence `name`; under it what is wrong with it, or, if not any word will do, the
 * words and ids that a model makes of it, unless `ids` is false. `also(next, widget)` changes what
 * else hangs on its words.
 */
export function sentence(
  widget,
  name,
  label,
  also = (_next, _widget) => {},
  { ids: withIds = true } = {},
) {
  const { spec } = widget;
  const vocabulary = spec.sentences[name];
  const open = isOpen(vocabulary);
  const known = open ? [] : ownTokens(vocabulary).sort((a, b) => a.localeCompare(b));
  const offers = h("datalist", { id: `known-${name}` });
  const tokens = h("ol.tokens", { ...AS_IS, "aria-label": `${label}: tokens and ids` });
  const unknown = h("p.note.unknown-words", { role: "status" });
  keepHeight(unknown);
  keepHeight(tokens);
  const offer = () => {
    // the whole line with its last word completed
    const [, before, begun] = /^(.*?)([^\s]*)$/s.exec(box.value);
    const fitting = begun
      ? known.filter((word) => word.startsWith(begun.toLowerCase()) && word !== begun)
      : [];
    offers.replaceChildren(
      ...fitting.slice(0, 8).map((word) => h("option", { value: before + word })),
    );
  };
  const list = { type: "text", list: offers.id };
  const { box, wrong, caption } = lineOf("input", name, label, list);
  const { reset, follow } = typing(widget, name, box, wrong, also, offer);
  return {
    element: h(
      "div.column",
      caption,
      box,
      wrong,
      offers,
      ...(open ? [] : [...(withIds ? [tokens] : []), unknown, knownWords(known)]),
    ),
    shows: "inputs",
    reset,
    update(inputs) {
      follow(inputs);
      if (open) return;
      const read = wordsOf(spec, name, inputs[name]);
      const ids = idsOf(spec, inputs)[name];
      fillList(
        tokens,
        read,
        () => h("li", h("b"), " ", h("span")),
        (li, word, i) => {
          const strange = !knows(vocabulary, word);
          setText(li.children[0], word);
          setText(li.children[1], strange ? `<unk> ${ids[i]}` : String(ids[i]));
          li.classList.toggle("unknown", strange);
        },
      );
      setText(unknown, strangers(vocabulary, read));
    },
  };
}

/** A note on the words that the model does not know, "" if there are none. */
function strangers(vocabulary, read) {
  const strange = read.filter((word) => !knows(vocabulary, word));
  const [is, it] =
    new Set(strange).size === 1 ? ["is not a word", "it"] : ["are not words", "each of them"];
  return strange.length
    ? `${quoted(strange)} ${is} that this model knows: it reads <unk> for ${it}.`
    : "";
}

function knownWords(known) {
  return h(
    "details.known",
    h("summary", `The ${known.length} words it knows`),
    h("p", AS_IS, known.join(" ")),
  );
}
const LINE_STYLE = `
.wrong { position: static; margin-top: 4px; }
.unknown-words { margin-top: -4px; } /* no gap while it is empty */
.known { font-size: var(--size-note); color: var(--soft); }
.known summary { cursor: pointer; min-height: 1.5rem; width: max-content; max-width: 100%; }
.known p { margin: 2px 0 0; line-height: 1.6; }
`;

sentence.style = `${LINE_STYLE}
input.line { width: 100%; border-color: var(--line); font-size: var(--size-touch);
  padding: 6px 10px; }
.tokens { display: flex; flex-wrap: wrap; gap: 4px 6px; list-style: none; margin: 4px 0 0;
  padding: 0; }
.tokens li { border: 1px solid var(--line); border-radius: 6px; padding: 0 7px;
  font-size: var(--size-note); }
.tokens b { font-weight: 550; }
.tokens span { color: var(--soft); font-size: var(--size-small);
  font-variant-numeric: tabular-nums; }
.tokens .unknown { border: 1px dashed var(--error);
  background: color-mix(in oklab, var(--ground), var(--error) 14%); }
.tokens .unknown span { color: inherit; }
.tokens .unknown b::before { content: "⚠ "; content: "⚠ " / ""; }
`;

/** A name for a character that is not seen on paper, and for what ends a text. */
const SIGNS = new Map([
  [" ", "space"],
  ["\n", "new line"],
  ["<bos>", "the start"],
  ["<eos>", "the end"],
]);
export const visible = (token) => SIGNS.get(token) ?? token;

/** What a part does whose text is counted below it. */
const countedBox = ({ reset, follow }, tally) => ({
  shows: "inputs",
  reset() {
    reset();
    tally();
  },
  update(inputs) {
    follow(inputs);
    tally();
  },
});

/**
 * A box for a longer text, `name`, of characters or of words; under it how many there are. If it is
 * `oneLine`, Enter ends it, and nothing is counted.
 */
export function text(widget, name, label, also = (_next, _widget) => {}, oneLine = false) {
  const { spec } = widget;
  const [vocabulary, most] = [spec.sentences[name], spec.limits[spec.inputs[name]][1]];
  const characters = ofCharacters(vocabulary);
  const known = ownTokens(vocabulary).sort((a, b) => a.localeCompare(b));
  const count = h("p.counted", { id: `count-${name}` });
  const unknown = h("p.note.unknown-words", { role: "status" });
  keepHeight(unknown);
  const { box, wrong, caption } = lineOf("textarea", name, label, { rows: "3", count });
  const tally = () => {
    const read = wordsOf(spec, name, box.value);
    const over = read.length - most;
    const lines = characters && box.value.includes("\n") ? " and new lines" : "";
    setText(
      count,
      `${read.length} of ${most} ${characters ? "characters" : "words"}${lines}, ` +
        `${over > 0 ? `${over} too many` : `${-over} left`}`,
    );
    if (!characters) setText(unknown, strangers(vocabulary, read));
  };
  const meant = (text) => plainly(text, (sign) => knows(vocabulary, sign));
  const typed = typing(widget, name, box, wrong, also, tally, meant);
  const end = (event) => {
    if (event && event.key !== "Enter") return;
    event?.preventDefault();
    box.dispatchEvent(new Event("input")); // what stands there is used, if nothing was typed, too
    if (box.value)
      box.blur(); // and a phone's keyboard is off what is written
    else box.focus();
  };
  if (oneLine) box.addEventListener("keydown", end);
  count.hidden = oneLine;
  return {
    element: h(
      "div.column",
      ...(oneLine ? [] : [caption]),
      box,
      count,
      wrong,
      ...(characters ? [] : [unknown, knownWords(known)]),
    ),
    ...countedBox(typed, tally),
    end,
  };
}
/** A box for a text of any characters, `name`; under it how many bytes it has. */
export function freeText(widget, name, label, rows = 3) {
  const { spec } = widget;
  const [, most] = spec.limits[spec.inputs[name]];
  const count = h("p.counted", { id: `count-${name}` });
  const { box, wrong, caption } = lineOf("textarea", name, label, { rows: String(rows), count });
  const meant = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd"); // half a character
  const tally = () => {
    const { length } = bytesOf({ texts: [name] }, { [name]: box.value })[name];
    const left = most - length;
    setText(
      count,
      `${length} of ${most} bytes, ${left < 0 ? `${-left} too many` : `${left} left`}`,
    );
  };
  const noMore = (_next) => {};
  const typed = typing(widget, name, box, wrong, noMore, tally, meant);
  return {
    element: h("div.column", h("div.over", caption, count), box, wrong),
    ...countedBox(typed, tally),
  };
}

text.style = `${LINE_STYLE}
textarea.line { width: 100%; min-height: 5.25rem; max-height: 20rem; resize: vertical; font:
  inherit; font-size: var(--size-touch); line-height: 1.5; color: var(--text); background:
  transparent; border: 1px solid var(--line); border-radius: 5px; padding: 6px 10px; field-sizing:
  content; }
@container widget (min-width: 53.75rem) { textarea.line { min-height: 3.875rem; } }
.counted { margin: 0; font-size: var(--size-small); color: var(--soft);
  font-variant-numeric: tabular-nums; }
`;

freeText.style = `${text.style}
.over { display: flex; flex-wrap: wrap; gap: 0 12px; justify-content: space-between;
  align-items: baseline; }
`;

/** The true translation of a sentence, if it is one of those that are offered. */
export const translation = ({ spec }, text) =>
  Object.values(spec.facts.held_out).find((pairs) => Object.hasOwn(pairs, text))?.[text];

/**
 * Sentences that the model has not been trained on, to choose from; `source` says where they are
 * from. `also(next, widget)` changes what else hangs on the words.
 */
export function heldOut(
  widget,
  name,
  source = "",
  also = (_next, _widget) => {},
  { menu = false } = {},
) {
  const groups = Object.entries(widget.spec.facts.held_out);
  const label = `or one${source} that it was not trained on:`;
  const texts = groups.map(([title, pairs]) => [title, Object.keys(pairs)]);
  return offers(widget, name, label, Object.fromEntries(texts), also, { menu });
}

/** Words in a list, each with its meaning below it. */
export function glossed(list, words, meant) {
  fillList(
    list,
    words,
    () => h("li", AS_IS, h("b", { lang: "fr" }), " ", h("i")),
    (li, word, t) => {
      setText(li.children[0], word);
      setText(li.children[1], meant[t]);
    },
  );
}

/**
 * The words that the ids in the output `ids` name, one below the other, each with its probability,
 * and a line to each from what they are read out of. `gloss(widget, words)` is what they mean, and
 * `faults(widget, inputs, ids)` which of them are wrong.
 */
export function readout(widget, label, ids, probabilities, { vocabulary, gloss, faults }) {
  const list = h("ol.said", { "data-output": probabilities, "aria-label": label });
  const names = widget.spec.vocabularies[vocabulary];
  const fan = lines();
  return {
    element: h(
      "div.column.spoken",
      h("span.label", { "aria-hidden": "true" }, label),
      h("div.leads", fan.element, list),
    ),
    shows: "outputs",
    update(inputs, outputs) {
      const shares = outputs[probabilities].data;
      const tokens = [...outputs[ids].data];
      const words = tokens.map((id) => names[id]);
      const [meant, wrong] = [gloss(widget, words), faults(widget, inputs, tokens)];
      fillList(
        list,
        words,
        () => h("li", AS_IS, h("b", { lang: "fr" }), " ", h("i"), " ", h("span")),
        (li, word, t) => {
          setText(li.children[0], word);
          setText(li.children[1], SIGNS.get(word) ?? meant[t]);
          setText(li.children[2], percent(shares[t] || Number.MIN_VALUE));
          li.classList.toggle("faulty", Boolean(wrong[t]));
          setAttribute(li, "data-value", String(shares[t]));
          setHeat(li.children[2], shares[t]);
        },
      );
      fan.toEach(words.length);
    },
  };
}
readout.style = `
.said { list-style: none; margin: 0; padding: 0; display: grid;
  grid-auto-rows: minmax(1.625rem, 1fr); }
.said li { display: grid; grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr) 3.875rem;
  gap: 8px; align-items: center; border-bottom: 1px solid var(--line); }
.said:not(.plain) b { padding-left: 6px; }
.said b { font-weight: 550; }
.said :is(i, span) { font-size: var(--size-note); font-variant-numeric: tabular-nums; }
.said span { ${shaded("probability")} text-align: right; padding: 1px 6px; border-radius: 4px; }
.answer-strip .said { display: flex; flex-wrap: wrap; gap: 2px 8px; }
.answer-strip .said li { display: block; border: 0; }
.answer-strip .said :is(i, span) { display: none; }
.said .faulty { outline: 2px dashed var(--error); outline-offset: -3px; border-radius: 6px; }
.said .faulty b::before { content: "✗ "; content: "✗ " / "wrong: "; }
.said.plain { display: flex; flex-wrap: wrap; gap: 2px 10px; }
.said.plain li { display: block; border: 0; }
.said.plain :is(b, i) { display: block; }
.said.plain .faulty { padding: 0 5px; }
.said.plain i { font-size: var(--size-small); }
.judged { margin: 0; font-size: var(--size-note); font-weight: 550; }
.right { display: grid; gap: 2px; }
`;

/**
 * In the tour: a translation, a sign below each word, and what is wrong with it. `read(widget,
 * inputs, outputs)` gives { words, below, faults, lost }, or nothing as long as it is not known.
 */
export function translated(widget, label, read) {
  const [list, message] = [h("ol.said.plain"), h("p.judged")];
  return {
    element: results("column", h("div.head", h("span.label", label), message), list),
    shows: "outputs",
    update(inputs, outputs) {
      const found = read(widget, inputs, outputs);
      if (!found) return;
      const { words, below, faults, lost } = found;
      glossed(list, words, below);
      faults.forEach((fault, t) => list.children[t].classList.toggle("faulty", fault && !lost));
      const wrong = faults.includes(true) ? "✗ One word is wrong." : "";
      setText(message, lost || wrong || "✓ No word got lost.");
      if (lost || wrong) notifyPage(widget);
    },
  };
}

translated.style = `${readout.style}
.head { display: flex; flex-wrap: wrap; gap: 0 8px; align-items: baseline; }
@container widget (max-width: 37.5rem) {
  .tour { gap: 8px; }
}
`;

/**
 * In the tour: a slider through the sentences that are offered, by their number of words, and the
 * one that is chosen, in which `lost(widget, inputs, outputs)` is marked, places of words.
 */
export function lengths(widget, name, lost) {
  const read = (text) => wordsOf(widget.spec, name, text).filter((word) => word !== ".");
  const size = (text) => read(text).length;
  const texts = [widget.first, ...widget.model.get("offered")]
    .map((inputs) => inputs[name])
    .sort((one, other) => size(one) - size(other));
  const text = h("p.text", AS_IS);
  const count = h("span");
  const track = h("input", {
    type: "range",
    min: "0",
    max: String(texts.length - 1),
    "data-input": name,
    "aria-label": "length of the sentence",
    input: () =>
      widget.edit(track, (next) => {
        next[name] = texts[track.value];
      }),
  });
  return {
    element: h("div.lengths", text, h("div.longer", track, count)),
    shows: "outputs",
    update(inputs, outputs) {
      const words = `${size(inputs[name])} words`;
      track.value = String(texts.indexOf(inputs[name]));
      track.setAttribute("aria-valuetext", words);
      setText(count, words);
      const gone = lost(widget, inputs, outputs);
      fillList(text, read(inputs[name]), "span", (span, word, s) => {
        setText(span, word);
        setAttribute(span, "class", gone.includes(s) ? "gone" : "");
      });
    },
  };
}
lengths.style = `
.lengths { display: grid; gap: 8px; }
.lengths .text { display: flex; flex-wrap: wrap; gap: 0 .3em; margin: 0; font-weight: 650;
  line-height: 1.3; }
.lengths .gone { text-decoration: line-through 2px var(--error); }
@container widget (max-width: 33rem) { .lengths .text { min-height: 2.6em; } }
.longer { display: flex; gap: 12px; align-items: center; }
.longer input { flex: 1; min-width: 0; min-height: 2.75rem; }
.longer span { min-width: 8ch; text-align: right; }
`;
