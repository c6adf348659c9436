"""Facts about a cluster, for the story of a run: what its nodes and controllers did, each fact a type of its own.

Pure data, so that everyone may speak of it: the core of the reference broker, Kafka's log reader, the report. A fact is
written as JSON with its tag in ``what``. Offsets count records, epochs and brokers are Kafka's numbers, and -1 is
no broker, as in Kafka's own records. A field is None where its source does not say it: logs of old Kafka
brokers say little, and a poll over the network sees no log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

Brokers = tuple[int, ...]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="what"):
    """Common form of all facts: without cycles, so the garbage collector may leave them out."""


class _PartitionFact(_Fact, frozen=True, kw_only=True):
    """A fact about one log partition, by its name "topic-number"."""

    partition: str


# --- said by the controller ------------------------------------------------------------------------------------------


class LeaderElected(_PartitionFact, frozen=True, kw_only=True, tag="election"):
    """The controller began a new leader epoch. ``unclean``: its leader was neither in sync nor eligible (KIP-966)."""

    leader: int | None = None
    leader_epoch: int | None = None
    isr: Brokers | None = None
    elr: Brokers = ()
    last_known_elr: Brokers = ()
    unclean: bool = False
    partition_epoch: int | None = None
    replicas: Brokers | None = None


class ProposalRefused(_PartitionFact, frozen=True, kw_only=True, tag="refused-proposal"):
    """The controller refused the ISR that ``broker`` proposed, with an ``error`` as Kafka names it.

    The epochs are the partition's then. ``old_epoch`` is the one that was proposed, where that is the reason: a leader
    epoch (FENCED_LEADER_EPOCH) or a partition epoch (INVALID_UPDATE_VERSION). Of ``ineligible`` members an ``earlier``
    one was proposed as another incarnation than the one that is registered.
    """

    broker: int
    error: str
    isr: Brokers
    leader_epoch: int
    partition_epoch: int
    old_epoch: int | None = None
    ineligible: Brokers = ()
    earlier: Brokers = ()


class BrokerRegistered(_Fact, frozen=True, kw_only=True, tag="registered"):
    """A broker counts among the living: it registered, or was unfenced."""

    broker: int
    broker_epoch: int | None = None


class BrokerFenced(_Fact, frozen=True, kw_only=True, tag="fenced"):
    """A broker does not count among the living any more."""

    broker: int
    broker_epoch: int | None = None


class ControllerActivated(_Fact, frozen=True, kw_only=True, tag="active-controller"):
    """This controller became the active one of its quorum."""

    epoch: int


class ControllerStarted(_Fact, frozen=True, kw_only=True, tag="controller-starts"):
    """This controller's process began to work."""


# --- said by every node ----------------------------------------------------------------------------------------------


class NodeStarted(_Fact, frozen=True, kw_only=True, tag="started"):
    """This node is ready after a start, and runs this ``version`` of the system."""

    version: str


# --- said by leaders and followers -----------------------------------------------------------------------------------


class IsrChanged(_PartitionFact, frozen=True, kw_only=True, tag="isr"):
    """The committed in-sync replicas changed, as the leader sees it or as the controller committed it."""

    isr: Brokers | None = None
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    leader: int | None = None
    elr: Brokers = ()
    last_known_elr: Brokers = ()
    replicas: Brokers | None = None


class BecameLeader(_PartitionFact, frozen=True, kw_only=True, tag="leader"):
    """This node began to lead, with a log that ends at ``end_offset``."""

    leader_epoch: int | None = None
    end_offset: int | None = None
    isr: Brokers | None = None
    high_watermark: int | None = None


class BecameFollower(_PartitionFact, frozen=True, kw_only=True, tag="follower"):
    """This node began to follow ``leader``."""

    leader: int | None = None
    leader_epoch: int | None = None
    end_offset: int | None = None


class ReplicaRecovered(_PartitionFact, frozen=True, kw_only=True, tag="recovered"):
    """A replica was made on a log that was there already."""

    end_offset: int
    high_watermark: int | None = None


class RecordsAppended(_PartitionFact, frozen=True, kw_only=True, tag="append"):
    """A leader or follower appended ``count`` records from ``base_offset`` on."""

    base_offset: int
    count: int
    leader_epoch: int


class HighWatermarkMoved(_PartitionFact, frozen=True, kw_only=True, tag="high-watermark"):
    """The high watermark, of a leader or a follower, is at ``offset`` now."""

    offset: int


class Acknowledged(_PartitionFact, frozen=True, kw_only=True, tag="acknowledged"):
    """A leader answered a produce request of the records [``base_offset``, ``next_offset``) without an error."""

    base_offset: int
    next_offset: int
    acks: int
    leader_epoch: int
    isr: Brokers


