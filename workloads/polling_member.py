"""One member of a consumer group: it subscribes, polls, and does something with what it read before it polls again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from workloads.client import Assignment, Membership, PollOutcome
from workloads.consumers import REST_MS_MIN, Readers, decoded
from workloads.errors import TIME_LIMIT
from workloads.operations import Event, EventType, Function, GroupMember, Poll, Reached, Record

#: A member stops polling for a time, or for good.
Harm = Literal["freeze", "die"]
#: The records of one poll, by log partition.
Records = dict[str, tuple[Record, ...]]
Read = Callable[[Poll], None]
Lost = Callable[["PollingMember"], None]


def detail_of(membership: Membership, generation: int | None = None) -> str:
    """The detail of a member's events (:class:`workloads.operations.GroupMember`), in JSON."""
    member = GroupMember(
        group=membership.group,
        instance_id=membership.instance_id,
        generation=generation,
        retention_ms=membership.retention_ms,
    )
    return msgspec.json.encode(member).decode()


def ranges_of(records: Records) -> tuple[Reached, ...]:
    """The offsets that a member has reached with these records."""
    return tuple(Reached(name, mine[-1].offset + 1, since=mine[0].offset) for name, mine in sorted(records.items()))


class PollingMember(ABC):
    """One consumer instance in a group.

    Attributes:
        number: its first process, which names the instance.
        leaving: it is to leave in order.
        reached: by log partition, the offset up to which it is done.
    """

    def __init__(
        self,
        readers: Readers,
        membership: Membership,
        *,
        topics: Sequence[str],
        partitions: tuple[str, ...],
        on_read: Read,
        lost: Lost,
    ) -> None:
        self._readers = readers
        self._membership = membership
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
        self.consumer = readers.clients.consumer(self.number, membership, readers.isolation)

    @abstractmethod
    def _work(self, records: Records) -> None:
        """Do the member's work with what a poll brought, and call :meth:`_rest` when it is done."""

    def start(self) -> None:
        """Join the group, and poll from now on."""
        for kind in (EventType.INVOKE, EventType.OK):
            self._record(kind, Function.SUBSCRIBE, partitions=self._partitions, isolation=self._readers.told_isolation)
        assert self.consumer.subscription is not None  # noqa: S101 - it was made with a membership
        self.consumer.subscription.subscribe(self._topics, self._rebalanced)
        self._poll()

    def strike(self, harm: Harm, freeze_ms: int = 0) -> None:
        """Do this to the member in the midst of its work, when it has next read something."""
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

    def _rebalanced(self, assigned: Assignment) -> None:
        if not self._stopped:
            self._assigned = frozenset(assigned.partitions)
            detail = detail_of(self._membership, assigned.generation)
            self._record(EventType.OK, Function.REBALANCE, partitions=assigned.partitions, detail=detail)

    def _poll(self) -> None:
        if self._stopped:
            return
        self._begun_us = self._readers.clock.now_us()
        self._record(EventType.INVOKE, Function.POLL, micro=(Poll(),), isolation=self._readers.told_isolation)
        self.consumer.poll(self._readers.poll_wait_ms, self._polled)

    def _polled(self, outcome: PollOutcome) -> None:
        read = decoded(outcome.records)
        polled = {"micro": (read,), "isolation": self._readers.told_isolation, "error": outcome.error}
        self._record(outcome.type, Function.POLL, **polled)
        if outcome.type is EventType.INFO:
            # The position may have moved: what follows is of another process.
            self._process = self._readers.new_process()
        if self._stopped:
            return
        if outcome.type is EventType.INFO and outcome.error == TIME_LIMIT:
            self._give_up()
            return
        mine = {name: records for name, records in read.records.items() if name in self._assigned}
        if not mine:
            self._rest()
            return
        self._on_read(Poll(mine))
        self._work(mine)

    def _processed(self, ranges: tuple[Reached, ...]) -> None:
        """Write down that the member has processed these records."""
        self._record(EventType.OK, Function.PROCESS, micro=ranges, detail=self._detail)

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

    def _give_up(self) -> None:
        """Leave, and be followed by another member."""
        if not self._stopped:
            self.stop()
            self._lost(self)

    def _rest(self) -> None:
        """Poll again when it is time. Polls begin poll_wait_ms apart, so that few records do not make a poll each."""
        if self._stopped:
            return
        if self.leaving:
            self._give_up()
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
