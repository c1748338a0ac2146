"""Looking inside: hook points cost nothing and let go, sources come out as they stand."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tinylib import inside_gpt
from tinylib.decoding import beam, greedy
from tinylib.generation import beam_search, generate
from tinylib.gpt import GPT, GPTConfig
from tinylib.hooks import HookPoint, capture, patch
from tinylib.lab.data import lookup, repeated_tokens, senses, stories
from tinylib.lab.data.batches import Pair as SentencePair
from tinylib.lab.data.batches import pad
from tinylib.lab.data.text import BOS, EOS, Characters, Vocabulary
from tinylib.lab.models import ablation, occlusion, snapshots, teacher_forcing, translation
from tinylib.lab.models.encoder_heads import encoder_weights
from tinylib.lab.models.language import LanguageModel, text_loss
from tinylib.lab.models.likeliest import likeliest, searches
from tinylib.lab.recipes import fra_eng, shakespeare
from tinylib.seq2seq import Seq2Seq
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        return self.weights(x.softmax(-1)) @ x


class Outer(nn.Module):
    def __init__(self, points: bool = True) -> None:
        super().__init__()
        self.inner = Inner()
        self.result = HookPoint() if points else nn.Identity()
        self.unused = HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        return self.result(self.inner(x) * 2)


def hook_count(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


def test_a_tap_returns_the_very_tensor():
    x = torch.randn(3, 5)
    assert HookPoint()(x) is x


def test_a_tap_knows_whether_it_is_watched():
    model = Outer()
    assert not model.result.watched
    with capture(model):
        assert model.result.watched and model.inner.weights.watched
    assert not model.result.watched


def test_a_tap_leaves_no_node_in_an_exported_graph():
    x = torch.randn(7, 7)

    def plain(x: Tensor) -> Tensor:
        return (x.softmax(-1) @ x) * 2

    class Plain(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return plain(x)

    def operations(model: nn.Module) -> list[str]:
        graph = torch.export.export(model, (x,)).graph
        return [str(node.target) for node in graph.nodes if node.op == "call_function"]

    assert operations(Outer()) == operations(Plain())


def test_capture_names_hook_points_by_path_and_keeps_every_call():
    model, x, y = Outer(), torch.randn(5, 5), torch.randn(5, 5)
    with capture(model) as seen:
        model(x)
        model(y)
    assert list(seen) == ["inner.weights", "result", "unused"]
    torch.testing.assert_close(seen["inner.weights"], [x.softmax(-1), y.softmax(-1)])
    assert seen["unused"] == []


def test_recorded_tensors_are_detached_copies():
    model, x = Outer(), torch.randn(3, 3, requires_grad=True)
    with capture(model) as seen:
        out = model(x)
    kept = seen["result"][0]
    assert not kept.requires_grad and out.requires_grad
    out.detach().zero_()
    assert kept.abs().sum() > 0


def test_hooks_are_gone_afterwards_and_after_an_exception():
    model = Outer()
    with capture(model):
        assert hook_count(model) == 3
    assert hook_count(model) == 0
    with pytest.raises(RuntimeError), capture(model):
        model(torch.randn(2, 3))  # (2, 3) @ (2, 3) cannot work
    assert hook_count(model) == 0


def test_a_model_without_hook_points_says_what_to_do():
    with (
        pytest.raises(ValueError, match=r"Linear has no HookPoint.*forward"),
        capture(nn.Linear(2, 3)),
    ):
        pass


class Pair(nn.Module):
    """Returns two tensors, as a block with a cache does."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.last = Pair()

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        y, _ = self.last(x)
        return y


def test_any_module_is_captured_by_its_name_what_it_is_given_too() -> None:
    model, x = Stack(), torch.randn(2, 3)
    with capture(model, "blocks.*", "blocks.1:input", "last") as seen:
        y = model(x)
    assert [*seen] == ["blocks.0", "blocks.1", "blocks.1:input", "last"]
    first = model.blocks[0](x)
    assert torch.equal(seen["blocks.0"][0], first)
    assert torch.equal(seen["blocks.1:input"][0], first)
    assert torch.equal(seen["last"][0], y)  # of two tensors the first


