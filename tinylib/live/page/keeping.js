// A training run outside the page: kept in the browser, or as a file of safetensors.

const [BASE, STORE] = ["tinylib", "runs"];

const store = (mode) =>
  new Promise((resolve, reject) => {
    const opening = indexedDB.open(BASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const base = opening.result;
      const transaction = base.transaction(STORE, mode);
      transaction.oncomplete = transaction.onabort = () => base.close();
      resolve(transaction);
    };
  });

const done = (transaction, request) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => {
      transaction.db.close();
      resolve(request.result);
    };
    transaction.onabort = transaction.onerror = () => reject(transaction.error ?? request.error);
  });

/** What is kept under a name, or undefined. */
export async function kept(name) {
  const transaction = await store("readonly");
  return done(transaction, transaction.objectStore(STORE).get(name));
}

/** What tells a kept value from those that were kept there before and after it. */
export const stampOf = (value) => value && (value.stamp ?? "none");

/**
 * Change what is kept under a name, if nothing is, or what still has the stamp `over`. Else it
 * stays, and is returned: another tab has kept it meanwhile. It is asked and changed in one
 * transaction, so no other tab comes between.
 */
async function replace(name, over, change) {
  const transaction = await store("readwrite");
  const runs = transaction.objectStore(STORE);
  const asked = runs.get(name);
  const free = () => !asked.result || stampOf(asked.result) === over;
  let failed;
  asked.onsuccess = () => {
    try {
      if (free()) change(runs);
    } catch (error) {
      failed = error;
      transaction.abort();
    }
  };
  await done(transaction, asked).catch((error) => {
    throw failed ?? error;
  });
  return free() ? undefined : asked.result;
}

/** Keep a value in the place of the one of the stamp `over`; what is another one is returned. */
export const keep = (name, value, over) => replace(name, over, (runs) => runs.put(value, name));

/** Forget the value of the stamp `over`; what is another one stays, and is returned. */
export const forget = (name, over) => replace(name, over, (runs) => runs.delete(name));

/** How many numbers tensors of these shapes have in all. */
export const sizeOf = (shapes) =>
  shapes.reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0);

const MEANS = { mean: "training.mean", square: "training.square" };

/**
 * A training's parameters as a file that tinylib.lab.train.weights.load() reads; the optimiser's
 * means stand behind them, as two more tensors.
 */
export function toSafetensors({ parameters, mean, square }, names, shapes, metadata) {
  const header = { __metadata__: { metadata: JSON.stringify(metadata) } };
  let end = 0;
  const add = (name, shape) => {
    const start = end;
    end += 4 * shape.reduce((product, n) => product * n, 1);
    header[name] = { dtype: "F32", shape, data_offsets: [start, end] };
  };
  names.forEach((name, i) => add(name, shapes[i]));
  for (const name of Object.values(MEANS)) add(name, [parameters.length]);
  let text = JSON.stringify(header);
  while (new TextEncoder().encode(text).length % 8) text += " ";
  const bytes = new TextEncoder().encode(text);
  const size = new DataView(new ArrayBuffer(8));
  size.setBigUint64(0, BigInt(bytes.length), true);
  return new Blob([size.buffer, bytes, parameters, mean, square], {
    type: "application/octet-stream",
  });
}

/**
 * The vector in such a file, its metadata, and the means if it has them; an Error says what is
 * wrong with another file.
 */
export function fromSafetensors(buffer, names, shapes) {
  const wrong = (why) => new Error(`This file cannot be used: ${why}. Your run is as it was.`);
  let header, start;
  try {
    start = 8 + Number(new DataView(buffer).getBigUint64(0, true));
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(buffer.slice(8, start)));
  } catch {
    throw wrong("it is no file of safetensors");
  }
  const total = sizeOf(shapes);
  const vector = new Float32Array(total);
  const read = (name, shape) => {
    const { dtype, shape: own, data_offsets: [first, last] = [0, 0] } = header[name] ?? {};
    if (dtype !== "F32" || String(own) !== String(shape))
      throw wrong(`it has no ${name} of ${shape.join(" × ") || "one number"} in float32`);
    const data = buffer.slice(start + first, start + last);
    if (data.byteLength !== last - first) throw wrong("it is cut short");
    return new Float32Array(data);
  };
  let end = 0;
  names.forEach((name, i) => {
    const data = read(name, shapes[i]);
    vector.set(data, end);
    end += data.length;
  });
  const [mean, square] = Object.values(MEANS).map((name) =>
    header[name] ? read(name, [total]) : null,
  );
  for (const part of [vector, mean ?? [], square ?? []]) {
    if (!part.every(Number.isFinite)) throw wrong("it holds numbers that are not finite");
  }
  const metadata = JSON.parse(header.__metadata__?.metadata ?? "{}");
  return { vector, metadata, means: mean && square ? { mean, square } : undefined };
}
