// Python in the page: fetched when a reader begins to write, and run in a Worker, which can be
// ended. A page has one. What it is started with is kept, so that another one needs no network.

const LIMIT = 15_000; // ms that an answer may run
const GZIP = 0x1f; // how packed files begin, and no other one of ours
const TOO_OLD =
  "This browser cannot run Python in a page: fill the gaps, or open the exercise elsewhere.";

/** What can be said of an answer: see small_torch/judge.py, and `ask`.
 * @typedef {{ kind: string, message: string, example?: string, printed?: string,
 *   line?: number | null }} Verdict
 * @typedef {{ begun: boolean, resolve: (verdict: Verdict) => void }} Running  one that is checked
 * @typedef {{ packed: number, unpacked: number }} Sizes
 * @typedef {{ program: WebAssembly.Module, script: string, library: ArrayBuffer,
 *   course: ArrayBuffer, lock: any }} Parts */

const here = (/** @type {string} */ name) => new URL(name, import.meta.url).href;

/** @type {Promise<Parts> | undefined} */
let parts;
/** @type {Promise<Worker> | undefined} */
let python;
/** @type {Running | undefined} */
let running;
let ready = "Python runs in this page.";
/** @type {Map<string, Response> | undefined} */
let copies = new Map(); // of the packed parts, until they are kept for a visit without a connection
let news = "Python is fetched when you begin to write: about 5 MB, once. Nothing is sent.";
/** @type {Set<(news: string) => void>} */
const listeners = new Set();

/** Hear how far Python is, now and whenever that changes.
 * @param {(news: string) => void} listener */
export function listen(listener) {
  listeners.add(listener);
  listener(news);
}

/** @param {string} text */
function report(text) {
  news = text;
  for (const listener of listeners) listener(text);
}

// ------------------------------------------------------------ what Python is started with

/** A part as it was before it was packed. A server may have said that it is packed, so that the
 * browser has unpacked it.
 * @param {string} name @param {Sizes} sizes
 * @param {(bytes: number) => void} arrived  hears how many of the packed bytes come */
async function unpacked(name, sizes, arrived) {
  const response = await fetch(here(name));
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  copies?.set(here(name), response.clone());
  const reader = response.body.getReader();
  let { done, value } = await reader.read();
  const packed = value?.[0] === GZIP;
  const share = packed ? 1 : sizes.packed / sizes.unpacked;
  const received = new ReadableStream({
    async pull(controller) {
      if (done) return controller.close();
      arrived(value.length * share);
      controller.enqueue(value);
      ({ done, value } = await reader.read());
    },
  });
  const whole = packed ? received.pipeThrough(new DecompressionStream("gzip")) : received;
  let left = sizes.unpacked;
  return whole.pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        left -= chunk.length;
        controller.enqueue(chunk);
      },
      flush() {
        if (left) throw new Error(`${name} is not whole`);
      },
    }),
  );
}

const mega = (bytes) => (bytes / 1e6).toFixed(1);

/** @returns {Promise<Parts>} */
async function fetchParts() {
  const answer = await fetch(here("parts.json"));
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  const { parts: known, lock } = await answer.json();
  /** @type {[string, Sizes][]} */
  const all = Object.entries(known);
  const total = all.reduce((sum, [, { packed }]) => sum + packed, 0);
  let received = 0;
  const arrived = (bytes) => {
    received = Math.min(received + bytes, total);
    report(`Fetching Python: ${mega(received)} of ${mega(total)} MB.`);
  };
  arrived(0);
  /** @param {string} ending @param {string} type */
  const part = async (ending, type) => {
    const [name, sizes] = all.find(([name]) => name.endsWith(ending));
    const headers = { "Content-Type": type };
    return new Response(await unpacked(name, sizes, arrived), { headers });
  };
  const [program, script, library, course] = await Promise.all([
    WebAssembly.compileStreaming(part(".wasm.gz", "application/wasm")),
    part(".mjs.gz", "text/javascript").then((whole) => whole.blob()),
    part("library.zip.gz", "").then((whole) => whole.arrayBuffer()),
    part("course.zip.gz", "").then((whole) => whole.arrayBuffer()),
  ]);
  return { program, script: URL.createObjectURL(script), library, course, lock };
}

// ------------------------------------------------------------ without a connection

