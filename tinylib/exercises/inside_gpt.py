"""The exercises of chapter 15: the stream as a sum, patches, and what a head is worth."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

# The stream as a sum ---------------------------------------------------------------------


def _parts_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    yield torch.tensor([[3.0, 0.0], [0.0, 4.0]]), torch.tensor([1.0, 2.0]), torch.eye(2)
    draw = rounded_normal(131)
    for P, D, V in ((3, 4, 2), (5, 3, 6), (4, 6, 5)):
        yield draw(P, D), 1 + draw(D).abs(), draw(V, D)


check_contributions = Exercise(
    task="write `def answer(parts, w, table):` that gives what each part adds to each logit.",
    inputs=("parts", "w", "table"),
    cases=_parts_cases,
    solution="""
    def answer(parts, w, table):
        x = parts.sum(dim=0)
        sigma = x.square().mean().sqrt()
        return (parts / sigma * w) @ table.T
    """,
    insight="Summed over the parts, these are the model's logits. But σ hangs together with all "
    "parts: without one of them, it would be another number, so this is a share and no effect.",
    slips="""
    x.square().mean().sqrt() → parts.square().mean(dim=1, keepdim=True).sqrt()
        You divided each part by a σ of its own, so the shares no longer sum to the logits, and
        a tiny part counts as much as a large one. The model divides by *one* σ, that of the sum.
    x.square().mean().sqrt() → x.square().sum().sqrt()
        You divided by the length of x. RMS norm takes the root of the *mean* of the squares.
    x.square().mean().sqrt() → x.square().mean()
        The root is missing: this is σ², and σ is asked for.
    x.square().mean().sqrt() → x.std(unbiased=False)
        This σ is that of layer norm, which first takes off the mean. RMS norm takes none off.
    x.square().mean().sqrt() → 1
        The parts went to the table without the norm. Divide them by σ first.
    parts.sum(dim=0) → parts[-1]
        You took σ of the last part alone. The norm reads the whole stream, the sum of all parts.
    parts.sum(dim=0) → parts.mean(dim=0)
        You took σ of the mean of the parts. The stream is their sum.
    parts / sigma * w → parts / sigma
        The scale w of the norm is missing: each of the D numbers is multiplied by its own.
    parts / sigma * w → (parts - parts.mean(dim=1, keepdim=True)) / sigma * w
        You took off each part's mean, as layer norm does. RMS norm only divides.
    (parts / sigma * w) @ table.T → ((parts / sigma * w) @ table.T).softmax(dim=-1)
        These are probabilities, one distribution for each part. They do not add up to anything:
        the softmax comes after the sum. Return what the parts add to the *logits*.
    """,
)


def _lens_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    draw = rounded_normal(132)
    for words in ([2, 1, 0, 0], [0, 1, 0, 2, 0, 0, 0], [1, 1, 1], [3, 0, 3, 2, 1, 0, 2]):
        V = max(words) + 1
        table = 2 * torch.eye(V) + draw(V, V) / 10
        w = torch.tensor([0.5, 3.0, 1.5, 2.5])[:V]
        x = 2 * torch.eye(V)[words] + draw(len(words), V) / 10
        yield x / w + torch.tensor([1.5, 0.0, 0.5, 0.0])[:V], w, table


check_lens = Exercise(
    task="write `def answer(stream, w, table):` that gives the number of blocks.",
    inputs=("stream", "w", "table"),
    cases=_lens_cases,
    solution="""
    def answer(stream, w, table):
        words = ((stream * w) @ table.T).argmax(dim=-1)
        blocks = len(words) - 1
        while blocks > 0 and words[blocks - 1] == words[-1]:
            blocks -= 1
        return blocks
    """,
    insight="σ is positive and the same for all logits of a row, so it changes none of the ranks. "
    "A word that the lens does not show can still be in the stream, elsewhere or in another form.",
    slips="""
    return blocks → return (words == words[-1]).nonzero()[0, 0]
        You stopped where the final word is the likeliest for the first time. It may be overtaken
        once more afterwards: count from where it *stays* the likeliest.
    return blocks → return (words == words[-1]).sum()
        You counted the rows in which the final word is the likeliest. Return the number of blocks
        after which it is so for good.
    return blocks → return blocks + 1
        One too many. Row 0 is the stream before the first block, so row n is that after n blocks.
    return blocks → return blocks - 1
        One too few. This is the number of the block that brought the word, counted from 0. Return
        how many blocks the stream has passed when the word is there.
    return blocks → return len(words) - 1 - blocks
        You counted from the end: this many blocks come afterwards.
    return blocks → return words[blocks]
        This is the word. Return the number of blocks after which it is the likeliest.
    (stream * w) @ table.T → stream @ table.T
        The norm's scale w is missing. It is not the same for all D numbers, so it does change
        which word is the likeliest.
    (stream * w) @ table.T → (stream.diff(dim=0, prepend=0 * stream[:1]) * w) @ table.T
        You read what each block has added. The lens reads the stream *after* it, which is the sum
        of all that was added so far.
    (stream * w) @ table.T → ((stream - stream[0]) * w) @ table.T
        You took off the embedding. It is a part of the stream, and the last norm reads it, too.
    argmax(dim=-1) → argmin(dim=-1)
        This follows the word that is the *least* likely in the end.
    """,
)


# Patches ---------------------------------------------------------------------------------


def _recovered_cases() -> Iterator[tuple[Tensor, Tensor, Tensor, int, int]]:
    yield (
        torch.tensor([4.0, 0.0]),
        torch.tensor([1.0, 3.0]),
        torch.tensor([[4.0, 0.0], [2.0, 1.0], [1.0, 4.0], [5.0, 0.0]]),
        0,
        1,
    )
    draw = rounded_normal(133)
    for V, S, a, b in ((3, 2, 2, 0), (5, 4, 1, 3)):
        own, corrupted = draw(V), draw(V)
        own[a], own[b], corrupted[a], corrupted[b] = 3.5, -0.5, 0.4, 2.9
        yield own, corrupted, own + draw(S, V), a, b


check_recovered = Exercise(
    task="write `def answer(own, twin, patched, a, b):` that gives the recovered share, (S,).",
    inputs=("own", "twin", "patched", "a", "b"),
    cases=_recovered_cases,
    solution="""
    def answer(own, twin, patched, a, b):
        def d(logits):
            return logits[..., b] - logits[..., a]

        return (d(patched) - d(own)) / (d(twin) - d(own))
    """,
    insight="With a and b exchanged, every d changes its sign and the share stays the same. Its "
    "own sign matters: below 0, the patch has made the story's answer more certain.",
    slips="""
    (d(patched) - d(own)) → (d(own) - d(patched))
        The sign is wrong: a patch that gives the twin's logits should have the share 1, and has
        −1.
    (d(patched) - d(own)) → (d(twin) - d(patched))
        This is the share that is still missing, 1 for a patch that does nothing. Return the share
        that is recovered.
    (d(patched) - d(own)) → (d(patched) - d(own)).abs()
        The sign is lost. A patch can go in the wrong direction, and then its share is below 0.
    (d(patched) - d(own)) → d(patched)
        You measured from 0. A patch that changes nothing leaves d(own), and should have the
        share 0.
    (d(twin) - d(own)) → d(twin)
        You divided by the twin's d. The whole distance begins at d(own): divide by the difference.
    (d(twin) - d(own)) → (d(patched).max() - d(own))
        You divided by the largest of the patches, so that one of them always has the share 1.
        The whole distance is that to the twin's own run.
    return logits[..., b] - logits[..., a] → return logits[..., b]
        You followed the twin's answer alone. Both answers may rise together, as do all places;
        the difference shows which one wins.
    return logits[..., b] - logits[..., a] → return logits[..., a]
        You followed the own answer alone. It may fall because *all* places do; the difference
        shows whether the twin's answer wins.
    return logits[..., b] - logits[..., a] → return logits[..., b] + logits[..., a]
        You added the two logits. What decides between two answers is their difference.
    return logits[..., b] - logits[..., a] → p = logits.softmax(-1); return p[..., b] - p[..., a]
        These are differences of probabilities. Near 0 and 1 they hardly move, however far the
        logits go, so small effects vanish. Take the logits.
    (d(patched) - d(own)) → (d(patched) - d(own)).clamp(min=0)
        You cut off what is below 0. A patch can push in the wrong direction, and that should not be
        hidden.
    """,
)


def _rest_of_models() -> Iterator[Callable[[Tensor], Tensor]]:
    """From a stream (T, D) to logits (T, V): the later positions read the earlier ones."""
    draw = rounded_normal(134)
    w, score, v = draw(3, 2), draw(2, 2), draw(2, 3)
    table = torch.tensor([[1.0, 0.5], [-1.0, 2.0]])

    def mean_so_far(x: Tensor) -> Tensor:
        """the mean of the vectors so far, and a table"""
        n = torch.arange(1, len(x) + 1)
        return (x.cumsum(0) / n[:, None]) @ table

    def network(x: Tensor) -> Tensor:
        """a network with tanh, and the sum of what it returned so far"""
        return (x @ w).tanh().cumsum(0)

    def attention(x: Tensor) -> Tensor:
        """causal attention, and a table"""
        later = torch.ones(len(x), len(x)).triu(1).bool()
        alpha = (x @ score @ x.T).masked_fill(later, -torch.inf).softmax(-1)
        return (x + alpha @ x) @ v

    yield from (mean_so_far, network, attention)


def _patch_cases() -> Iterator[tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]]:
    draw = rounded_normal(135)
    for T, rest in zip((3, 4, 5), _rest_of_models(), strict=True):
        D = 3 if rest.__name__ == "network" else 2
        yield draw(T, D), draw(T, D), rest


check_patch = Exercise(
    task="write `def answer(own, twin, rest):` that gives the last logits for each patch, (T, V).",
    inputs=("own", "twin", "rest"),
    cases=_patch_cases,
    solution="""
    def answer(own, twin, rest):
        rows = []
        for t in range(len(own)):
            patched = own.clone()
            patched[t] = twin[t]
            rows.append(rest(patched)[-1])
        return torch.stack(rows)
    """,
    insight="That is a row of the chapter's map, from one block: T runs of the rest of the model, "
    "in each of which one vector is another text's.",
    slips="""
    own.clone() → own
    patched[t] = twin[t] → patched[: t + 1] = twin[: t + 1]
        The patches pile up: at position t, all positions before it are the twin's, too. Begin
        with a fresh copy for each of them, and replace one vector.
    patched[t] = twin[t] → patched[t:] = twin[t:]
        You replaced all positions from t on, so you cannot tell which of them had the effect:
        replace one.
    answer(own, twin, rest) → answer(twin, own, rest)
        You put the own vector into the twin's run. That asks another question: whether this
        vector *suffices* to bring the own answer back.
    patched[t] = twin[t] → patched[t] += twin[t]
        You added the twin's vector to the own one. A patch *replaces* it.
    patched[t] = twin[t] → patched[t] = (own[t] + twin[t]) / 2
        You took the mean of both. The vector that goes on is to be the twin's.
    patched[t] = twin[t] → patched[t] = 0
        This is an ablation with 0. A patch takes the vector from the twin's run.
    patched[t] = twin[t] → patched[t] = twin[-1]
        You put in the twin's *last* vector everywhere. Both vectors are of the same position.
    patched[t] = twin[t] → patched[-1] = twin[-1]
        You changed the last position every time. Change position t.
    rest(patched)[-1] → rest(patched)[t]
        These are the logits at the position that you have changed. The answer is predicted at
        the last one.
    rest(patched)[-1] → rest(own)[-1]
        You ran the rest of the model on the unchanged stream.
    """,
)


# What a head is worth --------------------------------------------------------------------


def _ablation_cases() -> Iterator[tuple[Tensor, Tensor, int, int, int]]:
    draw = rounded_normal(136)
    for B, T, D, H, h, t in ((2, 2, 4, 2, 1, 0), (3, 4, 4, 2, 0, 2), (4, 3, 6, 3, 1, 1)):
        yield draw(T, D), draw(B, T, D), H, h, t


check_mean_ablation = Exercise(
    task="write `def answer(z, reference, H, h, t):` that gives z without what the head says at t.",
    inputs=("z", "reference", "H", "h", "t"),
    cases=_ablation_cases,
    solution="""
    def answer(z, reference, H, h, t):
        d = z.shape[-1] // H
        part = slice(h * d, (h + 1) * d)
        ablated = z.clone()
        ablated[t, part] = reference[:, t, part].mean(dim=0)
        return ablated
    """,
    insight="What all texts have in common at this position stays, and only what the head says "
    "about *this* text is lost. 0 would be a value that the later blocks may never have seen.",
    slips="""
    reference[:, t, part].mean(dim=0) → reference[..., part].mean(dim=(0, 1))
        You took the mean over all positions, too. At the first word a head says something else
        than at the last: take the mean over the B texts, at position t alone.
    reference[:, t, part].mean(dim=0) → reference[:, t, part].mean()
        This is one number for the whole head. Each of its d numbers has a mean of its own.
    reference[:, t, part].mean(dim=0) → 0
        This is an ablation with 0. Here the mean over the reference texts takes the place.
    reference[:, t, part].mean(dim=0) → reference[0, t, part]
        You put in what the head says in *one* other text. That adds this text's own facts; take
        the mean over all B.
    reference[:, t, part].mean(dim=0) → z[:, part].mean(dim=0)
        You took the mean over the positions of this very text, so it still tells of this text.
        The mean is over the reference texts.
    reference[:, t, part] → torch.cat([z[None], reference])[:, t, part]
        You counted this text among the reference, so that a part of what it says is kept.
    reference[:, t, part].mean(dim=0) → z[t, part] - reference[:, t, part].mean(dim=0)
        You took off the mean, and kept what is special about this text. It should be the other
        way round: the mean is what stays.
    ablated[t, part] → ablated[:, part]
        You wrote to all positions. The head is ablated at position t alone.
    ablated[t, part] → ablated[t:, part]
        You wrote to the later positions, too. The head is ablated at position t alone.
    slice(h * d, (h + 1) * d) → slice(h, None, H)
        You took every H-th number. Heads stand side by side: head h has the d numbers from h·d on.
    slice(h * d, (h + 1) * d) → slice(None)
        You ablated all heads at once. Only the D / H numbers of head h are to be replaced.
    """,
)


def _maps_cases() -> Iterator[tuple[Tensor, int]]:
    draw = rounded_normal(137)
    for H, period, T in ((1, 2, 4), (2, 3, 6), (3, 4, 10), (2, 5, 15)):
        scores = 2 * draw(H, T, T)
        later = torch.ones(T, T).triu(1).bool()
        yield scores.masked_fill(later, -torch.inf).softmax(-1), period


check_induction = Exercise(
    task="write `def answer(weights, period):` that gives the induction score of each head, (H,).",
    inputs=("weights", "period"),
    cases=_maps_cases,
    solution="""
    def answer(weights, period):
        t = torch.arange(period, weights.shape[-1])
        return weights[:, t, t - period + 1].mean(dim=-1)
    """,
    insight="Such a head finds the last time that this token was read, and brings what came after "
    "it. As the tokens are random, nothing but the repetition helps to predict them.",
    slips="""
    t - period + 1 → t - period
        This is the same token, one round ago. An induction head attends to the token *after* it,
        since that is the one to be said next.
    t - period + 1 → t - 1
        This is a previous-token score. An induction head attends to the token that came after
        this one *a round ago*.
    t - period + 1 → t - period + 2
        This is two tokens after the last time. The next token is *one* after it.
    t - period + 1 → t
        This is how much each position attends to itself.
    weights[:, t, t - period + 1] → weights[:, t - period + 1, t]
        Row and column have changed places: the query, which comes later, is the row. A causal
        map has only zeros there.
    weights[:, t, t - period + 1] → weights[:, t].amax(dim=-1, keepdim=True)[..., 0]
        You took the largest weight of each row, wherever it is. Take the weight on *one* position,
        t − period + 1.
    torch.arange(period, weights.shape[-1]) → torch.arange(period - 1, weights.shape[-1])
        The last position of the first round is among them. Its token has not come before.
    torch.arange(period, weights.shape[-1]) → torch.arange(period, weights.shape[-1] - 1)
        The last position is missing. It has a weight as well, though nothing comes after it.
    torch.arange(period, weights.shape[-1]) → torch.arange(period, 2 * period)
        You only took the second round. Take all positions from `period` on.
    .mean(dim=-1) → .sum(dim=-1) / weights.shape[-1]
        You divided by all positions. In the first round there is nothing to be found: divide by
        the number of those after it.
    .mean(dim=-1) → .sum(dim=-1)
        This is the sum, which grows with the text. Take the mean.
    .mean(dim=-1) → .amax(dim=-1)
        You took the best position. A head may hit one by chance: take the mean.
    """,
)


def _control_cases() -> Iterator[tuple[Tensor, int, int]]:
    yield torch.tensor([[[0.1, 0.8], [0.0, 0.2]], [[0.3, 1.0], [0.0, 0.0]]]), 0, 1
    draw = rounded_normal(138)
    for N, L, H, block, head in ((3, 2, 3, 1, 2), (4, 3, 2, 1, 0), (5, 3, 4, 2, 3)):
        shares = draw(N, L, H) / 4
        shares[:, block, head] += 0.6
        yield shares, block, head
    yield -draw(3, 2, 2).abs() / 4 - 0.1, 1, 0
    rival = draw(4, 2, 2) / 4
    rival[:, 1, 1] += 1
    yield rival, 0, 1


check_control = Exercise(
    task="write `def answer(shares, block, head):` that gives how far ahead the named head is.",
    inputs=("shares", "block", "head"),
    cases=_control_cases,
    solution="""
    def answer(shares, block, head):
        mean = shares.mean(dim=0)
        others = mean.clone()
        others[block, head] = -torch.inf
        return mean[block, head] - others.max()
    """,
    insight="A share of 0.9 tells little as long as we do not know what the other heads have. "
    "Below 0, another head would have deserved the name.",
    slips="""
    mean[block, head] - others.max() → mean[block, head] - mean.max()
        The named head is among its own rivals, so it can never be ahead: leave it out.
    mean[block, head] - others.max() → mean[block, head]
        This is the share of the named head. Return how much larger it is than the best other's.
    mean[block, head] - others.max() → others.max() - mean[block, head]
        The sign is wrong: if the named head is the best one, it is ahead, and above 0.
    mean[block, head] - others.max() → mean[block, head] / others.max()
        You divided. If the best other head has a share near 0, or below it, that says nothing:
        take the difference.
    mean[block, head] - others.max() → mean[block, head] - others[others.isfinite()].mean()
        You compared with the mean of the others. One strong rival disappears among many heads
        that do nothing: compare with the best one.
    mean[block, head] - others.max() → mean[block, head] - others[block].max()
        You looked for rivals in the same block only. Heads of all blocks are rivals.
    others.max() → (shares + others - mean).amax(dim=(1, 2)).mean()
        You compared with the best other head of *each* twin. Of many heads one is always lucky:
        take the mean over the twins first, then the best.
    mean[block, head] - others.max() → mean[block, head] - others[others.isfinite()].abs().max()
        You took the rival with the largest effect, in whichever direction. One that pushes away
        from the twin's answer does not carry the fact: no absolute values.
    others[block, head] = → others[block] =
        You left out the whole block. The named head's neighbours are rivals, too.
    others[block, head] = → others[:, head] =
        You left out one head of each block. Heads of the same number have nothing in common.
    = -torch.inf → = 0
        The named head competes with a share of 0. If all others are below 0, the best of them is,
        too: −∞ never wins.
    mean.clone() → mean
        Without a copy, −∞ is written into `mean` itself, and the named head's share is lost.
    shares.mean(dim=0) → shares[0]
        This is one twin alone. Take the mean over all of them.
    shares.mean(dim=0) → shares.amax(dim=0)
        You took each head's best twin, which may be luck. Take the mean over all of them.
    """,
    test="""
    def test(answer):
        shares = torch.tensor([[[0.9, 0.7], [0.3, 0.2]], [[0.3, 0.2], [0.1, 0.6]]])
        assert abs(answer(shares, 0, 0) - 0.15) < 1e-6  # means: 0.6 0.45 / 0.2 0.4
        assert abs(answer(shares, 1, 0) + 0.4) < 1e-6
        below = torch.tensor([[[-0.5, -0.2], [-0.9, -0.7]]])
        assert abs(answer(below, 0, 1) - 0.3) < 1e-6
    """,
)
