// A plane with axes: curves, what stands at a place in it, lines across it, and what is dragged.

import { resized } from "./boxes.js";
import { h, rectangleIn, setAttribute, setText, svgPart } from "./dom.js";
import { times } from "./numbers.js";
import { fillList } from "./sentences.js";

/**
 * Follow the pointer that went down on `element`, wherever it goes, until it is lifted.
 * `grip(event)` is what it took hold of, or null if that is nothing; each `move(event, it)`, and
 * `end(it)`, get it.
 */
export function drag(element, grip, move, end = (_it) => {}) {
  element.addEventListener("pointerdown", (event) => {
    const it = event.button === 0 ? grip(event) : null;
    if (it === null) return;
    element.setPointerCapture(event.pointerId);
    const own = ({ pointerId }) => pointerId === event.pointerId; // a second finger is not ours
    const moved = (next) => {
      if (own(next)) move(next, it);
    };
    const ended = (last) => {
      if (!own(last)) return;
      element.removeEventListener("pointermove", moved);
      element.removeEventListener("lostpointercapture", ended); // lifted, cancelled or taken away
      end(it);
    };
    element.addEventListener("pointermove", moved);
    element.addEventListener("lostpointercapture", ended);
  });
}

const digits = (value) => String(Number(value.toFixed(4)));

/** The line through points [x, y], as the attribute d of a path. */
export const through = (points) =>
  points.length ? `M${points.map((point) => point.map(digits).join(" ")).join("L")}` : "M0 0";

/** Dots at points [x, y], for a path with a broad stroke. */
export const dotsAt = (points) =>
  points.map((point) => `M${point.map(digits).join(" ")}h0`).join("") || "M0 0";

// What is written in a plane; ticks stay where they are, and names make room.
const NAMES = ".rule b, .name, .number, .moment b, .named";
const MARKS = ".dot, .spot, .ball, .rule"; // which no name should cover, except its own line

const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** Whether a line through points [x, y], which go from left to right, comes through the box. */
const crosses = (points, { left, right, top, bottom }) =>
  points.some(([x, y], i) => {
    const [from, at] = points[i - 1] ?? [x, y];
    if (x < left || from > right) return false;
    const height = (to) => (x > from ? at + ((y - at) * (to - from)) / (x - from) : y);
    const [start, end] = [height(Math.max(from, left)), height(Math.min(x, right))];
    return Math.min(start, end) < bottom && Math.max(start, end) > top;
  });

/**
 * Where names would cover a tick or another name, or stand on one of the `curves`, those behind go
 * to the nearest place that is free: beside what they name, and that of a line along it, too. The
 * places of all names are read first, and written afterwards.
 */
function keepApart(element, svg, curves) {
  const names = [...element.querySelectorAll(NAMES)].filter((name) => name.checkVisibility?.());
  for (const name of names) name.style.translate = "";
  const area = rectangleIn(svg);
  const boxOf = (/** @type {Element} */ one) => {
    const { left, right, top, bottom } = rectangleIn(one);
    return { left, right, top, bottom };
  };
  const taken = [...element.querySelectorAll(".tick")].map(boxOf);
  const marks = [...element.querySelectorAll(MARKS)].map((mark) => ({ mark, box: boxOf(mark) }));
  const boxes = names.map(boxOf);
  const lines = curves(area);
  boxes.forEach(({ left, right, top, bottom }, i) => {
    if (left === right) return;
    const line = names[i].closest(".rule");
    const [wide, step] = [right - left, bottom - top + 4];
    const far = area.width - wide - 8;
    const both = (by) => [by, -by];
    const along = line?.classList.contains("y"); // on its line, or else close above it
    const [aside, downward] = along
      ? [times(9, (i) => (-far * i) / 8), [0, -0.6 * step]]
      : line
        ? [[0, (wide + 4) * (line.classList.contains("late") ? 1 : -1)], times(5, (i) => i * step)]
        : [[0, wide / 2 + 9, wide + 9].flatMap(both), [0, step / 2, step, 2 * step].flatMap(both)];
    const places = downward.flatMap((down) =>
      aside.map((across) => ({
        ...{ across, down, left: left + across, right: right + across },
        ...{ top: top + down, bottom: bottom + down },
      })),
    );
    const others = marks.filter(({ mark }) => mark !== line);
    const atTip = names[i].matches(".named"); // of an arrow, whose own lines end there
    const cost = (box) => {
      const moved = box.across || box.down;
      const out = box.left < area.left || box.right > area.right || box.bottom > area.bottom;
      return (
        1000 * taken.filter((other) => meet(box, other)).length +
        (moved && (out || box.top < area.top) ? 100 : 0) +
        15 * others.filter((other) => meet(box, other.box)).length +
        (along && box.down ? 5 : 0) +
        (!atTip && lines.some((points) => crosses(points, box)) ? 10 : 0) +
        Math.hypot(box.across, box.down) / (line ? far : 20)
      );
    };
    const costs = places.map(cost);
    const best = places[costs.indexOf(Math.min(...costs))];
    if (best.across || best.down) names[i].style.translate = `${best.across}px ${best.down}px`;
    taken.push(best);
  });
}

