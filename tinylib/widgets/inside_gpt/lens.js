import { topK } from "../../live/page/search.js";
import { BOS } from "../../live/page/translator.js";
import { columnHeads, namedRow, resized, results, scroller } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { copyAsTorch } from "../../live/ui/copy.js";
import { h, readOnce, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { partsOf } from "../../live/ui/explain.js";
import { journey } from "../../live/ui/journey.js";
import { shaded } from "../../live/ui/look.js";
import { format, listed, percentOf, times, within } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, text, visible } from "../../live/ui/sentences.js";
import { beginnings, called, likeliestTable } from "../../live/ui/texts.js";

/** What torch does in a kernel, in compute() of lens.py. */
export async function program(run, { story, at }) {
  const tokens = [BOS, ...story];
  const place = Math.min(at, story.length);
  return { tokens, place, ...(await run("lens-look", { tokens, at: place })) };
}

const LIKELIEST = 6; // words of a cell
const NUMBERS = 6; // of a vector, that are shown
const NAMED = 3; // of the parts, in words
const FIRST = 3; // the row that is chosen at first: there the story's place is not found yet

// ---------------------------------------------------------------- what was read

/** The words that the model read, the stream at each of them, and the parts of one. */
const readBy = readOnce(({ spec }, outputs) => {
  const { tokens, place, probabilities, likeliest, logits, shares, lengths, streams } = outputs;
  const vocabulary = spec.sentences.story;
  const [K, N, V] = probabilities.shape;
  const [P] = shares.shape;
  const { attention, embedding, sigma, normed } = outputs;
  const [L, H] = attention.shape;
  const at = place.data[0];
  const cut = ({ data }, i, size) => data.subarray(i * size, (i + 1) * size);
  const of = (k, t) => cut(probabilities, k * N + t, V);
  return {
    vocabulary,
    K,
    N,
    L,
    H,
    P,
    at,
    ids: [...tokens.data],
    names: Array.from(tokens.data, (id) => vocabulary[id]),
    probabilities: of,
    best: (k, t) => topK(of(k, t), 1)[0],
    likeliest: (k, t) => likeliest.data[k * N + t],
    logits: logits.data,
    share: (part, id) => shares.data[part * V + id],
    lengths: lengths.data,
    streams: streams.data,
    attentionRow: (l, head) => cut(attention, l * H + head, N).subarray(0, at + 1),
    embedding: embedding.data,
    sigma: sigma.data[0],
    normed: normed.data,
  };
});

const whenOf = (k) => (k ? `after block ${k - 1}` : "before block 0");
const rowName = (k) => (k ? `block ${k - 1}` : "embedding"); // shorter
const headPart = ({ H }, l, head) => 1 + l * (H + 1) + head;
const networkPart = ({ H }, l) => 1 + l * (H + 1) + H;

/** The parts' names, in torch's order. */
function partNames({ L, H }) {
  const each = times(L, (l) => [
    ...times(H, (i) => `head ${i} of block ${l}`),
    `the feed-forward network of block ${l}`,
  ]);
  return ["the embedding", ...each.flat(), "the biases"];
}

const rowOfLens = (widget, { K }) => within(widget.stage ?? FIRST, [0, K - 1]);

/** The token whose logit is taken apart, and its rival: the reader's, else the two likeliest. */
function pairOf(widget, { logits }) {
  const [first, second] = topK(logits, 2);
  const a = widget.pair?.a ?? first;
  const chosen = widget.pair?.b;
  const b = chosen === undefined || chosen === a ? (a === first ? second : first) : chosen;
  return { a, b, first, second };
}

/** With its sign in front. */
const signed = (value) => (value >= 0.005 ? `+${format(value)}` : format(value));

/** With two decimals, however large: what is added up is to agree with its sum. */
const decimals = (value) => value.toFixed(2).replace("-", "−");

const placeName = ({ names, at, N }) =>
  `${called(names[at])}${at === N - 1 ? ", the last word" : at ? `, word ${at}` : ""}`;

// ---------------------------------------------------------------- the same in Python

