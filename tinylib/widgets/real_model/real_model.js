import { ask, halt } from "../../live/page/trainer.js";
import { columnHeads, namedRow, results } from "../../live/ui/boxes.js";
import { candidateLine, candidateList, fillCandidate } from "../../live/ui/candidates.js";
import { choice, offers, redraw } from "../../live/ui/controls.js";
import { AS_IS, AS_TYPED, h, setAttribute, setHeat, setText } from "../../live/ui/dom.js";
import { shaded } from "../../live/ui/look.js";
import { percentOf, times, whole } from "../../live/ui/numbers.js";
import { live } from "../../live/ui/parts.js";
import { fillList, freeText } from "../../live/ui/sentences.js";
import { heats, nuclei, TEXT_STYLE } from "../../live/ui/texts.js";

const PAUSE = 250; // ms after the last key, before the text is read
const LITTLE = 2; // GB: a device with less memory is not offered the model
const STORE = "tinylib-model"; // where llama_file.js keeps what has come
const [TEXT, CHAT, LENS] = [0, 1, 2]; // what is done with the model
const MODES = ["text", "chat", "lens"];
const HERE =
  "Computed here. 80 lines of JavaScript and one product in WebAssembly work on the file's own " +
  "4‑bit rows; tests hold it to PyTorch.";

// ---------------------------------------------------------------- who answers

/** Requests, and their answers: from the page's worker, or from torch in the kernel. */
function answering(model, inPage, stem) {
  if (inPage) return { ask: ask.bind(null, stem), halt: halt.bind(null, stem) };
  const waiting = new Map(); // number of a request -> what to do with its answers
  model.on("msg:custom", ({ number, ...answer }) => waiting.get(number)?.(answer));
  return {
    halt: () => model.send({ act: "halt" }),
    ask: (message, progress) =>
      new Promise((resolve, reject) => {
        const number = Math.random(); // a kernel's widget may have several views
        waiting.set(number, ({ part, result, error }) => {
          if (part) return progress?.(part);
          waiting.delete(number);
          return error ? reject(Object.assign(new Error(error.message), error)) : resolve(result);
        });
        model.send({ ...message, number });
      }),
  };
}

/** What the parts of one widget share. */
function sessionOf(widget) {
  if (widget.session) return widget.session;
  const { model, spec } = widget;
  const inPage = Boolean(model.get("link_id"));
  widget.session = {
    ...answering(model, inPage, spec.stem),
    ...{ inPage, ready: !inPage, writing: false, mode: TEXT, stored: spec.facts.stored },
    spoken: h("p.spoken-only", { role: "status" }),
    light(_phase) {}, // the lines of code that run now
    fail({ message, why = message, remedy = "", lost }) {
      if (lost) widget.session.ready = false;
      if (lost) remedy = "Check the connection, then load the model again.";
      widget.announce(`${why[0].toUpperCase()}${why.slice(1).replace(/\.?$/, ".")} ${remedy}`);
      widget.repaint();
    },
  };
  if (inPage) model.set("where", ""); // how its stored answers came about stands below
  return widget.session;
}

/** Asks for what belongs to the newest text; what is under way for an older one is halted. */
function newest(session, act, show) {
  let [wanted, done, running, timer] = [session.stored.text, session.stored.text, false, 0];
  const run = async () => {
    running = true;
    session.light("read");
    while (done !== wanted) {
      const text = wanted;
      try {
        const result = await session.ask({ act, text });
        if (!result) continue; // it was halted
        show(result, text);
        done = text;
      } catch (error) {
        done = text;
        if (error.lost) done = wanted = "";
        session.fail(error);
      }
    }
    session.light("");
    running = false;
  };
  return (text) => {
    if (text === wanted || !session.ready) return;
    wanted = text;
    clearTimeout(timer);
    if (running || session.writing) session.halt();
    if (!running) timer = setTimeout(run, PAUSE);
  };
}

// ---------------------------------------------------------------- the model

