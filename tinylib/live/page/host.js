// Brings the widgets of a static page to life. A classic script, so that it also runs, and can say
// why a widget is not live, when the page was opened as a file.
(() => {
  const own = /** @type {HTMLScriptElement} */ (document.currentScript);
  const ahead = (own.dataset.ahead ?? "").split(" "); // widgets whose model comes unasked
  const live = new URL("../", own.src).href;
  const texts = (own.dataset.texts ?? "").split(" "); // that this copy of the site has
  const gguf = own.dataset.gguf && new URL(`../../${own.dataset.gguf}`, live).href; // a real model
  const STORED =
    "Change anything. The results shown were stored with the page; from your first change on, " +
    "your browser runs the same functions of the chapter.";
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  const RUNTIME = "the runtime (about 4 MB, once)";
  const HERE = "Computed here. Your browser runs the chapter's PyTorch function.";
  const HERE_BY_RULES =
    "Computed here. Your browser runs the chapter's functions, written in JavaScript.";
  const HERE_TRAINED = "Trained here. Your browser runs the chapter's own training step.";
  const LONG = 80; // ms: after such a run the next one is announced before it holds up the page

  /** Whether any graphs compute the outputs, or the page's program alone. */
  const runsGraphs = (spec) => spec.graphs?.length !== 0;
  /** Whether it trains: then a worker runs its graphs, and the page none. */
  const trains = (spec) => Boolean(spec.facts?.training);

  /** A view that asks a worker of its own: an edit needs no answer from here. */
  function settle(model) {
    model.saved = () => {
      model.set("answered", model.get("asked"));
      model.set("answers", {});
    };
    return () => {};
  }

  /** What anywidget's views expect of a model, for a page without a kernel. */
  class Model {
    #state;
    #listeners = new Map();

    constructor(state) {
      this.#state = state;
    }

    get(name) {
      return this.#state[name];
    }

    set(name, value) {
      this.#state[name] = value;
      for (const listener of this.#listeners.get(`change:${name}`) ?? []) listener();
    }

    on(event, listener) {
      if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
      this.#listeners.get(event).add(listener);
    }

    off(event, listener) {
      this.#listeners.get(event)?.delete(listener);
    }

    settled = true; // no answer is outstanding
    kept = new Map(); // inputs, as text -> the outputs that are stored for them
    saved = undefined; // computeFor: what a change of the inputs sets going

    save_changes() {
      this.saved?.();
    }

    send() {
      throw new Error("there is no kernel behind a static page");
    }
  }

  /** Stored lists, with null for −∞, in the form in which a kernel sends results. */
  function packed(stored) {
    return Object.fromEntries(
      Object.entries(stored).map(([name, value]) => {
        const shape = [];
        for (let v = value; Array.isArray(v); [v] = v) shape.push(v.length);
        const data = Float32Array.from([value].flat(shape.length + 1), (v) => v ?? -Infinity);
        return [name, { shape, data: new DataView(data.buffer) }];
      }),
    );
  }

  /** The page shows what has changed; one that is out of sight need not. */
  const drawn = () =>
    new Promise((done) => {
      requestAnimationFrame(() => setTimeout(done));
      setTimeout(done, 60);
    });

  /** An error, or what it is to the reader: what is wrong, and what to do about it. */
  const describeError = (error) =>
    error.why
      ? error
      : {
          why: `a fault in the page's own program (${error.message})`,
          remedy: "Press “Undo”, or change something else; and please report what you had typed.",
        };

  let engine; // promise of engine.js
  let tries = 0;
  function loadEngine() {
    // A browser remembers a module that failed to load, so a new try needs a new address.
    engine ??= import(`${live}page/engine.js${tries ? `?try=${tries}` : ""}`).catch((error) => {
      engine = undefined;
      tries += 1;
      throw Object.assign(error, {
        why: "its runtime could not be loaded",
        remedy: "Check the connection, then press “Try again”.",
      });
    });
    return engine;
  }

  /** Keep `model`'s outputs true to its inputs, and say so when that fails. */
  function computeFor(model, program, early) {
    const spec = model.get("spec");
    const here = trains(spec) ? HERE_TRAINED : runsGraphs(spec) ? HERE : HERE_BY_RULES;
    let [busy, again] = [false, false];
    let ready = !runsGraphs(spec); // the runtime is there
    let begun = !trains(spec); // the worker of a trainer has what it needs
    let latest; // the inputs that are prepared for
    let took = 0; // ms: the last run
    /** @type {(value?: any) => void} */
    let goOn = () => {}; // newer inputs do not wait for what older ones need

    const showLoading = (loading) => {
      if (model.get("loading") !== loading) model.set("loading", loading);
    };
    const loading = (more) => {
      const all = [...(ready ? [] : [RUNTIME]), ...more];
      showLoading(all.length ? `Loading ${all.join(" and ")}…` : "");
    };
    const prepare = async (inputs) => {
      latest = inputs;
      const report = (progress) => {
        if (latest !== inputs) return;
        const { loaded, total, trained } = progress;
        model.set("progress", progress);
        if (loaded === total) showLoading("Starting…");
        else loading(trained ? [`the trained model (${megabytes(trained)})`] : []);
      };
      if (!ready && !model.get("progress")) loading(spec.weights ? ["the trained model"] : []);
      try {
        await (await loadEngine()).prepare(spec, inputs, report);
        ready = true;
      } finally {
        if (latest === inputs) {
          model.set("progress", null);
          showLoading("");
        }
      }
    };
    /** What is stored for the inputs, or its beginning, is shown before it is computed. */
    const recall = () => {
      const inputs = model.get("inputs");
      const whole = model.kept.get(JSON.stringify(inputs));
      const begun = whole ? undefined : early?.answer(spec, inputs);
      if (!whole && !begun) return;
      model.set("outputs", whole ?? packed(begun));
      model.set("answered", model.get("asked"));
      model.set("unfinished", !whole);
      model.set("answers", {});
    };
    const fail = (error) => {
      console.info(error);
      showLoading("");
      if (model.kept.size && model.get("answered") === model.get("asked")) return; // recalled
      model.set("unfinished", false);
      model.set("where", "The results shown are older than what you typed.");
      const { why, remedy, final = false } = describeError(error);
      model.set("final", final); // there is nothing to try again
      model.set(
        "error",
        `This page cannot compute now: ${why}. ${remedy} ` +
          "What you typed is kept; the results are still those of before.",
      );
    };
    const compute = async () => {
      again = true;
      goOn();
      if (busy) return;
      busy = true;
      model.settled = false;
      try {
        while (again) {
          again = false;
          const [inputs, asked] = [model.get("inputs"), model.get("asked")];
          await Promise.race([
            prepare(inputs),
            new Promise((newer) => {
              goOn = newer;
            }),
          ]);
          if (again) continue;
          if (!begun) showLoading(`Loading ${RUNTIME}…`);
          const show = (outputs, whole = false) => {
            if (!begun) showLoading("");
            begun = true;
            model.set("outputs", outputs);
            model.set("answered", asked);
            model.set("unfinished", !whole);
            model.set("error", "");
            model.set("where", here);
            model.set("answers", {});
          };
          if (took > LONG && model.get("answered") !== asked) {
            model.set("slow", {});
            await drawn();
            if (again) continue;
          }
          const started = performance.now();
          const outputs = await (await loadEngine()).run(spec, inputs, program, () => again, show);
          took = performance.now() - started;
          if (outputs) show(outputs, true); // else given up for newer inputs
        }
      } catch (error) {
        fail(error);
      } finally {
        busy = false;
        model.settled = true;
      }
    };
    model.saved = () => {
      recall();
      compute();
    };
    return async () => {
      // the reader shows interest
      if (busy) return;
      try {
        await prepare(model.get("inputs"));
        if (model.get("error")) compute();
      } catch (error) {
        console.info(error); // no edit waits for it yet, and the first one tries again
      }
    };
  }

  // The runtime comes before it is needed: as soon as the reader moves about the page and a widget
  // is within a screen of theirs, unless their browser is to save data.
  let moved = false;
  const near = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      near.disconnect();
      moved = false;
      const ready = loadEngine().then((engine) => engine.start());
      ready.catch((error) => console.info(error)); // the first edit tries again, and says so
    },
    { rootMargin: "100% 0px" },
  );
  const follow = (el) => {
    if (runsGraphs(el.model.get("spec"))) near.observe(el);
  };
  function move() {
    if (moved || /** @type {any} */ (navigator).connection?.saveData) return;
    moved = true;
    for (const el of document.querySelectorAll(".tl-widget")) follow(el);
  }
  for (const sign of ["scroll", "pointerdown", "keydown"]) {
    addEventListener(sign, move, { once: true, passive: true });
  }

  // On the few pages where a touch is to be answered at once, what that needs is fetched and made
  // ready after the page has come and stood for a while, unless the browser is to save data.
  const comeAhead = []; // what is to be done for it, one after the other
  const STANDS = 2000; // ms
  const fetchAhead = async () => {
    for (const doIt of comeAhead) await doIt?.();
  };
  addEventListener("load", () => {
    if (/** @type {any} */ (navigator).connection?.saveData) return;
    const idle = window.requestIdleCallback ?? setTimeout;
    setTimeout(() => idle(() => fetchAhead().catch((error) => console.info(error))), STANDS);
  });

  async function start(preview, id) {
    const state = JSON.parse(preview.querySelector("script[type='application/json']").textContent);
    const view = await import(`${live}../widgets/${preview.dataset.view}`);
    const model = new Model({
      ...state,
      outputs: packed(state.outputs),
      where: trains(state.spec) ? "" : STORED, // a trainer's Start says what it does
      link_id: id,
      texts,
      gguf,
    });
    if (state.kept) {
      const inputs = [state.inputs, ...state.offered].map((one) => JSON.stringify(one));
      const outputs = [model.get("outputs"), ...state.kept.map(packed)];
      model.kept = new Map(inputs.map((one, i) => [one, outputs[i]]));
    }
    const { program, early } = view;
    const interest = state.spec.asks ? settle(model) : computeFor(model, program, early);
    const el = Object.assign(document.createElement("div"), { model });
    if (ahead.includes(preview.dataset.widget)) comeAhead.push(early?.fetch, interest);
    el.className = "tl-widget";
    el.dataset.widget = id;
    for (const sign of ["pointerover", "touchstart", "focusin"]) {
      el.addEventListener(sign, interest, { once: true, passive: true });
    }
    preview.before(el);
    if (moved) follow(el);
    try {
      view.default.render({ model, el });
      preview.remove();
    } catch (error) {
      el.remove();
      throw error;
    }
  }

  const counts = {};
  /** @type {NodeListOf<HTMLElement>} */
  const previews = document.querySelectorAll("div.tl-live");
  for (const preview of previews) {
    const stem = preview.dataset.widget;
    counts[stem] = (counts[stem] ?? 0) + 1;
    const why = preview.querySelector(".tl-why");
    const [computed] = why.textContent.split(/(?<=\.)/); // “Computed by PyTorch.”
    if (location.protocol === "file:") {
      why.textContent =
        `${computed} A page opened as a file cannot load the live ` +
        "widget: run “make serve” in the course's folder, or read it on its site.";
    } else {
      start(preview, counts[stem] > 1 ? `${stem}-${counts[stem]}` : stem).catch((error) => {
        const what = `${computed} The live widget could not be loaded`;
        preview.classList.add("failed");
        why.textContent = `${what}: ${error.message}`;
      });
    }
  }
})();
