"""A member of a consumer group that takes one turn at a time, when it is told to: for scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from typing_extensions import override

from workloads.client import Membership, MemberToken, Offsets, SendOutcome, Transactions
from workloads.consumers import Readers, only_recorded
from workloads.membership import CommitLine, Member
from workloads.operations import EventType, Function, Reached
from workloads.polling_member import Records
from workloads.settings import CommitMode

#: Times in a session at which its library is called, so that it can send heartbeats.
CALLS_A_SESSION: Final = 10


class SteppedMember(Member):
    """A member whose next poll, and whose other half of the work, wait until they are asked for.

    Between its turns it sends heartbeats, as libraries do by a thread of their own: it asks for the group's offsets,
    which is no part of the history.

    Attributes:
        frozen: it stands still altogether.
        read: the values that its last poll brought.
        committed: by log partition, the offsets that it was told the group took.
        error: the error of its last commit.
    """

    def __init__(self, readers: Readers, membership: Membership, mode: CommitMode, **of_group: Any) -> None:
        super().__init__(readers, membership, mode, on_read=only_recorded, lost=_without_successor, **of_group)
        self._beat_us = membership.session_timeout_ms * 1000 // CALLS_A_SESSION
        self._halfway = False
        self._other_half: Callable[[], None] | None = None
        self._beats = False
        self._busy = self.frozen = False
        self.read: tuple[int, ...] = ()
        self.committed: dict[str, int] = {}
        self.error: str | None = None

    @property
    def group(self) -> str:
        """The name of its group."""
        return self._membership.group

    @property
    def assigned(self) -> bool:
        """It has a log partition."""
        return bool(self._assigned) and not self._stopped

    @property
    def busy(self) -> bool:
        """It polls, works, or stands still between the two halves of its work."""
        return self._busy and not self._stopped

    @property
    def gone(self) -> bool:
        """It has left, or died."""
        return self._stopped

    @property
    def halfway(self) -> bool:
        """It stands still between the two halves of its work."""
        return self._other_half is not None

    @override
    def start(self) -> None:
        self._busy = True
        super().start()
        self._beat()

    def take_turn(self, *, halfway: bool) -> None:
        """Poll once; ``halfway``: what it brings is processed, or committed, and the other half waits."""
        self._busy, self._halfway, self.read, self.error = True, halfway, (), None
        self._poll()

    def go_on(self) -> None:
        """Do the other half of the work, if one waits."""
        other_half, self._other_half = self._other_half, None
        if other_half is not None:
            other_half()

    def crash(self) -> None:
        """Die without a word."""
        self._die()

    def hand_over(self, part: Reached, calls: Transactions, told: Callable[[SendOutcome], None]) -> None:
        """Hand an offset over to the open transaction of a producer, as a member that its library believes it is."""
        line = CommitLine(self._readers, self.number, self._membership, Function.OFFSETS)

        def answered(outcome: SendOutcome) -> None:
            line.handed((part,), outcome)
            told(outcome)

        def named(member: MemberToken) -> None:
            line.begin((part,))
            if member.token is None:
                answered(SendOutcome(EventType.FAIL, None, member.error))
            else:
                calls.send_offsets({part.partition: part.offset}, member, answered)

        assert self.consumer.commits is not None  # noqa: S101 - it was made with a membership
        self.consumer.commits.ask_member(named)

    @override
    def _work(self, records: Records) -> None:
        self.read = tuple(record.value for mine in records.values() for record in mine)
        super()._work(records)

    @override
    def _between(self, proceed: Callable[[], None]) -> None:
        if self._halfway:
            self._other_half = proceed
        else:
            proceed()

    @override
    def _rest(self) -> None:
        self._busy = False

    @override
    def _committed(self, ranges: tuple[Reached, ...], answer: Offsets) -> None:
        self.committed |= answer.offsets
        self.error = answer.error
        super()._committed(ranges, answer)

    def _beat(self) -> None:
        """Have the library send what is due."""
        if self._stopped:
            return
        if not self.frozen and not self._beats:
            self._beats = True
            assert self.consumer.commits is not None  # noqa: S101 - it was made with a membership
            self.consumer.commits.ask_committed(self._partitions, self._has_beaten)
        clock = self._readers.clock
        clock.call_at(clock.now_us() + self._beat_us, self._beat)

    def _has_beaten(self, _: Offsets) -> None:
        self._beats = False


def _without_successor(_: object) -> None:
    """A script makes the next member itself."""
