import { resized, results } from "../../live/ui/boxes.js";
import { h, rectangleIn, setAttribute, setText, svgPart } from "../../live/ui/dom.js";
import {
  explainable,
  explainableNumber,
  expOf,
  roots,
  roveLines,
  sum,
} from "../../live/ui/explain.js";
import { format, times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, sentence } from "../../live/ui/sentences.js";

/** The n-grams of a sentence, as texts. */
const gramsOf = (words, n) =>
  times(Math.max(0, words.length - n + 1), (i) => words.slice(i, i + n).join(" "));

/** The places of each two n-grams that match: the first of ours and the first like it of theirs. */
function partnersOf(ours, theirs, matched, used) {
  const free = theirs.map((gram, j) => (used[j] > 0 ? gram : null));
  return ours.flatMap((gram, i) => {
    const j = matched[i] > 0 ? free.indexOf(gram) : -1;
    if (j < 0) return [];
    free[j] = null;
    return [[i, j]];
  });
}

const often = (count) => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);

/** A description of an n-gram that a reader points at, `ours` or one of the reference. */
function describeGram(gram, ours, partner, others) {
  const count = others.filter((other) => other === gram).length;
  const other = ours ? "the reference" : "the translation";
  if (partner) return `“${gram}” has a partner in ${other}: it is matched.`;
  if (count)
    return (
      `In ${other} “${gram}” occurs only ${often(count)}` +
      (ours ? ", and that is used up: this one has no partner." : ".")
    );
  return ours
    ? `“${gram}” does not occur in the reference, so it lowers the precision.`
    : `The translation lacks “${gram}”, which no precision counts.`;
}

/** The n-grams of both sentences, n = 1 … N, those that match linked, with their precision. */
function ngramTable(widget) {
  const list = h("ol.ngrams", { "data-output": "", "aria-label": "n-grams" });
  const reach = roveLines(list);
  /** A line from each n-gram of the translation that is matched to its partner. */
  const draw = () => {
    for (const item of list.children) {
      const { left, top } = rectangleIn(item);
      const end = (li, side) => {
        const box = rectangleIn(li);
        return `${box.left + box.width / 2 - left} ${box[side] - top}`;
      };
      const lines = (item.partners ?? []).map(
        ([one, other]) => `M${end(one, "bottom")}L${end(other, "top")}`,
      );
      setAttribute(item.lastChild.firstChild, "d", lines.join(""));
    }
  };
  resized(draw, list);
  const line = (name) => h("div.grams", h("span.of", name), h("ul"));
  /** Where the precision of the i-th row comes from: its n-grams that match light up. */
  const rule = (i) => {
    const { matches, totals } = widget.readOutputs();
    const [m, total] = [matches.data[i], totals.data[i]];
    const grams = [...list.children[i].querySelectorAll(".grams:nth-of-type(1) li")];
    const hits = grams.filter((li) => li.matches(".hit"));
    const lit = [{ cells: hits.length ? hits : grams }];
    const what = `p${SMALL[i]}, the ${i + 1}-grams of the translation that match`;
    return total
      ? sum(`${what}, of all that it has:`, [[m]], undefined, {
          by: { value: total, name: String(total) },
          figure: String,
          lit,
        })
      : { kind: "said", what: `${what}: there are none, so p${SMALL[i]} is 0.`, lit };
  };
  const row = (i) =>
    h(
      "li",
      h(
        "p.size",
        h("b", `${i + 1}-grams`),
        " ",
        explainableNumber(widget, () => rule(i)),
      ),
      line("translation"),
      line("reference"),
      svgPart("svg", { class: "links", "aria-hidden": "true" }, svgPart("path")),
    );
  const fill = (ul, grams, matched) => {
    fillList(ul, grams.length ? grams : ["none"], "li", (li, gram, i) => {
      const hit = grams.length > 0 && matched[i] > 0;
      // Equal to one that matched: the other sentence does not hold it this often.
      const again = !hit && grams.some((other, j) => other === gram && matched[j] > 0);
      setText(li, gram);
      setAttribute(
        li,
        "class",
        !grams.length ? "none" : hit ? "hit" : again ? "miss again" : "miss",
      );
      setAttribute(li, "data-value", String(Number(hit)));
      if (!grams.length) [li.explain] = [undefined, li.removeAttribute("tabindex")];
    });
  };
  return {
    element: list,
    shows: "outputs",
    update(inputs, { matched, used, matches, totals, precisions }) {
      const [ours, theirs] = [widget.words("T"), widget.words("S")];
      const [T, S] = [matched.shape[1], used.shape[1]];
      if (T !== ours.length || S !== theirs.length) return; // the answer is still on its way
      fillList(list, Array.from({ length: inputs.N }), row, (li, _, i) => {
        const [head, own, other] = li.children;
        const grams = [gramsOf(ours, i + 1), gramsOf(theirs, i + 1)];
        const hits = [
          matched.data.subarray(i * T, (i + 1) * T),
          used.data.subarray(i * S, (i + 1) * S),
        ];
        const uls = [own.lastChild, other.lastChild];
        uls.forEach((ul, side) => fill(ul, grams[side], hits[side]));
        li.partners = partnersOf(...grams, ...hits).map((pair) =>
          pair.map((place, side) => uls[side].children[place]),
        );
        uls.forEach((ul, side) =>
          grams[side].forEach((gram, place) => {
            const chip = ul.children[place];
            const pair = li.partners.find((two) => two[side] === chip);
            const cells = pair ? [pair[1 - side]] : [];
            explainable(widget, chip, () => ({
              kind: "match",
              what: describeGram(gram, side === 0, pair, grams[1 - side]),
              lit: [{ cells }],
            }));
          }),
        );
        const [m, total] = [matches.data[i], totals.data[i]];
        setText(
          head.lastChild,
          total
            ? `p${SMALL[i]} = ${m} of ${total} matched = ${format(precisions.data[i])}`
            : `p${SMALL[i]} = 0: the translation is too short to have any`,
        );
        setAttribute(head.lastChild, "data-value", String(precisions.data[i]));
      });
      reach();
      requestAnimationFrame(draw);
    },
  };
}

