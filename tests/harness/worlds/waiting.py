"""Waiting for what a real cluster does a moment after it was asked to, and never for long."""

import time
from collections.abc import Callable
from typing import Final

LIMIT_S: Final = 60.0
_PAUSE_S: Final = 0.1


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Return when it holds; fail with ``what`` when it has not in time."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"after {LIMIT_S:.0f} s still waiting until {what}"
        time.sleep(_PAUSE_S)


def wait_for_topics(topics: Callable[[], list[str]], wanted: list[str]) -> None:
    """Until every broker that is asked knows these topics and no others: they hear of changes one after the other."""
    wait_until(lambda: topics() == wanted, f"there are {wanted} and no other topics")