/** Loads the model at the reader's click, says how far it is, and forgets it. */
function loader(widget) {
  const session = sessionOf(widget);
  const { file } = widget.spec.facts;
  const address = widget.model.get("gguf");
  const memory = /** @type {any} */ (navigator).deviceMemory;
  const mb = (bytes) => `${Math.round(bytes / 1e6)} MB`;
  const refused = !address
    ? "This copy of the site was built without the model, so it has only the answers below. With " +
      "a network, “make site” fetches the model (93 MB) and builds the site with it."
    : memory < LITTLE
      ? `This device has about ${memory} GB of memory, and the model needs 0.4 GB, so you see ` +
        "only the answers below. On a larger device you can ask the model yourself."
      : "";
  let rest =
    refused ||
    "The answers below were computed in advance. To ask the model yourself, load it: " +
      `one download of ${mb(file.size)}, which stays in this browser, as does what you type.`;
  let [loading, stopped, kept] = [false, false, false];
  const note = h("p.note", { tabindex: "-1" });
  const go = h("button.main", { click: () => load() });
  const halting = () => {
    stopped = true;
    session.halt();
  };
  const stop = h("button.main", { click: halting }, "Stop");
  const forget = h("button", { click: () => drop() }, "Forget it");
  const bar = h("progress", { max: String(file.size), "aria-label": "the model, loaded so far" });
  const amount = h("span.amount");
  const under = h("div.under", amount, bar);
  const show = (text) => {
    const focused = [go, stop, forget].includes(note.getRootNode().activeElement);
    go.hidden = loading || session.ready || Boolean(refused);
    stop.hidden = under.hidden = !loading;
    forget.hidden = loading || !kept;
    setText(go, kept ? "Open the model" : `Load the model (${mb(file.size)})`);
    setText(note, text);
    if (focused) [stop, go, note].find(({ hidden }) => !hidden).focus();
  };
  async function load() {
    [loading, stopped] = [true, false];
    widget.announce("");
    show("The model is on its way.");
    setText(session.spoken, "The model is on its way.");
    try {
      const message = { act: "open", address, ...file };
      const opened = await session.ask(message, ({ stage, loaded, size }) => {
        bar.value = Math.min(loaded, size);
        const far = `${mb(bar.value).replace(" MB", "")} of ${mb(size)}`;
        setText(amount, { check: "It is checked …", open: "It is opened …" }[stage] ?? far);
      });
      [session.ready, kept] = [true, opened.kept];
      const next = kept ? "kept in this browser." : "not kept in this browser.";
      rest = `The model is here, and ${next} Ask it something.`;
      setText(session.spoken, rest);
      widget.model.set("where", HERE);
    } catch (error) {
      if (stopped) rest = `${error.why}. ${error.remedy ?? ""}`;
      else session.fail(error);
    }
    loading = false;
    widget.repaint();
  }
  async function drop() {
    await session.ask({ act: "forget" }).catch(session.fail);
    kept = false;
    rest = "The model is no longer kept in this browser.";
    widget.repaint();
  }
  const found = async () => {
    kept = (await globalThis.caches?.has(STORE)) && !refused;
    if (kept) rest = "The model, or a part of it, is kept in this browser: open it to ask it.";
    show(rest);
  };
  if (session.inPage) found().catch(() => {}); // a browser without a store has nothing kept
  return {
    element: h("div.model", { hidden: !session.inPage }, note, go, stop, forget, under),
    update: () => loading || show(rest),
  };
}

/** What is done with the model; `panels` are the parts that belong to each. */
function modes(widget, panels) {
  const session = sessionOf(widget);
  const names = ["A text", "A chat", "Block by block"];
  const choose = (mode) => {
    session.mode = MODES[mode] ? mode : TEXT;
    widget.announce(""); // what was said of the other one
    widget.repaint();
  };
  const read = () => session.mode;
  const pick = choice(widget, "mode", "what to do with the model", names, { read, choose });
  return {
    element: h("div.modes", pick.element, session.spoken),
    reset: () => choose(TEXT),
    saved: () => ({ mode: session.mode }),
    restore: ({ mode }) => choose(mode),
    update(inputs) {
      pick.update(inputs);
      for (const part of panels.flat()) part.element.hidden = !panels[session.mode].includes(part);
    },
  };
}

