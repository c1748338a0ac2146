"""Translation with attention: both directions, every state, the previous hidden state as query."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import exact
from torch import Tensor, nn

from tinylib.attention_scoring import AdditiveScore, Score, dot_score, scaled_dot_score
from tinylib.decoding import beam, choose, greedy
from tinylib.hooks import capture
from tinylib.lab.train.weights import load_into, save
from tinylib.seq2seq import gru_step, masked_loss, teacher_forcing
from tinylib.seq2seq_attention import (
    AttentionDecoder,
    AttentionSeq2Seq,
    AttentionState,
    BidirectionalEncoder,
)

# D must be even, so it is twice a prime.
B, S, T, D, V_SOURCE, V_TARGET, PAD, BOS, EOS = 3, 7, 5, 22, 13, 17, 0, 1, 2


def far(q: Tensor, k: Tensor) -> Tensor:
    """A score that nobody has heard of."""
    return -torch.cdist(q, k)


SCORES: dict[str, Callable[[], Score]] = {
    "additive": lambda: AdditiveScore(D),
    "dot": lambda: dot_score,
    "scaled": lambda: scaled_dot_score,
    "distance": lambda: far,
    "uniform": lambda: lambda q, k: torch.zeros_like(q @ k.mT),
}
EVERY_SCORE = pytest.mark.parametrize("score", SCORES)
EVERY_DEPTH = pytest.mark.parametrize("layers", [1, 2])


def model_of(
    score: str = "additive", layers: int = 2, seed: int = 0, dtype: torch.dtype = torch.float64
) -> AttentionSeq2Seq:
    torch.manual_seed(seed)
    return AttentionSeq2Seq(V_SOURCE, V_TARGET, D, SCORES[score](), layers).to(dtype)


def sentences(seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Of 4, 7 and 1 words; what stands behind them are no zeros, and must not matter."""
    g = torch.Generator().manual_seed(seed)
    source = torch.randint(4, V_SOURCE, (B, S), generator=g)
    target = torch.randint(4, V_TARGET, (B, T), generator=g)
    target[:, 0] = BOS
    target[1, 3:] = PAD
    return source, torch.tensor([4, S, 1]), target


def one_direction(gru: nn.GRU, layer: int, ending: str) -> nn.GRU:
    """One direction of one layer of a bidirectional GRU, by itself."""
    weights: dict[str, Tensor] = {
        f"{name}_l0": getattr(gru, f"{name}_l{layer}{ending}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    single = nn.GRU(weights["weight_ih_l0"].shape[1], gru.hidden_size, batch_first=True)
    single.load_state_dict(weights)
    return single.double()


# --- the encoder -------------------------------------------------------------------------------


@EVERY_DEPTH
def test_the_encoder_is_two_grus_that_read_against_each_other(layers: int) -> None:
    """The backward one starts at the last word, not at the pads behind it."""
    encoder = model_of(layers=layers).encoder
    source, lengths, _ = sentences()
    states, final, mask = encoder(source, lengths)
    assert states.shape == (B, S, D) and final.shape == (B, layers, D)
    assert (
        mask.sum(-1).tolist() == lengths.tolist() and mask[0].tolist() == [True] * 4 + [False] * 3
    )
    for b, length in enumerate(lengths.tolist()):
        x = encoder.embedding.weight[source[b, :length]][None]
        for layer in range(layers):
            forwards, last = one_direction(encoder.gru, layer, "")(x)
            backwards, first = one_direction(encoder.gru, layer, "_reverse")(x.flip(1))
            exact(final[b, layer], torch.cat([last[0, 0], first[0, 0]]))
            x = torch.cat([forwards, backwards.flip(1)], dim=-1)
        exact(states[b, :length], x[0])
        assert (states[b, length:] == 0).all()


def test_an_odd_width_cannot_be_halved() -> None:
    with pytest.raises(ValueError, match="D is 23: make it even, half for each direction"):
        BidirectionalEncoder(V_SOURCE, 23)


# --- the decoder -------------------------------------------------------------------------------


@EVERY_SCORE
@EVERY_DEPTH
def test_the_decoder_is_a_loop_over_words(score: str, layers: int) -> None:
    """Sentence by sentence, word by word, from the formulas; no masks, for there are no pads.

    The gradients are those of the loop, too: nothing is cut off on the way.
    """
    model, (source, lengths, target) = model_of(score, layers), sentences()
    decoder, annotations = model.decoder, model.encoder(source, lengths)
    with capture(model) as seen:
        together = model(source, lengths, target)
    assert len(seen["decoder.weights"]) == T
    weights, naive = list(decoder.gru.parameters()), torch.zeros_like(together)
    for b, length in enumerate(lengths.tolist()):
        states = annotations.states[b, :length]
        keys = states @ decoder.w_k.weight.T
        h = list(annotations.final[b])
        for t in range(T):
            query = decoder.w_q.weight @ h[-1]  # the state before word t is read
            alpha = decoder.score(query[None], keys)[0].softmax(-1)
            context = torch.stack([a * state for a, state in zip(alpha, states, strict=True)])
            x = torch.cat([decoder.embedding.weight[target[b, t]], context.sum(0)])
            for layer in range(layers):  # four tensors each
                x = h[layer] = gru_step(x, h[layer], *weights[4 * layer : 4 * layer + 4])
            naive[b, t] = decoder.output.weight @ x + decoder.output.bias
            exact(seen["decoder.weights"][t][b, 0, :length], alpha)
    exact(together, naive)
    parameters, felt = list(model.parameters()), torch.randn_like(naive)
    grads = [
        torch.autograd.grad(logits, parameters, felt, materialize_grads=True)
        for logits in (together, naive)
    ]
    for ours, wanted in zip(*grads, strict=True):
        exact(ours, wanted)


@EVERY_SCORE
def test_the_weights_are_recorded_for_every_word(score: str) -> None:
    model, (source, lengths, target) = model_of(score), sentences()
    with capture(model) as seen:
        model(source, lengths, target)
    assert list(seen) == ["decoder.weights"]
    weights = seen["decoder.weights"]
    assert [tuple(look.shape) for look in weights] == [(B, 1, S)] * T
    for look in weights:
        exact(look.sum(-1), torch.ones(B, 1, dtype=torch.float64))
        assert (look > 0).sum(-1).flatten().tolist() == lengths.tolist()  # 0 at pads
    with capture(model) as seen:  # the fast loss looks as often
        teacher_forcing(model, source, lengths, target)
    assert len(seen["decoder.weights"]) == T - 1


# --- the whole ---------------------------------------------------------------------------------

PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)]
)


