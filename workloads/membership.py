"""One member of a consumer group: it subscribes, polls, processes what it read and commits, as the plan says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from workloads.client import Membership, Offsets, PollOutcome
from workloads.consumers import REST_MS_MIN, Readers, decoded
from workloads.errors import TIME_LIMIT, refuses_commit
from workloads.operations import Event, EventType, Function, GroupMember, MicroOperation, Poll, Reached
from workloads.settings import CommitMode

#: A member stops polling for a time, or for good.
Harm = Literal["freeze", "die"]


def detail_of(membership: Membership) -> str:
    """The detail of a member's events (:class:`workloads.operations.GroupMember`), in JSON."""
    member = GroupMember(group=membership.group, instance_id=membership.instance_id)
    return msgspec.json.encode(member).decode()


class CommitLine:
    """The operations ``COMMIT`` or ``COMMITTED`` of one client instance, one open at a time.

    One that ends INFO may still happen, so the next one is of another process.
    """

    def __init__(self, readers: Readers, instance: int, membership: Membership, function: Function) -> None:
        self._readers = readers
        self._event = partial(Event, instance=instance, function=function, detail=detail_of(membership))
        self._process = readers.new_process()

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


class Member:
    """One consumer instance in a group.

    It processes what a poll brought before it polls again. In the mode ``after-processing`` it commits after that, in
    ``before-processing`` before, and then it processes only what the group took; in ``auto`` its library commits.

    Attributes:
        number: its first process, which names the instance.
        leaving: it is to leave in order.
        reached: by log partition, the offset up to which it has processed and, where it commits itself, committed.
    """

    def __init__(
        self,
        readers: Readers,
        membership: Membership,
        mode: CommitMode,
        *,
        topics: Sequence[str],
        partitions: tuple[str, ...],
        on_read: Callable[[Poll], None],
        lost: Callable[[Member], None],
    ) -> None:
        self._readers = readers
        self._membership = membership
        self._mode = mode
        self._topics, self._partitions = topics, partitions
        self._on_read, self._lost = on_read, lost
        self._assigned: frozenset[str] = frozenset()
        self._harm: tuple[Harm, int] | None = None
        self.leaving = False
        self._begun_us = 0
        self._stopped = False
        self.reached: dict[str, int] = {}
        self.number = self._process = readers.new_process()
        self._detail = detail_of(membership)
        self._commits = CommitLine(readers, self.number, membership, Function.COMMIT)
        self.consumer = readers.clients.consumer(self.number, membership)

    def start(self) -> None:
        """Join the group, and poll from now on."""
        for kind in (EventType.INVOKE, EventType.OK):
            self._record(kind, Function.SUBSCRIBE, partitions=self._partitions)
        assert self.consumer.subscription is not None  # noqa: S101 - it was made with a membership
        self.consumer.subscription.subscribe(self._topics, self._rebalanced)
        self._poll()

    def strike(self, harm: Harm, freeze_ms: int = 0) -> None:
        """Do this to the member when it has next read something: between its processing and its commit."""
        self._harm = harm, freeze_ms

    def leave(self) -> None:
        """Leave the group once what was read is processed and committed; ``lost`` is called then."""
        self.leaving = True

    def stop(self) -> None:
        """Leave the group and close the client; an open poll ends as INFO."""
        if not self._stopped:
            self._stopped = True
            self.consumer.close()
            self._record(EventType.OK, Function.REBALANCE, detail=self._detail)

    def _rebalanced(self, assigned: tuple[str, ...]) -> None:
        if not self._stopped:
            self._assigned = frozenset(assigned)
            self._record(EventType.OK, Function.REBALANCE, partitions=assigned, detail=self._detail)

    def _poll(self) -> None:
        if self._stopped:
            return
        self._begun_us = self._readers.clock.now_us()
        self._record(EventType.INVOKE, Function.POLL, micro=(Poll(),))
        self.consumer.poll(self._readers.poll_wait_ms, self._polled)

    def _polled(self, outcome: PollOutcome) -> None:
        read = decoded(outcome.records)
        self._record(outcome.type, Function.POLL, micro=(read,), error=outcome.error)
        if outcome.type is EventType.INFO:
            # The position may have moved: what follows is of another process.
            self._process = self._readers.new_process()
        if self._stopped:
            return
        if outcome.type is EventType.INFO and outcome.error == TIME_LIMIT:
            self.stop()
            self._lost(self)
            return
        mine = {name: records for name, records in read.records.items() if name in self._assigned}
        if not mine:
            self._rest()
            return
        self._on_read(Poll(mine))
        ranges = tuple(
            Reached(name, records[-1].offset + 1, since=records[0].offset) for name, records in sorted(mine.items())
        )
        if self._mode == "before-processing":
            self._commit(ranges)
        else:
            self._process_records(ranges)
            self._between(partial(self._commit, ranges) if self._mode == "after-processing" else self._rest)

    def _process_records(self, ranges: tuple[Reached, ...]) -> None:
        self._record(EventType.OK, Function.PROCESS, micro=ranges, detail=self._detail)
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
        done = tuple(Reached(part.partition, part.offset) for part in taken or ranges)
        refused = refuses_commit(answer.error or "")
        self._commits.end(EventType.OK if taken else EventType.FAIL if refused else EventType.INFO, done, answer.error)
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

    def _between(self, proceed: Callable[[], None]) -> None:
        """Go on, unless harm is to be done to the member now."""
        harm, self._harm = self._harm, None
        clock = self._readers.clock
        if harm is None:
            proceed()
        elif harm[0] == "freeze":
            clock.call_at(clock.now_us() + harm[1] * 1000, proceed)
        else:
            self._die()

    def _die(self) -> None:
        """Do nothing more: the group gives the member up after its session, and then the client is closed."""
        self._stopped = True
        self._record(EventType.INFO, Function.CRASH, detail=self._detail)
        clock, silent_us = self._readers.clock, 2_000 * self._membership.session_timeout_ms
        clock.call_at(clock.now_us() + silent_us, self.consumer.close)
        self._lost(self)

    def _rest(self) -> None:
        """Poll again when it is time. Polls begin poll_wait_ms apart, so that few records do not make a poll each."""
        if self._stopped:
            return
        if self.leaving:
            self.stop()
            self._lost(self)
            return
        clock = self._readers.clock
        next_us = self._begun_us + self._readers.poll_wait_ms * 1000
        clock.call_at(max(next_us, clock.now_us() + REST_MS_MIN * 1000), self._poll)

    def _record(self, kind: EventType, function: Function, **fields: Any) -> None:
        self._readers.recorder.record(
            Event(
                time_us=self._readers.clock.now_us(),
                process=self._process,
                instance=self.number,
                type=kind,
                function=function,
                **fields,
            )
        )
