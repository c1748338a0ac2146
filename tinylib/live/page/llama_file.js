// A large file, fetched into memory. What has come stays, here and in the browser's cache, and the
// next try goes on from there. Only its size and its SHA-256 say whether it is whole.

import { digest } from "./engine.js";
import { assertBegin } from "./gguf.js";

const STORE = "tinylib-model";
const PART = 2 ** 22; // bytes that are kept as one entry
const LATER = "Try again later; if that does not help, please report it.";

/** The message for an error: what is wrong, and what to do about it. */
export const because = (why, remedy, cause = undefined) =>
  Object.assign(new Error(why, { cause }), { why, remedy });

/** The browser's cache, if there is one, keeps nothing any more. */
export const forgetFiles = async () => void (await globalThis.caches?.delete(STORE));

/** A file under way: `loaded` bytes of it have come, and are in `bytes`. */
class Download {
  loaded = 0;
  version = null; // the server's name for what it gave
  kept = true; // what has come is in the browser's cache, too

  constructor({ address, size, sha256 }, room) {
    this.address = address;
    this.size = size;
    this.sha256 = sha256;
    this.room = room;
    this.bytes = room.bytes;
  }

  part = (at) => `${this.address}?sha256=${this.sha256}&part=${Math.floor(at / PART)}`;

  /** Let `act` use the cache. There may be none, or it is full: then nothing is kept. */
  async inCache(act) {
    if (!this.kept) return;
    try {
      await act(await caches.open(STORE));
    } catch {
      this.kept = false;
      await forgetFiles().catch(() => {});
    }
  }

  async startAgain() {
    [this.loaded, this.version, this.kept] = [0, null, true];
    await forgetFiles().catch(() => {});
  }

  restore(report) {
    return this.inCache(async (cache) => {
      while (this.loaded < this.size) {
        const answer = await cache.match(this.part(this.loaded));
        const part = answer && new Uint8Array(await answer.arrayBuffer());
        if (part?.length !== Math.min(PART, this.size - this.loaded)) break;
        this.bytes.set(part, this.loaded);
        this.loaded += part.length;
        this.version = answer.headers.get("X-Version");
        report(this.loaded);
      }
      if (!this.loaded) await forgetFiles(); // an older model leaves
    });
  }

  /** Fetch what is missing; it begins with the byte that is returned, 0 if the server wants so. */
  async receive(report, signal) {
    const asked = this.loaded;
    const headers = asked ? { Range: `bytes=${asked}-` } : {};
    if (asked && this.version) headers["If-Range"] = this.version;
    const answer = await fetch(this.address, { headers, signal, cache: "no-store" });
    const { status, body } = answer;
    const from = Number(/^bytes (\d+)-/.exec(answer.headers.get("Content-Range"))?.[1]);
    if (asked && (status === 416 || (status === 206 && !(from <= asked)))) {
      await body?.cancel();
      this.loaded = 0;
      return this.receive(report, signal);
    }
    if (!answer.ok) throw new Error(`the server answered ${status}`);
    const tag = answer.headers.get("ETag");
    this.version = tag?.startsWith('"') ? tag : answer.headers.get("Last-Modified");
    const start = asked && status === 206 ? from : 0;
    this.loaded = start;
    const reader = body.getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      const before = this.loaded;
      const end = before + value.length;
      this.bytes.set(value.subarray(0, this.size - before), before);
      if (before < 1000) assertBegin(this.bytes.subarray(0, Math.min(end, this.size)));
      if (end > this.size) throw because("the server’s file is longer than the model", LATER);
      this.loaded = end;
      await this.keep(before);
      report(end);
    }
    if (!this.loaded) assertBegin(new Uint8Array());
    if (this.loaded < this.size) throw new Error("the connection broke off");
    return start;
  }

  /** Keep the parts that became whole after `before` bytes. */
  async keep(before) {
    const headers = this.version ? { "X-Version": this.version } : {};
    for (let at = before - (before % PART); at < this.loaded; at += PART) {
      const end = Math.min(at + PART, this.size);
      if (end > this.loaded) return;
      const part = new Response(this.bytes.subarray(at, end), { headers });
      await this.inCache((cache) => cache.put(this.part(at), part));
    }
  }
}

/** @type {Download | undefined} what has come of a file that is not whole yet */
let current;

/**
 * A file { address, size, sha256 } in the room that `makeRoom` gives, { bytes, … }: { room, kept },
 * and whether the browser keeps it. `report` gets a stage and how many bytes are there. An Error
 * says why the file is not whole; the next call goes on from what has come.
 */
export async function fetchFile(file, makeRoom, report, signal) {
  const { address, size, sha256 } = file;
  if (current?.sha256 !== sha256 || current.address !== address) {
    current = undefined; // it leaves its memory to the next
    current = new Download(file, makeRoom());
  }
  const download = current;
  const came = (loaded) => report("fetch", loaded);
  if (!download.loaded) await download.restore(came);
  for (let again = false; ; again = true) {
    let start = NaN;
    if (download.loaded < size) {
      start = await download.receive(came, signal).catch(async (error) => {
        const there = `${(download.loaded / 1e6).toFixed(1)} of ${(size / 1e6).toFixed(1)} MB`;
        if (error.why) await download.startAgain(); // it is another file
        if (error.why) throw error;
        const why = signal.aborted ? "you stopped it" : error.message;
        const remedy = "Try again: it goes on from there. If it does not, check the connection.";
        throw because(`${there} of the model have come: ${why}`, remedy, error);
      });
    }
    report("check", size);
    const hash = await digest(download.bytes);
    const hex = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (hex === sha256) break;
    await download.startAgain();
    if (again || start === 0) throw because("another file came: its SHA-256 is wrong", LATER);
  }
  current = undefined;
  return download;
}