def test_a_star_is_one_part_of_a_path() -> None:
    model = nn.Sequential(Stack(), nn.Identity())
    with capture(model, "*") as seen:
        model(torch.zeros(1, 3))
    assert [*seen] == ["0", "1"]


def test_patched_places_go_on_with_another_tensor_inside_the_block_alone() -> None:
    model, x = Stack(), torch.randn(2, 3)
    before = model(x)
    with patch(model, {"blocks.0": torch.zeros_like, "last": lambda y: 2 * y}):
        patched = model(x)
    assert torch.allclose(patched, 2 * (model.blocks[1](torch.zeros(2, 3)) + 1))
    with patch(model, {"blocks.1:input": lambda x: 3 * x}):
        patched = model(x)
    assert torch.allclose(patched, model.blocks[1](3 * model.blocks[0](x)) + 1)
    assert torch.equal(model(x), before)
    with pytest.raises(ZeroDivisionError), patch(model, {"last": lambda y: y / (1 // 0)}):
        model(x)
    assert torch.equal(model(x), before)


def test_what_is_captured_under_a_patch_is_what_is_gone_on_with() -> None:
    model = Stack()
    with patch(model, {"blocks.0": torch.zeros_like}), capture(model, "blocks.1:input") as seen:
        model(torch.randn(2, 3))
    assert torch.equal(seen["blocks.1:input"][0], torch.zeros(2, 3))


def test_an_unknown_place_and_another_shape_are_refused() -> None:
    model = Stack()
    with pytest.raises(ValueError, match=r"no module 'block\.0'; there is, for example, blocks"):
        capture(model, "block.0").__enter__()
    with pytest.raises(ValueError, match=r"no module 'blocks\.7'"):
        patch(model, {"blocks.7": torch.zeros_like}).__enter__()
    with (
        pytest.raises(ValueError, match=r"is \[2, 3\], and its patch returned \[3\]"),
        patch(model, {"blocks.0": lambda x: x[0]}),
    ):
        model(torch.zeros(2, 3))


# --- what looks at a model computes without dropout, and leaves it as it was -------------------


def observers() -> dict[str, tuple[nn.Module, Callable[[], object]]]:
    """Every function that looks at a model: a model that drops out, and a call."""
    torch.manual_seed(0)
    words = Vocabulary("a b c d .".split())
    alignment, classes = ((0,), (1,), (2,)), ("noun", "noun", "verb")
    pairs = [SentencePair(("a", "b", "."), ("c", "d", "."), alignment, classes)]
    gpt = GPT(GPTConfig(9, max_len=30, D=8, H=2, layers=2, dropout=0.5))
    config = TransformerConfig(D=8, H=2, F=8, layers=2, dropout=0.5)
    ours = translation.Translator(Transformer(9, 9, config), words, words)
    grus = translation.Translator(translation.attention_model(9, 9, 8, "dot"), words, words)
    plain = translation.Translator(Seq2Seq(9, 9, 8), words, words)
    ends = copy.deepcopy(ours)  # ends its sentences soon, so that an exact search is quick
    with torch.no_grad():
        ends.model.decoder.output.bias[EOS] = 5.0
    asked, meant = lookup.heads_model(2, 8), senses.SenseModel()
    for other in (asked, meant, grus.model, plain.model):  # these have no dropout of their own
        for part in other.modules():
            if isinstance(part, nn.Embedding):
                part.register_forward_hook(
                    lambda m, _, x: nn.functional.dropout(x, 0.5, m.training)
                )

    letters, text = Characters("abcdefghi"), torch.tensor([[4, 5, 6, 7]])
    writer = LanguageModel(gpt, letters)
    site, stream = inside_gpt.stream_site(1, 0), inside_gpt.read_stream(gpt.eval(), text)
    repeated = repeated_tokens.RepeatedTokens(
        text.repeat(1, 2), torch.tensor([[False] * 4 + [True] * 4])
    )
    state, step = ours.model.eval().start(*pad([[4, 5, 6]])), ours.model.step
    drawn = [stories.Story(("a", "b"), (), (), (stories.Question("is", 1, ("b",), ()),))]
    calls: dict[nn.Module, dict[str, Callable[[], object]]] = {
        gpt: {
            "predict": lambda: writer.predict("abc"),
            "write": lambda: writer.write("abc", 9),
            "generate": lambda: generate(gpt, text, 9),
            "beam_search": lambda: beam_search(gpt, text[0], 9, 3),
            "read_stream": lambda: inside_gpt.read_stream(model=gpt, tokens=text),
            "logit_lens": lambda: inside_gpt.logit_lens(gpt, stream),
            "contributions": lambda: inside_gpt.contributions(gpt, stream),
            "patch_from": lambda: inside_gpt.patch_from(gpt, text, text.flip(1), site),
            "ablate": lambda: inside_gpt.ablate(gpt, text, site),
            "weights_of": lambda: ablation.weights_of(gpt, text),
            "mean_outputs": lambda: ablation.mean_outputs(gpt, text),
            "loss_of": lambda: ablation.loss_of(gpt, repeated),
            "text_loss": lambda: text_loss(gpt, range(9), 4),
            "pieces_loss": lambda: shakespeare.pieces_loss(gpt, text),
            "log_probability": lambda: snapshots.log_probability(gpt, letters, "a", "bc"),
            "stories.evaluate": lambda: stories.evaluate(gpt, drawn, words),
            "stories.answered": lambda: stories.answered(gpt, drawn, words),
        },
        ours.model: {
            "translate": lambda: ours([["a", "b"]]),
            "translate by a beam": lambda: ours([["a", "b"]], width=3),
            "evaluate": lambda: translation.evaluate(*ours, pairs),
            "all_maps": lambda: translation.all_maps(*ours, pairs),
            "encoder_weights": lambda: encoder_weights(ours, ["a", "b"]),
            "forced": lambda: teacher_forcing.forced(*ours, pairs),
            "certainty": lambda: fra_eng.certainty(ours, pairs),
            "greedy": lambda: greedy(step, state, BOS, EOS, 5),
            "beam": lambda: beam(step, state, BOS, EOS, 5, 2),
            "likeliest": lambda: likeliest(step, state, BOS, EOS, 2),
        },
        ends.model: {"searches": lambda: searches(ends, pairs, [])},
        grus.model: {
            "hide": lambda: occlusion.hide(grus, pairs[0], 1, [0]),
            "survivors": lambda: occlusion.survivors(grus, pairs),
        },
        plain.model: {
            "step_by_step": lambda: translation.step_by_step(plain, ["a", "b"], 3),
            "gates": lambda: teacher_forcing.gates(plain.model, text[0], text[0]),
        },
        asked: {"lookup.examine": lambda: lookup.examine(asked, lookup.lookups(2, 0))},
        meant: {"senses.examine": lambda: senses.examine(meant, senses.senses(9, 0))},
    }
    return {name: (model, call) for model, by in calls.items() for name, call in by.items()}


def test_what_looks_at_a_model_leaves_it_as_it_was() -> None:
    """The same call gives the same answer, though dropout is on; also after an error."""

    def fails(module: nn.Module, given: object) -> None:
        raise OSError("on purpose")

    for name, (model, call) in observers().items():
        for i, module in enumerate(model.modules()):
            module.training = i % 3 != 2  # a model of which only some parts are trained
        wanted = [module.training for module in model.modules()]
        assert repr(call()) == repr(call()), name
        assert [module.training for module in model.modules()] == wanted, name
        leaves = [module for module in model.modules() if not [*module.children()]]
        hooks = [module.register_forward_pre_hook(fails) for module in leaves]
        with pytest.raises(OSError, match="on purpose"):
            call()
        for hook in hooks:
            hook.remove()
        assert [module.training for module in model.modules()] == wanted, name
        assert torch.is_grad_enabled(), name
