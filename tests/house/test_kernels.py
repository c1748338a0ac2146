"""A kernel that dies before it replies is started again; what fails each time is reported."""

from unittest.mock import Mock

import nbval.kernel
import pytest
from kernels import ATTEMPTS, persistent

DIED = RuntimeError("Kernel died before replying to kernel_info")


def test_a_kernel_that_died_at_once_is_started_again() -> None:
    start = Mock(side_effect=[DIED, DIED, "it runs"], __name__="start")
    assert persistent(start)("python", cwd=".") == "it runs"
    assert start.mock_calls == [(("python",), {"cwd": "."})] * 3


def test_one_that_always_dies_is_reported() -> None:
    start = Mock(side_effect=DIED, __name__="start")
    with pytest.raises(RuntimeError, match="died before replying"):
        persistent(start)()
    assert start.call_count == ATTEMPTS


def test_another_error_is_reported_at_once() -> None:
    start = Mock(side_effect=RuntimeError("cell 3 failed"), __name__="start")
    with pytest.raises(RuntimeError, match="cell 3 failed"):
        persistent(start)()
    assert start.call_count == 1


def test_the_kernels_of_chapters_are_started_so() -> None:
    assert hasattr(nbval.kernel.start_new_kernel, "__wrapped__")
