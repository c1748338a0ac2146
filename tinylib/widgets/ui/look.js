// How pictures look: their inks, and the sizes of what is written in them. They stand here alone.

/** As --above and --under: numbers above 0, and below it. */
export const INK = { above: [47, 134, 216], under: [217, 138, 47] };

/** Of four heads, or the questions that they answer, to tell them apart. */
export const HEAD_INKS = [INK.above, [18, 160, 138], [207, 81, 159], [132, 101, 224]];

export const LOOK = `
:host {
  --above: rgb(${INK.above.join(" ")}); --under: rgb(${INK.under.join(" ")});
  --pale-above: #7db4e6; --pale-under: #eeb873;
  --size-tick: 12px; --size-note: 12.5px; --size-name: 13.5px; /* in pictures */
}
canvas { display: block; width: 100%; height: 100%; image-rendering: pixelated; }
.label { font-size: 13.5px; font-weight: 600; }
.soft { color: var(--soft); }
.waiting { opacity: .4; }
.block { min-width: 0; }
.block h3 { margin: 0 0 6px; font-size: 14px; font-weight: 650; }
`;
