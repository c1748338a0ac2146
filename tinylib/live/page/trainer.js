// A trainer's worker, seen from its widget: it trains beside the page, which stays smooth.
// Where there is a kernel this is not used: torch trains there. A real model is asked like it.

const workers = new Map(); // stem -> its Worker
const own = new Map(); // stem -> its reader's own text, as the worker gets it
const waiting = new Map(); // number of a request -> what to do with its answers
const OTHER = { real_model: "../page/llama_worker.js" }; // stem -> a worker that is no trainer's
let asked = 0;

/** The worker of a widget, started when it is first needed. */
function workerOf(stem) {
  if (!workers.has(stem)) {
    const file = OTHER[stem] ?? "../page/trainer_worker.js";
    const address = new URL(file, import.meta.url);
    const worker = new Worker(address, { type: "module" });
    worker.onmessage = ({ data }) => waiting.get(data.number)?.(data);
    worker.onerror = (event) => {
      workers.delete(stem); // the next request starts another one
      const error = Object.assign(new Error(event.message || "the worker could not be loaded"), {
        why: "what trains or runs the model could not be loaded",
        lost: true,
        remedy: "Check the connection, then press “Try again”.",
      });
      for (const hear of [...waiting.values()]) hear({ error, of: stem });
    };
    workers.set(stem, worker);
    if (own.has(stem)) worker.postMessage({ act: "text", ...own.get(stem) });
  }
  return workers.get(stem);
}

/** Ask the worker for something; `progress` gets what it answers before it is done. */
export function ask(stem, message, progress = (_part) => {}) {
  const number = (asked += 1);
  return new Promise((resolve, reject) => {
    waiting.set(number, (answer) => {
      if (answer.of && answer.of !== stem) return;
      try {
        if (answer.error) reject(Object.assign(new Error(answer.error.message), answer.error));
        else if (answer.part) return progress(answer.part);
        else resolve(answer.result);
      } catch (error) {
        reject(error); // what shows a part has failed: to wait on would be to wait for ever
      }
      waiting.delete(number);
    });
    workerOf(stem).postMessage({ ...message, number, stem });
  });
}

/** Store a reader's own text, by a number that names it. */
export function setOwnText(stem, id, text) {
  own.set(stem, { id, text });
  workers.get(stem)?.postMessage({ act: "text", id, text });
}
export const ownTextOf = (stem) => own.get(stem);

/** A training under way stops after the step that is being computed, and answers with it. */
export const halt = (stem) => workers.get(stem)?.postMessage({ act: "halt" });

/**
 * A widget's program: the worker trains up to the steps that are wanted, and the page sees now and
 * then how far it has come. Newer inputs, or halt(), end it early.
 */
export const trains =
  (taskFile) =>
  async (_step, inputs, spec, partly, old = () => false) => {
    const task = new URL(`../../widgets/${taskFile}`, import.meta.url).href;
    let latest; // all outputs, as far as they are known
    const result = await ask(spec.stem, { act: "train", spec, inputs, task }, (part) => {
      if (old()) halt(spec.stem);
      latest = { ...latest, ...part };
      partly(() => latest);
    });
    return old() ? null : { ...latest, ...result };
  };
