"""Weights with fewer bits: what memory allows, how near to it we come, and what it costs in loss.

Memory: bytes a second of a sum over more than any cache holds, or of the product that reads best.
At batch 1 each weight is read once for a token, so that no form of the matrices can be quicker
than their bytes at this rate: the roofline. Matrices: the time of all 73 of GPT-2's shape with one
row, in each form that torch offers on a CPU, and its share of the roofline. Writing: tokens a
second of a whole model, the prompt read included, beside transformers. Cost: the loss of the
shipped model of Shakespeare on the whole validation split; its weights are shipped with 8 bits,
"before" is what they were rounded from.

Processor time on one thread, in turns; least and median. Prints tables; nothing is judged.

    python tests/bench/bits.py [--rounds 15] [--record]

Writes _build/bench/fewer-bits.json, with --record among the course's results too.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from math import expm1
from typing import Any, TypeVar

import torch
from benchmark import (
    Row,
    Run,
    arguments,
    bytes_a_second,
    machine,
    milliseconds,
    save,
    table,
)
from generation import untrained
from peers import gpt2
from torch import Tensor, nn
from torch.nn.functional import linear

from tinylib.generation import generate
from tinylib.gpt import GPT, GPTConfig, negative_log_likelihood
from tinylib.lab.data.corpora import tiny_shakespeare
from tinylib.lab.models.language import load_language_model, text_loss
from tinylib.lab.models.smollm2 import load_smollm2
from tinylib.lab.train import weights
from tinylib.quantisation import Int8Linear, dequantise, quantise, smaller

NEW = 64
Model = TypeVar("Model", bound=nn.Module)
Form = Callable[[Tensor], Callable[[Tensor], Any]]


class HalfLinear(nn.Linear):
    """Weights in fp16 by FBGEMM: products and sums in fp32."""

    def __init__(self, layer: nn.Linear):
        nn.Module.__init__(self)
        w, b = layer.weight.detach(), layer.bias
        self.packed = torch.ops.quantized.linear_prepack_fp16(w, b)
        self.weight = nn.Parameter(w.to("meta"), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.quantized.linear_dynamic_fp16(x, self.packed)
        return y


class ByteLinear(Int8Linear):
    """x with one byte as well, and one scale for all of it: what `torch.ao` calls dynamic."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.quantized.linear_dynamic(x, self.packed, True)
        return y if self.bias is None else y + self.bias


class Rounded(nn.Linear):
    """The weights of a byte, as numbers: what their rounding costs by itself."""

    def __init__(self, layer: nn.Linear):
        nn.Module.__init__(self)
        weight = dequantise(*quantise(layer.weight.detach()))
        self.weight, self.bias = nn.Parameter(weight, requires_grad=False), layer.bias


class OneByte(Rounded):
    """x with one byte and a scale for each token."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(dequantise(*quantise(x)))


def layer_of(w: Tensor) -> nn.Linear:
    layer = nn.Linear(w.shape[1], w.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(w, requires_grad=False)
    return layer


def bfloat16(w: Tensor) -> Callable[[Tensor], Any]:
    w = w.bfloat16()
    return lambda x: linear(x.bfloat16(), w)


def int8_by_bfloat16(w: Tensor) -> Callable[[Tensor], Any]:
    q, scale = quantise(w)
    scale = scale[:, 0].bfloat16()
    return lambda x: torch._weight_int8pack_mm(x.bfloat16(), q, scale)


def int8_by_int8(w: Tensor) -> Callable[[Tensor], Any]:
    q, scale = quantise(w)

    def product(x: Tensor) -> Tensor:
        digits, step = quantise(x)
        return torch._int_mm(digits, q.T) * step * scale[:, 0]

    return product


def int4(w: Tensor) -> Callable[[Tensor], Any]:
    q, scale = quantise(w[: len(w) // 16 * 16].unflatten(-1, (-1, 32)), 4)
    aten = torch.ops.aten
    packed = aten._convert_weight_to_int4pack_for_cpu(q.flatten(1).int() + 8, 1)
    both = torch.cat([scale, torch.zeros_like(scale)], -1).transpose(0, 1).bfloat16().contiguous()
    return lambda x: aten._weight_int4pack_mm_for_cpu(x.bfloat16(), packed, 32, both)


FORMS: dict[str, tuple[float, Form]] = {
    "fp32": (4, lambda w: partial(linear, weight=w)),
    "fp32, columns": (4, lambda w: partial(linear, weight=w.T.contiguous().T)),
    "bf16": (2, bfloat16),
    "fp16, FBGEMM": (2, lambda w: HalfLinear(layer_of(w))),
    "int8, ours": (1, lambda w: Int8Linear(layer_of(w))),
    "int8, linear_dynamic": (1, lambda w: ByteLinear(layer_of(w))),
    "int8, _weight_int8pack_mm": (1, int8_by_bfloat16),
    "int8, _int_mm": (1, int8_by_int8),
    "int4, groups of 32": (0.5 + 4 / 32, int4),
}


def spread(times: list[float]) -> dict[str, float]:
    return {"least": min(times), "median": torch.tensor(times).median().item()}


def all_of(products: Sequence[tuple[Callable[[Tensor], Any], Tensor]]) -> None:
    for product, x in products:
        product(x)


def matrices(rounds: int) -> dict[str, Any]:
    """Milliseconds for all matrices of GPT-2's shape with one row, and shares of the roofline."""
    numbers = torch.ones(2**26)
    layers = [m.weight.detach() for m in GPT(GPTConfig()).modules() if isinstance(m, nn.Linear)]
    x = {n: torch.randn(1, n) for n in {w.shape[1] for w in layers}}
    count = sum(w.numel() for w in layers)
    runs: dict[str, Callable[[], Any]] = {"memory": lambda: (numbers.sum(), numbers.amax())}
    for who, (_, form) in FORMS.items():
        try:
            products = [(form(w), x[w.shape[1]]) for w in layers]
            products[0][0](products[0][1])
        except (AttributeError, RuntimeError) as error:
            print(f"{who} is not here: {str(error).splitlines()[0]}")
            continue
        runs[who] = partial(all_of, products)
    found = {who: spread(times) for who, times in milliseconds(runs, rounds).items()}
    count *= 1000  # so that what is divided by milliseconds is a second's
    rates = [2000 * 4 * numbers.numel() / found.pop("memory")["least"]]
    rates += [FORMS[who][0] * count / row["least"] for who, row in found.items()]
    rate = max(rates)  # a product may read more quickly than the sum does
    for who, row in found.items():
        row["faster"] = found["fp32"]["least"] / row["least"]
        row["roofline"] = FORMS[who][0] * count / row["least"] / rate
    return {"bytes_per_second": rate, "forms": found}


