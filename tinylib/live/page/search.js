// Greedy search and beam search, as in tinylib/decoding.py, with a model's step in the page:
// step(state, tokens) -> { logProbs: { dims: [B, V], data }, state }, all of them exported graphs.

/** The places of the k largest numbers, the largest first; of equal numbers the first. */
export function topK(numbers, k) {
  const best = [];
  numbers.forEach((number, place) => {
    if (best.length === k && !(number > numbers[best[k - 1]])) return;
    let at = best.length;
    while (at > 0 && number > numbers[best[at - 1]]) at -= 1;
    best.splice(at, 0, place);
    best.length = Math.min(best.length, k);
  });
  return best;
}

/**
 * One sentence: the likeliest next token at every step, or the one that `forced` has there.
 * Gives the steps: which token was fed, all log-probabilities of the next, which it was, and the
 * log-probability of the sentence so far, added up in fp32 as torch does.
 */
export async function greedy(step, state, bos, eos, most, forced = []) {
  const steps = [];
  let [fed, soFar] = [bos, 0];
  while (steps.length < most && (steps.length === 0 || fed !== eos)) {
    const {
      logProbs: { data },
      state: next,
    } = await step(state, [fed]);
    const token = forced[steps.length] ?? topK(data, 1)[0];
    soFar = Math.fround(soFar + data[token]);
    steps.push({ fed, logProbs: data, token, soFar });
    [state, fed] = [next, token];
  }
  return steps;
}

/** The given rows of every { dims, data } in a state. */
export function pickRows(state, rows) {
  return Object.fromEntries(
    Object.entries(state).map(
      ([
        name,
        {
          dims: [B, ...rest],
          data,
        },
      ]) => {
        const size = data.length / B;
        const picked = new Float32Array(rows.length * size);
        rows.forEach((row, i) => picked.set(data.subarray(row * size, (row + 1) * size), i * size));
        return [name, { dims: [rows.length, ...rest], data: picked }];
      },
    ),
  );
}

/**
 * Beam search for one sentence, and greedy search beside it. `consider(feeds)` is the exported step
 * that chooses; it gives at least `width` candidates, best first, and the first `width` go on.
 * Gives what it gave each time, and each greedy step. `others` may write in the same batches, as
 * `together()` has it.
 */
export async function beam(step, consider, start, bos, eos, most, width, alpha, others = []) {
  const first = (one, rest) => [one, ...Array.from({ length: width - 1 }, () => rest)];
  let now = { log_probs: first(0, -Infinity), lengths: first(0, 0), done: first(0, 1) };
  const [steps, single] = [[], []];
  const searching = {
    fed: first(bos, bos),
    goesOn: () => steps.length < most && !now.done.every(Boolean),
    async hear(next_log_probs) {
      const seen = await consider({ ...now, next_log_probs, alpha });
      steps.push(seen);
      const kept = (name) => Array.from(seen[name].data.slice(0, width), Number);
      now = { log_probs: kept("log_prob"), lengths: kept("length"), done: kept("finished") };
      searching.fed = kept("token");
      return kept("parent");
    },
  };
  const greedily = {
    fed: [bos],
    goesOn: () => single.length < most && (single.length === 0 || greedily.fed[0] !== eos),
    hear({ data }) {
      const [token] = topK(data, 1);
      const soFar = Math.fround((single.at(-1)?.soFar ?? 0) + data[token]);
      greedily.fed = [token];
      single.push({ token, soFar });
      return [0];
    },
  };
  await together(step, start, [searching, greedily, ...others]);
  return { steps, single };
}

/**
 * Several write at once, in one batch of each step, until none goes on. Of each, `fed` are the
 * tokens that it is fed next, a row of the batch for each; `goesOn()` returns whether it is; and
 * `hear(logProbs)` chooses those after them, and gives the rows that they go on from.
 */
async function together(step, start, writers) {
  let state = start;
  const from = new Map(writers.map((one) => [one, one.fed.map(() => 0)]));
  for (;;) {
    const now = writers.filter((one) => one.goesOn());
    if (!now.length) return;
    const rows = now.flatMap((one) => from.get(one));
    const fed = now.flatMap((one) => one.fed);
    const { logProbs, state: next } = await step(pickRows(state, rows), fed);
    const V = logProbs.dims[1];
    let row = 0; // the first of the batch that is its own
    for (const one of now) {
      const { length } = one.fed;
      const data = logProbs.data.subarray(row * V, (row + length) * V);
      const parents = await one.hear({ dims: [length, V], data });
      const own = row;
      from.set(
        one,
        parents.map((parent) => own + parent),
      );
      row += length;
    }
    state = next;
  }
}
