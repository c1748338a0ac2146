import { alignment, missing } from "./dictionary.js";
import { h, live, mark, scroller, short, tint, write } from "./parts.js";
import { greedy, topK } from "./search.js";
import { fillList, heldOut, sentence, translation } from "./sentences.js";
import { BOS, EOS } from "./translator.js";

/** What torch does in a kernel, in compute() of seq2seq_attention.py. */
export async function program(run, { source }, spec) {
  const { keys, values, state } = await run("seq2seq_attention-read", { source });
  const weights = [];
  const step = async (hidden, token) => {
    const written = await run("seq2seq_attention-write", { token, keys, values, hidden });
    weights.push([...written.weights.data]);
    return { logProbs: written.log_probs, state: written.state };
  };
  const steps = await greedy(step, state, BOS, EOS, spec.limits.T[1]);
  const tokens = steps.map(({ token }) => token);
  const likeliest = steps.map(({ logProbs }) => topK(logProbs, 5));
  const english = source.map((id) => spec.sentences.source[id]);
  const french = tokens.map((id) => spec.vocabularies.target[id]);
  const from = alignment(spec.facts.dictionary, english, french);
  return {
    tokens,
    likeliest,
    probabilities: steps.map(({ logProbs }, t) => likeliest[t].map((id) => Math.exp(logProbs[id]))),
    weights,
    gold: from.map((places) => source.map((_, s) => Number(places.includes(s)))),
  };
}

// ---------------------------------------------------------------- what was written

const read = new WeakMap(); // outputs -> what is written there, for all parts that show it

/** Each French word: the weights of the English words in it, the one it looked at most, its gold. */
function written(widget, inputs, outputs) {
  if (!read.has(outputs)) read.set(outputs, writtenIn(widget, inputs, outputs));
  return read.get(outputs);
}

function writtenIn(widget, inputs, { tokens, weights, gold }) {
  const names = widget.spec.vocabularies.target;
  const english = widget.words("S", inputs);
  const { shape: [T, S] } = weights;
  const rows = Array.from({ length: T }, (_, t) => {
    const [shares, from] = [weights, gold].map(({ data }) => data.subarray(t * S, (t + 1) * S));
    const [most] = topK(shares, 1);
    return { word: names[tokens.data[t]], ended: tokens.data[t] === EOS, shares, from, most,
      known: from.includes(1), right: from[most] === 1 };
  });
  return { english, rows };
}

/** The answer is that to the inputs: neither is it on its way, nor that to a sentence before. */
function answers(widget, inputs, { weights }) {
  const given = widget.model.get("outputs");
  const english = widget.words("S", inputs);
  if (given !== widget.given) [widget.given, widget.asked] = [given, english.join(" ")];
  return widget.asked === english.join(" ") && english.length === weights.shape[1];
}

/**
 * The row that the reader looks at: the one chosen, else the first word that looked elsewhere than
 * where it comes from, else the first for which the decoder went back in the English, as it has to
 * for "la voiture rouge".
 */
function chosenRow(widget, rows) {
  if (widget.row !== undefined) return widget.row;
  const astray = rows.findIndex(({ known, right }) => known && !right);
  if (astray >= 0) return astray;
  return Math.max(0, rows.findIndex(({ most }, t) => t > 0 && most < rows[t - 1].most));
}

const LEAST = 0.005; // what is less reads 0.00, and is left out
const said = (word) => `“${word}”`;

/** "front" and "of" as one: “in front of”. */
const phrase = (english, from) => said(english.filter((_, s) => from[s]).join(" "));