function whatIsAWord() {
  const rule =
    "Spaces part the words, so put one before a full stop. Capitals count: “Il” is not “il”.";
  return { element: h("p.note.soft", rule), update() {} };
}

const SMALL = "₁₂₃₄";

/** The brevity penalty, and both forms of BLEU, with their numbers filled in. */
function totals(widget) {
  /** Both lengths, and what the n-grams have come to, n = 1 … N. */
  const counted = () => {
    const { matched, used, penalty, matches, totals: all } = widget.readOutputs();
    const each = Array.from({ length: widget.inputs.N }, (_, i) => ({
      n: i + 1,
      m: matches.data[i],
      total: all.data[i],
    }));
    return { T: matched.shape[1], S: used.shape[1], BP: penalty.data[0], each };
  };
  const penalty = explainableNumber(widget, () => {
    const { T, S } = counted();
    const grams = widget.frame.querySelectorAll(".ngrams > :first-child .grams li");
    return T < S
      ? expOf(`Brevity penalty, e to the power of 1 − ${S}/${T}:`, 1 - S / T, [...grams])
      : expOf("Brevity penalty: not shorter, so e to the power of 0:", 0, [...grams]);
  });
  const why = h("span.soft");
  const card = (output, name, what, rootOf) => {
    const rule = () => {
      const { BP, each } = counted();
      const there = each.filter(({ total }) => total || output === "standard");
      const factors = there.map(({ n, m, total }) => ({
        top: m,
        bottom: total || undefined,
        root: rootOf(n, each.length),
      }));
      const cells = widget.frame.querySelectorAll(".penalty .askable, .size .askable");
      return roots(what, [{ top: BP, root: 1 }, ...factors], [...cells]);
    };
    return h(
      "div.score",
      { "data-output": output },
      h("p.of", name),
      h("p.sum"),
      explainableNumber(widget, rule),
    );
  };
  const [standard, d2l] = [
    card(
      "standard",
      "standard: weights 1/N",
      "BLEU, the penalty times the N-th root of each precision:",
      (_, N) => N,
    ),
    card(
      "d2l",
      "Dive into Deep Learning: weights 1/2ⁿ",
      "This form, the penalty times a root of each precision, of the longer ones a higher one:",
      (n) => 2 ** n,
    ),
  ];
  const power = (base, below) => [base, h("sup", "1/", String(below))];
  const fill = (element, formula, value) => {
    const [, line, result] = element.children;
    line.replaceChildren(...formula, " =");
    setText(result, value.toFixed(4));
    setAttribute(result, "data-value", String(value));
  };
  return {
    element: results(
      "column",
      h("p.note.penalty", { "data-output": "penalty" }, penalty, " ", why),
      h("div.scores", standard, d2l),
    ),
    shows: "outputs",
    update({ N }, outputs) {
      const { T, S, each } = counted();
      const BP = format(outputs.penalty.data[0]);
      setText(penalty, `brevity penalty = exp(min(0, 1 − ${S}/${T})) = ${BP}:`);
      setAttribute(penalty, "data-value", String(outputs.penalty.data[0]));
      setText(
        why,
        T < S
          ? `the translation is ${S - T} ${S - T === 1 ? "word" : "words"} shorter.`
          : "the translation is not shorter.",
      );
      const fraction = ({ m, total }) => (total ? `${m}/${total}` : "0");
      fill(
        standard,
        [`${BP} × `, ...power(`(${each.map(fraction).join(" × ")})`, N)],
        outputs.standard.data[0],
      );
      const there = each.filter(({ total }) => total); // n longer than the prediction are left out
      fill(
        d2l,
        [BP, ...there.flatMap((gram) => [" × ", ...power(`(${fraction(gram)})`, 2 ** gram.n)])],
        outputs.d2l.data[0],
      );
    },
  };
}

