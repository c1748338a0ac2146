// Brings the widgets of a static page to life. A classic script, so that it also runs, and can say
// why a widget is not live, when the page was opened as a file.
(() => {
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  const live = new URL("_static/live/", root);
  const STORED = "Computed by PyTorch. Change something, and your browser computes it anew.";
  const LOADING = "Loading the runtime (about 4 MB, once)…";
  const HERE = "Computed in this page, by the chapter's PyTorch function.";

  /** What anywidget's views expect of a model, for a page without a kernel. */
  class Model {
    #state;
    #listeners = new Map();

    constructor(state) { this.#state = state; }

    get(name) { return this.#state[name]; }

    set(name, value) {
      this.#state[name] = value;
      for (const listener of this.#listeners.get(`change:${name}`) ?? []) listener();
    }

    on(event, listener) {
      if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
      this.#listeners.get(event).add(listener);
    }

    off(event, listener) { this.#listeners.get(event)?.delete(listener); }

    settled = true; // no answer is outstanding

    save_changes() { this.saved?.(); }

    send() { throw new Error("there is no kernel behind a static page"); }
  }

  /** Stored lists, with null for −∞, in the form in which a kernel sends results. */
  function packed(stored) {
    return Object.fromEntries(Object.entries(stored).map(([name, value]) => {
      const shape = [];
      for (let v = value; Array.isArray(v); [v] = v) shape.push(v.length);
      const data = Float32Array.from(value.flat(shape.length), (v) => v ?? -Infinity);
      return [name, { shape, data: new DataView(data.buffer) }];
    }));
  }

  let engine; // promise of engine.js, asked for once, and again after a failure
  function loadEngine() {
    engine ??= import(new URL("engine.js", live).href);
    engine.catch(() => { engine = undefined; });
    return engine;
  }

  /** Keep `model`'s outputs true to its inputs; on failure go back to the last inputs that were. */
  function computeFor(model) {
    const spec = model.get("spec");
    let good = model.get("inputs");
    let [busy, again, ready] = [false, false, false];

    const prepare = async () => {
      if (!ready) model.set("where", LOADING);
      const { session } = await loadEngine();
      await session(spec.stem);
      ready = true;
      model.set("where", HERE);
    };
    const fail = (error) => {
      model.set("where", STORED);
      model.set("inputs", good);
      model.set("answers", {});
      model.set("error", "This widget is not live: its runtime could not be loaded "
        + `(${error.message ?? error}). The numbers shown are the last good ones; `
        + "change one to try again, or reload the page.");
    };
    const compute = async () => {
      again = true;
      model.settled = false;
      if (busy) return;
      busy = true;
      try {
        await prepare();
        while (again) {
          again = false;
          const inputs = model.get("inputs");
          const outputs = await (await loadEngine()).run(spec, inputs);
          good = inputs;
          model.set("outputs", outputs);
          model.set("answers", {});
        }
      } catch (error) {
        again = false;
        fail(error);
      }
      busy = false;
      model.settled = true;
    };
    model.saved = compute;
    return () => { if (!busy && !ready) prepare().catch(fail); };
  }

  async function start(preview, id) {
    const state = JSON.parse(preview.querySelector("script[type='application/json']").textContent);
    const view = await import(new URL(`${preview.dataset.widget}.js`, live).href);
    const model = new Model({
      ...state, outputs: packed(state.outputs), where: STORED, link_id: id,
    });
    const interest = computeFor(model);
    const el = document.createElement("div");
    el.className = "tl-widget";
    el.dataset.widget = id;
    el.model = model;
    for (const sign of ["pointerover", "touchstart", "focusin"]) {
      el.addEventListener(sign, interest, { once: true, passive: true });
    }
    view.default.render({ model, el });
    preview.replaceWith(el);
  }

  const counts = {};
  for (const preview of document.querySelectorAll("div.tl-live")) {
    const stem = preview.dataset.widget;
    counts[stem] = (counts[stem] ?? 0) + 1;
    const why = preview.querySelector(".tl-why");
    if (location.protocol === "file:") {
      why.textContent = "Computed by PyTorch. A page opened as a file cannot load the live "
        + "widget: run “make serve” in the course's folder, or read it on its site.";
    } else {
      start(preview, counts[stem] > 1 ? `${stem}-${counts[stem]}` : stem).catch((error) => {
        why.textContent = `Computed by PyTorch. The live widget could not be loaded: ${error.message}`;
      });
    }
  }
})();
