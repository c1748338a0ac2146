"""Sources and errors as a chapter shows them."""

import subprocess
import sys

import pytest
import torch

from tinylib.gpt import next_token_loss
from tinylib.hooks import HookPoint, capture
from tinylib.lab import look
from tinylib.lab.listing import listing
from tinylib.lab.look import raises, show, source
from tinylib.positional_encoding import angles
from tinylib.self_attention import SelfAttention, self_attention
from tinylib.seq2seq import masked_loss


def test_source_names_the_file_and_nothing_of_this_machine():
    bundle = source(HookPoint)._repr_mimebundle_()
    plain = bundle["text/plain"]
    assert plain.startswith("# tinylib/hooks.py\nclass HookPoint(nn.Module):\n")
    assert plain.endswith("return len(self._forward_hooks) > 0")
    assert bundle["text/markdown"] == f"```python\n{plain}\n```"
    assert repr(source(HookPoint)) == plain
    assert source(look).text.startswith('# tinylib/lab/look.py\n"""In a chapter')


def test_source_of_several_objects_and_of_a_method():
    text = source(capture, HookPoint.forward).text
    assert text.count("# tinylib/hooks.py\n") == 2
    assert "\ndef forward(self" in text  # a method is shown without its indentation


def test_a_package_is_named_by_its_init_file():
    import tinylib.lab

    assert source(tinylib.lab).text.startswith("# tinylib/lab/__init__.py\n")


def test_a_fence_in_the_source_does_not_end_the_block():
    markdown = look.Source('"""\n```\n"""')._repr_mimebundle_()["text/markdown"]
    assert markdown.startswith("````python\n") and markdown.endswith("\n````")


@pytest.mark.parametrize("obj", [len, 3, torch.tanh])
def test_objects_without_source_are_refused(obj: object):
    with pytest.raises(TypeError, match="no Python source"):
        source(obj)


def test_a_brief_source_is_what_computes() -> None:
    text = listing(self_attention, SelfAttention).text
    assert "return attend(x @ w_q, x @ w_k, x @ w_v, mask, score)" in text
    assert "def forward(" in text and '"""' not in text and "check_" not in text
    assert text.count("# tinylib/self_attention.py") == 2
    compile(text, "brief", "exec")


def test_a_check_that_names_a_value_stays_in_a_brief_source() -> None:
    text = listing(masked_loss, next_token_loss, typed=False).text
    assert "(words := target != pad)" in text and "(T := tokens.shape[-1])" in text


def test_a_brief_source_without_types_begins_with_one_line() -> None:
    text = listing(angles, SelfAttention, typed=False).text
    assert "def angles(T, D, offset=0, base=10000.0, device=None):\n    there = " in text
    assert "    def forward(self, x, mask=None):\n" in text
    assert "raise" not in text and "Float[" not in text and text.count("theta = i[:, None]") == 1
    compile(text, "brief", "exec")


def test_nothing_to_show_and_code_of_the_notebook_are_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match="nothing to show"):
        source()
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec("def typed_in(): pass", namespace)
    with pytest.raises(ValueError, match="library"):
        source(namespace["typed_in"])


def test_two_shows_in_one_cell_display_both(monkeypatch: pytest.MonkeyPatch):
    displayed: list[look.Source] = []
    monkeypatch.setattr("IPython.display.display", displayed.append)
    show(HookPoint)
    show(capture, HookPoint)
    assert displayed == [source(HookPoint), source(capture, HookPoint)]


def test_show_in_a_plain_python_prints_the_source(capsys: pytest.CaptureFixture[str]):
    show(HookPoint)
    assert capsys.readouterr().out == source(HookPoint).text + "\n"


def test_importing_look_does_not_import_ipython():
    code = "import sys, tinylib.lab.look; assert 'IPython' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_error_is_printed_as_python_prints_it_and_the_code_goes_on(
    capsys: pytest.CaptureFixture[str],
):
    def fail(error: Exception) -> None:
        raise error

    with raises(AssertionError):
        fail(AssertionError("the rows do not sum to 1"))
    with raises(LookupError):  # a KeyError is one
        fail(KeyError("step"))
    with raises(ValueError):
        fail(ValueError())
    wanted = "AssertionError: the rows do not sum to 1\nKeyError: 'step'\nValueError\n"
    assert capsys.readouterr().out == wanted
    with raises(ValueError):
        fail(ValueError("a message that is wider than a page " * 4 + "is broken\nwhere it may"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(len(line) <= 80 for line in lines)
    assert lines[-1] == "where it may" and "ValueError: a message" in lines[0]


def test_what_should_fail_and_does_not_and_what_fails_otherwise_is_an_error(
    capsys: pytest.CaptureFixture[str],
):
    nothing = "should raise {}, but it raised nothing"
    with pytest.raises(AssertionError, match=nothing.format("ValueError")), raises(ValueError):
        pass
    with (
        pytest.raises(AssertionError, match=nothing.format("AssertionError")),
        raises(AssertionError),
    ):
        pass
    with pytest.raises(ZeroDivisionError), raises(ValueError):
        print(1 / 0)
    assert capsys.readouterr().out == ""
