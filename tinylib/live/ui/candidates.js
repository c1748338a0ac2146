// Candidates for what comes next: each a line with its name, a bar for its share, and the share.

import { AS_IS, h, setAttribute, setLength, setText } from "./dom.js";
import { times } from "./numbers.js";

/** The list of them. */
export const candidateList = (label) => h("ol.nexts", { "aria-label": label });

/**
 * A line for a candidate: a button, a label, or no more than a div, which begins with `first`. It
 * has as many `bars`, and shares behind them, or it stands `on` its bar, where there is less room.
 */
export function candidateLine(tag, attributes, { bars = 1, on = false, lang = "", first = [] }) {
  const kind = `candidate${on ? " on-bar" : ""} ${attributes.class ?? ""}`.trim();
  const each = times(bars, (i) => ["p", "q"][i]);
  return h(
    tag,
    { ...attributes, class: kind, style: `--bars: ${bars}` },
    ...first,
    h("span.token", { ...AS_IS, lang }),
    h("span.bars", ...each.map((name) => h("i", { class: `bar ${name}` }))),
    ...each.map((name) => h("span", { ...AS_IS, class: `share ${name}` })),
  );
}

/** What a full bar stands for, so that none of these shares is more than that. */
export const scaleFor = (shares) =>
  [0.25, 0.5].find((most) => shares.every((share) => share <= most)) ?? 1;

/**
 * Fill the line: `says` are the `shares` as they read, and an `unseen` token goes by another name.
 * A full bar stands for `most`.
 */
export function fillCandidate(line, name, shares, message, unseen = false, most = 1) {
  const [token, bars, ...texts] = [...line.children].slice(-2 - shares.length);
  setText(token, name);
  setAttribute(token, "class", unseen ? "token unseen" : "token");
  shares.forEach((share, i) => {
    const bar = bars.children[i];
    setLength(bar, share / most);
    setAttribute(bar, "data-value", String(share));
    setText(texts[i], message[i]);
  });
}

candidateList.style = `
.nexts { list-style: none; margin: 0; padding: 0; display: grid; gap: 2px; }
.candidate { width: 100%; display: grid; gap: 8px; align-items: center; min-height: 1.6875rem;
  grid-template-columns: 4.5rem 1fr repeat(var(--bars), 3.5rem); padding: 1px 8px 1px 6px;
  border: 1px solid transparent; border-radius: 6px; font-variant-numeric: tabular-nums; }
.candidate:disabled { opacity: 1; }
.candidate .token { font-weight: 600; text-align: right; font-size: var(--size-note);
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.candidate .token.unseen { font-weight: 400; font-style: italic; color: var(--soft); }
.bars { display: grid; gap: 2px; border-radius: 3px;
  background: color-mix(in oklab, var(--ground), var(--line) 34%); }
.bar { height: calc((1rem - 2px * var(--bars)) / var(--bars)); border-radius: 2px; max-width: 100%;
  background: var(--bar, var(--probability)); }
.bar.p:not(:last-child) { background: color-mix(in oklab, var(--ground), var(--text) 42%); }
.candidate .share { text-align: right; font-size: var(--size-note); white-space: nowrap; }
.candidate .share.p:not(:last-child) { color: var(--soft); }
.on-bar { position: relative; isolation: isolate; display: flex; justify-content: space-between; }
.on-bar .token { font-weight: inherit; text-align: left; }
.on-bar .bars { position: absolute; z-index: -1; inset: 1px 0; background: none; }
.on-bar .bar { height: 100%;
  background: color-mix(in oklab, var(--ground), var(--bar, var(--probability)) 34%); }
`;
