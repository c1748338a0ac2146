// What a reader has read and answered: kept in this browser alone, and as a file if they ask for
// one. Nothing is sent.

const KEY = "road-to-gpt";
const READ = 1500; // ms in the middle of the screen: then a section counts as visited

/**
 * @typedef {{ sections: string[], of: number, answers: Record<string, number[]> }} Chapter
 * @typedef {{ version: 1, chapters: Record<string, Chapter>, last?: Record<string, string> }} State
 */

/** Chapters that had another number when this state, or this file, was kept.
 * @type {Record<string, string>} */
const RENAMED = {
  "13_inside_gpt": "15_inside_gpt",
  "14_generation": "13_generation",
  "15_kv_cache": "14_kv_cache",
};

let kept = localStorage instanceof Storage; // or else layout.html has put another in its place
/** @type {State} */
let memory = { version: 1, chapters: {} };

/** @returns {State} */
function load() {
  try {
    const stored = localStorage.getItem(KEY);
    if (stored) memory = checked(JSON.parse(stored));
  } catch {
    // none, or one that cannot be read: it starts empty
  }
  return memory;
}

/** Change the state, which another tab may have changed meanwhile, and show it.
 * @param {(state: State) => void} change */
function keep(change) {
  const state = load();
  change(state);
  try {
    localStorage.setItem(KEY, JSON.stringify(state));
  } catch {
    kept = false;
  }
  show();
}

/** The state if it is one, under today's names; a file may hold anything.
 * @returns {State} */
function checked(found) {
  const all = (list, kind) => Array.isArray(list) && list.every((item) => typeof item === kind);
  const right =
    found?.version === 1 &&
    typeof found.chapters === "object" &&
    Object.values(found.chapters ?? [null]).every(
      (one) =>
        all(one?.sections, "string") &&
        typeof one.of === "number" &&
        Object.values(one.answers ?? [null]).every((opened) => all(opened, "number")),
    );
  if (!right) throw new Error("it is not a progress file of this course");
  const today = (name) => RENAMED[name] ?? name;
  const chapters = Object.entries(found.chapters).map(([name, one]) => [today(name), one]);
  found.chapters = Object.fromEntries(chapters);
  if (found.last) found.last.chapter = today(found.last.chapter);
  return found;
}

const article = document.querySelector(".bd-article > section");
const stem = location.pathname
  .split("/")
  .pop()
  .replace(/\.html$/, "");
const sections = [
  .../** @type {NodeListOf<HTMLElement>} */ (
    document.querySelectorAll(".bd-article > section > section")
  ),
].filter((section) => !section.id.startsWith("papers"));
const isChapter = document.querySelector(`li[data-chapter="${stem}"]`) !== null;

/** @param {State} state @returns {Chapter} */
const chapterOf = (state) => (state.chapters[stem] ??= { sections: [], of: 0, answers: {} });
const headingOf = (el) => el.querySelector("h1, h2").textContent.replace(/#$/, "").trim();

// ------------------------------------------------------------ sections that have been read

const waiting = new Map();
function visited(section) {
  keep((state) => {
    const chapter = chapterOf(state);
    chapter.of = sections.length;
    if (!chapter.sections.includes(section.id)) chapter.sections.push(section.id);
    const heading = headingOf(section);
    state.last = { chapter: stem, title: headingOf(article), section: section.id, heading };
  });
}
if (isChapter) {
  const middle = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        clearTimeout(waiting.get(target));
        if (isIntersecting) waiting.set(target, setTimeout(visited, READ, target));
      }
    },
    { rootMargin: "-49% 0px -49% 0px" },
  );
  for (const section of sections) middle.observe(section);
}

// ------------------------------------------------------------ questions that have been answered

const questions = [...document.querySelectorAll(".predict")].map((question) => [
  .../** @type {NodeListOf<HTMLDetailsElement>} */ (question.querySelectorAll("details")),
]);
for (const answers of questions) {
  answers.forEach((answer, i) =>
    answer.addEventListener("toggle", () => {
      if (!answer.open || document.body.dataset.printing) return;
      if (load().chapters[stem]?.answers[answer.name]?.includes(i)) return;
      keep((state) => (chapterOf(state).answers[answer.name] ??= []).push(i));
    }),
  );
}

const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;

