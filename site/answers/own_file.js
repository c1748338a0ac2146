// The reader's own my_gpt.py: the chapter's piece is written and checked here, and the file is
// shown, downloaded, and opened again.

import { download, keep, load } from "../store.js";
import { FORM, HEAD, REST, above, cut, fileOf, joined, parts } from "./pieces.js";
import { announce, el, statusLine } from "./words.js";

const NAME = "my_gpt.py";
const ERASED =
  "The file is kept in this browser alone. A browser may erase what it keeps (Safari does after " +
  "seven days without a visit), so download your file.";

/** @type {Promise<import("./pieces.js").Course> | undefined} */
let asked;

/** The course's pieces; asked for again if that failed. */
function course() {
  asked ??= fetch(new URL("pieces.json", import.meta.url)).then((answer) => answer.json());
  asked.catch(() => (asked = undefined));
  return asked;
}

const own = () => load().pieces ?? {};
const nameOf = (number) => `my_gpt/${number}`; // of the piece, among the exercises

/** What a part is called: “04 Attention scoring”.
 * @param {import("./pieces.js").Course} pieces @param {string} number */
function titleOf(pieces, number) {
  if (number === HEAD) return "The beginning";
  return number === REST ? "Also yours" : /\d\d [^:]*/.exec(pieces[number].mark)[0];
}

/** @param {HTMLElement} place  where data-piece says the chapter */
export function ownFile(place) {
  const number = place.dataset.piece;
  const said = statusLine();
  const form = el("div");
  const view = el("div", { hidden: true });
  const input = el("input", { type: "file", accept: ".py", hidden: true, onchange: open });
  const button = (textContent, onclick) => el("button", { type: "button", textContent, onclick });
  const write = button("Write this piece", showForm);
  const show = button("Show my file", () => {
    view.hidden = !view.hidden;
    showFile();
  });
  show.setAttribute("aria-expanded", "false");
  const buttons = [write, show, button(`Open a ${NAME}`, () => input.click())];
  place.replaceChildren(
    el("div", { className: "answer-buttons" }, ...buttons),
    ...[input, form, said, view, el("p", { className: "soft", textContent: ERASED })],
  );
  place.hidden = false;
  document.addEventListener("kept", showFile);

  const link = place.nextElementSibling?.querySelector("a");
  link?.addEventListener("click", (event) => {
    if (!Object.keys(own()).length) return; // the link has the course's file
    event.preventDefault();
    course().then(
      (pieces) => download(NAME, fileOf(own(), pieces, number), "text/x-python"),
      failed,
    );
  });

  const failed = () =>
    announce(said, "The course's pieces could not be fetched. Is there a connection? Press again.");

  async function showForm() {
    try {
      const [{ hashOf, writeForm }, pieces] = await Promise.all([import("./write.js"), course()]);
      place.dataset.starter = pieces[number].starter;
      const task = hashOf(pieces[number].starter);
      const kept = () => ({
        task,
        draft: own()[number]?.text,
        ...load().exercises?.[nameOf(number)],
      });
      const exercise = {
        ...{ said, kept, tried: () => 0, next: () => [] },
        keep: (part) =>
          keep((state) => Object.assign(((state.exercises ??= {})[nameOf(number)] ??= {}), part)),
        judge: (source) => verdictOn(pieces, source),
      };
      form.replaceChildren(writeForm(place, nameOf(number), exercise));
      write.hidden = true;
      form.querySelector("textarea").focus();
    } catch {
      failed();
    }
  }

  /** The verdict on the piece behind those above it; a right one goes into the file.
   * @param {import("./pieces.js").Course} pieces @param {string} source */
  async function verdictOn(pieces, source) {
    const { ask } = await import("./python.js");
    const verdict = await ask("check_piece", number, source, above(own(), pieces, number));
    if (verdict.kind === "right") {
      keep((state) => ((state.pieces ??= {})[number] = { text: source }));
      verdict.message += ` It is in your ${NAME} now.`;
    }
    return verdict;
  }

  async function showFile() {
    show.setAttribute("aria-expanded", String(!view.hidden));
    if (view.hidden) return;
    const pieces = await course().catch(failed);
    if (!pieces) return;
    const there = parts(own(), pieces, number);
    const rows = there.flatMap((part) => {
      const whose = `${titleOf(pieces, part.number)}: ${part.yours ? "yours" : "the course's"}`;
      const pre = el("pre", { className: "given", textContent: part.text.trimEnd(), tabIndex: 0 });
      return [el("p", { className: "soft", textContent: whose }), pre];
    });
    const missing = Object.keys(pieces)
      .filter((one) => !there.some((part) => part.number === one))
      .sort()
      .map((one) => titleOf(pieces, one));
    if (missing.length) {
      const what = `Still missing: ${missing.join(", ")}.`;
      rows.push(el("p", { className: "soft", textContent: what }));
    }
    const copy = button("Copy the file", () =>
      navigator.clipboard.writeText(joined(there)).then(
        () => announce(said, "Copied."),
        () => announce(said, "This browser does not let a page copy: download the file."),
      ),
    );
    view.replaceChildren(...rows, el("div", { className: "answer-buttons" }, copy));
  }

  async function open() {
    const [file] = input.files;
    input.value = "";
    let text;
    const pieces = await course().catch(failed);
    if (!pieces) return;
    try {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      text = decoder.decode(await file.arrayBuffer());
    } catch {
      announce(said, `${file.name} is no UTF-8: save it as UTF-8. Nothing has changed.`);
      return;
    }
    const found = cut(text, pieces);
    const before = structuredClone(load());
    keep((state) => {
      state.pieces = { ...state.pieces, ...found };
      for (const one in found) delete state.exercises?.[nameOf(one)]?.draft;
    });
    const undo = button("Undo", () => {
      keep((state) => {
        state.pieces = before.pieces;
        for (const one in found) {
          const draft = before.exercises?.[nameOf(one)]?.draft;
          if (draft !== undefined) state.exercises[nameOf(one)].draft = draft;
        }
      });
      announce(said, "Your file is as it was before.");
      if (write.hidden) showForm();
    });
    const yours = Object.keys(found).filter((one) => one !== FORM);
    const names = yours.sort().map((one) => titleOf(pieces, one));
    const what = names.length
      ? `is yours now: ${names.join(", ")}`
      : "has only the course's pieces";
    announce(said, `${file.name} ${what}. `, undo);
    if (write.hidden) showForm();
  }
}
