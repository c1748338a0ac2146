"""The real model's widget: the next words of a text, what it writes, a chat, and the logit lens."""

import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from threading import Lock, Thread
from typing import Any

import torch
from torch import Tensor

from tinylib.fast_modules import fast_modules
from tinylib.generation import Sampling, choose_next, generate
from tinylib.gpt import GPT
from tinylib.inside_gpt import Stream, logit_lens, read_stream
from tinylib.kv_cache import reserve_caches
from tinylib.lab.models.smollm2 import SHA256, SIZE
from tinylib.lab.models.smollm2_tokens import SYSTEM, SmolTokens
from tinylib.lab.train.chance import numbers
from tinylib.live.code_lines import line_of
from tinylib.live.widget import LiveWidget, module_text, table
from tinylib.real_model import GroupedQueryAttention, Llama, LlamaBlock, SwiGLU

TEXT, QUESTION = "The capital of France is", "What is the capital of France?"
LIKELIEST, OF_LENS = 10, 3  # tokens that are shown
MOST = {"text": 40, "chat": 160}  # tokens that are written at once
START = {"temperature": 0.0, "p": 0.9, "seed": 1}
OFFERED = {
    "what it knows, and what it invents": (
        TEXT,
        "The capital of Australia is",
        "The capital of Freedonia is",
        "Q: What is 12 times 3?\nA:",
    ),
    "loops, examples and a story": (
        "To be, or not to be,",
        "cat → CAT\ndog → DOG\nhouse →",
        "Once upon a time there was a girl named Emma. She loved to",
    ),
}
# The lines that read a text, those that choose a token, and those of one part of the widget alone.
READ: tuple[tuple[Callable[..., Any], str], ...] = (
    (LlamaBlock.forward, "self.attention.project("),
    (LlamaBlock.forward, "q, k = rotate("),
    (GroupedQueryAttention.shared, "return share_heads("),
    (LlamaBlock.forward, "x = x + self.attention.attend("),
    (SwiGLU.forward, "return self.w_2("),
)
OUTPUT, LENS = (GPT.read, "return self.output("), (logit_lens, "model.norm(")
CHOOSE = (generate, "token = choose_next("), (Sampling.process, "= top_p(")
Act = Callable[[dict[str, Any]], None]


