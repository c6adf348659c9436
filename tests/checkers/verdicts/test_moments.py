"""Identities are of all findings, whatever a verdict lists."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from checkers.columns.replica_file import REPLICAS_SCHEMA, Ends, PartitionEnd, TransactionPart
from checkers.local import check_one, check_rows
from checkers.spark.pipeline import check
from checkers.verdicts.judgement import Judgement, judge
from checkers.verdicts.moments import MarkedMoment, joined, marked
from checkers.verdicts.verdict import Verdict
from tests.checkers.anomalies.test_transaction_anomalies import Scene as TransactionScene
from tests.checkers.scenes import Scene
from tests.workloads.history.event_strategies import record_all
from workloads import EventType, Function, Send
from workloads.history import HistoryWriter
from workloads.history.rows import Rows
from workloads.operations import HARNESS
from workloads.settings import Settings

WEAK = Settings(acks=1)
#: Lost writes under the first fault and under the second, which comes when a verdict lists no more.
FIRST, SECOND = range(100, 140), range(200, 205)


def lossy() -> Scene:
    """Two log partitions that lose the same under two faults of other names, and then show that it is gone."""
    scene = Scene()
    scene.phase("break")
    for sequence, (story, values) in enumerate((("leader-ahead", FIRST), ("follower", SECOND))):
        begun_us = 10 * len(scene.events)
        facts = {"story": story, "group": sequence, "targets": [0], "begun_us": begun_us, "ended_us": None}
        scene.fault("begin", sequence, **facts)
        for value in values:
            scene.send(value, value, key="t-0")
            scene.send(value + 1_000, value, key="t-1")
        scene.fault("end", sequence, **facts | {"ended_us": 10 * len(scene.events)})
    scene.phase("heal")
    for key, value in (("t-0", 999), ("t-1", 1_999)):
        scene.send(value, 999, key=key)
        scene.poll((999, value), key=key)
    scene.phase("end")
    return scene


def rows_of(scene: Scene | TransactionScene) -> Rows:
    rows = Rows()
    for event in scene.events:
        rows.add(event)
    return rows


def judgement(verdict: Verdict, settings: Settings = WEAK) -> Judgement:
    return judge(settings, verdict)


@pytest.mark.parametrize("shown", [1, 32, None])
def test_a_defect_behind_the_listed_findings_has_its_identity(shown: int | None) -> None:
    verdict = check_rows(rows_of(lossy()), shown=shown)
    assert verdict.counts["lost-write"] == 90
    assert len(verdict.anomalies["lost-write"]) == (shown or 90)
    assert (
        judgement(verdict).identities["lost-write"] == judgement(check_rows(rows_of(lossy()))).identities["lost-write"]
    )
    assert len(judgement(verdict).identities["lost-write"]) == 1
    assert {key for moment in verdict.moments["lost-write"] for key in moment.keys} == {"t-0", "t-1"}
    assert all(not moment.values for moments in verdict.moments.values() for moment in moments)


@pytest.mark.system
def test_a_history_that_is_judged_in_parts_has_the_same(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history", "run") as writer:
        record_all(writer, lossy().events)
    (in_parts,) = check([tmp_path])
    assert in_parts.moments == check_one(tmp_path).moments
    assert judgement(in_parts).identities == judgement(check_one(tmp_path)).identities


def test_the_fate_of_a_write_that_is_not_listed_marks_its_defect() -> None:
    copy = {"partition": "t-0", "node": 1, "offset": SECOND[-1], "value": SECOND[-1]}
    ends = Ends(
        partitions={key: PartitionEnd(leader=1, isr=(1,), running=(1,), end_offset=1_000) for key in ("t-0", "t-1")},
        held={"t-0": [1, 3], "t-1": [1]},
    )
    verdict = check_rows(rows_of(lossy()), replicas=(ends, table(copy)))
    assert {finding.fate for finding in verdict.anomalies["lost-write"]} == {"destroyed"}
    identities = judgement(verdict).identities["lost-write"]
    assert len(identities) == 2
    assert [*judgement(verdict).marks.values()] == ["in the log"]
    whole = check_rows(rows_of(lossy()), shown=None, replicas=(ends, table(copy)))
    assert {*judgement(whole).identities["lost-write"]} == {*identities}


def table(*rows: dict[str, object]) -> pa.Table:
    usual = {field.name: 0 for field in REPLICAS_SCHEMA}
    return pa.Table.from_pylist([usual | row for row in rows], REPLICAS_SCHEMA)


RECORD, ABORT, COMMIT = TransactionPart.IN_TRANSACTION, TransactionPart.ABORT, TransactionPart.COMMIT
#: A row: the log partition, the offset, the value, the producer's id and epoch, the part.
Row = tuple[str, int, int, int, int, TransactionPart]
MINE: Row = ("x-0", 0, 1, 40, 3, RECORD)
LATE: Row = ("x-0", 4, -9, 40, 5, COMMIT)
WORDS = (
    "On the disk of broker 1 the record at offset 0 of x-0 has producer epoch 3, and the next marker of its producer, "
    "which commits, epoch 5: that of a later transaction. The record's own transaction never ended there (finding 008)."
)


@pytest.mark.parametrize(
    ("rows", "mark"),
    [
        ([MINE, LATE], "no marker"),
        ([("x-0", 2, -9, 41, 9, ABORT), MINE, ("x-0", 9, -9, 40, 9, ABORT), LATE], "no marker"),
        ([MINE, ("x-0", 3, -9, 40, 4, COMMIT), LATE], ""),
        ([MINE, ("x-0", 3, -9, 40, 3, ABORT)], ""),
        ([MINE, ("x-0", 3, -9, 41, 6, COMMIT), ("y-0", 4, -9, 40, 6, COMMIT)], ""),
        ([("y-0", 0, 1, 40, 3, RECORD), ("y-0", 6, -9, 40, 6, COMMIT)], ""),
        ([], ""),
    ],
)
def test_a_marker_of_a_later_transaction_marks_a_torn_one(rows: list[Row], mark: str) -> None:
    scene = TransactionScene()
    scene.add(0, HARNESS, EventType.INFO, Function.PHASE, detail='{"mark": "break"}')
    scene.transaction((1, 2), EventType.OK, Send("x-0", 1, 0), Send("y-0", 2, 0))
    scene.transaction((3, 4), EventType.OK, Send("x-0", 3, 5), Send("y-0", 4, 5))
    scene.read(5, (5, 3))
    scene.read(6, (0, 2), (5, 4), key="y-0")
    names = ("partition", "offset", "value", "producer_id", "producer_epoch", "part")
    held = table(*({"node": 1} | dict(zip(names, row, strict=True)) for row in rows))
    verdict = check_rows(rows_of(scene), shown=1, replicas=(Ends(), held))
    (finding,) = verdict.anomalies["torn-transaction"]
    assert (finding.mark, [moment.mark for moment in verdict.moments["torn-transaction"]]) == (mark, [mark])
    assert finding.words().endswith(WORDS if mark else "is gone.")


def test_moments_of_two_parts_are_each_there_once() -> None:
    first = MarkedMoment(5, keys=["a"], values={"a": [1]})
    second = MarkedMoment(5, keys=["a", "b"], values={"a": [2], "b": [3]})
    both = joined([first, MarkedMoment(None)], [second, MarkedMoment(None)])
    assert both == [MarkedMoment(5, keys=["a", "b"], values={"a": [1, 2], "b": [3]}), MarkedMoment(None)]
    assert marked(both, lambda key, values: [f"{key}{value}" for value in values]) == [
        *(MarkedMoment(5, mark, [mark[0]]) for mark in ("a1", "a2", "b3")),
        MarkedMoment(None),
    ]