/**
 * A plane whose axes have the ends `x` and `y`, each [low, high]; it is `height` px high. `ticks`
 * has for each axis the numbers beside it, or [number, text]; `grid` too, where lines go through
 * the plane: where the ticks are, if it is left out. `paths` names curves; their coordinates are
 * those of the plane. It has the class `name`, and is hidden from screen readers without a `label`.
 */
export function plane({
  name,
  x,
  y,
  height,
  ticks = {},
  grid = undefined,
  paths = [],
  label = "",
}) {
  let ends = { x, y };
  const lines = svgPart("path", { class: "grid" });
  const curves = paths.map((name) => svgPart("path", { class: name }));
  const upward = svgPart("g", { transform: "scale(1 -1)" }, lines, ...curves);
  const svg = svgPart("svg", { preserveAspectRatio: "none", "aria-hidden": "true" }, upward);
  const scale = h("div", { "aria-hidden": "true" });
  const aria = label ? { role: "group", "aria-label": label } : { "aria-hidden": "true" };
  const size = {
    class: `plane ${name}`,
    style: `height: calc(${height / 16}rem * var(--grow, 1))`,
  };
  const element = h("div", { ...size, ...aria }, svg, scale);

  let asked = 0;
  /** The curves in pixels, without areas, which end where they began. */
  const inPixels = ({ left, top, width, height }) =>
    curves
      .map((curve) => curve.getAttribute("d") ?? "")
      .filter((d) => !d.endsWith("Z"))
      .map((d) =>
        [...d.matchAll(/[ML](\S+?) ([-\d.]+)/g)].map(([, across, up]) => [
          left + width * share("x", Number(across)),
          top + height * (1 - share("y", Number(up))),
        ]),
      );
  /** In the next frame, when all is in its place. */
  const arrange = () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => {
      if (element.checkVisibility?.({ contentVisibilityAuto: true }))
        keepApart(element, svg, inPixels);
    });
  };
  resized(arrange, element);

  const share = (axis, value) => (value - ends[axis][0]) / (ends[axis][1] - ends[axis][0]);
  /** Bring an element to a place; where no x or no y is given, that stays. */
  const put = (placed, across, up) => {
    const [left, top] = [
      across === undefined ? "" : `${(100 * share("x", across)).toFixed(3)}%`,
      up === undefined ? "" : `${(100 * (1 - share("y", up))).toFixed(3)}%`,
    ];
    if (placed.style.left !== left) placed.style.left = left;
    if (placed.style.top !== top) placed.style.top = top;
    arrange();
  };
  /** The plane reaches as far as this now. */
  const reach = (now) => {
    ends = { x: now.x ?? ends.x, y: now.y ?? ends.y };
    const [[left, right], [bottom, top]] = [ends.x, ends.y];
    setAttribute(svg, "viewBox", `${left} ${-top} ${right - left} ${top - bottom}`);
    const all = ["x", "y"].flatMap((axis) =>
      (now.ticks?.[axis] ?? []).map((tick) => [axis, ...[tick].flat()]),
    );
    const at = (axis) =>
      now.grid?.[axis] ?? all.filter(([own]) => own === axis).map(([, value]) => value);
    const upright = at("x").map((value) => `M${value} ${bottom}V${top}`);
    setAttribute(
      lines,
      "d",
      [...upright, ...at("y").map((v) => `M${left} ${v}H${right}`)].join(""),
    );
    fillList(scale, all, "span", (span, [axis, value, text = String(value)]) => {
      setAttribute(span, "class", `tick ${axis}`);
      setText(span, text.replace("-", "−"));
      put(span, axis === "x" ? value : left, axis === "x" ? bottom : value);
    });
  };
  reach({ ticks, grid });
  return {
    element,
    svg,
    paths: Object.fromEntries(paths.map((name, i) => [name, curves[i]])),
    put,
    reach,
    /** Where in the plane an event is. */
    at({ clientX, clientY }) {
      const { left, top, width, height: high } = svg.getBoundingClientRect();
      const [across, down] = [(clientX - left) / width, (clientY - top) / high];
      return {
        x: ends.x[0] + across * (ends.x[1] - ends.x[0]),
        y: ends.y[1] - down * (ends.y[1] - ends.y[0]),
      };
    },
    /**
     * A spot in the plane, or something else that stands at a place: gives what brings it there.
     */
    spot(kind, ...content) {
      const placed = h("span", { class: kind }, ...content);
      element.append(placed);
      return (across, up) => put(placed, across, up);
    },
    /** A line across the plane, at a value of that axis, with its name; hidden outside. */
    rule(axis, kind = "", value = 0, text = "") {
      const line = h("span", { class: `rule ${axis} ${kind}`, "aria-hidden": "true" }, h("b"));
      const set = (to, name) => {
        line.hidden = !(share(axis, to) >= 0 && share(axis, to) <= 1);
        line.classList.toggle("late", axis === "x" && share("x", to) > 0.5);
        put(line, axis === "x" ? to : undefined, axis === "y" ? to : undefined);
        setText(line.firstChild, name);
        arrange();
      };
      set(value, text);
      element.append(line);
      return set;
    },
  };
}
plane.style = `
.plane { position: relative; margin: 20px 14px 22px 26px; font-size: var(--size-small);
  touch-action: pan-y; }
.plane svg { display: block; width: 100%; height: 100%; overflow: hidden;
  border: 1px solid var(--line); }
.plane path { fill: none; stroke: var(--tone, var(--blue)); stroke-width: 2;
  vector-effect: non-scaling-stroke; stroke-linecap: round; stroke-linejoin: round; }
.plane .grid { stroke: var(--line); stroke-width: 1; opacity: .5; }
.plane .tick { position: absolute; color: var(--soft); pointer-events: none; white-space: nowrap;
  font-variant-numeric: tabular-nums; line-height: 1.2; }
.plane .tick.x { transform: translate(-50%, 7px); }
.plane :is(.rule b, .name, .number, .moment b) { text-shadow: 0 0 2px var(--ground),
  0 0 2px var(--ground), 0 0 3px var(--ground), 0 0 3px var(--ground); } /* on a curve */
.plane .tick.y { transform: translate(calc(-100% - 6px), -50%); }
.spot { position: absolute; width: .875rem; height: .875rem; margin: -.4375rem; border-radius: 50%;
  background: var(--tone, var(--text)); border: 2.5px solid var(--ground);
  box-shadow: 0 0 0 1px var(--tone, var(--text)); }
.spot.small { width: 6px; height: 6px; margin: -3px; border: 0; box-shadow: none;
  background: var(--tone, var(--blue)); }
.rule { position: absolute; pointer-events: none; }
.rule.x { top: 0; bottom: 0; border-left: 2px solid var(--text); }
.rule.y { left: 0; right: 0; border-top: 1.5px dashed var(--tone, var(--accent)); }
.rule b { position: absolute; z-index: 1; white-space: nowrap; font-weight: 600; }
.rule.x b { bottom: 100%; left: -2px; padding-bottom: 2px; }
.rule.x.late b { left: auto; right: -2px; }
.rule.y b { right: 4px; bottom: 0; padding: 0 4px; font-weight: 500; line-height: 1.1;
  background: var(--ground); transform: translateY(50%); }
`;
