"""A member of a classic group, as a value: it joins, asks for its assignment, and then does what every member does.

The leader deals the log partitions out to the members in turn, by their names. A member that hears of a rebalance, or
of another generation, gives up all that it reads, and joins again under its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.messages import JOINS, Message, Offer
from harness.broker.core.types import ErrorCode, TopicPartition
from harness.lab.explore.coordinator_node import TOPIC
from harness.lab.explore.events import NodeEvent
from harness.lab.explore.groups.members import COME_BACK, GROUP, MemberNode

_OFFERS = (Offer("in turn", topics=(TOPIC,)),)


class ClassicMemberNode(MemberNode, frozen=True):
    """A member between two steps. Its ``epoch`` is its generation, JOINS while it has none.

    It was ``given`` a name. It leads ``led`` where that has names, and has an assignment where it is ``synced``. The
    topic has this number of ``partitions``.
    """

    partitions: int = 1
    given: str = ""
    led: tuple[str, ...] = ()
    synced: bool = False

    @property
    @override
    def name(self) -> str:
        return self.given

    @override
    def offers(self, records: int) -> Iterator[NodeEvent]:
        if not self.purpose and self.epoch != JOINS and not self.synced:
            yield NodeEvent("sync")
        else:
            yield from super().offers(records)

    @override
    def request(self) -> Message | None:
        own = (self.attempt, GROUP, self.name)
        if self.purpose == "join":
            return messages.GroupJoin(*own, offers=_OFFERS, named_first=False, client_id=f"m{self.number}")
        if self.purpose == "sync":
            dealt = [bytes(range(each, self.partitions, len(self.led))) for each in range(len(self.led))]
            return messages.GroupSync(*own, self.epoch, tuple(zip(sorted(self.led), dealt, strict=True)))
        if self.purpose == "beat":
            return messages.GroupHeartbeat(*own, self.epoch)
        if self.purpose == "place":
            return messages.OffsetFetch(self.attempt, GROUP, partitions=(TopicPartition(TOPIC, self.partition),))
        return super().request()

    @override
    def answered(self, message: Message) -> MemberNode:
        error = getattr(message, "error", ErrorCode.NONE)
        if error in COME_BACK:
            return self
        done = replace(self, purpose="", partition=-1, attempt=0)
        if error:
            given = "" if error == ErrorCode.UNKNOWN_MEMBER_ID else self.given
            return replace(done, epoch=JOINS, owns=(), places=(), given=given, led=(), synced=False)
        if isinstance(message, messages.GroupJoinResponse):
            led = tuple(name for name, _ in message.members)
            return replace(done, epoch=message.generation, given=message.member, led=led, synced=False)
        if isinstance(message, messages.GroupSyncResponse):
            return replace(done, owns=tuple(message.assignment), synced=True)
        return done if isinstance(message, messages.GroupHeartbeatResponse) else super().answered(message)
