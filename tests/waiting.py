"""Waiting for what a cluster, or another process, does a moment after it was asked to, or on a busy machine minutes."""

import time
from collections.abc import Callable
from typing import Final

LIMIT_S: Final = 240.0
_PAUSE_S: Final = 0.1


def wait_until(holds: Callable[[], object], what: str, limit_s: float = LIMIT_S, pause_s: float = _PAUSE_S) -> None:
    """Return when it holds; fail with ``what`` when it has not in time."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"after {limit_s:.0f} s still waiting until {what}"
        time.sleep(pause_s)


def wait_for_topics(topics: Callable[[], list[str]], wanted: list[str]) -> None:
    """Until every broker that is asked knows these topics and no others: they hear of changes one after the other."""
    wait_until(lambda: topics() == wanted, f"there are {wanted} and no other topics")
