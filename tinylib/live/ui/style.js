// How the frame of a widget and its common parts look.

import { ANSWER } from "./answer.js";
import { CONTROLS } from "./controls.js";
import { KEYS } from "./keys.js";
import { KNOBS } from "./knobs.js";
import { LOOK, shaded } from "./look.js";
import { STAGE } from "./stage.js";

/** A screen of the tour has one control, and its heading stands in the page. */
const TOUR = `
.tour { border: 0; padding: 0; font-size: var(--size-touch); }
.tour > .title-row:has(.again[hidden]) { position: absolute; right: 0; bottom: 100%; }
.tour :is(.title, .where, .state:has(.turning[hidden]), .acts > :not(.again)) { display: none; }
.tour .state summary { min-height: 0; }
.tour > .slot.slot { position: static; } /* it would lie over what it speaks of */
.tour .paper { height: 12rem; font-size: var(--size-large); }
.tour .paper .t { background: none; }
.tour textarea.line.line { font-size: var(--size-large); }
.tour .page-of.page-of { padding-block: 10px 0; height: calc(7lh + 12px);
  font-size: var(--size-text); }
@container widget (max-width: 37.5rem) {
  .tour .paper { height: 10rem; }
  .tour .row > .stage .paper { height: 4.625rem; }
  .tour .page-of.page-of { height: calc(7lh + 10px); font-size: var(--size-note); }
}
`;

/**
 * What shows results has an attribute data-output, and is greyed while it is out of date. If it
 * shows an output number by number, the attribute names it, and the elements in it, or it itself,
 * hold the numbers, as the property `values` or the attribute data-value: then the tests compare
 * them with torch's, all entries of the output in its order. Else the attribute is empty.
 */
export const RESULTS = "[data-output]";

