"""Inside a GPT: what each part adds to a prediction, and what depends on it.

stream = read_stream(model, tokens)     all that is added to the residual stream
logit_lens(model, stream)               what each block's stream would predict
contributions(model, stream)            how much of each logit every part has added
patch_from(model, tokens, twin, site)  one vector from another text: what changes?
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.gpt import GPT
from tinylib.hooks import capture, in_eval_mode, patch
from tinylib.normalization import LayerNorm


class Stream(NamedTuple):
    r"""$x^N = x^0 + \sum_{l} \big(\sum_h z^{lh} W_o^{lh} + b_o^l + f^l\big)$.

    The residual stream as the sum that it is (Elhage et al. 2021): the
    embedding, and in each of L blocks what each of H heads and the
    feed-forward network add at every position.
    """

    embedding: Float[Tensor, "B T D"]
    heads: Float[Tensor, "L H B T D"]
    biases: Float[Tensor, "L D"]  # of the heads' last matrix, 0 if there are none
    feed_forward: Float[Tensor, "L B T D"]

    def added(self) -> Float[Tensor, "L B T D"]:
        """What each block adds."""
        return self.heads.sum(1) + self.biases[:, None, None] + self.feed_forward

    def after(self) -> Float[Tensor, "N B T D"]:
        """The stream before the first block and after each, N = L + 1 of them."""
        return torch.cat([self.embedding[None], self.added()]).cumsum(0)


@in_eval_mode
def read_stream(model: GPT, tokens: Int[Tensor, "B T"]) -> Stream:
    """All parts of the stream, while the model reads a text (in eval mode)."""
    z, f = "blocks.*.attention.w_o:input", "blocks.*.feed_forward"
    with capture(model, "dropout", z, f) as seen:
        model(tokens)
    written = {name: tensors[0] for name, tensors in seen.items()}
    heads, biases, feed_forward = [], [], []
    for i, block in enumerate(model.blocks):
        w_o, H = block.attention.w_o, block.attention.H
        z_i = written[f"blocks.{i}.attention.w_o:input"].unflatten(-1, (H, -1))
        w_i = w_o.weight.unflatten(1, (H, -1))
        heads.append(torch.einsum("BTHd,DHd->HBTD", z_i, w_i))
        none = w_o.weight.new_zeros(len(w_o.weight))
        biases.append(none if w_o.bias is None else w_o.bias)
        feed_forward.append(written[f"blocks.{i}.feed_forward"])
    parts = map(torch.stack, (heads, biases, feed_forward))
    return Stream(written["dropout"], *parts)


@in_eval_mode
def logit_lens(model: GPT, stream: Stream) -> Float[Tensor, "N B T V"]:
    r"""$\mathrm{norm}(x^l)\, E^\top$: what if the model ended after l blocks?

    nostalgebraist 2020, "Interpreting GPT: the logit lens". The last norm and
    the last table read every block's stream, not only the last one's.
    """
    logits: Tensor = model.output(model.norm(stream.after()))
    return logits


@in_eval_mode
def contributions(model: GPT, stream: Stream) -> Float[Tensor, "P B T V"]:
    r"""$\frac{a_p \odot w}{\sigma}\, E^\top$ for each part $a_p$ of the stream.

    The last norm divides the whole stream by one number σ at each position
    (and a layer norm first takes off the mean). With σ as it is in this run,
    each logit is a sum of its parts: P = 2 + L (H + 1) of them, which are the
    embedding; each block's heads, then its feed-forward network; and what all
    biases make together. Elhage et al. 2021, "direct" contributions.
    """
    norm, x = model.norm, stream.after()[-1]
    blocks = torch.cat([stream.heads, stream.feed_forward[:, None]], 1)
    bias = stream.biases.sum(0).expand_as(x)
    each = stream.embedding[None], blocks.flatten(0, 1), bias[None]
    parts = torch.cat(each)
    if isinstance(norm, LayerNorm):
        parts, x = (y - y.mean(-1, keepdim=True) for y in (parts, x))
    sigma = (x.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    shares = model.output(parts / sigma * norm.weight)
    if isinstance(norm, LayerNorm):
        shares[-1] += model.output(norm.bias)
    return shares


class Site(NamedTuple):
    """One vector inside a GPT, or the same one at several positions.

    ``module`` is a name as :func:`capture` takes it, ``part`` the numbers of
    its vector (all, or those of one head), ``at`` the positions (all if None),
    and ``texts`` those of the batch.
    """

    module: str
    part: slice = slice(None)
    at: tuple[int, ...] | None = None
    texts: slice = slice(None)

    def of(self, x: Float[Tensor, "B T d"]) -> Float[Tensor, "B T d"]:
        """1 where the site is, 0 elsewhere; IndexError beyond the text."""
        T = x.shape[1]
        if self.at and not all(-T <= at < T for at in self.at):
            raise IndexError(f"positions {self.at}: there are 0 to {T - 1}")
        here = torch.zeros_like(x)
        positions = slice(None) if self.at is None else list(self.at)
        here[self.texts, positions, self.part] = 1
        return here


def stream_site(blocks: int, *at: int) -> Site:
    """The residual stream after so many blocks; after 0, it is the embedding."""
    return Site(f"blocks.{blocks - 1}" if blocks else "dropout", at=at or None)


def head_site(model: GPT, block: int, head: int, *at: int) -> Site:
    """What one head has collected: its part of the last matrix's input."""
    if not 0 <= head < model.config.H:
        raise IndexError(f"head {head}: there are 0 to {model.config.H - 1}")
    d = model.config.D // model.config.H
    part = slice(head * d, (head + 1) * d)
    return Site(f"blocks.{block}.attention.w_o:input", part, at or None)