@pytest.mark.usefixtures("unchecked")
@PRECISIONS
@given(
    more=st.integers(0, 4),
    seed=st.integers(0, 99),
    score=st.sampled_from(list(SCORES)),
    layers=st.integers(1, 2),
)
def test_pads_and_neighbours_change_nothing(
    dtype: torch.dtype, tolerance: float, more: int, seed: int, score: str, layers: int
) -> None:
    model, (source, lengths, target) = model_of(score, layers, seed, dtype), sentences(seed)
    wanted = model(source, lengths, target)
    junk = torch.randint(V_SOURCE, (B, S + more), generator=torch.Generator().manual_seed(seed))
    words = torch.arange(S + more) < lengths[:, None]
    junk[:, :S] = source.where(words[:, :S], junk[:, :S])
    exact(model(junk, lengths, target), wanted, tolerance)
    states, _, mask = model.encoder(junk, lengths)
    assert (states[~words] == 0).all() and torch.equal(mask, words)
    for b, length in enumerate(lengths.tolist()):  # alone, and between other sentences
        rows = [b, (b + 1) % B]
        for chosen, columns in (([b], length), (rows, S)):
            found = model(source[chosen, :columns], lengths[chosen], target[chosen])
            exact(found[0], wanted[b], tolerance)


@EVERY_SCORE
@EVERY_DEPTH
@PRECISIONS
def test_step_by_step_is_all_at_once(
    score: str, layers: int, dtype: torch.dtype, tolerance: float
) -> None:
    model, (source, lengths, target) = model_of(score, layers, dtype=dtype), sentences()
    state, logits = model.start(source, lengths), []
    for t in range(T):
        after, state = model.step(state, target[:, t])
        logits.append(after)
    together, last = model.decoder(target, model.start(source, lengths))
    exact(torch.stack(logits, dim=1), together, tolerance)
    for one, other in zip(state, last, strict=True):
        exact(one, other, tolerance)


@EVERY_SCORE
def test_the_fast_loss_is_the_plain_one_with_its_gradient(score: str) -> None:
    """And the gradient reaches every parameter, those of the score among them."""
    model, (source, lengths, target) = model_of(score), sentences()
    parameters = dict(model.named_parameters())
    assert ("decoder.score.w_v" in parameters) == (score == "additive")
    fast = teacher_forcing(model, source, lengths, target)
    plain = masked_loss(model(source, lengths, target[:, :-1]), target[:, 1:])
    exact(fast, plain)
    compared = score != "uniform"
    mute = {"decoder.w_q.weight", "decoder.w_k.weight"}  # if nothing is compared
    names = [name for name in parameters if compared or name not in mute]
    chosen = [parameters[name] for name in names]
    grads = [torch.autograd.grad(loss, chosen) for loss in (fast, plain)]
    for name, a, b in zip(names, *grads, strict=True):
        exact(a, b)
        assert a.any(), name


