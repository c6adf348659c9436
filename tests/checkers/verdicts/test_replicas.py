"""Replicas that differ where both say that the record is committed."""

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

from checkers.anomalies.divergent_replicas import DivergentReplicas, ReplicaLog, divergent_replicas
from checkers.anomalies.lost_write import LostWrite
from checkers.columns.replica_file import (
    OF_TRANSACTIONS_AND_KEYS,
    REPLICAS_FILE,
    REPLICAS_META,
    REPLICAS_SCHEMA,
    Ends,
    PartitionEnd,
)
from checkers.local import check_one
from checkers.spark.pipeline import check
from checkers.verdicts.replicas import add_to
from checkers.verdicts.verdict import Verdict
from tests.checkers.brute_force import divergent_offsets
from tests.checkers.scenes import Scene
from tests.workloads.history.event_strategies import record_all
from workloads.history import HistoryWriter


def replica(
    node: int, digests: dict[int, int], high_watermark: int, epochs: dict[int, int] | None = None
) -> ReplicaLog:
    offsets = sorted(digests)
    held = epochs or dict.fromkeys(offsets, 0)
    columns = (offsets, [digests[offset] for offset in offsets], [held[offset] for offset in offsets])
    numbers, values, leader_epochs = (np.array(column, dtype=np.int64) for column in columns)
    return ReplicaLog(
        node=node, offsets=numbers, digests=values, leader_epochs=leader_epochs, high_watermark=high_watermark
    )


def test_a_committed_offset_with_two_records_is_found() -> None:
    logs = [replica(1, {4: 40, 5: 50}, 6), replica(2, {4: 40, 5: 51}, 6)]
    assert divergent_replicas({"t-0": logs}) == [DivergentReplicas(key="t-0", offset=5, replicas={1: 50, 2: 51})]


def test_tails_above_a_high_watermark_may_differ() -> None:
    assert divergent_replicas({"t-0": [replica(1, {5: 50}, 6), replica(2, {5: 51}, 5)]}) == []


def test_a_replica_that_begins_later_or_has_holes_does_not_differ() -> None:
    assert divergent_replicas({"t-0": [replica(1, {4: 40, 5: 50, 6: 60}, 7), replica(2, {6: 60}, 7)]}) == []


def test_one_replica_has_nothing_to_differ_from() -> None:
    assert divergent_replicas({"t-0": [replica(1, {4: 40}, 5)], "t-1": []}) == []


def test_one_record_under_two_leader_epochs_is_found() -> None:
    held = {4: 40, 5: 50}
    logs = [replica(1, held, 6, {4: 0, 5: 2}), replica(2, held, 6, {4: 0, 5: 3}), replica(3, held, 6, {4: 0, 5: 2})]
    (finding,) = divergent_replicas({"t-0": logs})
    assert (finding.offset, finding.replicas, finding.epochs) == (5, {1: 50, 2: 50, 3: 50}, {1: 2, 2: 3, 3: 2})


RECORDS = st.dictionaries(st.integers(0, 8), st.tuples(st.integers(0, 1), st.integers(0, 1)))


@given(st.lists(st.tuples(RECORDS, st.integers(0, 9)), max_size=4))
def test_what_is_found_is_what_comparing_every_pair_finds(logs: list[tuple[dict[int, tuple[int, int]], int]]) -> None:
    replicas = [
        replica(
            node,
            {offset: value for offset, (value, _) in log.items()},
            high_watermark,
            {offset: epoch for offset, (_, epoch) in log.items()},
        )
        for node, (log, high_watermark) in enumerate(logs)
    ]
    findings = divergent_replicas({"t-0": replicas})
    assert [finding.offset for finding in findings] == divergent_offsets(logs)


def test_a_verdict_with_divergent_replicas_is_not_valid() -> None:
    verdict = Verdict(history="h", valid=True)
    add_to(verdict, [], shown=None)
    assert verdict.valid is True
    add_to(verdict, [{"key": "t-0", "offset": 1, "replicas": {}}] * 3, shown=2)
    assert (verdict.valid, verdict.counts, len(verdict.anomalies["divergent-replicas"])) == (
        False,
        {"divergent-replicas": 3},
        2,
    )


ENDS = {"t-0": PartitionEnd(leader=1, isr=(1, 2), running=(1, 2), end_offset=3)}


def run_with(directory: Path, logs: dict[int, dict[int, int]], lost: int | None = None, **facts: Any) -> Path:
    """A run whose replicas of t-0 hold ``logs``: values by offset by node. Three writes were read, ``lost`` was not."""
    scene = Scene()
    scene.phase("break")
    for offset in range(3):
        scene.send(10 + offset, offset)
    if lost is not None:
        scene.send(lost, 1)
    scene.phase("heal")
    scene.phase("drain")
    scene.poll(*((offset, 10 + offset) for offset in range(3)), process=9)
    scene.drain(3)
    scene.phase("end")
    with HistoryWriter(directory / "history", "run") as writer:
        record_all(writer, scene.events)
    rest = tuple(OF_TRANSACTIONS_AND_KEYS.values())
    rows = [
        ("t-0", node, offset, 0, value, *rest) for node, log in logs.items() for offset, value in sorted(log.items())
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(REPLICAS_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, REPLICAS_SCHEMA, strict=True)]
    ends = Ends(**{"partitions": ENDS, "held": {"t-0": list(logs)}} | facts)
    schema = REPLICAS_SCHEMA.with_metadata({REPLICAS_META: msgspec.json.encode(ends)})
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), directory / REPLICAS_FILE)
    return directory