function showAnswers(state) {
  const given = state.chapters[stem]?.answers ?? {};
  let [answered, atOnce] = [0, 0];
  for (const answers of questions) {
    const opened = given[answers[0]?.name] ?? [];
    answers.forEach((answer, i) => answer.classList.toggle("chosen", opened.includes(i)));
    if (!opened.length) continue;
    answered += 1;
    if (answers[opened[0]]?.classList.contains("right")) atOnce += 1;
  }
  const place = document.querySelector("[data-questions]");
  if (!place || !answered) return;
  const first = `${atOnce} right at the first try`;
  place.textContent = `${plural(questions.length, "question")}, ${answered} answered, ${first}`;
}

// ------------------------------------------------------------ where it is shown

const isDone = (chapter) => chapter?.of > 0 && chapter.sections.length >= chapter.of;

function sign(place, text) {
  const link = place.matches("a") ? place : (place.querySelector("a") ?? place);
  const mark = document.createElement("span");
  mark.className = "chapter-done";
  mark.textContent = "✓";
  mark.role = "img";
  mark.ariaLabel = text;
  link.append(" ", mark);
}

function show() {
  const state = load();
  for (const place of document.querySelectorAll("[data-chapter]")) {
    const chapter = state.chapters[place.getAttribute("data-chapter")];
    place.classList.toggle("begun", chapter !== undefined && !isDone(chapter));
    place.classList.toggle("done", isDone(chapter));
    if (isDone(chapter) && place instanceof HTMLElement) {
      if (!place.querySelector(".chapter-done")) sign(place, "read");
    } else {
      place.querySelector(".chapter-done")?.remove();
    }
  }
  showAnswers(state);
  showLast(state.last);
  const summary = document.querySelector("[data-progress=said]");
  if (!summary) return;
  const chapters = Object.values(state.chapters);
  const answered = chapters.reduce((sum, one) => sum + Object.keys(one.answers).length, 0);
  summary.textContent =
    `${plural(chapters.filter(isDone).length, "chapter")} read, ` +
    `${plural(answered, "question")} answered. ` +
    (kept
      ? "This is kept in this browser alone and never sent."
      : "This browser keeps nothing, so it lasts until you close the page.");
}

/** “Continue where you left off”, in each element [data-continue]. */
function showLast(last) {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (
    document.querySelectorAll("[data-continue]")
  )) {
    place.hidden = !last;
    if (!last) continue;
    const own = place instanceof HTMLAnchorElement;
    const link = own ? place : (place.querySelector("a") ?? document.createElement("a"));
    const root = document.documentElement.dataset.content_root;
    link.href = `${root}chapters/${last.chapter}.html#${last.section}`;
    link.textContent = `Continue where you left off: ${last.title}, “${last.heading}”`;
    if (!own && !link.isConnected) place.append(link);
  }
}

// ------------------------------------------------------------ as a file

const panel = document.querySelector(".progress-panel");
const statusLine = document.querySelector("[data-progress=told]");
const fileInput = /** @type {HTMLInputElement} */ (panel?.querySelector("input[type=file]"));

const actions = {
  save() {
    const file = new Blob([JSON.stringify(load(), null, 1)], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = "road-to-gpt-progress.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    statusLine.textContent = "Saved to your downloads.";
  },
  load() {
    fileInput.click();
  },
  forget() {
    memory = { version: 1, chapters: {} };
    keep((state) => Object.assign(state, { chapters: {}, last: undefined }));
    statusLine.textContent = "Forgotten.";
  },
};
panel?.addEventListener("click", ({ target }) => {
  actions[/** @type {HTMLElement} */ (target).dataset.progress]?.();
});
fileInput?.addEventListener("change", async () => {
  const [file] = fileInput.files;
  fileInput.value = "";
  try {
    const found = checked(JSON.parse(await file.text()));
    keep((state) => merge(state, found));
    statusLine.textContent = "Loaded and added to what was here.";
  } catch (error) {
    statusLine.textContent =
      `${file.name} could not be loaded: ${error.message}. ` + "Nothing has changed.";
  }
});

/** Add what is in the file to what is known here, which it does not replace. */
function merge(state, found) {
  for (const [name, chapter] of Object.entries(found.chapters)) {
    const own = (state.chapters[name] ??= { sections: [], of: chapter.of, answers: {} });
    own.sections = [...new Set([...own.sections, ...chapter.sections])];
    own.of ||= chapter.of;
    own.answers = { ...chapter.answers, ...own.answers };
  }
  state.last ??= found.last;
}

addEventListener("storage", ({ key }) => {
  if (key === KEY) show();
});
show();
