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
 * Beam search for one sentence, and greedy search beside it, as one more row of every batch.
 * `consider(feeds)` is the exported step that chooses; it gives at least `width` candidates, best
 * first, and the first `width` go on. Gives what it gave each time, and each greedy step.
 */
export async function beam(step, consider, state, bos, eos, most, width, alpha) {
  const first = (one, others) => [one, ...Array.from({ length: width - 1 }, () => others)];
  let now = { log_probs: first(0, -Infinity), lengths: first(0, 0), done: first(0, 1) };
  let [tokens, rows, said, soFar] = [first(bos, bos), first(0, 0), bos, 0];
  const [steps, single] = [[], []];
  const searches = () => steps.length < most && !now.done.every(Boolean);
  const goesOn = () => single.length < most && (single.length === 0 || said !== eos);
  state = pickRows(state, [...rows, 0]);
  while (searches() || goesOn()) {
    const {
      logProbs: {
        dims: [, V],
        data,
      },
      state: next,
    } = await step(state, [...tokens, said]);
    if (searches()) {
      const logProbs = { dims: [width, V], data: data.subarray(0, width * V) };
      const seen = await consider({ ...now, next_log_probs: logProbs, alpha });
      steps.push(seen);
      const kept = (name) => Array.from(seen[name].data.slice(0, width), Number);
      now = { log_probs: kept("log_prob"), lengths: kept("length"), done: kept("finished") };
      [tokens, rows] = [kept("token"), kept("parent")];
    }
    if (goesOn()) {
      const own = data.subarray(width * V);
      [said] = topK(own, 1);
      soFar = Math.fround(soFar + own[said]);
      single.push({ token: said, soFar });
    }
    state = pickRows(next, [...rows, width]);
  }
  return { steps, single };
}