WHOLE = {0: 10, 1: 11, 2: 12}


def test_replicas_that_differ_below_the_end_are_found_in_a_run(tmp_path: Path) -> None:
    verdict = check_one(run_with(tmp_path, {1: WHOLE, 2: WHOLE | {1: 77}}))
    finding = DivergentReplicas(key="t-0", offset=1, replicas={1: 11, 2: 77})
    assert verdict.anomalies == {"divergent-replicas": [finding]}
    assert (verdict.valid, verdict.counts, verdict.replicas_compared) == (False, {"divergent-replicas": 1}, 1)


@pytest.mark.system
def test_spark_looks_at_replicas_as_the_plain_judgement_does(tmp_path: Path) -> None:
    run = run_with(tmp_path, {1: WHOLE, 2: WHOLE | {1: 77}}, lost=99)
    assert check([run]) == [check_one(run)]
    assert {"divergent-replicas", "lost-write"} <= check_one(run).counts.keys()


@pytest.mark.parametrize(
    ("why", "held", "end"),
    [
        ("above the end", {1: WHOLE | {3: 13}, 2: WHOLE | {3: 77}}, {}),
        ("out of sync", {1: WHOLE, 2: WHOLE | {1: 77}}, {"isr": (1,)}),
        ("it does not run, so it cannot truncate", {1: WHOLE, 2: WHOLE | {1: 77}}, {"running": (1,)}),
        ("the end is not known", {1: WHOLE, 2: WHOLE | {1: 77}}, {"end_offset": None}),
        ("it lags behind", {1: WHOLE, 2: {0: 10}}, {}),
        ("it was emptied", {1: WHOLE, 2: {}}, {}),
        ("it begins later", {1: WHOLE, 2: {2: 12}}, {}),
        ("it has a hole", {1: WHOLE, 2: {0: 10, 2: 12}}, {}),
    ],
)
def test_replicas_that_may_differ_are_no_finding(
    tmp_path: Path, why: str, held: dict[int, dict[int, int]], end: dict[str, Any]
) -> None:
    ends = {"t-0": msgspec.structs.replace(ENDS["t-0"], **end)}
    verdict = check_one(run_with(tmp_path, held, partitions=ends))
    assert (verdict.valid, verdict.counts) == (True, {}), why


def test_without_logs_nothing_is_said_of_replicas(tmp_path: Path) -> None:
    run = run_with(tmp_path, {1: WHOLE, 2: WHOLE | {1: 77}})
    (run / REPLICAS_FILE).unlink()
    verdict = check_one(run)
    assert (verdict.valid, verdict.replicas_compared) == (True, None)


def test_a_damaged_file_makes_the_verdict_unknown(tmp_path: Path) -> None:
    run = run_with(tmp_path, {1: WHOLE, 2: WHOLE})
    (run / REPLICAS_FILE).write_bytes(b"PAR1 no")
    verdict = check_one(run)
    assert verdict.valid == "unknown"
    assert REPLICAS_FILE in str(verdict.reason)


@pytest.mark.parametrize(
    ("held", "facts", "fate", "copies"),
    [
        ({1: WHOLE, 2: WHOLE}, {}, "destroyed", None),
        ({1: WHOLE, 3: {0: 10, 1: 99}}, {}, "hidden", [{"node": 3, "offset": 1}]),
        ({1: WHOLE | {3: 99}, 2: WHOLE}, {}, "hidden", [{"node": 1, "offset": 3}]),
        ({1: WHOLE | {1: 99}, 2: WHOLE | {1: 99}}, {}, "in the log", [{"node": n, "offset": 1} for n in (1, 2)]),
        ({1: WHOLE}, {"unreadable": {2: "gone"}}, "unknown", None),
        ({1: WHOLE}, {"damage": {"t-0": {2: "torn"}}}, "unknown", None),
        ({1: WHOLE}, {"held": {}}, "unknown", None),
    ],
)
def test_a_lost_write_is_hidden_or_destroyed(
    tmp_path: Path, held: dict[int, dict[int, int]], facts: dict[str, Any], fate: str, copies: object
) -> None:
    (finding,) = check_one(run_with(tmp_path, held, lost=99, **facts)).findings(LostWrite)
    assert (finding.value, finding.fate, msgspec.to_builtins(finding).get("copies")) == (99, fate, copies)
