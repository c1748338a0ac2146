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


@pytest.mark.parametrize(
    ("error", "starts"), [(DIED, ATTEMPTS), (RuntimeError("cell 3 failed"), 1)]
)
def test_one_that_always_dies_is_reported_and_another_error_at_once(
    error: RuntimeError, starts: int
) -> None:
    start = Mock(side_effect=error, __name__="start")
    with pytest.raises(RuntimeError, match=str(error)):
        persistent(start)()
    assert start.call_count == starts


def test_the_kernels_of_chapters_are_started_so() -> None:
    assert hasattr(nbval.kernel.start_new_kernel, "__wrapped__")
