"""Inside a GPT: the stream is the sum of its parts, and patches are a forward pass by hand."""

from itertools import product

import pytest
import torch
from peers import close, randomised
from torch import Tensor

from tinylib.gpt import GPT, GPTConfig
from tinylib.inside_gpt import (
    Site,
    ablate,
    contributions,
    head_site,
    logit_lens,
    patch_from,
    read_stream,
    recovered,
    stream_site,
)
from tinylib.positional_encoding import rotate

B, T, V, H, L = 2, 11, 13, 3, 2
SMALL = GPTConfig(V, 17, D=42, H=H, layers=L, dropout=0.1)
EVERY_KIND = pytest.mark.parametrize(
    ("norm", "positions", "bias"),
    list(product(["layer", "rms"], ["learned", "rotary"], [True, False])),
)


def small(**change: object) -> GPT:
    return randomised(GPT(SMALL._replace(**change)), 0).double().eval()  # type: ignore[arg-type]


def texts() -> tuple[Tensor, Tensor]:
    tokens = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(1))
    return tokens, tokens.roll(3, 1)


@torch.no_grad()
def by_hand(
    model: GPT, tokens: Tensor, changed: dict[tuple[str, int], Tensor] | None = None
) -> tuple[Tensor, dict[tuple[str, int], Tensor]]:
    """The forward pass without a hook. ``changed`` holds what to go on with instead."""
    seen: dict[tuple[str, int], Tensor] = {}

    def at(kind: str, i: int, x: Tensor) -> Tensor:
        seen[kind, i] = x
        return x if changed is None else changed.get((kind, i), x)

    x, theta = model.embed(tokens, 0, None)
    x = at("stream", 0, x)
    for i, block in enumerate(model.blocks):
        q, k, v = block.attention.project(block.attention_norm(x))
        if theta is not None:
            q, k = rotate(q, theta), rotate(k, theta)
        q, k, v = (y.unflatten(-1, (H, -1)).transpose(1, 2) for y in (q, k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = torch.ones(T, T).triu(1).bool()
        z = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        z = at("z", i, z.transpose(1, 2).flatten(-2))
        x = x + block.attention.w_o(z)
        x = x + at("mlp", i, block.feed_forward(block.feed_forward_norm(x)))
        x = at("stream", i + 1, x)
    return model.output(model.norm(x)), seen


@EVERY_KIND
def test_the_stream_is_the_sum_of_its_parts(norm: str, positions: str, bias: bool) -> None:
    model = small(norm=norm, positions=positions, bias=bias)
    tokens, _ = texts()
    logits, seen = by_hand(model, tokens)
    stream = read_stream(model, tokens)
    for i, x in enumerate(stream.after()):
        close(x, seen["stream", i], 1e-9)
    lens = logit_lens(model, stream)
    assert lens.shape == (L + 1, B, T, V)
    close(lens[-1], logits, 1e-9)
    parts = contributions(model, stream)
    assert parts.shape == (2 + L * (H + 1), B, T, V)
    close(parts.sum(0), logits, 1e-9)


def test_a_contribution_is_that_of_its_part() -> None:
    model = small(norm="layer", bias=True)
    tokens, _ = texts()
    stream = read_stream(model, tokens)
    parts = contributions(model, stream)
    x = stream.after()[-1]
    sigma = (x.var(-1, unbiased=False, keepdim=True) + model.norm.eps).sqrt()
    named = {0: stream.embedding, 1 + H: stream.feed_forward[0], 2 + H + 1: stream.heads[1, 1]}
    for i, part in named.items():
        centred = part - part.mean(-1, keepdim=True)
        close(parts[i], model.output(centred / sigma * model.norm.weight), 1e-9)


@EVERY_KIND
def test_patches_are_a_forward_pass_by_hand(norm: str, positions: str, bias: bool) -> None:
    model = small(norm=norm, positions=positions, bias=bias)
    tokens, corrupted = texts()
    _, own = by_hand(model, tokens)
    _, other = by_hand(model, corrupted)
    d, at = SMALL.D // H, (2, 7)

    def swapped(key: tuple[str, int], part: slice, value: Tensor | float) -> Tensor:
        x = own[key].clone()
        for t in at:
            x[:, t, part] = value[:, t, part] if isinstance(value, Tensor) else value
        return x

    head = slice(d, 2 * d)
    for key, part, site in (
        (("stream", 0), slice(None), stream_site(0, *at)),
        (("stream", 2), slice(None), stream_site(2, *at)),
        (("z", 1), head, head_site(model, 1, 1, *at)),
        (("mlp", 0), slice(None), Site("blocks.0.feed_forward", at=at)),
    ):
        wanted, _ = by_hand(model, tokens, {key: swapped(key, part, other[key])})
        close(patch_from(model, tokens, corrupted, site), wanted, 1e-9)
        wanted, _ = by_hand(model, tokens, {key: swapped(key, part, 0.0)})
        close(ablate(model, tokens, site), wanted, 1e-9)
        mean = own[key].mean((0, 1))
        wanted, _ = by_hand(model, tokens, {key: swapped(key, part, mean.expand(B, T, -1))})
        close(ablate(model, tokens, site, mean), wanted, 1e-9)


def test_a_whole_stream_is_the_whole_twin_and_several_places_are_patched_at_once() -> None:
    model = small()
    tokens, corrupted = texts()
    _, own = by_hand(model, tokens)
    theirs, other = by_hand(model, corrupted)
    close(patch_from(model, tokens, corrupted, stream_site(1)), theirs, 1e-9)
    close(patch_from(model, tokens, tokens, stream_site(1)), by_hand(model, tokens)[0], 1e-9)
    sites = [head_site(model, 0, 0), head_site(model, 0, 2), Site("blocks.1.feed_forward")]
    d = SMALL.D // H
    z = torch.cat(
        [other["z", 0][..., :d], own["z", 0][..., d : 2 * d], other["z", 0][..., 2 * d :]], -1
    )
    wanted, _ = by_hand(model, tokens, {("z", 0): z, ("mlp", 1): other["mlp", 1]})
    close(patch_from(model, tokens, corrupted, sites), wanted, 1e-9)


def test_each_text_of_a_batch_can_have_a_site_of_its_own() -> None:
    model = small()
    tokens, corrupted = texts()
    sites = [stream_site(1, 4), head_site(model, 1, 2, 9)]
    rows = [site._replace(texts=slice(i, i + 1)) for i, site in enumerate(sites)]
    both = patch_from(model, tokens, corrupted, rows)
    for i, site in enumerate(sites):
        close(both[i], patch_from(model, tokens, corrupted, site)[i], 1e-9)


def test_what_cannot_be_patched_is_refused() -> None:
    model = small()
    tokens, corrupted = texts()
    with pytest.raises(ValueError, match="a twin is as long"):
        patch_from(model, tokens, corrupted[:, 1:], stream_site(1))
    with pytest.raises(IndexError, match="there are 0 to 10"):
        ablate(model, tokens, stream_site(1, 11))
    with pytest.raises(IndexError, match="head 3: there are 0 to 2"):
        head_site(model, 0, 3)
    with pytest.raises(ValueError, match=r"no module 'blocks\.4'"):
        ablate(model, tokens, stream_site(5))


def test_the_way_is_a_share() -> None:
    d = torch.tensor([-3.0, 1.0, 5.0])
    assert recovered(d, torch.tensor(-3.0), torch.tensor(5.0)).tolist() == [0.0, 0.5, 1.0]