/** Let a service worker keep this page and Python, so that they are there without a connection. */
export async function keepOffline() {
  if (!copies) return;
  const own = copies;
  copies = undefined;
  const entries = performance.getEntriesByType("resource");
  const loaded = /** @type {PerformanceResourceTiming[]} */ (entries).filter(
    ({ name, initiatorType }) => initiatorType !== "fetch" || name.startsWith(here(".")),
  );
  try {
    const { scope } = await navigator.serviceWorker.register(here("../../offline.js"));
    const { active } = await navigator.serviceWorker.ready;
    const cache = await caches.open(`road-to-gpt ${scope}`);
    await Promise.all([...own].map(([address, copy]) => cache.put(address, copy)));
    const names = ["parts.json", "python_worker.js"].map(here);
    const { port1, port2 } = new MessageChannel();
    const kept = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
    const all = [location.href, ...loaded.map(({ name }) => name), ...own.keys(), ...names];
    active.postMessage(all, [port2]);
    if (!(await kept)) throw new Error();
    ready = "Python runs in this page, and will without a connection, too.";
  } catch {
    ready =
      "Python runs in this page. It is not kept in this browser: each visit fetches it again.";
  }
  if (python) report(ready);
}

// ------------------------------------------------------------ the Worker

/** What a Worker says next; an error if it cannot go on.
 * @param {Worker} worker @returns {Promise<any>} */
function nextWord(worker) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) =>
      "error" in data ? reject(new Error(data.error)) : resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message || "its script did not come"));
  });
}

const canRun = () =>
  ["DecompressionStream", "WebAssembly", "Worker"].every((needed) => needed in window);

/** What to say, and to do, when Python does not start.
 * @param {Error} error */
const failure = ({ message }) =>
  canRun()
    ? `Python could not be started (${message}). Is there a connection? ` +
      "Your text is kept: press Check to try again."
    : TOO_OLD;

async function startWorker() {
  if (!canRun()) throw new Error();
  parts ??= fetchParts();
  parts.catch(() => (parts = undefined));
  const given = await parts;
  report("Starting Python.");
  const worker = new Worker(new URL("python_worker.js", import.meta.url), { type: "module" });
  try {
    worker.postMessage(given);
    await nextWord(worker);
  } catch (error) {
    worker.terminate();
    throw error;
  }
  report(ready);
  return worker;
}

/** Python, which is started if it does not run yet. */
export function start() {
  python ??= startWorker();
  const started = python;
  started.catch((error) => {
    if (python === started) python = undefined;
    report(failure(error));
  });
  return started;
}

/** End Python, and start another. */
function restart() {
  python?.then((worker) => worker.terminate()).catch(() => {});
  python = undefined;
  start().catch(() => {});
}

// ------------------------------------------------------------ answers

/** End the answer that is being checked, if one is, and Python with it if it has begun.
 * @param {string} message */
function end(message) {
  const ended = running;
  running = undefined;
  if (ended?.begun) restart();
  ended?.resolve({ kind: "stopped", message });
}

/** Stop the answer that is being checked. */
export const stop = () => end("Stopped. Your text is as it was.");

/** What a function of judge.py says of what it is given. Beside its own kinds of verdicts there are
 * "stopped", by the reader, by another answer, or because it took too long, and "failed": Python
 * could not be started, or this answer has broken it.
 * @param {string} name @param {any[]} given @returns {Promise<Verdict>} */
export function ask(name, ...given) {
  end("Stopped, because another answer is checked.");
  return new Promise((resolve) => {
    const own = { begun: false, resolve };
    running = own;
    run(own, name, given).then((verdict) => {
      if (running !== own) return; // it was stopped
      running = undefined;
      resolve(verdict);
    });
  });
}

/** @param {Running} own @param {string} name @param {any[]} given
 * @returns {Promise<Verdict | undefined>} */
async function run(own, name, given) {
  let worker;
  try {
    worker = await start();
  } catch (error) {
    return { kind: "failed", message: failure(error) };
  }
  if (running !== own) return undefined;
  own.begun = true;
  const seconds = LIMIT / 1000;
  const late =
    `Your answer took longer than ${seconds} seconds, so it was stopped. ` +
    "If it has a loop, look at what ends it.";
  const timer = setTimeout(() => running === own && end(late), LIMIT);
  try {
    worker.postMessage({ name, given });
    return await nextWord(worker);
  } catch (error) {
    restart();
    const message = `Python broke down over this answer (${error.message}) and is started again.`;
    return { kind: "failed", message };
  } finally {
    clearTimeout(timer);
  }
}
