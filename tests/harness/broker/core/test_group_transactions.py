"""Offsets of a group in transactions (rule 46): who may commit them, when they count, and who has to wait for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.core import messages, transaction_coordinator
from harness.broker.core.groups.coordinator import LOG
from harness.broker.core.groups.offsets import GroupOffsets
from harness.broker.core.messages import CreateTopic, Fetch, Marker, RecordBatch
from harness.broker.core.types import (
    ACKS_ALL,
    CONTROLLER,
    NONE,
    BrokerConfig,
    ErrorCode,
    TopicConfig,
    TopicPartition,
)
from tests.harness.broker.core.group_lab import GROUP, T0, T1, GroupLab, LabMember, commits
from tests.harness.broker.core.transaction_lab import Identity

NOBODY = LabMember("")
NOBODY.epoch = NONE


class OffsetsLab(GroupLab):
    """A group and producers with transactional ids; broker 0 leads the log of transactions."""

    def __init__(self, version: Any = 2, topic: TopicConfig | None = None, **rules: Any) -> None:
        super().__init__(BrokerConfig(session_timeout_ms=3_000, transaction_version=version, **rules), topic)
        log = transaction_coordinator.LOG
        self.ask(CONTROLLER, lambda c: CreateTopic(c, log.topic, 1, 3, self.topic, ((0, 1, 2),)))
        self.run(500)

    def begin(self, name: str = "one", identity: Identity | None = None) -> Identity:
        """Begin a transaction that has the log of groups; of the producer in charge, or of a new one."""
        if identity is None:
            made = self.again(0, lambda c: messages.InitProducerId(c, name, 60_000))
            identity = Identity(made.producer_id, made.producer_epoch)
        mine = identity
        added = self.again(0, lambda c: messages.AddPartitionsToTxn(c, name, *mine, (LOG,)))
        assert added.error == ErrorCode.NONE
        return identity

    def hand_over(
        self, identity: Identity, member: LabMember, offset: int, partition: TopicPartition = T0
    ) -> ErrorCode:
        """Commit one offset in the transaction."""
        named = (GROUP, member.name, member.epoch)
        commit = lambda c: messages.TxnOffsetCommit(c, *named, commits((partition, offset)), *identity)  # noqa: E731
        error: ErrorCode = self.ask(self.coordinator, commit).error
        return error

    def end(self, identity: Identity, *, commit: bool, name: str = "one") -> Identity:
        """End the transaction, and wait for its marker; the producer goes on with what it is given."""
        before = self.markers
        ended = self.again(0, lambda c: messages.EndTxn(c, name, *identity, commit))
        assert ended.error == ErrorCode.NONE
        self.wait(lambda: self.markers > before)
        self.run(200)
        return identity if ended.producer_id == NONE else Identity(ended.producer_id, ended.producer_epoch)

    @property
    def markers(self) -> int:
        """The markers on the log of groups."""
        return sum(
            batch.marker is not None for batch in self.brokers[self.coordinator].replicas[LOG].log.read(0, 2**62, 2**62)
        )

    def stable(self, partition: TopicPartition = T0) -> Any:
        """The group's answer to a client that asks for stable offsets."""
        ask = lambda c: messages.OffsetFetch(c, GROUP, partitions=(partition,), require_stable=True)  # noqa: E731
        asked = self.ask(self.coordinator, ask)
        return asked.error or asked.offsets[0][1].offset


# --- when they count -------------------------------------------------------------------------------------------------


def test_offsets_of_a_transaction_count_with_its_marker() -> None:
    lab = OffsetsLab()
    a = lab.member("a")
    assert lab.commit(a, 3) == ErrorCode.NONE
    identity = lab.begin()
    assert lab.hand_over(identity, a, 7) == lab.hand_over(identity, a, 8) == ErrorCode.NONE
    assert lab.committed() == 3
    lab.end(identity, commit=True)
    assert lab.committed() == lab.stable() == 8


def test_offsets_of_a_transaction_are_gone_with_its_abort() -> None:
    lab = OffsetsLab()
    a = lab.member("a")
    assert lab.commit(a, 3) == ErrorCode.NONE
    identity = lab.begin()
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    identity = lab.end(identity, commit=False)
    assert lab.committed() == lab.stable() == 3
    lab.begin(identity=identity)
    assert lab.hand_over(identity, a, 5, T1) == ErrorCode.NONE
    lab.end(identity, commit=True)
    assert [lab.committed(), lab.committed(T1)] == [3, 5]


