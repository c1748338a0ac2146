// Computes a widget's outputs in the page: its torch functions, exported to ONNX, in onnxruntime-web.
// Loaded on the reader's first sign of interest, and served from the folder of all live files.

import { idsOf } from "./inputs.js";

const HERE = new URL("./", import.meta.url);
const ORT = new URL("../ort/", HERE).href;
const WEIGHTS = new URL("../weights/", HERE).href;

let runtime; // promise of onnxruntime-web
let tries = 0;
const sessions = new Map(); // graph -> promise of a session
const downloads = new Map(); // weights -> { data: promise of bytes, progress, reports }

async function fetched(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** onnxruntime-web, loaded once. After a failure neither it nor the browser forgets: a new try
 * needs a new address. */
function start() {
  runtime ??= load().catch((error) => {
    runtime = undefined;
    tries += 1;
    throw error;
  });
  return runtime;
}

async function load() {
  const binary = fetched(`${ORT}ort-wasm-simd-threaded.wasm`);
  binary.catch(() => {}); // it is awaited below, unless the import fails first
  const ort = await import(`${ORT}ort.wasm.min.mjs${tries ? `?try=${tries}` : ""}`);
  ort.env.wasm.wasmPaths = ORT;
  ort.env.wasm.wasmBinary = await binary;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return ort;
}

// ---------------------------------------------------------------- trained weights

/** What the reader is to be told, in place of "the runtime could not be loaded". */
const because = (why) => Object.assign(new Error(why), { why });

/** A file of weights, fetched once for all widgets of the page; after a failure, anew. */
function download(name, report) {
  if (!downloads.has(name)) {
    const own = { reports: new Set(), progress: null };
    own.data = receive(name, (progress) => {
      own.progress = progress;
      own.reports.forEach((tell) => tell(progress));
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
  const { bytes: total, sha256 } = (await (await fetch(new URL("weights.json", HERE))).json())[name];
  const failed = (what) => because(`the model, ${name}, ${what}`);
  const data = new Uint8Array(total);
  let loaded = 0;
  report({ loaded, total });
  try {
    // "no-cache" asks the server whether a stored copy is still good: a broken one is not kept.
    const answer = await fetch(`${WEIGHTS}${name}.safetensors?${sha256.slice(0, 8)}`,
      { cache: "no-cache" });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    const reader = answer.body.getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      if (loaded + value.length <= total) data.set(value, loaded);
      loaded += value.length;
      report({ loaded, total });
    }
  } catch (error) {
    console.info(error);
    throw failed("could not be loaded");
  }
  if (loaded < total) throw failed(`came cut short: ${loaded} of ${total} bytes`);
  // Only a secure page, which a course's site is, can hash.
  const hash = await globalThis.crypto?.subtle?.digest("SHA-256", data);
  const hex = hash && Array.from(new Uint8Array(hash), (b) => b.toString(16).padStart(2, "0")).join("");
  if (loaded > total || (hex && hex !== sha256)) throw failed("came damaged: it is not the file that was sent");
  return data;
}

// ---------------------------------------------------------------- graphs

const graphsOf = (spec) => spec.graphs ?? [spec.stem];

/** Load all that a widget computes with; if that fails, the next call tries again. */
export async function prepare(spec, report) {
  const starting = start();
  starting.catch(() => {}); // the weights may fail first
  const weights = spec.weights ? await download(spec.weights, report) : null;
  for (const name of graphsOf(spec)) await session(name, spec.weights, weights);
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

let turn = Promise.resolve(); // weights are lent to one new session at a time

async function open(name, file, data) {
  const graph = fetched(new URL(`graphs/${name}.onnx`, HERE));
  graph.catch(() => {});
  const ort = await start();
  const bytes = await graph;
  const create = () => ort.InferenceSession.create(bytes, {
    executionProviders: ["wasm"],
    // onnxruntime's optimiser turns Transpose(x) @ v into a wrong answer for 1-D v.
    graphOptimizationLevel: "disabled",
    externalData: data ? [{ path: `${file}.safetensors`, data }] : [],
  });
  turn = turn.then(create, create);
  return { ort, graph: await turn };
}

/** What a graph makes of `feeds`: numbers, lists, truth values, or { dims, data } as graphs give. */
async function runGraph(name, feeds) {
  const { ort, graph } = await sessions.get(name);
  const given = {};
  for (const { name: input, type } of graph.inputMetadata) {
    given[input] = tensor(ort, type, feeds[input]);
  }
  return graph.run(given);
}

function tensor(ort, type, value) {
  if (value instanceof ort.Tensor) return value;
  const { dims, data } = value.data ? value : { dims: shapeOf(value), data: [value].flat(9) };
  if (type === "int64") return new ort.Tensor(type, BigInt64Array.from(data, BigInt), dims);
  return new ort.Tensor(type, type === "bool" ? Uint8Array.from(data) : Float32Array.from(data), dims);
}

function shapeOf(value) {
  const shape = [];
  for (let v = value; Array.isArray(v); [v] = v) shape.push(v.length);
  return shape;
}

/**
 * Outputs as { shape, data: DataView }, in the form that a kernel sends them: those of the widget's
 * one graph, or what its `program` makes of several.
 */
export async function run(spec, inputs, program) {
  if (!graphsOf(spec).every((name) => sessions.has(name))) await prepare(spec);
  const values = { ...inputs, ...idsOf(spec, inputs) };
  const results = await (program ? program(runGraph, values, spec) : runGraph(spec.stem, values));
  return Object.fromEntries(Object.keys(spec.outputs).map((name) => {
    const value = results[name];
    const data = Float32Array.from(value.data ?? [value].flat(9), Number);
    return [name, { shape: [...value.dims ?? shapeOf(value)], data: new DataView(data.buffer) }];
  }));
}