/** The lines of the library that compute what is shown; those that run now are lit. */
function codeLines(widget) {
  const session = sessionOf(widget);
  const list = h("ol.lines", AS_IS);
  session.light = (phase) => {
    for (const li of list.children) li.classList.toggle("lit", li.dataset.when === phase);
  };
  const open = matchMedia("(min-width: 60rem)").matches;
  const make = () => h("li", h("span"), " ", h("code"));
  return {
    element: h("details.folded", { open }, h("summary", "The code that computes it"), list),
    update: () =>
      fillList(
        list,
        widget.spec.facts.code[MODES[session.mode]],
        make,
        (li, [when, name, line]) => {
          li.dataset.when = when;
          setText(li.children[0], name);
          setText(li.children[1], line);
        },
      ),
  };
}

// ---------------------------------------------------------------- a text, and what comes next

const UNSEEN = { " ": "␣", "\n": "↵", "\t": "⇥" };
const codePoint = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
/** A token on paper: what is not seen has a sign. */
const drawn = (piece) =>
  isBytes(piece) ? piece : piece.replace(/[\s\p{C}]/gu, (char) => UNSEEN[char] ?? codePoint(char));
/** Bytes that are no whole character: nobody can type them. */
const isBytes = (piece) => /^[89A-F][0-9A-F]( [0-9A-F]{2})*$/.test(piece);

/** The likeliest next tokens, each of which a click writes; and the tokens of the text itself. */
function nextTokens(widget) {
  const session = sessionOf(widget);
  let [seen, of] = [session.stored.next, session.stored.text];
  const count = h("span.label");
  const chips = h("ol.chips", { ...AS_IS, "aria-label": "the tokens of your text" });
  const list = candidateList("the likeliest next tokens");
  const note = h("p.note.entropy");
  const click = (place) =>
    of === widget.inputs.text &&
    widget.edit(Symbol("next"), (next) => {
      next.text += seen.best[place].piece;
    });
  const make = (place) =>
    h("li", candidateLine("button", { "data-input": "text", click: () => click(place) }, {}));
  const follow = newest(session, "next", (result, text) => {
    [seen, of] = [result, text];
    widget.repaint();
  });
  const about = () => {
    const share = percentOf(seen.best.reduce((sum, { p }) => sum + p, 0));
    const n = 2 ** seen.bits;
    return (
      `Entropy of all probabilities: ${seen.bits.toFixed(1)} bits, like a choice among ` +
      `${n < 10 ? n.toFixed(1) : whole(Math.round(n))} equally likely tokens. These have ${share}.`
    );
  };
  const cut = results("column", count, chips);
  return {
    cut: { element: cut },
    element: results(
      "column",
      h("span.label", "What comes next? Click one to write it"),
      list,
      note,
    ),
    update({ text }) {
      if (session.mode !== CHAT) follow(text);
      setText(count, `${seen.pieces.length} tokens`);
      fillList(chips, seen.pieces, "li", (li, piece) => {
        setText(li, drawn(piece));
        setAttribute(li, "class", isBytes(piece) ? "bytes" : "");
      });
      fillList(list, seen.best, make, (li, { id, piece, p }) => {
        const special = id < widget.spec.facts.signs || isBytes(piece);
        fillCandidate(li.firstChild, drawn(piece), [p], [percentOf(p)], special);
        li.firstChild.disabled = special || !session.ready;
      });
      const older = `This is what follows “${of}”. Load the model to see what follows your text.`;
      setText(note, of === text ? about() : session.ready ? "" : older);
      for (const box of [cut, list]) box.classList.toggle("waiting", of !== text);
    },
  };
}

const ENDED = {
  end: "It came to an end.",
  most: "That is the most at once.",
  halted: "You stopped it.",
};

/** How fast it was. Of what was written, the first token was ready when all was read. */
function pace({ ended, read_ms, written, write_ms }) {
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  const rate = `, ${((1000 * (written - 1)) / write_ms).toFixed(1)} a second`;
  const wrote = `wrote ${written} tokens in ${seconds(write_ms)}${write_ms > 0 ? rate : ""}`;
  return `Read for ${seconds(read_ms)}, then ${wrote}. ${ENDED[ended]}`;
}

/**
 * Buttons that let the model write, and stop it. `request()` is what to write after, if anything;
 * `show(text)` gets what is written so far, and null if nothing will be.
 */
