"""Worker processes that are forked from this one: they begin at once, and know what it has read and changed."""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

FORKED: Final = get_context("fork")


def forked_pool(workers: int) -> ProcessPoolExecutor:
    """Processes for work that does not wait; each has left what it inherited."""
    return ProcessPoolExecutor(workers, mp_context=FORKED, initializer=leave_inherited)


def leave_inherited() -> None:
    """Collect nothing of what the parent made, as a forked process; for its first moment.

    The threads of the parent are not in it. A client of librdkafka that is freed waits for its own: the process died.
    """
    gc.freeze()
