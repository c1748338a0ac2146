// What the worker does for chapter 10's trainer: pairs of sentences, batches, and what the
// Transformer makes of those that are held out. The same as in translation_trainer.py.

const [BOS, EOS, UNK, NO_WORD] = [1, 2, 3, -1];
let known;

/** The pairs that are learned from, those that are held out, and where their words come from. */
export async function context(_inputs, { facts }, { pool }) {
  known ??= pairsOf(await pool("bilingual"), facts.sizes);
  return known;
}

export function pairsOf(bytes, { pool, held, S, T }) {
  const width = S + 1 + T;
  let at = 0;
  const take = (count) => {
    const rows = Array.from({ length: count }, (_, i) =>
      bytes.subarray(at + i * width, at + (i + 1) * width),
    );
    at += count * width;
    return rows.map((row) => ({
      source: row.subarray(0, S),
      length: row[S],
      target: row.subarray(S + 1),
    }));
  };
  const [train, valid] = [take(pool), take(held)];
  const origins = Array.from(
    { length: held * (T - 1) },
    (_, i) => bytes[at + 2 * i] + 256 * bytes[at + 2 * i + 1],
  );
  return { train, valid, origins };
}

const joined = (rows) => ({
  dims: [rows.length, rows[0].length],
  data: rows.flatMap((row) => [...row]),
});

/** Pairs from anywhere; if shuffled, each with the translation of the one before it. */
export function batch(next, { inputs: { shuffled }, context: { train }, spec: { facts } }) {
  const pairs = Array.from({ length: facts.batch }, () => train[Math.floor(next() * train.length)]);
  const targets = pairs.map(({ target }) => target);
  if (shuffled) targets.unshift(targets.pop());
  const lengths = pairs.map(({ length }) => length);
  return [joined(pairs.map(({ source }) => source)), lengths, joined(targets)];
}

/** Greedy search for B sentences at once; one that is alone may end sooner. */
async function written(look, source, lengths, most, D) {
  const { keys, values } = await look("read", { source, lengths });
  let cached_keys = { dims: [lengths.length, 0, D], data: new Float32Array(0) };
  let cached_values = cached_keys;
  let token = lengths.map(() => BOS);
  const [predicted, maps] = [lengths.map(() => []), []];
  while (predicted[0].length < most && !(predicted.length === 1 && predicted[0].at(-1) === EOS)) {
    const feeds = { token, lengths, keys, values, cached_keys, cached_values };
    const spoken = await look("speak", feeds);
    token = Array.from(spoken.said.data, Number);
    token.forEach((id, i) => predicted[i].push(id));
    maps.push(...spoken.cross.data);
    [cached_keys, cached_values] = [spoken.now_keys, spoken.now_values];
  }
  return { predicted, maps };
}

/** The page sends a sentence as ids; as it stands in the inputs, it is a text. */
const idsOf = (sentence, names) =>
  Array.isArray(sentence)
    ? sentence
    : sentence.split(" ").map((word) => (names.includes(word) ? names.indexOf(word) : UNK));

/** From the first <eos> on there is no word. */
function ended(row) {
  const end = row.indexOf(EOS);
  return Array.from(row, (id, t) => (end >= 0 && t >= end ? NO_WORD : id));
}

/** What is shown: how the held-out sentences are translated, and that of the reader. */
export async function look({ inputs, context, spec, look }) {
  const [{ valid, origins }, { facts, sentences }] = [context, spec];
  const { T, D } = facts.sizes;
  const source = joined(valid.map((pair) => pair.source));
  const lengths = valid.map(({ length }) => length);
  const { predicted } = await written(look, source, lengths, T - 1, D);
  const wanted = valid.map(({ target }) => ended(target.subarray(1)));
  const scores = await look("judge", {
    said: joined(predicted.map(ended)),
    wanted: joined(wanted),
  });
  const target = joined(valid.map((pair) => pair.target));
  const measured = await look("measure", { source, lengths, target });
  const hits = origins.filter((places, i) => (places >> Number(measured.places.data[i])) & 1);
  const read = idsOf(inputs.source, sentences.source);
  const one = { dims: [1, read.length], data: read };
  const own = await written(look, one, [read.length], facts.writes, D);
  return {
    valid: measured.valid,
    exact: scores.exact,
    bleu: scores.bleu,
    aligned: hits.length / origins.filter(Boolean).length,
    read,
    tokens: own.predicted[0],
    cross: { dims: [own.predicted[0].length, read.length], data: own.maps },
  };
}
