// What has changed its place travels there, so that the eye can follow it. It moves by `transform`
// alone, and not at all for a reader who wants no motion.

import { rectangleIn } from "./dom.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Animate the element, if the reader wants motion; its own style is where it ends. */
export const animate = (element, frames, how) =>
  calm.matches ? undefined : element.animate(frames, { easing: "ease-out", ...how });

/** Whether the reader wants no motion. */
export const isCalm = () => calm.matches;

/** Something falls from above onto where it stands, and there what it hits lights up. */
export function drop(falling, hit, height = 34) {
  const fall = [
    { transform: `translateY(${-height}px)`, opacity: 0 },
    { transform: `translateY(${-height}px)`, opacity: 1, offset: 0.15 },
    { transform: "none", opacity: 1 },
  ];
  animate(falling, fall, { duration: 420, easing: "cubic-bezier(.55, 0, 1, .6)" });
  if (hit) animate(hit, [{ opacity: 0.35 }, { opacity: 1 }], { duration: 480, delay: 400 });
}

/** Where each of the elements stands, by its key. */
const spotsOf = (keyed) => new Map([...keyed].map(([key, element]) => [key, rectangleIn(element)]));

/**
 * Make a change, and let the elements travel; `keyed()` gives them as [key, element]. Each sets out
 * a little later than the one before, so that they do not all meet on their way.
 */
export function travel(keyed, change, duration = 500) {
  const before = calm.matches ? new Map() : spotsOf(keyed());
  change();
  const ends = before.size ? [...keyed()] : [];
  ends.forEach(([key, element], i) => {
    const [old, now] = [before.get(key), rectangleIn(element)];
    if (!old || (old.left === now.left && old.top === now.top)) return;
    const from = `translate(${old.left - now.left}px, ${old.top - now.top}px)`;
    const timing = { duration, delay: 60 * i, fill: "backwards", easing: "ease-in-out" };
    element.animate([{ transform: from }, { transform: "none" }], timing);
  });
}

/** What has just come appears, and does not jump into the eye. */
export function appear(elements, duration = 400) {
  if (calm.matches) return;
  for (const element of elements) element.animate([{ opacity: 0 }, {}], { duration });
}

/**
 * A copy of each `from` flies to its `to`, which fills when it arrives: `pairs` are [from, to,
 * delay]. The copies are laid over `frame`, and go as soon as they have landed.
 */
export function fly(frame, pairs, duration = 600) {
  if (calm.matches) return;
  const around = rectangleIn(frame);
  const layer = document.createElement("div");
  layer.className = "flying";
  layer.setAttribute("aria-hidden", "true");
  const flights = pairs.map(([from, to, delay]) => {
    const [start, end] = [from, to].map((element) => rectangleIn(element, frame));
    const copy = document.createElement("span");
    copy.className = from.className;
    copy.textContent = from.firstElementChild?.value ?? from.textContent;
    const place = { left: start.left - around.left, top: start.top - around.top };
    for (const [side, size] of Object.entries({ ...place, width: start.width, height: end.height }))
      copy.style[side] = `${size}px`;
    layer.append(copy);
    return { copy, to, delay, move: [end.left - start.left, end.top - start.top] };
  });
  frame.append(layer);
  const landed = flights.map(({ copy, to, delay, move: [x, y] }) => {
    const timing = { duration, delay, easing: "ease-in-out", fill: "both" };
    to.animate([{ opacity: 0 }, { opacity: 0, offset: 0.9 }, { opacity: 1 }], {
      ...timing,
      fill: "backwards",
    });
    const goal = `translate(${x}px, ${y}px)`;
    return copy.animate([{ transform: "none" }, { transform: goal }], timing).finished;
  });
  Promise.allSettled(landed).then(() => layer.remove());
}
fly.style = `
.flying { position: absolute; inset: 0; z-index: 3; pointer-events: none; }
.flying > span { position: absolute; display: grid; place-items: center; border-radius: 3px;
  font-size: var(--size-note); font-variant-numeric: tabular-nums; color: var(--text); }
`;