def test_who_asks_for_stable_offsets_waits_for_the_transaction_and_others_do_not() -> None:
    lab = OffsetsLab()
    a = lab.member("a")
    assert lab.commit(a, 3) == ErrorCode.NONE
    identity = lab.begin()
    assert lab.stable() == 3
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    assert [lab.stable(), lab.stable(T1), lab.committed()] == [ErrorCode.UNSTABLE_OFFSET_COMMIT, NONE, 3]
    lab.end(identity, commit=False)
    assert lab.stable() == 3


def test_the_last_offset_on_the_log_is_remembered_whatever_the_order_of_markers() -> None:
    """The example of the module's text, then a plain commit after a pending one."""
    lab = OffsetsLab()
    a = lab.member("a")
    assert lab.commit(a, 3) == ErrorCode.NONE
    first, second = lab.begin("one"), lab.begin("two")
    assert lab.hand_over(first, a, 5) == lab.hand_over(second, a, 4) == ErrorCode.NONE
    second = lab.end(second, commit=True, name="two")
    assert [lab.committed(), lab.stable()] == [4, ErrorCode.UNSTABLE_OFFSET_COMMIT]
    lab.end(first, commit=True)
    assert lab.committed() == lab.stable() == 4
    lab.begin("two", second)
    assert lab.hand_over(second, a, 9) == lab.commit(a, 6) == ErrorCode.NONE
    lab.end(second, commit=True, name="two")
    assert lab.committed() == 6


def test_a_successor_of_the_producer_ends_what_was_pending() -> None:
    lab = OffsetsLab()
    a = lab.member("a")
    identity = lab.begin()
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    successor = lab.begin()
    assert successor.producer_epoch > identity.producer_epoch
    assert lab.stable() == NONE
    assert lab.hand_over(identity, a, 8) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert lab.stable() == NONE


# --- who may commit them ---------------------------------------------------------------------------------------------


def test_a_member_commits_in_a_transaction_in_its_present_epoch_only() -> None:
    """It was given up, or has missed an epoch; then another member has its log partitions."""
    lab = OffsetsLab()
    a = lab.member("a")
    identity = lab.begin()
    b = lab.member("b")
    old = LabMember("a")
    old.epoch = a.epoch
    lab.beat(a)
    lab.beat(a)
    assert lab.hand_over(identity, old, 5) == ErrorCode.ILLEGAL_GENERATION
    assert lab.hand_over(identity, LabMember("x"), 5) == ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.stable() == NONE
    assert lab.hand_over(identity, a, 5) == ErrorCode.NONE
    assert lab.leave(b) == ErrorCode.NONE
    assert lab.hand_over(identity, b, 6) == ErrorCode.UNKNOWN_MEMBER_ID
    lab.end(identity, commit=True)
    assert lab.committed() == 5


def test_a_producer_that_names_no_member_commits_while_there_is_none() -> None:
    lab = OffsetsLab()
    identity = lab.begin()
    assert lab.hand_over(identity, NOBODY, 5) == ErrorCode.NONE
    lab.member("a")
    assert lab.hand_over(identity, NOBODY, 6) == ErrorCode.UNKNOWN_MEMBER_ID
    lab.end(identity, commit=True)
    assert lab.committed() == 5


def test_what_was_pending_of_a_member_that_is_given_up_still_counts() -> None:
    """Its transaction was asked to commit; who comes after it waits, and begins behind it."""
    lab = OffsetsLab()
    a = lab.member("a")
    identity = lab.begin()
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    lab.run(4_000)
    b = lab.member("b")
    assert b.owned == (T0, T1)
    assert lab.stable() == ErrorCode.UNSTABLE_OFFSET_COMMIT
    lab.end(identity, commit=True)
    assert lab.stable() == 7


# --- coordinators ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_a_new_coordinator_knows_what_is_pending(commit: bool) -> None:
    lab = OffsetsLab()
    a = lab.member("a")
    assert lab.commit(a, 3) == ErrorCode.NONE
    identity = lab.begin()
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    lab.move(2)
    lab.run(1_000)
    assert [lab.committed(), lab.stable()] == [3, ErrorCode.UNSTABLE_OFFSET_COMMIT]
    lab.end(identity, commit=commit)
    expected = 7 if commit else 3
    assert lab.committed() == lab.stable() == expected
    lab.move(1)
    lab.run(1_000)
    assert lab.committed() == lab.stable() == expected


def test_a_marker_counts_once_it_is_committed() -> None:
    lab = OffsetsLab()
    a = lab.member("a")
    identity = lab.begin()
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    lab.lose = lambda source, target, message: target == 1 and isinstance(message, Fetch)
    lab.again(0, lambda c: messages.EndTxn(c, "one", *identity, True))
    lab.wait(lambda: lab.markers == 1)
    assert [lab.committed(), lab.stable()] == [NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT]
    lab.heal()
    lab.run(3_000)
    assert lab.stable() == 7