export const STYLE = `${LOOK}
:host { --hatch: repeating-linear-gradient(135deg, transparent 0 4px, var(--line) 4px 5px); display:
  block; margin: 1.5rem 0; color: var(--text); font:
  var(--size-text)/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.spoken-only { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap; }
.frame { border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px;
  background: var(--ground); display: flex; flex-direction: column; gap: 14px; }
.title-row { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; }
.title { margin: 0; font-weight: 650; }
.acts { display: flex; flex-wrap: wrap; gap: 6px; margin-left: auto; }
.row { display: flex; flex-wrap: wrap; gap: 14px 18px; align-items: flex-start; }
.row > .row, .row > .column, .row > .note { flex: 1 1 13.125rem; min-width: 0; }
.row > .note { align-self: center; }
.row > .row { flex-basis: 18.125rem; gap: 14px 16px; }
.column { display: flex; flex-direction: column; gap: 4px; }
@container widget (min-width: 53.75rem) { /* a journey begins at the title's end */
  .frame { gap: 10px; }
  .frame:has(.journey:not(.under-way)) > .title-row { padding-right: 10rem; }
  .frame .journey.journey:not(.under-way) { top: 12px; z-index: 2; }
}
.sides { display: grid; gap: inherit; column-gap: 28px; min-width: 0; }
.sides > * { min-width: 0; }
.side { display: flex; flex-direction: column; gap: inherit; }
@container widget (min-width: 53.75rem) { /* controls at the left, results at the right */
  .sides { grid-template-columns: minmax(0, var(--left, 1fr)) minmax(0, var(--right, 1.4fr));
    align-items: start; }
}
sup { font-size: .75em; line-height: 0; white-space: nowrap; }
.note { margin: 0; font-size: var(--size-note); line-height: 1.6; max-width: 62ch;
  font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; max-width: 100%; }
.scroll.more { mask-image: linear-gradient(to left, transparent, var(--text) 44px); }
button { font: inherit; font-size: var(--size-note); min-height: 1.75rem; min-width: 1.75rem;
  padding: 2px 10px; cursor: pointer; color: var(--text); background: transparent; border: 1px solid
  var(--line); border-radius: 6px; }
button:hover:not(:disabled) { border-color: var(--accent); }
:is(button:disabled, .main[aria-disabled=true]) { opacity: .45; cursor: default; }
/* The one act that a widget is for: what it writes, trains or plays; else to follow a word. */
button:where(.main, .play, .frame:not(:has(.main, .play)) .journey:not(.under-way) .start) {
  font-weight: 650; color: var(--ground); background: var(--accent);
  border-color: var(--accent); }
button:where(.main) { min-height: 2rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
input[type=text] { font: inherit; color: var(--text); background: transparent; border: 1px solid
  transparent; border-radius: 5px; min-height: 1.75rem; padding: 2px 4px; }
input[type=text]:hover { border-color: var(--line); }
[aria-invalid=true] { outline: 2px solid var(--error) !important; }

.sentence { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.gaze { flex-basis: 100%; color: var(--soft); font-size: var(--size-note); }
.words { display: contents; list-style: none; }
.word { display: grid; grid-template-columns: auto auto auto; border: 1px solid var(--line);
  border-radius: 8px; ${shaded("weight")} }
.word.query { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.word input, .pick-word { color: inherit; padding: 2px 3px 2px 8px; font-size: var(--size-text);
  font-weight: 550; field-sizing: content; min-width: 1.875rem; max-width: 60vw;
  min-height: 1.75rem; }
.pick-word { border: 0; text-align: left; }
.pick-word span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.word .weight { grid-row: 2; padding: 0 0 3px 9px; font-size: var(--size-small);
  font-variant-numeric: tabular-nums; }
.word .weight:empty { display: none; }
.word > :is(.pick-word, input) { grid-area: 1 / 1; }
.word > button:not(.pick-word) { grid-area: 1 / 2; border: 0; padding: 0; min-width: 1.625rem;
  min-height: 1.5rem; color: inherit; }
.word > .rename:not(.weight:empty + *) { grid-area: 2 / 2; }
.word > .weight:empty ~ .remove { grid-area: 1 / 3; }
.rename svg { display: block; width: .9375rem; height: .9375rem; margin: auto; fill: none;
  stroke: currentColor; stroke-width: 1.3; stroke-linejoin: round; }

table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: var(--size-note); font-weight: 600; padding-bottom: 4px;
  white-space: nowrap; }
th { font-weight: 400; font-size: var(--size-small); color: var(--soft); text-align: right; padding:
  0 5px 0 0; max-width: 4.5rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
thead th { text-align: center; padding: 0 0 2px; }
.matrix td { padding: 1px; }
.matrix { --box: 2.6875rem; }
.matrix input { width: var(--box); text-align: right; border-color: var(--line);
  font-size: var(--size-note);
  }
@supports (field-sizing: content) { /* a number that is longer has room, too */
  .matrix input {
    width: auto; min-width: max(var(--box), 100%); max-width: 6.875rem; field-sizing: content;
  }
}
.matrix input.chosen { border-color: var(--accent); }
.heat td span { display: block; width: 2.25rem; height: 1.75rem; line-height: 1.75rem; contain:
  strict; white-space: nowrap; }
.heat.signed td span { width: 2.6875rem; }
.heat td { text-align: center; font-size: var(--size-small); padding: 0; border: 1px solid
  var(--ground); ${shaded("weight")} }
.heat.signed td { ${shaded("positive")} }
.heat.signed td.below { ${shaded("negative")} }
.heat tbody td.never { color: var(--soft); background: var(--hatch); }
.heat thead td, .heat thead th { background: none; border: 0; min-width: 0; height: auto;
  vertical-align: bottom; }
.heat thead th { max-width: none; }
.heat .long span { display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg);
  max-height: 4.75rem; overflow: hidden; text-overflow: ellipsis; padding: 0 0 0 2px;
  line-height: 1.1;
    }
.heat tbody th { padding: 0; }
.heat tbody th button { border: 0; padding: 0 6px 0 2px; max-width: 4.5rem; overflow: hidden;
  text-overflow: ellipsis; font-size: var(--size-small); color: var(--soft); text-align: right;
    width: 100%; }
.heat tr.query td { box-shadow: inset 0 1.5px var(--accent), inset 0 -1.5px var(--accent); }
.heat tr.query th button { color: var(--accent); font-weight: 650; }

${KNOBS}${CONTROLS}${KEYS}${STAGE}${ANSWER}${TOUR}
/* The last lines of a frame: a sum that is written out, and over it what is wrong. While they say
   something they stay in the window with the frame. */
.slot { display: grid; }
.slot > * { grid-area: 1 / 1; }
.slot:not(:has(> :is(.explained, .problem:not(:empty)))) { display: none; }
.frame:not(.followed) > .slot:has(> :is(.explained:not(.idle), .problem:not(:empty))) {
  position: sticky; bottom: 8px; z-index: 1; }
.problem { margin: 0; font-size: var(--size-note);
  padding: 6px 10px; border-left: 3px solid var(--error);
  background: color-mix(in oklab, var(--ground), var(--error) 14%); }
.problem[data-kind=hint] { border-color: var(--accent);
  background: color-mix(in oklab, var(--ground), var(--accent) 10%); }
.problem:empty { display: none; }
.problem:not(:empty, [data-kind=hint])::before { content: "⚠ "; content: "⚠ " / ""; }
.stale ${RESULTS}, [inert] { opacity: .4; }
.scroll:has(> [inert]), [inert] .scroll { overflow: hidden; } /* no way in, so no way to scroll */
.stale ${RESULTS} ${RESULTS}, [inert] [inert] { opacity: 1; } /* once is enough */
.turning { width: .8125rem; height: .8125rem; flex: none; border: 2px solid var(--line);
  border-top-color: var(--accent); border-radius: 50%; animation: turn 1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .turning { animation: none; } }
/* Beside the title: one line, or two of what is loaded; the row keeps its height. */
.state { position: relative; flex: 1 1 6rem; min-width: 0; color: var(--soft);
  font-size: var(--size-small); line-height: 1.15; }
.state summary { display: flex; gap: 6px; align-items: center; width: fit-content;
  min-height: 1.75rem; cursor: help; }
.where { max-height: 2lh; overflow: hidden; }
.state:has(.where:empty) summary { display: none; }
.where.opens { text-decoration: underline dotted; text-underline-offset: 3px; }
.state progress { position: absolute; inset: auto 0 0; height: 3px; }
.origin { margin: 0; color: var(--soft); font-size: var(--size-note); }
.title-row:not(:has(.state[open])) ~ .origin { display: none; }
@media (max-width: 37.5rem) {
  .row > .row > .column { order: -1; }
  .matrix { --box: 2.4375rem; }
  .title { flex: 1 0 100%; }
  .acts { margin: 0; }
  .state { order: 1; }
  .staged .title-row { position: static; }
}
@media (pointer: coarse) {
  input[type=text] { font-size: var(--size-touch) !important; } /* smaller, and iOS zooms */
  .matrix { --box: 3.25rem; }
  :is(button:not(.word-map *), select, summary, .pick, .candidate,
    input:is([type=text], [type=range]), label:has(> :is([type=radio], [type=checkbox]))) {
    min-height: 2.75rem !important; align-content: center; }
  .acts > button { padding-inline: 6px; }
  .acts > .icon { min-width: 2.25rem; padding: 0; }
  .icon svg { margin: auto; }
  .word > * { grid-row: 1 / span 2 !important; } /* a share stands in the word's own button */
  .word > .remove { grid-column: 3 !important; }
  .word > .weight { grid-column: 1; align-self: end; pointer-events: none; }
  .word:has(> .weight:not(:empty)) > :is(.pick-word, input) { padding-bottom: 1.1rem; }
}
.foot { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; }
progress { flex: 0 0 100%; width: 100%; height: 8px; accent-color: var(--accent); }
.amount { color: var(--soft); font-variant-numeric: tabular-nums; }
.link { width: 100%; border-color: var(--line) !important; }
@media (max-width: 18rem) { /* very large letters: what cannot be narrower scrolls in the frame */
  .frame { overflow-x: auto; }
}
@media (forced-colors: active) { /* the system's colours, but for shades and bars that are data */
  :host { --ground: Canvas; --text: CanvasText; --soft: CanvasText; --line: ButtonBorder;
    --accent: Highlight; --error: CanvasText; }
  :is([style*="--tl-heat"], [data-value], .bar, .strip, .track), :is(.ramp, .ramp-key i, .hatched,
    .never), :is(.bar, .strip, .track) *, :is(b, i, span, u):empty, :is(.spot, .switch,
    .switch::after) { forced-color-adjust: none; }
  :is(.bar, .strip, .track, .ramp-key i) { outline: 1px solid ButtonBorder; }
  button:not([style*="--tl-heat"], :disabled) { background: ButtonFace !important;
    color: ButtonText !important; }
  .pick.chosen { forced-color-adjust: none; background: SelectedItem; color: SelectedItemText; }
  .pick.chosen .about { color: inherit; }
  :is([aria-pressed=true], [aria-selected=true], .chosen:not(.pick), .query:not([hidden]), .taken,
    .at:not(p)) { outline: 2px solid Highlight; outline-offset: -2px; }
  :is(button, input, select, textarea):disabled { color: GrayText; border-color: GrayText;
    opacity: 1; }
  .problem { border: 2px solid CanvasText; }
}
@media print { /* what only a reader at a screen can use goes; buttons that name a row stay */
  :host { break-inside: avoid; }
  * { print-color-adjust: exact; }
  .foot, .state, .origin, .problem, .link, .remove, .rename, input[type=range],
  button:not(li button, th button, td button) { display: none !important; }
}
`;
