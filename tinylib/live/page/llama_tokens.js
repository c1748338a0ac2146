// The tokens of the model in a GGUF file, as tinylib/lab/models/smollm2_tokens.py has them: byte
// pairs under the file's own numbers, each digit a token of its own, and a template for a dialogue.

import { BytePairs, fromBytes, split, toBytes } from "./byte_pairs.js";

const CONTROL = 3; // the kind of a sign such as <|im_end|>, which is in no text
const DIGIT = /(\p{N})/u;

/** GPT-2's files write a byte as a character: as itself if that is visible, else from 256 on. */
const isVisible = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
const ELSE = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => !isVisible(byte));
const byteOf = (name) =>
  name.charCodeAt(0) < 256 ? name.charCodeAt(0) : ELSE[name.charCodeAt(0) - 256];

const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");
const inWords = (why, remedy) => Object.assign(new Error(why), { why, remedy });

export class LlamaTokens extends BytePairs {
  /** `info` is the metadata that readHeader() finds; an Error says what is not as it should be. */
  constructor(info) {
    const [model, cut, names = [], kinds, merges = [], template, end] = [
      ...["model", "pre", "tokens", "token_type", "merges"].map((key) => `ggml.${key}`),
      ...["chat_template", "ggml.eos_token_id"],
    ].map((key) => info[`tokenizer.${key}`]);
    const other = "Take a GGUF file of SmolLM2.";
    if (model !== "gpt2" || cut !== "smollm")
      throw inWords(`the file’s tokens are ${model}/${cut}, and only gpt2/smollm is known`, other);
    const signs = names.findIndex((_, id) => kinds[id] !== CONTROL);
    const bytes = names.slice(signs).filter((name) => name.length === 1);
    const start = signs + bytes.length; // the id of the first merge
    const idOf = new Map(names.map((name, id) => [name, id]));
    const own = (name) => (name.length === 1 ? byteOf(name) : idOf.get(name) - start + 256);
    super(merges.map((pair) => pair.split(" ").map(own)));
    if (merges.some((pair, i) => pair.replace(" ", "") !== names[start + i]))
      throw inWords("the file’s tokens are not in the order of its merges", other);
    this.names = names;
    this.signs = signs;
    this.start = start;
    this.template = template;
    this.idOf = idOf;
    /** Of each byte its id; some have none. */
    this.idOfByte = new Map(bytes.map((name, i) => [byteOf(name), signs + i]));
    /** The ids with which a text ends. */
    this.ends = [end, idOf.get("<|endoftext|>")];
  }

  /** The ids of a text, in which a sign is only letters. An Error if a byte of it has none. */
  ids(text) {
    const idOf = (own) => (own > 255 ? own - 256 + this.start : this.idOfByte.get(own));
    const own = text
      .split(DIGIT)
      .flatMap(split)
      .flatMap((piece) => this.idsOfPiece(piece));
    const byte = own.find((id) => idOf(id) === undefined);
    if (byte === undefined) return own.map(idOf);
    const character = [...text].find((one) => toBytes(one).includes(byte));
    const code = `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    const why = `the model has no token for the byte ${hex(byte)}, a part of the character ${code}`;
    throw inWords(why, "Leave out that character.");
  }

  bytesOf(id) {
    if (id < this.signs) return toBytes(this.names[id]);
    return id < this.start ? [byteOf(this.names[id])] : this.tokens[id - this.start + 256];
  }

  /** How a token reads on its own: as bytes, such as F0 9F, if it is no whole characters. */
  piece(id) {
    const bytes = this.bytesOf(id);
    return fromBytes(bytes) ?? bytes.map(hex).join(" ");
  }

  /** A function that is given one id after another, and gives what has become whole characters. */
  writer() {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return (id) => decoder.decode(Uint8Array.from(this.bytesOf(id)), { stream: true });
  }

  text(ids) {
    return ids.map(this.writer()).join("");
  }

  /** The ids of a dialogue, [[role, text], …], up to where the answer begins. */
  idsOfDialogue(dialogue) {
    const [, system] = /<\|im_start\|>system\n([^<]*)<\|im_end\|>/.exec(this.template) ?? [];
    if (system === undefined)
      throw inWords("the file has no template for a dialogue", "Let it go on with a text.");
    if (!dialogue.length) throw inWords("the dialogue is empty", "Write what you want to say.");
    const turns = dialogue[0][0] === "system" ? dialogue : [["system", system], ...dialogue];
    const [start, end] = ["<|im_start|>", "<|im_end|>"].map((sign) => this.idOf.get(sign));
    const newLine = this.ids("\n");
    const ids = [];
    for (const [role, text] of turns)
      ids.push(start, ...this.ids(`${role}\n${text}`), end, ...newLine);
    return [...ids, start, ...this.ids("assistant\n")];
  }
}
