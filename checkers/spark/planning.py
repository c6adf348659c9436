"""Cuts histories into units of work, and lays units together into tasks of similar size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from checkers.columns.loading import Unit
from checkers.histories.discovery import Source
from checkers.histories.stores import open_history, size_of
from workloads.history import META_JOINED, META_SPREAD, META_TRANSACTIONS, HistoryError

#: Files up to this size are read whole, without looking at their footer first.
WHOLE_BYTES: Final = 4 << 20
#: Bytes that a task reads: long enough to pay for its start and short enough to balance.
TASK_BYTES: Final = 16 << 20
#: Opening a file costs about as much as reading this many bytes.
FILE_COST_BYTES: Final = 50_000
#: Bytes of units that are judged together: kernels cost a few milliseconds whatever they are given.
BATCH_BYTES: Final = 2 << 20
#: Histories judged together in one batch.
BATCH_UNITS: Final = 200


class UnitPlan(NamedTuple):
    """Units of all histories, and those of large histories that need a look at the whole first.

    ``to_prove`` have uncertain operations or transactions over several log partitions, ``to_join`` have transactions.
    ``problems`` say of histories, by their places, why they have no units although they have a file.
    """

    units: list[Unit]
    to_prove: list[Unit]
    to_join: list[Unit]
    problems: dict[int, str]


def plan(sources: Sequence[Source], ww_deps: bool | None) -> UnitPlan:
    """Cut all histories. One without a file has no units."""
    made = UnitPlan([], [], [], {})
    for history, source in enumerate(sources):
        try:
            units, metadata = units_of(history, source, ww_deps)
        except (HistoryError, OSError) as error:
            made.problems[history] = str(error)
            continue
        made.units.extend(units)
        if b"true" in {metadata.get(META_SPREAD), metadata.get(META_TRANSACTIONS)}:
            made.to_prove.extend(units)
        if metadata.get(META_JOINED) == b"true":
            made.to_join.extend(units)
    return made


def units_of(history: int, source: Source, wanted: bool | None = None) -> tuple[list[Unit], dict[bytes, bytes]]:
    """The units of one history, and the metadata of its file if it was cut.

    A small file is one unit and not looked at. A file that cannot be read is one unit too: the worker tells why.

    Raises:
        HistoryError, OSError: the size of the file, or a file beside it, cannot be read.
    """
    if source.file is None:
        return [], {}
    size, ww_deps = size_of(source.file), source.ww_deps(wanted)
    whole = [Unit(history, str(source.file), None, size, ww_deps)]
    if size <= WHOLE_BYTES:
        return whole, {}
    try:
        with open_history(source.file) as file:
            footer = file.metadata
    except HistoryError:
        return whole, {}
    sizes = [footer.row_group(number).total_byte_size for number in range(footer.num_row_groups)]
    units = [Unit(history, str(source.file), (number,), bytes_, ww_deps) for number, bytes_ in enumerate(sizes)]
    return units, dict(footer.metadata or {})


def tasks_of(units: Sequence[Unit]) -> list[list[Unit]]:
    """Units laid together so that each task reads about :data:`TASK_BYTES`, in order."""
    tasks: list[list[Unit]] = []
    room = 0
    for unit in units:
        cost = unit.bytes + FILE_COST_BYTES
        if not tasks or cost > room:
            tasks.append([])
            room = TASK_BYTES
        tasks[-1].append(unit)
        room -= cost
    return tasks


def batches_of(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """The units of a task laid together for one pass of the kernels."""
    batch: list[Unit] = []
    size = 0
    for unit in units:
        if batch and (size + unit.bytes > BATCH_BYTES or len(batch) >= BATCH_UNITS):
            yield batch
            batch, size = [], 0
        batch.append(unit)
        size += unit.bytes
    if batch:
        yield batch
