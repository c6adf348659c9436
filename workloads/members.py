"""The members of a consumer group in the break phase: they come, go, freeze and die on the workload's own schedule."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

from workloads.client import Clock, Membership
from workloads.operations import Poll
from workloads.plan import WorkloadPlan
from workloads.polling_member import Lost, PollingMember, Read
from workloads.settings import Settings

#: A member freezes for this many times its session, so that the group gives it up meanwhile.
FREEZE_SESSIONS: Final = 1.5
#: Pause between commits of a library by itself.
AUTO_COMMIT_MS: Final = 500
#: Acts of the schedule, in turn.
CHANGES: Final = ("freeze", "leave", "die")


class MakesMember(Protocol):
    """Makes a member of one slot."""

    def __call__(self, *, on_read: Read, lost: Lost) -> PollingMember:
        """Make another one."""
        ...


def membership_of(plan: WorkloadPlan, settings: Settings, number: int | None = None) -> Membership:
    """The membership of the member with this number, or of one that is only there at the end.

    The group has the first topic's name.
    """
    return Membership(
        group=plan.topic,
        instance_id=f"member-{number}" if plan.static_members and number is not None else None,
        protocol=settings.group_protocol,
        session_timeout_ms=settings.session_timeout_ms,
        auto_commit_ms=AUTO_COMMIT_MS if settings.commit_mode == "auto" and number is not None else None,
        reset="earliest" if number is None else settings.auto_offset_reset,
        retention_ms=settings.group_retention_ms,
    )


class Members:
    """The members of one group, each in a slot of its own. One that is gone is followed by a new one.

    Every ``change_ms`` (0: never) something is done to one of them: it freezes, for each of ``freezes_ms`` in turn,
    leaves in order and comes back after half that time, or dies and a new one takes its slot at once.
    """

    def __init__(
        self, clock: Clock, makes: Sequence[MakesMember], *, change_ms: int, freezes_ms: Sequence[int]
    ) -> None:
        self._clock = clock
        self._change_ms = change_ms
        self._freezes_ms = itertools.cycle(freezes_ms)
        self._stopped = False
        self._changes = 0
        self._make = [partial(make, on_read=self._count, lost=self._replace) for make in makes]
        self._members = [make() for make in self._make]
        self.records_read = 0

    def start(self) -> None:
        """Join the group, and read from now on."""
        for member in self._members:
            member.start()
        self._await_change()

    def stop(self) -> None:
        """Close every client."""
        self._stopped = True
        for member in self._members:
            member.stop()

    def _await_change(self) -> None:
        if self._change_ms and self._members:
            self._clock.call_at(self._clock.now_us() + self._change_ms * 1000, self._change)

    def _change(self) -> None:
        if self._stopped:
            return
        # With the second term no slot always has the same fate.
        member = self._members[(self._changes + self._changes // len(CHANGES)) % len(self._members)]
        match CHANGES[self._changes % len(CHANGES)]:
            case "freeze":
                member.strike("freeze", next(self._freezes_ms))
            case "die":
                member.strike("die")
            case _:
                member.leave()
        self._changes += 1
        self._await_change()

    def _count(self, read: Poll) -> None:
        self.records_read += sum(map(len, read.records.values()))

    def _replace(self, lost: PollingMember) -> None:
        if self._stopped:
            return
        after_ms = self._change_ms // 2 if lost.leaving else 0
        self._clock.call_at(self._clock.now_us() + after_ms * 1000, partial(self._renew, lost))

    def _renew(self, lost: PollingMember) -> None:
        if not self._stopped:
            number = self._members.index(lost)
            fresh = self._members[number] = self._make[number]()
            fresh.start()