ngramTable.style = `
.ngrams { list-style: none; margin: 0; padding: 0; display: grid; gap: 12px; }
.ngrams > li { position: relative; }
.links { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; fill: none;
  pointer-events: none; }
@media (max-width: 37.5rem) { .links { display: none; } } /* the lines of words are broken there */
.links path { stroke: var(--accent); stroke-width: 1.5; }
.grams + .grams { padding-top: 16px; }
.size { margin: 0 0 4px; font-size: var(--size-note); display: flex; flex-wrap: wrap; gap: 0 10px;
  justify-content: space-between;
  border-bottom: 1px solid var(--line); padding-bottom: 3px; font-variant-numeric: tabular-nums; }
.size b { font-weight: 600; }
.size .askable, .penalty .askable { font-weight: 400; }
.grams { display: grid; grid-template-columns: 4.5rem 1fr; gap: 6px; align-items: baseline;
  padding-top: 3px; }
.of { color: var(--soft); font-size: var(--size-small); }
.grams ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 5px;
  min-width: 0; }
.grams li { position: relative; z-index: 1; cursor: help; border: 1px solid var(--text);
  border-radius: 6px; padding: 0 7px; font-size: var(--size-note); overflow-wrap: anywhere;
  background: color-mix(in oklab, var(--ground), var(--text) 8%); }
.grams .hit::before { content: "✓ "; font-size: var(--size-small); }
.grams .miss { border: 1px dashed var(--soft); background: none; }
.grams .again::after { content: " used up"; font-size: var(--size-small); color: var(--soft); }
.grams .none { cursor: auto; border-color: transparent; background: none; color: var(--soft);
  padding-left: 0; }
`;
whatIsAWord.style = ".note { max-width: none; } .frame > .knob { --label: 12em; }";
totals.style = `
.penalty { max-width: none; }
.scores { display: flex; flex-wrap: wrap; gap: 8px 12px; }
.score { flex: 1 1 13.75rem; border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px
  8px; min-width: 0; }
.score p { margin: 0; }
.score .sum { font-size: var(--size-note); font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
.score b { font-size: var(--size-text); font-weight: 600; font-variant-numeric: tabular-nums; }
`;

export default live(
  "BLEU bench, live",
  (ui) => [
    ui.row(ui.use(sentence, "prediction", "translation"), ui.use(sentence, "label", "reference")),
    ui.use(whatIsAWord),
    ui.slider("N", "longest n-gram, N", 1, 4, 1),
    ui.use(ngramTable),
    ui.explanation(
      "Point at an n-gram or at a number, tap it, or go to it with Tab and the arrow keys: " +
        "here you can read why it counts, or what it is made of.",
    ),
    ui.use(totals),
  ],
  { wide: true },
);