class RealModelWidget(LiveWidget):
    """A model of Llama's form with its tokens, for a reader to ask.

    In a notebook torch answers, here. A page shows what torch has answered about ``TEXT`` and
    ``QUESTION``; its worker answers the same requests once the reader has loaded the model.
    """

    stem = chapter = "real_model"
    _esm = module_text("real_model/real_model.js")

    def __init__(self, model: Llama, tokens: SmolTokens) -> None:
        self.llama, self.tokens, self._turn, self._halted = model, tokens, Lock(), False
        spec = {
            "stem": self.stem,
            "asks": True,  # the view sends requests, and its inputs need no answer
            "graphs": [],
            "inputs": {"text": "N", "system": "M", "temperature": "", "p": "", "seed": ""},
            "kinds": {"temperature": "Float", "p": "Float", "seed": "Int"},
            "outputs": {},
            "words": False,
            "texts": ["text", "system"],
            "limits": {
                **{"N": [1, 2000], "M": [0, 500]},
                **{"temperature": [0, 2], "p": [0, 1], "seed": [1, 999]},
            },
            "facts": {
                "file": {"size": SIZE, "sha256": SHA256},
                "signs": len(tokens.special),
                "most": MOST,
                "offered": OFFERED,
                "code": code(),
                "stored": self._before_loading(),
            },
        }
        inputs = {"text": TEXT, "system": SYSTEM} | START
        where = "Computed by PyTorch, in the kernel."
        super(LiveWidget, self).__init__(spec=spec, inputs=inputs, outputs={}, where=where)
        self.on_msg(lambda _, request, buffers: self._hear(request))

    @classmethod
    def computed(cls, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """Nothing: the view asks."""
        return {}

    def _before_loading(self) -> dict[str, Any]:
        """What a page shows before its model is loaded, with digits that any machine agrees on."""
        dialogue = [["system", SYSTEM], ["user", QUESTION]]
        answer = self.write({"dialogue": dialogue, "most": MOST["chat"]} | START)["text"]
        return {
            "text": TEXT,
            "next": rounded(self.next({"text": TEXT})),
            "write": rounded(self.write({"text": TEXT, "most": MOST["text"]} | START)),
            "lens": rounded(self.lens({"text": TEXT}), 2),
            "dialogue": [*dialogue, ["assistant", answer]],
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        stored = self.spec["facts"]["stored"]
        best, written = stored["next"]["best"], " ".join(stored["write"]["text"].split())
        caption = f"“{TEXT}”: the likeliest next tokens. The model writes on: “{written}”"
        shares = [[f"{100 * one['p']:.1f} %"] for one in best]
        return table(caption, shares, [one["piece"] for one in best], ["probability"])

    # --- requests: the page's worker answers the same ones ----------------------------------

    def _hear(self, request: dict[str, Any]) -> None:
        """Answer in a thread, so that the kernel hears meanwhile when it is to halt."""
        if request["act"] == "halt":
            self._halted = True
        else:
            Thread(target=self._answer, args=(request,), daemon=True).start()

    def _answer(self, request: dict[str, Any]) -> None:
        number = {"number": request["number"]}
        with self._turn:  # one request after the other
            self._halted = False
            try:
                act = {"next": self.next, "write": self.write, "lens": self.lens}[request["act"]]
                result = act(request, lambda part: self.send(number | {"part": part}))
                self.send(number | {"result": result})
            except Exception as error:
                wrong = {"message": repr(error), "why": str(error), "remedy": "Change the text."}
                self.send(number | {"error": wrong})

    def ids(self, request: Mapping[str, Any]) -> list[int]:
        """The tokens of the request's ``text``, or what its ``dialogue`` is for the model."""
        if "dialogue" in request:
            return self.tokens.chat([(role, text) for role, text in request["dialogue"]])
        return self.tokens.ids(request["text"])

    def piece(self, token: int) -> str:
        """How a token reads; if its bytes are no whole characters, these, such as ``F0 9F``."""
        raw = self.tokens.tokens[token]
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.hex(" ").upper()

    def best(self, p: Tensor, k: int) -> list[dict[str, Any]]:
        """The k likeliest tokens."""
        shares = zip(*(one.tolist() for one in p.topk(k)), strict=True)
        return [{"id": token, "piece": self.piece(token), "p": share} for share, token in shares]

    def next(self, request: Mapping[str, Any], part: Act | None = None) -> dict[str, Any]:
        """What comes next: the likeliest tokens, and the entropy of all."""
        ids = self.ids(request)
        with torch.inference_mode():
            p = self.llama.read(torch.tensor([ids]), last=True)[0][0, -1].softmax(-1)
        bits = float(torch.special.entr(p).sum()) / torch.tensor(2.0).log().item()
        pieces = [self.piece(token) for token in ids]
        return {"ids": ids, "pieces": pieces, "best": self.best(p, LIKELIEST), "bits": bits}

    def write(self, request: Mapping[str, Any], part: Act | None = None) -> dict[str, Any]:
        """What :func:`generate` writes, token by token, up to its end or until it is to halt."""
        ids, model, tau = self.ids(request), self.llama, request["temperature"]
        most = min(request["most"], model.config.max_len - len(ids))
        sampling = Sampling(tau, p=request.get("top_p", 1.0)) if tau else None
        ends = {self.tokens.special.get(name) for name in ("<|im_end|>", "<|endoftext|>")}
        caches, new = reserve_caches(model, 1, len(ids) + most), torch.tensor([ids])
        decode, u = getincrementaldecoder("utf-8")("replace").decode, numbers(request["seed"])
        text, written, ended, times = "", 0, "most", [time.perf_counter()]
        part = part or (lambda part: None)
        part({"text": text, "reading": [0, len(ids)]})
        with torch.inference_mode(), fast_modules(model):
            while ended == "most" and written < most:
                logits = model.read(new, caches, last=True)[0][:, -1]
                times.append(time.perf_counter())
                if self._halted:
                    ended = "halted"
                    break
                new = choose_next(logits, sampling, torch.tensor([next(u)]))[None]
                token, written = int(new), written + 1
                if token in ends:
                    ended = "end"
                else:
                    text += decode(self.tokens.tokens[token])
                    part({"text": text, "p": float(logits[0].softmax(-1)[token])})
        read_ms, write_ms = (1000 * (times[j] - times[i]) for i, j in ((0, 1), (1, -1)))
        speed = {"read_ms": read_ms, "written": written, "write_ms": write_ms}
        return {"text": text, "ended": ended, **speed}

    def lens(self, request: Mapping[str, Any], part: Act | None = None) -> dict[str, Any]:
        """What the last token's stream would predict after the embedding and after each block."""
        ids = self.ids(request)
        with torch.inference_mode():
            x, heads, biases, f = read_stream(self.llama, torch.tensor([ids]))
            last = Stream(x[:, -1:], heads[..., -1:, :], biases, f[..., -1:, :])
            shares = logit_lens(self.llama, last)[:, 0, -1].softmax(-1)
        rows = [{"block": i, "best": self.best(p, OF_LENS)} for i, p in enumerate(shares)]
        return {"pieces": [self.piece(token) for token in ids], "rows": rows}


def rounded(found: Any, digits: int = 3) -> Any:
    """The same with fewer digits, and without times."""
    if isinstance(found, dict):
        return {k: rounded(one, digits) for k, one in found.items() if not k.endswith("_ms")}
    if isinstance(found, list):
        return [rounded(one, digits) for one in found]
    return round(found, digits) if isinstance(found, float) else found


def code() -> dict[str, list[tuple[str, str, str]]]:
    """For what the reader does, the lines that run, each with its phase and its function's name."""
    read, (output, lens, chat), choose = (
        [(when, fn.__qualname__, line_of(fn, part)["line"]) for fn, part in of]
        for when, of in (
            ("read", READ),
            ("read", (OUTPUT, LENS, (SmolTokens.chat, "ids += [start"))),
            ("write", CHOOSE),
        )
    )
    return {"text": [*read, output, *choose], "chat": [chat, *read, *choose], "lens": [*read, lens]}
