"""Checking any number of histories in one Spark job; one small history alone is judged in this process instead.

Large files of JSON lines are decoded by Spark's workers first, a split each. The driver then cuts histories into units
(whole small files, row groups of large ones), lays units together into tasks of similar size, and workers read them
with Arrow, apply the kernels and send back findings and counts. Nothing is shuffled. Two kinds of large histories need
more: uncertain operations over several log partitions are proved by a look at the whole first, and the few proofs are
broadcast; dependencies of transactions are emitted as they are judged, and brought together
(:mod:`checkers.cycles.shuffled`).

One history that fits into one task leaves nothing to distribute, and Spark takes five seconds to start: it is judged as
a worker judges it, unless a master is named or Spark runs anyway.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from checkers.columns.ids import Numbers
from checkers.columns.loading import RowBatch, Unit, load_bare
from checkers.cycles.edges import Dependency
from checkers.cycles.shuffled import emitted, grouped, shuffled_steps
from checkers.errors import SparkError
from checkers.histories.discovery import FoundHistory, Source, Sources, find_histories
from checkers.histories.stores import Place
from checkers.local import judge_each, verdict_on
from checkers.spark.planning import UnitPlan, batches_of, plan, tasks_of
from checkers.spark.session import cause_of, is_wanted, spark_context
from checkers.verdicts.partial_verdict import SHOWN, PartialVerdict
from checkers.verdicts.verdict import Verdict
from workloads.history import Decoded, HistoryError, Split, decode

Progress = Callable[[int, int], None]
Task = Sequence[tuple[Any, ...]]
#: By history, the event indexes of uncertain operations that a read proved to have happened.
Proofs = dict[int, Numbers]
#: The key of an answer among dependencies, whose keys begin with the number of a history.
_ANSWER: Final = (-1, 0)


def check(
    histories: Iterable[Place | FoundHistory],
    *,
    master: str | None = None,
    ww_deps: bool | None = None,
    shown: int | None = SHOWN,
    scratch: Path | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Judge histories, in order, in one Spark job.

    A history that cannot be read gets ``valid`` "unknown" and the reason; the others are judged.

    Args:
        histories: found histories, or paths to look at (:func:`checkers.histories.discovery.find_histories`).
        master: address of a Spark cluster's master, by default local threads; one small history needs none.
        ww_deps: whether overwrites count as dependencies, by default as
            :meth:`checkers.histories.discovery.Source.ww_deps` has it.
        shown: findings listed of each anomaly, None for all; counts are always whole.
        scratch: directory to store JSON lines in first, see :class:`checkers.histories.discovery.Sources`.
        progress: is called with (tasks done, tasks) while the job runs.

    Raises:
        checkers.errors.CheckError: Spark cannot be used.
    """
    given = ([item] if isinstance(item, FoundHistory) else find_histories([item]) for item in histories)
    with Sources(itertools.chain.from_iterable(given), scratch, partial(_decode_all, master)) as sources:
        planned = plan(sources.ready, ww_deps)
        parts = _run(planned, master, shown, progress) if planned.units else []
        by_history: dict[int, list[PartialVerdict]] = {}
        for part in parts:
            by_history.setdefault(part.history, []).append(part)
        return [
            _verdict(source, by_history.get(number), planned.problems.get(number), shown)
            for number, source in enumerate(sources.ready)
        ]


def _decode_all(master: str | None, splits: Sequence[Split]) -> Iterator[Decoded]:
    """Decode splits of a large file of JSON lines in the workers, and those that they cannot read here."""
    context = spark_context(master)
    try:
        answers = context.parallelize(splits, len(splits)).map(_decode).collect()
    except Exception as error:  # Py4J raises whatever the JVM threw
        raise SparkError(f"the Spark job failed: {cause_of(error)}") from error
    for split, decoded in zip(splits, answers, strict=True):
        arrived = decoded is not None and (decoded.problem or split.target is None or split.target.exists())
        yield decoded if arrived else decode(split)


def _decode(split: Split) -> Decoded | None:
    """Decode a split; None if this machine has no such file. Runs in a worker."""
    try:
        return decode(split)
    except OSError:
        return None


