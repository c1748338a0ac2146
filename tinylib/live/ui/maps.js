// One head's weights as a table, with words on both axes.

import { topK } from "../page/search.js";
import { results, scroller } from "./boxes.js";
import { AS_IS, h, setAttribute, setHeat, setText } from "./dom.js";
import { explainable, rove } from "./explain.js";
import { shaded } from "./look.js";
import { format, times } from "./numbers.js";
import { fillList } from "./sentences.js";

export const LEAST = 0.005; // what is less reads 0.00, and is left out

/**
 * The weights of words on words; it scrolls sideways, and is called `label`. `pick(t)` chooses a
 * row by its word, if one can be chosen; `key` names what is outlined, if anything is.
 * `explain(t, s)` returns the explanation of an entry, as rules of explain.js do; then the view has
 * `ui.explanation()`.
 */
export function wordMap({
  label,
  output = "",
  lang = "",
  key = "",
  pick = undefined,
  explain = null,
}) {
  const [head, body, caption] = [h("tr", h("td")), h("tbody"), h("caption")];
  const parts = [caption, h("thead", head), body];
  const table = h("table.heat.weight.word-map", { "data-output": output }, ...parts);
  const box = { tabindex: "0", role: "group", "aria-label": `${label}; it scrolls sideways` };
  const keyLine = h("p.key", h("span.gold", "0.9"), `outlined: ${key}`);
  const choose = (t) => ({ click: () => pick(t), focus: () => pick(t) });
  const line = (columns) => (t) => {
    const name = h(
      pick ? "button" : "div",
      pick ? choose(t) : {},
      h("span.sign"),
      h("span", { lang }),
    );
    const cells = times(columns, () => h("td", h("span")));
    if (explain) cells.forEach((cell, s) => explainable(null, cell, () => explain(t, s)));
    return h("tr", AS_IS, h("th", { scope: "row" }, name), ...cells);
  };
  let columns = 0;
  const reach = explain ? rove(table) : () => {};
  return {
    element: results("column mapped", scroller(box, table), keyLine),
    /**
     * Show rows of { word, shares } under the words `across`; the `chosen` one shades them. In a
     * row may stand `from`, which places are outlined, and `seen`, how many are not out of reach.
     */
    fill({ title, across, rows, chosen = -1 }) {
      setText(caption, title);
      keyLine.hidden = !rows.some(({ from }) => from?.includes(1));
      if (columns !== across.length) {
        columns = across.length;
        const long = across.map(() => h("th.long", { ...AS_IS, scope: "col" }, h("span")));
        head.replaceChildren(head.firstChild, ...long);
        body.replaceChildren();
      }
      across.forEach((word, s) => {
        setText(head.children[s + 1].firstChild, word);
        setHeat(head.children[s + 1], rows[chosen]?.shares[s] ?? 0);
      });
      fillList(body, rows, line(columns), (tr, { word, shares, from, seen = columns }, t) => {
        const [{ firstChild: name }, ...cells] = tr.children;
        const right = from?.[topK(shares, 1)[0]] === 1;
        const sign = right ? "✓" : from?.includes(1) ? "✗" : "";
        setText(name.firstChild, sign);
        setAttribute(name.firstChild, "class", sign === "✗" ? "sign astray" : "sign");
        setText(name.lastChild, word);
        if (pick) setAttribute(name, "aria-pressed", String(t === chosen));
        setAttribute(tr, "class", t === chosen ? "query" : "");
        cells.forEach((cell, s) => {
          const [value, kind] = [shares[s], s >= seen ? "never" : from?.[s] ? "gold" : ""];
          setAttribute(cell, "class", kind);
          if (cell.shown === value) return;
          cell.shown = value;
          setText(cell.firstChild, value < LEAST ? "" : format(value));
          setAttribute(cell, "data-value", String(value));
          setHeat(cell, value);
        });
      });
      reach();
    },
    /** The entries of a row, to be lit. */
    cellsOf: (t) => [...(body.rows[t]?.cells ?? [])].slice(1),
    /** Bring an entry into sight. */
    show(t, s) {
      body.rows[t].children[1 + s].scrollIntoView({ block: "nearest", inline: "nearest" });
    },
  };
}
wordMap.style = `
.mapped { width: min-content; min-width: min(15rem, 100%); max-width: 100%; }
.mapped .scroll { scroll-padding-left: 6.875rem; }
.word-map caption:empty { display: none; }
.word-map td span { width: 1.9375rem; }
.word-map tbody td { position: relative; letter-spacing: -.04em; }
.word-map .gold::after, .key .gold::after { content: ""; position: absolute; inset: -1px;
  outline: 1px solid var(--ground); border: 3px double var(--text); border-radius: 3px;
  pointer-events: none; }
.word-map tbody th, .word-map thead td { position: sticky; left: 0; z-index: 1;
  background: var(--ground); }
.word-map tbody th { max-width: 8.125rem; padding: 0; }
.word-map tbody th > :is(button, div) { display: flex; align-items: center; gap: 8px;
  max-width: 8.125rem; height: 1.75rem; min-height: 0; padding: 0 7px 0 0; color: var(--text);
  font-size: var(--size-note); }
.word-map th .sign { min-width: .75rem; font-size: var(--size-small); color: var(--soft); }
.word-map tbody .query th > button { color: var(--accent); }
.word-map .sign:empty { display: none; }
.word-map .sign + span { margin-left: auto; }
.word-map .sign.astray { color: var(--text); font-weight: 700; }
.word-map thead .long { padding: 4px 0; border-radius: 4px 4px 0 0; font-size: var(--size-note);
  ${shaded("weight")} }
.word-map thead .long span { max-height: 6rem; }
.key { margin: 4px 0 0; font-size: var(--size-note); color: var(--soft); display: flex; gap: 8px;
  align-items: center; }
.key .gold { position: relative; width: 1.9375rem; line-height: 1.25rem; text-align: center;
  font-size: var(--size-small); --tl-heat: .9; ${shaded("weight")} }
@container widget (min-width: 53.75rem) { /* so that all of it is seen at once */
  .word-map td span { height: 1.5rem; line-height: 1.5rem; }
  .word-map tbody th > :is(button, div) { height: 1.5rem; min-height: 1.5rem; }
}
@media (max-width: 37.5rem) {
  .word-map tbody th > :is(button, div) { gap: 2px; padding-right: 5px; }
}
`;
