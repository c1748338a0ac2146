// A picture to share, of 1200 × 630 pixels: what a model wrote before it learned, and what it
// writes now. It is drawn in the page, looks alike in each scheme, and no link leads to it.

import { h, hasLeftward, setAttribute, setText } from "./dom.js";
import { lightInk } from "./look.js";

const [CARD_WIDTH, CARD_HEIGHT] = [1200, 630];
const [MARGIN, GUTTER, TOP] = [56, 32, 148];
const PANEL = { width: (CARD_WIDTH - 2 * MARGIN - GUTTER) / 2, height: 350, edge: 28 };
const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const TYPED = 'ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, monospace';

const segmenter = globalThis.Intl?.Segmenter && new Intl.Segmenter();
/** What a reader takes for single letters: an emoji of several characters is one. */
const lettersIn = (text) =>
  segmenter ? Array.from(segmenter.segment(text), ({ segment }) => segment) : Array.from(text);

/** A text without what cannot be drawn, or would turn round what stands beside it. */
const drawable = (text) =>
  text
    .replace(/\t/g, " ")
    .replace(/[\p{Bidi_Control}\p{Surrogate}]|(?!\n)\p{Cc}/gu, "")
    .replace(/(\p{M}{4})\p{M}+/gu, "$1"); // marks upon marks would reach other lines

/**
 * The lines of a text that are at most `width` wide, as `measure` has it, and at most `most` of
 * them: they end between words where they can, and the last one tells that there is more.
 */
export function linesOf(text, measure, width, most) {
  const lines = [];
  for (const paragraph of drawable(text).split("\n")) {
    let line = "";
    for (const word of paragraph.split(/(?<=\s)/)) {
      const fits = (more) => measure((line + more).trimEnd()) <= width;
      if (fits(word)) {
        line += word;
        continue;
      }
      if (line && measure(word.trimEnd()) <= width) {
        lines.push(line);
        line = word;
        continue;
      }
      for (const letter of lettersIn(word)) {
        if (line && !fits(letter)) {
          lines.push(line);
          line = "";
        }
        line += letter;
      }
    }
    lines.push(line);
    if (lines.length > most) break;
  }
  const kept = lines.slice(0, most).map((line) => line.trimEnd());
  if (lines.length > most) {
    const last = lettersIn(kept[most - 1]);
    while (last.length && measure(`${last.join("")}…`) > width) last.pop();
    kept[most - 1] = `${last.join("")}…`;
  }
  return kept;
}

/** All that a card says, as plain text: for those who do not see it. */
const described = ({ title, before, now, foot, address }) =>
  [`${title}.`, ...[before, now].map(({ head, text }) => `${head}: “${text}”`), foot, address].join(
    " ",
  );

/** Draw a card: { title, before: { head, text }, now: { head, text }, foot, course, address }. */
function drawCard(canvas, content) {
  const context = canvas.getContext("2d");
  const write = (text, x, y, font, ink, most = Infinity) => {
    context.font = font;
    context.fillStyle = ink;
    const measure = (some) => context.measureText(some).width;
    const [line] = linesOf(text.replaceAll("\n", " "), measure, most, 1);
    context.direction = hasLeftward(line) ? "rtl" : "ltr";
    context.fillText(line, x, y);
  };
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  context.fillStyle = lightInk("ground");
  context.fillRect(0, 0, CARD_WIDTH, CARD_HEIGHT);
  context.fillStyle = lightInk("blue");
  context.fillRect(0, CARD_HEIGHT - 14, CARD_WIDTH, 14);
  for (const [i, { head, text }] of [content.before, content.now].entries()) {
    const left = MARGIN + i * (PANEL.width + GUTTER);
    const now = i === 1;
    context.fillStyle = lightInk(now ? "blue" : "ground");
    context.strokeStyle = lightInk(now ? "blue" : "line");
    context.lineWidth = 2;
    context.beginPath();
    const outline = context.roundRect ?? context.rect; // an older browser has no round corners
    outline.call(context, left, TOP, PANEL.width, PANEL.height, 16);
    context.fill();
    context.stroke();
    context.save();
    context.clip();
    const room = PANEL.width - 2 * PANEL.edge;
    const ink = lightInk(now ? "ground" : "soft");
    write(head, left + PANEL.edge, TOP + 46, `650 26px ${SANS}`, ink, room);
    context.font = `500 27px ${TYPED}`;
    const measure = (some) => context.measureText(some).width;
    linesOf(text, measure, room, 8).forEach((line, row) => {
      const leftward = hasLeftward(line);
      context.direction = leftward ? "rtl" : "ltr";
      context.textAlign = leftward ? "right" : "left";
      const x = leftward ? left + PANEL.width - PANEL.edge : left + PANEL.edge;
      context.fillText(line, x, TOP + 90 + 35 * row);
    });
    context.textAlign = "left";
    context.restore();
  }
  const course = `650 24px ${SANS}`;
  context.font = course;
  const wide = context.measureText(content.course).width;
  const room = CARD_WIDTH - 2 * MARGIN;
  write(content.course, CARD_WIDTH - MARGIN - wide, 96, course, lightInk("soft"));
  write(content.title, MARGIN, 96, `700 46px ${SANS}`, lightInk("text"), room - wide - GUTTER);
  write(content.foot, MARGIN, 550, `400 28px ${SANS}`, lightInk("text"), room);
  write(content.address, MARGIN, 592, `400 23px ${SANS}`, lightInk("blue"), room);
  setAttribute(canvas, "aria-label", described(content));
}

