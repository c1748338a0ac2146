// The tour: a page of screens, of which one is shown at a time. What is on a screen, the page and
// its widgets say; here is how a reader gets from each to the next. Without this it is a page.
{
  const KEPT = "road-to-gpt-tour"; // of this visit: the reader's line, and which screens are done
  // What each screen asks for, until it is done.
  const TO_DO = ["Press Write", "Choose a letter", "Press Play", "Choose “)”", "Use the switch"];
  TO_DO.push("Choose an answer", "Press Train", "Start training");
  const TRAINED = 6; // the screen on which a head is trained: there is nothing more to try
  const LETTERS = 3; // that the reader chooses on a screen where letters are chosen
  const WRITTEN = 12; // letters that go on from the reader's line: then they see how it goes on
  const WAIT = 2000; // ms after the page has come, before models are fetched unasked
  const PATIENCE = 15_000; // ms on a screen: a widget that has not come until then holds nobody
  const SWIPE = 60; // px
  const screens = /** @type {HTMLElement[]} */ ([
    ...document.querySelectorAll("article section[id^=screen-]"),
  ]);
  const here = new Set(); // screens that are done since the page came: what they show is there
  const kept = { line: "", done: [], ...JSON.parse(sessionStorage.getItem(KEPT) ?? "{}") };
  const keep = () => sessionStorage.setItem(KEPT, JSON.stringify(kept));
  let now = -1; // the screen that is shown

  /** @type {(tag: string, attributes?: Record<string, any>, ...content: any[]) => HTMLElement} */
  const make = (tag, { click, ...attributes } = {}, ...content) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (click) element.addEventListener("click", click);
    element.append(...content);
    return element;
  };
  const headingOf = (screen) => /** @type {HTMLElement} */ (screen.querySelector("h2"));

  // --- the bar: home, a dot for each screen, and the way out

  const home = "00_start.html";
  const dots = screens.map((screen, i) => {
    const title = headingOf(screen).firstChild.textContent;
    return make("a", { href: `#${screen.id}`, "aria-label": `Screen ${i + 1}: ${title}` });
  });
  const where = make("p", { class: "where", role: "status" });
  const icon = /** @type {HTMLLinkElement} */ (document.querySelector("link[rel~=icon]")).href;
  const bar = make(
    "nav",
    { class: "tour-bar", "aria-label": "The tour" },
    make(
      "a",
      { class: "home", href: home, "aria-label": "The Road to GPT" },
      make("img", { src: icon, alt: "", width: 28, height: 28 }),
      make("span", {}, "The Road to GPT"),
    ),
    make("ol", {}, ...dots.map((dot) => make("li", {}, dot))),
    where,
    make("a", { class: "leave", href: home, "aria-label": "Leave the tour" }, "✕"),
  );
  document.querySelector(".bd-header-article").replaceChildren(bar);

  // --- a screen: what follows its widgets is shown once the reader has done what it asks for

  const notes = []; // of each screen: what is still to be done
  const without = new Set(); // screens whose widget does not run here: they can be left
  const buttons = screens.map((screen, i) => {
    const cell = [...screen.querySelectorAll(":scope > .cell")].at(-1);
    const after = make("div", { class: "after", role: "status" });
    while (cell.nextElementSibling) after.append(cell.nextElementSibling);
    const note = make("span", { id: `waits-${i + 1}`, role: "status" }, TO_DO[i]);
    notes.push(note);
    const isLast = i === screens.length - 1;
    const click = () => {
      if (!isLast) return go(i + 1);
      below.remove();
      screen.querySelector(".tl-widget")?.dispatchEvent(new Event("tl:picture"));
      after.focus({ preventScroll: true });
    };
    const offer = isLast ? "See your picture" : "Continue";
    const button = /** @type {HTMLButtonElement} */ (
      make("button", { type: "button", click }, offer)
    );
    button.setAttribute("aria-describedby", note.id);
    const row = make("div", { class: "onward" }, note, button);
    const below = make("div", { class: "below" }, row);
    cell.after(below);
    for (const link of isLast ? after.querySelectorAll("a") : []) link.target = "_blank";
    if (isLast) below.after(Object.assign(after, { tabIndex: -1 }));
    else below.prepend(after);
    headingOf(screen).tabIndex = -1;
    const answered = () => here.has(i) || (note.textContent = "Move the slider");
    for (const one of screen.querySelectorAll(".predict details"))
      one.addEventListener("toggle", answered);
    screen.addEventListener("tl:done", (event) => {
      const { detail } = /** @type {CustomEvent} */ (event);
      if (detail?.what !== "learns") return finished(i, detail);
      here.delete(i); // a picture comes, or another one
      note.textContent = detail.said || TO_DO[i];
      if (!below.isConnected) cell.after(below);
      show();
    });
    return button;
  });

  let letters = 0;
  function finished(i, { what, prompt, offered, plays } = /** @type {any} */ ({})) {
    if (what === "film") {
      screens[i].classList.toggle("plays", plays);
      if (!plays) return here.has(i) && moreAt(i);
    }
    if (i === screens.length - 1 && what !== "card") return; // the first words come before
    if (i === 0 && prompt) {
      kept.line = prompt;
      kept.offered = offered;
      handOn(screens[1]); // so that its guesses are there when the reader comes
    }
    if (what === "taken" && !here.has(i)) {
      letters += 1;
      notes[i].textContent = `${LETTERS - letters} more`;
      if (letters < LETTERS) return;
    }
    const isNew = !here.has(i) && i < screens.length - 1;
    if (!kept.done.includes(i)) kept.done.push(i);
    here.add(i);
    moreAt(i);
    keep();
    show();
    if (isNew) screens[i].querySelector(".after").scrollIntoView({ block: "nearest" });
  }

  /** What can still be done on a screen that is done. */
  function moreAt(i) {
    if (without.has(i)) return;
    const more = i === TRAINED ? "" : "Try more, or go on";
    const watch = "Watch how it learns, or go on";
    notes[i].textContent =
      i === screens.length - 1 ? "" : screens[i].matches(".plays") ? watch : more;
  }

  /** A widget or its model has not come, or does not run here: the reader can go on without it. */
  function release(i) {
    if (here.has(i)) return;
    without.add(i);
    notes[i].textContent = "It does not run here: go on without it.";
    if (i < screens.length - 1) return show();
    buttons[i].textContent = "Go on";
    finished(i, { what: "card" });
  }

  const go = (i) => {
    if (!screens[i]) return;
    location.hash = screens[i].id;
    show();
  };

  /** The screen of the address; an older link to a widget leads to the screen that has it. */
  function asked() {
    const [, stem, number = 1] = /^#live-(\w+)(?:-(\d+))?=/.exec(location.hash) ?? [];
    const all = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-widget]"));
    const widget = [...all].filter((one) => one.dataset.widget.split("-")[0] === stem)[
      Number(number) - 1
    ];
    const named = screens.findIndex((one) =>
      widget ? one.contains(widget) : `#${one.id}` === location.hash,
    );
    return Math.max(0, named);
  }

  function show() {
    const [before, screen] = [now, screens[(now = asked())]];
    screens.forEach((one, i) => {
      one.classList.toggle("now", i === now);
      one.classList.toggle("done", here.has(i));
      buttons[i].disabled = !(here.has(i) || without.has(i));
      dots[i].classList.toggle("done", kept.done.includes(i));
      if (i === now) dots[i].setAttribute("aria-current", "step");
      else dots[i].removeAttribute("aria-current");
    });
    if (before === now) return;
    where.textContent = `Screen ${now + 1} of ${screens.length}`;
    screen.classList.toggle("back", now < before);
    scrollTo({ top: 0, behavior: "instant" });
    if (before >= 0) headingOf(screen).focus({ preventScroll: true });
    handOn(screen);
    setTimeout(
      () => screen.querySelector(".tl-live") && release(screens.indexOf(screen)),
      PATIENCE,
    );
    soon(() => [now, now + 1].forEach((i) => screens[i] && wake(screens[i])));
  }

  // --- widgets: the reader's line goes on to those that can go on with it, and models come early

  /** The screen's widgets, once they stand in the page. */
  async function widgetsOf(screen) {
    const widgets = () => [...screen.querySelectorAll(".tl-widget")];
    const waiting = () => screen.querySelector(".tl-live:not(.failed)");
    while (waiting()) {
      await new Promise((done) => {
        const seen = new MutationObserver(() => done(seen.disconnect()));
        seen.observe(screen, { childList: true, subtree: true });
      });
    }
    return widgets();
  }

  /** What is to be heard from the widgets of a screen beside that they are done with. */
  async function listenTo(screen, i) {
    const models = (await widgetsOf(screen)).map(({ model }) => model);
    if (screen.querySelector(".failed")) release(i);
    for (const model of models) {
      model.on("change:error", () => model.get("error") && release(i));
      model.on("change:inputs", () => {
        const trains = i === TRAINED && model.get("inputs").steps && !here.has(i);
        if (trains) notes[i].textContent = "It is being trained";
      });
      model.on("change:answers", () => {
        if (model.get("answered") !== model.get("asked")) return;
        const [{ prompt, step }, { tokens, written }] = [model.get("inputs"), model.get("outputs")];
        const text = i === 0 ? tokens : step > 0 ? written : undefined; // a copy that has learned
        const groups = i === 0 ? Object.values(model.get("spec").facts.prompts) : [];
        const offered = groups.some((group) => Object.hasOwn(group, prompt));
        if (text?.shape[0] >= WRITTEN) finished(i, { what: "written", prompt, offered });
      });
    }
    const [first, second] = models; // two widgets of a screen have one control
    const follow = () => give(second, { source: first.get("inputs").source });
    if (second) first.on("change:inputs", follow);
  }
  screens.forEach(listenTo);

  /** The reader's line and a space: where a word begins there is a choice. */
  const lineToGoOn = () => kept.line.replace(/\S$/, "$& ");

  /** The end of the reader's line, from a word's beginning on: so much a model reads. */
  function endOfLine(most) {
    const letters = [...lineToGoOn()];
    const end = letters.slice(-most).join("");
    return letters.length > most ? end.replace(/^\S*\s+(?=\S)/, "") : end;
  }

  /** The reader's line goes on to a screen that can go on with it, unless a run is under way. */
  async function handOn(screen) {
    const line = lineToGoOn();
    const beginning = [...endOfLine(24)].map((one) => one.codePointAt(0));
    const changes = {
      hero: { prompt: line, choices: [] },
      time_machine: { prompt: endOfLine(40) },
      gpt_trainer: kept.offered ? undefined : { beginning }, // it may read no Shakespeare
    };
    for (const { model, dataset } of await widgetsOf(screen)) {
      const change = changes[dataset.widget.split("-")[0]];
      if (!change || !line || given.get(model) === line) continue;
      if (model.get("inputs").steps || model.get("inputs").prompt === line) continue;
      given.set(model, line);
      model.set("line", line);
      give(model, change);
    }
  }
  const given = new WeakMap(); // model -> the line that it has got

  /** As if the reader had typed it. */
  function give(model, change) {
    model.set("inputs", { ...model.get("inputs"), ...change });
    model.set("asked", (model.get("asked") ?? 0) + 1);
    model.save_changes();
  }

  /** To the widgets this is as if the reader came near: they fetch what they will need. */
  async function wake(screen) {
    for (const widget of await widgetsOf(screen)) widget.dispatchEvent(new Event("pointerover"));
  }

  const { connection } = /** @type {any} */ (navigator);
  const come = new Promise((done) => addEventListener("load", () => setTimeout(done, WAIT)));
  const soon = (act) => void (connection?.saveData || come.then(act));

  // --- keys, and fingers

  const TYPED = "input, textarea, select, [contenteditable], [role=slider], [role=radio]";
  const inside = (event, css) =>
    event.composedPath().some((one) => one instanceof Element && one.matches(css));

  addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const held = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (!by || held || event.defaultPrevented || inside(event, TYPED)) return;
    step(by);
  });
  const step = (by) => {
    if (by < 0 || !buttons[now].disabled) go(now + by);
  };

  let start; // where a finger was put down
  addEventListener("touchstart", (event) => {
    const [touch, ...others] = event.touches;
    const path = event.composedPath().filter((one) => one instanceof Element);
    const wider = path.filter((one) => one.scrollWidth > one.clientWidth + 1);
    const scrolls = wider.some((one) => /auto|scroll/.test(getComputedStyle(one).overflowX));
    const own = scrolls || inside(event, `${TYPED}, canvas`);
    start = own || others.length ? undefined : touch;
  });
  addEventListener("touchend", ({ changedTouches: [end] }) => {
    const [across, down] = start
      ? [end.clientX - start.clientX, end.clientY - start.clientY]
      : [0, 0];
    start = undefined;
    if (Math.abs(across) > SWIPE && Math.abs(across) > 2 * Math.abs(down))
      step(across < 0 ? 1 : -1);
  });

  addEventListener("beforeunload", (event) => {
    const [own] = screens.at(-1).querySelectorAll(".tl-widget");
    if (/** @type {any} */ (own)?.model.get("inputs").steps) event.preventDefault(); // it would go
  });
  addEventListener("hashchange", show);
  addEventListener("load", () => {
    // an answer of before, which progress.js has marked, is open again with what it has led to
    document.querySelectorAll(".predict .chosen").forEach((one) => one.setAttribute("open", ""));
  });
  show();
}
