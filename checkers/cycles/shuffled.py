"""Cycles of a history that is too large for one look: its dependencies are brought together and trimmed in Spark.

Workers emit the tight dependencies of their log partitions when they judge these. Spark groups them by window of time,
so that no worker gets all of a history, and trims the windows together (:mod:`checkers.cycles.windows`). A few
operations are left. They are sent to the workers once more, which spell out the dependencies between them. Only these
reach the driver and networkx. An operation that is late makes others late through dependencies that are not tight, so a
history with suspects is gone through again until no new ones appear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np

from checkers.columns.ids import Numbers
from checkers.columns.loading import RowBatch, load_each
from checkers.columns.log import Log
from checkers.cycles.edges import Dependency, among, began, dependencies, ended, tight
from checkers.cycles.windows import Place, cut, suspects_of

#: Passes over a history until no new suspects appear; an operation not seen by then hides behind other cycles.
PASSES_MAX: Final = 5

Task = Sequence[tuple[Any, ...]]


def emitted(
    batch: RowBatch, histories: Collection[int], suspects: Mapping[int, Numbers]
) -> Iterator[tuple[Place, Numbers]]:
    """Give the tight dependencies of these histories, and all that start from a suspect, by window."""
    for number, history in enumerate(batch.histories):
        if history in histories:
            yield from cut(history, _edges_of(batch, number, suspects.get(history, np.zeros(0, np.int64))))


def grouped(rdd: Any) -> Any:
    """Bring together what workers emitted with the same key: arrays as one, anything else as a list."""
    from pyspark import StorageLevel  # noqa: PLC0415 - importing Spark takes half a second

    return rdd.groupByKey().mapValues(_laid_together).persist(StorageLevel.DISK_ONLY)


def shuffled_steps(context: Any, tasks: Sequence[Task], proofs: Any, windows: Any) -> dict[int, list[Dependency]]:
    """Dependencies between suspects, by history. ``tasks`` are units as plain data.

    ``proofs`` is the broadcast of what the whole proves: the version order of each part depends on it. ``windows`` are
    what was :func:`emitted`, :func:`grouped`, without any suspect.
    """
    suspects: dict[int, Numbers] = {}
    for _ in range(PASSES_MAX):
        latest = suspects_of(lambda look, windows=windows: windows.map(look).collect())  # type: ignore[misc]
        windows.unpersist()
        settled = {h: set(s.tolist()) for h, s in latest.items()} == {h: set(s.tolist()) for h, s in suspects.items()}
        suspects = latest
        if settled or not suspects:
            break
        looked_for = context.broadcast(suspects)
        windows = grouped(context.parallelize(tasks, len(tasks)).flatMap(partial(_emit, looked_for, proofs)))
    if not suspects:
        return {}
    shared = context.broadcast(suspects)
    steps: dict[int, list[Dependency]] = {}
    for answer in context.parallelize(tasks, len(tasks)).map(partial(_spell_out, shared, proofs)).collect():
        for step in msgspec.json.decode(answer, type=list[Dependency]):
            steps.setdefault(step.history, []).append(step)
    return steps


def _emit(suspects: Any, proofs: Any, task: Task) -> Iterator[tuple[Place, Numbers]]:
    """Emit the dependencies of a task's log partitions. Runs in a worker."""
    for batch in load_each(task, proofs.value):
        yield from emitted(batch, batch.histories, suspects.value)


def _laid_together(parts: Iterable[Any]) -> Any:
    together = list(parts)
    return np.concatenate(together, axis=1) if isinstance(together[0], np.ndarray) else together


def _edges_of(batch: RowBatch, number: int, suspects: Numbers) -> Numbers:
    """Dependencies of one history as an array of six rows: the ends, when they began, when they ended."""
    log = batch.log
    edges = dependencies(log, batch.ww_deps)
    kept = tight(log, edges) | np.isin(log.index[edges.earlier], suspects)
    if len(batch.histories) > 1:
        kept &= log.partition_history[log.partition[edges.earlier]] == number
    edges = edges.where(kept)
    ends = (edges.earlier, edges.later)
    return np.stack([column for of in (_index, began, ended) for column in (of(log, ends[0]), of(log, ends[1]))])


def _index(log: Log, rows: Numbers) -> Numbers:
    index: Numbers = log.index[rows]
    return index


def _spell_out(shared: Any, proofs: Any, task: Task) -> bytes:
    """Encode the dependencies between suspects in this task's log partitions. Runs in a worker."""
    steps: list[Dependency] = []
    for batch in load_each(task, proofs.value):
        log, history = batch.log, batch.histories[0]
        suspects = shared.value.get(history)
        if suspects is not None:
            dependent = among(log, dependencies(log, batch.ww_deps), suspects)
            steps += [msgspec.structs.replace(step, history=history) for step in dependent]
    return msgspec.json.encode(steps)