class Truncated(_PartitionFact, frozen=True, kw_only=True, tag="truncated"):
    """The records of [``to_offset``, ``from_offset``) are gone from this node's log, as its leader made it do."""

    to_offset: int
    from_offset: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None


class LogCleaned(_PartitionFact, frozen=True, kw_only=True, tag="cleaned"):
    """A cleaner went through this node's log up to the offset ``upto``, and counts what it has removed."""

    upto: int
    records: int = 0
    tombstones: int = 0


class LogExpired(_PartitionFact, frozen=True, kw_only=True, tag="expired"):
    """This node's log starts at ``offset`` from now on; the ``records`` below are older than retention.ms."""

    offset: int
    records: int = 0


class SequenceRefused(_PartitionFact, frozen=True, kw_only=True, tag="out-of-order-sequence"):
    """A leader refused a batch of an idempotent producer that does not continue what the log has of it.

    The batch begins with ``sequence``; the log has the producer's batches up to ``last_sequence``, -1 for none. None
    where the leader did not say so, as of a batch of a new epoch.
    """

    producer_id: int
    sequence: int
    last_sequence: int | None = None

    @property
    def repeats(self) -> bool:
        """True if the log has later batches of the producer: this one was sent again, and is remembered no more."""
        return self.last_sequence is not None and self.sequence <= self.last_sequence


class NotEnoughReplicas(_PartitionFact, frozen=True, kw_only=True, tag="not-enough-replicas"):
    """A leader answered a produce request with an error for want of in-sync replicas.

    ``appended``: its records are in the log all the same (NOT_ENOUGH_REPLICAS_AFTER_APPEND).
    """

    appended: bool = False


# --- seen from outside -----------------------------------------------------------------------------------------------


class NodeCrashed(_Fact, frozen=True, kw_only=True, tag="died"):
    """A node ended by itself: how ("status 1", "signal 11"), and the last words of its log."""

    exit: str
    words: str


#: Shorter pauses explain nothing: the shortest time-outs that plans set are some hundred milliseconds.
JVM_PAUSE_MIN_MS: Final = 200


class JvmPaused(_Fact, frozen=True, kw_only=True, tag="jvm-pause"):
    """A node's Java stood still from now on for ``pause_ms``; ``cause`` as the JVM names its safepoint."""

    pause_ms: int
    cause: str


Fact = (
    LeaderElected
    | ProposalRefused
    | BrokerRegistered
    | BrokerFenced
    | ControllerActivated
    | ControllerStarted
    | NodeStarted
    | IsrChanged
    | BecameLeader
    | BecameFollower
    | ReplicaRecovered
    | RecordsAppended
    | HighWatermarkMoved
    | Acknowledged
    | Truncated
    | LogCleaned
    | LogExpired
    | SequenceRefused
    | NotEnoughReplicas
    | NodeCrashed
    | JvmPaused
)


class Observation(msgspec.Struct, frozen=True):
    """A fact, who it is about or who said it, and when: microseconds of the run's clock.

    In the trace that a node writes of itself, ``time_us`` is that of its own wall clock, since the epoch.
    """

    time_us: int
    node: int
    fact: Fact

    @property
    def partition(self) -> str | None:
        """The log partition that the fact is about; None where it is about a node."""
        return getattr(self.fact, "partition", None)


_Kind = TypeVar("_Kind", bound=Fact)


class Seen(NamedTuple, Generic[_Kind]):
    """An observation of one kind of fact."""

    time_us: int
    node: int
    fact: _Kind


def of_kind(observations: Iterable[Observation], *kinds: type[_Kind]) -> list[Seen[_Kind]]:
    """The observations of these ``kinds`` of facts, in the order in which they come."""
    return [Seen(seen.time_us, seen.node, seen.fact) for seen in observations if isinstance(seen.fact, kinds)]


_DECODER = msgspec.json.Decoder(Observation)


class _Version1(msgspec.Struct):
    """A line of 0.1.0, which had the tag and the partition outside and the rest in a mapping."""

    time_us: int
    node: int
    what: str
    facts: Mapping[str, Any]
    partition: str | None = None

    def upgraded(self) -> Observation:
        fact = {**self.facts, "what": self.what, "partition": self.partition}
        return Observation(self.time_us, self.node, msgspec.convert(fact, Fact))


_DECODER_1 = msgspec.json.Decoder(_Version1)


def to_line(observation: Observation) -> bytes:
    """One line of ``cluster.jsonl`` or of a trace."""
    return msgspec.json.encode(observation) + b"\n"


def from_lines(lines: Iterable[bytes]) -> Iterator[Observation]:
    """Read these lines, those of 0.1.0 included. Left out is what a kill tore, and what is no such line."""
    for line in lines:
        try:
            yield _DECODER.decode(line)
        except msgspec.DecodeError:
            with contextlib.suppress(msgspec.DecodeError):
                yield _DECODER_1.decode(line).upgraded()
