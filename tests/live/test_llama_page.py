"""The real model in the page: its file, product and forward pass beside torch, and its worker."""

import functools
import gzip
import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from amounts import many
from node import PAGE, find_node
from playwright.sync_api import Browser
from refresh import ROOT
from test_smollm2 import README, texts
from torch import Tensor

from tinylib.generation import Sampling, generate
from tinylib.inside_gpt import read_stream
from tinylib.lab.models import smollm2
from tinylib.lab.models.smollm2 import RealModel, load_llama, smollm2_file
from tinylib.lab.models.smollm2_tokens import smol_tokens
from tinylib.lab.train.chance import numbers
from tinylib.real_model import Llama

Q4_1, Q8_0 = gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0
rng = np.random.default_rng(0)
V = 400  # tokens of the small files: signs, bytes and the first merges


def in_page(rule: str, given: Any = None) -> Any:
    """What ``rule``, async (tools, given) => result in JavaScript, makes of the page's model."""
    command = [find_node(), "--no-warnings", "tests/llama.mjs"]
    run = subprocess.run(
        command, cwd=ROOT, input=json.dumps([rule, given]), capture_output=True, encoding="utf-8"
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


# --- the product -------------------------------------------------------------------------------


def test_product_wasm_is_compiled_from_product_ts(tmp_path: Path) -> None:
    asc = ROOT / "site/node_modules/assemblyscript/bin/asc.js"
    options = "--runtime stub --importMemory --enable simd -O3 --noAssert --converge".split()
    command = [find_node(), str(asc), "product.ts", "-o", str(tmp_path / "new"), *options]
    subprocess.run(command, cwd=PAGE, check=True)
    assert (tmp_path / "new").read_bytes() == (PAGE / "product.wasm").read_bytes()


def random_rows(kind: gguf.GGMLQuantizationType, rows: int, columns: int) -> np.ndarray:
    """Blocks of any bytes, whose scales are any numbers of fp16, subnormal ones and zeros too."""
    size = {Q4_1: 20, Q8_0: 34}[kind]
    raw = rng.integers(0, 256, (rows * columns // 32, size), dtype=np.uint8)
    halves = raw[:, : 4 if kind == Q4_1 else 2].view(np.uint16)
    halves[:] = halves & 0x83FF | rng.choice([0, 1, 8, 14], halves.shape).astype(np.uint16) << 10
    halves[rng.random(halves.shape) < 0.05] = 0
    return raw.reshape(rows, -1)


@pytest.mark.parametrize("kind", [Q4_1, Q8_0])
def test_the_product_is_numpys(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    raw = random_rows(kind, 50, 96)
    x = rng.standard_normal((4, 96)).astype(np.float32)
    (tmp_path / "rows").write_bytes(raw.tobytes())
    rule = """async ({ load, wasm }, { path, kind, xs }) => {
        const { readFileSync } = await import("node:fs");
        const { matricesIn, memoryFor, FILE_START } = await load("matrices.js");
        const file = readFileSync(path);
        const memory = memoryFor(file.length);
        new Uint8Array(memory.buffer, FILE_START).set(file);
        const tensors = { w: { kind, at: 0, shape: [96, 50] } };
        const form = { H: 4, G: 1, d: 32 };
        const { product, row } = await matricesIn(memory, wasm, tensors, file.length, form);
        const vectors = xs.map((x) => new Float32Array(x));
        const y = [1, 2, 3, 4].map((n) => product("w", vectors.slice(0, n)));
        return { rows: xs[0].slice(0, 50).map((_, i) => [...row("w", i)]),
                 y: y.map((all) => all.map((one) => [...one])) };
    }"""
    found = in_page(rule, {"path": str(tmp_path / "rows"), "kind": kind, "xs": x.tolist()})
    w = gguf.dequantize(raw, kind)
    assert np.count_nonzero(w) and np.array_equal(np.float32(found["rows"]), w)
    bound = 1e-6 * (np.abs(x) @ np.abs(w.T))
    for n, y in enumerate(found["y"], 1):
        assert (np.abs(np.array(y) - np.float64(x[:n]) @ w.T) <= bound[:n]).all()


# --- files -------------------------------------------------------------------------------------


@functools.cache
def real_header() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Metadata and tensors' places of the real file, read by the page: quicker than in Python."""
    rule = """async ({ model }, path) => {
        const { info, tensors } = await model(path);
        return [info, tensors];
    }"""
    info, tensors = in_page(rule, str(smollm2_file()))
    info["llama.rope.freq_base"] = float(info["llama.rope.freq_base"])  # JSON has lost the point
    return info, tensors


def write_llama(path: Path, alignment: int = 32, name: str = "n", **more: Any) -> Path:
    """A random Llama of two blocks with narrow heads, written by the package gguf."""
    form: dict[str, Any] = {"D": 64, "F": 96, "H": 4, "G": 2, "layers": 2, "extra": {}} | more
    D, F, keys = form["D"], form["F"], form["D"] // form["H"] * form["G"]
    real = {key.removeprefix("tokenizer."): value for key, value in real_header()[0].items()}
    writer: Any = gguf.GGUFWriter(path, form.get("architecture", "llama"))
    for fact, value in {
        **{"custom_alignment": alignment, "name": name, "context_length": 2048},
        **{"embedding_length": D, "feed_forward_length": F, "block_count": form["layers"]},
        **{"head_count": form["H"], "head_count_kv": form["G"]},
        **{"rope_freq_base": 10_000.0, "layer_norm_rms_eps": 1e-5},
        **{"tokenizer_model": "gpt2", "tokenizer_pre": "smollm", "eos_token_id": 2},
        **{"token_list": real["ggml.tokens"][:V], "token_types": real["ggml.token_type"][:V]},
        "token_merges": real["ggml.merges"][: V - 17 - 235],  # the rest are signs and bytes
        "chat_template": real["chat_template"],
    }.items():
        getattr(writer, f"add_{fact}")(value)
    norms = {"attn_norm": (D,), "ffn_norm": (D,)}
    attention = {"attn_q": (D, D), "attn_k": (keys, D), "attn_v": (keys, D), "attn_output": (D, D)}
    parts = norms | attention | {"ffn_gate": (F, D), "ffn_up": (F, D), "ffn_down": (D, F)}
    shapes = {"token_embd": (V, D), "output_norm": (D,)} | form["extra"]
    for i in range(form["layers"]):
        shapes |= {f"blk.{i}.{part}": shape for part, shape in parts.items()}
    for tensor, shape in shapes.items():
        values = rng.standard_normal(shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(f"{tensor}.weight", 1 + 0.1 * values)
        else:
            kind = Q8_0 if tensor in ("token_embd", "blk.1.attn_v") else Q4_1
            raw = gguf.quantize(values * shape[1] ** -0.5, kind)
            writer.add_tensor(f"{tensor}.weight", raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("small") / "small.gguf")


HEADERS = """async ({ load }, paths) => {
    const { readFileSync } = await import("node:fs");
    const { configOf, readHeader } = await load("gguf.js");
    return paths.map((path) => {
        try {
            const found = readHeader(readFileSync(path));
            return { ...found, config: configOf(found) };
        } catch ({ message, why, remedy }) {
            return { message, why, remedy };
        }
    });
}"""


def test_tensors_are_found_under_any_alignment(tmp_path: Path) -> None:
    lengths = range(1, 33, many(5, 1))
    cases = [(alignment, length) for alignment in (16, 32, 64) for length in lengths]
    paths = [write_llama(tmp_path / f"{a}-{n}", a, "n" * n, layers=1) for a, n in cases]
    for path, found in zip(paths, in_page(HEADERS, list(map(str, paths))), strict=True):
        reader = gguf.GGUFReader(path)
        assert found["info"]["general.name"] == reader.fields["general.name"].contents()
        places = {t.name: (t.data_offset, t.shape.tolist(), t.tensor_type) for t in reader.tensors}
        page = {name: (t["at"], t["shape"], t["kind"]) for name, t in found["tensors"].items()}
        assert page == places and len(places) == 11


def test_what_is_no_such_model_is_named(small: Path, tmp_path: Path) -> None:
    whole = small.read_bytes()
    key = b"general.alignment" + (4).to_bytes(4, "little")
    aligned = lambda n: whole.replace(key + bytes([32]), key + bytes([n]))  # noqa: E731
    wide = (10).to_bytes(4, "little") + (32).to_bytes(8, "little")  # alignment as u64
    at = whole.index(key)
    tensor = whole.index(b"blk.0.attn_q.weight") + 19 + 4 + 16  # behind its name and shape
    widened = whole[: at + 17] + wide + whole[at + 25 :]
    cases = {
        "a page of HTML": b"<!doctype html><title>404</title>",
        "it is empty": b"",
        "a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        "not with GGUF": b"PK\3\4 is a wheel",
        "version 2": whole[:4] + b"\2" + whole[5:],
        "it is cut short: blk": whole[:-1],
        "it is cut short": whole[:5000],
        "alignment is 0": aligned(0),
        "alignment is 24": aligned(24),
        "architecture is gpt2": write_llama(tmp_path / "a", architecture="gpt2").read_bytes(),
        "rope_freqs.weight has the shape": write_llama(
            tmp_path / "b", extra={"rope_freqs": (8,)}
        ).read_bytes(),
        "kind 99": whole[:tensor] + bytes([99]) + whole[tensor + 1 :],
    }
    for i, content in enumerate([*cases.values(), widened]):
        (tmp_path / str(i)).write_bytes(content)
    *found, good = in_page(HEADERS, [str(tmp_path / str(i)) for i in range(len(cases) + 1)])
    for error, what in zip(found, cases, strict=True):
        assert what in error["why"] and error["remedy"], error
    assert good["info"]["general.alignment"] == 32


# --- the forward pass --------------------------------------------------------------------------

READ = """async ({ model, writeFileSync }, { path, texts, some, watched, out }) => {
    const { read } = await model(path);
    const [xs, all] = [[], []];
    for (const ids of texts) {
        let t = 0;
        read(ids, some, (streams, logits) => {
            if (t < watched) xs.push(...streams);
            all.push(logits);
            t += 1;
        });
    }
    const bytes = (rows) => Buffer.concat(rows.map((row) => Buffer.from(row.buffer)));
    writeFileSync(`${out}/xs`, bytes(xs));
    writeFileSync(`${out}/logits`, bytes(all));
}"""


def read_in_page(
    path: Path, texts: list[list[int]], out: Path, shape: tuple[int, int, int], watched: int, some=4
) -> tuple[Tensor, Tensor]:
    """Streams of the first ``watched`` tokens of each text, and the logits of all tokens."""
    given = {"texts": texts, "some": some, "watched": watched}
    in_page(READ, given | {"path": str(path), "out": str(out)})
    xs, logits = (
        torch.from_numpy(np.fromfile(out / name, np.float32)) for name in ("xs", "logits")
    )
    blocks, D, size = shape
    return xs.view(-1, blocks + 1, D), logits.view(-1, size)


@torch.no_grad()
def stream_of(model: Llama, ids: list[int]) -> Tensor:
    """[token, block, D]: after the embedding, and after each block."""
    return read_stream(model, torch.tensor([ids])).after()[:, 0].transpose(0, 1)


@torch.no_grad()
@pytest.mark.parametrize("some", [1, 3, 4])
def test_a_small_llama_is_torchs_block_by_block(small: Path, tmp_path: Path, some: int) -> None:
    model, ids = load_llama(small), rng.integers(0, V, 70).tolist()
    streams, logits = read_in_page(small, [ids], tmp_path, (2, 64, V), 70, some)
    torch.testing.assert_close(streams, stream_of(model, ids), atol=2e-4, rtol=1e-4)
    torch.testing.assert_close(logits, model(torch.tensor([ids]))[0], atol=2e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def real() -> RealModel:
    info, places = real_header()
    raw = np.memmap(smollm2_file(), np.uint8, "r")

    def tensor(place: dict[str, Any]) -> Callable[[], Tensor]:
        kind = gguf.GGMLQuantizationType(place["kind"])
        shape = gguf.quant_shape_to_byte_shape(place["shape"][::-1], kind)
        there = raw[place["at"] :][: int(np.prod(shape))].reshape(shape)
        return lambda: torch.from_numpy(gguf.dequantize(there, kind).copy())

    tensors = {name: tensor(place) for name, place in places.items()}
    return RealModel(smollm2.llama_of(info, tensors), smol_tokens(info))


@torch.no_grad()
def test_the_real_model_is_torchs(real: RealModel, tmp_path: Path) -> None:
    """Layer by layer at 8 places; and the first choice and the divergence at all."""
    ids, length = real.tokens.ids(README), many(48, 250)
    given = [ids[i * length :][:length] for i in range(many(1, 4))]
    streams, logits = read_in_page(smollm2_file(), given, tmp_path, (30, 576, 49152), 8)
    ours = torch.cat([stream_of(real.model, one)[:8] for one in given])
    scale = ours.norm(dim=-1, keepdim=True)
    assert streams.shape == (8 * len(given), 31, 576)
    assert ((streams - ours).abs() / scale).max() < 2e-5
    theirs = real.model(torch.tensor(given)).flatten(0, 1)
    p, q = theirs.double().log_softmax(-1), logits.double().log_softmax(-1)
    assert (p.exp() * (p - q)).sum(-1).max() < 1e-7
    assert (logits.argmax(-1) == theirs.argmax(-1)).double().mean() > 0.99
    assert (logits - theirs).abs().max() < 1e-3


# --- tokens ------------------------------------------------------------------------------------

CUT = """async ({ model }, { path, texts, dialogues, ids }) => {
    const { tokens } = await model(path);
    const or = (act) => {
        try {
            return act();
        } catch ({ why }) {
            return why;
        }
    };
    const write = tokens.writer();
    return {
        texts: texts.map((text) => or(() => tokens.ids(text))),
        back: texts.map((text) => or(() => tokens.text(tokens.ids(text)))),
        dialogues: dialogues.map((dialogue) => tokens.idsOfDialogue(dialogue)),
        pieces: ids.map((id) => tokens.piece(id)),
        written: ids.map(write),
    };
}"""
HALVES = "naïve ďábel 日本 🙂👨‍👩‍👧"


def test_tokens_and_dialogues_are_pythons() -> None:
    """Which test_smollm2.py compares with `tokenizers` and jinja2, on these texts and more."""
    tokens = smol_tokens(real_header()[0])
    given, halves = [*texts(many(2000, 10_000)), "<|im_end|>", ""], tokens.ids(HALVES)
    dialogues = [
        [*[("system", "Be brief.")] * (i % 2), *[("user", "Hi")] * (i % 3), ("user", text)]
        for i, text in enumerate(README.split("\n\n")[:60])
    ]
    case = {"texts": given, "dialogues": dialogues, "ids": halves, "path": str(smollm2_file())}
    found = in_page(CUT, case)
    refused = 0
    for text, ids, back in zip(given, found["texts"], found["back"], strict=True):
        try:
            assert ids == tokens.ids(text) and back == text
        except ValueError:
            refused += 1
            assert "has no token for the byte" in ids and "U+" in ids
    assert 0 < refused < len(given) / 5
    assert found["dialogues"] == [tokens.chat(dialogue) for dialogue in dialogues]
    assert "".join(found["written"]) == HALVES and "\ufffd" not in "".join(found["written"])
    assert "F0 9F" in found["pieces"] and "\ufffd" not in "".join(found["pieces"])


# --- the worker --------------------------------------------------------------------------------


class Server:
    """Answers each request for the model as the next of ``steps`` says, and the last one on."""

    def __init__(self, content: bytes) -> None:
        self.content, self.etag = content, '"1"'
        self.steps: list[Callable[[Any, int], None]] = [self.send]
        self.asked = list[tuple[str | None, str | None]]()  # Range and If-Range

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if not handler.path.endswith(".gguf"):
            return self.page(handler)
        wanted = handler.headers.get("Range")
        self.asked.append((wanted, handler.headers.get("If-Range")))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        start = int(re.findall(r"\d+", wanted)[0]) if wanted else 0
        if start and handler.headers.get("If-Range") not in (None, self.etag):
            start = 0
        step(handler, start)

    def page(self, handler: BaseHTTPRequestHandler) -> None:
        path = PAGE / handler.path.lstrip("/")
        body = path.read_bytes() if path.is_file() else b"<!doctype html><title>page</title>"
        types = {".js": "text/javascript", ".wasm": "application/wasm"}
        self.send(handler, body=body, Content_Type=types.get(path.suffix, "text/html"))

    def send(
        self,
        handler: BaseHTTPRequestHandler,
        start: int = 0,
        status: int | None = None,
        body: bytes | None = None,
        until: int | None = None,
        **headers: str,
    ) -> None:
        body = self.content[start:] if body is None else body
        handler.send_response(status or (206 if start else 200))
        size = len(self.content)
        sent = {"ETag": self.etag, "Content-Length": str(len(body))}
        sent |= {"Content-Range": f"bytes {start}-{size - 1}/{size}"} if start else {}
        for name, value in (sent | {k.replace("_", "-"): v for k, v in headers.items()}).items():
            if value:
                handler.send_header(name, value)
        handler.end_headers()
        with suppress(ConnectionError):
            handler.wfile.write(body[:until])
        handler.close_connection = True

    @contextmanager
    def running(self) -> Iterator[dict[str, Any]]:
        """What `open` has to know."""

        class Handler(BaseHTTPRequestHandler):
            do_GET = lambda handler: self.answer(handler)  # noqa: E731

            def log_message(self, *args: object) -> None: ...

        with ThreadingHTTPServer(("localhost", 0), Handler) as http:
            Thread(target=http.serve_forever, daemon=True).start()
            facts = {"address": f"http://localhost:{http.server_port}/model.gguf"}
            facts["sha256"] = hashlib.sha256(self.content).hexdigest()
            yield facts | {"size": len(self.content)}
            http.shutdown()


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A model of 10 MB, three parts of what is kept."""
    return write_llama(tmp_path_factory.mktemp("large") / "large.gguf", F=40_000).read_bytes()


OPEN = """async ({ worker, cacheApi }, { address, size, sha256, tries, cache, before }) => {
    if (cache === "none") delete globalThis.caches;
    else globalThis.caches = cacheApi(cache);
    await eval(before);
    const open = { act: "open", address, size, sha256 };
    const found = [];
    let ask = await worker();
    for (const how of tries) {
        if (how === "visit") ask = await worker();
        const halt = (part, stop) => how === "halt" && part.loaded && stop();
        const { result, error, parts } = await ask(open, halt);
        const next = await ask({ act: "next", text: "The cat" });
        const fetched = parts.filter(({ stage }) => stage === "fetch");
        const loaded = fetched.map((part) => part.loaded / size);
        found.push({ result: result ?? null, error, most: Math.max(...loaded), last: loaded.at(-1),
                     bits: next.result?.bits, next: next.error,
                     kept: globalThis.caches?.kept?.size ?? 0 });
    }
    return found;
}"""


def opened(
    server: Server, tries: list[str], cache: str = "", before: str = ""
) -> list[dict[str, Any]]:
    """What `open` has answered, try by try; with a model, that it computes."""
    with server.running() as facts:
        given = {"tries": tries, "cache": cache, "before": before}
        found: list[dict[str, Any]] = in_page(OPEN, facts | given)
    for one in found:
        assert one["most"] is None or one["most"] <= 1
        if one["result"]:
            assert one["last"] == 1 and one["bits"] > 0
        else:
            assert one["error"]["why"] and one["error"]["remedy"]
            assert "not loaded" in one["next"]["why"]
    return found


FIRST = 6_000_000  # bytes that come before the connection breaks off


@pytest.mark.parametrize(
    ("how", "tries"),
    [
        *((how, ["", ""]) for how in ("rest", "all", "earlier", "new name", "new file", "too far")),
        *((how, ["", "visit"]) for how in ("rest", "new file")),
    ],
)
def test_a_broken_download_goes_on(content: bytes, how: str, tries: list[str]) -> None:
    server = Server(content)
    send = server.send

    def second(handler: Any, start: int) -> None:
        match how:
            case "rest":
                send(handler, start)
            case "all":
                send(handler)
            case "earlier":
                send(handler, 3_000_000)
            case "new file":  # part of another one came before
                send(handler, int(server.asked[-1][0][6:-1]))  # type: ignore[index]
            case "new name":
                server.etag = '"2"'
                assert server.asked[-1][1] == '"1"'
                send(handler)
            case "too far":
                send(handler, status=416, body=b"")

    def broken(handler: Any, start: int) -> None:
        old = content[:100] + bytes(100) + content[200:]
        send(handler, body=old if how == "new file" else content, until=FIRST)

    server.steps = [broken, second, send]
    failed, good = opened(server, tries)
    assert "of the model have come" in failed["error"]["why"] and failed["kept"] == 1
    assert good["result"] == {"kept": True} and good["kept"] == 3
    asked = [wanted for wanted, _ in server.asked]
    resumed = FIRST if tries == ["", ""] else 2**22
    assert re.fullmatch(r"bytes=(\d+)-", asked[1] or "") and int(asked[1][6:-1]) <= resumed  # type: ignore[index]
    assert asked[2:] == [None] * (how in ("new file", "too far"))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<!doctype html><title>The Road to GPT</title>", "a page of HTML"),
        (None, "longer"),
        (bytes(1), "SHA-256"),
    ],
    ids=["html", "longer", "other"],
)
def test_another_file_is_named_and_not_kept(content: bytes, body: bytes | None, what: str) -> None:
    server = Server(content)
    if body is None:
        body = content + bytes(100)
    elif what == "SHA-256":
        body = content[:-1] + bytes([content[-1] ^ 1])
    server.steps = [
        lambda handler, start: server.send(handler, body=body),
        server.send,
    ]
    failed, good = opened(server, ["", ""])
    assert what in failed["error"]["why"] and failed["kept"] == 0
    assert good["result"] == {"kept": True}
    assert [wanted for wanted, _ in server.asked] == [None, None]


@pytest.mark.parametrize("length", ["compressed", ""])
def test_only_the_known_size_counts(content: bytes, length: str) -> None:
    server = Server(content)
    packed = gzip.compress(content, 1)
    headers: Any = {
        "Content_Encoding": "gzip",
        "Content_Length": str(len(packed)) if length else "",
    }
    server.steps = [lambda handler, start: server.send(handler, body=packed, **headers)]
    assert opened(server, [""])[0]["result"] == {"kept": True}


@pytest.mark.parametrize("cache", ["none", "open", "put", ""])
def test_it_works_in_a_browser_without_a_cache(content: bytes, cache: str) -> None:
    server = Server(content)
    found = opened(server, ["", "visit"], cache)
    assert [one["result"] for one in found] == [{"kept": not cache}] * 2
    assert len(server.asked) == (2 if cache else 1)  # a second visit needs no network


@pytest.mark.parametrize("limit", [5, 11])
def test_without_memory_it_says_what_to_do(content: bytes, limit: int) -> None:
    """The file's own, and that for keys and values, may be refused."""
    before = f"""(async () => {{
        const {{ Memory }} = WebAssembly;
        const check = (bytes) => {{ if (bytes > {limit}e6) throw new RangeError("no room"); }};
        WebAssembly.Memory = class extends Memory {{
            constructor(form) {{ check(form.initial * 65536); super(form); }}
            grow(n) {{ check(this.buffer.byteLength + n * 65536); return super.grow(n); }}
        }};
    }})()"""
    server = Server(content)
    failed, again = opened(server, ["", ""], before=before)
    for one in (failed, again):
        assert "memory" in one["error"]["why"] and "Close other tabs" in one["error"]["remedy"]


def test_a_download_that_is_stopped_goes_on(content: bytes) -> None:
    server = Server(content)
    failed, good = opened(server, ["halt", ""])
    assert "you stopped it" in failed["error"]["why"] and good["result"]


WRITE = """async ({ worker, cacheApi }, { address, size, sha256, requests }) => {
    globalThis.caches = cacheApi();
    const ask = await worker();
    await ask({ act: "open", address, size, sha256 });
    const answers = [];
    for (const { stop, ...request } of requests)
        answers.push(await ask(request, (part, halt) => part.text?.length >= stop && halt()));
    return answers;
}"""


def asked(path: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    with Server(path.read_bytes()).running() as facts:
        answers: list[dict[str, Any]] = in_page(WRITE, facts | {"requests": requests})
    return answers


@torch.no_grad()
def test_it_writes_as_python_does(small: Path) -> None:
    model, tokens = smollm2.load_smollm2(small)
    text = "The cat sat on it"
    prompt = torch.tensor([tokens.ids(text)])
    knobs = [(0.0, 1.0), (1.0, 1.0), (0.7, 0.9), (1.5, 0.5), (1.0, 0.0)]
    shared = {"act": "write", "text": text, "most": 40, "seed": 7}
    answers = asked(small, [shared | {"temperature": t, "top_p": p} for t, p in knobs])
    drawn = numbers(7)
    u = torch.tensor([[next(drawn) for _ in range(40)]])
    for (temperature, p), answer in zip(knobs, answers, strict=True):
        sampling = Sampling(temperature, p=p) if temperature else None
        ids = generate(model, prompt, 40, sampling, u if sampling else None)[0].tolist()
        ends = [i for i, id in enumerate(ids) if id in (0, 2)]
        ids = ids[: ends[0]] if ends else ids
        result, parts = answer["result"], [part for part in answer["parts"] if "p" in part]
        whole = b"".join(tokens.tokens[i] for i in ids).decode("utf-8", "replace")
        assert result["text"].rstrip("\ufffd") == whole.rstrip("\ufffd")
        assert (result["ended"], result["written"]) == (
            ("end", len(ids) + 1) if ends else ("most", 40)
        )
        context = torch.cat([prompt, torch.tensor([ids])], 1)
        shares = model(context)[0, prompt.shape[1] - 1 : -1].softmax(-1)
        wanted = shares[range(len(ids)), ids].tolist()
        assert [part["p"] for part in parts] == pytest.approx(wanted, abs=1e-4)


@torch.no_grad()
def test_next_words_and_lens_are_pythons_and_bad_texts_are_named(small: Path) -> None:
    model, tokens = smollm2.load_smollm2(small)
    dialogue = [["user", "Hi there"]]
    requests: list[dict[str, Any]] = [
        {"act": "next", "text": "a cat"},
        {"act": "next", "dialogue": dialogue},
        {"act": "lens", "text": "a cat"},
        {"act": "write", "text": "a", "most": 500, "temperature": 1, "seed": 2, "stop": 5},
        {"act": "next", "text": "a cat"},
        {"act": "next", "text": ""},
        {"act": "next", "text": "\x04"},
        {"act": "next", "text": "a b " * 1024},
    ]
    plain, chat, lens, halted, again, *refused = asked(small, requests)
    for answer, ids in (plain, tokens.ids("a cat")), (chat, tokens.chat([("user", "Hi there")])):
        p, found = model(torch.tensor([ids]))[0, -1].softmax(-1), answer["result"]
        assert found["ids"] == ids
        assert [one["id"] for one in found["best"]] == p.topk(10).indices.tolist()
        assert [one["p"] for one in found["best"]] == pytest.approx(
            p.topk(10).values.tolist(), abs=1e-4
        )
        assert found["bits"] == pytest.approx(
            torch.special.entr(p).sum().item() / np.log(2), abs=1e-3
        )
    stream = stream_of(model, tokens.ids("a cat"))[-1]
    best = model.output(model.norm(stream)).topk(3).indices.tolist()
    rows = lens["result"]["rows"]
    assert [[one["id"] for one in row["best"]] for row in rows] == best
    assert [row["block"] for row in rows] == [0, 1, 2]
    assert halted["result"]["ended"] == "halted" and halted["result"]["written"] < 20
    assert again["result"]["bits"] == pytest.approx(plain["result"]["bits"], abs=1e-5)
    for answer, why in zip(refused, ["no text", "the byte 04", "2048"], strict=True):
        assert why in answer["error"]["why"] and answer["error"]["remedy"]


# --- in a browser ------------------------------------------------------------------------------

VISIT = """async (open) => {
    const worker = new Worker("/llama_worker.js", { type: "module" });
    const ask = (message) => new Promise((resolve) => {
        worker.onmessage = ({ data }) => data.part || resolve(data.result ?? data.error);
        worker.postMessage({ number: 1, ...message });
    });
    const opened = await ask({ act: "open", ...open });
    const next = await ask({ act: "next", text: "The capital of France is" });
    return { opened, best: next.best[0].piece, p: next.best[0].p };
}"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_in_a_browser_it_is_kept_and_small(browser: Browser) -> None:
    """The real file: at most 450 MB, and a second visit needs no network and no more memory."""
    server = Server(smollm2_file().read_bytes())
    system, context, peaks = browser.new_browser_cdp_session(), browser.new_context(), []
    with server.running() as facts:
        for _ in range(2):
            page = context.new_page()
            page.goto(facts["address"].removesuffix("model.gguf"))
            found = page.evaluate(VISIT, facts)
            assert found["opened"] == {"kept": True} and found["best"] == " Paris"
            assert found["p"] == pytest.approx(0.7725, abs=1e-3)
            processes = system.send("SystemInfo.getProcessInfo")["processInfo"]
            ids = [one["id"] for one in processes if one["type"] == "renderer"]
            status = [Path(f"/proc/{number}/status").read_text() for number in ids]
            peaks.append(max(int(re.findall(r"VmHWM:\s+(\d+)", text)[0]) for text in status) / 1e3)
            page.close()
    context.close()
    assert len(server.asked) == 1
    assert peaks[0] < 450 and peaks[1] < 1.1 * peaks[0]
