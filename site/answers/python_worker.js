// Python itself, in a Worker: it is given its parts, and then answers to judge.

import { loadPyodide } from "pyodide";

const MOST = 2 ** 29; // bytes: an answer that asks for more gets a MemoryError, and the page lives
const PAGE = 2 ** 16;

// The course's files read others that stand beside them, so they cannot stay packed.
const UNPACK = `
import sys, zipfile
zipfile.ZipFile("/course.zip").extractall("/course")
sys.dont_write_bytecode = True
sys.path.insert(0, "/course")
`;

const { grow } = WebAssembly.Memory.prototype;
WebAssembly.Memory.prototype.grow = function (pages) {
  if (this.buffer.byteLength + pages * PAGE > MOST) throw new RangeError("too much memory");
  return grow.call(this, pages);
};

/** Pyodide asks for its parts by their addresses, and gets those that the page has fetched.
 * @param {import("./python.js").Parts} parts */
async function startPython({ program, script, library, course, lock }) {
  self.fetch = async (address) => new Response(`${address}`.endsWith(".zip") ? library : null);
  const broken = new Promise((_, reject) => {
    WebAssembly.instantiateStreaming = async (_, imports) => {
      try {
        return { module: program, instance: await WebAssembly.instantiate(program, imports) };
      } catch (error) {
        reject(error); // Pyodide would only wait
      }
    };
  });
  const { default: createPyodideModule } = await import(script);
  const settings = {
    createPyodideModule,
    indexURL: "/",
    stdLibURL: "/library.zip",
    lockFileContents: lock,
    jsglobals: {}, // an answer has no say in the Worker
    fsInit: async (/** @type {any} */ files) =>
      files.writeFile("/course.zip", new Uint8Array(course)),
    stdout() {}, // what an answer prints is in its verdict
    stderr() {},
  };
  const python = await Promise.race([loadPyodide(settings), broken]);
  python.runPython(UNPACK);
  return python.pyimport("judge");
}

/** @type {Promise<any> | undefined} */
let judge;

onmessage = async ({ data }) => {
  try {
    if (!judge) {
      judge = startPython(data);
      await judge;
      return postMessage({});
    }
    const verdict = (await judge)[data.name](...data.given);
    const plain = verdict.toJs({ dict_converter: Object.fromEntries });
    verdict.destroy();
    postMessage(plain);
  } catch (error) {
    postMessage({ error: `${error.message ?? error}`.trim().split("\n").at(-1) });
  }
};
