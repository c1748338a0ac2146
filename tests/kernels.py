"""Start a kernel once more if it died before it replied; a plugin of pytest for nbval's kernels.

jupyter_client looks for free ports, and the new process takes them about a second later. On a busy
machine, for example one where browsers are tested, another program may have taken one in between,
and then the kernel ends. Whatever ends it each time is still reported.
"""

import functools
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import nbval.kernel

ATTEMPTS = 3
os.environ["MY_GPT"] = "temporary"  # where chapters write the reader's own file: own_file.py

P = ParamSpec("P")
R = TypeVar("R")


def persistent(start: Callable[P, R]) -> Callable[P, R]:
    """`start`, which may fail in this way twice."""

    @functools.wraps(start)
    def attempt(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(ATTEMPTS - 1):
            try:
                return start(*args, **kwargs)
            except RuntimeError as error:
                if "Kernel died before replying" not in str(error):
                    raise
        return start(*args, **kwargs)

    return attempt


nbval.kernel.start_new_kernel = persistent(nbval.kernel.start_new_kernel)
