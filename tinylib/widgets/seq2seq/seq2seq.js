import { greedy, topK } from "../../live/page/search.js";
import { BOS, decoder, encode, EOS, reading } from "../../live/page/translator.js";
import { keepHeight } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { action, radio } from "../../live/ui/controls.js";
import { h, setAttribute, setText, typeset } from "../../live/ui/dom.js";
import { explainableNumber, logs, roveLines } from "../../live/ui/explain.js";
import { percent, percentOf, thousandths } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, sentence } from "../../live/ui/sentences.js";

/** What torch does in a kernel, in compute() of seq2seq.py. */
export async function program(run, { source, forced }, spec) {
  const { hidden } = await encode(run, source, spec);
  const steps = await greedy(decoder(run), reading(hidden), BOS, EOS, spec.limits.T[1], forced);
  const best = steps.map(({ logProbs }) => topK(logProbs, 5));
  return {
    fed: steps.map(({ fed }) => fed),
    likeliest: best,
    probabilities: steps.map(({ logProbs }, t) => best[t].map((id) => Math.exp(logProbs[id]))),
    taken: steps.map(({ token }) => token),
    taken_probability: steps.map(({ logProbs, token }) => Math.exp(logProbs[token])),
    so_far: steps.map(({ soFar }) => soFar),
  };
}

/** The steps as cards, each with the likeliest next words to choose from. */
function steps(widget) {
  const names = widget.spec.vocabularies.target;
  const { glosses } = widget.spec.facts;
  const list = h("ol.steps", {
    "data-output": "probabilities",
    "aria-label": "the decoder's steps",
  });
  const whole = h("p.note", { "data-output": "" });
  const greedyButton = action(
    widget,
    "forced",
    "Likeliest words again",
    (next) => {
      next.forced = [];
    },
    { goes: true },
  );
  let seen; // the outputs that the cards show
  let read; // the sentence that they translate

  /** Feed `id` after step t, and what was taken at the steps before it. */
  const take = (t, id) => {
    if (read !== widget.inputs.source) {
      // the words that stand there translate another sentence
      widget.repaint("outputs");
      return;
    }
    const forced = [...seen.taken.data.slice(0, t), id];
    // The end of it that is the model's own first choice need not be forced.
    while (forced.length && forced.at(-1) === seen.likeliest.data[5 * (forced.length - 1)])
      forced.pop();
    widget.edit(Symbol("take"), (next) => {
      next.forced = forced;
    });
  };
  const option = (t, i) => {
    const choose = (event) => take(t, Number(event.target.dataset.id));
    const picked = radio(widget, `step ${t}`, i, { edits: "forced", choose });
    const output = i === 5 ? { "data-output": "taken_probability" } : {};
    const first = [picked, h("span.gloss", { lang: "en" })];
    return candidateLine("label", { class: "next", ...output }, { on: true, lang: "fr", first });
  };
  /** Where ln p stands from, after step t: what was taken at each step lights up. */
  const explainLogProb = (t) => () => {
    const { taken, taken_probability: p, so_far: soFar } = seen;
    const tokens = Array.from(p.data.subarray(0, t + 1), (probability, i) => ({
      probability,
      logP: soFar.data[i] - (i ? soFar.data[i - 1] : 0),
    }));
    const words = Array.from(taken.data.subarray(0, t + 1), (id) => names[id]).join(" ");
    return logs(
      `ln p of “${words}”:`,
      tokens,
      [...list.querySelectorAll(".taken")].slice(0, t + 1),
      { figure: thousandths, total: thousandths },
    );
  };
  const card = (t) =>
    h(
      "li",
      h("p.fed", `${t + 1}. fed `, h("b")),
      h("div", { role: "radiogroup" }, ...Array.from({ length: 6 }, (_, i) => option(t, i))),
      h(
        "p.fed",
        "ln p so far ",
        explainableNumber(widget, explainLogProb(t), () => seen.so_far.data[t]),
      ),
    );
  const reach = roveLines(list);
  keepHeight(list); // a shorter sentence takes fewer steps
  return {
    element: h(
      "div.column",
      list,
      h(
        "div.foot",
        whole,
        greedyButton,
        h("p.note.legend", "(m) masculine, (f) feminine, (pl) plural"),
      ),
    ),
    shows: "outputs", // with the inputs alone, a choice would jump back until its answer is there
    update({ source, forced }, outputs) {
      seen = outputs;
      if (!widget.behind) read = source;
      const { fed, likeliest, probabilities, taken, taken_probability: p, so_far: soFar } = outputs;
      fillList(list, [...taken.data], card, (li, id, t) => {
        const [head, group, foot] = li.children;
        setText(head.lastChild, names[fed.data[t]]);
        setText(foot.lastChild, logarithm(soFar.data[t]));
        setAttribute(group, "aria-label", `step ${t + 1}: the next word`);
        li.classList.toggle("yours", t < forced.length && id !== likeliest.data[5 * t]);
        const [ids, shares] = [likeliest, probabilities].map(({ data }) =>
          data.subarray(5 * t, 5 * t + 5),
        );
        const among = ids.includes(id);
        [...group.children].forEach((label, i) => {
          const box = label.firstChild;
          const extra = i === 5; // the word that was taken, if it is not among the five
          label.hidden = extra && among;
          const [candidate, value] = extra ? [id, p.data[t]] : [ids[i], shares[i]];
          box.dataset.id = String(candidate);
          box.checked = candidate === id && !label.hidden;
          label.classList.toggle("taken", box.checked);
          fillCandidate(label, names[candidate], [value], [percentOf(value)]);
          setText(label.children[1], glosses[candidate]);
        });
      });
      reach();
      const total = soFar.data.at(-1);
      const share = Math.exp(total);
      const words = [...taken.data]
        .filter((id) => id !== EOS)
        .map((id) => names[id])
        .join(" ");
      const chosen = list.querySelectorAll(".yours").length;
      typeset(
        whole,
        `ln p(“${words}${taken.data.at(-1) === EOS ? "" : " …"}”) = ${logarithm(total)}, ` +
          `so p ${share < 0.001 ? "" : "= "}${percent(share)}` +
          (chosen ? `; ${chosen} of its words ${chosen === 1 ? "was" : "were"} your choice.` : "."),
      );
      greedyButton.disabled = forced.length === 0;
    },
  };
}

