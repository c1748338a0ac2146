"""What a run of every commit leaves to others is chosen fairly, and once a week nothing is."""

import itertools

import amounts
import pytest

NAMES = [f"widget_{i}" for i in range(40)]


def test_each_commit_chooses_about_a_third_and_none_is_left_out_for_long() -> None:
    chosen = [amounts.a_third(NAMES, f"{i:040x}") for i in range(300)]
    assert all(3 <= len(names) <= 25 for names in chosen)
    for name in NAMES:
        turns = [i for i, names in enumerate(chosen) if name in names]
        assert 70 < len(turns) < 130, name
        assert max(b - a for a, b in itertools.pairwise(turns)) < 30, name
    assert amounts.a_third(NAMES[:9], "bc0ffee") == ["widget_3", "widget_7"], "always the same"


def test_what_has_changed_is_chosen_and_without_a_commit_all() -> None:
    few = amounts.a_third(NAMES, "bc0ffee")
    [other, *_] = sorted(set(NAMES) - set(few))
    assert amounts.a_third(NAMES, "bc0ffee", [other]) == sorted([*few, other])
    assert amounts.a_third(NAMES, "") == sorted(NAMES)


def test_a_thorough_run_tries_all(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {
        "rev-parse": "bc0ffee",
        "diff": "tests/live/test_widget_arrows.py\nheads.js",
        "status": "",
    }
    monkeypatch.setattr(amounts, "git", lambda command, *_: outputs[command])
    monkeypatch.setattr(amounts, "changed_files", amounts.changed_files.__wrapped__)
    monkeypatch.setattr(amounts, "THOROUGH", False)
    names = [*NAMES, "arrows", "heads", "lens"]
    wanted = amounts.a_third(names, "bc0ffee", ["arrows", "heads"])
    assert amounts.third_of_this_commit(names) == wanted != sorted(names)
    monkeypatch.setattr(amounts, "THOROUGH", True)
    assert amounts.third_of_this_commit(names) == sorted(names)
