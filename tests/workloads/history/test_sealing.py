"""A history that comes in many parts is clustered as one that comes at once, and little of it is held meanwhile."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checkers.history_strategies import histories
from tests.workloads.history.event_strategies import events, examples, record_all
from workloads.history import HistoryWriter, Rows, files, sealing
from workloads.history.clustering import Columns
from workloads.history.schema import DERIVED, META_JOINED, META_SPREAD, SCHEMA
from workloads.history.sealing import UnsealedPart, write_clustered
from workloads.operations import Event, EventType, Function, Poll, Record, Send


def parts_of(history: list[Event], size: int) -> list[UnsealedPart]:
    rows, parts = Rows(), []
    for number, event in enumerate(history):
        rows.add(event)
        if number % size == size - 1:
            parts.append(UnsealedPart.of_rows(rows))
    return [*parts, UnsealedPart.of_rows(rows)]


def stored(path: Path) -> tuple[list[tuple[object, ...]], dict[bytes, bytes]]:
    table = files.read_table(path)
    rows = sorted(zip(*(table.column(name).to_pylist() for name in SCHEMA.names), strict=True), key=repr)
    return rows, dict(files.open_file(path).schema_arrow.metadata)


@given(st.one_of(events(), histories(operations_max=20)), st.integers(1, 5), st.integers(1, 40))
@examples(20)
def test_parts_are_clustered_as_the_whole_is(history: list[Event], size: int, rows_held: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        with HistoryWriter(Path(scratch, "whole"), "run") as writer:
            record_all(writer, history)
        parts = parts_of(history, size)
        path = write_clustered(Path(scratch, "cut"), "run", parts, complete=True, durable=False, rows_held=rows_held)
        assert stored(path) == stored(Path(scratch, "whole", files.CLUSTERED))
        assert [file.name for file in path.parent.iterdir()] == [files.CLUSTERED]


def test_a_log_partition_stands_in_one_row_group_in_the_order_of_events(tmp_path: Path) -> None:
    history = [event for value in range(50) for event in sent_and_read(value, f"t-{value % 3}")]
    path = write_clustered(tmp_path, "run", parts_of(history, 7), complete=True, durable=False, rows_held=20)
    file = files.open_file(path)
    seen: set[str] = set()
    for number in range(file.num_row_groups):
        group = file.read_row_group(number)
        keys = group.column("key").to_pylist()
        order = list(zip(keys, group.column("index").to_pylist(), strict=True))
        assert all(a <= b for a, b in itertools.pairwise(order) if a[0] == b[0])
        assert not seen & (set(keys) - {""})
        seen |= set(keys)
    assert {"t-0", "t-1", "t-2"} <= seen


def test_sealing_holds_no_more_rows_than_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted wherever rows are laid together; a tenfold history is held no more of."""
    held: list[int] = []
    together = sealing.together

    def counted(*parts: Columns) -> Columns:
        rows = together(*parts)
        held.append(len(rows["key"]))
        return rows

    monkeypatch.setattr(sealing, "together", counted)
    peaks = []
    for events_ in (1_000, 10_000):
        held.clear()
        history = [event for value in range(events_ // 4) for event in sent_and_read(value, f"t-{value // 50}")]
        parts = parts_of(history, 50)
        path = write_clustered(tmp_path / str(events_), "run", parts, complete=True, durable=False, rows_held=300)
        assert files.read_table(path).num_rows == len(history) // 2 + _tails(path)
        peaks.append(max(held))
    pairs = 2 * 10_000 // 200  # of a process and a log partition: of each, one row is remembered
    assert max(peaks) <= 300 + pairs
    assert sum(held) > 10 * 300


def _tails(path: Path) -> int:
    kinds = files.read_table(path, ["kind"]).column("kind").to_numpy()
    return int(np.isin(kinds, [int(kind) for kind in DERIVED]).sum())


def test_what_ties_log_partitions_together_is_known_of_parts(tmp_path: Path) -> None:
    both = (Send("x", 1), Send("y", 2))
    history = [
        Event(time_us=0, process=0, type=EventType.INVOKE, function=Function.TXN, micro=both),
        Event(time_us=1, process=0, type=EventType.INFO, function=Function.TXN, micro=both),
        *sent_and_read(7, "z"),
    ]
    path = write_clustered(tmp_path, "run", parts_of(history, 2), complete=True, durable=False, rows_held=1)
    metadata = files.open_file(path).schema_arrow.metadata
    assert (metadata[META_SPREAD], metadata[META_JOINED]) == (b"true", b"true")


def sent_and_read(value: int, key: str) -> list[Event]:
    send, read = (Send(key, value, value),), (Poll({key: (Record(value, value),)}),)
    return [
        Event(time_us=4 * value, process=0, type=EventType.INVOKE, function=Function.SEND, micro=(Send(key, value),)),
        Event(time_us=4 * value + 1, process=0, type=EventType.OK, function=Function.SEND, micro=send),
        Event(time_us=4 * value + 2, process=1, type=EventType.INVOKE, function=Function.POLL, micro=(Poll(),)),
        Event(time_us=4 * value + 3, process=1, type=EventType.OK, function=Function.POLL, micro=read),
    ]
