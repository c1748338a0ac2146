// A real language model in a Web Worker. Each request has a `number`, which its answers have, too:
// { part } while it is at work, and { result } or { error: { message, why, remedy } } at the end.
//   open { address, size, sha256 } -> { kept }; parts { stage: fetch | check | open, loaded, size }
//   next { text | dialogue } -> { ids, pieces, best, bits }
//   write { text | dialogue, most, temperature, top_p, seed }
//     -> { text, ended: end | most | halted, read_ms, written, write_ms }; parts { text, p }
//   lens { text | dialogue } -> { pieces, rows: [{ block, best }] }
//   forget -> nothing: the file is kept no longer
// While a text is read there are parts { reading: [done, of] }. `halt` ends all that is asked, and
// has no answer of its own; next and lens then answer null.

import { numbers } from "./chance.js";
import { assertRunnable } from "./engine.js";
import { configOf, readHeader } from "./gguf.js";
import { createLlama, softmax } from "./llama.js";
import { because, fetchFile, forgetFiles } from "./llama_file.js";
import { LlamaTokens } from "./llama_tokens.js";
import { FILE_START, matricesIn, memoryFor, MOST_AT_ONCE, ROOM } from "./matrices.js";

const [LIKELIEST, OF_LENS] = [10, 3]; // tokens that are named
const REPORT_MS = 100; // between two reports of a download

/** @type {any} the model: { llama, tokens, read: the ids that it has read, sha256, kept } */
let opened;
let turn = Promise.resolve(); // requests are answered one after the other
const running = new Set(); // what `halt` ends: an AbortController for each request

const acts = { open, next, write, lens, forget };

onmessage = ({ data }) => {
  if (data.act === "halt") return running.forEach((control) => control.abort());
  const { number } = data;
  const control = new AbortController();
  running.add(control);
  const part = (some) => postMessage({ number, part: some });
  const answer = async () => {
    try {
      postMessage({ number, result: await acts[data.act](data, part, control.signal) });
    } catch (thrown) {
      const { message, why, remedy } = isMemory(thrown) ? NO_MEMORY : thrown;
      postMessage({ number, error: { message, why, remedy } });
    }
    running.delete(control);
  };
  turn = turn.then(answer);
};

const isMemory = (error) => !error.why && (error instanceof RangeError || /memory/i.test(error));
const NO_MEMORY = {
  message: "no memory",
  why: "the browser has no memory left for the model, which needs about 350 MB",
  remedy: "Close other tabs and try again, or use the notebook.",
};

async function open({ address, size, sha256 }, part, signal) {
  if (opened?.sha256 === sha256) return { kept: opened.kept };
  opened = undefined;
  assertRunnable();
  let reported = 0;
  const report = (stage, loaded) => {
    if (stage === "fetch" && loaded < size && performance.now() - reported < REPORT_MS) return;
    reported = performance.now();
    part({ stage, loaded, size });
  };
  const makeRoom = () => {
    const memory = memoryFor(size);
    return { memory, bytes: new Uint8Array(memory.buffer, FILE_START, size) };
  };
  const { room, kept } = await fetchFile({ address, size, sha256 }, makeRoom, report, signal);
  report("open", size);
  const answer = await fetch(new URL("product.wasm", import.meta.url)).catch((error) => error);
  if (!answer.ok) throw because("its product could not be loaded", "Try again later.", answer);
  const file = readHeader(room.bytes);
  const [config, wasm] = [configOf(file), await answer.arrayBuffer()];
  const matrices = await matricesIn(room.memory, wasm, file.tensors, size, config);
  const llama = createLlama(config, matrices);
  opened = { llama, tokens: new LlamaTokens(file.info), read: [], sha256, kept };
  return { kept };
}

async function forget() {
  if (opened) opened.kept = false;
  await forgetFiles();
}

function idsOf({ text, dialogue }) {
  if (!opened) throw because("the model is not loaded yet", "Load it first.");
  const ids = dialogue ? opened.tokens.idsOfDialogue(dialogue) : opened.tokens.ids(text);
  if (!ids.length) throw because("there is no text", "Type a word.");
  if (ids.length >= ROOM)
    throw because(`the text has ${ids.length} tokens; there is room for ${ROOM}`, "Shorten it.");
  return ids;
}

