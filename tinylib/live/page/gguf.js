// A GGUF file's header: what it says about the model, and where each tensor lies. Version 3 is in
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

import { KINDS } from "./matrices.js";

const [STRING, ARRAY] = [8, 9];
/** By GGUF's number of a kind of value: how DataView reads it, and its bytes. */
const NUMBERS = {
  ...{ 0: ["Uint8", 1], 1: ["Int8", 1], 2: ["Uint16", 2], 3: ["Int16", 2], 4: ["Uint32", 4] },
  ...{ 5: ["Int32", 4], 6: ["Float32", 4], 7: ["Uint8", 1], 10: ["BigUint64", 8] },
  ...{ 11: ["BigInt64", 8], 12: ["Float64", 8] },
};

const wrong = (what) => {
  const why = `the file is no model that can be read here: ${what}`;
  const remedy = "Take a GGUF file of a model of Llama’s form, in Q4_1 and Q8_0.";
  return Object.assign(new Error(why), { why, remedy });
};

/** An Error says what a file is that begins with these bytes, unless that is GGUF. */
export function assertBegin(bytes) {
  const text = new TextDecoder().decode(bytes.slice(0, 200)).trimStart();
  if (!bytes.length) throw wrong("it is empty");
  if (text.startsWith("version https://git-lfs")) throw wrong("it is only a pointer of Git LFS");
  if (text.startsWith("<")) throw wrong("it is a page of HTML");
  if (!"GGUF".startsWith(text.slice(0, 4)))
    throw wrong(`it begins with ${JSON.stringify(text.slice(0, 12))}, and not with GGUF`);
}

/**
 * Of a whole file its metadata, `info`, and its `tensors`: each { shape, kind, at } by its name. A
 * shape begins with the length of a row. An Error says what another file is.
 */
export function readHeader(bytes) {
  assertBegin(bytes);
  try {
    return headerOf(bytes);
  } catch (error) {
    throw error instanceof RangeError ? wrong("it is cut short") : error;
  }
}

function headerOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const utf8 = new TextDecoder();
  let at = 4;
  const number = (kind) => {
    if (!NUMBERS[kind]) throw wrong(`it has a value of the unknown kind ${kind}`);
    const [type, size] = NUMBERS[kind];
    at += size;
    return Number(view[`get${type}`](at - size, true));
  };
  /** How many follow, of at least a byte each. */
  const count = () => {
    const n = number(10);
    if (n > bytes.length - at) throw new RangeError();
    return n;
  };
  const string = () => {
    const length = count();
    at += length;
    return utf8.decode(bytes.subarray(at - length, at));
  };
  const value = (kind) => {
    if (kind === STRING) return string();
    if (kind !== ARRAY) return number(kind);
    const of = number(4);
    return Array.from({ length: count() }, () => value(of));
  };
  const version = number(4);
  if (version !== 3) throw wrong(`it is GGUF of version ${version}, and only 3 is read`);
  const [tensorCount, pairs] = [count(), count()];
  const info = {};
  for (let i = 0; i < pairs; i += 1) {
    const name = string();
    info[name] = value(number(4));
  }
  const architecture = info["general.architecture"];
  if (architecture !== "llama") throw wrong(`its architecture is ${architecture}, and not llama`);
  const tensors = {};
  for (let i = 0; i < tensorCount; i += 1) {
    const name = string();
    const shape = Array.from({ length: number(4) }, () => number(10));
    tensors[name] = { shape, kind: number(4), at: number(10) };
  }
  const alignment = info["general.alignment"] ?? 32;
  if (!(alignment >= 1 && Number.isInteger(Math.log2(alignment))))
    throw wrong(`its alignment is ${alignment}, which is no power of two`);
  const start = Math.ceil(at / alignment) * alignment;
  for (const [name, tensor] of Object.entries(tensors)) {
    const known = KINDS[tensor.kind];
    if (!known) throw wrong(`${name} is of kind ${tensor.kind}, not F32, Q4_1 or Q8_0`);
    tensor.at += start;
    const end = tensor.at + (tensor.shape.reduce((a, b) => a * b) / known.numbers) * known.bytes;
    if (tensor.shape[0] % known.numbers || end > bytes.length)
      throw wrong(`it is cut short: ${name} ends at byte ${end} of ${bytes.length}`);
  }
  return { info, tensors };
}

/**
 * How the Llama in a file is built, in the names of LlamaConfig of tinylib/real_model.py. An Error
 * says where its tensors are others.
 */
export function configOf({ info, tensors }) {
  const of = (name, otherwise = undefined) => info[`llama.${name}`] ?? otherwise;
  const [D, F, layers] = [of("embedding_length"), of("feed_forward_length"), of("block_count")];
  const H = of("attention.head_count");
  const [G, d, V] = [
    of("attention.head_count_kv", H),
    D / H,
    tensors["token_embd.weight"]?.shape[1],
  ];
  if (d % 2 || H % G) throw wrong(`${H} heads, ${G} of keys, do not fit into a width of ${D}`);
  if (of("rope.dimension_count", d) !== d || of("rope.scaling.type", "none") !== "none")
    throw wrong("its positions are not rotary in Llama’s plain form");
  const parts = {
    ...{ attn_norm: [D], attn_q: [D, D], attn_k: [D, G * d], attn_v: [D, G * d] },
    ...{ attn_output: [D, D], ffn_norm: [D], ffn_gate: [D, F], ffn_up: [D, F], ffn_down: [F, D] },
  };
  const shapes = { "token_embd.weight": [D, V], "output_norm.weight": [D] };
  if (tensors["output.weight"]) shapes["output.weight"] = [D, V]; // else the table writes, too
  for (let i = 0; i < layers; i += 1)
    for (const part in parts) shapes[`blk.${i}.${part}.weight`] = parts[part];
  for (const name of new Set([...Object.keys(shapes), ...Object.keys(tensors)])) {
    const { kind, shape } = tensors[name] ?? {};
    if (String(shape) !== String(shapes[name]) || (KINDS[kind].name === "F32") !== !shape[1])
      throw wrong(
        `${name} has the shape ${shape}, in a Llama ${shapes[name]}, or is of another kind`,
      );
  }
  const eps = of("attention.layer_norm_rms_epsilon");
  const output = tensors["output.weight"] ? "output.weight" : "token_embd.weight";
  return { H, G, d, layers, base: of("rope.freq_base", 10_000), eps, output };
}
