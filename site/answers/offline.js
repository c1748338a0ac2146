// Keeps what a reader needs to go on without a connection. A page registers it once a written
// answer was judged, and not before.

/** @type {any} */
const worker = self;

const SCOPE = worker.registration.scope;
const CACHE = `road-to-gpt ${SCOPE}`;
const BY_CONTENT = /\/_static\/(answers|live|python)-\w+\//; // what is in it never changes
const KINDS = ["document", "style", "script", "font", "image"]; // and no models, nor data

/** The answer, kept if it is whole.
 * @param {Request} request */
async function fromNetwork(request) {
  const answer = await fetch(request);
  if (answer.status === 200 && !answer.redirected) {
    const copy = answer.clone();
    caches
      .open(CACHE)
      .then((cache) => cache.put(request, copy))
      .catch(() => {});
  }
  return answer;
}

/** @param {Request} request */
async function fromCache(request) {
  const ignoreSearch = request.mode === "navigate";
  return caches.match(request, { ignoreSearch, cacheName: CACHE });
}

/** @param {Request} request */
async function answer(request) {
  if (BY_CONTENT.test(request.url)) {
    return (await fromCache(request).catch(() => undefined)) ?? fromNetwork(request);
  }
  try {
    return await fromNetwork(request);
  } catch (error) {
    const kept = await fromCache(request);
    if (kept) return kept;
    throw error;
  }
}

/** Keep these addresses, and of folders that are named by content no older ones.
 * @param {string[]} addresses */
async function keep(addresses) {
  const cache = await caches.open(CACHE);
  const wanted = [...new Set(addresses)].filter((one) => one.startsWith(SCOPE));
  const folders = wanted.flatMap((one) => BY_CONTENT.exec(one) ?? []);
  for (const { url } of await cache.keys()) {
    const [folder, kind] = BY_CONTENT.exec(url) ?? [];
    if (folder && folders.includes(kind) && !folders.includes(folder)) await cache.delete(url);
  }
  for (const address of wanted) {
    if (await cache.match(address)) continue;
    const asked = BY_CONTENT.test(address) ? "force-cache" : "default";
    const answer = await fetch(address, { cache: asked });
    if (answer.status === 200) await cache.put(address, answer);
  }
}

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("message", (event) => {
  const kept = keep(event.data).then(
    () => true,
    () => false,
  );
  event.waitUntil(kept.then((all) => event.ports[0].postMessage(all)));
});
worker.addEventListener("fetch", (event) => {
  const { method, url, destination } = event.request;
  if (method !== "GET" || !url.startsWith(SCOPE)) return;
  if (BY_CONTENT.test(url) || KINDS.includes(destination)) event.respondWith(answer(event.request));
});