function pen(widget, label, request, show) {
  const session = sessionOf(widget);
  const note = h("p.note.pace");
  const go = h("button.main", { click: () => write() }, label);
  const stop = h("button.main", { hidden: true, click: () => session.halt() }, "Stop");
  const swap = (writing) => {
    const focused = [go, stop].includes(go.getRootNode().activeElement);
    [session.writing, go.hidden, stop.hidden] = [writing, writing, !writing];
    if (focused) (writing ? stop : go).focus();
    session.light("");
  };
  async function write() {
    const { temperature, p, seed } = widget.inputs;
    const most = widget.spec.facts.most[MODES[session.mode]];
    const after = session.ready && !session.writing && request();
    if (!after) return;
    swap(true);
    setText(session.spoken, "The model writes …");
    try {
      const message = { act: "write", most, temperature, top_p: p, seed, ...after };
      const result = await session.ask(message, ({ text, reading }) => {
        session.light(reading ? "read" : "write");
        setText(
          note,
          reading ? `It reads: ${reading[0]} of ${reading[1]} tokens …` : "It writes …",
        );
        if (text) show(text);
      });
      show(result.ended === "halted" ? result.text || null : result.text);
      setText(note, pace(result));
      setText(session.spoken, `It has written: ${result.text}`);
    } catch (error) {
      for (const element of [note, session.spoken]) setText(element, "");
      show(null);
      session.fail(error);
    }
    swap(false);
    widget.repaint();
  }
  return { go, stop, note, write, update: () => void (go.disabled = !session.ready) };
}

const paperOf = (label, ...content) =>
  h("div.text.paper", { ...AS_IS, role: "group", tabindex: "0", "aria-label": label }, ...content);

/** The text, written on. */
function writer(widget) {
  const session = sessionOf(widget);
  const first = () => [session.stored.text, session.stored.write.text];
  let [after, text] = first();
  const [given, own] = [h("span.soft"), h("b.own")];
  const paper = paperOf("what the model writes", given, own);
  const add = h("button", { "data-input": "text" }, "Add it to the text");
  const paint = () => {
    for (const [span, content] of [
      [given, after],
      [own, text],
    ])
      setText(span, content);
    const older = after !== widget.inputs.text;
    paper.classList.toggle("waiting", older);
    add.disabled = older || !text || session.writing || !session.ready;
  };
  add.addEventListener("click", () =>
    widget.edit(Symbol("add"), (next) => {
      next.text += text;
    }),
  );
  const request = () => {
    [after, text] = [widget.inputs.text, ""];
    paint();
    return { text: after };
  };
  const writes = pen(widget, "Write on", request, (written) => {
    text = written ?? "";
    paint();
  });
  return {
    element: results("column", h("div.onward", writes.go, writes.stop, add), paper, writes.note),
    reset() {
      [after, text] = first();
      setText(writes.note, "");
    },
    update() {
      writes.update();
      paint();
    },
  };
}

// ---------------------------------------------------------------- a chat

const ASKS = { "aria-label": "your question", placeholder: "Ask a question" };
const SPEAKERS = { user: "You", assistant: "SmolLM2" };

