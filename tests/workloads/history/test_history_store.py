"""Recorded events come back, whatever happened to the writer."""

from __future__ import annotations

import itertools
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from tests.workloads.history.event_strategies import events, examples, normalised, record_all
from workloads.history import HistoryError, HistoryWriter, LiveHistoryWriter, read_events, seal
from workloads.history.clustering import cluster, groups
from workloads.history.files import CLUSTERED, live_files
from workloads.history.rows import Rows
from workloads.history.schema import META_COMPLETE, META_VERSION, Kind
from workloads.operations import (
    NEMESIS,
    NO_INSTANCE,
    Event,
    EventType,
    Function,
    Poll,
    ProducerEpoch,
    Record,
    Send,
    TransactionEnd,
)


@given(events())
@examples(20)
def test_every_event_comes_back_as_it_was_recorded(history: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        with HistoryWriter(Path(scratch), "run") as writer:
            record_all(writer, history)
        assert [normalised(event) for event in read_events(Path(scratch))] == [normalised(e) for e in history]


def test_a_history_that_its_thread_could_not_write_is_not_sealed(tmp_path: Path) -> None:
    """Whatever the reason is: here a number that no column holds. What follows it would be missing without a word."""
    writer = LiveHistoryWriter(tmp_path / "history", "run", flush_seconds=0.01)
    writer.record(_send(2**70, 0, time_us=1))
    writer._flusher.join(10)
    with pytest.raises(struct.error):
        writer.close()
    assert not (tmp_path / "history" / CLUSTERED).exists()


@given(events())
@examples(15)
def test_live_files_hold_the_same_events_before_and_after_sealing(history: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        writer = LiveHistoryWriter(Path(scratch), "run", flush_seconds=60)
        half = len(history) // 2
        record_all(writer, history[:half])
        writer.flush()
        record_all(writer, history[half:])
        writer.flush()
        expected = [normalised(event) for event in history]
        if history:
            assert [normalised(event) for event in read_events(Path(scratch))] == expected
        writer.close()
        assert not live_files(Path(scratch))
        assert [normalised(event) for event in read_events(Path(scratch))] == expected


def _send(
    value: int, offset: int | None = None, *, time_us: int, kind: EventType = EventType.OK, key: str = "t-0"
) -> Event:
    return Event(
        time_us=time_us, process=0, instance=0, type=kind, function=Function.SEND, micro=(Send(key, value, offset),)
    )


def test_a_cut_off_history_is_clustered_and_says_so(tmp_path: Path) -> None:
    writer = LiveHistoryWriter(tmp_path, "run", flush_seconds=60)
    writer.record(_send(1, kind=EventType.INVOKE, time_us=1))
    writer.flush()
    writer.record(_send(1, 0, time_us=2))
    torn = tmp_path / ".live-00001.parquet.part"
    torn.write_bytes(b"PAR1 torn")
    abandoned = tmp_path / "copy"
    shutil.copytree(tmp_path, abandoned)
    seal(abandoned, complete=False)
    assert [event.type for event in read_events(abandoned)] == [EventType.INVOKE]
    assert pq.read_schema(abandoned / CLUSTERED).metadata[META_COMPLETE] == b"false"
    assert live_files(abandoned), "a writer that is still at work must find its files"
    writer.close()
    assert pq.read_schema(tmp_path / CLUSTERED).metadata[META_COMPLETE] == b"true"


def test_what_is_recorded_reaches_the_disk_within_the_flush_interval(tmp_path: Path) -> None:
    writer = LiveHistoryWriter(tmp_path, "run", flush_seconds=0.01)
    writer.record(_send(1, 0, time_us=1))
    for _ in range(500):
        if live_files(tmp_path):
            break
        writer._ended.wait(0.01)
    assert [event.micro for event in read_events(tmp_path)] == [(Send("t-0", 1, 0),)]
    writer.close()


def test_a_failed_flush_is_told_and_not_swallowed(tmp_path: Path) -> None:
    directory = tmp_path / "history"
    writer = LiveHistoryWriter(directory, "run", flush_seconds=0.01)
    directory.rmdir()
    directory.write_text("a file where the directory was")
    writer.record(_send(1, 0, time_us=1))
    writer._flusher.join(5.0)
    with pytest.raises(OSError, match="history"):
        writer.record(_send(2, 1, time_us=2))
    with pytest.raises(OSError, match="history"):
        writer.close()


def test_the_same_events_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with HistoryWriter(tmp_path / name, "run") as writer:
            for value in range(100):
                writer.record(_send(value, value, key=f"t-{value % 3}", time_us=value))
    assert (tmp_path / "one" / CLUSTERED).read_bytes() == (tmp_path / "two" / CLUSTERED).read_bytes()


def test_an_answered_send_is_one_row(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path, "run") as writer:
        writer.record(_send(7, kind=EventType.INVOKE, time_us=1))
        writer.record(_send(7, 3, time_us=2))
    row = pq.read_table(tmp_path / CLUSTERED).to_pylist()[0]
    assert (row["invoke_index"], row["invoke_us"], row["index"], row["offset"]) == (0, 1, 1, 3)
    assert pq.read_metadata(tmp_path / CLUSTERED).num_rows == 1


def test_an_invocation_is_on_disk_only_where_no_answer_came_before_the_flush(tmp_path: Path) -> None:
    writer = LiveHistoryWriter(tmp_path, "run", flush_seconds=60)
    history = [
        [
            _send(1, time_us=1, kind=EventType.INVOKE),
            _send(1, 0, time_us=2),
            _send(2, time_us=3, kind=EventType.INVOKE),
        ],
        [_send(2, time_us=4, kind=EventType.FAIL), _send(3, time_us=5, kind=EventType.INVOKE)],
    ]
    rows = []
    for flushed in history:
        record_all(writer, flushed)
        writer.flush()
        rows.append(pq.read_table(live_files(tmp_path)[-1], columns=["index", "type"]).to_pydict())
    assert [columns["index"] for columns in rows] == [[1, 2], [3, 4]]
    assert list(read_events(tmp_path)) == [
        msgspec.structs.replace(event, index=index) for index, event in enumerate(itertools.chain(*history))
    ]
    writer.close()


def test_overlapping_sends_of_one_process_find_their_own_invocations() -> None:
    rows = Rows()
    for value in (1, 2):
        add(rows, process=0, kind=EventType.INVOKE, function=Function.SEND, micro=(Send("t-0", value),))
    for value in (2, 1):
        add(rows, process=0, kind=EventType.OK, function=Function.SEND, micro=(Send("t-0", value, value),))
    columns = rows.take()
    assert columns["invoke_index"].tolist() == [1, 0]


def add(rows: Rows, *, process: int, kind: EventType, function: Function, **rest: Any) -> None:
    rows.add(Event(time_us=rows.events, process=process, type=kind, function=function, **rest))


def test_a_row_group_holds_whole_log_partitions_and_marks_stand_alone() -> None:
    rows = Rows()
    add(rows, process=NEMESIS, kind=EventType.INFO, function=Function.FAULT, detail="{}")
    for value in range(30):
        add(rows, process=0, kind=EventType.OK, function=Function.SEND, micro=(Send(f"t-{value % 5}", value, value),))
        add(rows, process=1, kind=EventType.OK, function=Function.POLL, micro=(Poll(),))
    parts = list(groups(cluster(rows.take()), rows_a_group=14))
    keys = [sorted(set(part["key"].tolist())) for part in parts]
    assert keys == [[0], [1, 2], [3, 4], [5], [0]]
    assert [len(part["key"]) for part in parts] == [1, 12, 12, 6, 30]


def test_an_assignment_takes_away_what_it_leaves_out() -> None:
    rows = Rows()
    read = Poll({"a": (Record(0, 1),), "b": ()})
    add(rows, process=0, kind=EventType.OK, function=Function.POLL, micro=(read,))
    add(rows, process=0, kind=EventType.FAIL, function=Function.ASSIGN, partitions=("b",))
    add(rows, process=0, kind=EventType.INFO, function=Function.ASSIGN, partitions=("b", "c"))
    add(rows, process=0, kind=EventType.OK, function=Function.SUBSCRIBE, partitions=("a",))
    keys = rows.names["key"]
    clustered = cluster(rows.take())
    lost = np.flatnonzero(clustered["kind"] == Kind.DROPPED)
    reported = sorted((int(clustered["index"][row]), keys[clustered["key"][row]]) for row in lost)
    assert reported == [(2, "a"), (3, "b"), (3, "c")]


def test_a_directory_without_a_history_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="name the directory of a run"):
        list(read_events(tmp_path))
    with pytest.raises(HistoryError, match="name the directory of a run"):
        seal(tmp_path, complete=False)


def test_a_parquet_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    (tmp_path / CLUSTERED).write_bytes(b"not parquet")
    with pytest.raises(HistoryError, match="not a readable Parquet file"):
        list(read_events(tmp_path))


def test_a_history_of_layout_2_is_read_without_instances(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path, "run") as writer:
        writer.record(_send(7, time_us=1, kind=EventType.INVOKE))
        writer.record(_send(7, 3, time_us=2))
    stored = pq.read_table(tmp_path / CLUSTERED)
    older = stored.drop_columns(["instance"]).replace_schema_metadata({**stored.schema.metadata, META_VERSION: b"2"})
    assert [event.instance for event in read_events(tmp_path)] == [0, 0]
    pq.write_table(older, tmp_path / CLUSTERED)
    assert [(event.instance, event.type) for event in read_events(tmp_path)] == [
        (NO_INSTANCE, EventType.INVOKE),
        (NO_INSTANCE, EventType.OK),
    ]


def test_a_history_of_layout_4_is_read_without_the_epochs_of_producers(tmp_path: Path) -> None:
    end = TransactionEnd(transactional_id="t", number=0, asked="commit", producer=ProducerEpoch(7, 3))
    older = msgspec.json.encode({name: value for name, value in msgspec.to_builtins(end).items() if name != "producer"})
    with HistoryWriter(tmp_path, "run") as writer:
        for number, detail in enumerate((msgspec.json.encode(end), older)):
            writer.record(
                Event(
                    time_us=number,
                    process=number,
                    type=EventType.OK,
                    function=Function.TXN,
                    micro=(Send("t-0", number, number),),
                    detail=detail.decode(),
                )
            )
    stored = pq.read_table(tmp_path / CLUSTERED)
    pq.write_table(stored.replace_schema_metadata({**stored.schema.metadata, META_VERSION: b"4"}), tmp_path / CLUSTERED)
    ends = [msgspec.json.decode(event.detail or "", type=TransactionEnd) for event in read_events(tmp_path)]
    assert [end.producer for end in ends] == [ProducerEpoch(7, 3), None]


def test_a_history_of_layout_5_is_read_without_isolation_levels(tmp_path: Path) -> None:
    poll = Event(time_us=1, process=1, type=EventType.OK, function=Function.POLL, isolation="read_committed")
    with HistoryWriter(tmp_path, "run") as writer:
        writer.record(poll)
    assert [event.isolation for event in read_events(tmp_path)] == ["read_committed"]
    stored = pq.read_table(tmp_path / CLUSTERED).drop_columns(["isolation"])
    pq.write_table(stored.replace_schema_metadata({**stored.schema.metadata, META_VERSION: b"5"}), tmp_path / CLUSTERED)
    assert [event.isolation for event in read_events(tmp_path)] == [None]


def test_a_history_of_a_later_layout_is_refused(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path, "run") as writer:
        writer.record(_send(7, 3, time_us=1))
    stored = pq.read_table(tmp_path / CLUSTERED)
    pq.write_table(stored.replace_schema_metadata({**stored.schema.metadata, META_VERSION: b"7"}), tmp_path / CLUSTERED)
    with pytest.raises(HistoryError, match="has history layout 7, and this version reads 2, 3, 4, 5, 6"):
        list(read_events(tmp_path))
