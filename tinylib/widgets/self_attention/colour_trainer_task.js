// What the worker does for chapter 06's trainer: sentences, and what is shown of the model.
// The same as in colour_trainer.py.

const T = 8; // words: four colours, each twice
const NUMBERS = 4;

/** Of 16 numbers in (0, 1), eight are sorted to shuffle the colours, and eight are rounded. */
function sentence(next) {
  const u = Array.from({ length: T }, next);
  const order = Array.from(u, (_, i) => i).sort((i, j) => u[i] - u[j]); // 2c and 2c + 1: colour c
  return {
    colours: order.map((item) => item >> 1),
    numbers: Array.from({ length: T }, () => Math.floor(next() * NUMBERS)),
    partners: order.map((item) => order.indexOf(item ^ 1)),
  };
}

function sentences(next, count) {
  const examples = Array.from({ length: count }, () => sentence(next));
  const all = (read) => ({
    dims: [count, T],
    data: BigInt64Array.from(examples.flatMap(read), BigInt),
  });
  return {
    colours: all(({ colours }) => colours),
    numbers: all(({ numbers }) => numbers),
    partners: all(({ partners }) => partners),
    answers: examples.map(({ numbers, partners }) => partners.map((place) => numbers[place])),
  };
}

/** Sentences, and the answers; shuffled ones are those of another sentence. */
export function batch(next, { inputs, spec: { facts } }) {
  const { colours, numbers, answers } = sentences(next, facts.batch);
  if (inputs.form === facts.numbered.shuffled) answers.unshift(answers.pop());
  const data = BigInt64Array.from(answers.flat(), BigInt);
  return [colours, numbers, { dims: colours.dims, data }];
}

let tests; // the sentences at which every model is measured

/** What is shown: how often it is right, one sentence, and the matrices. */
export async function look({ inputs, spec: { facts }, look, numbers }) {
  const { training, seeds, tests: count } = facts;
  const from = (seed, step, draws) => numbers(seed, training.batches + step * draws);
  tests ??= sentences(from(seeds.tested, 0, 0), count);
  const { colours, numbers: testNumbers, partners } = tests;
  const measured = await look("measure", { colours, numbers: testNumbers, partners });
  const shown = sentence(from(seeds.shown, inputs.example, 2 * T));
  const read = await look("read", { colours: shown.colours, numbers: shown.numbers });
  return { ...measured, ...shown, ...read, ...(await look("matrices", {})) };
}