/** The dialogue, a box to ask, and what the model reads of it. */
function chat(widget) {
  const session = sessionOf(widget);
  const stored = session.stored.dialogue.slice(1); // an example, until the model is here
  let turns = stored;
  const list = h("ol.turns", { "aria-label": "the dialogue", tabindex: "0" });
  const read = paperOf("what the model reads");
  const box = h("input.line", { ...AS_TYPED, ...ASKS, type: "text" });
  box.addEventListener("keydown", ({ key }) => key === "Enter" && writes.write());
  const paint = () => {
    fillList(
      list,
      turns,
      () => h("li", h("b"), h("span")),
      (li, [role, text]) => {
        setAttribute(li, "class", role);
        setText(li.children[0], SPEAKERS[role]);
        setText(li.children[1], text || "…");
      },
    );
    const all = [["system", widget.inputs.system], ...turns];
    if (all.at(-1)[0] !== "assistant") all.push(["assistant", ""]);
    const pieces = all.flatMap(([role, text]) => [
      "<|im_start|>",
      `${role}\n${text}`,
      "<|im_end|>",
      "\n",
    ]);
    if (session.writing || turns.at(-1)?.[1] === "" || !turns.length) pieces.splice(-2);
    fillList(read, pieces, "span", (span, piece) => {
      setText(span, piece);
      setAttribute(span, "class", piece.startsWith("<|im_") ? "sign" : "");
    });
    for (const paper of [list, read]) paper.scrollTop = paper.scrollHeight;
  };
  const request = () => {
    const question = box.value.trim();
    if (!question) return widget.announce("There is no question yet: type one.", "hint");
    box.value = "";
    turns.push(["user", question]);
    const dialogue = [["system", widget.inputs.system], ...turns];
    turns.push(["assistant", ""]);
    paint();
    return { dialogue };
  };
  const writes = pen(widget, "Ask", request, (text) => {
    if (text === null) box.value = turns.splice(-2)[0][1];
    else turns.at(-1)[1] = text;
    paint();
  });
  const begin = (dialogue) => {
    turns = dialogue;
    setText(writes.note, "");
    widget.repaint();
  };
  const fresh = h("button", { click: () => begin([]) }, "New chat");
  const system = freeText(widget, "system", "The system's line, which the model reads first", 2);
  const asking = h("div.onward", box, writes.go, writes.stop, fresh);
  const right = h("div.column", h("span.label", "What the model reads, and goes on with"), read);
  return {
    element: h(
      "div.sides",
      h("div.side", results("column", list, writes.note), asking),
      h("div.side", system.element, right),
    ),
    reset() {
      system.reset();
      begin(session.ready ? [] : stored);
    },
    update(inputs) {
      if (session.ready && turns === stored) turns = [];
      system.update(inputs);
      writes.update();
      fresh.disabled = !session.ready || session.writing || !turns.length;
      box.disabled = !session.ready;
      paint();
    },
  };
}

// ---------------------------------------------------------------- block by block

