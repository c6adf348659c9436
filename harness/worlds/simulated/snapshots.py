"""Snapshots of a simulated cluster: a state that can be left and returned to, as often as a search wants.

A snapshot is a copy of everything that is reachable from one object, taken between two steps: of a world its loop,
network, processes, disks, clients and choices, and whatever callbacks of the surroundings wait in the loop. It is made
by pickling, because that refuses what cannot be a copy (a closure shares what it closes over, an open file is one)
where a deep copy would quietly share it.
"""

from __future__ import annotations

import pickle
from typing import Generic, TypeVar

from harness.errors import HarnessError

Root = TypeVar("Root")


class Snapshot(Generic[Root]):
    """``root`` and everything that it reaches, as it is now. Later steps of the original change nothing in it.

    Raises:
        HarnessError: something in reach cannot be copied; the text names it.
    """

    def __init__(self, root: Root) -> None:
        try:
            self._state = pickle.dumps(root, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise HarnessError(
                f"this cluster cannot be copied: {error}; let what waits in its loop be a method or a partial"
            ) from error

    def restore(self) -> Root:
        """A new copy of what was there, which runs on by itself."""
        root: Root = pickle.loads(self._state)  # noqa: S301 - made above, never read from anywhere
        return root
