"""Synthetic histories of consumer groups: members that poll, process and commit, and partitions that change hands.

Each of a few groups reads all log partitions of a block. A member does one thing after the other: it polls what was
acknowledged, processes it, commits. Now and then two members change places, each beginning at the last commit of the
other; and a client asks the group where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from typing_extensions import override

from bench.event_sequence import LATENCY_US, STEP_US
from bench.plant_parts import FIRST_PROCESS
from bench.synthetic import KEYS, BlockBuilder
from workloads import EventType, Function, GroupMember, Poll, Reached, Record

GROUPS: Final = 8
MEMBERS: Final = 4
#: One in this number of a group's turns begins with a rebalance, or a question.
REBALANCE_EVERY: Final = 32
ASK_EVERY: Final = 16
#: Values in one log partition that are sent while each group has one turn.
_SENT_IN_A_TURN: Final = 1


class SyntheticGroup:
    """A group: its generation, who owns which log partition, and how far the group is in each."""

    def __init__(self, number: int, inputs: int) -> None:
        self.detail = GroupMember(group=f"g{number}")
        self.generation = 1
        self.first = FIRST_PROCESS + 1000 * (number + 1)
        self.owner = [key % MEMBERS for key in range(inputs)]
        self.reached = [0] * inputs

    def member(self, number: int) -> int:
        """The process of a member's polls; its commits have the next one."""
        return self.first + 10 * number


class GroupBlock(BlockBuilder):
    """A block of the work of groups, which are done with it at its end."""

    uncounted: ClassVar[frozenset[Function]] = frozenset({Function.SEND})
    plants: ClassVar[Sequence[str]] = (
        "group-skip", "group-went-back", "returned-group", "two-owners", "unfenced-instance", "stale-generation",
    )  # fmt: skip
    #: Groups, and how many of the log partitions they read.
    groups: ClassVar[int] = GROUPS
    inputs: ClassVar[int] = KEYS
    #: A turn of a member: a poll, a PROCESS and a commit, each with its longest duration.
    turn_us: ClassVar[int] = 3 * LATENCY_US[1]

    @override
    def build(self) -> None:
        groups = [SyntheticGroup(number, self.inputs) for number in range(self.groups)]
        for group in groups:
            for number in range(MEMBERS):
                self.rebalanced(group, number)
        self.sequence.quiet()
        turns = self.end // _SENT_IN_A_TURN
        for turn in range(turns + MEMBERS):
            if turn < turns:
                self.write(range(turn * _SENT_IN_A_TURN, (turn + 1) * _SENT_IN_A_TURN))
            begin = self.sequence.time_us
            for group in groups:
                self.turn(group, turn)
                self.sequence.time_us = begin
            self.sequence.time_us = begin + self.turn_us + STEP_US
        self.spoil()

    def write(self, values: range) -> None:
        """Send these values to every log partition."""
        for value in values:
            for key in range(self.inputs):
                self.sequence.operation(key % 8, Function.SEND, self.sent(key, value))
        self.sequence.quiet()
        self.seen_to = [values.stop] * KEYS

    def turn(self, group: SyntheticGroup, turn: int) -> None:
        """Let one member of a group take its turn; the others wait."""
        if turn % REBALANCE_EVERY == REBALANCE_EVERY - 1:
            first = (turn // REBALANCE_EVERY) % MEMBERS
            second = (first + 1) % MEMBERS
            group.generation += 1
            group.owner = [{first: second, second: first}.get(owner, owner) for owner in group.owner]
            self.rebalanced(group, first)
            self.rebalanced(group, second)
        if turn % ASK_EVERY == 0:
            self.ask(group)
        number = turn % MEMBERS
        mine = [k for k in range(self.inputs) if group.owner[k] == number and group.reached[k] < self.seen_to[k]]
        if not mine:
            return
        read = {self.keys[key]: range(group.reached[key], self.seen_to[key]) for key in mine}
        records = {name: tuple(Record(value, value) for value in values) for name, values in read.items()}
        member = group.member(number)
        done = self.sequence.operation(member, Function.POLL, (Poll(records),))
        ranges = tuple(Reached(name, values.stop, values.start) for name, values in read.items())
        self.sequence.event(done + 1, member, EventType.OK, Function.PROCESS, micro=ranges, detail=group.detail)
        self.commits(group, member, done + 2, ranges)
        for key in mine:
            group.reached[key] = self.seen_to[key]

    def commits(self, group: SyntheticGroup, member: int, time_us: int, ranges: tuple[Reached, ...]) -> None:
        """Let a member commit what it has processed, from this time on."""
        end_us = time_us + self.sequence.chance.randint(*LATENCY_US)
        self.asks((time_us, end_us), member, Function.COMMIT, ranges, group.detail)

    def asks(
        self,
        times_us: tuple[int, int],
        member: int,
        function: Function,
        ranges: tuple[Reached, ...],
        detail: GroupMember,
    ) -> None:
        """Let a member ask the group for something with offsets, which is answered: the times of both."""
        asked = tuple(Reached(reached.partition, reached.offset) for reached in ranges)
        for time_us, kind in zip(times_us, (EventType.INVOKE, EventType.OK), strict=True):
            self.sequence.event(time_us, member + 1, kind, function, micro=asked, detail=detail)

    def rebalanced(self, group: SyntheticGroup, number: int) -> None:
        """Tell a member what it has from now on."""
        mine = tuple(self.keys[key] for key in range(self.inputs) if group.owner[key] == number)
        self.sequence.event(
            self.sequence.time_us,
            group.member(number),
            EventType.OK,
            Function.REBALANCE,
            partitions=mine,
            detail=GroupMember(group=group.detail.group, generation=group.generation),
        )
        self.sequence.time_us += 1

    def ask(self, group: SyntheticGroup) -> None:
        """Ask a group where it is."""
        told = tuple(Reached(self.keys[key], group.reached[key] or -1) for key in range(self.inputs))
        asker = group.first + 900
        for kind, micro in ((EventType.INVOKE, ()), (EventType.OK, told)):
            self.event(
                asker,
                kind,
                Function.COMMITTED,
                micro=micro,
                partitions=tuple(self.keys[: self.inputs]),
                detail=group.detail,
            )
