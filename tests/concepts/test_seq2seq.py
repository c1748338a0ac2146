"""Sequence to sequence: the gates, the packing, the context, and a loss that pads do not touch."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import exact
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tinylib.seq2seq import Seq2Seq, gru_step, masked_loss, teacher_forcing

B, S, T, D, V_SOURCE, V_TARGET, PAD, BOS = 3, 7, 5, 17, 11, 13, 0, 1


def model_of(seed: int = 0, layers: int = 2, dtype: torch.dtype = torch.float64) -> Seq2Seq:
    torch.manual_seed(seed)
    return Seq2Seq(V_SOURCE, V_TARGET, D, layers).to(dtype)


def sentences(seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    source = torch.randint(4, V_SOURCE, (B, S), generator=g)
    target = torch.randint(4, V_TARGET, (B, T), generator=g)
    target[:, 0] = BOS
    target[1, 3:] = PAD
    return source, torch.tensor([4, S, 1]), target


def test_a_gru_step_by_hand() -> None:
    """One number wide: r = σ(.5), z = σ(-1), n = tanh(1 + r · 2)."""
    x, h = torch.tensor([1.0]), torch.tensor([1.0])
    w_x, w_h = torch.tensor([[0.5], [-1.0], [1.0]]), torch.tensor([[0.0], [0.0], [2.0]])
    r, z = 1 / (1 + 2.718281828459045**-0.5), 1 / (1 + 2.718281828459045)
    n = torch.tanh(torch.tensor(1 + r * 2))
    zero = torch.zeros(3)
    torch.testing.assert_close(
        gru_step(x, h, w_x, w_h, zero, zero), ((1 - z) * n + z * 1).reshape(1)
    )


def test_a_gru_step_is_torchs() -> None:
    torch.manual_seed(0)
    cell = nn.GRUCell(5, 7).double()
    x, h = torch.randn(3, 5, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    step = gru_step(x, h, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    exact(step, cell(x, h))


def test_the_encoder_is_a_loop_of_steps() -> None:
    encoder = model_of(layers=1).encoder
    source, lengths, _ = sentences()
    weights = list(encoder.gru.parameters())
    seen = encoder(source, lengths)
    for b in range(B):
        h = torch.zeros(D, dtype=torch.float64)
        for s in range(int(lengths[b])):
            h = gru_step(encoder.embedding.weight[source[b, s]], h, *weights)
            exact(seen.states[b, s], h)
        exact(seen.final[b, 0], h)
        assert (seen.states[b, int(lengths[b]) :] == 0).all()


def test_the_decoder_is_a_loop_of_steps() -> None:
    """It starts from the encoder's last states; the top one stands beside every word it reads."""
    model, (source, lengths, target) = model_of(), sentences()
    decoder, encoding = model.decoder, model.encoder(source, lengths)
    weights = list(decoder.gru.parameters())
    h, logits = list(encoding.final.unbind(1)), []
    for t in range(T):
        x = torch.cat([decoder.embedding.weight[target[:, t]], encoding.final[:, 1]], dim=-1)
        for layer in (0, 1):  # four tensors each
            x = h[layer] = gru_step(x, h[layer], *weights[4 * layer : 4 * layer + 4])
        logits.append(decoder.output(x))
    together = model(source, lengths, target)
    exact(together, torch.stack(logits, dim=1))


@given(
    st.integers(0, 4),
    st.integers(0, 100),
    st.sampled_from([(torch.float64, 1e-9), (torch.float32, 1e-5)]),
)
def test_pads_change_nothing(more: int, seed: int, precision: tuple[torch.dtype, float]) -> None:
    dtype, close = precision
    model, (source, lengths, target) = model_of(seed, dtype=dtype), sentences(seed)
    junk = torch.randint(V_SOURCE, (B, more), generator=torch.Generator().manual_seed(seed))
    padded = model(torch.cat([source, junk], dim=1), lengths, target)
    exact(padded, model(source, lengths, target), close)
    states = model.encoder(torch.cat([source, junk], dim=1), lengths).states
    assert states.shape == (B, S + more, D) and (states[:, S:] == 0).all()
    # and a sentence alone is read as in its batch
    single = model(source[:1, : lengths[0]], lengths[:1], target[:1])
    exact(padded[:1], single, close)
    # pads in the target change neither loss
    pads = torch.full((B, more), PAD)
    wide = torch.cat([target, pads], dim=1)
    for loss in (teacher_forcing, loss_in_full):
        a, b = loss(model, source, lengths, target), loss(model, source, lengths, wide)
        exact(a, b, close)


