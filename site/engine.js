// Computes a widget's outputs in the page: its torch function, exported to ONNX, in onnxruntime-web.
// Loaded on the reader's first sign of interest, and served from the folder of all live files.

import * as ort from "../ort/ort.wasm.min.mjs";

const HERE = new URL("./", import.meta.url);
ort.env.wasm.wasmPaths = new URL("../ort/", HERE).href;
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

const sessions = new Map(); // stem -> promise of a session

/** The session of a widget's graph, fetched once; if that fails, the next call tries again. */
export function session(stem) {
  if (!sessions.has(stem)) {
    const opening = open(stem);
    sessions.set(stem, opening);
    opening.catch(() => sessions.delete(stem));
  }
  return sessions.get(stem);
}

async function open(stem) {
  const answer = await fetch(new URL(`graphs/${stem}.onnx`, HERE));
  if (!answer.ok) throw new Error(`the graph of ${stem} answered ${answer.status}`);
  return ort.InferenceSession.create(new Uint8Array(await answer.arrayBuffer()), {
    executionProviders: ["wasm"],
    // onnxruntime's optimiser turns Transpose(x) @ v into a wrong answer for 1-D v.
    graphOptimizationLevel: "disabled",
  });
}

/** Outputs as { shape, data: DataView }, in the form that a kernel sends them. */
export async function run(spec, inputs) {
  const graph = await session(spec.stem);
  const feeds = {};
  for (const name of Object.keys(spec.inputs)) feeds[name] = tensor(inputs[name]);
  const results = await graph.run(feeds);
  return Object.fromEntries(Object.keys(spec.outputs).map((name) => {
    const { dims, data } = results[name];
    return [name, { shape: [...dims], data: new DataView(data.slice().buffer) }];
  }));
}

function tensor(value) {
  if (typeof value === "boolean") return new ort.Tensor("bool", Uint8Array.of(Number(value)), []);
  const shape = [];
  for (let v = value; Array.isArray(v); [v] = v) shape.push(v.length);
  return new ort.Tensor("float32", Float32Array.from([value].flat(shape.length + 1)), shape);
}
