// Computes a widget's outputs in the page: its torch function, exported to ONNX, in onnxruntime-web.
// Loaded on the reader's first sign of interest, and served from the folder of all live files.

const HERE = new URL("./", import.meta.url);
const ORT = new URL("../ort/", HERE).href;

let runtime; // promise of onnxruntime-web
let tries = 0;
const sessions = new Map(); // stem -> promise of a session

async function fetched(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** onnxruntime-web, loaded once. After a failure neither it nor the browser forgets: a new try
 * needs a new address. */
async function start() {
  const binary = fetched(`${ORT}ort-wasm-simd-threaded.wasm`);
  binary.catch(() => {}); // it is awaited below, unless the import fails first
  const ort = await import(`${ORT}ort.wasm.min.mjs${tries ? `?try=${tries}` : ""}`);
  ort.env.wasm.wasmPaths = ORT;
  ort.env.wasm.wasmBinary = await binary;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return ort;
}

/** The session of a widget's graph, opened once; if that fails, the next call tries again. */
export function session(stem) {
  if (!sessions.has(stem)) {
    const opening = open(stem);
    sessions.set(stem, opening);
    opening.catch(() => sessions.delete(stem));
  }
  return sessions.get(stem);
}

async function open(stem) {
  const graph = fetched(new URL(`graphs/${stem}.onnx`, HERE));
  graph.catch(() => {});
  runtime ??= start();
  try {
    const ort = await runtime;
    return { ort, graph: await ort.InferenceSession.create(await graph, {
      executionProviders: ["wasm"],
      // onnxruntime's optimiser turns Transpose(x) @ v into a wrong answer for 1-D v.
      graphOptimizationLevel: "disabled",
    }) };
  } catch (error) {
    runtime = undefined;
    tries += 1;
    throw error;
  }
}

/** Outputs as { shape, data: DataView }, in the form that a kernel sends them. */
export async function run(spec, inputs) {
  const { ort, graph } = await session(spec.stem);
  const feeds = {};
  for (const name of Object.keys(spec.inputs)) feeds[name] = tensor(ort, inputs[name]);
  const results = await graph.run(feeds);
  return Object.fromEntries(Object.keys(spec.outputs).map((name) => {
    const { dims, data } = results[name];
    return [name, { shape: [...dims], data: new DataView(data.slice().buffer) }];
  }));
}

function tensor(ort, value) {
  if (typeof value === "boolean") return new ort.Tensor("bool", Uint8Array.of(Number(value)), []);
  const shape = [];
  for (let v = value; Array.isArray(v); [v] = v) shape.push(v.length);
  return new ort.Tensor("float32", Float32Array.from([value].flat(shape.length + 1)), shape);
}