def loss_in_full(model: Seq2Seq, source: Tensor, lengths: Tensor, target: Tensor) -> torch.Tensor:
    return masked_loss(model(source, lengths, target[:, :-1]), target[:, 1:])


def test_the_fast_loss_is_the_plain_one_with_its_gradient() -> None:
    model, batch = model_of(), sentences()
    exact(teacher_forcing(model, *batch), loss_in_full(model, *batch))
    grads = []
    for loss in (teacher_forcing, loss_in_full):
        grads.append(torch.autograd.grad(loss(model, *batch), list(model.parameters())))
    for fast, plain in zip(*grads, strict=True):
        exact(fast, plain)


def test_the_masked_loss_by_hand() -> None:
    logits = torch.tensor([[[0.5, 0.25, 0.25], [0.9, 0.05, 0.05]]]).log()
    target = torch.tensor([[1, PAD]])
    assert masked_loss(logits, target).item() == pytest.approx(1.3862944)  # -ln .25, not a mean
    assert masked_loss(logits, target, pad=9).item() == pytest.approx(
        (1.3862944 + 0.1053605) / 2  # nothing is a pad: the mean of -ln .25 and -ln .9
    )


@pytest.mark.parametrize("shape", [(B, T - 1), (B - 1, T), (T,), (B, T, 1)])
def test_the_masked_loss_wants_a_target_for_each_row(
    shape: tuple[int, ...], unchecked: None
) -> None:
    logits, target = torch.randn(B, T, V_TARGET), torch.ones(shape, dtype=torch.long)
    with pytest.raises(ValueError, match=r"tokens of shape \(3, 5\), but targets of shape"):
        masked_loss(logits, target)


def test_the_masked_loss_of_bf16_logits_is_summed_in_float32() -> None:
    logits = torch.zeros(1, 2, 50257, dtype=torch.bfloat16)
    loss = masked_loss(logits, torch.tensor([[7, PAD]]))
    assert loss.item() == pytest.approx(math.log(50257), abs=1e-5)


def test_the_masked_loss_is_torchs() -> None:
    torch.manual_seed(0)
    logits, (_, _, target) = torch.randn(B, T, V_TARGET, dtype=torch.float64), sentences()
    theirs = cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
    exact(masked_loss(logits, target), theirs)


def test_the_fast_loss_smooths_labels_as_torch_does() -> None:
    model, (source, lengths, target) = model_of(), sentences()
    logits, wanted = model(source, lengths, target[:, :-1]), target[:, 1:]
    theirs = cross_entropy(
        logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD, label_smoothing=0.3
    )
    ours = teacher_forcing(model, source, lengths, target, label_smoothing=0.3)
    exact(ours, theirs)


@pytest.mark.parametrize("pad", [PAD, 7])
def test_any_id_may_be_the_pad(pad: int) -> None:
    model, (source, lengths, target) = model_of(), sentences()
    target = target.where(target != 7, 8).where(target != PAD, pad)
    wanted = masked_loss(model(source, lengths, target[:, :-1]), target[:, 1:], pad)
    ours = teacher_forcing(model, source, lengths, target, pad)
    exact(ours, wanted)


def test_dropout_is_between_the_layers_of_both_and_in_training_only() -> None:
    source, lengths, target = sentences()
    model = Seq2Seq(V_SOURCE, V_TARGET, 31, layers=2, dropout=0.5)
    encoding = model.eval().encoder(source, lengths)
    state = model.start(source, lengths)
    for part, arguments in ((model.encoder, (source, lengths)), (model.decoder, (target, state))):
        for training in (False, True):
            part.train(training)
            once, again = part(*arguments)[0], part(*arguments)[0]
            assert torch.equal(once, again) != training
    model.train()
    assert torch.equal(model.encoder(source, lengths).final[:, 0], encoding.final[:, 0])


def test_step_by_step_is_all_at_once() -> None:
    model, (source, lengths, target) = model_of(), sentences()
    state, logits = model.start(source, lengths), []
    for t in range(T):
        after, state = model.step(state, target[:, t])
        logits.append(after)
    together = model(source, lengths, target)
    exact(torch.stack(logits, dim=1), together)


def test_the_number_of_parameters_follows_from_the_sizes() -> None:
    """Each GRU layer: 3 gates of (input + D) × D weights and two biases of D."""
    model = model_of(layers=1)
    gru = 3 * (D * D + D * D + 2 * D) + 3 * (2 * D * D + D * D + 2 * D)
    wanted = (V_SOURCE + V_TARGET) * D + gru + V_TARGET * (D + 1)
    assert sum(p.numel() for p in model.parameters()) == wanted
