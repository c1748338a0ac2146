// What verdicts and forms are made of.

/** An element with these properties and children.
 * @param {string} tag @param {Record<string, any>} properties
 * @param {(Node | string)[]} children */
export function el(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const MARKED = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g;

/** The Markdown of a verdict, which has no more than `code`, **strong** and *emphasised* words.
 * @param {string} text @returns {(Node | string)[]} */
export function words(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(MARKED)) {
    const [whole, code, strong, emphasised] = found;
    parts.push(text.slice(at, found.index));
    if (code) parts.push(el("code", { textContent: code }));
    else if (strong) parts.push(el("strong", { textContent: strong }));
    else parts.push(el("em", { textContent: emphasised }));
    at = found.index + whole.length;
  }
  return [...parts, text.slice(at)];
}

/** Python that a narrow screen breaks after a dot, a comma, a bracket or an operator, and not
 * within a word.
 * @param {string} text @returns {(Node | string)[]} */
export function code(text) {
  const parts = text.split(/(?<=[.,([{*/+=@-])(?=[^\s.,)*=])/);
  return parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

/** What a check says, as notebooks show it: words, and an example in numbers.
 * @param {{ kind: string, message: string, example?: string }} verdict @param {Node[]} more */
export function verdictOf({ kind, message, example }, ...more) {
  const said = el("div", { className: `verdict ${kind}` });
  for (const text of message.split("\n\n")) said.append(el("p", {}, ...words(text)));
  if (example) said.append(el("pre", { textContent: example, tabIndex: 0 }));
  said.append(...more);
  return said;
}

/** A line that a screen reader reads when it changes; it is there before it says anything. */
export function statusLine() {
  return el("div", { className: "answer-said", role: "status" });
}

/** The same words said twice are news, too: the line is emptied first.
 * @param {HTMLElement} line @param {(Node | string)[]} what */
export function announce(line, ...what) {
  line.replaceChildren();
  line.classList.remove("old");
  requestAnimationFrame(() => line.replaceChildren(...what));
}
