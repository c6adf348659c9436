"""The chart of a finding is the same from the rows that it needs as from a whole history, of which they are few."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markupsafe import Markup

from bench import synthetic
from bench.committed_transactions import CommittedBlock
from bench.group_work import GroupBlock
from bench.pipeline_work import PipelineBlock
from bench.synthetic import BlockBuilder, write_synthetic
from checkers import CommitsView, EventPlace, Finding, SkippedRecord, TransactionRead, TransactionsView, check_one
from checkers.anomalies.divergent_state import DivergentState
from checkers.anomalies.transactions import HangingTransaction, ZombieWrite
from checkers.anomalies.two_owners import StaleCommit
from harness.campaigns.report import group_chart as group_charts
from harness.campaigns.report import transaction_chart as transaction_charts
from harness.campaigns.report.finding_chart import RENDERERS, finding_chart
from harness.campaigns.report.renderer import Material
from harness.records.files import HISTORY
from tests.harness.campaigns.report.test_planted_findings import MARKS
from workloads import Event, EventType, Function, GroupMember, Poll, Reached, Record, Send, TransactionEnd
from workloads.history import HistoryWriter, read_events

#: Commits, or transactions, that are drawn here.
LAST = 6


@pytest.fixture
def few_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((group_charts, "COMMITS_MAX"), (transaction_charts, "TRANSACTIONS_MAX")):
        monkeypatch.setattr(module, name, LAST)


def drawn(run: Path, events: Iterable[Event], finding: Finding) -> Markup:
    view = finding.view()
    return RENDERERS[type(view)].draw(finding.key, view, Material(run, events))


def findings_in(run: Path) -> list[Finding]:
    return [finding for findings in check_one(run / HISTORY).anomalies.values() for finding in findings]


@pytest.mark.parametrize("name", MARKS)
def test_a_chart_of_the_rows_that_it_needs_is_the_chart_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(synthetic, "WRITES", 32)
    write_synthetic(tmp_path / HISTORY, 300, planted=1, plants=(name,))
    findings = findings_in(tmp_path)
    assert findings
    for finding in findings:
        whole = drawn(tmp_path, list(read_events(tmp_path / HISTORY)), finding)
        assert whole
        assert finding_chart(tmp_path, finding, []).drawing == whole


@pytest.mark.usefixtures("few_drawn")
@pytest.mark.parametrize(
    "builder", [GroupBlock, PipelineBlock, CommittedBlock], ids=["groups", "pipelines", "transactions"]
)
def test_few_events_of_a_history_are_needed_however_many_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: type[BlockBuilder]
) -> None:
    monkeypatch.setattr(synthetic, "WRITES", 32)
    write_synthetic(tmp_path / HISTORY, 1_000, planted=1, builder=builder)
    events = list(read_events(tmp_path / HISTORY))
    (finding,) = findings_in(tmp_path)
    view = finding.view()
    assert isinstance(view, CommitsView | TransactionsView)
    needed = list(read_events(tmp_path / HISTORY, RENDERERS[type(view)].needed(finding.key, view)))
    # Of each transaction its begin, its end, and polls that tell where its records are.
    assert 0 < len(needed) <= 2 * LAST * 4 < len(events) / 10
    assert drawn(tmp_path, needed, finding) == drawn(tmp_path, events, finding) != ""


class Log:
    """A history in which one event follows the other, of one log partition."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, process: int, kind: EventType, function: Function, **rest: Any) -> EventPlace:
        time_us = 10 * len(self.events)
        self.events.append(Event(time_us=time_us, process=process, type=kind, function=function, **rest))
        return EventPlace(len(self.events) - 1)

    def of_group(self, process: int, kind: EventType, function: Function, **rest: Any) -> EventPlace:
        detail = msgspec.json.encode(GroupMember(group="g")).decode()
        return self.event(process, kind, function, detail=detail, **rest)

    def commit(self, offset: int) -> None:
        for kind in (EventType.INVOKE, EventType.OK):
            self.of_group(1, kind, Function.COMMIT, micro=(Reached("t-0", offset),))

    def poll(self, process: int, offset: int, value: int) -> EventPlace:
        self.event(process, EventType.INVOKE, Function.POLL, micro=(Poll(),))
        return self.event(process, EventType.OK, Function.POLL, micro=(Poll({"t-0": (Record(offset, value),)}),))

    def begin(self, process: int, *values: int) -> None:
        self.event(process, EventType.INVOKE, Function.TXN, micro=tuple(Send("t-0", value) for value in values))

    def end(self, process: int, *values: int, ending_us: int | None = None) -> EventPlace:
        now_us = 10 * len(self.events)
        detail = TransactionEnd(transactional_id="x", number=0, asked="commit", ending_us=ending_us or now_us)
        sends = tuple(Send("t-0", value, value) for value in values)
        return self.event(process, EventType.OK, Function.TXN, micro=sends, detail=msgspec.json.encode(detail).decode())

    def transactions(self, values: Iterable[int]) -> None:
        for value in values:
            self.begin(2, value)
            self.end(2, value)


