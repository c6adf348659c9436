"""Groups that are deleted or expire (rule 57), and the cleaner of their log (rules 31, 32)."""

from __future__ import annotations

import pytest

from harness.broker.core.groups.coordinator import LOG
from harness.broker.core.messages import Deletion, RecordBatch
from harness.broker.core.types import NONE, BrokerConfig, ErrorCode, TopicConfig
from tests.harness.broker.core.compacted import COMPACTED
from tests.harness.broker.core.group_lab import T0, T1, GroupLab
from tests.harness.broker.core.test_group_transactions import NOBODY, OffsetsLab

#: The log of groups is cleaned as soon as anything in it is dirty.
CLEANED = TopicConfig(**{**COMPACTED, "min_insync_replicas": 2})
AWAY = 2


def batches(lab: GroupLab, node: int) -> list[RecordBatch]:
    """A broker's log of groups."""
    log = lab.brokers[node].replicas[LOG].log
    return [*log.read(0, 2**62, 2**62)]


def ends(lab: GroupLab, node: int) -> int:
    """The tombstones there, and the markers of aborts."""
    deletions = sum(type(record) is Deletion for batch in batches(lab, node) for record in batch.records)
    return deletions + sum(batch.marker is not None and not batch.marker.commit for batch in batches(lab, node))


def commit_others(lab: GroupLab) -> None:
    """Commit offsets of another log partition, slowly, so that segments of the log of groups end and are cleaned."""
    for offset in range(8):
        assert lab.commit(NOBODY, offset, T1) == ErrorCode.NONE
        lab.run(600)


def leave(lab: GroupLab) -> None:
    """Stop a broker in order when it has all."""
    lab.run(1_000)
    lab.cluster.stop(AWAY)
    lab.wait(lambda: lab.cluster.broker(AWAY) is None)


def return_and_lead(lab: GroupLab) -> None:
    """Start it again, and elect it when it is in sync."""
    lab.start(AWAY)
    lab.wait(lambda: AWAY in lab.isr_of_groups)
    lab.run(500)
    lab.move(AWAY)
    lab.run(500)


# --- deletion --------------------------------------------------------------------------------------------------------


def test_a_deleted_group_is_gone_also_for_a_coordinator_that_reads_its_log() -> None:
    lab = GroupLab()
    a = lab.member("a")
    assert lab.commit(a, 5) == ErrorCode.NONE
    assert lab.delete() == ErrorCode.NON_EMPTY_GROUP
    lab.leave(a)
    assert lab.committed() == 5
    assert lab.delete() == ErrorCode.NONE
    assert lab.committed() == NONE
    lab.move(0)
    lab.run(500)
    assert lab.committed() == NONE
    assert lab.delete() == lab.delete("unheard of") == ErrorCode.GROUP_ID_NOT_FOUND
    assert lab.member("b").epoch == 1


def test_a_deletion_counts_once_it_is_committed() -> None:
    lab = GroupLab()
    assert lab.commit(NOBODY, 5) == ErrorCode.NONE
    lab.run(500)
    lab.cluster.kill(0)
    lab.cluster.kill(2)
    lab.run(3_000)
    assert lab.delete() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert lab.committed() == 5


@pytest.mark.parametrize("moved", [False, True])
def test_what_a_transaction_was_to_commit_is_deleted_with_the_group(moved: bool) -> None:
    lab = OffsetsLab()
    identity = lab.begin()
    assert lab.hand_over(identity, NOBODY, 7) == ErrorCode.NONE
    assert lab.delete() == ErrorCode.NONE
    if moved:
        lab.move(2)
        lab.run(500)
    lab.end(identity, commit=True)
    assert lab.committed() == NONE


# --- expiry ----------------------------------------------------------------------------------------------------------


def test_a_group_without_members_is_forgotten_after_the_retention_and_no_other() -> None:
    lab = GroupLab(BrokerConfig(session_timeout_ms=3_600_000, offsets_retention_minutes=1))
    a = lab.member("a")
    assert lab.commit(a, 5) == ErrorCode.NONE
    lab.run(61_000)
    assert lab.committed() == 5
    lab.leave(a)
    lab.run(59_000)
    assert lab.committed() == 5
    lab.run(2_000)
    assert lab.committed() == NONE
    assert ends(lab, lab.coordinator) == 2
    lab.move(0)
    lab.run(61_000)
    assert ends(lab, 0) == 2


def test_a_group_with_an_open_transaction_is_not_forgotten() -> None:
    lab = OffsetsLab(offsets_retention_minutes=0)
    identity = lab.begin()
    assert lab.hand_over(identity, NOBODY, 7) == ErrorCode.NONE
    lab.run(5_000)
    assert ends(lab, lab.coordinator) == 0
    lab.end(identity, commit=True)
    lab.run(1_000)
    assert ends(lab, lab.coordinator) == 2


# --- the cleaner of their log ----------------------------------------------------------------------------------------


def test_of_the_commits_of_a_group_the_last_one_of_each_log_partition_stays() -> None:
    lab = GroupLab(topic=CLEANED)
    assert lab.commit(NOBODY, 5) == ErrorCode.NONE
    commit_others(lab)
    lab.run(1_000)
    assert len(batches(lab, 1)) < 6
    lab.move(0)
    lab.run(500)
    assert [lab.committed(), lab.committed(T1)] == [5, 7]


@pytest.mark.parametrize(("waits", "returned"), [(False, 5), (True, NONE)])
def test_a_deleted_group_returns_with_a_broker_that_was_away_unless_tombstones_wait(waits: bool, returned: int) -> None:
    rules = BrokerConfig(session_timeout_ms=3_000, tombstones_wait_for_replicas=waits)
    lab = GroupLab(rules, CLEANED)
    assert lab.commit(NOBODY, 5) == ErrorCode.NONE
    leave(lab)
    assert lab.delete() == ErrorCode.NONE
    commit_others(lab)
    assert bool(ends(lab, 1)) is waits
    assert lab.committed() == NONE
    return_and_lead(lab)
    assert lab.committed() == returned
    commit_others(lab)
    assert not waits or not ends(lab, AWAY)


@pytest.mark.parametrize(("waits", "counted"), [(False, 7), (True, 5)])
def test_an_aborted_commit_counts_under_a_broker_that_was_away_unless_markers_wait(waits: bool, counted: int) -> None:
    lab = OffsetsLab(topic=CLEANED, tombstones_wait_for_replicas=waits)
    assert lab.commit(NOBODY, 5) == ErrorCode.NONE
    identity = lab.begin()
    assert lab.hand_over(identity, NOBODY, 7) == ErrorCode.NONE
    leave(lab)
    identity = lab.end(identity, commit=False)
    lab.begin(identity=identity)
    assert lab.hand_over(identity, NOBODY, 1, T1) == ErrorCode.NONE
    lab.end(identity, commit=True)
    commit_others(lab)
    assert bool(ends(lab, 1)) is waits
    assert [lab.committed(T0), lab.committed(T1)] == [5, 7]
    return_and_lead(lab)
    assert [lab.committed(T0), lab.committed(T1)] == [counted, 7]