/** “a”, “b” and “c” */
const listed = (words) => (words.length < 2 ? words.join("")
  : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

// ---------------------------------------------------------------- parts

/** The French, how many of its words looked where they should, and what the grammar says. */
function french(widget) {
  const line = h("p", { class: "french", lang: "fr" });
  const [ending, compared, left, verdict] = ["ending", "compared", "left", "verdict"].map((kind) => h("p", { class: `note ${kind}` }));
  return {
    element: h("div", { class: "column result" },
      h("span", { class: "label" }, "French"), line, ending, compared, left, verdict),
    shows: "outputs",
    update(inputs, outputs) {
      if (!answers(widget, inputs, outputs)) return;
      const { english, rows } = written(widget, inputs, outputs);
      const words = rows.filter(({ ended }) => !ended);
      const ended = words.length < rows.length;
      const text = words.map(({ word }) => word).join(" ");
      write(line, ended ? text : `${text} …`);
      write(ending, ended ? "" : endless(english, words));
      const truth = translation(widget, inputs.source);
      write(compared, truth === text ? "Word for word what the grammar says."
        : truth ? `The grammar says: ${truth}` : "");
      write(left, leftOut(missing(widget.spec.facts.dictionary, english, words.map(({ word }) => word)), english));
      write(verdict, judgement(english, words));
    },
  };
}

/** Which English words no French word comes from, in words. */
function leftOut({ gone, few }, english) {
  const names = (places) => places.map((at) => said(at.map((s) => english[s]).join(" ")));
  const words = gone.length === 1 ? "One word of the English is" : `${gone.length} words of the English are`;
  const told = gone.length ? [`${words} missing in this French: ${names(gone).join(", ")}.`] : [];
  for (const { places, there } of few) {
    told.push(`Of the English words ${listed(names(places))}, only ${there} ${there === 1 ? "is" : "are"} in the French.`);
  }
  return told.join(" ");
}

/** How many words looked where they should, and where the others looked. */
function judgement(english, words) {
  const known = words.filter((word) => word.known);
  const unknown = [...new Set(words.filter((word) => !word.known).map(({ word }) => said(word)))];
  if (!known.length) return "The grammar's dictionary cannot tell where any of these words comes from: nothing is outlined.";
  const named = unknown.length > 4 ? [...unknown.slice(0, 3), `${unknown.length - 3} more`] : unknown;
  const claim = !named.length ? "" : "The grammar's dictionary cannot tell which English "
    + `${named.length === 1 ? `word ${named[0]} comes` : `words ${listed(named)} come`} from. `;
  const astray = known.filter(({ right }) => !right);
  const [all, right] = [known.length, known.length - astray.length];
  const [other, others] = unknown.length ? ["other ", "others"] : ["", "words"];
  const count = all === 1 ? `The ${other || "one "}word ${right ? "looks" : "does not look"}`
    : right === all ? `All ${all} ${other}words look`
      : `${right || "None"} of the ${all} ${others} ${right > 1 ? "look" : "looks"}`;
  const they = right > 1 ? "they come" : "it comes";
  const told = astray.slice(0, 3).map(({ word, most, from }) =>
    `${said(word)} looks at ${said(english[most])}, but comes from ${phrase(english, from)}`);
  const more = astray.length > 3 ? `; and so on for ${astray.length - 3} more` : "";
  return `${claim}${count} most at a word that ${they} from${astray.length ? `: ${told.join("; ")}${more}.` : "."}`;
}

/** Why a translation that does not end may not. */
const endless = (english, words) => `It did not end: after ${words.length} words the page stops it.`
  + (english.at(-1) === "." ? "" : " It was trained on sentences that end with a full stop; yours has none.");

/** The weights, a row for every French word; what a word comes from is outlined. */
function attentionMap(widget) {
  const head = h("tr", {}, h("td"));
  const body = h("tbody");
  const table = h("table", { class: "heat weight map", "data-output": "weights" },
    h("caption", {}, "weights of the English words"),
    h("thead", {}, head), body);
  const choose = (t) => {
    if (widget.row === t) return;
    widget.row = t;
    widget.repaint();
    body.rows[t].children[1 + seen[t].most].scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const line = (S) => (t) => h("tr", {},
    h("th", { scope: "row" }, h("button", { type: "button", click: () => choose(t), focus: () => choose(t) },
      h("span", { class: "sign" }), h("span", { lang: "fr" }))),
    ...Array.from({ length: S }, () => h("td", {}, h("span"))));
  let columns = 0;
  let seen; // the rows that are shown
  let translated; // the English that they are of
  const fresh = (english) => { // another sentence has other rows: the one that was chosen is none of them
    if (translated !== undefined && translated !== english) widget.row = undefined;
    translated = english;
  };
  return {
    element: h("div", { class: "column result mapped" }, scroller({ tabindex: "0", role: "group",
      "aria-label": "the weights, a row for each French word; it scrolls sideways" }, table),
      h("p", { class: "key" }, h("span", { class: "gold" }), "outlined: the English that a word comes from, by the grammar's dictionary")),
    reset() { widget.row = undefined; },
    shows: "outputs",
    update(inputs, outputs) {
      if (!answers(widget, inputs, outputs)) return;
      const { english, rows } = written(widget, inputs, outputs);
      fresh(english.join(" "));
      const chosen = chosenRow(widget, rows);
      seen = rows;
      if (columns !== english.length) {
        columns = english.length;
        head.replaceChildren(head.firstChild, ...english.map(() =>
          h("th", { scope: "col", class: "long" }, h("span"))));
        body.replaceChildren();
      }
      english.forEach((word, s) => {
        const th = head.children[s + 1];
        write(th.firstChild, word);
        tint(th, rows[chosen].shares[s]);
      });
      fillList(body, rows, line(columns), (tr, { word, shares, from, known, right }, t) => {
        const [{ firstChild: button }, ...cells] = tr.children;
        const sign = right ? "✓" : known ? "✗" : "";
        write(button.firstChild, sign);
        write(button.lastChild, word);
        mark(button, "aria-pressed", String(t === chosen));
        mark(button.firstChild, "class", sign === "✗" ? "sign astray" : "sign");
        mark(tr, "class", t === chosen ? "query" : "");
        cells.forEach((cell, s) => {
          mark(cell, "class", from[s] ? "gold" : "");
          const value = shares[s];
          if (cell.shown === value) return;
          cell.shown = value;
          write(cell.firstChild, value < LEAST ? "" : short(value));
          mark(cell, "data-value", String(value));
          tint(cell, value);
        });
      });
    },
  };
}

/** The chosen word: where it looked, and what else it might have been. */
function wordsNext(widget) {
  const names = widget.spec.vocabularies.target;
  const heading = h("b", { lang: "fr" });
  const looked = h("span");
  const list = h("ol", { class: "nexts", "aria-label": "the five likeliest words here" });
  return {
    element: h("div", { class: "column result chosen" },
      h("p", { class: "note looked" }, heading, looked), h("p", { class: "label" }, "The five likeliest words here"), list),
    shows: "outputs",
    update(inputs, outputs) {
      if (!answers(widget, inputs, outputs)) return;
      const { english, rows } = written(widget, inputs, outputs);
      const t = chosenRow(widget, rows);
      const { word, ended, shares, from, known, right } = rows[t];
      write(heading, said(word));
      const terms = topK(shares, shares.length).filter((s) => shares[s] >= LEAST)
        .map((s) => `${short(shares[s])} × ${english[s]}`);
      write(looked, ` was written from ${terms.slice(0, 4).join(" + ")}${terms.length > 4 ? " + …" : ""}. `
        + (right ? "That is where it comes from." : known ? `It comes from ${phrase(english, from)}.`
          : ended ? "" : "From which of them it comes, the dictionary cannot tell."));
      const [ids, values] = [outputs.likeliest, outputs.probabilities].map(({ data }) => data.subarray(5 * t, 5 * t + 5));
      fillList(list, [...ids], () => h("li", {}, h("span", { class: "bar" }), h("span", { class: "name", lang: "fr" }),
        h("span", { class: "share" })), (li, id, i) => {
        const [bar, name, share] = li.children;
        write(name, names[id]);
        write(share, values[i] < 0.0005 ? "< 0.001" : values[i].toFixed(3));
        mark(li, "data-value", String(values[i]));
        mark(bar, "style", `width: ${(100 * values[i]).toFixed(1)}%`);
      });
    },
  };
}

french.style = `
.french { margin: 0; font-size: 18px; font-weight: 550; }
.french ~ .note:empty { display: none; }
`;
attentionMap.style = `
.row > .mapped { flex: none; width: min-content; min-width: min(240px, 100%); max-width: 100%; }
.mapped .scroll { scroll-padding-left: 110px; }
.map td span { width: 31px; }
.map tbody td { position: relative; }
.map .gold::after, .key .gold { content: ""; position: absolute; inset: -1px; border: 2px solid var(--under);
  border-radius: 3px; pointer-events: none; }
.map tbody th, .map thead td { position: sticky; left: 0; z-index: 1; background: var(--ground); }
.map tbody th { max-width: 130px; }
.map tbody th button { display: flex; align-items: center; justify-content: space-between; gap: 8px; max-width: 130px;
  height: 28px; min-height: 0; padding: 0 7px 0 0; color: var(--text); font-size: 13.5px; }
.map .sign { min-width: 12px; font-size: 12px; color: var(--soft); }
.map .astray { color: var(--text); font-weight: 700; }
.map thead .long { padding: 4px 0; border-radius: 4px 4px 0 0; color: var(--text); font-size: 13px;
  background: color-mix(in oklab, var(--ground), var(--above) calc(var(--tl-heat, 0) * 65%)); }
.map thead .long span { max-height: 96px; }
@media (max-width: 600px) {
  .map td { font-size: 11px; }
  .map td span { width: 26px; }
  .map tbody th button { gap: 2px; padding-right: 5px; font-size: 13px; }
}
.key { margin: 4px 0 0; font-size: 13px; color: var(--soft); display: flex; gap: 8px; align-items: center; }
.key .gold { position: static; width: 18px; height: 16px; flex: none; }
`;
wordsNext.style = `
.row > .chosen { flex: 1 1 180px; min-width: 0; max-width: 420px; gap: 8px; }
.chosen .label { margin: 0; }
.nexts { list-style: none; margin: 0; padding: 0; display: grid; gap: 2px; }
.nexts li { position: relative; display: flex; justify-content: space-between; gap: 8px; padding: 2px 8px; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
.nexts span { position: relative; }
.nexts .bar { position: absolute; left: 0; top: 1px; bottom: 1px; border-radius: 4px;
  background: color-mix(in oklab, var(--ground), var(--above) 34%); }
`;

export default live("Translate and see where it looks, live", (ui) => [
  ui.use(sentence, "source", "English sentence"),
  ui.use(heldOut, "source"),
  ui.use(french),
  ui.row(ui.use(attentionMap), ui.use(wordsNext)),
]);
