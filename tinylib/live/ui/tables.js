// Inputs and outputs as tables of numbers.

import { parseBlock } from "../page/inputs.js";
import { columnHeads, namedRow } from "./boxes.js";
import { AS_IS, h, mathText, setAttribute, setHeat, setText } from "./dom.js";
import { explainable, rove } from "./explain.js";
import { signedKey, weightKey } from "./keys.js";
import { everywhere, numberBox, rowsOf } from "./knobs.js";
import { entryText, format, formatTiny, times } from "./numbers.js";

/** A table of number boxes over the input `name`; takes pasted blocks. */
export function matrixEditor(widget, name, label) {
  const limits = widget.spec.limits?.[name];
  const axes = widget.spec.inputs[name].split(" ");
  const flat = axes.length === 1; // a vector: one row, named by the label
  const table = h("table.matrix");
  let size = "";
  const box = (row, column) => {
    const input = numberBox(widget, name, {
      field: () => `${name} ${row} ${column}`,
      read: (inputs) => rowsOf(inputs, name)[row]?.[column],
      form: entryText,
      put: (next, typed) => {
        rowsOf(next, name)[row][column] = typed;
      },
      focus: () => widget.select(name, row, column),
      paste: (event) => {
        const text = event.clipboardData.getData("text");
        if (!/[^\s[\](),;][\s,;]+[^\s[\](),;]/.test(text.trim())) return; // one number: as typed
        event.preventDefault();
        input.settle();
        pasteBlock(parseBlock(text, limits ?? everywhere(widget)), row, column);
        input.settle();
      },
    });
    return input;
  };
  const pasteBlock = ({ rows, error }, row, column) => {
    if (error) {
      widget.announce(`Nothing was pasted. ${error}`);
      return;
    }
    const [height, width] = [rows.length, rows[0]?.length ?? 0];
    const held = rowsOf(widget.inputs, name);
    const [T, D] = [held.length, held[0].length];
    if (!rows.every((cells) => cells.length === width)) {
      widget.announce("Nothing was pasted: the rows of the block are not equally long.");
      return;
    }
    if (height === T && width === D) [row, column] = [0, 0];
    if (row + height > T || column + width > D) {
      widget.announce(
        `Nothing was pasted: the block is ${height} × ${width}, and from this entry on ` +
          `there is room for ${T - row} × ${D - column}.`,
      );
      return;
    }
    widget.edit(Symbol("paste"), (next) =>
      rows.forEach((cells, i) =>
        cells.forEach((value, j) => {
          rowsOf(next, name)[row + i][column + j] = value;
        }),
      ),
    );
  };
  widget.tables.set(name, () =>
    [...table.tBodies[0].rows].map((tr) => [...tr.cells].slice(1).map((td) => td.firstChild)),
  );
  const build = (rows, columns) => {
    const heading = () => (flat ? mathText(label) : []);
    table.replaceChildren(
      ...(flat ? [] : [h("caption", ...mathText(label))]),
      columnHeads(null, ...times(columns, (j) => String(j + 1))),
      h(
        "tbody",
        AS_IS,
        ...times(rows, (i) =>
          namedRow(
            heading(),
            times(columns, (j) => [box(i, j)]),
          ),
        ),
      ),
    );
  };
  return {
    element: h("div.scroll", table),
    shows: "inputs",
    update(inputs) {
      const matrix = rowsOf(inputs, name);
      const { entry } = widget;
      if (size !== `${matrix.length} ${matrix[0].length}`) {
        build(matrix.length, matrix[0].length);
        size = `${matrix.length} ${matrix[0].length}`;
      }
      const labels = flat ? [] : widget.labels(axes[0], matrix.length);
      matrix.forEach((values, i) => {
        const [head, ...cells] = table.tBodies[0].rows[i].children;
        if (!flat) {
          setText(head, labels[i]);
          setAttribute(head, "title", labels[i]);
        }
        values.forEach((_, j) => {
          const input = cells[j].firstChild;
          input.follow();
          setAttribute(
            input,
            "aria-label",
            flat ? `${name} ${j + 1}` : `${name} of ${labels[i]}, ${j + 1}`,
          );
          input.classList.toggle(
            "chosen",
            entry?.name === name && entry.row === i && entry.column === j,
          );
        });
      });
    },
  };
}

/**
 * The output `name` as a table of shaded numbers: "weight" shades 0 to 1, "signed" both ways.
 * `explain(widget, row, column)` returns the explanation of an entry, by a rule of explain.js.
 */
