// What views are built with: elements, and text and attributes that are set where they change.

/** Whether a text has letters that are read from right to left, as Hebrew's and Arabic's are. */
export const hasLeftward = (text) =>
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(text);

/**
 * A text as it is shown: no line ends between a number and its unit, and words in quotes that are
 * read from right to left do not turn round what stands beside them (U+2068 and U+2069 do that).
 */
function unbroken(text) {
  const whole = `${text}`.replace(/(\d) (?=(?:%|ms|MB)(?!\w))/g, "$1\u00a0");
  if (!hasLeftward(whole)) return whole;
  return whole.replace(/“([^“”]+)”/g, (quote, words) =>
    hasLeftward(words) ? `“\u2068${words}\u2069”` : quote,
  );
}

/**
 * A word or a text of the reader's or a model's is read in the direction of its own letters; tokens
 * of a text that does so go along with it.
 */
function setDirection(element, text) {
  if (!hasLeftward(text) || text.includes("“")) return;
  if (!element.parentElement?.closest("[dir]")) element.dir = "auto";
}

/**
 * What a browser that translates the page leaves as it is: for tokens, numbers and symbols, and for
 * what has children that are found by their places, since it puts elements around texts.
 */
export const AS_IS = { translate: "no" };
/** Attributes of a box for words that no browser should correct. */
export const AS_TYPED = { spellcheck: "false", autocomplete: "off", autocapitalize: "off" };
const SYMBOLS = new Set(["code", "sub", "sup"]);

/**
 * An element: h("td.total.wide", { title: "all of them" }, "text", child). The classes follow the
 * tag, the attributes may be left out, and functions among them become listeners.
 */
export function h(kind, ...content) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag);
  const given = content[0] && Object.getPrototypeOf(content[0]) === Object.prototype;
  const attributes = given ? content.shift() : {};
  if (classes.length) element.className = classes.join(" ");
  if (tag === "button") element.type = "button";
  if (SYMBOLS.has(tag)) element.translate = false;
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  if (tag === "textarea" || (tag === "input" && attributes.type === "text")) element.dir = "auto";
  for (const part of content) if (typeof part === "string") setDirection(element, part);
  element.append(...content.map((part) => (typeof part === "string" ? unbroken(part) : part)));
  return element;
}

/** An element of a drawing: svgPart("path", { class: "line" }, ...children). */
export function svgPart(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (tag === "text") element.setAttribute("translate", "no"); // a drawing has no room for elements
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** What `read(widget, outputs)` makes of a widget's outputs: once for all parts that show it. */
export function readOnce(read) {
  const known = new WeakMap(); // outputs as they came -> what they say
  return (widget) => {
    const came = widget.model.get("outputs");
    if (!known.has(came)) known.set(came, read(widget, widget.readOutputs()));
    return known.get(came);
  };
}

/** How many times as large as its own pixels an element is shown, as in the full window. */
export const zoomOf = (element) => element.currentCSSZoom ?? 1;

/** Where an element stands in the window, in pixels of `within`, which may be zoomed. */
export function rectangleIn(element, within = element) {
  const { x, y, width, height } = element.getBoundingClientRect();
  const zoom = zoomOf(within);
  return new DOMRect(x / zoom, y / zoom, width / zoom, height / zoom);
}

/** How long a bar is, or how far to the right a mark on it, as a share of all that there is. */
export function setLength(element, share, side = "width") {
  const length = `${(100 * share).toFixed(2)}%`;
  if (element.style[side] !== length) element.style[side] = length;
}

/** Tell the page around a widget what the reader has seen or done in it. */
export const notifyPage = ({ el }, detail = {}) =>
  el.dispatchEvent(new CustomEvent("tl:done", { bubbles: true, composed: true, detail }));

/** Whether a key, or what is typed, is still an input method's: Safari says so by the code. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Set text or an attribute only where it changes: what is not touched is not laid out again. */
export function setText(element, content) {
  const text = unbroken(content);
  setDirection(element, text);
  const { firstChild: node, lastChild } = element;
  if (node?.nodeType === Node.TEXT_NODE && node === lastChild) {
    // cheaper than a new text node
    if (node.data !== text) node.data = text;
  } else if (element.textContent !== text) {
    element.textContent = text;
  }
}
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) === value) return;
  element.setAttribute(name, value);
  if (name === "data-value") element.setAttribute("translate", "no");
}
try {
  // a property that children do not inherit is cheaper to change
  CSS.registerProperty({
    name: "--tl-heat",
    syntax: "<number>",
    inherits: false,
    initialValue: "0",
  });
} catch {
  /* registered by another widget of the page, or not known to this browser */
}
export function setHeat(element, share) {
  const heat = share.toFixed(3);
  if (element.style.getPropertyValue("--tl-heat") !== heat)
    element.style.setProperty("--tl-heat", heat);
}

/** "W_q" as W with q below the line; all other text as it is. */
export function mathText(text) {
  return text
    .split(/\b(\w_\w)\b/)
    .flatMap((bit) =>
      /^\w_\w$/.test(bit) ? [h("i", AS_IS, bit[0]), h("sub", bit[2])] : [unbroken(bit)],
    );
}

/** Set text in which a power is written e^{2}, and a matrix W_q, where it changes. */
export function typeset(element, text) {
  if (element.typeset === text) return;
  element.typeset = text;
  element.replaceChildren(
    ...text.split(/\^\{([^}]*)\}/).flatMap((bit, i) => (i % 2 ? h("sup", bit) : mathText(bit))),
  );
}