def with_layers(model: Model, kind: Callable[[nn.Linear], nn.Module]) -> Model:
    for module in [*model.modules()]:
        for name, layer in module.named_children():
            if type(layer) is nn.Linear:
                setattr(module, name, kind(layer))
    return model


def writing(rounds: int) -> dict[str, Any]:
    """Tokens a second of a GPT of GPT-2's shape, one text."""
    model = untrained(GPTConfig(dropout=0.0)).eval()
    columns = deepcopy(model)
    weights.store_columns(columns)
    theirs, prompt = gpt2(model), torch.randint(model.config.V, (1, 8))
    theirs.set_attn_implementation("sdpa")
    models = {
        "fp32": model,
        "fp32, columns": columns,
        "bf16": deepcopy(model).bfloat16(),
        "fp16, FBGEMM": with_layers(deepcopy(model), HalfLinear),
        "int8, ours": smaller(deepcopy(model)),
        "int8, linear_dynamic": with_layers(deepcopy(model), ByteLinear),
    }
    runs: dict[str, Callable[[], Any]] = {
        who: partial(generate, m, prompt, NEW) for who, m in models.items()
    }
    how: dict[str, Any] = {"max_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
    runs["transformers, fp32"] = lambda: theirs.generate(prompt, **how)
    times = {who: spread(found) for who, found in milliseconds(runs, rounds).items()}
    first = times["transformers, fp32"]["least"]
    return {
        who: {
            "best": 1000 * NEW / row["least"],
            "median": 1000 * NEW / row["median"],
            "faster": first / row["least"],
        }
        for who, row in times.items()
    }


def in_columns(model: GPT) -> GPT:
    weights.store_columns(model)
    return model


WRITERS: dict[str, tuple[float, float, Callable[[GPT], GPT], str]] = {
    "fp32": (
        1.2,
        4,
        in_columns,
        "Both read the same bytes, so only their order in memory and the calls between two reads "
        "differ. Stored column by column, as ours are here, they are read at nearly the "
        "full rate.",
    ),
    "bf16": (
        1.5,
        2,
        GPT.bfloat16,
        "Half of the bytes would be twice as fast, if a product with one row read them at the full "
        "rate. PyTorch's product of bf16 was made for many rows, and with one it comes to less.",
    ),
    "int8": (
        3.0,
        1,
        smaller,
        "A quarter of the bytes would be four times as fast. But attention and Python take as long "
        "as before, and our product has two rows of bytes for one, to stay exact with outliers.",
    ),
}


def rows(new: int = 12) -> list[Row]:
    """Of the one table: writing with a GPT of GPT-2's shape, beside transformers with fp32."""

    def runs(form: Callable[[GPT], GPT]) -> tuple[Run, Run]:
        model = untrained(GPTConfig(dropout=0.0)).eval()
        theirs, prompt = gpt2(model), torch.randint(model.config.V, (1, 8))
        theirs.set_attn_implementation("sdpa")
        how: dict[str, Any] = {"min_new_tokens": new, "max_new_tokens": new, "pad_token_id": 0}
        peer = partial(theirs.generate, prompt, do_sample=False, **how)
        return partial(generate, form(model), prompt, new), peer

    c, bound = GPTConfig(), "reading its matrices once for each token"
    numbers = c.layers * 12 * c.D**2 + c.V * c.D

    def limit(size: float) -> float:
        return bytes_a_second() / (size * numbers)

    return [
        Row(
            name=f"writing GPT-2's shape, {name}",
            unit="tokens",
            peer="transformers, fp32",
            wanted=wanted,
            bound=bound,
            gap=gap,
            work=new,
            runs=partial(runs, form),
            limit=partial(limit, size),
        )
        for name, (wanted, size, form, gap) in WRITERS.items()
    ]


def cost() -> dict[str, Any]:
    """Loss and what it adds to the perplexity, with the matrices rounded in several ways."""
    shipped = load_language_model("gpt-shakespeare-page")
    ids = torch.tensor(shipped.tokens.ids(tiny_shakespeare().valid))
    figures = weights.results("gpt-shakespeare-page")["figures"]

    def rounded(bits: int, form: Callable[[Tensor], Tensor]) -> GPT:
        model = deepcopy(shipped.model)
        for w in model.parameters():
            if w.ndim > 1 and w.numel():
                w.data = dequantise(*quantise(form(w.data), bits)).view_as(w)
        return model

    models: Mapping[str, GPT] = {
        "8 bits, a scale a row": shipped.model,
        "8 bits, one scale": rounded(8, Tensor.flatten),
        "4 bits, a scale for 32": rounded(4, lambda w: w.unflatten(-1, (-1, 32))),
        "4 bits, a scale a row": rounded(4, lambda w: w),
        "4 bits, one scale": rounded(4, Tensor.flatten),
        "8 bits a row, by Int8Linear": smaller(deepcopy(shipped.model)),
        "8 bits a row, one byte for x": with_layers(deepcopy(shipped.model), ByteLinear),
    }
    losses = {"32 bits, before": figures["loss"]}
    losses |= {who: text_loss(model, ids, 256) for who, model in models.items()}
    return with_cost(losses)


def with_cost(losses: Mapping[str, float]) -> dict[str, Any]:
    first = next(iter(losses.values()))
    return {who: {"loss": loss, "cost": expm1(loss - first)} for who, loss in losses.items()}


def real_cost() -> dict[str, Any]:
    """The same for SmolLM2 and 2000 characters, whose activations have outliers."""
    model, tokens = load_smollm2()
    ids = torch.tensor([tokens.ids(tiny_shakespeare().valid[:2000])])
    largest: list[float] = []
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_pre_hook(lambda _, x: largest.append(x[0].abs().max().item()))

    def loss(model: Any) -> float:
        return negative_log_likelihood(model(ids[:, :-1]), ids[:, 1:]).mean().item()

    losses = {"32 bits": loss(model)}
    losses["8 bits a row"] = loss(with_layers(deepcopy(model), Rounded))
    losses["8 bits a row, by Int8Linear"] = loss(smaller(deepcopy(model)))
    losses["8 bits a row, one byte for x, a scale a token"] = loss(
        with_layers(deepcopy(model), OneByte)
    )
    losses["8 bits a row, one byte for x"] = loss(with_layers(model, ByteLinear))
    return {"largest_activation": max(largest), "losses": with_cost(losses)}


def show(title: str, found: Mapping[str, Mapping[str, float]]) -> None:
    print(f"\n{title}")
    heads = [*next(iter(found.values()))]
    rows = [[who, *(f"{row[name]:.5g}" for name in heads)] for who, row in found.items()]
    table(["", *heads], rows)


@torch.inference_mode()
def main() -> None:
    parser = arguments("Weights with fewer bits.", record=True)
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*quantized.*deprecated")
    found: dict[str, Any] = machine()
    print(f"all on one thread of {found['processor']}")
    found["matrices"] = matrices(chosen.rounds)
    print(f"memory: {found['matrices']['bytes_per_second'] / 1e9:.1f} GB a second")
    show("All matrices of GPT-2's shape, one row: milliseconds", found["matrices"]["forms"])
    found["writing"] = writing(max(1, chosen.rounds // 3))
    show("Writing with GPT-2's shape: tokens a second", found["writing"])
    found["cost"], found["real_cost"] = cost(), real_cost()
    show("Shakespeare, whole validation split", found["cost"])
    show("SmolLM2, 2000 characters of it", found["real_cost"]["losses"])
    save("fewer-bits", found, chosen.record)


if __name__ == "__main__":
    main()
