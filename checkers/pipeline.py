"""Checking any number of histories in one Spark job.

The driver cuts histories into units (whole small files, row groups of large ones), lays units together into tasks of
similar size, and Spark's workers read them with Arrow, apply the kernels and send back findings and counts. Nothing
is shuffled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from checkers.errors import SparkError
from checkers.loading import Unit, load_units
from checkers.partial import SHOWN, Partial, judge_batch, merge, verdict
from checkers.session import session
from checkers.sources import Source, Sources
from checkers.verdict import Verdict
from workloads.history import HistoryError
from workloads.history.origin import Origin

#: Files up to this size are read whole, without looking at their footer first.
WHOLE_BYTES: Final = 4 << 20
#: A task reads about so much, so that it is long enough to pay for its start and short enough to balance.
TASK_BYTES: Final = 16 << 20
#: Units are judged together up to this size: kernels cost a few milliseconds whatever they are given.
BATCH_BYTES: Final = 2 << 20
#: Histories judged together in one batch.
BATCH_UNITS: Final = 200

Progress = Callable[[int, int], None]


def check(
    paths: Sequence[Path],
    *,
    master: str | None = None,
    ww_deps: bool | None = None,
    shown: int | None = SHOWN,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Judge every history at ``paths``, in order. A path is a run directory, a history directory, a file of JSON
    lines or a directory of those. ``shown`` bounds the findings listed of each anomaly; ``progress`` is told (tasks
    done, tasks).

    A history that cannot be read gets ``valid`` "unknown" and the reason; the others are judged.

    Raises:
        checkers.errors.CheckError: Spark cannot be used.
    """
    with Sources(paths) as sources:
        units = [unit for place, source in enumerate(sources.found) for unit in units_of(place, source, ww_deps)]
        tasks = plan_tasks(units)
        parts = _run(tasks, master, shown, progress) if tasks else []
        by_history: dict[int, list[Partial]] = {}
        for part in parts:
            by_history.setdefault(part.history, []).append(part)
        return [_verdict(source, by_history.get(place), shown) for place, source in enumerate(sources.found)]


def units_of(history: int, source: Source, wanted: bool | None = None) -> list[Unit]:
    """The units of one history, none if it has no file; a problem with the file is left for the worker to tell."""
    if source.file is None:
        return []
    size, ww_deps = source.file.stat().st_size, source.ww_deps(wanted)
    if size <= WHOLE_BYTES:
        return [Unit(history, str(source.file), None, size, ww_deps)]
    footer = pq.read_metadata(source.file)
    sizes = [footer.row_group(number).total_byte_size for number in range(footer.num_row_groups)]
    return [Unit(history, str(source.file), (number,), bytes_, ww_deps) for number, bytes_ in enumerate(sizes)]


def plan_tasks(units: Sequence[Unit]) -> list[list[Unit]]:
    """Units laid together so that each task reads about :data:`TASK_BYTES`, in order."""
    tasks: list[list[Unit]] = []
    room = 0
    for unit in units:
        cost = unit.bytes + _COST_OF_A_FILE
        if not tasks or cost > room:
            tasks.append([])
            room = TASK_BYTES
        tasks[-1].append(unit)
        room -= cost
    return tasks


#: Opening a file costs about as much as reading so many bytes.
_COST_OF_A_FILE: Final = 50_000


def judge_units(units: Sequence[Unit], shown: int | None) -> list[Partial]:
    """Judge units in batches. A history that cannot be read is told by its problem. Runs in a worker."""
    return [part for batch in _batches(units) for part in _judge(batch, shown)]


def judge_task(shown: int | None, task: Sequence[tuple[Any, ...]]) -> bytes:
    """:func:`judge_units` as plain data in and out, which is what travels. Runs in a worker."""
    return msgspec.json.encode(judge_units([Unit(*unit) for unit in task], shown))


def _judge(units: Sequence[Unit], shown: int | None) -> list[Partial]:
    try:
        return judge_batch(load_units(units), shown=shown)
    except (HistoryError, OSError) as error:
        if len(units) > 1:
            return [part for unit in units for part in _judge([unit], shown)]
        return [Partial(history=units[0].history, complete=False, own=False, events=0, problem=str(error))]


def _batches(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    batch: list[Unit] = []
    for unit in units:
        if batch and (sum(one.bytes for one in batch) + unit.bytes > BATCH_BYTES or len(batch) >= BATCH_UNITS):
            yield batch
            batch = []
        batch.append(unit)
    if batch:
        yield batch


def _run(tasks: list[list[Unit]], master: str | None, shown: int | None, progress: Progress | None) -> list[Partial]:
    context = session(master).sparkContext

    plain = [[msgspec.structs.astuple(unit) for unit in task] for task in tasks]
    try:
        with _Watch(context, len(tasks), progress):
            answers = context.parallelize(plain, len(plain)).map(partial(judge_task, shown)).collect()
    except Exception as error:  # Py4J raises whatever the JVM threw
        raise SparkError(f"the Spark job failed: {_cause(error)}") from error
    return [part for answer in answers for part in msgspec.json.decode(answer, type=list[Partial])]


def _cause(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return (telling or lines or [type(error).__name__])[-1][:500]


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


def _verdict(source: Source, parts: list[Partial] | None, shown: int | None) -> Verdict:
    if source.file is None or parts is None:
        return Verdict(history=source.name, valid="unknown", reason=source.problem or "nothing could be read")
    return verdict(source.name, merge(parts, shown=shown), Origin.load(source.file.parent))
