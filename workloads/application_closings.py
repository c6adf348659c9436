"""The closings of a run with a user's program (:mod:`workloads.application`), as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from workloads.closings import SETTLE_MS, Begun, Closings, Levels
from workloads.settings import IsolationLevel

if TYPE_CHECKING:  # it needs libraries of the driver, and this module is behind the door of all
    from workloads.ending import RunEnding

#: Time for processes to end after they were killed.
KILLED_MS: Final = 500


class CatchUp(msgspec.Struct, frozen=True):
    """Wait until every input that was acknowledged has its effect, as long as `drain_limit_ms`."""

    def begin(self, ending: RunEnding) -> Begun:
        """Look at outputs, and ask what the group has committed."""
        return Begun(ending.application.catch_up(), ending.plan.drain_limit_ms)


class EndInstances(msgspec.Struct, frozen=True):
    """End every instance in order, and then what is left of them, so that nothing is written any more."""

    def begin(self, ending: RunEnding) -> Begun:
        """Ask them to end."""
        run = ending.application
        return Begun(ending.application.end_instances(), run.plan.stop_timeout_ms, KILLED_MS)


class PrintEffects(msgspec.Struct, frozen=True):
    """Let the user's command print what a sink did; nothing where it writes to topics."""

    def begin(self, ending: RunEnding) -> Begun:
        """It is done before this returns."""
        ending.application.print_effects()
        return Begun()


class AwaitStableOutput(msgspec.Struct, frozen=True):
    """Wait until no transaction is open in the output."""

    def begin(self, ending: RunEnding) -> Begun:
        """Ask for the ends."""
        if not ending.application.outputs:
            return Begun()
        work = ending.application.await_stable()
        return Begun(work, work.limit_ms)


class WriteLastOutput(msgspec.Struct, frozen=True):
    """Let a plain record be the last one of each log partition of the output."""

    def begin(self, ending: RunEnding) -> Begun:
        """Write by fresh producers."""
        if not ending.application.outputs:
            return Begun()
        return Begun(ending.application.write_last(), ending.plan.recovery_limit_ms, SETTLE_MS)


class ReadOutput(msgspec.Struct, frozen=True):
    """Read the output to its end at a level."""

    level: IsolationLevel

    def begin(self, ending: RunEnding) -> Begun:
        """Read by fresh consumers."""
        if not ending.application.outputs:
            return Begun()
        return Begun(ending.application.read(self.level), ending.plan.drain_limit_ms // 2)


class TellEffects(msgspec.Struct, frozen=True):
    """Write down every effect, and what became of the application."""

    def begin(self, ending: RunEnding) -> Begun:
        """It is done at once."""
        ending.application.tell()
        return Begun()


def of_applications(levels: Levels, _brokers: Sequence[int]) -> Closings:
    """The application catches up before the input is read; then it is ended, and its output is read at both levels."""
    return Closings(
        before=(CatchUp(), EndInstances(), PrintEffects()),
        after=(WriteLastOutput(), AwaitStableOutput(), ReadOutput(levels[0]), ReadOutput(levels[1]), TellEffects()),
    )
