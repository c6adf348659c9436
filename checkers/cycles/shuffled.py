"""Cycles of a history that is too large for one look: its dependencies are brought together and trimmed in Spark.

Workers emit the tight dependencies of their log partitions; Spark groups them by window of time, so that no worker gets
all of a history, and trims the windows together (:mod:`checkers.cycles.windows`); what is left, a few operations, is
sent to the workers once more, and they spell out the dependencies between those. Only these reach the driver and
networkx. An operation that is late makes others late through dependencies that are not tight, so a history with
suspects is gone through again until no new ones appear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np

from checkers.columns.ids import Numbers
from checkers.columns.loading import RowBatch, load_each
from checkers.columns.log import Log
from checkers.cycles.edges import Dependency, among, began, dependencies, ended, tight
from checkers.cycles.windows import Place, cut, suspects_of

#: Passes over a history until no new suspects appear; what is not found by then hides behind other cycles.
PASSES_MAX: Final = 5

Task = Sequence[tuple[Any, ...]]


def shuffled_steps(context: Any, tasks: Sequence[Task], proofs: Any) -> dict[int, list[Dependency]]:
    """Dependencies between suspects, by history. ``tasks`` are units as plain data.

    ``proofs`` is the broadcast of what the whole proves: the version order of each part depends on it.
    """
    suspects: dict[int, Numbers] = {}
    for _ in range(PASSES_MAX):
        found = _pass(context, tasks, proofs, suspects)
        settled = {h: set(s.tolist()) for h, s in found.items()} == {h: set(s.tolist()) for h, s in suspects.items()}
        suspects = found
        if settled or not suspects:
            break
    if not suspects:
        return {}
    known = context.broadcast(suspects)
    steps: dict[int, list[Dependency]] = {}
    for answer in context.parallelize(tasks, len(tasks)).map(partial(_spell_out, known, proofs)).collect():
        for step in msgspec.json.decode(answer, type=list[Dependency]):
            steps.setdefault(step.history, []).append(step)
    return steps


def _pass(context: Any, tasks: Sequence[Task], proofs: Any, suspects: dict[int, Numbers]) -> dict[int, Numbers]:
    from pyspark import StorageLevel  # noqa: PLC0415 - importing Spark takes half a second

    known = context.broadcast(suspects)
    emitted = context.parallelize(tasks, len(tasks)).flatMap(partial(_emit, known, proofs))
    windows = emitted.groupByKey().mapValues(_laid_together).persist(StorageLevel.DISK_ONLY)
    try:
        return suspects_of(lambda look: windows.map(look).collect())
    finally:
        windows.unpersist()


def _emit(known: Any, proofs: Any, task: Task) -> Iterator[tuple[Place, Numbers]]:
    """By window, tight dependencies and all that start from a suspect. Runs in a worker."""
    for batch in load_each(task, proofs.value):
        history = batch.histories[0]
        yield from cut(history, _edges_of(batch, known.value.get(history, np.zeros(0, np.int64))))


def _laid_together(parts: Iterable[Numbers]) -> Numbers:
    return np.concatenate(list(parts), axis=1)


def _edges_of(batch: RowBatch, suspects: Numbers) -> Numbers:
    """Dependencies as an array of six rows: the ends, when they began, when they ended."""
    log = batch.log
    found = dependencies(log, batch.ww_deps)
    found = found.where(tight(log, found) | np.isin(log.index[found.earlier], suspects))
    ends = (found.earlier, found.later)
    return np.stack([column for of in (_index, began, ended) for column in (of(log, ends[0]), of(log, ends[1]))])


def _index(log: Log, rows: Numbers) -> Numbers:
    index: Numbers = log.index[rows]
    return index


def _spell_out(known: Any, proofs: Any, task: Task) -> bytes:
    """The dependencies between suspects that this task's log partitions have. Runs in a worker."""
    steps: list[Dependency] = []
    for batch in load_each(task, proofs.value):
        log, history = batch.log, batch.histories[0]
        suspects = known.value.get(history)
        if suspects is not None:
            found = among(log, dependencies(log, batch.ww_deps), suspects)
            steps += [msgspec.structs.replace(step, history=history) for step in found]
    return msgspec.json.encode(steps)
