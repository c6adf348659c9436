"""The aim of a portfolio is met in its runs: each count is of what its text says, and of nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harness.broker.core import messages
from harness.broker.core.cleaner import Cleaner, Pass
from harness.broker.core.coordinated import records_under_way
from harness.broker.core.groups.coordinator import LOG as LOG_OF_GROUPS
from harness.broker.core.groups.group import Group
from harness.broker.core.invariants import Broken, offsets_live_with_members
from harness.broker.core.replica import Replica
from harness.broker.core.retention import ExpiredPart, Retention
from harness.broker.core.transaction_coordinator import TransactionCoordinator
from harness.broker.core.types import ErrorCode
from harness.lab.search import PLAIN
from harness.lab.search.hunting import alarms_of, without
from harness.lab.search.judged_run import JudgedRun, run_in_memory
from harness.worlds.simulated import coordinator_invariants
from harness.worlds.simulated.consumer import Assigned, ConsumerModel
from harness.worlds.simulated.transactional_producer import TransactionalProducerModel

SEED = 3
BY_NAME = {portfolio.name: portfolio for portfolio in PLAIN}


def run(name: str, number: int = 0) -> JudgedRun:
    judged_run = run_in_memory(BY_NAME[name].spec(SEED, number, {}))
    assert (judged_run.broken, judged_run.judgement.broken) == (None, {})
    return judged_run


@pytest.mark.parametrize(("name", "adds"), [("wide-transactions", True), ("transactions", False)])
def test_who_was_superseded_adds_a_log_partition_where_a_transaction_has_not_all(
    name: str, adds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[ErrorCode] = []
    right = TransactionalProducerModel._on_coordinator

    def noted(self: TransactionalProducerModel, now_us: int, answer: Any) -> None:
        if isinstance(answer, messages.AddPartitionsToTxnResponse):
            refused.append(answer.error)
        right(self, now_us, answer)

    monkeypatch.setattr(TransactionalProducerModel, "_on_coordinator", noted)
    run(name)
    assert (ErrorCode.PRODUCER_FENCED in refused or ErrorCode.INVALID_PRODUCER_EPOCH in refused) is adds


def test_a_reader_of_committed_records_begins_inside_a_transaction_that_is_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inside: list[int] = []
    right = ConsumerModel._take

    def noted(self: ConsumerModel, assigned: Assigned, part: messages.FetchedPartition) -> None:
        begin = part.batches[0].base_offset if part.batches else 0
        inside.extend(each.first_offset for each in part.aborted if each.first_offset < begin)
        right(self, assigned, part)

    monkeypatch.setattr(ConsumerModel, "_take", noted)
    run("long-transactions")
    assert inside


def test_segments_expire_within_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[ExpiredPart] = []
    right = Retention.expire

    def noted(*asked: Any) -> ExpiredPart | None:
        part = right(*asked)
        gone.extend(each for each in (part,) if each is not None)
        return part

    monkeypatch.setattr(Retention, "expire", noted)
    run("expiring")
    assert sum(part.records for part in gone) > 0


@pytest.mark.parametrize(
    ("name", "tombstones"),
    [
        ("compacted", False),
        ("compacted-for-good", True),
        ("compacted-transactions", True),
        ("cleaned-log-of-groups", False),
        ("cleaned-log-of-transactions", False),
    ],
)
def test_logs_are_cleaned_and_of_one_portfolio_tombstones_go(
    name: str, tombstones: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is cleaned of other topics: what is cleaned there is the log of a coordinator."""
    passes: list[Pass] = []
    right = Cleaner.clean

    def noted(*asked: Any) -> Pass | None:
        done = right(*asked)
        passes.extend(each for each in (done,) if each is not None)
        return done

    monkeypatch.setattr(Cleaner, "clean", noted)
    run(name)
    assert sum(each.records for each in passes) > 0
    assert (sum(each.tombstones for each in passes) > 0) is tombstones


def test_a_group_that_is_forgotten_while_its_members_live_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members are there, and do nothing, for longer than offsets.retention.minutes.

    To a history that tells this time the group may have been without members; an invariant knows better.
    """
    assert alarms_of(BY_NAME["long-lived-groups"].spec(SEED, 0, {})) == ()
    monkeypatch.setattr(Group, "idle", lambda self, now_us, retention_us: now_us - self.changed_us > retention_us)
    rings = alarms_of(BY_NAME["long-lived-groups"].spec(SEED, 0, {}))
    assert [alarm.by for alarm in rings] == ["offsets-live-with-members"]


def test_a_group_without_members_is_forgotten_while_invariants_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members have left; where its offsets go too early, that is an alarm."""
    looked: list[int] = []

    def noted(group: str, members: int, idle_us: int, retention_us: int) -> Broken | None:
        looked.append(members)
        return offsets_live_with_members(group, members, idle_us, retention_us)

    monkeypatch.setattr(coordinator_invariants, "offsets_live_with_members", noted)
    run("long-lived-groups")
    assert looked == [0]
    right = Group.idle
    monkeypatch.setattr(Group, "idle", lambda self, now_us, retention_us: right(self, now_us, retention_us // 2))
    rings = alarms_of(BY_NAME["long-lived-groups"].spec(SEED, 0, {}))
    assert [alarm.by for alarm in rings] == ["offsets-live-with-members"]


def test_a_transaction_is_aborted_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    aborted: list[bool] = []
    right = TransactionCoordinator._abort_the_old

    def noted(self: TransactionCoordinator) -> None:
        before = records_under_way(self)
        right(self)
        aborted.extend(record is not before.get(name) for name, record in records_under_way(self).items())

    monkeypatch.setattr(TransactionCoordinator, "_abort_the_old", noted)
    run("pipelines")
    assert any(aborted)


def test_offsets_arrive_when_their_transaction_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[ErrorCode] = []
    right = Replica._report_refusal

    def noted(self: Replica, batch: messages.RecordBatch, error: ErrorCode) -> None:
        if self.partition == LOG_OF_GROUPS and batch.marker is None:
            refused.append(error)
        right(self, batch, error)

    monkeypatch.setattr(Replica, "_report_refusal", noted)
    run("late-offsets-of-pipelines")
    assert refused
    assert {*refused} == {ErrorCode.INVALID_PRODUCER_EPOCH}


def test_under_version_1_late_offsets_set_the_group_back_and_records_are_done_again() -> None:
    """The producer has one epoch for all its transactions, so the leader of the log cannot tell (KIP-890)."""
    changed = {"transaction.version": 1}
    spec = BY_NAME["late-offsets-of-pipelines"].spec(1, 2, changed)
    assert {alarm.by for alarm in alarms_of(spec)} == {"group-went-back", "doubled-effect"}
    assert alarms_of(without(spec, changed)) == ()


@pytest.mark.parametrize(
    ("name", "apis"),
    [
        ("overtaken-messages", {"Produce", "AlterPartition", "Fetch"}),
        ("late-requests-of-transactions", {"EndTxn", "WriteTxnMarkers", "AddPartitionsToTxn", "Produce"}),
    ],
)
def test_messages_of_each_api_are_held(name: str, apis: set[str]) -> None:
    held: Counter[str] = Counter()
    for number in range(6):
        judged_run = run(name, number)
        for receipt in judged_run.receipts:
            api = getattr(judged_run.schedule.steps[receipt.sequence].fault, "api", "")
            held[api] += int((receipt.end_evidence or {}).get("held", 0))
    assert {api for api, count in held.items() if count} >= apis
