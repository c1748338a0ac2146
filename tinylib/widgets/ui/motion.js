// What has changed its place travels there, so that the eye can follow it. It moves by `transform`
// alone, and not at all for a reader who wants no motion.

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
const spotsOf = (keyed) =>
  new Map([...keyed].map(([key, element]) => [key, element.getBoundingClientRect()]));

/** Make a change, and let the elements travel; `keyed()` gives them as [key, element]. */
export function travel(keyed, change, duration = 500) {
  const before = calm.matches ? new Map() : spotsOf(keyed());
  change();
  for (const [key, element] of before.size ? keyed() : []) {
    const [old, now] = [before.get(key), element.getBoundingClientRect()];
    if (!old || (old.left === now.left && old.top === now.top)) continue;
    const from = `translate(${old.left - now.left}px, ${old.top - now.top}px)`;
    element.animate([{ transform: from }, { transform: "none" }], { duration, easing: "ease-out" });
  }
}