/** The last token's x, or null after `halt`. What the text before began with, too, is not read. */
async function read(ids, part, signal, watch = undefined) {
  const { llama, read: before } = opened;
  let same = 0;
  while (same < ids.length - 1 && before[same] === ids[same]) same += 1;
  before.length = same;
  for (;;) {
    const some = ids.slice(before.length, before.length + MOST_AT_ONCE);
    const xs = llama.read(some, before.length, watch);
    before.push(...some);
    if (before.length === ids.length) return xs.at(-1);
    part({ reading: [before.length, ids.length] });
    await hear();
    if (signal.aborted) return null;
  }
}

const { port1, port2 } = new MessageChannel();

/** Let messages in. */
const hear = () =>
  new Promise((goOn) => {
    port1.onmessage = goOn;
    port2.postMessage("");
  });

async function next(request, part, signal) {
  const ids = idsOf(request);
  const { llama, tokens } = opened;
  const x = await read(ids, part, signal);
  if (!x) return null;
  const p = softmax(llama.logits([x])[0]);
  let bits = 0;
  for (const share of p) if (share) bits -= share * Math.log2(share);
  return { ids, pieces: ids.map((id) => tokens.piece(id)), best: best(p, LIKELIEST), bits };
}

async function write(request, part, signal) {
  const ids = idsOf(request);
  const { llama, tokens, read: before } = opened;
  const most = Math.min(request.most, ROOM - ids.length);
  const random = numbers(request.seed);
  const decode = tokens.writer();
  const started = performance.now();
  let [text, written, ended] = ["", 0, "most"];
  part({ text, reading: [0, ids.length] });
  let x = await read(ids, part, signal);
  let logits = x && llama.logits([x])[0];
  const begun = performance.now();
  let last = begun; // when the last token's distribution was known
  if (!x) ended = "halted";
  while (ended === "most" && written < most) {
    const p = softmax(logits);
    const id = choose(logits, request, random());
    written += 1;
    if (tokens.ends.includes(id)) ended = "end";
    else part({ text: (text += decode(id)), p: p[id] });
    if (ended === "end" || written === most) break;
    await hear();
    if (signal.aborted) ended = "halted";
    else {
      [x] = llama.read([id], before.length);
      before.push(id);
      [logits] = llama.logits([x]);
      last = performance.now();
    }
  }
  return { text, ended, read_ms: begun - started, written, write_ms: last - begun };
}

async function lens(request, part, signal) {
  const ids = idsOf(request);
  const { llama, tokens } = opened;
  const xs = []; // of the last token: after the embedding, and after each block
  const x = await read(ids, part, signal, (block, all) => void (xs[block] = all.at(-1)));
  if (!x) return null;
  const rows = [];
  while (rows.length < xs.length) {
    for (const logits of llama.logits(xs.slice(rows.length, rows.length + MOST_AT_ONCE)))
      rows.push({ block: rows.length, best: best(softmax(logits), OF_LENS) });
  }
  return { pieces: ids.map((id) => tokens.piece(id)), rows };
}

/** The `count` likeliest tokens. */
function best(p, count) {
  const found = [];
  p.forEach((share, id) => {
    if (found.length === count && share <= p[found.at(-1)]) return;
    const at = found.findIndex((other) => p[other] < share);
    found.splice(at < 0 ? found.length : at, 0, id);
    if (found.length > count) found.pop();
  });
  return found.map((id) => ({ id, piece: opened.tokens.piece(id), p: p[id] }));
}

/** choose_next() of tinylib/generation.py: u draws a token, at temperature 0 the likeliest. */
function choose(logits, { temperature, top_p = 1 }, u) {
  if (!temperature) return logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
  const p = softmax(logits.map((z) => z / temperature));
  const falling = p.slice().sort().reverse();
  let count = 0;
  for (let likelier = 0; count < p.length && (!count || likelier < top_p); count += 1)
    likelier += falling[count];
  const least = top_p < 1 ? falling[count - 1] : 0;
  let total = 0;
  for (const share of p) if (share >= least) total += share;
  let reached = 0;
  return p.findIndex((share) => share >= least && (reached += share) > u * total);
}
