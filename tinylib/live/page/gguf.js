// A GGUF file's header: what is said about the model, and where each of its tensors lies.

import { KINDS } from "./matrices.js";

const [ARRAY, STRING] = [9, 8];
/** By GGUF's number of a kind of value: how DataView reads it, and its bytes. */
const NUMBERS = {
  ...{ 0: ["Uint8", 1], 1: ["Int8", 1], 2: ["Uint16", 2], 3: ["Int16", 2], 4: ["Uint32", 4] },
  ...{ 5: ["Int32", 4], 6: ["Float32", 4], 7: ["Uint8", 1], 10: ["BigUint64", 8] },
  ...{ 11: ["BigInt64", 8], 12: ["Float64", 8] },
};
const INTEGERS = [0, 1, 2, 3, 4, 5, 10, 11];

const wrong = (why) =>
  Object.assign(new Error(`this file cannot be used: ${why}`), {
    why: `the file is no model that can be read here: ${why}`,
    remedy: "Take a GGUF file of a model of Llama’s form, in Q4_1 and Q8_0.",
  });

/** An Error says what a file is that begins with these bytes, unless that is GGUF. */
export function assertBegin(bytes) {
  const text = new TextDecoder().decode(bytes.slice(0, 200)).trimStart();
  if (!bytes.length) throw wrong("it is empty");
  if (text.startsWith("version https://git-lfs"))
    throw wrong("it is a pointer of Git LFS, which stands for the file, and not the file itself");
  if (text.startsWith("<")) throw wrong("it is a page of HTML");
  if (!"GGUF".startsWith(text.slice(0, 4)))
    throw wrong(`it does not begin with GGUF, but with ${JSON.stringify(text.slice(0, 12))}`);
}

/**
 * Of a whole file { info, tensors }: the metadata by name, and of each tensor { name, shape, kind,
 * at }, where `shape` begins with the length of a row, and `at` counts bytes from the file's start.
 * As in https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3. An Error says what
 * else a file is.
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
  let at = 4;
  const number = (kind) => {
    if (!NUMBERS[kind]) throw wrong(`it has a value of the unknown kind ${kind}`);
    const [type, size] = NUMBERS[kind];
    at += size;
    return Number(view[`get${type}`](at - size, true));
  };
  /** How many there are of what takes at least `size` bytes each. */
  const count = (size) => {
    const n = number(10);
    if (n * size > bytes.length - at) throw new RangeError();
    return n;
  };
  const utf8 = new TextDecoder();
  const string = () => {
    const length = count(1);
    at += length;
    return utf8.decode(bytes.subarray(at - length, at));
  };
  const value = (kind) => {
    if (kind === STRING) return string();
    if (kind !== ARRAY) return number(kind);
    const of = number(4);
    return Array.from({ length: count(1) }, () => value(of));
  };
  const version = number(4);
  if (version !== 3) throw wrong(`it is GGUF of version ${version}, and only 3 is read`);
  const [tensorCount, pairs] = [count(24), count(12)];
  const info = {};
  let alignment = 32;
  for (let i = 0; i < pairs; i += 1) {
    const [name, kind] = [string(), number(4)];
    info[name] = value(kind);
    if (name === "general.alignment") alignment = INTEGERS.includes(kind) ? info[name] : NaN;
  }
  if (!(alignment > 0 && Number.isInteger(Math.log2(alignment))))
    throw wrong(`its alignment is ${info["general.alignment"]}, which is no power of two`);
  const architecture = info["general.architecture"];
  if (architecture !== "llama") throw wrong(`its architecture is ${architecture}, and not llama`);
  const places = Array.from({ length: tensorCount }, () => {
    const [name, axes] = [string(), number(4)];
    const shape = Array.from({ length: axes }, () => number(10));
    return { name, shape, kind: number(4), at: number(10) };
  });
  const start = Math.ceil(at / alignment) * alignment;
  const tensors = {};
  for (const { name, shape, kind, at: offset } of places) {
    if (!KINDS[kind])
      throw wrong(`${name} is a tensor of kind ${kind}; read are F32, Q4_1 and Q8_0`);
    const { name: kindName, bytes: size, numbers } = KINDS[kind];
    if (shape[0] % numbers) throw wrong(`${name} has rows of ${shape[0]} in ${kindName}`);
    const end = start + offset + (shape.reduce((a, b) => a * b, 1) / numbers) * size;
    if (end > bytes.length)
      throw wrong(`it is cut short: ${name} ends at byte ${end} of ${bytes.length}`);
    tensors[name] = { name, shape, kind, at: start + offset };
  }
  return { info, tensors };
}

/**
 * How the Llama in a file is built, named as LlamaConfig of tinylib/real_model.py names it; an Error
 * if the file says something else than its tensors, or has what such a model has not.
 */
export function configOf({ info, tensors }) {
  const of = (name, otherwise = undefined) => info[`llama.${name}`] ?? otherwise;
  const [D, F, layers] = [of("embedding_length"), of("feed_forward_length"), of("block_count")];
  const H = of("attention.head_count");
  const [G, d] = [of("attention.head_count_kv", H), D / H];
  const V = tensors["token_embd.weight"]?.shape[1];
  if (d % 2 || H % G) throw wrong(`${H} heads, ${G} of keys, do not fit into a width of ${D}`);
  if (of("rope.dimension_count", d) !== d || of("rope.scaling.type", "none") !== "none")
    throw wrong("its positions are not rotary in Llama’s plain form");
  const shapes = { token_embd: [D, V], output_norm: [D] };
  if (tensors["output.weight"]) shapes.output = [D, V]; // else the table writes, too
  for (let i = 0; i < layers; i += 1) {
    const parts = {
      ...{ attn_norm: [D], attn_q: [D, D], attn_k: [D, G * d], attn_v: [D, G * d] },
      ...{ attn_output: [D, D], ffn_norm: [D], ffn_gate: [D, F], ffn_up: [D, F], ffn_down: [F, D] },
    };
    for (const [part, shape] of Object.entries(parts)) shapes[`blk.${i}.${part}`] = shape;
  }
  for (const [name, shape] of Object.entries(shapes)) {
    const tensor = tensors[`${name}.weight`];
    if (String(tensor?.shape) !== String(shape))
      throw wrong(`${name} is ${tensor?.shape.join(" × ") ?? "missing"}, not ${shape.join(" × ")}`);
    if ((KINDS[tensor.kind].name === "F32") !== (shape.length === 1))
      throw wrong(`${name} is in ${KINDS[tensor.kind].name}`);
  }
  const unknown = Object.keys(tensors).find((name) => !shapes[name.replace(/\.weight$/, "")]);
  if (unknown) throw wrong(`it has ${unknown}, which a Llama has not`);
  const eps = of("attention.layer_norm_rms_epsilon");
  const output = shapes.output ? "output.weight" : "token_embd.weight";
  return { H, G, d, layers, base: of("rope.freq_base", 10_000), eps, output };
}
