// Moving miniatures: at a chapter's head and on the road, a few seconds that show what it is about.
// A miniature is a list of marks; a number of a mark is constant or has a value for each frame.
{
  const [WIDE, HIGH] = [280, 180]; // of the marks' coordinates
  const REST = 1.8; // seconds that the last frame stays
  const MOVE = 0.55; // the part of a frame's time in which its marks move
  const ROUNDS = 4; // then it rests, until it comes into view again or the pointer is on it
  const EVERY = 1000 / 32; // ms between two drawings
  const SEEN = 0.6; // the part that has to be in view
  const files = new URL("loops/", /** @type {HTMLScriptElement} */ (document.currentScript).src);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  const loops = [...document.querySelectorAll("a.loop")].map((link) => ({
    canvas: link.querySelector("canvas"),
    data: null, // its file, once it is near the view
    count: 0, // of frames
    seconds: 0, // of a round
    asked: false,
    inView: false,
    clock: 0,
    colours: new Map(),
  }));
  const of = (target) => loops.find(({ canvas }) => canvas === target);
  const mixed = (from, to, share) => from + (to - from) * share;

  function colour({ canvas, colours }, name) {
    if (!colours.has(name)) {
      colours.set(name, getComputedStyle(canvas).getPropertyValue(`--${name}`).trim());
    }
    return colours.get(name);
  }

  /** Draw a frame: 2.5 is halfway from 2 to 3. */
  function draw(loop, at) {
    const { canvas, data, count } = loop;
    const context = canvas.getContext("2d");
    const scale = canvas.width / WIDE;
    const whole = Math.min(Math.floor(at), count - 1);
    const next = Math.min(whole + 1, count - 1);
    const share = data.smooth ? at - whole : (at - whole) ** 2 * (3 - 2 * (at - whole));
    const one = (value) => (Array.isArray(value) ? value[share ? next : whole] : value);
    const number = (value = 0) =>
      Array.isArray(value) ? mixed(value[whole], value[next], share) : value;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, WIDE, HIGH);
    context.textBaseline = "middle";
    context.lineCap = "round";
    context.font = `500 18px ${getComputedStyle(canvas).fontFamily}`;
    for (const mark of data.marks) {
      const [x, y, w, h, q, p] = ["x", "y", "w", "h", "q", "p"].map((k) => number(mark[k]));
      const alpha = number(mark.a ?? 1);
      if (alpha < 0.01) continue;
      context.globalAlpha = alpha;
      context.lineWidth = w;
      if (mark.kind === "cells") {
        drawCells(loop, context, mark, whole, next, share);
        continue;
      }
      context.fillStyle = context.strokeStyle = colour(loop, one(mark.c));
      context.beginPath();
      if (mark.kind === "word") {
        context.textAlign = mark.align ?? "center";
        context.fillText(one(mark.s), x, y);
      } else if (mark.kind === "box") {
        context.fillRect(x, y, w, h);
      } else if (mark.kind === "link") {
        context.moveTo(x, y);
        context.quadraticCurveTo((x + q) / 2, (y + p) / 2 - 2 * number(mark.b), q, p);
        context.stroke();
      } else {
        context.arc(x, y, number(mark.r), 0, 7);
        if (w) context.stroke();
        else context.fill();
      }
    }
    canvas.parentElement.classList.add("drawn");
  }

  function drawCells(loop, context, { c, at: [x, y, w, h], n, v }, whole, next, share) {
    v[whole].forEach((percent, i) => {
      const value = mixed(percent, v[next][i], share) / 100;
      context.globalAlpha = Math.max(0.06, Math.abs(value));
      context.fillStyle = colour(loop, value ? c[value < 0 ? 1 : 0] : "soft");
      context.fillRect(x + (i % n) * w, y + Math.floor(i / n) * h, w - 1.5, h - 1.5);
    });
  }

  /** The still picture is the last frame, which says the whole. */
  const drawLast = (loop) => loop.data && draw(loop, loop.count - 1);

  // --- those in view move, in a tab that is shown, unless no movement is wanted

  const moves = ({ data, inView, clock, seconds }) =>
    data && inView && !calm.matches && clock < ROUNDS * seconds;
  let drawn = 0;
  let due = 0;

  function tick(now) {
    const some = loops.filter(moves);
    const passed = now - drawn;
    due = some.length ? requestAnimationFrame(tick) : 0;
    if (passed < EVERY) return;
    drawn = now;
    for (const loop of some) {
      loop.clock += Math.min(passed, 100) / 1000;
      const { beat, smooth } = loop.data;
      const at = Math.min((loop.clock % loop.seconds) / beat, loop.count - 1);
      const share = smooth ? at % 1 : Math.min(1, (at % 1) / MOVE);
      if (moves(loop)) draw(loop, Math.floor(at) + share);
      else drawLast(loop);
    }
  }

  function play() {
    if (!due && loops.some(moves)) due = requestAnimationFrame(tick);
  }

  async function load(loop) {
    if (loop.asked) return;
    loop.asked = true;
    try {
      loop.data = await (await fetch(new URL(`${loop.canvas.dataset.loop}.json`, files))).json();
    } catch {
      loop.asked = false; // it stays empty, and is asked for when it comes near again
      return;
    }
    const tracks = loop.data.marks.flatMap((mark) => Object.values(mark)).filter(Array.isArray);
    loop.count = Math.max(...tracks.map(({ length }) => length));
    loop.seconds = (loop.count - 1) * loop.data.beat + REST;
    fit(loop);
    play();
  }

  function fit(loop) {
    const { canvas } = loop;
    canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
    canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
    drawLast(loop);
  }

  // --- what is watched

  const near = new IntersectionObserver(
    (some) => some.forEach((entry) => entry.isIntersecting && load(of(entry.target))),
    { rootMargin: "200px" },
  );
  const seen = new IntersectionObserver(
    (some) => {
      for (const { target, intersectionRatio } of some) {
        Object.assign(of(target), { inView: intersectionRatio >= SEEN, clock: 0 });
      }
      play();
    },
    { threshold: SEEN },
  );
  const sizes = new ResizeObserver((some) => some.forEach(({ target }) => fit(of(target))));
  for (const loop of loops) {
    for (const watch of [near, seen, sizes]) watch.observe(loop.canvas);
    for (const event of ["pointerenter", "focus"]) {
      loop.canvas.parentElement.addEventListener(event, () => {
        if (!moves(loop)) loop.clock = 0;
        play();
      });
    }
  }
  const drawAgain = () => {
    for (const loop of loops) {
      loop.colours.clear();
      drawLast(loop);
    }
    play();
  };
  new MutationObserver(drawAgain).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
  calm.addEventListener("change", drawAgain);
  addEventListener("beforeprint", drawAgain);
}
