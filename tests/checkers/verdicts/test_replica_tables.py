"""Replicas of a compacted log whose files give different tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.anomalies.divergent_tables import ReplicaRecords, divergent_tables
from checkers.columns.replica_file import (
    REPLICAS_FILE,
    REPLICAS_META,
    REPLICAS_SCHEMA,
    Ends,
    PartitionEnd,
    TransactionPart,
)
from checkers.local import check_one
from checkers.verdicts.verdict import Verdict
from tests.checkers.brute_force import divergent_keys
from tests.checkers.scenes import Scene
from tests.workloads.history.event_strategies import examples, record_all
from workloads.history import HistoryWriter

#: The name of the anomaly.
TABLES = "divergent-tables"
END = PartitionEnd(leader=1, isr=(1, 2), running=(1, 2), end_offset=10, compacted=True)
#: (value, key, producer, is tombstone, part) of a record.
Row = tuple[int, int, int, bool, int]


def record(value: int, key: int = 7, *, deletes: bool = False) -> Row:
    return value, key, -1, deletes, TransactionPart.RECORD


def written(value: int, key: int = 7, *, producer: int = 5) -> Row:
    return value, key, producer, False, TransactionPart.IN_TRANSACTION


def marker(part: TransactionPart, *, producer: int = 5) -> Row:
    return -77, -1, producer, False, part


A, B, GONE = record(1), record(2), record(3, deletes=True)
COMMIT, ABORT = marker(TransactionPart.COMMIT), marker(TransactionPart.ABORT)


def judged(directory: Path, logs: dict[int, dict[int, Row]], end: PartitionEnd = END, **facts: Any) -> Verdict:
    """The verdict on a run whose replicas of t-0 hold these records by offset by node; key 8 is written too."""
    scene = Scene()
    scene.phase("break")
    scene.keyed(9, 9, 8)
    scene.phase("drain")
    scene.poll((9, 9), process=9)
    scene.drain(10)
    scene.phase("end")
    with HistoryWriter(directory / "history", "run") as writer:
        record_all(writer, scene.events)
    rows = [
        ("t-0", node, offset, 0, value, key, deletes, producer, -1 if producer < 0 else 0, part)
        for node, log in logs.items()
        for offset, (value, key, producer, deletes, part) in sorted(({**log, 9: record(9, 8)}).items())
    ]
    columns = zip(zip(*rows, strict=True), REPLICAS_SCHEMA, strict=True)
    ends = Ends(**{"partitions": {"t-0": end}, "held": {"t-0": list(logs)}} | facts)
    schema = REPLICAS_SCHEMA.with_metadata({REPLICAS_META: msgspec.json.encode(ends)})
    arrays = [
        pa.array(map(int, column) if field.name == "tombstone" else column, field.type) for column, field in columns
    ]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), directory / REPLICAS_FILE)
    return check_one(directory)


@pytest.mark.parametrize(
    ("why", "first", "second", "states"),
    [
        ("a tombstone was missed", {}, {3: A}, {1: None, 2: 1}),
        ("a value was missed", {4: B}, {3: A}, {1: 2, 2: 1}),
        ("an aborted value lost its marker", {2: COMMIT}, {0: written(1), 2: COMMIT}, {1: None, 2: 1}),
        ("a commit was missed", {0: written(1), 1: COMMIT}, {0: written(1)}, {1: 1, 2: None}),
    ],
)
def test_tables_that_differ_are_found(
    tmp_path: Path, why: str, first: dict[int, Row], second: dict[int, Row], states: dict[int, int | None]
) -> None:
    verdict = judged(tmp_path, {1: first, 2: second})
    assert verdict.valid is False, why
    assert verdict.counts == {TABLES: 1}, why
    (finding,) = verdict.anomalies["divergent-tables"]
    assert (finding.key, finding.record_key, finding.replicas) == ("t-0", 7, states), why


@pytest.mark.parametrize(
    ("why", "first", "second"),
    [
        ("one is cleaned, the other is not", {4: B}, {3: A, 4: B}),
        ("the tombstone is left", {}, {3: A, 4: GONE}),
        ("an aborted value is left with its marker", {2: COMMIT}, {0: written(1), 1: ABORT, 2: COMMIT}),
        ("the transaction is open on both", {0: written(1)}, {0: written(1)}),
        ("another producer commits", {}, {0: written(1), 2: marker(TransactionPart.COMMIT, producer=6)}),
    ],
)
def test_logs_that_give_the_same_table_are_no_finding(
    tmp_path: Path, why: str, first: dict[int, Row], second: dict[int, Row]
) -> None:
    verdict = judged(tmp_path, {1: first, 2: second})
    assert (verdict.valid, verdict.counts) == (True, {}), why


@pytest.mark.parametrize(
    ("why", "end", "facts"),
    [
        ("it is out of sync", {"isr": (1,)}, {}),
        ("it does not run", {"running": (1,)}, {}),
        ("the end is not known", {"end_offset": None}, {}),
        ("it is above the end", {"end_offset": 3}, {}),
        ("retention may have taken the begin", {"compacted": False}, {}),
        ("a part could not be read", {}, {"damage": {"t-0": {2: "torn"}}}),
    ],
)
def test_logs_that_may_give_another_table_are_no_finding(
    tmp_path: Path, why: str, end: dict[str, Any], facts: dict[str, Any]
) -> None:
    verdict = judged(tmp_path, {1: {}, 2: {3: A}}, msgspec.structs.replace(END, **end), **facts)
    assert TABLES not in verdict.counts, why


def test_a_file_of_the_first_layout_is_read_and_says_nothing_of_keys(tmp_path: Path) -> None:
    judged(tmp_path, {1: {}, 2: {3: A}})
    old = pq.read_table(tmp_path / REPLICAS_FILE).select(REPLICAS_SCHEMA.names[:5])
    ends = Ends(version=1, partitions={"t-0": END}, held={"t-0": [1, 2]})
    pq.write_table(old.replace_schema_metadata({REPLICAS_META: msgspec.json.encode(ends)}), tmp_path / REPLICAS_FILE)
    verdict = check_one(tmp_path)
    assert (verdict.valid, verdict.counts, verdict.replicas_compared) == (True, {}, 1)


ROWS = st.tuples(
    st.integers(1, 3),
    st.integers(-1, 2),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from([int(part) for part in TransactionPart]),
)


@given(st.lists(st.lists(ROWS, max_size=6), max_size=3))
@examples(100)
def test_what_is_found_is_what_replaying_every_log_finds(logs: list[list[Row]]) -> None:
    replicas = []
    for node, log in enumerate(logs):
        numbers = np.array(log, dtype=np.int64).reshape(-1, 5).T
        names = ("values", "record_keys", "producer_ids", "tombstones", "parts")
        replicas.append(ReplicaRecords(node=node, **dict(zip(names, numbers, strict=True))))
    findings = divergent_tables({"t-0": replicas})
    assert [finding.record_key for finding in findings] == divergent_keys(logs)
