// Trains in a Web Worker: the chapter's own training step, one graph, again and again.
// Each message has a `number`; each answer has that of the message it answers.

import { GENERATOR, initial, numbers } from "./chance.js";
import { openGraph, pool, runGraph, tensorOf } from "./engine.js";

const REPORT_MS = 100; // ms between two reports of a training
const SMOOTH = 40; // ms: so often the worker hears messages

/** @type {any} the training that is kept: its state, and the loss of each step */
let run = { key: "", losses: [] };
let left = run; // the one before it, to which Undo leads back
let halted = false;
const texts = new Map(); // number -> a reader's own text
let turn = Promise.resolve(); // messages are answered one after the other

const acts = {
  train,
  text: async ({ id, text }) => void texts.set(id, text),
  redraw: async () => void (run.turn = (run.turn ?? 0) + 1), // of what a look draws: other numbers
  forget: async () => leave({ key: "", losses: [] }),
  state: async () => (run.losses.length ? stateOf(run) : null),
  restore: async ({ spec, inputs, saved }) => {
    run = await begin(spec, inputs, saved);
    return run.losses.length;
  },
};

onmessage = ({ data }) => {
  if (data.act === "halt") {
    halted = true;
    return;
  }
  const { number } = data;
  const part = (outputs) => postMessage({ number, part: outputs });
  const answer = async () => {
    try {
      postMessage({ number, result: await acts[data.act](data, part) });
    } catch (error) {
      const { message, why, remedy, final } = error;
      postMessage({ number, error: { message, why, remedy, final } });
    }
  };
  turn = turn.then(answer);
};

/** What a training depends on; its steps do not change what it is. */
const keyOf = (spec, inputs) =>
  JSON.stringify(spec.facts.training.settings.map((name) => inputs[name]));

/** Another run now; one that was restored may have begun elsewhere, and is not returned to. */
function leave(next) {
  if (run.losses.length && !run.restored) left = run;
  run = next;
}

/** Where a training starts, or goes on from what was `saved` of it. */
async function begin(spec, inputs, saved, task = undefined) {
  const { fills } = spec.facts.training;
  const drawn = () => task?.first?.(inputs) ?? initial(fills[inputs.form], inputs.seed);
  const parameters = saved?.parameters ?? drawn();
  const first = saved?.losses?.length ? drawn() : parameters;
  const zeros = () => new Float32Array(parameters.length);
  return {
    key: keyOf(spec, inputs),
    first: await tensorOf(first), // what it has learned nothing with
    parameters: await tensorOf(parameters),
    mean: await tensorOf(saved?.mean ?? zeros()),
    square: await tensorOf(saved?.square ?? zeros()),
    count: await tensorOf(Float32Array.of(saved?.count ?? 0), []),
    losses: [...(saved?.losses ?? [])],
    restored: Boolean(saved),
    generator: saved ? saved.generator : GENERATOR, // of its first steps
    seen: null, // what its looks showed last
  };
}

/** A copy of the whole state, which can be kept and restored. */
const stateOf = ({ parameters, mean, square, count, losses, generator }) => ({
  parameters: parameters.data.slice(),
  mean: mean.data.slice(),
  square: square.data.slice(),
  count: count.data[0],
  losses: [...losses],
  generator,
});

/** As Trainer.rate_at has it: up over the warm-up, then in a straight line down to 0. */
function rateAt({ full, most, warmup, steady }, rate, step) {
  if (steady) return full * rate;
  const share = (step + 0.5) / most;
  return full * rate * (share < warmup ? share / warmup : 1 - (share - warmup) / (1 - warmup));
}

async function train({ spec, inputs, task: address, stem }, part) {
  halted = false;
  const task = await import(address);
  const { training } = spec.facts;
  const tools = { pool, numbers, texts };
  const context = (await task.context?.(inputs, spec, tools)) ?? {};
  const graph = `${stem}-step-${inputs.form}`;
  const look = (name, feeds) => {
    const own = `${stem}-${name}-${inputs.form}`;
    return openGraph(own).then(() => runGraph(own, { parameters: run.parameters, ...feeds }));
  };
  const [key, { steps }] = [keyOf(spec, inputs), inputs];
  const isShown = (one) => one.key === key && one.losses.length === steps;
  if (steps && !isShown(run) && isShown(left)) leave(left);
  else if (run.key !== key || run.losses.length > steps)
    leave(await begin(spec, inputs, undefined, task));
  if (inputs.steps > run.losses.length) await openGraph(graph);
  const shown = async () => {
    run.seen = plain(await task.look({ inputs, context, spec, run, look, numbers }));
    return { ...lossesOf(run), ...run.seen };
  };
  let reported = performance.now();
  let heard = reported;
  part(run.seen ? { ...lossesOf(run), ...run.seen } : await shown());
  while (run.losses.length < inputs.steps && !halted) {
    await oneStep(graph, task, { training, inputs, context, spec });
    const now = performance.now();
    if (now - reported > REPORT_MS) {
      reported = now;
      part(lossesOf(run));
    }
    if (now - heard > SMOOTH) {
      await hear();
      heard = performance.now();
    }
  }
  part(lossesOf(run)); // at once, since to look at what has been learned takes a while
  return shown();
}

const lossesOf = ({ losses }) => ({ losses: { dims: [losses.length], data: [...losses] } });

/** Outputs as they can be sent to the page: a runtime's tensor is more than its numbers. */
const plain = (outputs) =>
  Object.fromEntries(
    Object.entries(outputs).map(([name, value]) => [
      name,
      value?.dims ? { dims: [...value.dims], data: value.data } : value,
    ]),
  );

async function oneStep(graph, task, { training, inputs, context, spec }) {
  const at = run.losses.length;
  const next = numbers(inputs.seed, training.batches + at * training.draws);
  const batch = task.batch(next, { inputs, context, spec });
  const rate = { dims: [], data: Float32Array.of(rateAt(training, inputs.rate, at)) };
  const feeds = Object.fromEntries(batch.map((tensor, i) => [`batch_${i}`, tensor]));
  const { parameters, mean, square, count } = run;
  const came = /** @type {any} */ (
    await runGraph(graph, { parameters, mean, square, count, rate, ...feeds })
  );
  const loss = came.loss.data[0];
  if (!Number.isFinite(loss)) {
    throw Object.assign(new Error("the loss is no number"), {
      why: `the loss of step ${at + 1} is not finite any more, because the steps are too large`,
      remedy: "Choose a smaller learning rate.",
    });
  }
  run.parameters = came.parameters_after;
  run.mean = came.mean_after;
  run.square = came.square_after;
  run.count = came.count_after;
  run.losses.push(loss);
}

/** Let messages in. */
const hear = () =>
  new Promise((/** @type {(value?: any) => void} */ goOn) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      goOn();
    };
    port2.postMessage("");
  });
