// Every exercise can be answered where it stands. Its forms are made when it comes near the screen.

import { keep, load } from "../store.js";
import { bugForm, bugsOf } from "./bug.js";
import { gapsForm } from "./gaps.js";
import { numbersForm } from "./numbers.js";
import { announce, el, statusLine } from "./words.js";

const NEAR = "800px";
const TRIES = 2; // an exercise that was assembled in more counts half: it may have been guessed

/** @type {Map<string, Promise<Record<string, import("./gaps.js").Table>>>} */
const tables = new Map();

/** The table of a chapter's exercises, asked for once; again if that failed.
 * @param {string} stem */
function tableOf(stem) {
  if (!tables.has(stem)) {
    const asked = fetch(new URL(`tables/${stem}.json`, import.meta.url)).then((answer) => {
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return answer.json();
    });
    asked.catch(() => tables.delete(stem));
    tables.set(stem, asked);
  }
  return tables.get(stem);
}

/** @param {HTMLElement} place */
async function offer(place) {
  const name = place.dataset.exercise;
  const [stem, slug] = name.split("/");
  place.replaceChildren(el("p", { className: "soft", textContent: "The exercise is on its way." }));
  try {
    const table = (await tableOf(stem))[slug];
    place.replaceChildren(...formsOf(place, name, table));
  } catch {
    const retry = el("button", { type: "button", textContent: "Try again" });
    retry.onclick = () => offer(place);
    const what = "The exercise could not be fetched. Is there a connection? ";
    place.replaceChildren(el("p", { role: "status" }, what, retry));
  }
}

/** A choice of forms, the form that is chosen, and what is said of the answer.
 * @param {HTMLElement} place @param {string} name
 * @param {import("./gaps.js").Table} table */
function formsOf(place, name, table) {
  const said = statusLine();
  const kept = () => load().exercises?.[name] ?? {};
  const keepPart = (part) =>
    keep((state) => Object.assign(((state.exercises ??= {})[name] ??= {}), part));
  /** @type {import("./gaps.js").Exercise} */
  const exercise = {
    said,
    kept,
    keep: keepPart,
    tried(right) {
      const known = kept();
      if (known.solved === "whole") return known.tries ?? 1;
      const tries = (known.tries ?? 0) + 1;
      const solved = tries <= TRIES ? "whole" : "half";
      keepPart({ tries, ...(right && { solved }) });
      return tries;
    },
    next() {
      const write = el("button", {
        type: "button",
        className: "link",
        onclick: () => show("write", true),
      });
      write.textContent = "Now write it in Python.";
      return [write];
    },
  };
  const insight = table.messages.find((message) => message[0] === "r").slice(1);
  const forms = {
    gaps: { title: "Fill gaps", make: () => gapsForm(table, exercise) },
    numbers: {
      title: "Write numbers",
      make: () => numbersForm(table.numbers, insight, exercise),
    },
    bug: {
      title: "Find the bug",
      make: () => bugForm(place, name, table, exercise),
    },
    test: {
      title: "Write a test",
      make: async () => (await import("./write.js")).writeForm(place, name, exercise, table.test),
    },
    write: {
      title: "Write Python",
      make: async () => (await import("./write.js")).writeForm(place, name, exercise),
    },
  };
  if (!table.numbers) delete forms.numbers;
  if (!bugsOf(table).length) delete forms.bug;
  if (!table.test) delete forms.test;
  const { only } = place.dataset; // a page may ask for one form alone
  if (only) for (const form in forms) if (form !== only) delete forms[form];
  const panels = {};
  const tabs = Object.entries(forms).map(([form, { title }]) => {
    const tab = el("button", { type: "button", textContent: title, onclick: () => show(form) });
    tab.dataset.form = form;
    return tab;
  });
  const solved = el("span", { className: "solved" });
  const mark = () => {
    const how = { whole: "✓ exercise solved", half: "✓ assembled, in several tries" };
    solved.textContent = how[kept().solved] ?? "";
  };
  document.addEventListener("kept", mark);
  addEventListener("storage", mark);
  mark();
  const panel = el("div");
  let shown = false; // by the page: only what the reader chooses is kept
  async function show(form, write = false) {
    if (shown) keepPart({ form });
    shown = true;
    for (const tab of tabs) tab.ariaPressed = String(tab.dataset.form === form);
    said.replaceChildren();
    try {
      panels[form] ??= await forms[form].make();
      panel.replaceChildren(panels[form]);
      if (write) panel.querySelector("textarea").focus();
    } catch {
      announce(said, "This could not be fetched. Is there a connection? Press again.");
    }
  }
  const first = only ?? (table.pieces.length > 1 || !table.numbers ? "gaps" : "numbers");
  show(kept().form in forms ? kept().form : first);
  return [
    el(
      "div",
      { className: "answer-forms", role: "group", ariaLabel: "How to answer" },
      ...tabs,
      solved,
    ),
    panel,
    said,
  ];
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      offer(/** @type {HTMLElement} */ (target));
    }
  },
  { rootMargin: NEAR },
);
for (const place of document.querySelectorAll("[data-exercise]")) near.observe(place);
for (const place of /** @type {NodeListOf<HTMLElement>} */ (
  document.querySelectorAll("[data-piece]")
)) {
  import("./own_file.js").then(({ ownFile }) => ownFile(place));
}