/** The picture as a file, at once: what a click asks for after it has waited, Safari refuses. */
function pictureFile(canvas, name) {
  const data = atob(canvas.toDataURL("image/png").split(",")[1]);
  const bytes = Uint8Array.from(data, (letter) => letter.charCodeAt(0));
  return new File([bytes], name, { type: "image/png" });
}

/**
 * A card with buttons that save, copy and send it. `read()` is what it says, as drawCard() has it,
 * with `name` for its file; and whether it is `ready`: if not, `empty` says why.
 */
export function shareCard(read, empty) {
  const canvas = h("canvas", { role: "img", width: CARD_WIDTH, height: CARD_HEIGHT });
  const status = h("p.note", { role: "status" });
  const file = () => pictureFile(canvas, read().name);
  const save = () => {
    const picture = file();
    const link = h("a", { href: URL.createObjectURL(picture), download: picture.name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    setText(status, `The picture is saved as ${picture.name}.`);
  };
  const copy = () => {
    const failed = () =>
      setText(status, "This browser does not let the page copy a picture: save it instead.");
    try {
      const item = new ClipboardItem({ "image/png": Promise.resolve(file()) });
      const done = () => setText(status, "The picture is in the clipboard.");
      navigator.clipboard.write([item]).then(done, failed);
    } catch {
      failed(); // an older browser, or not a secure page
    }
  };
  const send = () => {
    const refused = ({ name }) =>
      name !== "AbortError" && setText(status, "It could not be sent: save it instead.");
    const { title, address } = read();
    navigator.share({ files: [file()], title, text: address }).catch(refused);
  };
  const probe = { files: [new File([], "a.png", { type: "image/png" })] };
  const buttons = [
    ...(navigator.canShare?.(probe) ? [h("button", { click: send }, "Send")] : []),
    h("button", { click: save }, "Save picture"),
    h("button", { click: copy }, "Copy picture"),
  ];
  let drawn = "";
  return {
    element: h("div.card", canvas, h("div.shares", ...buttons), status),
    update() {
      const content = read();
      if (!content) return;
      for (const button of buttons) {
        button.disabled = !content.ready;
        button.title = content.ready ? "" : empty;
      }
      canvas.classList.toggle("waiting", !content.ready);
      const now = JSON.stringify(content);
      if (now === drawn) return;
      drawCard(canvas, content);
      setText(status, ""); // what was said of another picture
      drawn = now;
    },
  };
}
shareCard.style = `
.card { display: grid; gap: 8px; align-content: start; min-width: 0; }
.card canvas { width: 100%; height: auto; aspect-ratio: ${CARD_WIDTH} / ${CARD_HEIGHT};
  image-rendering: auto; border: 1px solid var(--line); border-radius: 6px; }
:host([style*="dark"]) .card canvas { filter: brightness(.82); } /* the file stays light */
.shares { display: flex; flex-wrap: wrap; gap: 6px; align-content: start; }
.shares :first-child:enabled { color: var(--ground); background: var(--accent);
  border-color: var(--accent); }
.card .note:empty { display: none; }
`;
