"""Counts of what became of the inputs of an application under test, and of its instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec
import numpy as np
from typing_extensions import override

from checkers.columns.effects import EffectRows
from checkers.columns.ids import Flags
from checkers.columns.log import Log
from checkers.columns.phases import RunMarks
from checkers.measures.measure import Measure
from checkers.words import counted
from workloads import InputProgress
from workloads.history import NONE


class InstanceEnd(msgspec.Struct, frozen=True, array_like=True):
    """An instance that ended by itself."""

    instance: int
    time_us: int
    exit: str


class ApplicationCounts(Measure):
    """Counts of one history, or of some of its log partitions; all are 0 where it has no application.

    Attributes:
        promise: what the application promises, "" without an application.
        inputs: inputs in the log that should have an effect.
        once, doubled, missing, pending: those with all effects, with more, with none or too few though the application
            has passed them, and those that it has not come to.
        unexplained: outputs that no input explains.
        starts, exits: starts of instances, and ends of instances that the run did not ask for.
        waited_ms: how long the application was waited for after healing.
        blind: nothing but its group tells what it did.
        unread: log partitions of the output that were not read to their end, and why.
        topics: topics that it made by itself.
        instances: instances of the plan; 0 where nothing is told of them.
        progress: how many inputs there were, and were done and committed, by moment.
        ends: the ends of instances that nothing of the run asked for.
    """

    promise: str = ""
    inputs: int = 0
    once: int = 0
    doubled: int = 0
    missing: int = 0
    pending: int = 0
    unexplained: int = 0
    starts: int = 0
    exits: int = 0
    waited_ms: int = 0
    blind: bool = False
    unread: dict[str, str] = msgspec.field(default_factory=dict)
    topics: tuple[str, ...] = ()
    instances: int = 0
    progress: tuple[InputProgress, ...] = ()
    ends: tuple[InstanceEnd, ...] = ()

    @property
    def sentence(self) -> str:
        """Say what became of the inputs; "" without an application."""
        if not self.promise:
            return ""
        done = "were passed by the group; what it made of them, nothing told" if self.blind else "had their effect once"
        counts = (
            (self.once, done),
            (self.doubled, "had it more often"),
            (self.missing, "have none though they were passed"),
            (self.pending, "were still to be done"),
        )
        became = ", ".join(f"{number:,} {words}" for number, words in counts if number) or "none was in the log"
        more = f"; {counted(self.unexplained, 'output')} named no input" if self.unexplained else ""
        ends = f"; instances ended by themselves {counted(self.exits, 'time')}" if self.exits else ""
        own = f" It made the topics {', '.join(self.topics)} by itself." if self.topics else ""
        return f"Of {counted(self.inputs, 'input')}, {became}{more}{ends}.{own}"

    @classmethod
    @override
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[ApplicationCounts]:
        if log.effects is None:
            return [cls() for _ in phases]
        return [_counts(log, log.effects, history) for history in range(len(phases))]

    @override
    def add(self, other: Self) -> None:
        super().add(other)
        self.promise = self.promise or other.promise
        self.unread |= other.unread
        self.blind = self.blind or other.blind
        self.topics, self.progress = self.topics or other.topics, self.progress or other.progress
        self.ends = self.ends or other.ends


def _counts(log: Log, effects: EffectRows, history: int) -> ApplicationCounts:
    facts = effects.facts[history]
    if facts is None:
        return ApplicationCounts()
    mine = (log.partition_history[log.values.partition] == history) & (effects.due > 0)
    made, due = effects.made, effects.due
    lacking = mine & (made < due)
    odd = log.partition_history[log.partition[effects.effects[effects.source == NONE]]] == history
    names = {
        key for key, owner in zip(log.partition_key, log.partition_history.tolist(), strict=True) if owner == history
    }
    first = facts.inputs[0] in names  # of the parts of a history, one tells what is not of a log partition
    return ApplicationCounts(
        promise=facts.promise,
        inputs=_number(mine),
        once=_number(mine & (made == due)),
        doubled=_number(mine & (made > due)),
        missing=_number(lacking & effects.passed),
        pending=_number(lacking & ~effects.passed),
        unexplained=_number(odd),
        starts=facts.starts if first else 0,
        exits=len(facts.exits) if first else 0,
        waited_ms=facts.waited_ms if first else 0,
        blind=not facts.outputs,
        unread=facts.unread,
        topics=facts.topics,
        instances=facts.instances if first else 0,
        progress=facts.progress if first else (),
        ends=tuple(InstanceEnd(end.instance, end.time_us, end.exit) for end in facts.exits) if first else (),
    )


def _number(flags: Flags) -> int:
    return int(np.count_nonzero(flags))
