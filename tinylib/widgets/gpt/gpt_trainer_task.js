// What the worker does for chapter 12's trainer: texts, batches, and what is shown of the GPT.
// The same as in gpt_trainer.py.

const [STORIES, SHAKESPEARE] = [0, 1];
const POOLS = { [STORIES]: "stories", [SHAKESPEARE]: "shakespeare" };
const MISSING =
  "This copy of the site was built without the text of Shakespeare: choose another one, " +
  "or paste it as your own.";

let known = { corpus: -1 };

/** The text as ids; what is learned, what is held out, and the losses of tables that count. */
export async function context({ corpus }, { facts }, { pool, texts }) {
  if (known.corpus === corpus) return known;
  const missing = corpus === SHAKESPEARE ? MISSING : undefined;
  const text = POOLS[corpus]
    ? new TextDecoder().decode(await pool(POOLS[corpus], missing))
    : texts.get(corpus);
  if (text === undefined) {
    throw Object.assign(new Error("no text"), {
      why: "the text of this run is not here any more",
      remedy: "Paste it again.",
    });
  }
  known = { corpus, ...idsOf(text, facts) };
  return known;
}

export function idsOf(text, { V, heldOut }) {
  const characters = Array.from(text, (character) => character.codePointAt(0));
  const counts = new Map();
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1);
  const common = [...counts]
    .sort(([a, often], [b, seldom]) => seldom - often || a - b)
    .slice(0, V - 1)
    .map(([character]) => character);
  const names = common.sort((a, b) => a - b);
  const ids = new Map(names.map((character, i) => [character, i]));
  const tokens = Uint8Array.from(characters, (character) => ids.get(character) ?? V - 1);
  const cut = tokens.length - Math.floor(tokens.length * heldOut);
  const [train, valid] = [tokens.subarray(0, cut), tokens.subarray(cut)];
  return { train, valid, names, ngrams: [1, 2, 3].map((n) => ngramLoss(train, valid, n, V)) };
}

/** Nats for each held-out character, by counts of groups of n, as ngram_loss() has it. */
export function ngramLoss(train, valid, n, V) {
  const sizes = Array.from({ length: n }, (_, i) => i + 1);
  const seen = sizes.map((k) => new Int32Array(V ** k));
  const before = sizes.map((k) => new Int32Array(V ** k)); // those that something follows
  const place = (ids, end, k) => {
    let at = 0;
    for (let i = end - k; i < end; i += 1) at = at * V + ids[i];
    return at;
  };
  for (const k of sizes) {
    for (let end = k; end <= train.length; end += 1) {
      const at = place(train, end, k);
      seen[k - 1][at] += 1;
      if (end < train.length) before[k - 1][at] += 1;
    }
  }
  let loss = 0;
  for (let end = n; end <= valid.length; end += 1) {
    let p = 1 / V;
    for (const k of sizes) {
      const total = k === 1 ? train.length : before[k - 2][place(valid, end - 1, k - 1)];
      p = (seen[k - 1][place(valid, end, k)] + p) / (total + 1);
    }
    loss -= Math.log(p);
  }
  return loss / (valid.length - n + 1);
}

/** Pieces of the text from anywhere in it. */
export function batch(next, { context: { train }, spec: { facts } }) {
  const { T, batch: size } = facts;
  const starts = Array.from({ length: size }, () => Math.floor(next() * (train.length - T)));
  return [pieces(train, starts, T + 1)];
}

function pieces(ids, starts, length) {
  const data = new BigInt64Array(starts.length * length);
  starts.forEach((start, row) => {
    for (let i = 0; i < length; i += 1) data[row * length + i] = BigInt(ids[start + i]);
  });
  return { dims: [starts.length, length], data };
}

/** What is shown: the loss on held-out pieces, a text that it writes, and what its heads do. */
export async function look({ inputs, context, spec: { facts }, run, look, numbers }) {
  const { T, pieces: count, prompt } = facts;
  const { valid, ngrams, names } = context;
  const room = valid.length - (T + 1);
  const starts = Array.from({ length: count }, (_, i) => Math.floor((room * i) / (count - 1)));
  const measured = await look("measure", { pieces: pieces(valid, starts, T + 1) });
  const { beginning } = inputs; // code points
  const idOf = (point) => {
    const [small, ...more] = String.fromCodePoint(point).toLowerCase(); // if it has no capitals
    const same = [point, more.length ? point : small.codePointAt(0)];
    const known = same.find((one) => names.includes(one));
    return known === undefined ? facts.V - 1 : names.indexOf(known);
  };
  const read = beginning.length ? beginning.map(idOf) : Array.from(valid.subarray(0, prompt));
  const next = numbers(inputs.seed, facts.written * (run.turn ?? 0));
  const written = await continued(read, next, facts, (feeds) => look("write", feeds));
  if (run.before?.of !== String(read)) {
    const write = (feeds) => look("write", { ...feeds, parameters: run.first });
    const untrained = () => continued(read, numbers(inputs.seed), facts, write);
    run.before = { of: String(read), ids: run.losses.length ? await untrained() : written };
  }
  const { weights } = await look("attend", { read });
  return { valid: measured.valid, ngrams, names, read, written, before: run.before.ids, weights };
}

/** What a model writes behind what it has read: each character is drawn by the `next` number. */
async function continued(read, next, { T, written: length }, write) {
  const none = { dims: [4, 0, 64], data: new Float32Array(0) };
  let [token, cached_keys, cached_values] = [read, none, none];
  const written = [];
  for (let i = 0; i < length; i += 1) {
    const output = await write({ token, u: next(), cached_keys, cached_values });
    written.push(Number(output.drawn.data[0]));
    token = written.slice(-1);
    [cached_keys, cached_values] = [output.now_keys, output.now_values];
    if (cached_keys.dims[1] === T) {
      token = [...read, ...written].slice(-T / 2);
      cached_keys = cached_values = none;
    }
  }
  return written;
}
