// What the worker does for chapter 08's trainer: batches, and what is shown of the heads.
// The same as in heads_trainer.py.

const QUESTIONS = 4;

let known; // the pool, once it is there

/** The sentences to learn from, as symbols and places, and those that are held out. */
export async function context(_inputs, { facts }, { pool }) {
  known ??= parted(await pool("lookups"), facts);
  return known;
}

export function parted(bytes, { pool: count, held, length }) {
  let end = 0;
  const take = (rows, width) => bytes.subarray(end, (end += rows * width));
  const tokens = take(count, length);
  const places = take(count, length * QUESTIONS); // 0: there is none; else one more than the place
  const two = [held, length];
  return {
    tokens,
    places,
    held: {
      tokens: { dims: two, data: take(held, length) },
      digits: { dims: two, data: take(held, length) },
      places: {
        dims: [...two, QUESTIONS],
        data: Int32Array.from(take(held, length * QUESTIONS), (one) => one - 1),
      },
    },
  };
}

/** Sentences of the pool, with new symbols and digits, and the answers that are taught. */
export function batch(next, { inputs, context, spec: { facts } }) {
  const { batch: size, pool: count, length, symbols: many, free } = facts;
  const dims = [size, length];
  const tokens = new Int32Array(size * length);
  const digits = new Int32Array(size * length);
  const answers = new Int32Array(size * length * QUESTIONS);
  const chosen = [];
  for (let row = 0; row < size; row += 1) {
    chosen.push(Math.floor(next() * count));
    const draws = Array.from({ length: many }, next);
    const symbols = draws.map((_, i) => i).sort((i, j) => draws[i] - draws[j]);
    for (let t = 0; t < length; t += 1) {
      const token = context.tokens[chosen[row] * length + t];
      tokens[row * length + t] = token < free ? token : free + symbols[token - free];
      digits[row * length + t] = Math.floor(10 * next());
    }
  }
  for (let row = 0; row < size; row += 1) {
    const taught = ((row + inputs.answers) % size) * length; // its own, or of the next sentence
    for (let i = 0; i < length * QUESTIONS; i += 1) {
      const place = context.places[chosen[row] * length * QUESTIONS + i];
      answers[row * length * QUESTIONS + i] = place ? digits[taught + place - 1] : -1;
    }
  }
  return [
    { dims, data: tokens },
    { dims, data: digits },
    { dims: [...dims, QUESTIONS], data: answers },
  ];
}

/** What is shown: answers and roles on held-out sentences, and the weights in one sentence. */
export async function look({ context, spec: { facts }, look }) {
  const { accuracy, roles } = await look("measure", context.held);
  const { weights } = await look("attend", { tokens: facts.tokens, digits: facts.worn });
  return { accuracy, roles, weights };
}