@pytest.mark.parametrize("score", ["additive", "scaled"])
def test_greedy_and_beam_search(score: str) -> None:
    """The state is a tuple of four tensors; each hypothesis keeps its own rows of all of them."""
    model, (source, lengths, _) = model_of(score), sentences()
    with torch.no_grad():
        model.decoder.output.weight *= 8  # opinions
        model.decoder.output.bias[EOS] += 1  # and an end
    start = model.start(source, lengths)
    rows = torch.tensor([2, 0, 2, 1])
    chosen = choose(start, rows)
    assert isinstance(chosen, AttentionState)
    for part, whole in zip(chosen, start, strict=True):
        assert torch.equal(part, whole[rows])

    best = greedy(model.step, start, BOS, EOS, max_len=11)
    one = beam(model.step, start, BOS, EOS, max_len=11, width=1)
    assert torch.equal(one.tokens[:, 0], best.tokens)
    exact(one.log_probs[:, 0], best.log_probs)
    assert len({tuple(row) for row in best.tokens.tolist()}) == B  # the source counts

    found = beam(model.step, start, BOS, EOS, max_len=11, width=5)
    for b in range(B):
        single = beam(model.step, choose(start, torch.tensor([b])), BOS, EOS, 11, width=5)
        n = min(single.tokens.shape[-1], found.tokens.shape[-1])
        assert torch.equal(single.tokens[0, :, :n], found.tokens[b, :, :n])
        for w in range(5):  # what it says of a sentence is what teacher forcing says
            length = int(found.lengths[b, w])
            tokens = found.tokens[b, w, :length]
            fed = torch.cat([torch.tensor([BOS]), tokens[:-1]])
            logits = model(source[[b]], lengths[[b]], fed[None])[0]
            log_p = logits.log_softmax(-1)[torch.arange(length), tokens].sum()
            exact(found.log_probs[b, w], log_p)


@EVERY_SCORE
@EVERY_DEPTH
def test_the_number_of_parameters_follows_from_the_sizes(score: str, layers: int) -> None:
    """All scores cost alike, but for the D numbers of the additive one."""
    half = D // 2
    encoder = 2 * layers * 3 * half * (D + half + 2)
    decoder = 3 * D * (2 * D + D + 2) + (layers - 1) * 3 * D * (D + D + 2)
    wanted = (V_SOURCE + V_TARGET) * D + encoder + decoder + 2 * D * D + V_TARGET * (D + 1)
    found = sum(p.numel() for p in model_of(score, layers).parameters())
    assert found == wanted + (D if score == "additive" else 0)


def test_the_score_is_scaled_dot_if_none_is_named() -> None:
    assert AttentionSeq2Seq(V_SOURCE, V_TARGET, D).decoder.score is scaled_dot_score
    assert AttentionDecoder(V_TARGET, D).score is scaled_dot_score


def test_a_score_with_any_weights_of_its_own_learns_with_the_model() -> None:
    """Luong et al. 2015, eq. 8, "general": a bilinear form."""

    class General(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w_a = nn.Linear(D, D, bias=False)

        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return q @ self.w_a(k).mT

    torch.manual_seed(0)
    model = AttentionSeq2Seq(V_SOURCE, V_TARGET, D, General())
    before = teacher_forcing(model, *sentences())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = dict(model.named_parameters())["decoder.score.w_a.weight"].detach().clone()
    before.backward()
    optimizer.step()
    assert not torch.equal(dict(model.named_parameters())["decoder.score.w_a.weight"], kept)
    assert teacher_forcing(model, *sentences()) < before


def test_a_score_of_another_width_is_refused_in_words(unchecked: None) -> None:
    model = AttentionSeq2Seq(V_SOURCE, V_TARGET, D, AdditiveScore(D - 1))
    with pytest.raises(ValueError, match=r"the widths are .*'w_v': 21}: make them equal"):
        model(*sentences())


@EVERY_DEPTH
def test_weights_survive_a_file(tmp_path: Path, layers: int) -> None:
    model, other = model_of(layers=layers), model_of(layers=layers, seed=1)
    batch, file = sentences(), tmp_path / "attention.safetensors"
    save(file, model)
    assert not torch.equal(model(*batch), other(*batch))
    load_into(other, file)
    assert torch.equal(model(*batch), other(*batch))
    with pytest.raises(ValueError, match=r"decoder\.score\.w_v is not in the model"):
        load_into(model_of("scaled", layers), file)


def test_dropout_is_between_the_layers_of_both_and_in_training_only() -> None:
    source, lengths, target = sentences()
    torch.manual_seed(0)
    model = AttentionSeq2Seq(V_SOURCE, V_TARGET, D, layers=2, dropout=0.5).eval()
    final = model.encoder(source, lengths).final
    state = model.start(source, lengths)
    for part, arguments in ((model.encoder, (source, lengths)), (model.decoder, (target, state))):
        for training in (False, True):
            part.train(training)
            once, again = part(*arguments)[0], part(*arguments)[0]
            assert torch.equal(once, again) != training
    assert torch.equal(model.train().encoder(source, lengths).final[:, 0], final[:, 0])
