"""The invariants of coordinators, asked of a broker after each step that may have changed what it coordinates.

What a coordinator knew before a step is kept here, as are the moments at which members were heard: the rules do not
hang on the coordinator's own word. A coordinator that was frozen is believed again from its next regular look on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from harness.broker.core import messages
from harness.broker.core.broker import Broker
from harness.broker.core.coordinated import (
    commits_in,
    decisions_in,
    groups_loaded,
    markers_in,
    records_under_way,
    transactions_loaded,
)
from harness.broker.core.coordinator import LOOK, LOOK_EVERY_MS
from harness.broker.core.effects import Deliver, Effect, Timer
from harness.broker.core.groups.classic import ClassicGroup
from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.groups.group import Group, GroupDeletion, UnderWay
from harness.broker.core.invariants import (
    Broken,
    member_lives_by_its_session,
    offsets_live_with_members,
    transaction_ends_in_time,
)
from harness.broker.core.transaction_coordinator import (
    LOG,
    TransactionCoordinator,
    TransactionRecord,
    TransactionState,
)
from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, BrokerConfig, NodeId, TopicPartition

#: A coordinator that has not looked for so long was frozen: what it may have missed is no claim.
STEADY_US: Final = 3 * LOOK_EVERY_MS * 1000
#: Commits, a look apart, that may be answered while a member is kept whose session is over.
COMMITS_MAX: Final = 5


# --- what hangs on time ----------------------------------------------------------------------------------------------


class _Heard(msgspec.Struct):
    """The times at which a member was heard, for sure or maybe; ``waits``: it waited for an answer at the last look."""

    surely_us: int
    maybe_us: int
    waits: bool = False
    #: Commits of others that were answered since its session was over, a look apart, and the last of them.
    commits: int = 0
    counted_us: int = 0


class _Reign(msgspec.Struct):
    """One coordinator in one leader epoch: its last look, and since when it has looked regularly."""

    leader_epoch: int
    looked_us: int
    steady_us: int

    def looks(self, log: TopicPartition, cause: object, now_us: int) -> bool:
        """Tell whether the step with this cause was a look, and note that."""
        looks = type(cause) is Timer and cause.subject[0] == log
        if looks:
            if now_us - self.looked_us > STEADY_US:
                self.steady_us = now_us
            self.looked_us = now_us
        return looks


class _Transactions(_Reign):
    """Its records under way, and when each transactional id had one last."""

    under_way: dict[str, TransactionRecord | None] = {}
    busy_us: dict[str, int] = {}


class _Groups(_Reign):
    """Its changes of groups under way, and times."""

    changes: dict[str, UnderWay] = {}
    heard: dict[tuple[str, str], _Heard] = {}
    offsets: dict[str, object] = {}
    busy_us: dict[str, int] = {}


class CoordinatorInvariants:
    """Looks at the coordinators of all brokers; ``note`` is called with each answer of a rule."""

    def __init__(self, config: BrokerConfig, note: Callable[[TopicPartition, Broken | None], None]) -> None:
        self._session_us = config.session_timeout_ms * 1000
        self._retention_us = config.offsets_retention_minutes * 60_000_000
        self._note = note
        self._check_ms = config.transaction_abort_check_ms
        self._transactions: dict[NodeId, _Transactions] = {}
        self._groups: dict[tuple[NodeId, TopicPartition], _Groups] = {}

    def step(self, node: NodeId, broker: Broker, cause: object, effects: Sequence[Effect], now_us: int) -> None:
        """Look at what a step of this broker may have changed."""
        topic = _topic_of(cause)
        if topic == OFFSETS_TOPIC:
            for coordinator in broker.group_coordinators:
                for broken in self._look_at_groups(node, coordinator, cause, effects, now_us):
                    self._note(coordinator.log, broken)
        elif topic:
            for broken in self._look_at_transactions(node, broker.transaction_coordinator, cause, effects, now_us):
                self._note(LOG, broken)

    # --- transactions ------------------------------------------------------------------------------------------------

    def _look_at_transactions(
        self,
        node: NodeId,
        coordinator: TransactionCoordinator,
        cause: object,
        effects: Sequence[Effect],
        now_us: int,
    ) -> Iterator[Broken | None]:
        replica = coordinator.ready()
        if replica is None:
            return
        seen = self._transactions.get(node)
        if seen is None or seen.leader_epoch != replica.leader_epoch:
            seen = self._transactions[node] = _Transactions(replica.leader_epoch, now_us, now_us)
            yield from transactions_loaded(coordinator)
        yield from decisions_in(coordinator.transactions(), seen.under_way, cause)
        yield from markers_in(coordinator, effects)
        if seen.looks(LOG, cause, now_us):
            yield from self._ended_in_time(seen, coordinator, now_us)
        seen.under_way = records_under_way(coordinator)

    def _ended_in_time(
        self, seen: _Transactions, coordinator: TransactionCoordinator, now_us: int
    ) -> Iterator[Broken | None]:
        """After a look none is open that should not be, except what was busy at the last check; none ends early."""
        for name, transaction in coordinator.transactions().items():
            record, open_ms = transaction.record, now_us // 1000 - transaction.record.begun_ms
            late_us = now_us - max(seen.steady_us, seen.busy_us.get(name, 0))
            if transaction.next is not None:
                seen.busy_us[name] = now_us
                is_new = transaction.next.record is not seen.under_way.get(name)
                if is_new and transaction.next.record.state is TransactionState.PREPARE_ABORT:
                    yield transaction_ends_in_time(name, open_ms, record.timeout_ms, self._check_ms, aborted=True)
            elif record.state is TransactionState.ONGOING and late_us > self._check_ms * 1000 + STEADY_US:
                check_ms = self._check_ms + STEADY_US // 1000
                yield transaction_ends_in_time(name, open_ms, record.timeout_ms, check_ms, aborted=False)

    # --- groups ------------------------------------------------------------------------------------------------------

    def _look_at_groups(
        self, node: NodeId, coordinator: GroupCoordinator, cause: object, effects: Sequence[Effect], now_us: int
    ) -> Iterator[Broken | None]:
        replica, log = coordinator.ready(), coordinator.log
        if replica is None:
            return
        seen = self._groups.get((node, log))
        if seen is None or seen.leader_epoch != replica.leader_epoch:
            seen = self._groups[node, log] = _Groups(replica.leader_epoch, now_us, now_us)
            yield from groups_loaded(coordinator)
        looks = seen.looks(log, cause, now_us)
        _, groups = coordinator.described()
        committed = any(type(each) is Deliver and _is_committed(each.message) for each in effects)
        for name, group in groups.items():
            self._hear(seen, name, group, cause, now_us)
            if group.next is not None and group.next is not seen.changes.get(name):
                yield from commits_in(name, group)
                yield from self._given_up(seen, name, group, cause, now_us)
                seen.changes[name] = group.next
            offsets = (group.offsets.everything(), group.offsets.pending())
            if group.members or offsets != seen.offsets.get(name):
                seen.busy_us[name], seen.offsets[name] = now_us, offsets
            if looks:
                yield from self._kept(seen, name, group, now_us)
            if committed:
                yield from self._kept_by_commits(seen, name, group, now_us)

    def _hear(self, seen: _Groups, name: str, group: Group, cause: object, now_us: int) -> None:
        """Note the member that a request is of, those that are new, and those that waited for an answer."""
        members = {**group.record.members, **({} if group.classic is None else group.classic.members)}
        for key in [key for key in seen.heard if key[0] == name and key[1] not in members]:
            del seen.heard[key]
        waiting = {each.message.member for each in group.waiting}
        for member in members:
            heard = seen.heard.setdefault((name, member), _Heard(now_us, now_us))
            waits = member in waiting or (group.classic is not None and group.classic.members[member].waits)
            if waits or heard.waits:
                heard.maybe_us = now_us
            heard.waits = waits
        if not isinstance(cause, messages.GroupRequest) or cause.group != name or cause.member not in members:
            return
        heard, own = seen.heard[name, cause.member], group.record.members.get(cause.member)
        if own is None:
            heard.maybe_us = now_us
        elif isinstance(cause, messages.ConsumerGroupHeartbeat):
            if cause.member_epoch in {own.epoch, own.previous_epoch, messages.LEAVES}:
                heard.maybe_us = now_us
            if cause.member_epoch == own.epoch:
                heard.surely_us = now_us

    def _given_up(self, seen: _Groups, name: str, group: Group, cause: object, now_us: int) -> Iterator[Broken | None]:
        """A change that is due by time: who goes was silent, and offsets go when no member is there."""
        change = group.next
        if type(cause) is not Timer or change is None or change.answer is not None:
            return
        if type(change) is GroupDeletion:
            idle_us = now_us - seen.busy_us.get(name, now_us)
            yield offsets_live_with_members(name, group.members, idle_us, self._retention_us)
            return
        for member in group.record.members.keys() - change.record.members.keys():
            if not group.record.members[member].revoking:
                silent_us = now_us - seen.heard[name, member].surely_us
                yield member_lives_by_its_session(name, member, silent_us, self._session_us, given_up=True)

    def _kept(self, seen: _Groups, name: str, group: Group, now_us: int) -> Iterator[Broken | None]:
        """After a look of the coordinator no member is there whose session is over."""
        for member, session_us in _sessions(group, self._session_us):
            if group.classic is None and group.next is not None:
                return  # While a change is under way no member is given up.
            silent_us = now_us - max(seen.heard[name, member].maybe_us, seen.steady_us)
            yield member_lives_by_its_session(name, member, silent_us, session_us, given_up=False)

    def _kept_by_commits(self, seen: _Groups, name: str, group: Group, now_us: int) -> Iterator[Broken | None]:
        """Others commit, so the group can change: a member whose session is over does not stay for long."""
        for member, session_us in _sessions(group, self._session_us):
            heard = seen.heard[name, member]
            silent_us = now_us - heard.maybe_us
            if silent_us <= session_us:
                heard.commits = 0
            elif now_us - heard.counted_us >= LOOK_EVERY_MS * 1000:
                heard.commits, heard.counted_us = heard.commits + 1, now_us
                if heard.commits > COMMITS_MAX:
                    yield member_lives_by_its_session(name, member, silent_us, session_us, given_up=False)


def _sessions(group: Group, session_us: int) -> list[tuple[str, int]]:
    """The members with their sessions; of a classic group those that wait for no answer."""
    classic: ClassicGroup | None = group.classic
    if classic is None:
        return [(name, session_us) for name in group.record.members]
    return [(name, member.told.session_ms * 1000) for name, member in classic.members.items() if not member.waits]


def _is_committed(message: object) -> bool:
    return type(message) is messages.OffsetCommitResponse and not message.error


def _topic_of(cause: object) -> str:
    """The log of those coordinators whose knowledge a step with this cause may change, "" for none.

    An answer about any other log partition is of a marker there.
    """
    if isinstance(cause, messages.GroupRequest):
        return OFFSETS_TOPIC
    if type(cause) is Timer:
        topic: str = cause.subject[0].topic if cause.name == LOOK else ""
        return topic
    if isinstance(cause, messages.ProduceResponse | messages.WriteTxnMarkers):
        of_groups = cause.partition.topic == OFFSETS_TOPIC
        return OFFSETS_TOPIC if of_groups else TRANSACTIONS_TOPIC if type(cause) is messages.ProduceResponse else ""
    return TRANSACTIONS_TOPIC if type(cause) in _OF_TRANSACTIONS else ""


_OF_TRANSACTIONS: Final = frozenset({messages.InitProducerId, messages.AddPartitionsToTxn, messages.EndTxn})
