// How widgets look: colours, sizes of letters and distances, as CSS variables. They come from the
// palette, which the plots read, too: no view has a colour or a size of its own.

import PALETTE from "../../lab/palette.json" with { type: "json" };

/** What has one of the hues: heads by their numbers, questions to heads by their names. */
const HUES = {
  ...Object.fromEntries(PALETTE.heads.map((hue, head) => [`h${head}`, hue])),
  ...Object.fromEntries(
    Object.entries(PALETTE.questions).map(([name, hue]) => [`question-${name}`, hue]),
  ),
};

/** Each colour by its name, for light pages and for dark ones. */
const COLOURS = {
  ...PALETTE.colours,
  ...PALETTE.hues,
  ...Object.fromEntries(
    Object.entries(PALETTE.words).map(([word, pair]) => [`word-${word}`, pair]),
  ),
  ...Object.fromEntries(Object.entries(HUES).map(([name, hue]) => [name, PALETTE.hues[hue]])),
};

/** The theme's variables for the rest, on the course's pages and in Jupyter. */
const THEMES = {
  text: ["--pst-color-text-base", "--jp-ui-font-color0"],
  soft: ["--pst-color-text-muted", "--jp-ui-font-color1"],
  ground: ["--pst-color-background", "--jp-layout-color1"],
  line: ["--pst-color-border", "--jp-border-color1"],
  accent: ["--pst-color-link", "--jp-brand-color1"],
};

const scheme = { dark: 0 };

const inkAt = (name, dark) =>
  [1, 3, 5].map((at) => parseInt(COLOURS[name][dark].slice(at, at + 2), 16));

/** Red, green and blue of a colour of the palette, as a canvas wants them, on the page as it is. */
export const inkOf = (name) => inkAt(name, scheme.dark);

/** A colour of the palette in a picture that looks alike on every page. */
export const lightInk = (name) => (COLOURS[name] ?? PALETTE.page[name])[0];

/** How much light a colour sends, as WCAG 2 defines it. */
const luminance = (colour) => {
  const [r, g, b] = colour.map((c) =>
    c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

/** How many times as large as by default, 16 px, the reader has letters: for what is set in px. */
export const letters = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

const isDrawn = (element) => element.checkVisibility?.({ contentVisibilityAuto: true }) ?? true;

/**
 * Keep to the scheme of the page: it is dark where its letters are lighter than what they stand on,
 * which is so in every notebook's theme. `changed` is called when the reader takes another theme.
 * Returns what ends it.
 */
export function followScheme(host, changed) {
  const look = () => {
    if (!host.isConnected) return;
    // To ask for the colour of what is far from the screen would draw it; its section is styled.
    let styled = host;
    while (!isDrawn(styled) && styled.parentElement) styled = styled.parentElement;
    const ink = getComputedStyle(styled).color.match(/[\d.]+/g);
    const dark = luminance(ink.map(Number)) > 0.3;
    if (host.style.colorScheme === (dark ? "dark" : "light")) return;
    const first = !host.style.colorScheme;
    host.style.colorScheme = dark ? "dark" : "light";
    scheme.dark = Number(dark);
    if (!first) changed();
  };
  look();
  if (!host.isConnected) requestAnimationFrame(look);
  const themes = new MutationObserver(look);
  for (const element of [document.documentElement, document.body])
    themes.observe(element, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  document.addEventListener("contentvisibilityautostatechange", look);
  return () => {
    themes.disconnect();
    system.removeEventListener("change", look);
    document.removeEventListener("contentvisibilityautostatechange", look);
  };
}

/** At which share of a colour, mixed with the ground, black letters give way to white, or back. */
function turn(name, dark) {
  const ground = dark ? 0.207 : 1; // lightness, in OKLab
  const end = Math.cbrt(luminance(inkAt(name, dark)));
  return Math.max(0, (0.564 - ground) / (end - ground) / most(name)).toFixed(3);
}
/** Letters on a ground that is `--tl-heat` of the colour: black or white, whichever is read. */
const lettersOn = (name) => {
  const past = (dark) =>
    `clamp(0%, calc((var(--tl-heat, 0) - ${turn(name, dark)}) * 1000000%), 100%)`;
  return `light-dark(color-mix(in oklab, #000, #fff ${past(0)}),
    color-mix(in oklab, #fff, #000 ${past(1)}))`;
};

/** How much of a colour a cell has at most; figures take the same. */
const most = (name) => PALETTE.most[name] ?? 1;

/** A cell whose ground has as much of the colour as `--tl-heat` says, from 0 to 1. */
export const shaded = (name) =>
  `background: color-mix(in oklab, var(--ground),
    var(--${name}) calc(var(--tl-heat, 0) * ${100 * most(name)}%));
  color: ${lettersOn(name)};`;

const variables = (pick) => {
  const own = Object.entries(COLOURS).map(([name, pair]) => `--${name}: ${pick(pair)};`);
  const themed = Object.entries(THEMES).map(
    ([name, [page, lab]]) => `--${name}: var(${page}, var(${lab}, ${pick(PALETTE.page[name])}));`,
  );
  return [...themed, ...own].join(" ");
};

export const LOOK = `
:host { ${variables(([light, dark]) => `light-dark(${light}, ${dark})`)}
  ${Object.entries(PALETTE.sizes)
    .map(([name, size]) => `--size-${name}: ${size / 16}rem;`) // of 16 px, a browser's default
    .join(" ")}
  --size-touch: 1rem; /* of boxes to type in: iOS zooms into smaller letters */
  --size-screen: clamp(.9375rem, 4.4cqi, 2rem); /* of a sentence that is alone on its screen */
  --mono: ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, monospace;
  ${PALETTE.spaces.map((space, i) => `--space-${i + 1}: ${space}px;`).join(" ")}
}
@supports not (color: light-dark(#000, #fff)) { :host { ${variables(([light]) => light)} } }
${Object.keys(HUES)
  .map((name) => `.${name} { --tone: var(--${name}); }`)
  .join(" ")}
canvas { display: block; width: 100%; height: 100%; image-rendering: pixelated; }
.label { font-size: var(--size-note); font-weight: 600; }
.soft { color: var(--soft); }
.waiting { opacity: .4; }
.block { min-width: 0; }
.block h3 { margin: 0 0 6px; font-size: var(--size-note); font-weight: 650; }
`;
