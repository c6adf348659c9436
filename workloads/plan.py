"""The numbers of a workload: its writers and readers, their amounts and rates."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from workloads.application_plan import ApplicationPlan
from workloads.log_partition import LogPartition

#: The name of the workload that makes the writes of a list, and no others.
LISTED: Final = "listed"


class CountsIn(NamedTuple):
    """A mark of a key that does nothing but in workloads of this ``trait``, an attribute of their kind."""

    trait: str


_THREADS: Final = "each is a thread or a process"


class PlannedWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One write of a list: ``due_us`` after the workload began, by which producer, to which log partition."""

    due_us: int
    producer: int = 0
    partition: int = 0
    key: str = "key-0"


class WorkloadPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workload of one run."""

    name: str = "steady"
    """One of those listed below."""
    topic: str = "ackproof"
    """The topic that is written to."""
    topics: Annotated[int, Meta(ge=1, le=100, description="each is made, and read to its end, one after the other")] = 1
    """Topics that are written to; the second of `events` is `events.2`."""
    partitions: Annotated[int, Meta(ge=1, le=10_000, description="the reference broker has no more")] = 3
    """Log partitions of each topic."""
    producers: Annotated[int, Meta(ge=1, le=1_000, description=_THREADS)] = 3
    """Producers that write."""
    consumers: Annotated[int, Meta(ge=0, le=1_000, description=_THREADS)] = 2
    """Consumers that read."""
    writes_per_second: Annotated[float, Meta(ge=0.001, le=1_000_000, description="no client library is as fast")] = (
        100.0
    )
    """The total over all producers."""
    payload_bytes: Annotated[
        int, Meta(ge=0, le=1_000_000, description="brokers refuse larger records where they have their defaults")
    ] = 0
    """Payloads are filled up to this size. They are never shorter than what makes them checkable (some 40 bytes)."""
    keys: Annotated[int, Meta(ge=1, le=1_000_000, description="each is a name that the checkers keep in memory")] = 10
    """Different keys of the records; in `keyed`, those that are alive at a time in a log partition."""
    skew: Annotated[float, Meta(ge=0, le=4, description="nearly all writes would go to one log partition")] = 0.0
    """Inequality of log partitions and keys: the n-th is written to in proportion to n^-skew (Zipf). With 0 all are
    alike. In `keyed` keys live equally long."""
    sends_per_transaction: Annotated[
        int,
        CountsIn("writes_in_transactions"),
        Meta(ge=1, le=1_000, description="each has to be answered before the transaction ends"),
    ] = 4
    """Writes of one transaction of the workload `transactions`."""
    aborts_percent: Annotated[int, CountsIn("transactional"), Meta(ge=0, le=100, description="it is a share")] = 20
    """Share of transactions that are aborted on purpose, once their records are in the log."""
    takeover_every_ms: Annotated[int, CountsIn("writes_in_transactions")] = 3_000
    """Pause between takeovers: a producer is left with a transaction half written while its successor takes its place,
    and then goes on as if it did not know. 0 means never."""
    duration_ms: Annotated[int, Meta(ge=1)] = 10_000
    """The break phase, in which faults happen. It begins when every log partition has acknowledged a write; after it
    everything is healed. On real machines it lasts longer by what commands took, at most a minute."""
    poll_wait_ms: int = 250
    """Pause between polls of a consumer, and the longest wait of a poll for a first record."""
    member_change_ms: Annotated[int, CountsIn("grouped")] = 3_000
    """Pause between changes of a group: a member freezes, leaves or dies, in turn. 0 means never."""
    static_members: Annotated[bool, CountsIn("grouped")] = False
    """Members of a group have names of their own, under which they come back (KIP-345)."""
    drain_limit_ms: Annotated[int, Meta(ge=1)] = 20_000
    """One half is for the cluster to recover. The other is for fresh consumers to read every log partition to the log
    end offset that was asked after that."""
    replace_silent_ms: int = 0
    """A producer that had no write of some log partition acknowledged for this long is replaced by a new one, and tried
    beside it. 0 means half a second more than `delivery.timeout.ms`: until that has passed, the client's own
    retries are under test, and then it has half a second to report what it could not deliver. With `acks=0` no producer
    is silent. Less than `request.timeout.ms` is refused."""
    recovery_limit_ms: Annotated[int, Meta(ge=1)] = 10_000
    """Between the two halves of `drain_limit_ms`, fresh producers try for this long to write to every log partition,
    another one every 3 s where there is no answer, whatever `delivery.timeout.ms` is. On a starved machine this and the
    reading may take up to four times as long."""
    writes: Annotated[tuple[PlannedWrite, ...], Meta(extra={"in_plans": False})] = ()
    """Exactly these, in order of time, where the name is :data:`LISTED`."""

    application: Annotated[ApplicationPlan | None, Meta(extra={"in_plans": False})] = None
    """The program of the workload `application`, from the plan's table of this name."""

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The topics, each of ``partitions`` log partitions."""
        return (self.topic, *(f"{self.topic}.{number}" for number in range(2, self.topics + 1)))

    @property
    def log_partitions(self) -> tuple[LogPartition, ...]:
        """The log partitions of all topics, in the order of the numbers by which faults and writes name them."""
        return tuple(LogPartition(topic, number) for topic in self.topic_names for number in range(self.partitions))

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """The transactional ids of the producers, in a workload that writes in transactions."""
        return tuple(f"{self.topic}-{number}" for number in range(self.producers))

    @property
    def ending_limit_ms(self) -> int:
        """The longest time for everything after healing, beside answers to earlier sends."""
        return self.drain_limit_ms + self.recovery_limit_ms