const logarithm = (value) =>
  value
    .toFixed(value > -10 ? 3 : 2)
    .replace("-", "−")
    .replace(/^−(0\.0+)$/, "$1");

steps.style = `${candidateList.style}
.steps { list-style: none; margin: 0; padding: 0; display: grid; gap: 6px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 8.75rem), 1fr)); }
.steps li { border: 1px solid var(--line); border-radius: 8px; padding: 6px 6px 5px; min-width: 0; }
.steps .yours { border: 2px dashed var(--text); padding: 5px 5px 4px; }
.fed { margin: 0 0 4px; padding: 0 4px; font-size: var(--size-small); color: var(--soft); }
.fed:last-child { margin: 4px 0 0; font-variant-numeric: tabular-nums; }
.fed b { color: var(--text); font-weight: 550; }
.fed .askable { color: inherit; font-weight: 400; }
.next.on-bar { cursor: pointer; display: grid; grid-template-columns: 1fr auto; gap: 0 4px;
  align-content: center; min-height: 1.9375rem; padding: 1px 4px; line-height: 1.15; }
.next .token { order: -1; grid-column: 1 / -1; }
.next .gloss { font-size: var(--size-small); font-style: italic; font-weight: 400; min-width: 0; }
.next:hover { border-color: var(--line); }
.next input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0;
  cursor: pointer; z-index: 1; }
.next:focus-within { outline: 2px solid var(--accent); outline-offset: 1px; }
@media (hover: none) { .next.on-bar { border-color: var(--line); } }
.next.taken { border-color: var(--accent); font-weight: 600; }
.yours .next.taken { border: 2px dashed var(--text); }
.foot > .note[data-output] { flex: 1 0 100%; max-width: none; }
.legend { margin: 0 0 0 auto; }
/* On a phone the translation stays in sight while its words are chosen. */
@container widget (max-width: 32.5rem) {
  .foot { display: contents; }
  .foot > .note[data-output] { position: sticky; bottom: 0; z-index: 2; padding: 8px 0; margin: 0;
    min-height: calc(3lh + 17px); background: var(--ground); border-top: 1px solid var(--line); }
}
@container widget (min-width: 53.75rem) { .frame { gap: 6px; padding-block: 9px; } }
`;

/** What was chosen belongs to the translation of one sentence: another one is translated afresh. */
const greedily = (next) => {
  next.forced = [];
};

export default live(
  "The decoder, step by step, live",
  (ui) => [
    ui.use(sentence, "source", "English sentence", greedily),
    ui.use(steps),
    ui.explanation(),
  ],
  { wide: true },
);
