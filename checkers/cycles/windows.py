"""The trimming of :mod:`checkers.cycles.trimming` in windows of time: no process needs all dependencies at once.

An operation belongs to the window in which its event index lies, a dependency to the windows of both its ends. Tight
dependencies join operations that were under way at the same time, so nearly all of them are in one window. A window
settles its own operations' moments from the last answer of the other windows. Its own answer, the moments at its edge,
is small, and goes round until no window has news. A clean history has something left at the edges only, and one more
look at that leaves exactly what :func:`checkers.cycles.trimming.trim` would have left of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from checkers.columns.ids import Flags, Numbers
from checkers.cycles.trimming import earliest_moments, inside, on_both_sides

#: Events in a window: a few hundred thousand dependencies.
WINDOW_EVENTS: Final = 250_000
#: Times that windows hear of each other; moments that change even then are taken for late.
EXCHANGES_MAX: Final = 50

#: (history, window).
Place = tuple[int, int]


class Moments(NamedTuple):
    """Operations (event indexes, ascending), their earliest moments, and whether these had settled."""

    operations: Numbers
    moments: Numbers
    settled: Flags


class Heard(NamedTuple):
    """The answers of all windows, by history: moments at the edges, and the bounds between which cycles lie."""

    edges: dict[int, Moments]
    low: dict[int, Numbers]
    high: dict[int, Numbers]


#: Applies a function to (place, dependencies) of every window and answers with what it returned.
OfEach = Callable[[Callable[[tuple[Place, Numbers]], Any]], Iterable[Any]]


def cut(history: int, dependencies: Numbers) -> Iterator[tuple[Place, Numbers]]:
    """Dependencies by window. They come and go as six rows: the ends, when they began, when they ended (int64)."""
    windows = dependencies[:2] // WINDOW_EVENTS
    for window in np.unique(windows).tolist():
        yield (history, window), dependencies[:, (windows == window).any(axis=0)]


def suspects_of(of_each: OfEach) -> dict[int, Numbers]:
    """By history, the operations that may be on a cycle."""
    heard = Heard({}, {}, {})
    for _ in range(EXCHANGES_MAX):
        answers = list(of_each(partial(_settle, heard)))
        before, heard = heard.edges, Heard(_edges(answers), _joined(answers, 2), _joined(answers, 3))
        if before.keys() == heard.edges.keys() and all(
            np.array_equal(heard.edges[history].moments, before[history].moments) for history in before
        ):
            break
    else:
        unsettled = {history: edge._replace(settled=edge.settled & False) for history, edge in heard.edges.items()}
        heard = heard._replace(edges=unsettled)
    left = list(of_each(partial(_keep, heard)))
    by_history = {}
    for history in sorted({history for history, *_ in left}):
        suspects = _joined(left, 1)[history]
        earlier, later = (_joined(left, column)[history] for column in (2, 3))
        operations, number = np.unique(np.concatenate([earlier, later]), return_inverse=True)
        kept = on_both_sides(number[: len(earlier)], number[len(earlier) :], len(operations))
        by_history[history] = np.union1d(suspects, operations[kept])
    return {history: operations for history, operations in by_history.items() if len(operations)}


def _joined(answers: Sequence[Any], column: int) -> dict[int, Numbers]:
    """The entries of one ``column`` of answers, which begin with their history."""
    return {
        history: np.concatenate([answer[column] for answer in answers if answer[0] == history])
        for history in {answer[0] for answer in answers}
    }


def _edges(answers: Sequence[Any]) -> dict[int, Moments]:
    edges = {}
    for history in {answer[0] for answer in answers}:
        moments = [answer[1] for answer in answers if answer[0] == history]
        columns = [np.concatenate(parts) for parts in zip(*moments, strict=True)]
        order = np.argsort(columns[0])
        edges[history] = Moments(*(column[order] for column in columns))
    return edges


class _Window:
    """The dependencies of one window, their operations numbered from 0."""

    def __init__(self, heard: Heard, key: Place, dependencies: Numbers) -> None:
        earlier, later, *times = dependencies
        self.operations, first, number = np.unique(
            np.concatenate([earlier, later]), return_index=True, return_inverse=True
        )
        self.earlier, self.later = np.split(number, 2)
        began, self.ended = (np.concatenate(times[row : row + 2])[first] for row in (0, 2))
        self.here = self.operations // WINDOW_EVENTS == key[1]
        self.moments, self.settled = began.copy(), np.ones(len(began), dtype=bool)
        if (edges := heard.edges.get(key[0])) is not None:
            _, mine, theirs = np.intersect1d(self.operations, edges.operations, return_indices=True)
            away = ~self.here[mine]
            self.moments[mine[away]] = edges.moments[theirs[away]]
            self.settled[mine] = edges.settled[theirs]
        inner = self.here[self.later]
        self.moments, settled = earliest_moments(self.earlier[inner], self.later[inner], self.moments)
        self.settled &= settled
        self.late = self.here & ((self.moments > self.ended) | ~self.settled)


def _settle(heard: Heard, window: tuple[Place, Numbers]) -> tuple[int, Moments, Numbers, Numbers]:
    """Answer with the moments of operations on which other windows depend, and the bounds of late ones' cycles."""
    (history, _), _ = window
    own = _Window(heard, *window)
    edge = np.unique(own.earlier[own.here[own.earlier] & ~own.here[own.later]])
    late = own.late
    return (
        history,
        Moments(own.operations[edge], own.moments[edge], own.settled[edge]),
        np.minimum(own.ended, own.moments)[late],
        own.moments[late],
    )


def _keep(heard: Heard, window: tuple[Place, Numbers]) -> tuple[int, Numbers, Numbers, Numbers]:
    """Answer with suspects, and with dependencies that, for this window, may be on a cycle of equal moments."""
    (history, _), _ = window
    own = _Window(heard, *window)
    none = np.zeros(0, dtype=np.int64)
    suspect = own.late | inside(own.moments, heard.low.get(history, none), heard.high.get(history, none))
    level = own.moments[own.earlier] == own.moments[own.later]
    earlier, later = own.earlier[level], own.later[level]
    away = np.flatnonzero(~own.here)  # Their other dependencies are not here: each counts as one with itself.
    alive = on_both_sides(np.append(earlier, away), np.append(later, away), len(own.operations))
    kept = alive[earlier] & alive[later]
    return history, own.operations[suspect & own.here], own.operations[earlier[kept]], own.operations[later[kept]]