def _run(planned: UnitPlan, master: str | None, shown: int | None, progress: Progress | None) -> list[PartialVerdict]:
    tasks = _plain(planned.units)
    alone = len({unit.history for unit in planned.units}) == 1 and not (planned.to_prove or planned.to_join)
    if alone and len(tasks) == 1 and not is_wanted(master):
        parts = _judge_plain(shown, {}, tasks[0])
        if progress is not None:
            progress(1, 1)
        return parts
    context = spark_context(master)
    try:
        proofs = context.broadcast(_proofs(context, planned.to_prove))
        joined = frozenset(unit.history for unit in planned.to_join)
        judged = context.parallelize(tasks, len(tasks)).flatMap(partial(_judge_task, shown, proofs, joined))
        if joined:
            judged = grouped(judged)
        with _Watch(context, len(tasks), progress):
            answers = judged.filter(_is_answer).values().collect()
        encoded = itertools.chain.from_iterable(answers) if joined else answers
        parts = [part for answer in encoded for part in msgspec.json.decode(answer, type=list[PartialVerdict])]
        if joined:
            windows = judged.filter(lambda emitted: not _is_answer(emitted))
            _add_steps(parts, shuffled_steps(context, _plain(planned.to_join), proofs, windows))
            judged.unpersist()
    except Exception as error:  # Py4J raises whatever the JVM threw
        raise SparkError(f"the Spark job failed: {cause_of(error)}") from error
    return parts


def _plain(units: Sequence[Unit]) -> list[Task]:
    """Tasks as plain data, which is sent to workers."""
    return [[msgspec.structs.astuple(unit) for unit in task] for task in tasks_of(units)]


def _proofs(context: Any, units: Sequence[Unit]) -> Proofs:
    """Prove uncertain operations from the whole of large histories."""
    if not units:
        return {}
    tasks = _plain(units)
    by_history: dict[int, list[Numbers]] = {}
    for answer in context.parallelize(tasks, len(tasks)).map(_prove_task).collect():
        for history, indexes in answer:
            by_history.setdefault(history, []).append(indexes)
    return {history: np.unique(np.concatenate(indexes)) for history, indexes in by_history.items()}


def _prove_task(task: Task) -> list[tuple[int, Numbers]]:
    """Uncertain operations that these units prove. Runs in a worker."""
    return [(batch.histories[0], batch.log.proofs) for batch in load_bare(task)]


def _add_steps(parts: Sequence[PartialVerdict], steps: dict[int, list[Dependency]]) -> None:
    first = {part.history: part for part in reversed(parts)}
    for history, dependencies in steps.items():
        first[history].steps += dependencies


def _judge_task(
    shown: int | None, proofs: Any, joined: Collection[int], task: Task
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Judge the units of a task: the answer, for the driver to decode, and dependencies of histories that are joined.

    Runs in a worker.
    """
    edges: list[tuple[tuple[int, int], Any]] = []
    parts = _judge_plain(shown, proofs.value, task, lambda batch: edges.extend([*emitted(batch, joined, {})]))
    yield _ANSWER, msgspec.json.encode(parts)
    yield from edges


def _is_answer(keyed: tuple[tuple[int, int], Any]) -> bool:
    return keyed[0] == _ANSWER


def _judge_plain(
    shown: int | None, proofs: Proofs, task: Task, judged: Callable[[RowBatch], None] = lambda _: None
) -> list[PartialVerdict]:
    """Judge the units of a task in batches."""
    units = [Unit(*unit) for unit in task]
    return [part for batch in batches_of(units) for part in judge_each(batch, shown, proofs, judged)]


class _Watch:
    """Tells a callback how many tasks of the running job are done, a few times a second."""

    def __init__(self, context: Any, tasks: int, progress: Progress | None) -> None:
        self._tracker, self._tasks, self._progress = context.statusTracker(), tasks, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._progress is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._progress is not None:
            self._thread.join(5.0)
            self._progress(self._tasks, self._tasks)

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            if self._progress is not None:
                self._progress(min(done, self._tasks), self._tasks)


def _verdict(source: Source, parts: list[PartialVerdict] | None, problem: str | None, shown: int | None) -> Verdict:
    try:
        if parts is not None:
            return verdict_on(source, parts, shown)
        problem = source.problem or problem or "nothing could be read"
    except HistoryError as error:
        problem = str(error)
    return Verdict(history=source.name, valid="unknown", reason=problem)
