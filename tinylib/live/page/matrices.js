// The matrices of a GGUF file that lies in a WebAssembly memory, and of the keys and values that come
// behind it. product.ts multiplies them with vectors; all else that the model does is JavaScript.

const PAGE = 65536;
const MOST_MORE = 2 ** 28; // bytes behind the file
const [F32, Q4_1, BLOCK] = [0, 3, 32];
export const FILE_START = PAGE; // product.ts uses what is below
export const MOST_AT_ONCE = 4; // tokens that are read at once
export const ROOM = 2048; // tokens for whose keys and values there is room

/** By GGUF's number of a kind of tensor: the bytes of a block of it, and the numbers in that. */
export const KINDS = {
  [F32]: { name: "F32", bytes: 4, numbers: 1 },
  [Q4_1]: { name: "Q4_1", bytes: 20, numbers: BLOCK },
  8: { name: "Q8_0", bytes: 34, numbers: BLOCK },
};

const padded = (count) => Math.ceil(count / BLOCK) * BLOCK;

/** A memory for a file of this size; this throws if the browser has none. */
export function memoryFor(size) {
  const pages = (bytes) => Math.ceil((FILE_START + bytes) / PAGE);
  return new WebAssembly.Memory({ initial: pages(size), maximum: pages(size + MOST_MORE) });
}

/**
 * What Llama does with the tensors of a file in memory: { product, row, vector, cache }. `wasm` is
 * product.wasm.
 */
export async function matricesIn(memory, wasm, tensors, size, { H, G, d }) {
  const { instance } = await WebAssembly.instantiate(wasm, { env: { memory } });
  const kernel = /** @type {any} */ (instance.exports);
  const floats = (at, count) => new Float32Array(memory.buffer, at, count);
  let end = FILE_START + size;
  /** Where there is room for so many numbers. */
  function reserve(count) {
    const at = padded(end);
    end = at + 4 * count;
    const lacking = Math.ceil((end - memory.buffer.byteLength) / PAGE);
    if (lacking > 0) memory.grow(lacking);
    return at;
  }
  const longest = (axis) =>
    Math.max(ROOM, d + BLOCK, ...Object.values(tensors).map(({ shape }) => shape[axis] ?? 0));
  const most = Math.max(MOST_AT_ONCE, H / G); // vectors
  const X = reserve(most * longest(0));
  const S = reserve((most * longest(0)) / 8);
  const Y = reserve(most * Math.max(longest(0), longest(1)));

  /** W x for each of the vectors; W has rows of `columns` numbers, which begin each `stride` bytes. */
  function multiply(kind, at, rows, columns, stride, xs) {
    const width = padded(columns);
    xs.forEach((x, i) =>
      floats(X + 4 * i * width, width)
        .fill(0, columns)
        .set(x),
    );
    if (kind === Q4_1) kernel.sums(X, (xs.length * width) / BLOCK, S);
    kernel.product(kind, at, rows, width / BLOCK, stride, X, S, xs.length, Y);
    return xs.map((_, i) => floats(Y + 4 * i * rows, rows).slice());
  }

  const strideOf = ({ kind, shape }) => (shape[0] / KINDS[kind].numbers) * KINDS[kind].bytes;
  return {
    product(name, xs) {
      const { kind, at, shape } = tensors[name];
      return multiply(kind, FILE_START + at, shape[1], shape[0], strideOf(tensors[name]), xs);
    },

    /** Row i of a matrix. */
    row(name, i) {
      const { kind, at, shape } = tensors[name];
      kernel.numbers(kind, FILE_START + at + i * strideOf(tensors[name]), shape[0] / BLOCK, Y);
      return floats(Y, shape[0]).slice();
    },

    /** A tensor that is one vector, which may begin at any byte. */
    vector(name) {
      const start = FILE_START + tensors[name].at;
      return new Float32Array(memory.buffer.slice(start, start + 4 * tensors[name].shape[0]));
    },

    /** Room for keys, token by token, and for values, each number of which has a row of its own. */
    cache() {
      const width = padded(d);
      const [K, V] = [reserve(G * ROOM * width), reserve(G * d * ROOM)];
      return {
        set(t, keys, values) {
          for (let g = 0; g < G; g += 1)
            floats(K + 4 * (g * ROOM + t) * width, d).set(keys.subarray(g * d, (g + 1) * d));
          const rows = floats(V, G * d * ROOM);
          values.forEach((value, i) => void (rows[i * ROOM + t] = value));
        },
        /** Of each query q with the first S keys of head g. */
        scores: (g, S, qs) => multiply(F32, K + 4 * g * ROOM * width, S, d, 4 * width, qs),
        /** Of the first S values of head g, by each list of weights. */
        sums: (g, S, weights) => multiply(F32, V + 4 * g * d * ROOM, d, S, 4 * ROOM, weights),
      };
    },
  };
}