@in_eval_mode
def patch_from(
    model: GPT,
    tokens: Int[Tensor, "B T"],
    corrupted: Int[Tensor, "B S"],
    sites: Site | Iterable[Site],
) -> Float[Tensor, "B T V"]:
    """The logits for ``tokens``, with the twin's vectors at some sites.

    Activation patching, or "causal tracing" (Vig et al. 2020; Meng et al.
    2022). Both texts have the same length. ValueError if they do not.
    """
    if tokens.shape != corrupted.shape:
        raise ValueError(
            f"the texts are {[*tokens.shape]} and {[*corrupted.shape]}: a twin "
            "is as long, so that each position has its partner"
        )
    sites = [sites] if isinstance(sites, Site) else [*sites]
    with capture(model, *{site.module for site in sites}) as seen:
        model(corrupted)
    return replaced(model, tokens, [(p, seen[p.module][0]) for p in sites])


@in_eval_mode
def ablate(
    model: GPT,
    tokens: Int[Tensor, "B T"],
    sites: Site | Iterable[Site],
    value: Float[Tensor, "..."] | float = 0.0,
) -> Float[Tensor, "B T V"]:
    """The logits for ``tokens`` with ``value`` at some sites: 0, or a mean."""
    sites = [sites] if isinstance(sites, Site) else [*sites]
    return replaced(model, tokens, [(p, torch.as_tensor(value)) for p in sites])


def replaced(
    model: GPT, tokens: Int[Tensor, "B T"], values: list[tuple[Site, Tensor]]
) -> Float[Tensor, "B T V"]:
    def change(module: str, x: Tensor) -> Tensor:
        for site, value in values:
            if site.module == module:
                x = torch.where(site.of(x) > 0, value, x)
        return x

    modules = {site.module for site, _ in values}
    with patch(model, {module: partial(change, module) for module in modules}):
        logits: Tensor = model(tokens)
    return logits


def recovered(
    patched: Float[Tensor, "..."],
    own: Float[Tensor, "..."],
    corrupted: Float[Tensor, "..."],
) -> Float[Tensor, "..."]:
    r"""$(d - d_{own}) / (d_{twin} - d_{own})$: the recovered share.

    0: the patch changed nothing; 1: d is that of the twin. d, the logit
    difference, is the logit of the twin's answer less that of the own one
    (Zhang and Nanda 2024, "Towards Best Practices of Activation Patching in
    Language Models").
    """
    return (patched - own) / (corrupted - own)
