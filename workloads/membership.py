"""A member of a consumer group that commits as the plan says, and the operations of commits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from typing_extensions import override

from workloads.client import Membership, Offsets, OwnCommit, SendOutcome
from workloads.consumers import Readers
from workloads.errors import refuses_commit
from workloads.operations import Event, EventType, Function, MicroOperation, Reached
from workloads.polling_member import PollingMember, Records, detail_of, ranges_of
from workloads.settings import CommitMode


class CommitLine:
    """The operations ``COMMIT``, ``COMMITTED`` or ``OFFSETS`` of one client instance, one open at a time.

    One that ends INFO may still happen, so the next one is of another process.
    """

    def __init__(self, readers: Readers, instance: int, membership: Membership, function: Function) -> None:
        self._readers = readers
        self._event = partial(Event, instance=instance, function=function, detail=detail_of(membership))
        self._process = readers.new_process()

    def answered(self, asked: tuple[Reached, ...], answer: Offsets) -> None:
        """Write the completion of a commit of what was ``asked``."""
        taken = tuple(part for part in asked if part.partition in answer.offsets)
        refused = refuses_commit(answer.error or "")
        kind = EventType.OK if taken else EventType.FAIL if refused else EventType.INFO
        self.end(kind, taken or asked, answer.error)

    def handed(self, asked: tuple[Reached, ...], outcome: SendOutcome) -> None:
        """Write the completion of what was handed over to a transaction."""
        refused = refuses_commit(outcome.error or "")
        kind = EventType.OK if outcome.type is EventType.OK else EventType.FAIL if refused else EventType.INFO
        self.end(kind, asked, outcome.error)

    def begin(self, micro: tuple[MicroOperation, ...] = (), partitions: tuple[str, ...] = ()) -> None:
        """Write the invocation."""
        self._record(EventType.INVOKE, micro=micro, partitions=partitions)

    def end(self, kind: EventType, micro: tuple[MicroOperation, ...], error: str | None) -> None:
        """Write the completion."""
        self._record(kind, micro=micro, error=error)
        if kind is EventType.INFO:
            self._process = self._readers.new_process()

    def _record(self, kind: EventType, **fields: Any) -> None:
        now_us = self._readers.clock.now_us()
        self._readers.recorder.record(self._event(time_us=now_us, process=self._process, type=kind, **fields))


class OwnCommitLines:
    """The operations ``COMMIT`` that the library of one client instance makes by itself, also several at a time."""

    def __init__(self, make: Callable[[], CommitLine]) -> None:
        self._make = make
        self._idle: list[CommitLine] = []
        self._open: dict[int, CommitLine] = {}

    def told(self, commit: OwnCommit) -> None:
        """Write the begin or the end of one."""
        asked = tuple(Reached(*each) for each in commit.offsets.items())
        if commit.answer is None:
            line = self._open[commit.number] = self._idle.pop() if self._idle else self._make()
            line.begin(asked)
        else:
            line = self._open.pop(commit.number)
            line.answered(asked, commit.answer)
            self._idle.append(line)


class Member(PollingMember):
    """A member that only reads.

    It processes what a poll brought before it polls again. In the mode ``after-processing`` it commits after that, in
    ``before-processing`` before, and then it processes only what the group took; in ``auto`` its library commits,
    which is written down where the library tells it.
    It is done with what it has processed and, where it commits itself, committed.
    """

    def __init__(self, readers: Readers, membership: Membership, mode: CommitMode, **of_group: Any) -> None:
        super().__init__(readers, membership, **of_group)
        self._mode = mode
        line = partial(CommitLine, readers, self.number, membership, Function.COMMIT)
        self._commits = line()
        if mode == "auto" and self.consumer.own_commits is not None:
            self.consumer.own_commits.watch_own_commits(OwnCommitLines(line).told)

    @override
    def _work(self, records: Records) -> None:
        ranges = ranges_of(records)
        if self._mode == "before-processing":
            self._commit(ranges)
        else:
            self._process_records(ranges)
            self._between(partial(self._commit, ranges) if self._mode == "after-processing" else self._rest)

    def _process_records(self, ranges: tuple[Reached, ...]) -> None:
        self._processed(ranges)
        if self._mode != "after-processing":
            self.reached |= {part.partition: part.offset for part in ranges}

    def _commit(self, ranges: tuple[Reached, ...]) -> None:
        if self._stopped:
            return
        asked = tuple(Reached(part.partition, part.offset) for part in ranges)
        self._commits.begin(asked)
        assert self.consumer.commits is not None  # noqa: S101 - it was made with a membership
        offsets = {part.partition: part.offset for part in asked}
        self.consumer.commits.commit(offsets, partial(self._committed, ranges))

    def _committed(self, ranges: tuple[Reached, ...], answer: Offsets) -> None:
        taken = tuple(part for part in ranges if part.partition in answer.offsets)
        self._commits.answered(tuple(Reached(part.partition, part.offset) for part in ranges), answer)
        if self._stopped:
            return
        if self._mode == "after-processing":
            self.reached |= answer.offsets
            self._rest()
        else:
            self._between(partial(self._process_and_rest, taken))

    def _process_and_rest(self, taken: tuple[Reached, ...]) -> None:
        if taken and not self._stopped:
            self._process_records(taken)
        self._rest()
