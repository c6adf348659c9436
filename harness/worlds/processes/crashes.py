"""Deaths that nobody ordered: which node's process ended by itself, when, and what it last said.

Whoever ends a process on purpose says so first (:meth:`Deaths.ordered`), so that everything else that is found ended
did so by itself. A look asks the operating system about processes that it is the parent of, which costs microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from harness.hosts import NodeProcess
from harness.observations import NodeCrashed, Observation
from harness.worlds.contract import NodeDeath

#: Of the last words: they stand in the history, and lines of Java are long.
WORDS_MAX: Final = 800


class Deaths:
    """Watches the newest process of every node in ``processes``, which its owner changes as nodes start.

    ``last_words`` gives the last of a node's log.
    """

    def __init__(self, processes: Mapping[int, NodeProcess], last_words: Callable[[int], str]) -> None:
        self._processes = processes
        self._last_words = last_words
        self._ordered: dict[int, NodeProcess] = {}
        self._open: dict[int, tuple[int, NodeProcess]] = {}
        self._found: list[NodeDeath] = []

    def ordered(self, node: int, now_us: int) -> None:
        """The harness is about to end this node; if it ended by itself before, that is noticed now."""
        self.look(now_us)
        if node in self._processes:
            self._ordered[node] = self._processes[node]

    def look(self, now_us: int) -> Sequence[NodeDeath]:
        """Every death so far, those of this moment included."""
        for node, process in self._processes.items():
            if node in self._open and self._open[node][1] is not process:
                place = self._open.pop(node)[0]
                self._found[place] = msgspec.structs.replace(self._found[place], returned_us=now_us)
            if node in self._open or self._ordered.get(node) is process:
                continue
            ended = process.exit()
            if ended is not None:
                self._open[node] = (len(self._found), process)
                self._found.append(NodeDeath(now_us, node, ended, self._last_words(node)[-WORDS_MAX:]))
        return tuple(self._found)


def with_deaths(told: Sequence[Observation], deaths: Sequence[NodeDeath]) -> list[Observation]:
    """What the nodes told of themselves, with the deaths that they could not tell of, in order of time."""
    died = [Observation(death.time_us, death.node, NodeCrashed(exit=death.exit, words=death.words)) for death in deaths]
    return sorted([*told, *died], key=lambda seen: seen.time_us)
