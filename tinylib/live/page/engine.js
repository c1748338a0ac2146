// Computes a widget's outputs in the page: its torch functions, as ONNX graphs in onnxruntime-web.
// Loaded on the reader's first sign of interest, and served from the folder of all live files.

import { bytesOf, idsOf } from "./inputs.js";

const HERE = new URL("../", import.meta.url);
const ORT = new URL("../../ort/", HERE).href;
const WEIGHTS = new URL("../../weights/", HERE).href;
const HASH = new URL("../../hash/", HERE).href;

let runtime; // promise of onnxruntime-web
const runtimeReports = new Set(); // who is told how much of it has come
let [runtimeProgress, ready] = [null, false];
let tries = 0;
const sessions = new Map(); // graph -> promise of a session
const downloads = new Map(); // weights -> { data: promise of bytes, progress, reports }
const [BREATH, PATIENCE, FRAME] = [8, 50, 30]; // ms: see run()

/** The message for an error: what is wrong, and what to do about it. */
const because = (why, remedy, cause) => Object.assign(new Error(why, { cause }), { why, remedy });
const CONNECTION = "Check the connection, then press “Try again”.";
const AGAIN = "Press “Try again” to fetch it again; if that does not help, reload the page.";
const ABSENT = "Press “Try again” later; if that does not help, please report it.";

/** Of what could not be fetched: the server has refused it, or it was not reached. */
function unloaded(what, error, remedy = undefined) {
  const [answer] = /the server answered \d+/.exec(error.message) ?? [];
  const why = `${what} could not be loaded${answer ? `: ${answer}` : ""}`;
  return because(why, remedy ?? (answer ? ABSENT : CONNECTION), error);
}

// The smallest module, and one that uses SIMD, as the runtime does.
const EMPTY = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
const SIMD = Uint8Array.of(
  ...EMPTY,
  ...[1, 5, 1, 96, 0, 1, 123], // a function without arguments makes a vector,
  ...[3, 2, 1, 0],
  ...[10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11], // each byte of it a number of bits
);

/** The runtime is WebAssembly. Where a browser does not run it, to try again is in vain. */
export function assertRunnable() {
  const refused = (why, remedy) =>
    Object.assign(
      because(
        `WebAssembly, which runs the chapter’s functions, ${why}`,
        `${remedy}, then reload the page: “Copy link” carries over what you typed. ` +
          "Text, figures and stored results need no WebAssembly.",
      ),
      { final: true },
    );
  if (typeof WebAssembly === "undefined") {
    const settings = "Turn it on in the browser’s settings (a strict security mode turns it off)";
    throw refused("is turned off in this browser", settings);
  }
  try {
    new WebAssembly.Instance(new WebAssembly.Module(EMPTY));
  } catch {
    const who = "an extension or the server’s Content-Security-Policy";
    throw refused(`is forbidden in this page by ${who}`, "Allow it for this site");
  }
  if (!WebAssembly.validate(SIMD)) {
    throw refused("has no SIMD in this browser, which is too old", "Update the browser");
  }
}

