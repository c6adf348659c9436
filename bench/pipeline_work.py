"""Synthetic histories of pipelines: members of a group that write a record for each one that they read.

A group reads half of a block's log partitions and writes to the others, each member in transactions of its own, which
commit offsets, too. Some are aborted; then the member does the same records again. A reader of committed records reads
all that counts at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from typing_extensions import override

from bench.event_sequence import LATENCY_US, asked
from bench.group_work import GroupBlock, SyntheticGroup
from bench.synthetic import KEYS
from workloads import EventType, Function, MicroOperation, Poll, Reached, Record, Send, TransactionEnd

#: One in this number of transactions is aborted.
ABORT_EVERY: Final = 10
_READER: Final = 90


class PipelineBlock(GroupBlock):
    """A block of the work of a pipeline, which is done with it at its end."""

    uncounted: ClassVar[frozenset[Function]] = frozenset(Function) - {Function.TXN}
    plants: ClassVar[Sequence[str]] = ("missing-effect", "doubled-effect", "aborted-commit", "unstable-offset")
    groups: ClassVar[int] = 1
    inputs: ClassVar[int] = KEYS // 2
    turn_us: ClassVar[int] = 6 * LATENCY_US[1]

    @override
    def build(self) -> None:
        self.log: list[list[Record]] = [[] for _ in range(KEYS)]
        self.ends = [0] * KEYS
        self.made = 0
        super().build()

    @override
    def spoil(self) -> None:
        self.sequence.quiet()
        for key in range(self.inputs, KEYS):
            self.sequence.operation(_READER, Function.POLL, (Poll({self.keys[key]: tuple(self.log[key])}),))
            self.sequence.quiet()
        super().spoil()

    @override
    def commits(self, group: SyntheticGroup, member: int, time_us: int, ranges: tuple[Reached, ...]) -> None:
        self.made += 1
        if self.made % ABORT_EVERY == 0:
            time_us = self.transaction(group, member, time_us, ranges, EventType.FAIL) + 1
            self.made += 1
        self.transaction(group, member, time_us, ranges, EventType.OK)

    def transaction(
        self, group: SyntheticGroup, member: int, begin_us: int, ranges: tuple[Reached, ...], kind: EventType
    ) -> int:
        """Let a member write what it makes of these records in one transaction; the time at which it ends."""
        sources = {part.partition: tuple(range(part.since or 0, part.offset)) for part in ranges}
        sends = [self.effect(name, offset, kind) for name, offsets in sources.items() for offset in offsets]
        for partition in {send.partition for send in sends}:
            self.ends[self.keys.index(partition)] += 1
        handed_us = begin_us + self.sequence.chance.randint(*LATENCY_US)
        end_us = handed_us + self.sequence.chance.randint(*LATENCY_US)
        facts = TransactionEnd(
            transactional_id=f"p{member}",
            number=0,
            asked="commit" if kind is EventType.OK else "abort",
            ending_us=handed_us + 1,
            group=group.detail.group,
            handed_us=handed_us,
            sources=sources,
        )
        micro: tuple[MicroOperation, ...] = (*sends, *ranges)
        self.sequence.event(begin_us, member + 2, EventType.INVOKE, Function.TXN, micro=asked(micro))
        self.asks((begin_us + 1, handed_us), member, Function.OFFSETS, ranges, group.detail)
        self.sequence.event(end_us, member + 2, kind, Function.TXN, micro=micro, detail=facts)
        return end_us

    def effect(self, name: str, offset: int, kind: EventType) -> Send:
        """Append what is made of a record to the log partition that belongs to its own."""
        source = self.keys.index(name)
        key = self.inputs + source
        end = self.ends[key]
        self.ends[key] += 1
        value = self.made * 2 * self.end + offset
        if kind is EventType.OK:
            self.log[key].append(Record(end, value))
        return Send(self.keys[key], value, end)
