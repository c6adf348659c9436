"""The base of watches over this machine: each tries something small now and then, and tells when that takes long.

Nodes of a run that are served so slowly had no chance, whatever their log could do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import closing
from threading import Event, Thread
from time import monotonic
from typing import ClassVar


class Watch(ABC):
    """Tries it on a thread of its own, until it is closed.

    Attributes:
        slow_s: a try that takes longer is slow.
        pause_s: between two tries: a machine that hardly serves has little more to do.
        hindrance: what a slow try shows, after "the machine was too slow: ".
    """

    slow_s: ClassVar[float]
    pause_s: ClassVar[float]
    hindrance: ClassVar[str]

    def __init__(self) -> None:
        self._closed = Event()
        self._began_s: float | None = None
        self._took_s = 0.0
        Thread(target=self._watch, name=type(self).__name__, daemon=True).start()

    @property
    def serves(self) -> bool:
        """True if the last try ended in time, and the one under way, if any, is not late yet."""
        began_s = self._began_s
        return self._took_s <= self.slow_s and (began_s is None or monotonic() - began_s <= self.slow_s)

    def close(self) -> None:
        """Try no more, and wait for no try that is under way."""
        self._closed.set()

    @abstractmethod
    def _tries(self) -> Generator[bool]:
        """Try once before each answer: false where it took its time for a reason that is not the machine's.

        Raises:
            OSError: it cannot be tried; the watch ends, and nothing is known.
        """

    def _watch(self) -> None:
        try:
            with closing(self._tries()) as tries:
                while not self._closed.wait(self.pause_s):
                    self._began_s = began_s = monotonic()
                    counts = next(tries)
                    self._took_s = monotonic() - began_s if counts else 0.0
                    self._began_s = None
        except OSError:
            pass  # such as a full disk: no question of time
        finally:  # whatever ended it: a watch that tries no more excuses nothing
            self._took_s, self._began_s = 0.0, None
