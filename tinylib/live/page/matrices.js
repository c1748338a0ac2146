// The matrices of a GGUF file in a WebAssembly memory, and those of keys and values behind it.
// product.ts multiplies them with vectors; all else that the model does is JavaScript.

const [PAGE, MOST_MORE] = [65536, 2 ** 28]; // bytes: MOST_MORE of them behind the file
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

/** What a Llama does with the tensors of a file in memory; `wasm` is product.wasm. */
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
  const most = Math.max(MOST_AT_ONCE, H / G); // vectors
  const shapes = Object.values(tensors).map(({ shape }) => shape);
  const [longest, highest] = [0, 1].map((i) => Math.max(ROOM, ...shapes.map((one) => one[i] ?? 0)));
  const X = reserve(most * longest);
  const S = reserve((most * longest) / 8);
  const Y = reserve(most * Math.max(longest, highest));

  /** W x for each vector x. Rows of W have `columns` numbers, and begin each `stride` bytes. */
  function multiply(kind, at, rows, columns, stride, xs) {
    const width = padded(columns);
    const all = floats(X, xs.length * width).fill(0);
    xs.forEach((x, i) => all.set(x, i * width));
    if (kind === Q4_1) kernel.sums(X, all.length / BLOCK, S);
    kernel.product(kind, at, rows, width / BLOCK, stride, X, S, xs.length, Y);
    return xs.map((_, i) => floats(Y + 4 * i * rows, rows).slice());
  }

  /** Of a tensor: its kind, first byte, rows, columns, and the bytes of a row. */
  function placeOf(name) {
    const { kind, at, shape } = tensors[name];
    const stride = (shape[0] / KINDS[kind].numbers) * KINDS[kind].bytes;
    return [kind, FILE_START + at, shape[1], shape[0], stride];
  }

  return {
    product: (name, xs) => multiply(...placeOf(name), xs),

    /** Row i of a matrix. */
    row(name, i) {
      const [kind, at, , columns, stride] = placeOf(name);
      kernel.numbers(kind, at + i * stride, columns / BLOCK, Y);
      return floats(Y, columns).slice();
    },

    /** A tensor that is one vector, which may begin at any byte. */
    vector(name) {
      const [, at, , , bytes] = placeOf(name);
      return new Float32Array(memory.buffer.slice(at, at + bytes));
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
