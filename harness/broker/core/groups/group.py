"""One group at its coordinator: what is committed of it, what is under way, and who waits."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.groups.classic import CONSUMER, ClassicGroup, State
from harness.broker.core.groups.consumer import GroupRecord
from harness.broker.core.groups.offsets import GroupOffsets
from harness.broker.core.messages import CommittedOffset
from harness.broker.core.types import NodeId, Outside, TopicPartition

#: The requests of members of classic groups.
CLASSIC_REQUESTS: Final = frozenset(
    {messages.GroupJoin, messages.GroupSync, messages.GroupHeartbeat, messages.GroupLeave}
)


class RecordKey(msgspec.Struct, frozen=True, array_like=True):
    """The key of a record of the coordinator's log: a group, or the offset of a log partition in it."""

    group: str
    partition: TopicPartition | None = None


class UnderWay(msgspec.Struct, frozen=True):
    """A change that is being written, and the answer that its client gets when it is committed.

    ``producer`` is the id and epoch of the one with whose transaction the ``offsets`` count, None where they count at
    once. Offsets that are ``dropped`` are deleted.
    """

    record: GroupRecord
    client: NodeId
    answer: messages.GroupAnswer | None
    offsets: dict[TopicPartition, CommittedOffset] = {}
    producer: tuple[int, int] | None = None
    dropped: tuple[TopicPartition, ...] = ()
    #: Only invariants look at it.
    by: Outside[tuple[str, int] | None] = None

    def turns(self, record: GroupRecord) -> bool:
        """The members will be others than in this record."""
        return self.record != record


class GroupDeletion(UnderWay, frozen=True):
    """The group is forgotten, with all its offsets (rule 57)."""

    @override
    def turns(self, record: GroupRecord) -> bool:
        return True


class WaitingRequest(msgspec.Struct, frozen=True):
    """A request that waits for its turn."""

    client: NodeId
    message: messages.GroupRequest


class Group(msgspec.Struct, eq=False):
    """One group: what is committed of it, the change that is under way, and who waits.

    ``record`` has the members by KIP-848, and ``classic`` those by the classic protocol: one of them has none.
    ``heard_us`` is when each member of the record was last heard, ``revoking_us`` since when one has something to give
    up, and ``changed_us`` when the group last changed. None is in the log: for a new coordinator they begin again.
    """

    record: GroupRecord = GroupRecord()
    classic: ClassicGroup | None = None
    offsets: GroupOffsets[CommittedOffset] = msgspec.field(default_factory=GroupOffsets)
    next: UnderWay | None = None
    waiting: deque[WaitingRequest] = msgspec.field(default_factory=deque)
    heard_us: dict[str, int] = {}
    revoking_us: dict[str, int] = {}
    #: No search waits for so long.
    changed_us: Outside[int] = 0

    @property
    def members(self) -> int:
        """The number of its members."""
        return len(self.record.members) + (0 if self.classic is None else len(self.classic.members))

    @property
    def assigned(self) -> int:
        """The number of members that have something to read; in a rebalance, too, as Kafka tells it."""
        if self.classic is not None:
            return sum(bool(member.told.assignment) for member in self.classic.members.values())
        return sum(bool(member.assigned) for member in self.record.members.values())

    @property
    def empty(self) -> bool:
        """It has no member, and none comes."""
        return not self.record.members and (self.classic is None or self.classic.state is State.EMPTY)

    @property
    def exists(self) -> bool:
        """A client was a member, is about to be, or has committed."""
        classic = self.classic is not None and not self.classic.untouched
        return classic or bool(self.record.epoch or self.offsets.partitions())

    def holds_up(self, message: messages.GroupRequest) -> bool:
        """A change is under way for which this request has to wait.

        A member by the classic protocol waits only where the group is about to go, or to have the other protocol.
        """
        if self.next is None or type(message) not in CLASSIC_REQUESTS:
            return self.next is not None
        return self.classic is None or self.next.turns(self.record)

    def reads(self, topic: str) -> bool:
        """Members read this topic, or may (rule 56)."""
        if self.classic is not None:
            return self.classic.protocol_type == CONSUMER and self.classic.reads(topic)
        return any(topic in member.topics for member in self.record.members.values())

    def timed(self, now_us: int) -> None:
        """Forget times of members that have gone, and begin those of members that are new."""
        members = self.record.members
        self.changed_us = now_us
        self.heard_us = {name: self.heard_us.get(name, now_us) for name in members}
        revoking = [name for name, member in members.items() if member.revoking]
        self.revoking_us = {name: self.revoking_us.get(name, now_us) for name in revoking}

    def silent(self, now_us: int, session_us: int) -> list[str]:
        """The members that were not heard for a session, or keep for too long what they are to give up."""
        return [
            name
            for name, member in self.record.members.items()
            if now_us - self.heard_us[name] > session_us
            or now_us - self.revoking_us.get(name, now_us) > member.rebalance_timeout_ms * 1000
        ]

    def idle(self, now_us: int, retention_us: int) -> bool:
        """It has no member, and offsets that are not pending and may be forgotten now."""
        if not self.empty or now_us - self.changed_us <= retention_us:
            return False
        partitions = self.offsets.partitions()
        return bool(partitions) and not self.offsets.unstable(partitions)
