"""The closings of a run: what a kind of workload does and asks in the end, once all is healed.

Every run lets fresh clients write, then reads each log partition to its end: no kind can leave that out. A kind says,
as data, what is done before that read, after it, and at last, when leaders may be moved (:class:`Closings`). The phases
of a run do these closings in order, each with its limit, and know none of them.

A closing is a record with one method, :meth:`Closing.begin`. A workload with an ending of its own has its closing in
its own file, and a function like those below, which its entry in :data:`workloads.generators.WORKLOADS` names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from workloads.settings import IsolationLevel

if TYPE_CHECKING:  # it needs libraries of the driver, and this module is behind the door of all
    from workloads.ending import RunEnding

#: After the last write was answered: for messages still under way (acks=0 has no answer) and the high watermark, which
#: lags behind by one fetch (rule 6).
SETTLE_MS: Final = 300
#: For outstanding calls of closed clients to end in the history.
CLOSING_MS: Final = 50
#: For cleaners of compacted topics: two rounds on a busy machine. Where tombstones stay for longer than a run, none
#: goes while it is read.
CLEANING_MS: Final = 3_000
RETENTION_WAIT_MS_MAX: Final = 5_000


class Work(Protocol):
    """Work that goes on by callbacks, and writes what it sees into the history."""

    @property
    def finished(self) -> bool:
        """True once nothing is left to do."""
        ...

    def end(self) -> None:
        """Close its clients. What was not answered is not known."""
        ...


class NoWork:
    """No work: a closing that only waits, or was done when it began."""

    finished: Final = True

    def end(self) -> None:
        """There is no client to close."""


class Begun(NamedTuple):
    """A closing that has begun: its work, the most served time for it, and the pause after it (milliseconds)."""

    work: Work = NoWork()
    limit_ms: int = 0
    pause_ms: int = 0


class Closing(Protocol):
    """One thing that is done, or asked, in the end."""

    def begin(self, ending: RunEnding) -> Begun:
        """Begin the closing: its clients work from now on."""
        ...


class Rest(msgspec.Struct, frozen=True):
    """Wait until nothing is left to clean: a slow reader would miss a tombstone that goes while it reads."""

    def begin(self, ending: RunEnding) -> Begun:
        """Wait for tombstones to go, and for the cleaners."""
        return Begun(pause_ms=min(ending.settings.delete_retention_ms, RETENTION_WAIT_MS_MAX) + CLEANING_MS)


class FinishGroup(msgspec.Struct, frozen=True):
    """Let fresh members of the group do what is left, until it has committed the end of each log partition."""

    def begin(self, ending: RunEnding) -> Begun:
        """Ask, let members work, and ask again."""
        return Begun(ending.finish_group(), ending.plan.drain_limit_ms // 2, CLOSING_MS)


class WriteLast(msgspec.Struct, frozen=True):
    """Let a plain record be the last one of each log partition that members of the group write to.

    A reader that has seen the last record cannot tell that only the marker of a transaction follows.
    """

    def begin(self, ending: RunEnding) -> Begun:
        """Write by fresh producers."""
        return Begun(ending.write(ending.outputs), ending.plan.recovery_limit_ms, SETTLE_MS)


class AwaitStable(msgspec.Struct, frozen=True):
    """Wait until no transaction is open: a reader of committed records does not pass one that is."""

    def begin(self, ending: RunEnding) -> Begun:
        """Ask for the ends, until none is held."""
        work = ending.ask_stable()
        return Begun(work, work.limit_ms)


class ReadAgain(msgspec.Struct, frozen=True):
    """Read every log partition again at a level; ``leader`` leads them, where a :class:`Lead` came before."""

    level: IsolationLevel
    leader: int | None = None

    def begin(self, ending: RunEnding) -> Begun:
        """Read by fresh consumers."""
        return Begun(ending.read(self.level, self.leader), ending.plan.drain_limit_ms // 2, CLOSING_MS)


class Lead(msgspec.Struct, frozen=True):
    """Let one broker lead every log partition. Each replica cleans for itself, and keeps its own account of aborts."""

    broker: int

    def begin(self, ending: RunEnding) -> Begun:
        """Move the leaders; they are moved when this returns."""
        ending.lead(self.broker)
        return Begun()


class AskCommitted(msgspec.Struct, frozen=True):
    """Ask a group what it has committed once this broker, if it is in sync, coordinates it."""

    broker: int

    def begin(self, ending: RunEnding) -> Begun:
        """Move the coordinator, and ask; ask nothing where the broker cannot be it."""
        if not ending.leaders.coordinate(self.broker):
            return Begun()
        return Begun(ending.ask_committed(), ending.plan.drain_limit_ms // 2, CLOSING_MS)


class Closings(NamedTuple):
    """The closings of a kind of workload, each part in order.

    Attributes:
        before: before the final read.
        after: after it, before leaders that changed by themselves are looked for: none of these moves a leader.
        again: at last.
    """

    before: tuple[Closing, ...] = ()
    after: tuple[Closing, ...] = ()
    again: tuple[Closing, ...] = ()


#: The isolation levels, that of the run's readers first.
Levels = tuple[IsolationLevel, IsolationLevel]
#: Gives the closings of a kind, for these levels, and brokers that can be made leaders in turn.
MakesClosings = Callable[[Levels, Sequence[int]], Closings]


def nothing_more(_levels: Levels, _brokers: Sequence[int]) -> Closings:
    """Nothing but the final read."""
    return Closings()


def of_keys(levels: Levels, brokers: Sequence[int]) -> Closings:
    """Cleaners rest before the final read; then each leader in turn is read from."""
    return Closings((Rest(),), again=tuple(step for broker in brokers for step in _under(broker, levels[:1])))


def of_transactions(levels: Levels, brokers: Sequence[int]) -> Closings:
    """No transaction is open any more; then it is read at both levels, and so under each leader."""
    under_each = (step for broker in brokers for step in _under(broker, levels))
    return Closings((AwaitStable(),), again=(ReadAgain(levels[1]), *under_each))


def of_keyed_transactions(levels: Levels, brokers: Sequence[int]) -> Closings:
    """As :func:`of_transactions`, once cleaners rest: they do not pass an open transaction."""
    closings = of_transactions(levels, brokers)
    return closings._replace(before=(*closings.before, Rest()))


def of_groups(_levels: Levels, brokers: Sequence[int]) -> Closings:
    """Members read what is left; then each coordinator is asked."""
    return Closings(after=(FinishGroup(),), again=tuple(AskCommitted(broker) for broker in brokers))


def of_pipelines(levels: Levels, brokers: Sequence[int]) -> Closings:
    """Members do what is left before what they wrote is read, as transactions are; each broker coordinates, too."""
    under_each = (step for broker in brokers for step in (*_under(broker, levels), AskCommitted(broker)))
    return Closings((FinishGroup(), WriteLast(), AwaitStable()), again=(ReadAgain(levels[1]), *under_each))


def _under(broker: int, levels: Sequence[IsolationLevel]) -> tuple[Closing, ...]:
    """The reads under one leader."""
    return (Lead(broker), *(ReadAgain(level, broker) for level in levels))