export function heatMap(widget, name, label, shading = "weight", explain = undefined) {
  const axes = widget.spec.outputs[name].split(" ");
  if (axes.length !== 2)
    throw new Error(`heat("${name}") needs an output of two axes, such as "T 1"`);
  const chooses = axes[0] === "T" && widget.spec.words;
  const table = h("table", { class: `heat ${shading}`, "data-output": name });
  // A weight of 0 is masked, unless the mask is off: then it is only very small, and rounded.
  const masks = () => widget.inputs.causal !== false;
  const never = (value) => value === -Infinity || (shading === "weight" && value === 0 && masks());
  const scale = shading === "signed" ? signedKey() : undefined;
  const key = scale?.element ?? weightKey();
  const bodyRows = () => [...(table.tBodies[0]?.rows ?? [])]; // none before the first answer
  const cells = () => bodyRows().map((tr) => [...tr.cells].slice(1));
  widget.tables.set(name, cells);
  const reach = explain ? rove(table) : () => {};
  let size = "";
  const build = (rows, columns) => {
    const tabindex = explain ? "-1" : false; // roving tabindex: the arrow keys move the focus
    const look = (i) => ({ tabindex, click: () => widget.look(i) });
    const head = (i) => (chooses ? h("button", look(i)) : h("span"));
    const spans = () => times(columns, () => [h("span")]);
    table.replaceChildren(
      h("caption", ...mathText(label)),
      columnHeads(null, ...spans()),
      h("tbody", AS_IS, ...times(rows, (i) => namedRow([head(i)], spans()))),
    );
    if (!explain) return;
    cells().forEach((line, i) =>
      line.forEach((cell, j) => explainable(widget, cell, () => explain(widget, i, j))),
    );
    reach();
  };
  return {
    element: h("div.scroll", table, key),
    shows: "outputs",
    update(inputs, outputs) {
      const { data } = outputs[name];
      const [rows, columns] = outputs[name].shape;
      if (chooses && rows !== inputs.words.length) return; // the answer is still on its way
      if (size !== `${rows} ${columns}`) build(rows, columns);
      size = `${rows} ${columns}`;
      const [across, down] = [widget.labels(axes[1], columns), widget.labels(axes[0], rows)];
      [...table.tHead.rows[0].children].slice(1).forEach((th, j) => {
        setText(th.firstChild, across[j]);
        th.classList.toggle("long", axes[1] === "T" && widget.spec.words);
        th.translate = false;
        setAttribute(th, "title", across[j]);
      });
      let most = 1;
      if (shading === "signed") {
        most = data.reduce((m, v) => (Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m), 0);
        scale.reach(most);
      }
      const figure = most < 0.005 ? formatTiny : format; // else all would read 0.00
      [...table.tBodies[0].rows].forEach((tr, i) => {
        setText(tr.children[0].firstChild, down[i]);
        setAttribute(tr.children[0], "title", down[i]);
        tr.classList.toggle("query", chooses && i === widget.query);
        for (let j = 0; j < columns; j += 1) {
          const [cell, value] = [tr.children[j + 1], data[i * columns + j]];
          const hidden = shading === "weight" && never(value);
          setText(cell.firstChild, hidden ? "" : figure(value));
          setAttribute(cell, "data-value", String(value));
          const kind = never(value) ? "never" : value < 0 ? "below" : "above";
          if (!cell.classList.contains(kind)) {
            cell.classList.remove("never", "below", "above");
            cell.classList.add(kind);
          }
          setHeat(cell, Number.isFinite(value) ? Math.abs(value) / (most || 1) : 0);
        }
      });
    },
  };
}

/**
 * The chosen word's row in words: which shares of which words make its vector in `result`.
 * `of` names what is mixed, as in v(word); without it, it is the words' own vectors.
 */
export function mixture(widget, weights, result, of = (_widget) => "") {
  const line = h("p.note.mixture", { "data-output": "" });
  return {
    element: line,
    shows: "outputs",
    update({ words }, outputs) {
      const [shares, mixed] = [outputs[weights], outputs[result]];
      if (shares.shape[0] !== words.length) return; // the answer is still on its way
      const row = (out) => [
        ...out.data.slice(widget.query * out.shape[1], (widget.query + 1) * out.shape[1]),
      ];
      const name = of(widget); // of the vectors that are mixed, such as v
      const terms = row(shares)
        .map((share, i) => ({ share, word: words[i] }))
        .filter(({ share }) => share >= 0.005)
        .sort((a, b) => b.share - a.share)
        .map(({ share, word }) => `${format(share)} × ${name ? `${name}(${word})` : word}`);
      line.replaceChildren(
        h("b", `“${words[widget.query]}” becomes `),
        terms.join(" + "),
        row(shares).some((share) => share > 0 && share < 0.005) ? " + …" : "",
        ` = (${row(mixed).map(format).join(", ")})`,
      );
    },
  };
}
