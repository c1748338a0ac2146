// A piece of the museum: what a wrong function gives, its line to find, and the tests that find it.

import { results, scroller } from "../../live/ui/boxes.js";
import { AS_IS, h, notifyPage, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { numberBox } from "../../live/ui/knobs.js";
import { entryText, format, times } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";

/** A table of elements, in rows, which may have names. */
const grid = (kind, name, [rows, columns], attributes, cell, names = []) => {
  const head = (i) => names.slice(i, i + 1).map((text) => h("th", { scope: "row" }, text));
  const row = (i) => h("tr", ...head(i), ...times(columns, (j) => cell(i, j)));
  return h(kind, attributes, h("caption", name), h("tbody", AS_IS, ...times(rows, row)));
};

/** The function's arguments, each a table of numbers to change. */
function argumentTables(widget) {
  let end = 0; // of the numbers that are taken
  const boxes = [];
  const tables = widget.spec.facts.given.map(({ name, whole, shape, ends: limits }) => {
    const [start, [rows, columns]] = [end, shape];
    end += rows * columns;
    return grid("table.matrix", name, shape, {}, (i, j) => {
      const entry = start + i * columns + j;
      const place = rows > 1 ? ` of row ${i + 1}, ${j + 1}` : columns > 1 ? ` ${j + 1}` : "";
      const box = numberBox(widget, "numbers", {
        entry,
        limits,
        step: whole ? 1 : 0.1,
        form: whole ? String : entryText,
        put: (next, typed) => {
          next.numbers[entry] = whole ? Math.round(typed) : typed;
        },
        label: `${name}${place}`,
      });
      boxes.push(box);
      return h("td", box);
    });
  });
  return {
    element: h("div.row.arguments", ...tables.map((table) => scroller({}, table))),
    shows: "inputs",
    update: () => boxes.forEach((box) => box.follow()),
  };
}

/** What a form gives, shaded as what the other one gives. */
function resultTable(widget, output, caption) {
  const { shape, counts, rows } = widget.spec.facts;
  const count = shape[0] * shape[1];
  const cell = () => h("td", h("span"));
  const table = grid("table.heat.signed", caption, shape, { "data-output": output }, cell, rows);
  const cells = [...table.querySelectorAll("td")];
  const named = { role: "group", "aria-label": `${caption}; it scrolls sideways` };
  const box = shape[1] > 5 ? { tabindex: "0", ...named } : {}; // wider than a phone
  const largest = (data) =>
    data
      .slice(0, count)
      .reduce((most, v) => (Number.isFinite(v) ? Math.max(most, Math.abs(v)) : most), 0);
  return {
    element: scroller(box, table),
    shows: "outputs",
    update(_inputs, outputs) {
      const { data } = outputs[output];
      const most = Math.max(largest(outputs.wrong.data), largest(outputs.right.data)) || 1;
      /** @type {any} */ (table).values = data;
      cells.forEach((cell, i) => {
        setText(cell.firstChild, counts ? String(data[i]) : format(data[i]));
        setAttribute(cell, "class", data[i] < 0 ? "below" : "above");
        setHeat(cell, Number.isFinite(data[i]) ? Math.abs(data[i]) / most : 0);
      });
    },
  };
}

/** What it gives and, once the reader asks for it or has found the line, what it should give. */
function comparison(widget, game) {
  const gives = resultTable(widget, "wrong", "what it gives");
  const should = resultTable(widget, "right", "what it should give");
  const ask = h(
    "button",
    { click: () => game.change({ asked: true }) },
    "Show what it should give",
  );
  game.follow(({ asked, found }) => {
    ask.hidden = asked || found;
    should.element.hidden = !ask.hidden;
  });
  return {
    element: results("row compared", gives.element, h("div", should.element, ask)),
    shows: "outputs",
    update(...now) {
      gives.update(...now);
      should.update(...now);
    },
  };
}

/** The function's lines, of which the reader presses the wrong one. */
function lineChoice(widget, game) {
  const { lines, line } = widget.spec.facts;
  const press = (i) => {
    const { found, lines: pressed } = game.state;
    if (i === line && !found) notifyPage(widget, { what: "found" });
    game.change({ lines: [...pressed, i], found: found || i === line });
  };
  const buttons = lines.map((text, i) => h("button", { click: () => press(i) }, h("code", text)));
  const outcome = h("p.note", { role: "status" });
  const show = h("button", { click: () => game.change({ found: true }) }, "Show the line");
  game.follow(({ lines: pressed, found }) => {
    const last = pressed.at(-1);
    buttons.forEach((button, i) => {
      const known = found && i === line;
      setAttribute(button, "aria-pressed", String(known || pressed.includes(i)));
      button.classList.toggle("faulty", known);
    });
    setText(
      outcome,
      found
        ? "This is the line."
        : last === undefined
          ? ""
          : `Line ${last + 1} is the same in the correct form. Which other line could it be?`,
    );
    show.hidden = found;
  });
  const named = { role: "group", "aria-label": "lines of the function" };
  return [
    h("p.question", "Which line is wrong?"),
    h("div.lines-of-code", named, ...buttons),
    outcome,
    h("div.foot", show),
  ];
}

/** The line as it should be, its cause, its fix and where it was found, once a test finds it. */
function answer(widget, game) {
  const { tests, right, cause, fix, source } = widget.spec.facts;
  const [place, link, date, story] = source;
  const note = (name, ...content) => h("p.note", h("b", name), ...content);
  const element = h(
    "div.answer",
    note("The line should be:"),
    h("code.fixed", right.trim()),
    note("Cause: ", cause),
    note("Fix: ", fix),
    note("Found in ", h("a", { href: link }, place), `, ${date}: ${story}`),
  );
  game.follow(({ tests: pressed, found }) => {
    element.hidden = !found || !pressed.some((i) => tests[i]?.finds);
  });
  return element;
}

/** Three tests; each, once pressed, says what it found on both forms. */
function testChoice(widget, game) {
  const rows = widget.spec.facts.tests.map(({ code, outcome }, i) => {
    const run = () => game.change({ tests: [...game.state.tests, i] });
    const button = h("button", { click: run }, h("code", code));
    const line = h("p.note", { role: "status" });
    return { button, line, outcome };
  });
  const element = h(
    "div.column",
    h("p.question", "Which test would have found it? Press one: each was run on both forms."),
    ...rows.map(({ button, line }) => h("div.test", button, line)),
  );
  game.follow(({ tests: pressed, found }) => {
    element.hidden = !found;
    rows.forEach(({ button, line, outcome }, i) => {
      setAttribute(button, "aria-pressed", String(pressed.includes(i)));
      setText(line, pressed.includes(i) ? outcome : "");
    });
  });
  return element;
}

const AT_FIRST = { asked: false, found: false, lines: [], tests: [] };

/** What the reader has asked for and pressed, kept in a link; `follow` shows each change of it. */
function progressOf() {
  const followers = [];
  const game = {
    state: AT_FIRST,
    follow(show) {
      followers.push(show);
      show(game.state);
    },
    change(news) {
      game.state = { ...game.state, ...news };
      followers.forEach((show) => show(game.state));
    },
  };
  return game;
}

/** All of a piece. */
function exhibit(widget) {
  const game = progressOf();
  const parts = [argumentTables(widget), comparison(widget, game)];
  return {
    element: h(
      "div.exhibit",
      h("p.note", widget.spec.facts.symptom),
      h("div.row.tables", ...parts.map(({ element }) => element)),
      h("div.sides", h("div.column", ...lineChoice(widget, game)), testChoice(widget, game)),
      answer(widget, game),
    ),
    saved: () => ({ game: game.state }),
    restore({ game: kept }) {
      const { asked = false, found = false, lines, tests } = Object(kept);
      const places = (list) => [list].flat().filter(Number.isInteger);
      game.change({ asked, found, lines: places(lines), tests: places(tests) });
    },
    reset: () => game.change(AT_FIRST),
    update(inputs, outputs) {
      for (const part of parts) part.update(inputs, outputs);
    },
  };
}
exhibit.style = `
.exhibit { display: grid; grid-template-columns: minmax(0, 1fr); gap: 14px; }
.tables { gap: 14px 28px; }
.tables > :is(.arguments, .compared) { flex: 0 1 auto; }
.tables div { min-width: 0; max-width: 100%; }
.exhibit a { color: var(--accent); overflow-wrap: anywhere; }
.question { margin: 0; font-weight: 600; font-size: var(--size-note); }
.exhibit code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  font-size: var(--size-small); line-height: 1.5; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.lines-of-code { display: grid; border: 1px solid var(--line); border-radius: 8px;
  overflow: hidden; }
:is(.lines-of-code, .test) button { text-align: left; }
.lines-of-code button { border: 0; border-radius: 0; border-left: 3px solid transparent; }
.lines-of-code button:hover { background: color-mix(in oklab, var(--ground), var(--accent) 7%); }
.lines-of-code button[aria-pressed=true] { border-left-color: var(--line); }
.lines-of-code button.faulty { border-left-color: var(--error);
  background: color-mix(in oklab, var(--ground), var(--error) 14%); }
.lines-of-code button:focus-visible { outline-offset: -2px; }
.exhibit .fixed { display: block; padding: 4px 10px; border-left: 3px solid var(--accent);
  background: color-mix(in oklab, var(--ground), var(--accent) 10%); }
.answer { display: grid; gap: 6px; min-width: 0; }
.test { display: grid; gap: 4px; }
.test button[aria-pressed=true] { border-color: var(--accent); }
.exhibit .note:empty { display: none; }
`;

export default live("A real mistake", (ui) => [ui.use(exhibit)], { main: "[data-output=wrong]" });
