"""Encoder–decoder: embedding, the recurrent step, and a state that pads do not touch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import exact
from torch.nn.functional import one_hot

from tinylib.encoder_decoder import (
    Decoder,
    Encoder,
    EncoderDecoder,
    RecurrentDecoder,
    RecurrentEncoder,
    embed,
    recurrent_step,
)
from tinylib.hooks import capture

B, S, T, D, V_SOURCE, V_TARGET = 2, 5, 3, 7, 11, 13


def small(seed: int = 0) -> EncoderDecoder:
    torch.manual_seed(seed)
    return EncoderDecoder(RecurrentEncoder(V_SOURCE, D), RecurrentDecoder(V_TARGET, D)).double()


def sentences(seed: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    source = torch.randint(V_SOURCE, (B, S), generator=g)
    return source, torch.tensor([3, S]), torch.randint(V_TARGET, (B, T), generator=g)


def test_embedding_is_a_product_with_one_hot_vectors() -> None:
    w_e = torch.randn(V_SOURCE, D)
    tokens, _, _ = sentences()
    assert torch.equal(embed(tokens, w_e), one_hot(tokens, V_SOURCE).float() @ w_e)
    assert embed(tokens[:, :0], w_e).shape == (B, 0, D)


@pytest.mark.parametrize("token", [-1, V_SOURCE])
def test_a_token_without_a_row_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match=rf"token {token} is not among 0 … 10 \(V = 11\)"):
        embed(torch.tensor([token]), torch.zeros(V_SOURCE, D))


def test_a_recurrent_step_by_hand() -> None:
    x, h = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0])
    w_x, w_h = torch.tensor([[1.0, 0.0], [0.5, 1.0]]), torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    # x W_x = (1 + 1, 2); h W_h = (-2, 0.5); + b
    wanted = torch.tanh(torch.tensor([2.0 - 2.0 + 0.25, 2.0 + 0.5 - 0.5]))
    b = torch.tensor([0.25, -0.5])
    torch.testing.assert_close(recurrent_step(x, h, w_x, w_h, b), wanted)


def torchs_rnn(part: RecurrentEncoder | RecurrentDecoder) -> torch.nn.RNN:
    """An ``nn.RNN`` with the weights of our own."""
    rnn = torch.nn.RNN(D, D, batch_first=True).double()
    with torch.no_grad():
        w_x, w_h, b_x, b_h = rnn.parameters()
        w_x.copy_(part.w_x.weight)
        w_h.copy_(part.w_h.weight)
        b_x.zero_()
        b_h.copy_(part.w_h.bias)
    return rnn


def test_the_encoder_is_torchs_rnn() -> None:
    encoder = RecurrentEncoder(V_SOURCE, D).double()
    source, _, _ = sentences()
    states, last = torchs_rnn(encoder)(encoder.embedding(source))
    with capture(encoder) as seen:
        torch.testing.assert_close(encoder(source, torch.tensor([S, S])), last[0])
    torch.testing.assert_close(seen["states"][0], states)


def test_the_decoder_is_torchs_rnn_from_the_encoding_on() -> None:
    decoder = RecurrentDecoder(V_TARGET, D).double()
    encoding, (_, _, target) = torch.randn(B, D, dtype=torch.float64), sentences()
    states, last = torchs_rnn(decoder)(decoder.embedding(target), encoding[None])
    logits, state = decoder(target, decoder.init_state(encoding))
    torch.testing.assert_close(logits, decoder.output(states))
    torch.testing.assert_close(state, last[0])


@given(st.integers(0, 4), st.integers(0, 100))
def test_pads_change_nothing(more: int, seed: int) -> None:
    model = small(seed)
    source, lengths, target = sentences(seed)
    pads = torch.randint(V_SOURCE, (B, more))
    padded = model(torch.cat([source, pads], dim=1), lengths, target)
    exact(padded, model(source, lengths, target))


def test_a_sentence_is_read_alone_as_in_a_batch() -> None:
    model, (source, lengths, target) = small(), sentences()
    single = model(source[:1, :3], lengths[:1], target[:1])
    torch.testing.assert_close(model(source, lengths, target)[:1], single)


def test_step_by_step_is_all_at_once() -> None:
    model, (source, lengths, target) = small(), sentences()
    state, logits = model.start(source, lengths), []
    for t in range(T):
        after, state = model.step(state, target[:, t])
        logits.append(after)
    together = model(source, lengths, target)
    exact(torch.stack(logits, dim=1), together)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Encoder()(*sentences()[:2]), r"Encoder needs forward\(tokens, lengths\)"),
        (lambda: Decoder().init_state(None), r"Decoder needs init_state\(encoding\)"),
        (lambda: Decoder()(sentences()[2], None), r"Decoder needs forward\(tokens, state\)"),
    ],
)
def test_the_abstract_classes_say_what_is_missing(call, message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        call()


@pytest.mark.parametrize("lengths", [[0, 5], [5, 6], [-1, 2], [3]])
def test_lengths_that_cannot_be_are_refused(unchecked: None, lengths: list[int]) -> None:
    model, (source, _, _) = small(), sentences()
    with pytest.raises(ValueError, match=r"2 sentences in 5 columns need 2 lengths in 1 … 5"):
        model.start(source, torch.tensor(lengths))


def test_an_encoding_of_nothing_is_refused() -> None:
    source, _, _ = sentences()
    with pytest.raises(ValueError, match="need 2 lengths"):
        small().start(source[:, :0], torch.tensor([0, 0]))
    with pytest.raises(ValueError, match="at least one sentence"):
        small().start(source[:0], torch.tensor([], dtype=torch.long))