/** The story as lines of a Python file, each no longer than 70 characters. */
function storyLines(names) {
  const lines = [""];
  for (const word of names) {
    const last = lines.at(-1);
    if (last.length + word.length > 62) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.map((line, i) => `    ${JSON.stringify(i < lines.length - 1 ? `${line} ` : line)}`);
}

/** A program that prints what `lines` show of the chosen position. */
function pythonOf(widget, names, lines) {
  const view = readBy(widget);
  const { model } = widget.spec.facts;
  const captures = lines.some((line) => line.includes("capture("));
  return [
    ...(lines.some((line) => line.includes("torch.")) ? ["import torch", ""] : []),
    `from tinylib.inside_gpt import ${["read_stream", ...names].sort().join(", ")}`,
    ...(captures ? ["from tinylib.hooks import capture"] : []),
    "from tinylib.lab.models.language import load_language_model",
    "",
    "",
    "def show(name, numbers):",
    "    print(name, [round(x, 4) for x in numbers.tolist()])",
    "",
    "",
    `gpt = load_language_model("${model}")`,
    "ids = gpt.ids(  # <bos> and the words",
    ...storyLines(view.names.slice(1)),
    ")",
    "stream = read_stream(gpt.model, ids)",
    `at = ${view.at}  # ${called(view.names[view.at])}`,
    ...lines,
    "",
  ].join("\n");
}

function lensCode(widget) {
  const k = rowOfLens(widget, readBy(widget));
  return pythonOf(
    widget,
    ["logit_lens"],
    [
      "lens = logit_lens(gpt.model, stream)[:, 0].softmax(-1)",
      `best = lens[${k}, at].topk(${LIKELIEST})  # ${whenOf(k)}`,
      "print([gpt.tokens.tokens[i] for i in best.indices])",
      'show("likeliest", best.values)',
      "final = lens[-1, at].argmax()",
      "print(gpt.tokens.tokens[final])",
      'show("from block to block", lens[:, at, final])',
    ],
  );
}

function partsCode(widget) {
  const view = readBy(widget);
  const { a, b } = pairOf(widget, view);
  const words = [a, b].map((id) => JSON.stringify(view.vocabulary[id])).join(", ");
  return pythonOf(
    widget,
    ["contributions"],
    [
      `a, b = map(gpt.tokens.tokens.index, [${words}])`,
      "parts = contributions(gpt.model, stream)[:, 0, at]",
      "difference = parts[:, a] - parts[:, b]",
      'show("embedding", difference[:1])',
      `blocks = difference[1:-1].unflatten(0, (${view.L}, ${view.H + 1}))`,
      "for i, block in enumerate(blocks):",
      '    show(f"heads and network of block {i}", block)',
      'show("biases", difference[-1:])',
      'show("sum", difference.sum()[None])',
      "logits = gpt.model(ids)[0, at].detach()",
      'show("logits", logits[[a, b]])',
    ],
  );
}

// ---------------------------------------------------------------- the lens

/**
 * A row for the stream before the first block and after each, a column for each word: what the
 * model would predict there. A click or the arrows choose a cell.
 */
function lensTable(widget) {
  const most = widget.spec.limits.at[1];
  const table = h("table.lens", {
    role: "grid",
    tabindex: "0",
    "data-input": "at",
    "data-output": "likeliest",
    "aria-label": "the logit lens: go through its cells by the arrow keys",
    click: ({ target }) => {
      const cell = target.closest("td, th");
      if (cell?.column !== undefined) goTo(cell.row ?? rowOfLens(widget, view), cell.column);
      else if (cell?.row !== undefined) goTo(cell.row, view.at);
    },
    keydown: (event) => {
      const k = rowOfLens(widget, view);
      const by = {
        ArrowLeft: [k, view.at - 1],
        ArrowRight: [k, view.at + 1],
        ArrowUp: [k - 1, view.at],
        ArrowDown: [k + 1, view.at],
        Home: [k, 0],
        End: [k, view.N - 1],
      }[event.key];
      if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      goTo(...by);
    },
  });
  const box = scroller({ class: "lens-box" }, table);
  const copied = copyAsTorch(() => lensCode(widget), "the lens");
  const element = h(
    "div.column",
    h(
      "div.headed",
      h("span.label", "The word that the model would predict if it ended there"),
      h(
        "p.scale",
        { "aria-hidden": "true" },
        ...[h("span", "0 %"), h("span.ramp"), h("span", "100 %")],
      ),
      copied.element,
    ),
    box,
  );
  let [view, size, shown] = [/** @type {any} */ (null), "", ""];
  const heads = () => [...(table.tHead?.rows[0].cells ?? [])].slice(1);
  const cells = () => [...(table.tBodies[0]?.rows ?? [])].map((tr) => [...tr.cells].slice(1));
  widget.tables.set("words", () => [heads()]);
  widget.tables.set("lens", cells);

  function goTo(row, column) {
    widget.stage = within(row, [0, view.K - 1]);
    const at = within(column, [0, view.N - 1]);
    if (at !== view.at) {
      widget.edit("at", (next) => {
        next.at = at === view.N - 1 ? most : at; // the choice stays with the last word
      });
    }
    widget.repaint("outputs");
  }

  function build({ K, N }) {
    table.replaceChildren(
      columnHeads(null, ...times(N, () => [])),
      h(
        "tbody",
        ...times(K, (k) => {
          const name = ["when", "brief"].map((kind, i) =>
            h("span", { class: kind }, [whenOf, rowName][i](k)),
          );
          return namedRow(
            name,
            times(N, () => []),
          );
        }),
      ),
    );
    heads().forEach((th, t) => Object.assign(th, { column: t }));
    [...table.tBodies[0].rows].forEach((tr, k) => Object.assign(tr.cells[0], { row: k }));
    cells().forEach((line, k) =>
      line.forEach((td, t) => {
        Object.assign(td, { row: k, column: t, id: `lens-${k}-${t}` });
        setAttribute(td, "role", "gridcell");
      }),
    );
  }

  /** Bring the chosen column into view: the last words if it is the last. */
  function find() {
    const th = heads()[view.at];
    const first = table.tHead.rows[0].cells[0].offsetWidth;
    if (!box.clientWidth || !th) return;
    const [left, right] = [th.offsetLeft - first, th.offsetLeft + th.offsetWidth];
    if (view.at === view.N - 1) box.scrollLeft = box.scrollWidth;
    else if (left < box.scrollLeft) box.scrollLeft = left;
    else if (right > box.scrollLeft + box.clientWidth) box.scrollLeft = right - box.clientWidth;
  }
  resized(() => view && find(), box);

  return {
    element,
    shows: "outputs",
    reset() {
      widget.stage = undefined;
      shown = "";
    },
    saved: () => (widget.stage === undefined ? {} : { stage: widget.stage }),
    restore({ stage }) {
      widget.stage = Number.isInteger(stage) ? stage : undefined;
      widget.repaint("outputs");
    },
    update() {
      view = readBy(widget);
      const { K, N, at, names, vocabulary } = view;
      if (size !== `${K} ${N}`) build(view);
      size = `${K} ${N}`;
      const row = rowOfLens(widget, view);
      heads().forEach((th, t) => {
        setText(th, visible(names[t]));
        th.classList.toggle("at", t === at);
      });
      cells().forEach((line, k) =>
        line.forEach((td, t) => {
          const [word, share] = [visible(vocabulary[view.best(k, t)]), view.likeliest(k, t)];
          setText(td, word);
          setHeat(td, share);
          setAttribute(td, "data-value", String(share));
          setAttribute(td, "aria-label", `${word}, ${percentOf(share)}`);
          setAttribute(td, "aria-selected", String(k === row && t === at));
          td.classList.toggle("at", t === at);
        }),
      );
      [...table.tBodies[0].rows].forEach((tr, k) => tr.classList.toggle("at", k === row));
      setAttribute(table, "aria-activedescendant", `lens-${row}-${at}`);
      copied.follow();
      if (shown !== `${N} ${at}`) requestAnimationFrame(find);
      shown = `${N} ${at}`;
    },
  };
}

/** The likeliest words of the chosen cell. */
function cellOfLens(widget) {
  const title = h("span.label");
  const list = candidateList("the likeliest words there");
  const element = results("column", title, list);
  const make = () => h("li", candidateLine("div", {}, {}));
  return {
    element,
    shows: "outputs",
    update() {
      const view = readBy(widget);
      const k = rowOfLens(widget, view);
      const row = view.probabilities(k, view.at);
      setText(title, `Likeliest ${whenOf(k)}`);
      fillList(list, topK(row, LIKELIEST), make, (li, id) => {
        const name = visible(view.vocabulary[id]);
        const unseen = name !== view.vocabulary[id];
        fillCandidate(li.firstChild, name, [row[id]], [percentOf(row[id])], unseen);
      });
    },
  };
}

/** How the finally predicted word grows from block to block. */
function growth(widget) {
  const title = h("span.label");
  const list = h("ol.nexts.stages-of", { "aria-label": "its probability by block" });
  const element = results("column", title, list);
  const make = () => h("li", candidateLine("div", {}, {}));
  return {
    element,
    shows: "outputs",
    update() {
      const view = readBy(widget);
      const { K, at, vocabulary } = view;
      const [final, chosen] = [view.best(K - 1, at), rowOfLens(widget, view)];
      setText(title, `${called(vocabulary[final])}, block by block`);
      fillList(
        list,
        times(K, (k) => k),
        make,
        (li, k) => {
          const p = view.probabilities(k, at)[final];
          fillCandidate(li.firstChild, rowName(k), [p], [percentOf(p)]);
          li.classList.toggle("at", k === chosen);
        },
      );
    },
  };
}

/** The story's own answer, and from which block on the model's choice stays the same. */
function verdict(widget) {
  const note = h("p.note.verdict", { "aria-live": "polite" });
  return {
    element: results("", note),
    shows: "outputs",
    update(inputs) {
      const view = readBy(widget);
      const { K, N, at, vocabulary } = view;
      const final = view.best(K - 1, at);
      let from = K - 1;
      while (from && view.best(from - 1, at) === final) from -= 1;
      const share = percentOf(view.likeliest(K - 1, at));
      const groups = Object.values(widget.spec.facts.stories);
      const truth = groups.find((group) => Object.hasOwn(group, inputs.story))?.[inputs.story];
      setText(
        note,
        `At ${placeName(view)}, the model predicts ${called(vocabulary[final])} (${share}). ` +
          (from === 0
            ? "The lens shows it before block 0 already."
            : from === K - 1
              ? `The lens shows it only ${whenOf(from)}, the last.`
              : `The lens shows it ${whenOf(from)}, and from there on.`) +
          (truth && at === N - 1 ? ` By the story it is “${truth}”.` : ""),
      );
    },
  };
}

// ---------------------------------------------------------------- direct contributions

/** A choice of a token; the first entry leaves it to the model. */
function tokenChoice(widget, key, label) {
  const list = h("select", {
    "aria-label": label,
    change: () => {
      const chosen = list.value === "" ? undefined : Number(list.value);
      widget.pair = { ...widget.pair, [key]: chosen };
      widget.repaint("outputs");
    },
  });
  const auto = h("option", { value: "" });
  const names = widget.spec.sentences.story.map((word, id) => [word, id]);
  names.sort(([one], [other]) => one.localeCompare(other));
  list.append(
    auto,
    ...names.map(([word, id]) => h("option", { value: String(id) }, visible(word))),
  );
  return {
    element: list,
    update(view, id) {
      setText(auto, `${visible(view.vocabulary[id])} (${key === "a" ? "1st" : "2nd"})`);
      list.value = String(widget.pair?.[key] ?? "");
    },
  };
}

/** What every part adds to the logit of one token less that of another. */
function partsOfLogit(widget) {
  const pickA = tokenChoice(widget, "a", "the token");
  const pickB = tokenChoice(widget, "b", "its rival");
  const copied = copyAsTorch(() => partsCode(widget), "the contributions");
  const table = h("table.parts-of", { "aria-label": "what each part adds" });
  const total = h("span.total");
  const largest = h("span.largest");
  const element = results(
    "column",
    h(
      "div.headed",
      h("span.label", "Added to logit"),
      pickA.element,
      h("span.label", "−"),
      pickB.element,
      copied.element,
    ),
    table,
    h("p.note.sums", { "aria-live": "polite" }, total, " ", largest),
  );
  let size = "";
  const bar = () => [h("span"), h("i")];
  const cellsOfParts = () => [...table.querySelectorAll("td.part")];
  widget.tables.set("parts", () => [cellsOfParts()]);
  function build({ L, H }) {
    const heads = [...times(H, (i) => `head ${i}`), "feed-for\u00adward"];
    const partCell = (colspan = false) => h("td.part", { colspan }, ...bar());
    table.replaceChildren(
      columnHeads(null, ...heads),
      h(
        "tbody",
        h(
          "tr",
          h("th", { scope: "row" }, "embed\u00adding"), // in two, where it is narrow
          partCell(),
          h("td", { colspan: String(H) }),
        ),
        ...times(L, (l) =>
          h("tr", h("th", { scope: "row" }, `block ${l}`), ...times(H + 1, () => partCell())),
        ),
      ),
    );
  }
  return {
    element,
    shows: "outputs",
    reset() {
      widget.pair = undefined;
    },
    saved: () => (widget.pair ? { pair: [widget.pair.a ?? -1, widget.pair.b ?? -1] } : {}),
    restore({ pair }) {
      const known = (id) => Number.isInteger(id) && id in widget.spec.sentences.story;
      const [a, b] = Array.isArray(pair) ? pair.map((id) => (known(id) ? id : undefined)) : [];
      widget.pair = a === undefined && b === undefined ? undefined : { a, b };
      widget.repaint("outputs");
    },
    update() {
      const view = readBy(widget);
      const { L, H, P, logits, vocabulary } = view;
      if (size !== `${L} ${H}`) build(view);
      size = `${L} ${H}`;
      const { a, b, first } = pairOf(widget, view);
      pickA.update(view, first);
      pickB.update(view, pairOf({ pair: { a } }, view).b);
      const adds = times(P, (part) => view.share(part, a) - view.share(part, b));
      const order = times(P, (part) => part).sort((i, j) => Math.abs(adds[j]) - Math.abs(adds[i]));
      const full = Math.max(1, Math.abs(adds[order[0]]));
      cellsOfParts().forEach((td, part) => {
        const [number, stick] = td.children;
        setText(number, signed(adds[part]));
        setAttribute(td, "data-value", String(adds[part]));
        stick.className = adds[part] < 0 ? "less" : "";
        stick.style.width = `${((50 * Math.abs(adds[part])) / full).toFixed(2)}%`;
        td.classList.toggle("large", order.indexOf(part) < NAMED);
      });
      const sum = adds.reduce((all, one) => all + one, 0);
      setAttribute(total, "data-value", String(sum));
      total.values = [sum, logits[a] - logits[b]];
      setText(
        total,
        `Together: ${sum > 0 ? "+" : ""}${decimals(sum)} = ${decimals(logits[a])} − ` +
          `${logits[b] < 0 ? `(${decimals(logits[b])})` : decimals(logits[b])}, ` +
          `the logits of ${called(vocabulary[a])} and ${called(vocabulary[b])}.`,
      );
      const names = partNames(view);
      const some = order.slice(0, NAMED).filter((part) => Math.abs(adds[part]) >= 0.005);
      const named = some.map((part) => `${names[part]} (${signed(adds[part])})`);
      setText(largest, named.length ? `The most comes from ${listed(named)}.` : "");
      copied.follow();
    },
  };
}

// ---------------------------------------------------------------- one word, followed

function followed(widget) {
  const view = readBy(widget);
  const { code, width } = widget.spec.facts;
  return { ...view, widget, code, width, token: called(view.names[view.at]) };
}

const wordCell = (t) => ({ name: "words", row: 0, column: t });
const lensCell = (k, t) => ({ name: "lens", row: k, column: t });
const partCellOf = (part) => ({ name: "parts", row: 0, column: part });
const lensRow = (row) => ({ name: "lens", row }); // all words are read at once

/** Only what can be seen moves: the table may have been scrolled past it. */
function fly(widget, from, to) {
  const [cell] = widget.cellsOf(from.name, from.row, from.column);
  const [box, own] = [cell.closest(".lens-box"), cell.getBoundingClientRect()];
  const { left, right } = box.getBoundingClientRect();
  return own.left >= left && own.right <= right ? [{ from, to }] : [];
}

const embedStep = ({ widget, at, N, token, width, embedding, lengths, code }) => ({
  message:
    `We follow ${token}, token ${at + 1} of ${N}. Its row of the embedding table, a vector of ` +
    `${width} numbers, begins the residual stream. The vector's length is ${format(lengths[0])}.`,
  lit: [wordCell(at), lensCell(0, at)],
  fills: [lensRow(0), partCellOf(0)],
  code: code.embed,
  table: {
    labels: [...times(NUMBERS, (i) => String(i + 1)), "length"],
    rows: [{ name: "embedding", numbers: [...embedding.slice(0, NUMBERS), lengths[0]] }],
  },
  torch: pythonOf(
    widget,
    [],
    [
      "x = stream.embedding[0, at]",
      `show("embedding", x[:${NUMBERS}])`,
      'show("length", x.norm()[None])',
    ],
  ),
});

const headsStep = (l) => (view) => {
  const { widget, at, H, names, token, lengths, code } = view;
  const found = times(H, (head) => {
    const row = view.attentionRow(l, head);
    const [most] = topK(row, 1);
    return { head, most, weight: row[most], length: lengths[headPart(view, l, head)] };
  });
  const [longest] = [...found].sort((one, other) => other.length - one.length);
  const { head, most, weight, length } = longest;
  return {
    message:
      `In block ${l}, each of ${H} heads attends to the words up to ${token} and adds a vector ` +
      `to the stream. Head ${head} adds the longest, ${format(length)}: it attends most to ` +
      `${most === at ? `${token} itself` : `${called(names[most])}, ${at - most} back`}, with ` +
      `weight ${format(weight)}.`,
    lit: [wordCell(most), partCellOf(headPart(view, l, head)), lensCell(l, at)],
    moves: most === at ? [] : fly(widget, wordCell(most), lensCell(l + 1, at)),
    fills: times(H, (one) => partCellOf(headPart(view, l, one))),
    code: code.attend,
    table: {
      labels: found.map((one) => `head ${one.head}: ${called(names[one.most])}`),
      rows: [
        { name: "largest weight", numbers: found.map((one) => one.weight) },
        { name: "length added", numbers: found.map((one) => one.length) },
      ],
    },
    torch: pythonOf(
      widget,
      [],
      [
        `place = "blocks.${l}.attention.weights"`,
        "with capture(gpt.model, place) as seen:",
        "    gpt.model(ids)",
        "weights = seen[place][0][0, :, at]",
        "words = [gpt.tokens.tokens[i] for i in ids[0]]",
        "print([words[t] for t in weights.argmax(-1)])",
        'show("largest weight", weights.amax(-1))',
        `show("length added", stream.heads[${l}, :, 0, at].norm(dim=-1))`,
      ],
    ),
  };
};

const networkStep = (l) => (view) => {
  const { widget, at, K, vocabulary, token, lengths, streams, code } = view;
  const added = lengths[networkPart(view, l)];
  const [best, p] = [called(vocabulary[view.best(l + 1, at)]), view.likeliest(l + 1, at)];
  const next = l + 2 < K ? `If the model ended here, it would predict` : "The lens reads the last:";
  return {
    message:
      `The feed-forward network of block ${l} reads the stream at ${token} alone and adds a ` +
      `vector of length ${format(added)}. The stream is now ${format(streams[l + 1])} long. ` +
      `${next} ${best} with ${percentOf(p)}.`,
    lit: [partCellOf(networkPart(view, l)), lensCell(l + 1, at)],
    fills: [lensRow(l + 1), partCellOf(networkPart(view, l))],
    code: code.forward,
    table: {
      labels: ["added", "stream before", "stream after", `lens: ${best}`],
      rows: [
        { name: "length", numbers: [added, streams[l], streams[l + 1], null] },
        { name: "probability", numbers: [null, null, null, p] },
      ],
    },
    torch: pythonOf(
      widget,
      ["logit_lens"],
      [
        `added = stream.feed_forward[${l}, 0, at]`,
        `before, after = stream.after()[${l}:${l + 2}, 0, at]`,
        'show("added, before, after", torch.stack([added, before, after]).norm(dim=-1))',
        `lens = logit_lens(gpt.model, stream)[${l + 1}, 0, at].softmax(-1)`,
        "print(gpt.tokens.tokens[lens.argmax()])",
        'show("probability", lens.amax()[None])',
      ],
    ),
  };
};

const normStep = ({ widget, at, K, streams, width, sigma, normed, token, code }) => ({
  message:
    `The last norm divides the stream at ${token} by σ, its length over √${width}, and takes ` +
    `each entry times a learned number: ` +
    `${format(streams[K - 1])} / √${width} = ${format(sigma)}.`,
  lit: [lensCell(K - 1, at)],
  code: code.norm,
  table: {
    labels: ["stream's length", "σ", ...times(NUMBERS, (i) => String(i + 1))],
    rows: [{ name: "last norm", numbers: [streams[K - 1], sigma, ...normed.slice(0, NUMBERS)] }],
  },
  torch: pythonOf(
    widget,
    [],
    [
      "x = stream.after()[-1, 0, at]",
      "norm = gpt.model.norm",
      'show("length", x.norm()[None])',
      'show("σ", (x.square().mean() + norm.eps).sqrt()[None])',
      `show("last norm", norm(x).detach()[:${NUMBERS}])`,
    ],
  ),
});

const FINAL = 5; // tokens whose logits are shown

const logitsStep = ({ widget, at, K, logits, vocabulary, token, code }) => {
  const best = topK(logits, FINAL);
  return {
    message:
      `The dot products of that vector with the rows of the embedding table are the logits of ` +
      `all ${vocabulary.length} tokens. After ${token} the largest is that of ` +
      `${called(vocabulary[best[0]])}. As the stream is a sum, so is each logit: the bars above ` +
      "are its terms.",
    lit: [lensCell(K - 1, at)],
    code: code.output,
    table: likeliestTable({ best, vocabulary }, { logit: logits }),
    torch: pythonOf(
      widget,
      [],
      [
        `best = gpt.model(ids)[0, at].detach().topk(${FINAL})`,
        "print([gpt.tokens.tokens[i] for i in best.indices])",
        'show("logit", best.values)',
      ],
    ),
  };
};

const softmaxStep = (view) => {
  const { widget, at, N, K, logits, vocabulary, names, code } = view;
  const [best, row] = [topK(logits, FINAL), view.probabilities(K - 1, at)];
  const goesOn = at < N - 1 ? ` The text goes on with ${called(names[at + 1])}.` : "";
  return {
    message:
      "The softmax turns the logits into probabilities: " +
      `${called(vocabulary[best[0]])} is expected with ${percentOf(row[best[0]])}.${goesOn}`,
    lit: [lensCell(K - 1, at)],
    fills: [partsOf(widget, ".part, .trio .nexts, .trio .note")],
    code: code.softmax,
    table: likeliestTable({ best, vocabulary }, { logit: logits, probability: row }),
    torch: pythonOf(
      widget,
      [],
      [
        "logits = gpt.model(ids)[0, at].detach()",
        `best = logits.topk(${FINAL})`,
        "print([gpt.tokens.tokens[i] for i in best.indices])",
        'show("logit", best.values)',
        'show("probability", logits.softmax(-1)[best.indices])',
      ],
    ),
  };
};

const stepsOf = (layers) => [
  embedStep,
  ...times(layers, (l) => [headsStep(l), networkStep(l)]).flat(),
  normStep,
  logitsStep,
  softmaxStep,
];

const nameOfIt = (widget) =>
  widget.model.get("outputs") ? called(readBy(widget).names[readBy(widget).at]) : "a word";

/** Follow the chosen word through all blocks. */
const wordJourney = (widget) =>
  journey(widget, { name: nameOfIt, steps: stepsOf(widget.spec.facts.layers), follow: followed });

wordJourney.style = journey.style;
cellOfLens.style = candidateList.style;
lensTable.style = `${copyAsTorch.style}
.headed { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; }
.headed > .copying { margin-left: auto; }
.headed > .copying:has(.snippet) { flex: 1 0 100%; }
.scale { display: flex; gap: 8px; align-items: center; margin: 0; font-size: var(--size-small);
  color: var(--soft); }
.ramp { width: 3.5rem; height: .625rem; border-radius: 3px; border: 1px solid var(--line);
  background: linear-gradient(to right in oklab, var(--ground), color-mix(in oklab, var(--ground),
  var(--probability) 80%)); }
.lens-box { scroll-padding-left: 6rem; } /* the names of the rows stay */
.lens { cursor: pointer; border-collapse: separate; border-spacing: 0; }
.lens :is(td, th) { font-size: var(--size-small); white-space: nowrap; max-width: none;
  padding: 0 5px; height: 1.5rem; text-align: center; }
.lens tbody td { min-width: 2.5rem; border: 1px solid var(--ground); border-radius: 4px;
  ${shaded("probability")} }
.lens thead th { color: var(--text); font-weight: 600; }
.lens th.at, .lens tr.at th { color: var(--accent); font-weight: 700; }
.lens :is(thead td, tbody th) { position: sticky; left: 0; z-index: 1; text-align: right;
  background: var(--ground); padding: 0 8px 0 2px; }
.lens td[aria-selected=true] { outline: 2px solid var(--accent); outline-offset: -2px; }
.lens th.lit { box-shadow: inset 0 0 0 2px var(--accent); border-radius: 4px; }
.lens .brief { display: none; }
@media (max-width: 37.5rem) {
  .lens .when { display: none; }
  .lens .brief { display: inline; }
}
`;
growth.style = `
.stages-of .at { color: var(--accent); }
.nexts.stages-of { gap: 0; }
.stages-of .candidate .token { font-weight: 400; font-size: var(--size-small); }
.stages-of .at .candidate .token { font-weight: 700; }
.stages-of .candidate { min-height: 1.5rem; }
.verdict { max-width: none; }
`;
partsOfLogit.style = `
.headed select { font: inherit; font-size: var(--size-note); color: var(--text);
  background: var(--ground); border: 1px solid var(--line); border-radius: 6px; min-height: 1.75rem;
  padding: 1px 4px; max-width: 100%; }
@media (pointer: coarse) { .headed select { font-size: var(--size-touch); } }
.parts-of { width: 100%; table-layout: fixed; border-collapse: separate; border-spacing: 2px 1px; }
.parts-of th { white-space: normal; overflow: visible; line-height: 1.15; max-width: none;
  padding: 0; }
.parts-of tbody th { padding-right: 4px; }
.parts-of :is(thead td, tbody th) { width: 4.5rem; }
@media (max-width: 37.5rem) { .parts-of :is(thead td, tbody th) { width: 3.4375rem; } }
.part { position: relative; height: 1.5rem; padding: 0 0 6px; text-align: center; line-height:
  1.0625rem; font-size: var(--size-small); border-radius: 3px; background: color-mix(in oklab,
  var(--ground), var(--line) 26%); }
.part i { position: absolute; inset: auto auto 2px 50%; height: 5px; min-width: 1px;
  background: var(--positive); }
.part i.less { inset: auto 50% 2px auto; background: var(--negative); }
.part.large { font-weight: 700; }
.sums { max-width: none; }
.trio { display: grid; gap: 14px 24px; min-width: 0; }
.trio > * { min-width: 0; }
.pair { display: grid; gap: 14px 20px; min-width: 0; align-content: start; }
.pair > * { min-width: 0; }
@container widget (min-width: 32.5rem) { .pair { grid-template-columns: 1fr 1fr; } }
@container widget (min-width: 53.75rem) {
  .trio { grid-template-columns: minmax(0, 1fr) minmax(0, 1.3fr); align-items: start; }
  .trio .headed { gap: 4px 7px; }
  .pair .candidate { grid-template-columns: 4.625rem 1fr 3.25rem; gap: 6px; padding-left: 0; }
  /* All of it fits in a window: the offers stand beside the label, the words it knows beside their
     number. */
  .frame { gap: 11px; }
  .story { position: relative; margin-top: 6px; }
  .story > .column { display: grid; grid-template-columns: auto 1fr; column-gap: 20px; }
  .story > .column > :not(.counted, .known) { grid-column: 1 / -1; }
  .story > .offer { position: absolute; top: -7px; right: 0; width: 26.875rem; }
  .story > .column > .label { min-height: 1.375rem; }
}
`;

export default live(
  "The logit lens: what each block predicts, live",
  (ui) => [
    ui.boxed(
      "story",
      ui.use(text, "story", "Your story"),
      ui.use(beginnings, "story", "stories", (next, { spec }) => {
        next.at = spec.limits.at[1];
      }),
    ),
    ui.use(lensTable),
    ui.use(wordJourney),
    ui.boxed(
      "trio",
      ui.boxed("column", ui.boxed("pair", ui.use(cellOfLens), ui.use(growth)), ui.use(verdict)),
      ui.use(partsOfLogit),
    ),
  ],
  { wide: true, main: ".lens", answer: ".verdict" },
);