/** What the stream of the last token would predict after each block. */
function lens(widget) {
  const session = sessionOf(widget);
  let [rows, of] = [session.stored.lens.rows, session.stored.text];
  const body = h("tbody");
  const table = h(
    "table.lens",
    h("caption", "If the model ended after this block, it would predict"),
    columnHeads(null, "likeliest", "second", "third"),
    body,
  );
  const follow = newest(session, "lens", (result, text) => {
    [rows, of] = [result.rows, text];
    widget.repaint();
  });
  const cell = () => [h("div", h("span", AS_IS), " ", h("small"))];
  const make = (i) => {
    const layer = rows.length - 1 - i; // the last block on top: what the model really predicts
    return namedRow([layer ? `block ${layer - 1}` : "embedding"], times(3, cell));
  };
  return {
    element: results("column", table),
    update({ text }) {
      if (session.mode === LENS) follow(text);
      fillList(body, [...rows].reverse(), make, (tr, { best }) =>
        best.forEach(({ piece, p }, i) => {
          const [name, share] = tr.cells[i + 1].firstChild.children;
          setText(name, drawn(piece));
          setText(share, p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`);
          setHeat(tr.cells[i + 1], p);
        }),
      );
      table.classList.toggle("waiting", of !== text);
    },
  };
}

/** Texts to begin with. */
const examples = (widget) => offers(widget, "text", "or take:", widget.spec.facts.offered);

/** The seed of the random numbers, and a button that takes the next one. */
function luck(widget) {
  const name = h("span");
  return {
    element: h("div.onward", name, redraw(widget, "Another seed")),
    shows: "inputs",
    update: ({ seed }) => setText(name, `seed ${seed}`),
  };
}

/** What it draws by when it writes: without a model these would change nothing. */
function drawing(widget, ...knobs) {
  const session = sessionOf(widget);
  const why = h("p.note", "Load the model: these say how it draws what it writes.");
  const row = h("div.row", ...knobs.map((part) => part.element));
  const element = h("fieldset.drawing", row, why);
  return {
    element,
    update() {
      /** @type {HTMLFieldSetElement} */ (element).disabled = !session.ready;
      why.hidden = session.ready;
    },
  };
}
drawing.style = `
.drawing { border: 0; margin: 0; padding: 0; min-width: 0; }
.drawing:disabled > .row { opacity: .7; }
`;

loader.style = `
.model { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
.model .note { max-width: none; outline: none; flex: 1 1 20rem; }
.onward { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center;
  font-size: var(--size-note); }
.main { min-width: 5.75rem; }
.under { flex: 1 0 100%; font-size: var(--size-note); }
.modes .of { display: none; }
`;
codeLines.style = `
.folded summary { cursor: pointer; font-size: var(--size-note); font-weight: 600; }
.lines { list-style: none; margin: 4px 0 0; padding: 0; }
.lines li { font-size: var(--size-small); color: var(--soft); overflow-wrap: anywhere; }
.lines span::after { content: ":"; }
.lines code { font: var(--size-small)/1.5 var(--mono); color: var(--text); padding: 1px 5px;
  border-radius: 4px; }
.lines .lit code { background: color-mix(in oklab, var(--ground), var(--accent) 22%); }
`;
nextTokens.style = `${candidateList.style}
.candidate { grid-template-columns: minmax(5.5rem, 8rem) 1fr 3.5rem; min-height: 1.5625rem; }
.chips { list-style: none; display: flex; flex-wrap: wrap; gap: 4px; margin: 0; padding: 0; }
.chips li { border: 1px solid var(--line); border-radius: 4px; padding: 0 4px;
  font: var(--size-note)/1.45 var(--mono); overflow-wrap: anywhere; }
.chips .bytes { border-style: dashed; }
.entropy { min-height: 3.2em; }
`;
writer.style = `${freeText.style}${TEXT_STYLE}
.paper { cursor: auto; min-height: 3.75rem; max-height: 12rem; overflow-y: auto; line-height: 1.5; }
.own { font-weight: 550; }
.pace:empty { display: none; }
`;
chat.style = `
.turns { list-style: none; margin: 0; padding: 0; display: grid; gap: 8px; max-height: 20rem;
  overflow-y: auto; align-content: start; }
.turns li { border: 1px solid var(--line); border-radius: 8px; padding: 4px 10px; }
.turns b { display: block; font-size: var(--size-small); color: var(--soft); }
.turns span { white-space: pre-wrap; overflow-wrap: anywhere; }
.turns .user { margin-left: 2rem;
  background: color-mix(in oklab, var(--ground), var(--accent) 8%); }
.turns .assistant { margin-right: 2rem; }
.onward .line { flex: 1 1 100%; border-color: var(--line); }
.sign { font: var(--size-small)/1.4 var(--mono); color: var(--soft); padding: 0 3px;
  border: 1px dashed var(--line); border-radius: 4px; }
`;
lens.style = `
.lens { width: 100%; table-layout: fixed; }
.lens caption { white-space: normal; }
.lens thead :first-child { width: 4.75rem; }
.lens tbody td { border: 1px solid var(--ground); padding: 1px 6px; font-size: var(--size-small);
  ${shaded("probability")} }
.lens td div { display: flex; justify-content: space-between; gap: 4px; white-space: nowrap; }
.lens td span { overflow: hidden; text-overflow: ellipsis; }
.lens small { font-size: inherit; }
@container widget (max-width: 37.5rem) { /* there is room for the share of the likeliest */
  .lens thead :nth-child(2) { width: 38%; }
  .lens td + td small { display: none; }
  .lens tbody td { padding: 1px 3px; }
}
`;

export default live(
  "SmolLM2, a language model of 135 million parameters",
  (ui) => {
    const [model, next, written] = [ui.use(loader), ui.use(nextTokens), ui.use(writer)];
    const [layers, talk] = [ui.use(lens), ui.use(chat)];
    const own = ui.column(ui.use(freeText, "text", "Your text", 2), ui.use(examples), next.cut);
    const both = ui.sides(ui.boxed("side", own, written), ui.boxed("side", next, layers));
    const knobs = ui.use(
      drawing,
      ui.knob("temperature", "temperature", { step: 0.05, note: heats }),
      ui.knob("p", "top-p", { step: 0.01, note: nuclei }),
      ui.use(luck),
    );
    const panels = [
      [both, written, next, knobs],
      [talk, knobs],
      [both, layers],
    ];
    return [model, ui.use(modes, panels), both, talk, knobs, ui.use(codeLines)];
  },
  { wide: true },
);