def test_a_marker_waits_for_a_coordinator_that_has_read_its_log() -> None:
    """The decision comes while the coordinator moves: it is sent again until the new one takes it."""
    lab = OffsetsLab()
    a = lab.member("a")
    identity = lab.begin()
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    lab.lose = lambda source, target, message: target == 2 and isinstance(message, Fetch)
    lab.move(2)
    assert lab.committed() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.again(0, lambda c: messages.EndTxn(c, "one", *identity, True))
    lab.run(1_000)
    assert lab.markers == 0
    lab.heal()
    lab.wait(lambda: lab.markers > 0)
    lab.run(1_000)
    assert lab.stable() == 7


def test_a_marker_that_the_log_refuses_decides_nothing() -> None:
    """It is one of the transaction before, and comes late (KIP-1228)."""
    lab = OffsetsLab()
    a = lab.member("a")
    identity = lab.begin(identity=lab.end(lab.begin(), commit=True))
    assert lab.hand_over(identity, a, 7) == ErrorCode.NONE
    late = RecordBatch(1, 0, (), NONE, NONE, *identity, transactional=True, marker=Marker(True, 10**6, 2))
    ask = lambda c: messages.WriteTxnMarkers(c, LOG, ACKS_ALL, 5_000, late)  # noqa: E731
    assert lab.ask(lab.coordinator, ask).error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [lab.committed(), lab.stable()] == [NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT]
    lab.end(identity, commit=False)
    assert lab.stable() == NONE


def test_a_late_commit_of_the_transaction_before_is_refused_under_version_2_only() -> None:
    """Under version 1 it hangs: the end of the next transaction decides about it (KIP-890)."""
    for version, late in ((2, ErrorCode.INVALID_PRODUCER_EPOCH), (1, ErrorCode.NONE)):
        lab = OffsetsLab(version)
        a = lab.member("a")
        identity = lab.begin()
        lab.end(identity, commit=False)
        assert lab.hand_over(identity, a, 7) == late
        hangs = late == ErrorCode.NONE
        assert lab.stable() == (ErrorCode.UNSTABLE_OFFSET_COMMIT if hangs else NONE)


@pytest.mark.parametrize(("bug", "offset"), [("none", 9), ("offsets-of-any-epoch", 7)])
def test_a_late_commit_counts_in_no_later_transaction_except_where_any_epoch_is_taken(bug: str, offset: int) -> None:
    """It comes after the one of the next transaction, and would be the last on the log when that is committed."""
    lab = OffsetsLab(planted_bug=bug)
    a = lab.member("a")
    first = lab.begin()
    second = lab.begin(identity=lab.end(first, commit=False))
    assert lab.hand_over(second, a, 9) == ErrorCode.NONE
    lab.hand_over(first, a, 7)
    lab.end(second, commit=True)
    assert lab.committed() == offset


# --- against all that is on the log ----------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A batch of the log of groups: a commit, of a producer or of nobody, or a marker."""

    producer_id: int
    offsets: dict[TopicPartition, int]
    commit: bool | None = None


PRODUCERS = st.integers(0, 2)
OFFSETS = st.dictionaries(st.sampled_from([T0, T1]), st.integers(0, 9), min_size=1)
ENTRIES = st.lists(
    st.builds(Entry, st.just(NONE), OFFSETS, st.none())
    | st.builds(Entry, PRODUCERS, OFFSETS, st.none())
    | st.builds(Entry, PRODUCERS, st.just({}), st.booleans()),
    max_size=25,
)


def decided(log: list[Entry], position: int) -> bool | None:
    """The end of the transaction of a commit, by the first marker behind it; a plain one is decided at once."""
    producer_id = log[position].producer_id
    if producer_id == NONE:
        return True
    ends = (entry.commit for entry in log[position:] if entry.producer_id == producer_id and entry.commit is not None)
    return next(ends, None)


@given(ENTRIES)
def test_a_group_remembers_what_all_of_its_log_says(log: list[Entry]) -> None:
    offsets: GroupOffsets[int] = GroupOffsets()
    for position, entry in enumerate(log):
        if entry.commit is not None:
            offsets.end(entry.producer_id, commit=entry.commit)
        elif entry.producer_id == NONE:
            offsets.commit(entry.offsets, position)
        else:
            offsets.hold(entry.producer_id, entry.offsets, position)
        until = log[: position + 1]
        ends = {number: decided(until, number) for number in range(len(until))}
        for partition in (T0, T1):
            committed = [e.offsets[partition] for n, e in enumerate(until) if partition in e.offsets and ends[n]]
            assert offsets.of(partition, NONE) == (committed[-1] if committed else NONE)
            open_ = any(partition in e.offsets and ends[n] is None for n, e in enumerate(until))
            assert offsets.unstable((partition,)) is open_
