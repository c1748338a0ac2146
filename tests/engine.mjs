// The built site's engine and views in Node, where neither draws: node tests/engine.mjs FOLDER
// Each line that comes in is [view, rule, given] as JSON, and each that goes out what the function
// `rule`, (module of the view, given, run, start) => result in JavaScript, makes of it.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

// What the modules ask the browser for while they are loaded, and of a page's server the files.
Object.assign(globalThis, {
  CSS: { supports: () => false },
  matchMedia: () => ({ matches: false, addEventListener() {} }),
  requestAnimationFrame: setTimeout,
  onmessage: null, // a worker's program sets it, and answers by the other
  postMessage() {},
  fetch: async (url) => new Response(readFileSync(fileURLToPath(`${url}`.split("?")[0]))),
});

const live = pathToFileURL(process.argv[2]);
const { run, start } = await import(new URL("live/page/engine.js", live));
for await (const line of createInterface({ input: process.stdin })) {
  const [view, rule, given] = JSON.parse(line);
  const ruled = await import(
    `data:text/javascript,${encodeURIComponent(`export default ${rule}`)}`
  );
  const module = await import(new URL(`widgets/${view}`, live));
  const result = (await ruled.default(module, given, run, start)) ?? null;
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
