"""The invariants of coordinators and of what logs keep: each is broken by what it names, and by nothing beside."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.groups.coordinator import LOG as GROUPS_LOG
from harness.broker.core.invariants import (
    cleaning_keeps,
    commit_of_a_member,
    decision_follows,
    loaded_as_logged,
    marker_as_decided,
    member_lives_by_its_session,
    offsets_live_with_members,
    one_member_a_partition,
    only_its_producer_decides,
    producers_grow,
    retention_keeps_young,
    tombstone_stays,
    transaction_ends_in_time,
    transactions_as_logged,
)
from harness.broker.core.logged import LoggedTransactions, logged_groups
from harness.broker.core.messages import Marker, RecordBatch
from harness.broker.core.transaction_coordinator import LOG as TRANSACTIONS_LOG
from harness.broker.core.transaction_coordinator import TransactionCoordinator, TransactionRecord, TransactionState
from harness.broker.core.types import CONTROLLER, NONE, BrokerConfig, NodeId, TopicPartition
from harness.worlds.simulated.invariants import InvariantBrokenError
from tests.harness.broker.core.group_lab import T0, GroupLab, LabMember
from tests.harness.broker.core.transaction_lab import TransactionLab

AT, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
B = NodeId(1)
EMPTY = TransactionRecord(7, 3, 1_000)
ONGOING = replace(EMPTY, state=TransactionState.ONGOING, partitions=(AT,), begun_ms=5)
PREPARED = replace(ONGOING, state=TransactionState.PREPARE_COMMIT, producer_epoch=4)
COMPLETE = replace(PREPARED, state=TransactionState.COMPLETE_COMMIT, partitions=())


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        (EMPTY, ONGOING, True),
        (EMPTY, replace(EMPTY, producer_epoch=4), True),
        (EMPTY, EMPTY, False),
        (EMPTY, PREPARED, False),
        (ONGOING, replace(ONGOING, partitions=(AT, OTHER)), True),
        (ONGOING, replace(ONGOING, partitions=(OTHER,)), False),
        (ONGOING, replace(ONGOING, begun_ms=6), False),
        (ONGOING, PREPARED, True),
        (ONGOING, replace(PREPARED, partitions=()), False),
        (ONGOING, replace(PREPARED, partitions=(AT, OTHER)), False),
        (ONGOING, replace(PREPARED, producer_epoch=2), False),
        (ONGOING, replace(PREPARED, producer_id=8), False),
        (PREPARED, COMPLETE, True),
        (PREPARED, replace(COMPLETE, state=TransactionState.COMPLETE_ABORT), False),
        (PREPARED, replace(PREPARED, state=TransactionState.PREPARE_ABORT), False),
        (COMPLETE, PREPARED, False),
        (COMPLETE, replace(ONGOING, producer_epoch=4), True),
    ],
)
def test_a_transaction_ends_once_and_as_it_was_decided(
    before: TransactionRecord, after: TransactionRecord, *, holds: bool
) -> None:
    assert (decision_follows("x", before, after) is None) is holds


@pytest.mark.parametrize(
    ("rule", "holds", "breaks"),
    [
        (transactions_as_logged, (B, ({}, []), ({}, [])), (B, ({}, []), ({}, [(7, 0, 1)]))),
        (producers_grow, (B, 7, 3, 3, 9), (B, 7, 3, 2, 9)),
        (only_its_producer_decides, ("x", (7, 3), ONGOING), ("x", (7, 2), ONGOING)),
        (only_its_producer_decides, ("x", (7, 3), ONGOING), ("x", (8, 3), ONGOING)),
        (loaded_as_logged, ("x", 1, 1), ("x", 1, 2)),
        (commit_of_a_member, ("g", "a", 2, {"a": 2}), ("g", "a", 1, {"a": 2})),
        (commit_of_a_member, ("g", "", NONE, {}), ("g", "", NONE, {"a": 2})),
        (commit_of_a_member, ("g", "a", 2, {"a": 2}), ("g", "b", 2, {"a": 2})),
        (one_member_a_partition, ("g", {"a": {AT}, "b": {OTHER}}), ("g", {"a": {AT}, "b": {AT}})),
        (offsets_live_with_members, ("g", 0, 11, 10), ("g", 1, 11, 10)),
        (offsets_live_with_members, ("g", 0, 11, 10), ("g", 0, 10, 10)),
        (tombstone_stays, (B, 1, 11, 10), (B, 1, 10, 10)),
        (retention_keeps_young, (B, 1, 11, 10), (B, 1, 10, 10)),
    ],
)
def test_each_is_broken_by_what_it_names(rule: Any, holds: tuple[Any, ...], breaks: tuple[Any, ...]) -> None:
    assert rule(*holds) is None
    name, text = rule(*breaks)
    assert name == rule.__name__.replace("_", "-")
    assert text


@pytest.mark.parametrize("given_up", [True, False])
@pytest.mark.parametrize(("silent_us", "is_over"), [(10, False), (11, True)])
def test_a_member_is_given_up_when_its_session_is_over_and_only_then(
    silent_us: int, *, is_over: bool, given_up: bool
) -> None:
    broken = member_lives_by_its_session("g", "a", silent_us, 10, given_up=given_up)
    assert (broken is None) is (given_up is is_over)


@pytest.mark.parametrize(
    ("open_ms", "aborted", "holds"),
    [(100, False, True), (110, False, True), (111, False, False), (100, True, False), (101, True, True)],
)
def test_a_transaction_is_aborted_at_the_check_after_its_time_out_and_not_before(
    open_ms: int, *, aborted: bool, holds: bool
) -> None:
    assert (transaction_ends_in_time("x", open_ms, 100, 10, aborted=aborted) is None) is holds


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_is_to_be_kept_is_kept(*, is_kept: bool) -> None:
    assert (cleaning_keeps(B, "a record", 1, is_kept=is_kept) is None) is is_kept


def test_a_marker_says_what_is_committed() -> None:
    assert marker_as_decided((7, 4), PREPARED, commit=True) is None
    assert marker_as_decided((7, 4), PREPARED, commit=False) is not None
    assert marker_as_decided((7, 3), PREPARED, commit=True) is not None
    assert marker_as_decided((7, 4), ONGOING, commit=True) is not None
    assert marker_as_decided((7, 4), None, commit=True) is not None


def test_a_log_says_which_transactions_are_open_and_which_were_aborted() -> None:
    logged = LoggedTransactions()
    plain = RecordBatch(1, 9, "", 0, 0, 7, 3, 0, transactional=True)
    epochs = [
        logged.read(replace(plain, base_offset=offset, **changed))
        for offset, changed in enumerate(
            (
                {},
                {"producer_id": 8},
                {"marker": Marker(False, 0, 2), "producer_epoch": 4},
                {"producer_id": 8, "marker": Marker(True, 0, 2)},
                {"producer_id": 9},
                {"producer_epoch": 3},
            )
        )
    ]
    assert (logged.open, logged.aborted) == ({9: 4, 7: 5}, [(7, 0, 2)])
    assert epochs == [None, None, (3, 4), None, None, (4, 3)]
    assert [logged.stable_end(high_watermark) for high_watermark in (6, 4, 3, 2)] == [4, 4, 1, 0]


# --- where they are looked at ----------------------------------------------------------------------------------------


def test_a_commit_of_a_member_that_was_given_up_rings_where_it_is_taken() -> None:
    lab = GroupLab(BrokerConfig(session_timeout_ms=3_000, planted_bug="commit-of-any-member"))
    a = lab.member("a")
    old = LabMember("a")
    old.epoch = a.epoch - 1
    with pytest.raises(InvariantBrokenError, match="commit-of-a-member"):
        lab.commit(old, 5)


def test_offsets_that_a_new_coordinator_does_not_know_ring_at_its_first_answer() -> None:
    lab = GroupLab(BrokerConfig(session_timeout_ms=3_000, planted_bug="load-first-commits"))
    a = lab.member("a")
    lab.commit(a, 5)
    lab.commit(a, 7)
    lab.move(2)
    with pytest.raises(InvariantBrokenError, match="loaded-as-logged"):
        lab.committed()


@pytest.mark.parametrize("moved", [False, True])
def test_a_transaction_that_stays_open_rings_under_each_coordinator(
    monkeypatch: pytest.MonkeyPatch, *, moved: bool
) -> None:
    monkeypatch.setattr(TransactionCoordinator, "_abort_the_old", lambda self: None)
    lab = TransactionLab(timeout_ms=1_000)
    lab.in_transaction("a")
    if moved:
        lab.run(9_000)
        lab.send(CONTROLLER, messages.MoveLeader(lab.correlation(), TRANSACTIONS_LOG.topic, 0, 2))
    lab.run(10_000)
    with pytest.raises(InvariantBrokenError, match=r"transaction-ends-in-time: .* stays open"):
        lab.run(3_000)


def test_what_a_group_has_committed_is_read_from_its_log() -> None:
    lab = GroupLab()
    a = lab.member("a")
    lab.commit(a, 5)
    lab.commit(a, 7)
    (coordinator,) = lab.brokers[lab.coordinator].group_coordinators
    assert coordinator.log == GROUPS_LOG
    group = logged_groups(coordinator.committed())["g"]
    assert {partition: each.offset for partition, each in group.offsets.items()} == {T0: 7}
    assert (set(group.members.members), group.pending) == ({"a"}, {})  # type: ignore[union-attr]


def test_a_follower_that_forgets_aborts_rings_before_it_leads() -> None:
    lab = TransactionLab(BrokerConfig(planted_bug="forget-abort-on-follower"))
    identity = lab.in_transaction("a")
    lab.end(identity, commit=False)
    lab.complete()
    lab.send(CONTROLLER, messages.MoveLeader(lab.correlation(), AT.topic, AT.partition, 1))
    with pytest.raises(InvariantBrokenError, match="transactions-as-logged"):
        lab.run(500)
