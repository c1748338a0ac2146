// A GPT in the page that reads texts token by token, over the graph `writing-read`. It remembers
// what it has read, so that what a text begins with is not read again.

const MOST_KNOWN = 2000; // tokens of which it is remembered what they led to

const memories = new WeakMap(); // spec -> what the model has read for this widget

/**
 * A place in a text: the token there, what it led to, its row of the cache, and what came after.
 */
const newNode = () => ({
  after: new Map(),
  keys: null,
  values: null,
  last: null,
  chosen: null,
});

/** What the model has read for this widget; if that is too much, all of it is forgotten. */
export function memoryOf(spec) {
  const memory = memories.get(spec);
  if (memory?.known > MOST_KNOWN) {
    [memory.start, memory.known, memory.written] = [newNode(), 0, new Map()];
  }
  if (!memory) {
    const { max_len: maxLen } = spec.facts;
    const numbers = () => new Float32Array(maxLen * spec.limits.L[0] * spec.limits.D[0]);
    memories.set(spec, {
      start: newNode(),
      known: 0,
      written: new Map(),
      cache: { nodes: [], keys: numbers(), values: numbers() },
    });
  }
  return memories.get(spec);
}

/** The cache for the first P nodes of a text: the rows that it shares with the last one stay. */
function cacheOf(
  { cache },
  nodes,
  P,
  {
    limits: {
      L: [L],
      D: [D],
    },
  },
) {
  let same = 0;
  while (same < P && cache.nodes[same] === nodes[same]) same += 1;
  for (let i = same; i < P; i += 1) {
    cache.keys.set(nodes[i].keys, i * L * D);
    cache.values.set(nodes[i].values, i * L * D);
  }
  cache.nodes = nodes.slice(0, P);
  const rows = (data) => ({ dims: [P, L, D], data: data.subarray(0, P * L * D) });
  return { cached_keys: rows(cache.keys), cached_values: rows(cache.values) };
}

/** What the last token of a text leads to. Only what is not known is read. */
export async function lastOf(run, memory, spec, nodes, ids) {
  const node = nodes.at(-1);
  if (node.last) return node.last;
  let P = 0;
  while (P < nodes.length - 1 && nodes[P].keys) P += 1;
  const read = await run("writing-read", {
    tokens: ids.slice(P),
    ...cacheOf(memory, nodes, P, spec),
  });
  const size = read.keys.data.length / (nodes.length - P);
  nodes.slice(P).forEach((one, i) => {
    one.keys ??= read.keys.data.slice(i * size, (i + 1) * size);
    one.values ??= read.values.data.slice(i * size, (i + 1) * size);
  });
  node.last = {
    logits: read.logits,
    logProbs: read.log_probs.data,
    attention: read.attention,
  };
  return node.last;
}

/** What the knobs leave of the probabilities after `node`, and the token that u draws from them. */
export async function chosenAt(run, node, { logits }, knobs, u) {
  const drawn = JSON.stringify([knobs, u]);
  if (node.chosen?.drawn !== drawn) {
    const { processed, adjusted, token } = await run("writing-choose", { logits, ...knobs, u });
    node.chosen = { drawn, processed, adjusted, token: Number(token.data[0]) };
  }
  return node.chosen;
}

/** The places of a text, one for each token. */
export function nodesOf(memory, tokens) {
  const nodes = [];
  for (const token of tokens) nodes.push(nodeAfter(memory, nodes.at(-1), token));
  return nodes;
}

/** The place after `node`, or after nothing, where `token` stands. */
export function nodeAfter(memory, node, token) {
  const { after } = node ?? memory.start;
  if (!after.has(token)) {
    after.set(token, newNode());
    memory.known += 1;
  }
  return after.get(token);
}
