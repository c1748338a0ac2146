// The words of a widget as a list to edit.

import { hashedNumbers } from "../page/inputs.js";
import { plainly } from "../page/words.js";
import { AS_IS, AS_TYPED, h, setAttribute, setHeat, setText, svgPart } from "./dom.js";
import { format } from "./numbers.js";

const PENCIL = "M2.5 13.5l.8-3.2 7.4-7.4 2.4 2.4-7.4 7.4zM9.2 4.4l2.4 2.4";
const CSS_FITS = CSS.supports("field-sizing", "content");

/**
 * The words: choose, rename, add, remove. A click or a tap chooses a word, so that no keyboard
 * covers the screen of a phone; its pencil, a double click or Enter renames it. Each carries its
 * embedding with it in every input whose rows are words. If `weights` names an output, a word is
 * shaded by how much the chosen word attends to it.
 * `follow(next, at, count, length)` lets other inputs keep pace: from `at` on, `count` words have
 * become `length`. `lexicon()` has the embeddings of words that the widget knows, as { key, known:
 * { x: { word: row } } }; what a reader makes of them is kept apart for each key.
 */
export function wordEditor(widget, weights, follow, lexicon = () => ({ key: "", known: {} })) {
  const { spec } = widget;
  const list = h("ol.words", { ...AS_IS, "aria-label": "words" });
  const caption = h("span.gaze");
  const addButton = h("button.add", { "data-input": "words", click: () => insert() }, "Add word");
  const tables = Object.entries(spec.inputs).filter(([, axes]) => axes.startsWith("T "));

  const rows = new Map(); // "x journey", after the key -> the last row that the word had
  const placeOf = (name, word) => `${lexicon().key} ${name} ${word}`;
  const embedding = (name, axes, word) => [
    ...(rows.get(placeOf(name, word)) ??
      lexicon().known[name]?.[word] ??
      hashedNumbers(word, Number(axes.split(" ")[1]))),
  ];
  /** Put `words` in the place of `count` words from `at` on; what is chosen stays chosen. */
  const splice = (field, at, count, ...words) => {
    const { query, entry } = widget;
    const row = entry?.row;
    const after = (index) => (index >= at + count ? index + words.length - count : index);
    widget.query = after(query);
    if (tables.some(([name]) => name === entry?.name)) entry.row = after(row);
    const done = widget.edit(field, (next) => {
      next.words.splice(at, count, ...words);
      follow?.(next, at, count, words.length);
      for (const [name, axes] of tables) {
        next[name].splice(at, count, ...words.map((word) => embedding(name, axes, word)));
      }
    });
    if (!done) {
      widget.query = query;
      if (entry) entry.row = row;
    }
    return done;
  };
  const insert = () => {
    const { length } = widget.inputs.words;
    if (length >= spec.max.words) {
      widget.announce(`There is room for ${spec.max.words} words: remove one first.`);
      return;
    }
    splice(Symbol("add"), length, 0, "word");
    rename(length).select();
  };

  let edited = -1; // the word that is being renamed
  const rename = (i) => {
    edited = i;
    widget.look(i);
    const box = list.children[i].querySelector("input");
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
    return box;
  };
  const chip = (i) => {
    const use = () => {
      const typed = plainly(box.value, () => false)
        .trim()
        .split(/\s+/);
      box.kept = typed[0];
      const done = splice(`word ${i}`, i, 1, ...typed);
      if (!done) box.kept = widget.inputs.words[i];
      box.setAttribute("aria-invalid", String(!done));
      if (done && typed.length > 1) rename(i + typed.length - 1);
    };
    const close = () => {
      edited = -1;
      widget.repaint("inputs");
    };
    const pick = h(
      "button.pick-word",
      {
        click: () => widget.look(i),
        dblclick: () => rename(i),
        keydown: (event) => {
          const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (event.key !== "Enter" && !by) return;
          event.preventDefault();
          if (!by) rename(i);
          else if (list.children[i + by]) {
            widget.look(i + by);
            list.children[i + by].firstChild.focus();
          }
        },
      },
      h("span"),
    );
    const box = h("input", {
      type: "text",
      ...AS_TYPED,
      "data-input": "words",
      "aria-label": `word ${i + 1}`,
      input: use,
      keydown: ({ key }) => {
        if (key !== "Enter" && key !== "Escape") return;
        close();
        pick.focus();
      },
      blur: () => {
        box.removeAttribute("aria-invalid");
        box.value = widget.inputs.words[i] ?? "";
        fit(box);
        // What is pressed now must not move away from under the pointer before it is let go.
        const soon = () => setTimeout(() => edited === i && close());
        if (widget.pressed) addEventListener("pointerup", soon, { once: true });
        else soon();
      },
    });
    const pencil = h(
      "button.rename",
      { click: () => rename(i) },
      svgPart("svg", { viewBox: "0 0 16 16" }, svgPart("path", { d: PENCIL })),
    );
    const remove = h(
      "button.remove",
      {
        "data-input": "words",
        click: () => {
          splice(Symbol("remove"), i, 1);
          addButton.focus();
        },
      },
      "×",
    );
    box.value = widget.inputs.words[i];
    box.kept = box.value; // the word that the box stands for, whatever is half typed in it
    const weight = h("span.weight", { "data-output": "" });
    return h("li.word", pick, box, weight, pencil, remove);
  };
  const fit = (box) => {
    // a browser that cannot do `field-sizing: content` gets a good guess
    if (!CSS_FITS) box.style.width = `${[...box.value].length + 2.5}ch`;
  };

  return {
    element: h("div.sentence", caption, list, addButton),
    update(inputs, outputs) {
      const { words } = inputs;
      if (list.children.length !== words.length) {
        list.replaceChildren(...words.map((_, i) => chip(i)));
      }
      const out = weights && outputs[weights];
      const row =
        out && out.shape[0] === words.length
          ? out.data.subarray(widget.query * words.length, (widget.query + 1) * words.length)
          : null;
      words.forEach((word, i) => {
        for (const [name] of tables) rows.set(placeOf(name, word), inputs[name][i]);
        const li = list.children[i];
        const [pick, box, weight, pencil, remove] = li.children;
        const typing = box === list.getRootNode().activeElement && box.kept === word;
        if (!typing && box.value !== word) {
          box.value = word;
          box.removeAttribute("aria-invalid");
        }
        box.kept = word;
        fit(box);
        setText(pick.firstChild, word);
        box.hidden = i !== edited;
        pick.hidden = i === edited;
        if (row) setAttribute(pick, "aria-pressed", String(i === widget.query));
        pick.tabIndex = i === widget.query ? 0 : -1;
        setAttribute(pencil, "aria-label", `rename ${word}`);
        setAttribute(remove, "aria-label", `remove ${word}`);
        remove.disabled = words.length === 1;
        if (row) {
          setText(weight, format(row[i]));
          setHeat(li, row[i]);
          li.classList.toggle("query", i === widget.query);
        }
      });
      setText(
        caption,
        weights ? `How much “${words[widget.query]}” attends to each word:` : "Words:",
      );
    },
  };
}
