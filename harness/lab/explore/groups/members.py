"""A member of a group, as a value: what it was assigned, where it is, and the one request that it waits for.

It processes before it commits. What it is not assigned any more it gives up at once, and says so in its next
heartbeat. When it hears that it is no member, or that its epoch is over, it joins again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.messages import JOINS, Message
from harness.broker.core.types import NONE, ErrorCode, TopicPartition
from harness.lab.explore.coordinator_node import TOPIC
from harness.lab.explore.events import NodeEvent

#: The group of all members.
GROUP: Final = "g"

#: The purpose of the request that a member waits for.
Purpose = Literal["", "join", "sync", "beat", "place", "commit"]

COME_BACK: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Position(msgspec.Struct, frozen=True):
    """The next offset that a member reads of a log partition, and the one that it has committed last."""

    partition: int
    offset: int
    committed: int


class MemberNode(msgspec.Struct, frozen=True):
    """A member between two steps. It is no member of the group while its ``epoch`` is JOINS.

    It has ``places`` in those of the partitions it ``owns`` in which it knows where the group is. ``processed`` has
    (partition, offset). ``purpose``, ``partition`` and ``attempt`` are those of the request that it waits for.
    """

    number: int
    epoch: int = JOINS
    owns: tuple[int, ...] = ()
    places: tuple[Position, ...] = ()
    processed: tuple[tuple[int, int], ...] = ()
    purpose: Purpose = ""
    partition: int = NONE
    attempt: int = 0

    @property
    def name(self) -> str:
        """Its name in the group."""
        return f"m{self.number}"

    @property
    def waits(self) -> bool:
        """It waits for an answer."""
        return bool(self.purpose)

    @property
    def without_answer(self) -> tuple[str, ...]:
        """The events that may happen to it when no answer comes."""
        return ("again",)

    def offers(self, records: int) -> Iterator[NodeEvent]:
        """The events that it may begin now; each log partition has this number of records."""
        if self.purpose:
            return
        if self.epoch == JOINS:
            yield NodeEvent("join")
            return
        yield NodeEvent("beat")
        placed = {position.partition: position for position in self.places}
        for partition in self.owns:
            position = placed.get(partition)
            if position is None:
                yield NodeEvent("place", partition)
                continue
            if position.offset < records:
                yield NodeEvent("process", partition)
            if position.offset > position.committed:
                yield NodeEvent("commit", partition)

    def act(self, event: NodeEvent) -> MemberNode:
        """Begin what was offered, or send its request again."""
        if event.kind == "again":
            return replace(self, attempt=self.attempt + 1)
        if event.kind == "process":
            return self._process(event.peer)
        purpose: Purpose = event.kind  # type: ignore[assignment]
        return replace(self, purpose=purpose, partition=event.peer, attempt=0)

    def _process(self, partition: int) -> MemberNode:
        position = self._position(partition)
        processed = tuple(sorted({*self.processed, (partition, position.offset)}))
        return replace(self.having(replace(position, offset=position.offset + 1)), processed=processed)

    def _position(self, partition: int) -> Position:
        return next(position for position in self.places if position.partition == partition)

    def having(self, position: Position) -> MemberNode:
        """The member with this position in its log partition."""
        others = [other for other in self.places if other.partition != position.partition]
        return replace(self, places=tuple(sorted([*others, position], key=lambda each: each.partition)))

    # --- requests and answers ----------------------------------------------------------------------------------------

    def request(self) -> Message | None:
        """The request whose answer it waits for; it carries the attempt as its correlation."""
        own = (self.attempt, GROUP, self.name)
        partition = TopicPartition(TOPIC, self.partition)
        if self.purpose == "join":
            return messages.ConsumerGroupHeartbeat(*own, JOINS, topics=(TOPIC,))
        if self.purpose == "beat":
            owned = tuple(TopicPartition(TOPIC, number) for number in self.owns)
            return messages.ConsumerGroupHeartbeat(*own, self.epoch, topics=(TOPIC,), owned=owned)
        if self.purpose == "place":
            return messages.OffsetFetch(*own, self.epoch, partitions=(partition,))
        if self.purpose == "commit":
            return messages.OffsetCommit(
                *own,
                self.epoch,
                offsets=((partition, messages.CommittedOffset(self._position(self.partition).offset)),),
            )
        return None

    def answered(self, message: Message) -> MemberNode:
        """Take the answer to its request."""
        error = getattr(message, "error", ErrorCode.NONE)
        if error in COME_BACK:
            return self  # And its request is sent again.
        done = replace(self, purpose="", partition=NONE, attempt=0)
        if error == ErrorCode.STALE_MEMBER_EPOCH:
            return done  # Its next heartbeat tells it why.
        if error:
            return replace(done, epoch=JOINS, owns=(), places=())
        if isinstance(message, messages.ConsumerGroupHeartbeatResponse):
            owns = tuple(partition.partition for partition in message.assigned)
            places = tuple(position for position in self.places if position.partition in owns)
            return replace(done, epoch=message.member_epoch, owns=owns, places=places)
        if isinstance(message, messages.OffsetFetchResponse):
            ((partition, remembered),) = message.offsets
            start = max(remembered.offset, 0)
            return done.having(Position(partition.partition, start, start))
        position = self._position(self.partition)
        return done.having(replace(position, committed=position.offset))
