"""The broken GPT: what tells its 16 states apart looks at what functions compute alone."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.broken import (
    LINES,
    Diagnosis,
    Suspect,
    broken_code,
    broken_gpt,
    cache_error,
    diagnose,
    report,
)
from tinylib.lab.own_file import assemble, cut, imported

WHOLE = assemble([*cut()[1]])
STATES = list(product((False, True), repeat=len(LINES)))
SIZES: dict[str, Any] = {"V": 12, "max_len": 8, "D": 8, "H": 2, "layers": 2}


def module(code: str):
    return imported(code, Path("broken_gpt.py"))


@pytest.mark.parametrize("wrong", STATES)
def test_each_state_is_named_and_the_page_trains_the_same_model(wrong: tuple[bool, ...]) -> None:
    broken = module(broken_code(wrong))
    assert diagnose(broken).wrong == wrong
    suspect = Suspect(GPTConfig(**SIZES, dropout=0.0))
    own = broken.GPT(**SIZES)
    own.load_state_dict(suspect.gpt.state_dict())
    tokens = torch.randint(12, (3, 8))
    flags = torch.tensor(wrong).long()
    torch.testing.assert_close(suspect.read(tokens[:, :-1], flags), own(tokens[:, :-1]))
    torch.testing.assert_close(suspect(tokens, flags), broken.next_token_loss(own, tokens))


def test_without_mistakes_it_is_the_courses_gpt() -> None:
    config = GPTConfig(**SIZES, dropout=0.0)
    suspect, course = Suspect(config), GPT(config)
    course.load_state_dict(suspect.gpt.state_dict())
    tokens = torch.randint(12, (3, 8))
    loss = suspect(tokens, torch.zeros(4, dtype=torch.long))
    torch.testing.assert_close(loss, next_token_loss(course, tokens))


def test_other_code_that_computes_the_same_is_right() -> None:
    code = WHOLE.replace(
        "torch.ones(T, T, dtype=torch.bool).tril()",
        "~torch.ones(T, T, dtype=torch.bool).triu(1)",
    ).replace(
        "return cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])",
        "logits = model(tokens[:, :-1])\n"
        "    return nn.functional.cross_entropy(logits.mT, tokens[:, 1:])",
    )
    assert "triu(1)" in code and "logits.mT" in code
    broken = module(code)
    assert str(diagnose(broken)).startswith("Of the four lines: positions right, mask right")


def test_a_mistake_of_the_readers_own_is_none_of_the_states() -> None:
    broken = module(WHOLE)
    right = broken.next_token_loss
    broken.next_token_loss = lambda model, tokens: 2 * right(model, tokens)
    assert diagnose(broken).wrong == (False, False, None, None)
    assert str(diagnose(broken)).startswith("Something else is wrong with the targets and the loss")
    assert str(Diagnosis((True, False, True, False))).endswith(
        "positions wrong, mask right, targets wrong, loss right."
    )
    with pytest.raises(ValueError, match="no GPT"):
        diagnose(object())


def test_a_file_is_written_once_and_mended_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken_gpt.py"
    first = report(broken_gpt(path))
    assert "is written" in capsys.readouterr().out
    assert "mask wrong, targets wrong, loss wrong" in first and "there is none yet" in first
    assert path.read_text(encoding="utf-8") == broken_code()
    code = broken_code((False,) * len(LINES))
    path.write_text(code + cut()[1]["14"], encoding="utf-8")
    assert report(broken_gpt(path)).startswith(
        "Of the four lines: positions right, mask right, targets right"
    )
    assert report(broken_gpt(path)).endswith("those without it, to 1e-5.")
    assert capsys.readouterr().out == ""


def test_a_cache_with_a_mistake_is_found() -> None:
    for right, wrong in (
        ("torch.cat([self.k, k], -2)", "torch.cat([self.k, k], -2).roll(1, -2)"),
        ("k.shape[-2]\n        return", "0\n        return"),
    ):
        assert WHOLE.count(right) == 1
        broken = module(WHOLE.replace(right, wrong))
        assert cache_error(broken) > 1e-3
        assert "differ by up to" in report(broken)
