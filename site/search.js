// Answers while somebody types: in a dialog over any page, and in the page search.html.

import { find, folded, nearest, prepared } from "./find.js";

const EMPTY = "Type a term, a name or a question, such as:";
const EXAMPLES =
  "what is attention, how does ChatGPT work, why divide by √d, training loss, exercises".split(
    ", ",
  );
const NOT_THERE = "What is searched could not be loaded. Is there a connection?";

const box = document.querySelector(".search-box");
const part = (selector) => /** @type {HTMLElement} */ (box.querySelector(selector));
const input = /** @type {HTMLInputElement} */ (part("input"));
const [status, more, list] = ["[role=status]", ".search-else", "#search-list"].map(part);
const [again, none, near] = ["[data-again]", "[data-none]", "[data-near]"].map(part);
const groups = [...list.children]; // the first has the best entry
const dialog = box.closest("dialog");
const source = new URL(box.getAttribute("data-search"), location.href);

let index, coming;
/** Fetched once, unless that fails. */
export function load() {
  const fetched = async () => prepared(await (await fetch(source)).json());
  coming ??= fetched().then((whole) => (index = whole));
  coming.catch(() => (coming = undefined));
  return coming;
}

/** How many words of the text begin like one of these. */
function amount(text, starts) {
  const begins = (word) => starts.some((start) => word && `${word} `.startsWith(start));
  return folded(text).split(" ").filter(begins).length;
}

const safe = (text) => text.replace(/[&<]/g, (letter) => `&#${letter.charCodeAt(0)};`);
/** As HTML, with these words marked. */
const marked = (text, starts) =>
  safe(text).replace(/(?<!&#)[\p{L}\p{N}_’'-]+/gu, (word) =>
    amount(word, starts) ? `<mark>${word}</mark>` : word,
  );

function option({ group, number, name, title, also, text, further, address }, id, typed, meant) {
  const other = group !== 0 && !amount(title, typed) && also.find((one) => amount(one, typed));
  const sentences = text.split(/(?<=[.?!]) (?=[\p{Lu}“(])/u);
  const [sentence] = sentences.sort((one, two) => amount(two, meant) - amount(one, meant));
  return `<a role="option" id="${id}" href="${new URL(`../${address}`, source)}" tabindex="-1">
    <span class="where">${number ? number + (further ? " Further" : "") : safe(name)}</span>
    <b>${marked(other ? `${title} · ${other}` : title, meant)}</b>
    <span class="said">${marked(sentence, meant)}</span></a>`;
}

function choose(chosen) {
  for (const one of list.querySelectorAll("a")) one.ariaSelected = String(one === chosen);
  input.setAttribute("aria-activedescendant", chosen?.id ?? "");
  chosen?.scrollIntoView({ block: "nearest" });
}

function show() {
  if (!index) return;
  const [text, query] = [input.value.trim(), folded(input.value)];
  const { found, typed, meant } = find(index, text);
  for (const [g, group] of groups.entries()) {
    const some = found.filter((entry) => entry.group === g - 1);
    const options = some.map((entry, i) => option(entry, `found-${g}-${i}`, typed, meant));
    group.replaceChildren(group.firstElementChild);
    group.insertAdjacentHTML("beforeend", options.join(""));
    group.toggleAttribute("hidden", some.length === 0);
  }
  const count = found.length;
  list.hidden = count === 0;
  input.ariaExpanded = String(count > 0);
  more.hidden = count > 0;
  [again.hidden, none.hidden] = [true, false];
  const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  status.textContent = query ? `Nothing was found for “${shown}”.` : EMPTY;
  if (count > 0) status.textContent = count === 1 ? "1 result" : `${count} results`;
  const others = count > 0 || query.length > 40 ? [] : nearest(index, query, query.length / 3);
  const buttons = (query ? others : EXAMPLES).map(
    (words) => `<button type="button" class="btn">${words}</button>`,
  );
  if (query) near.innerHTML = buttons.length ? `Did you mean ${buttons.join(" or ")}?` : "";
  else near.innerHTML = `${buttons.join(" ")}<br>`;
  choose(list.querySelector("a"));
}

export async function start() {
  more.hidden = true;
  if (!index) status.textContent = "What is searched is being loaded …";
  try {
    await load();
    show();
  } catch {
    status.textContent = NOT_THERE;
    [more.hidden, again.hidden, none.hidden] = [false, false, true];
  }
}

function open() {
  input.focus();
  input.select();
  start();
}

input.addEventListener("input", (event) => {
  if (!(/** @type {InputEvent} */ (event).isComposing)) show();
});
input.addEventListener("compositionend", show);
input.addEventListener("keydown", (event) => {
  const options = [...list.querySelectorAll("a")];
  const step = { ArrowDown: 1, ArrowUp: -1, Enter: 0 }[event.key];
  if (event.isComposing || step === undefined || options.length === 0) return;
  event.preventDefault();
  const at = options.findIndex((one) => one.ariaSelected === "true");
  if (step) choose(options.at((at + step) % options.length));
  else options[at].click();
});
again.addEventListener("click", open);
near.addEventListener("click", ({ target }) => {
  if (!(target instanceof HTMLButtonElement)) return;
  input.value = target.textContent;
  open();
});
dialog?.addEventListener("click", ({ target }) => {
  if (target === dialog || /** @type {Element} */ (target).closest("a, [data-close]"))
    dialog.close();
});
if (!dialog) {
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  open();
}
