// What a reader has read and answered: shown in the page, and as a file if they ask for one.

import { checked, download, forget, isKept, keep, load, merge } from "./store.js";

const READ = 1500; // ms in the middle of the screen: then a section counts as visited

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

/** @param {import("./store.js").State} state @returns {import("./store.js").Chapter} */
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

// A mistake that was found in a widget is an answer, too, under the name of its section.
addEventListener("tl:done", (event) => {
  const { target, detail } = /** @type {CustomEvent} */ (event);
  const { id } = /** @type {Element} */ (target).closest("section") ?? {};
  if (detail?.what === "found") keep((state) => (chapterOf(state).answers[`found ${id}`] = [0]));
});

function showFound(given) {
  const found = Object.keys(given).filter((name) => name.startsWith("found "));
  for (const place of document.querySelectorAll("[data-found]"))
    place.textContent = `${found.length} of ${place.getAttribute("data-found")} found.`;
  for (const name of found)
    document.querySelectorAll(`#${name.slice(6)} > h3`).forEach((place) => sign(place, "found"));
}

/** Exercises that were solved; one that was only assembled after several tries is a half. */
function solvedOf(state) {
  const halves = Object.values(state.exercises ?? {}).reduce(
    (sum, { solved }) => sum + (solved === "whole" ? 2 : solved ? 1 : 0),
    0,
  );
  const number = `${halves === 1 ? "" : Math.floor(halves / 2)}${halves % 2 ? "½" : ""}`;
  return `${number} exercise${halves === 1 || halves === 2 ? "" : "s"}`;
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
  if (place.querySelector(".chapter-done")) return;
  const link = place.matches("a") ? place : (place.querySelector("a:not(.headerlink)") ?? place);
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
    if (isDone(chapter) && place instanceof HTMLElement) sign(place, "read");
    else place.querySelector(".chapter-done")?.remove();
  }
  showAnswers(state);
  showFound(state.chapters[stem]?.answers ?? {});
  showLast(state.last);
  const chapters = Object.values(state.chapters);
  const answered = chapters.reduce((sum, one) => sum + Object.keys(one.answers).length, 0);
  const done =
    `${plural(chapters.filter(isDone).length, "chapter")} read, ` +
    `${plural(answered, "question")} answered, ${solvedOf(state)} solved`;
  const finish = document.querySelector("[data-progress=done]");
  if (finish && answered) {
    const pieces = Object.keys(state.pieces ?? {}).length;
    finish.textContent = `So far: ${done}, ${plural(pieces, "piece")} of your file written.`;
  }
  const summary = document.querySelector("[data-progress=said]");
  if (!summary) return;
  summary.textContent =
    `${done}. ` +
    (isKept()
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
    const state = JSON.stringify(load(), null, 1);
    download("road-to-gpt-progress.json", state, "application/json");
    statusLine.textContent = "Saved to your downloads.";
  },
  load() {
    fileInput.click();
  },
  forget() {
    forget();
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

document.addEventListener("kept", show);
addEventListener("storage", show);
show();
