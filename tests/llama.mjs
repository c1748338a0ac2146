// The page's real model in Node: node tests/llama.mjs, which reads [rule, given] as JSON and prints
// what the rule, async (tools, given) => result in JavaScript, makes of it.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { pathToFileURL } from "node:url";

const page = new URL("../tinylib/live/page/", import.meta.url);
const wasm = readFileSync(new URL("product.wasm", page));
const fromServer = fetch;
let hear = (_answer) => {};
Object.assign(globalThis, {
  onmessage: null,
  postMessage: (answer) => hear(answer),
  fetch: async (url, options) =>
    `${url}`.startsWith("file:") ? new Response(wasm) : fromServer(url, options),
});

/** The Cache API; `fails` is the method that throws. */
function cacheApi(fails = "") {
  const kept = new Map();
  const or = (name, act) => async (key, value) => {
    if (name === fails) throw new Error(`no ${name}`);
    return act(key?.url ?? key, value);
  };
  const cache = {
    match: or("match", (key) => kept.get(key)?.clone()),
    put: or("put", (key, answer) => void kept.set(key, answer)),
    keys: or("keys", () => [...kept.keys()].map((url) => ({ url }))),
    delete: or("delete", (key) => kept.delete(key)),
  };
  return { kept, open: or("open", () => cache), delete: or("delete", () => kept.clear()) };
}

const tools = {
  cacheApi,
  wasm,
  writeFileSync,
  load: (name) => import(new URL(name, page)),

  /** A new worker, as a new visit of the page has it: a function that asks it. */
  async worker() {
    const copy = mkdtempSync(`${tmpdir()}/page-`); // modules at other addresses begin anew
    cpSync(page, copy, { recursive: true });
    await import(pathToFileURL(`${copy}/llama_worker.js`).href);
    rmSync(copy, { recursive: true });
    const answers = globalThis.onmessage;
    return (message, part = (_) => {}) =>
      new Promise((resolve) => {
        const parts = [];
        hear = (answer) => {
          if (!answer.part) return resolve({ ...answer, parts });
          parts.push(answer.part);
          part(answer.part, () => answers({ data: { act: "halt" } }));
        };
        answers({ data: { ...message, number: 1 } });
      });
  },

  /** { llama, tokens, info, tensors, read } of a file; `read` reads ids, so many at once. */
  async model(path) {
    const [gguf, parts, { createLlama }, { LlamaTokens }] = await Promise.all(
      ["gguf.js", "matrices.js", "llama.js", "llama_tokens.js"].map((name) => tools.load(name)),
    );
    const file = readFileSync(path);
    const memory = parts.memoryFor(file.length);
    const bytes = new Uint8Array(memory.buffer, parts.FILE_START, file.length);
    bytes.set(file);
    const found = gguf.readHeader(bytes);
    const config = gguf.configOf(found);
    const matrices = await parts.matricesIn(memory, wasm, found.tensors, file.length, config);
    const llama = createLlama(config, matrices);
    const read = (ids, some, each) => {
      for (let at = 0; at < ids.length; at += some) {
        const streams = [];
        const watch = (block, xs) => void (streams[block] = xs);
        const xs = llama.read(ids.slice(at, at + some), at, watch);
        llama.logits(xs).forEach((logits, t) =>
          each(
            streams.map((all) => all[t]),
            logits,
          ),
        );
      }
    };
    return { llama, tokens: new LlamaTokens(found.info), ...found, read };
  },
};

const [rule, given] = JSON.parse(readFileSync(0, "utf8"));
const source = `data:text/javascript,${encodeURIComponent(`export default ${rule}`)}`;
const { default: run } = await import(source);
process.stdout.write(JSON.stringify((await run(tools, given)) ?? null), () => process.exit());