def skipped(log: Log) -> Finding:
    for offset in range(4):
        log.commit(offset)
    log.poll(3, 5, 50)
    for offset in range(6, 40):
        log.commit(offset)
    log.poll(4, 5, 50)
    return SkippedRecord(key="t-0", group="g", value=50, offset=5, committed=6)


def answered_late(log: Log) -> Finding:
    for offset in range(4):
        log.commit(offset)
    successor = log.of_group(1, EventType.OK, Function.REBALANCE, partitions=("t-0",))
    begun = log.of_group(2, EventType.INVOKE, Function.COMMIT, micro=(Reached("t-0", 4),))
    for offset in range(6, 40):
        log.commit(offset)
    log.of_group(2, EventType.OK, Function.COMMIT, micro=(Reached("t-0", 4),))
    return StaleCommit(key="t-0", group="g", offset=4, op=begun, successor=successor)


def read_early(log: Log) -> Finding:
    log.transactions(range(3))
    log.begin(5, 3)
    reader = log.poll(6, 3, 3)
    log.transactions(range(4, 40))
    writer = log.end(5, 3)
    return TransactionRead(key="t-0", value=3, writer=writer, reader=reader)


def zombie(log: Log) -> Finding:
    log.transactions(range(3))
    log.begin(5, 3)
    ending_us = 10 * len(log.events)
    log.transactions(range(4, 40))
    writer = log.end(5, 3, ending_us=ending_us)
    return ZombieWrite(key="t-0", value=3, late_us=1, writer=writer, reader=log.poll(6, 3, 3))


def hanging(log: Log) -> Finding:
    log.begin(5, 0, 1, 2)
    log.end(5, 0, 1, 2)
    log.transactions(range(3, 40))
    op = log.event(6, EventType.OK, Function.STABLE, micro=(Reached("t-0", 1),))
    return HangingTransaction(key="t-0", last_stable_offset=1, high_watermark=40, waited_us=1, op=op)


def read_again(log: Log) -> Finding:
    """The last that a reader got of an offset counts, also where that is of another key."""
    for value in (0, 1):
        log.event(7, EventType.INVOKE, Function.SEND, micro=(Send("t-0", value, record_key=value),))
        log.event(7, EventType.OK, Function.SEND, micro=(Send("t-0", value, 0, record_key=value),))
        log.poll(8, 0, value)
    log.event(8, EventType.OK, Function.DRAIN, partitions=("t-0",), offset=1)
    return DivergentState(key="t-0", record_key=0, states={})


@pytest.mark.usefixtures("few_drawn")
@pytest.mark.parametrize("told", [skipped, answered_late, read_early, zombie, hanging, read_again])
def test_what_happened_later_takes_no_place_in_a_chart(tmp_path: Path, told: Callable[[Log], Finding]) -> None:
    log = Log()
    finding = told(log)
    with HistoryWriter(tmp_path / HISTORY, "r") as writer:
        for event in log.events:
            writer.record(event)
    whole = drawn(tmp_path, list(read_events(tmp_path / HISTORY)), finding)
    assert whole
    assert finding_chart(tmp_path, finding, []).drawing == whole
