// What has changed its place travels there, so that the eye can follow it. It moves by `transform`
// alone, and not at all for a reader who wants no motion.

const calm = matchMedia("(prefers-reduced-motion: reduce)");

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
