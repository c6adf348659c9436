"""The offsets that one consumer group remembers, and those of transactions that are open (rules 44 and 46).

An offset that is committed in a transaction is *pending*: it counts from the marker on that commits the transaction,
and is gone with one that aborts it. Among those that count the last one on the log of groups is remembered, whatever
the order of their markers:

    log        0: 3   1: 5 of producer 7   2: 4 of producer 8   3: marker, 8 commits   4: marker, 7 commits
    pending           7: 5                 7: 5, 8: 4           7: 5
    remembered    3   3                    3                    4                      4
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from harness.broker.core.types import Opaque, TopicPartition

Offset = TypeVar("Offset")


class GroupOffsets(Generic[Offset]):
    """The offsets of one group, each with where the log of groups has it, which is ``log_offset``.

    Calls come in the order of that log. An offset may be a number, or what else is committed with it.
    """

    _remembered: dict[TopicPartition, tuple[int, Opaque[Offset]]]
    _pending: dict[int, dict[TopicPartition, tuple[int, Opaque[Offset]]]]

    def __init__(self) -> None:
        self._remembered = {}
        self._pending = {}

    def commit(self, offsets: Mapping[TopicPartition, Offset], log_offset: int) -> None:
        """Remember offsets that count at once."""
        for partition, offset in offsets.items():
            self._remember(partition, (log_offset, offset))

    def hold(self, producer_id: int, offsets: Mapping[TopicPartition, Offset], log_offset: int) -> None:
        """Keep them until the end of this producer's transaction."""
        pending = self._pending.setdefault(producer_id, {})
        pending |= {partition: (log_offset, offset) for partition, offset in offsets.items()}

    def end(self, producer_id: int, *, commit: bool) -> None:
        """End this producer's transaction: what was pending of it is remembered, or gone."""
        for partition, placed in self._pending.pop(producer_id, {}).items():
            if commit:
                self._remember(partition, placed)

    def of(self, partition: TopicPartition, otherwise: Offset) -> Offset:
        """The offset that the group remembers; ``otherwise`` without one."""
        placed = self._remembered.get(partition)
        return otherwise if placed is None else placed[1]

    def everything(self) -> dict[TopicPartition, Offset]:
        """All that the group remembers."""
        return {partition: offset for partition, (_, offset) in self._remembered.items()}

    def pending(self) -> dict[int, dict[TopicPartition, Offset]]:
        """All that waits for the end of a transaction, by producer."""
        return {
            producer_id: {partition: offset for partition, (_, offset) in held.items()}
            for producer_id, held in self._pending.items()
            if held
        }

    def partitions(self) -> set[TopicPartition]:
        """The log partitions with an offset that is remembered or pending."""
        return self._remembered.keys() | {each for pending in self._pending.values() for each in pending}

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """The offsets of these log partitions were deleted, those that were pending too (rule 56)."""
        for partition in partitions:
            for offsets in (self._remembered, *self._pending.values()):
                offsets.pop(partition, None)

    def unstable(self, partitions: Iterable[TopicPartition]) -> bool:
        """Some of these log partitions has an offset that is pending."""
        held = {partition for pending in self._pending.values() for partition in pending}
        return not held.isdisjoint(partitions)

    def _remember(self, partition: TopicPartition, placed: tuple[int, Offset]) -> None:
        remembered = self._remembered.get(partition)
        if remembered is None or remembered[0] < placed[0]:
            self._remembered[partition] = placed
