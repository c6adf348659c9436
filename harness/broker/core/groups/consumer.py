"""The members of a consumer group and what each of them may read: pure functions of the group's record (rule 43).

A member that comes or goes raises the *group epoch*, and each member's *target* follows from the members of that
epoch. A member goes from what it has to its target in its own time, and is in the new epoch when it has given up what
others are to get. No member gets a log partition that another one has or still has to give up:

    epoch 1    a: t-0 t-1                       b joins, which makes it epoch 2
    epoch 2    a in epoch 1: t-0, gives up t-1      b in epoch 2: nothing
               a has given it up, is in epoch 2: t-0      b in epoch 2: t-1, with its next heartbeat

A member that has gone, or was given up, has nothing: its log partitions are free at once, and its epoch is no longer
valid, which is what keeps its late commits out (rule 44).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from harness.broker.core.messages import JOINS
from harness.broker.core.types import TopicPartition

Partitions: TypeAlias = tuple[TopicPartition, ...]


class MemberRecord(msgspec.Struct, frozen=True):
    """A member: its epoch and the one before, what it reads, may read, and still has to give up.

    The coordinator takes the epoch before only from a member that may have missed the answer with the new one.
    """

    epoch: int
    previous_epoch: int
    topics: tuple[str, ...]
    rebalance_timeout_ms: int
    assigned: Partitions = ()
    revoking: Partitions = ()

    @property
    def held(self) -> set[TopicPartition]:
        """All that it may still be reading."""
        return {*self.assigned, *self.revoking}


class GroupRecord(msgspec.Struct, frozen=True, tag="consumer"):
    """A group with this protocol: the value of a record of the coordinator's log."""

    epoch: int = 0
    members: dict[str, MemberRecord] = {}

    def joined(self, name: str, topics: tuple[str, ...], rebalance_timeout_ms: int) -> GroupRecord:
        """The group with a member that begins with nothing, also where one of that name was there."""
        member = MemberRecord(JOINS, JOINS, topics, rebalance_timeout_ms)
        return GroupRecord(self.epoch + 1, {**self.members, name: member})

    def without(self, names: Collection[str]) -> GroupRecord:
        """The group when these members have gone."""
        left = {name: member for name, member in self.members.items() if name not in names}
        return GroupRecord(self.epoch + 1, left)

    def having(self, name: str, member: MemberRecord) -> GroupRecord:
        """The group with another state of one member, in the same epoch."""
        return replace(self, members={**self.members, name: member})

    def held_by_others(self, name: str) -> set[TopicPartition]:
        """All that members but this one may still be reading."""
        return {each for other, member in self.members.items() if other != name for each in member.held}


def targets_of(members: Mapping[str, MemberRecord], partitions_of: Callable[[str], int]) -> dict[str, Partitions]:
    """The log partitions of each topic, dealt out in turn to the members that read it, in the order of their names."""
    dealt: dict[str, list[TopicPartition]] = {name: [] for name in sorted(members)}
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        readers = [name for name in dealt if topic in members[name].topics]
        for number in range(partitions_of(topic)):
            dealt[readers[number % len(readers)]].append(TopicPartition(topic, number))
    return {name: tuple(partitions) for name, partitions in dealt.items()}


def reconciled(
    member: MemberRecord,
    epoch: int,
    target: Collection[TopicPartition],
    *,
    owned: Partitions,
    taken: set[TopicPartition],
) -> MemberRecord:
    """The member's next step towards its ``target`` in the group's ``epoch``.

    By its heartbeat it has the log partitions ``owned``; others hold those that are ``taken``.
    """
    wanted, held = set(target), member.held
    left = (held - wanted).intersection(owned)
    if left:
        kept = wanted.intersection(member.assigned)
        return replace(member, assigned=tuple(sorted(kept)), revoking=tuple(sorted(left)))
    assigned = tuple(sorted(wanted - taken))
    previous = member.previous_epoch if epoch == member.epoch else member.epoch
    return replace(member, epoch=epoch, previous_epoch=previous, assigned=assigned, revoking=())
