"""Looks in a foreign history for processes that do two operations at a time, or end one that they did not begin.

A process is one thread of a client. Pairing accepts such a process as well as it can, but then silence proves nothing:
an operation that was lost in the recording may be the one that would show an anomaly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from workloads.history.schema import NAMELESS
from workloads.operations import Event, EventType, Function

#: Functions with both a begin and an end.
_ASKED: Final = frozenset({Function.SEND, Function.POLL, Function.TXN, Function.ASSIGN, Function.SUBSCRIBE})


@dataclass(frozen=True)
class Irregular:
    """An event that cannot come then: a begin of a process that is busy ``since`` another event, or an end (None)."""

    index: int
    process: int
    since: int | None


@dataclass
class Turns:
    """Begins and ends of processes' operations in a stretch of a history; all indexes are of events.

    Attributes:
        first: by process, its first event here, and whether that begins something.
        busy: by process that does something at the end of the stretch, the event since which it does.
        irregular: the first event that cannot come after those before it here.
    """

    first: dict[int, tuple[int, bool]] = field(default_factory=dict)
    busy: dict[int, int] = field(default_factory=dict)
    irregular: Irregular | None = None

    def add(self, events: Iterable[Event | None], first: int) -> None:
        """Follow more events; the first has index ``first``, and those that are passed over are None."""
        if self.irregular is not None:
            return
        for index, event in enumerate(events, first):
            if event is None or event.function not in _ASKED or not 0 <= event.process < NAMELESS:
                continue
            process, begins = event.process, event.type is EventType.INVOKE
            if process not in self.first:
                self.first[process] = index, begins
            elif begins == (process in self.busy):
                self.irregular = Irregular(index, process, self.busy.get(process))
                return
            if begins:
                self.busy[process] = index
            else:
                self.busy.pop(process, None)

    def follow(self, later: Turns, first: int) -> None:
        """Append the stretch ``later``, whose indexes count from ``first`` here."""
        if self.irregular is not None:
            return
        irregular = [
            Irregular(first + index, process, self.busy.get(process))
            for process, (index, begins) in later.first.items()
            if begins == (process in self.busy)
        ]
        if (here := later.irregular) is not None:
            since = None if here.since is None else first + here.since
            irregular.append(Irregular(first + here.index, here.process, since))
        self.irregular = min(irregular, key=lambda event: event.index, default=None)
        for process in later.first:
            self.busy.pop(process, None)
        self.busy |= {process: first + index for process, index in later.busy.items()}