async function fetched(url, cache = undefined) {
  const answer = await fetch(url, { cache });
  if (!answer.ok) throw new Error(`the server answered ${answer.status} for ${url}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** onnxruntime-web, loaded once. After a failure neither it nor the browser forgets: a new try
 * needs a new address. */
export async function start() {
  assertRunnable();
  runtime ??= load().catch(withoutRuntime);
  return runtime;
}

function withoutRuntime(error) {
  runtime = undefined;
  tries += 1;
  if (/CompileError/.test(error.message)) throw because("its runtime came damaged", AGAIN, error);
  if (/\bmemory\b/i.test(error.message)) {
    const remedy = "Close other pages, then press “Try again”.";
    throw because("the browser has no memory left for its runtime", remedy, error);
  }
  throw unloaded("its runtime", error);
}

/** How large files are that come: of the runtime, and of each model with its check sum. */
const sizes = () =>
  fetched(new URL("weights.json", HERE)).then((text) => JSON.parse(new TextDecoder().decode(text)));

/** The runtime's own program, which is counted as it comes. */
async function receiveRuntime() {
  const url = `${ORT}ort-wasm-simd-threaded.wasm`;
  const asked = fetch(url, { cache: tries ? "reload" : "default" });
  asked.catch(() => {}); // it is awaited below
  const listed = await sizes().catch(() => ({})); // it can be used without
  const { bytes, sent } = listed.runtime ?? { bytes: Infinity, sent: 0 };
  const report = ({ length }) => {
    runtimeProgress = { loaded: Math.round((sent * length) / bytes), total: sent };
    runtimeReports.forEach((one) => one());
  };
  report({ length: 0 });
  const answer = await asked;
  if (!answer.ok) throw new Error(`the server answered ${answer.status} for ${url}`);
  return received(answer, report);
}

/** All that comes, in one; `report` gets what has come after each part of it. */
async function received(answer, report) {
  const [reader, parts] = [answer.body.getReader(), []];
  let length = 0;
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    parts.push(value);
    length += value.length;
    report({ length });
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function load() {
  const binary = receiveRuntime();
  binary.catch(() => {}); // it is awaited below, unless the import fails first
  const cacheBuster = tries ? `?try=${tries}` : "";
  const ort = await import(`${ORT}ort.wasm.min.mjs${cacheBuster}`);
  ort.env.wasm.wasmPaths = { mjs: `${ORT}ort-wasm-simd-threaded.mjs${cacheBuster}` };
  ort.env.wasm.wasmBinary = await binary;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  ready = true;
  return ort;
}

// ---------------------------------------------------------------- trained weights

/** A file of weights, fetched once for all widgets of the page; after a failure, once more. */
function download(name, report) {
  if (!downloads.has(name)) {
    const own = { reports: new Set(), progress: null };
    const reportAll = (progress) => {
      own.progress = progress;
      own.reports.forEach((report) => report(progress));
    };
    own.data = receive(name, reportAll).then((file) => {
      own.reports = new Set(); // there is nothing more to report
      return unpacked(file);
    });
    own.data.catch(() => downloads.delete(name));
    downloads.set(name, own);
  }
  const { data, reports, progress } = downloads.get(name);
  if (report) reports.add(report);
  if (report && progress) report(progress);
  return data;
}

async function receive(name, report) {
  const failed = (what, remedy, cause) => because(`the model, ${name}, ${what}`, remedy, cause);
  const {
    [name]: { bytes: total, sha256 },
  } = await sizes().catch((error) => {
    throw failed("could not be loaded: the list of models is missing", CONNECTION, error);
  });
  let loaded = 0;
  let data;
  report({ loaded, total });
  try {
    // "no-cache" asks the server whether a stored copy is still good: a broken one is not kept.
    const answer = await fetch(`${WEIGHTS}${name}.safetensors?${sha256.slice(0, 8)}`, {
      cache: "no-cache",
    });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    data = await received(answer, ({ length }) => {
      loaded = length;
      report({ loaded, total });
    });
  } catch (error) {
    throw unloaded(`the model, ${name},`, error);
  }
  if (loaded < total) throw failed(`came cut short: ${loaded} of ${total} bytes`, AGAIN);
  const hash = await digest(data).catch((error) => {
    throw failed("could not be checked: the program that does it is missing", CONNECTION, error);
  });
  const hex = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (loaded > total || hex !== sha256)
    throw failed("came damaged: it is not the file that was sent", AGAIN);
  return data;
}

/** SHA-256, by the browser; in pages served by plain http, where it will not, by a package. */
export async function digest(data) {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle) return new Uint8Array(await subtle.digest("SHA-256", data));
  return (await import(`${HASH}sha2.js`)).sha256(data);
}

/**
 * A packed file's tensors as fp32, one behind the other in the file's order, as unpacked() and
 * layout() of tinylib/lab/train/weights.py have them: each byte times the scale of its row. Any
 * other file as it is.
 */
export function unpacked(file) {
  const start = 8 + Number(new DataView(file.buffer).getBigUint64(0, true));
  const { __metadata__: about, ...entries } = JSON.parse(
    new TextDecoder().decode(file.subarray(8, start)),
  );
  if (!JSON.parse(about?.metadata ?? "{}").packed) return file;
  const data = ({ data_offsets: [first, last] }) => file.buffer.slice(start + first, start + last);
  const tensors = Object.entries(entries)
    .filter(([name]) => !name.endsWith(".scale"))
    .sort(
      (
        [
          ,
          {
            data_offsets: [one],
          },
        ],
        [
          ,
          {
            data_offsets: [other],
          },
        ],
      ) => one - other,
    );
  const size = ({ shape }) => shape.reduce((product, n) => product * n, 1);
  const numbers = new Float32Array(tensors.reduce((sum, [, tensor]) => sum + size(tensor), 0));
  let end = 0;
  for (const [name, tensor] of tensors) {
    if (tensor.dtype === "I8") {
      const [bytes, scales] = [
        new Int8Array(data(tensor)),
        new Float32Array(data(entries[`${name}.scale`])),
      ];
      const width = bytes.length / scales.length;
      for (let row = 0, i = 0; row < scales.length; row += 1) {
        for (const until = i + width; i < until; i += 1) numbers[end + i] = bytes[i] * scales[row];
      }
    } else {
      numbers.set(new Float32Array(data(tensor)), end);
    }
    end += size(tensor);
  }
  return new Uint8Array(numbers.buffer);
}

// ---------------------------------------------------------------- graphs

/** What the widget computes these inputs with. Of several weights `variant` says which ones; graphs
 * that are `plain` read none. */
function needs({ stem, graphs = [stem], plain = [], weights }, { variant }) {
  if (!Array.isArray(weights)) return { weights, graphs, own: (graph) => graph };
  const own = (graph) => (plain.includes(graph) ? graph : `${graph}-${weights[variant]}`);
  return { weights: weights[variant], graphs: graphs.map(own), own };
}

/**
 * Load all that is needed to compute these inputs; if that fails, the next call tries again.
 * `report` gets how much of it has come, { loaded, total } in bytes: of runtime and trained model
 * together, and how large the model is, if it is still on its way.
 */
export async function prepare(spec, inputs, report = (_progress) => {}) {
  const { weights, graphs } = needs(spec, inputs);
  if (!graphs.length) return; // its program computes all of it
  assertRunnable(); // before the weights are fetched in vain
  let [model, waited] = [null, false];
  const counted = !ready; // what was there before this began is not counted
  const count = () => {
    const all = [model, counted && runtimeProgress].filter(Boolean);
    const [loaded, total] = ["loaded", "total"].map((what) =>
      all.reduce((sum, one) => sum + one[what], 0),
    );
    waited ||= loaded < total;
    const trained = model?.loaded < model?.total ? model.total : 0;
    if (waited) report({ loaded, total, trained });
  };
  runtimeReports.add(count);
  try {
    const starting = start();
    starting.catch(() => {}); // the weights may fail first
    const ofModel = (progress) => {
      model = progress;
      count();
    };
    const data = weights ? await download(weights, ofModel) : null;
    for (const name of graphs) await session(name, weights, data);
  } finally {
    runtimeReports.delete(count);
  }
}

/** The session of a graph, opened once. */
function session(name, file, data) {
  if (!sessions.has(name)) {
    const opening = open(name, file, data);
    sessions.set(name, opening);
    opening.catch(() => sessions.delete(name));
  }
  return sessions.get(name);
}

let turn = Promise.resolve();
/** The runtime does one thing at a time: it lends weights to one new session, it has one stack. */
function inTurn(work) {
  turn = turn.then(work, work);
  return turn;
}

async function open(name, file, data) {
  const compressed = STEP.test(name) ? ".gz" : "";
  const graph = fetched(new URL(`graphs/${name}.onnx${compressed}`, HERE)).then(inflated);
  graph.catch(() => {});
  const ort = await start();
  const failed = (what, remedy) => (error) => {
    if (/\bbackend\b/.test(error.message)) withoutRuntime(error); // a part of it is loaded only now
    throw because(`the graph ${name} ${what}`, remedy, error);
  };
  const bytes = await graph.catch((error) => {
    throw unloaded(`the graph ${name}`, error);
  });
  const create = () =>
    ort.InferenceSession.create(bytes, {
      executionProviders: ["wasm"],
      // What does not change is computed once, above all the transpose of each weight. The next
      // level, "extended", turns Transpose(x) @ v into a wrong answer for 1-D v.
      graphOptimizationLevel: "basic",
      externalData: data ? [{ path: `${file}.safetensors`, data }] : [],
    });
  return {
    ort,
    graph: await inTurn(create).catch(failed("came damaged: the runtime cannot read it", AGAIN)),
  };
}

/** A training step's graph is long, and its file compressed, unless a server has undone that. */
const STEP = /-step-\d+$/;
async function inflated(bytes) {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// What a worker that trains needs: graphs without trained weights, tensors, and data to learn from.

/** Load a graph, if it is not there. */
export const openGraph = (name) => session(name, "", null);

/** A tensor of the runtime that may be given to several graphs. */
export async function tensorOf(data, dims = [data.length]) {
  const ort = await start();
  return new ort.Tensor("float32", data, dims);
}

/** What a trainer learns from, as bytes; `missing` says what to do if the site has no such file. */
export async function pool(name, missing = undefined) {
  const failed = (error) => {
    throw unloaded(`the data to learn from, ${name},`, error, missing);
  };
  return fetched(new URL(`pools/${name}.gz`, HERE))
    .then(inflated)
    .catch(failed);
}

/** What a graph makes of `feeds`: numbers, lists, truth values, or { dims, data } of a graph. */
export async function runGraph(name, feeds) {
  const { ort, graph } = await sessions.get(name);
  const given = {};
  for (const { name: input, type } of graph.inputMetadata) {
    given[input] = tensor(ort, type, feeds[input]);
  }
  return inTurn(() => graph.run(given));
}

/** Let the page do what waits: hear the reader, and draw. */
function pause() {
  /** @type {Promise<void>} */
  const drawn = new Promise((goOn) => {
    const { port1, port2 } = new MessageChannel(); // a timer would wait some milliseconds
    port1.onmessage = () => {
      port1.close();
      goOn();
    };
    port2.postMessage("");
  });
  return drawn;
}

/** The page draws what was just shown; one that is out of sight need not. */
const drawn = () =>
  new Promise((goOn) => {
    requestAnimationFrame(() => setTimeout(goOn));
    setTimeout(goOn, FRAME);
  });

function tensor(ort, type, value) {
  if (value instanceof ort.Tensor) return value;
  const { dims, data } = value.data ? value : { dims: shapeOf(value), data: [value].flat(9) };
  if (type === "int64") return new ort.Tensor(type, BigInt64Array.from(data, BigInt), dims);
  if (data instanceof Float32Array) return new ort.Tensor(type, data, dims); // the runtime copies
  return new ort.Tensor(
    type,
    type === "bool" ? Uint8Array.from(data) : Float32Array.from(data),
    dims,
  );
}

function shapeOf(value) {
  const shape = [];
  for (let v = value; Array.isArray(v); [v] = v) shape.push(v.length);
  return shape;
}

/**
 * Outputs as { shape, data: DataView }, in the form that a kernel sends them: those of the widget's
 * one graph, or what its `program` makes of several.
 *
 * A program that takes long pauses now and then, so that the page can be used meanwhile. If the
 * inputs are no longer the newest, as `old()` tells, it is given up: null. What it has by then it
 * may offer by `partly(make)`: now and then, or `now`, `show` gets the outputs that `make()`
 * makes, and the page draws those of `now` before the program goes on.
 */
export async function run(spec, inputs, program, old = () => false, show = (_outputs) => {}) {
  const { graphs, own } = needs(spec, inputs);
  if (!graphs.every((name) => sessions.has(name))) await prepare(spec, inputs);
  const values = { ...inputs, ...idsOf(spec, inputs), ...bytesOf(spec, inputs) };
  const started = performance.now();
  const tooOld = new Error("there are newer inputs");
  let [paused, shown] = [started, 0]; // ms: when it paused last, and showed a part of the answer
  let undrawn = false; // what was shown at once is to be seen at once
  const step = async (graph, feeds) => {
    if (undrawn || performance.now() - paused > BREATH) {
      await (undrawn ? drawn() : pause());
      undrawn = false;
      paused = performance.now();
      // What is nearly done is finished; if the reader has seen a part, newer inputs go on.
      if ((shown || paused - started > PATIENCE) && old()) throw tooOld;
    }
    return runGraph(own(graph), feeds);
  };
  const partly = (make, now = false) => {
    if ((!now && performance.now() - (shown || started) < FRAME) || old()) return;
    show(sent(spec, make()));
    shown = performance.now();
    undrawn = now;
  };
  try {
    const computed = await (program
      ? program(step, values, spec, partly, old)
      : step(spec.stem, values));
    return computed && sent(spec, computed); // a program may find its inputs too old itself: null
  } catch (error) {
    if (error === tooOld) return null;
    throw error;
  }
}

/** Results in the form in which a kernel sends them. */
function sent(spec, results) {
  return Object.fromEntries(
    Object.keys(spec.outputs).map((name) => {
      const value = results[name];
      const given = value.data ?? [value].flat(9);
      const isCopied = given instanceof Float32Array;
      const data = isCopied ? given.slice() : Float32Array.from(given, Number);
      return [
        name,
        { shape: [...(value.dims ?? shapeOf(value))], data: new DataView(data.buffer) },
      ];
    }),
  );
}
