"""Operations and their outcomes: the questions of clients to the log, and the answers.

A history is a sequence of :class:`Event`. An operation is an ``invoke`` followed by one completion of the same process:
``ok`` (it certainly happened), ``fail`` (it certainly did not), ``info`` (that is not known). A process never spans two
client instances, so positions and sequence numbers never outlive it; a producer that has several sends in flight is
several processes of one instance (docs/decisions/004-pipelined-sends.md).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, Protocol

import msgspec

from workloads.settings import IsolationLevel
from workloads.transaction_errors import ErrorClass

#: The process id of faults in a history; clients count from 0.
NEMESIS: Final = -1
#: The process id of the harness's own marks (phases of a run).
HARNESS: Final = -2
#: The instance of events that no client made, and of clients whose instance is not known.
NO_INSTANCE: Final = -1
#: The offset of a group that has committed nothing of a log partition.
NOTHING: Final = -1


class EventType(StrEnum):
    """The four kinds of event; see the module's text."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"

    # Enum's own hash is a function in Python, and these are keys on the way of every event.
    __hash__ = str.__hash__


class Function(StrEnum):
    """The functions of operations.

    ``DRAIN`` is a final reader's statement without an invoke: OK if it read the partition from its start to ``offset``.
    Of a log from which records go its ``detail`` is a :class:`CleanerTimes`.
    ``RETIRE``, ``RECOVERY``, ``INVARIANT`` and ``REFUSED`` have no invoke either; their ``detail`` is a
    :class:`Retirement`, a :class:`FreshWrites`, a :class:`BrokenInvariant`, a :class:`RefusedAttempts`. A new member
    goes to the end, because its place is its code in stored histories.

    ``TXN`` is one transaction: invoked when it begins, OK once its commit is answered, FAIL if it certainly was
    aborted. Its ``detail`` at the end is a :class:`TransactionEnd`.

    Of consumer groups (``detail`` is a :class:`GroupMember`), each with :class:`Reached` micro-operations:

    * ``COMMIT``: a member commits offsets. OK lists those that the group took.
    * ``COMMITTED``: a client asks which offsets the group has. OK lists them.
    * ``PROCESS``, without an invoke: the member has processed what it read of each partition, from ``since`` on.
    * ``REBALANCE``, without an invoke: ``partitions`` are those that the member has from now on.
    * ``OFFSETS``: a member hands offsets over to a transaction. OK lists those that the group took; they count once the
      transaction is committed.
    * ``DELETE_GROUP``: an operator deletes the group. Of each partition :class:`Reached` says :data:`NOTHING`.
    * ``RESET``: an operator sets what the group has committed.
    * ``SEEK``: a consumer sets its own position; with a ``detail`` it is a member of a group.

    ``STABLE``, without an invoke, is what a broker answered after healing: :class:`Reached` is the last stable offset
    of one log partition. Its ``detail`` is a :class:`StableOffset`. ``LOG_START``, without an invoke, is what a broker
    answered at any time: :class:`Reached` is the first offset that the log still has.

    ``EFFECT``, without an invoke, lists outputs of an application (:class:`Effect`) of one log partition, whose place
    among the outputs is the event's ``node``. OK: readers of the level of the run read them. FAIL: only readers of
    uncommitted records did. INFO: the ``value`` of each is the result that the output at its ``offset`` has, of a fold.
    ``APPLICATION`` says in the end what became of the program; its ``detail`` is a
    :class:`workloads.ApplicationFacts`.
    """

    SEND = "send"
    POLL = "poll"
    TXN = "txn"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    CRASH = "crash"
    DRAIN = "drain"
    FAULT = "fault"
    PHASE = "phase"
    RETIRE = "retire"
    RECOVERY = "recovery"
    INVARIANT = "invariant"
    COMMIT = "commit"
    COMMITTED = "committed"
    PROCESS = "process"
    REBALANCE = "rebalance"
    STABLE = "stable"
    OFFSETS = "offsets"
    DELETE_GROUP = "delete-group"
    REFUSED = "refused"
    RESET = "reset"
    SEEK = "seek"
    LOG_START = "log-start"
    EFFECT = "effect"
    APPLICATION = "application"

    __hash__ = str.__hash__


class PayloadDefect(StrEnum):
    """The defects of payloads that were read."""

    NONE = ""
    CHECKSUM = "checksum"
    WRONG_PARTITION = "wrong-partition"
    WRONG_KEY = "wrong-key"
    UNREADABLE = "unreadable"

    __hash__ = str.__hash__


class Send(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Micro-operation: append ``value`` to ``partition``. ``offset`` is None while, or if, it is not known.

    ``record_key`` is the number of the record's key in a workload that is about keys; a ``tombstone`` deletes it.
    """

    partition: str
    value: int
    offset: int | None = None
    record_key: int | None = None
    tombstone: bool = False


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record as read. ``value`` is -1 where the payload could not be decoded."""

    offset: int
    value: int
    defect: PayloadDefect = PayloadDefect.NONE


class Poll(msgspec.Struct, frozen=True, tag=True):
    """Micro-operation: read. ``records`` maps a log partition to what was read of it, in the order received."""

    records: dict[str, tuple[Record, ...]] = {}


class Reached(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Micro-operation: how far a member or a group is in ``partition``. ``offset`` is that of the next record.

    It is :data:`NOTHING` for a group that has committed nothing. ``since`` is where it was before, if that is known.
    """

    partition: str
    offset: int
    since: int | None = None


class Effect(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Micro-operation: an output at ``offset`` that was made of the input ``value`` of ``partition``.

    ``value`` is -1 where it names no input; ``partition`` is then any of the inputs.
    """

    partition: str
    value: int
    offset: int


MicroOperation = Send | Poll | Reached | Effect


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of a history.

    Attributes:
        index: position in the history, strictly increasing, unique; -1 until a recorder has given it one.
        time_us: microseconds since the run began, on the run's one clock.
        process: one line of operations of a client instance, or NEMESIS, or HARNESS.
        instance: the client instance that made the operation, by its first process; or NO_INSTANCE. The sends of one
            instance, in the order of their invocations, are what it was asked to append in that order.
        type: see EventType.
        function: see Function.
        micro: sends, polls and offsets reached, in the order in which the client did them.
        partitions: log partitions of an assign, subscribe, rebalance or drain.
        offset: for DRAIN, the log end offset asked after healing and reached by the reader.
        node: broker that answered, where known; for DRAIN, the leader, where leaders were moved for it; for EFFECT, the
            place of the output.
        isolation: of a reader's operations, its isolation level; None where the workload writes in no transactions.
        error: the client's error, by name, with the broker's words if there were any.
        detail: JSON of a fault's receipt, of a phase, or of the struct of another function (:class:`Function`).
        rebalanced: log partitions that a group's rebalance touched inside the operation, where another tool tells them.
    """

    time_us: int
    process: int
    type: EventType
    function: Function
    index: int = -1
    instance: int = NO_INSTANCE
    micro: tuple[MicroOperation, ...] = ()
    partitions: tuple[str, ...] = ()
    offset: int | None = None
    node: int | None = None
    isolation: IsolationLevel | None = None
    error: str | None = None
    detail: str | None = None
    rebalanced: tuple[str, ...] = ()


class ProducerEpoch(msgspec.Struct, frozen=True):
    """The id and the epoch with which a producer writes; brokers refuse earlier epochs of the id (KIP-98)."""

    producer_id: Annotated[int, msgspec.Meta(ge=0)]
    producer_epoch: Annotated[int, msgspec.Meta(ge=0, lt=2**15)]


# A history has one for each transaction, and none is part of a circle: collecting garbage takes twice the time of
# decoding them.
class TransactionEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of one transaction, as its producer knows it.

    Attributes:
        transactional_id: the name under which the broker knows the producer and its predecessors.
        number: how many producers with this transactional id were made before this one; a later one fences it.
        asked: how the producer ended it; None if it was closed before.
        ending_us: when it asked for that, in microseconds of the run.
        superseded_us: when a later producer with this transactional id was told that it is in charge, if that was
            before this producer asked for the end.
        late: values that it sent after that.
        failed: errors of sends that failed, by value.
        group: the group whose offsets it commits (:class:`Reached` micro-operations), if any.
        handed_us: when the group's coordinator had taken these.
        sources: the offsets of the records that its sends were made of, in the order of the sends, by log partition.
        producer: the id and epoch with which it was written, None where the client had not told them when it was
            asked for the end.
        error_class: the class of the last error of its calls, None without one.
    """

    transactional_id: str
    number: int
    asked: Literal["commit", "abort"] | None
    ending_us: int | None = None
    superseded_us: int | None = None
    late: tuple[int, ...] = ()
    failed: dict[str, str] = {}
    group: str | None = None
    handed_us: int | None = None
    sources: dict[str, tuple[int, ...]] = {}
    producer: ProducerEpoch | None = None
    error_class: ErrorClass | None = None


class StableOffset(msgspec.Struct, frozen=True, kw_only=True):
    """The rest of what a broker answered about the end of a log partition.

    Attributes:
        high_watermark: the end of what readers of uncommitted records see.
        open_ms: how long a transaction that its producer does not end may stay open: `transaction.timeout.ms`, and the
            time between two looks of the broker for such transactions.
    """

    high_watermark: int
    open_ms: int


class CleanerTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The times for which a log keeps records that may go later, as its topic was made.

    Attributes:
        record_ms: every record, from when it was written: `min.compaction.lag.ms`; 0 where it is not known.
        tombstone_ms: a tombstone, after it was first cleaned: `delete.retention.ms`; 0 where it is not known.
        segment_ms: the age at which a segment is closed: `segment.ms`.
        dirty_ratio: the share of a log from which on it is cleaned: `min.cleanable.dirty.ratio`; None where it is not
            known, or brokers have settings of their own.
        retention_ms: every record of a log that is not compacted, from when it was written: `retention.ms`; None where
            records stay at any age.
    """

    record_ms: int = 0
    tombstone_ms: int = 0
    segment_ms: int | None = None
    dirty_ratio: float | None = None
    retention_ms: int | None = None


class GroupMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The group of an operation, and its member's own name where it is a static one (KIP-345).

    ``generation``, of an assignment, is the group's generation or the member's epoch (KIP-848) that it belongs to, None
    where the client does not tell. ``retention_ms`` is for how long the group's offsets are kept without members:
    `offsets.retention.minutes`, in milliseconds; None where it is not told.
    """

    group: str
    instance_id: str | None = None
    generation: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] | None = None
    retention_ms: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] | None = None


class Retirement(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a producer instance that was given up: the reason, and its fate beside its successor.

    Attributes:
        reason: "fatal" if the client itself refused one send after the other, "silent" if it had none acknowledged.
        successor: the instance that took its place.
        silent_ms: its silence then, on the log partition where that was longest.
        partitions: the log partitions on which it was silent.
        errors: the last few errors of its sends, the newest last.
        client: its library and version, as :meth:`workloads.client.Clients.name_of` has them.
        wedged: the log partitions on which, tried side by side, its successor was acknowledged and it was not.
    """

    reason: Literal["fatal", "silent"]
    successor: int
    silent_ms: int
    partitions: tuple[str, ...]
    errors: tuple[str, ...]
    client: str
    wedged: tuple[str, ...] = ()


class FreshWrites(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of fresh clients after everything was healed, within ``limit_ms``.

    By log partition, ``unwritten`` says why no write succeeded; ``lacking`` what the cluster still lacked at the end: a
    leader, members of the ISR; ``absent`` which nodes that it may wait for did not run; ``unread`` why final readers
    did not reach the end of one that lacked nothing, if they made no progress at the end. It is None in older
    histories, where the events of DRAIN say only that an end was not reached. ``starved`` says what
    hindered the machine, where it was too slow for the limit to be a fair one. ``out_of_sync`` says which replicas are
    not in the ISR though nothing hinders them; only a simulated world can tell.
    """

    limit_ms: int
    written: tuple[str, ...]
    unwritten: dict[str, str]
    lacking: dict[str, str]
    absent: dict[str, str] = {}
    unread: dict[str, str] | None = None
    starved: dict[str, str] = {}
    out_of_sync: dict[str, str] = {}


class BrokenInvariant(msgspec.Struct, frozen=True, kw_only=True):
    """The first state of a cluster that its own rules exclude, as a simulated world sees it.

    ``name`` is the invariant's, ``partition`` the log partition, ``time_us`` the step's moment on the run's clock;
    ``text`` says what was wrong.
    """

    name: str
    partition: str
    time_us: int
    text: str


class RefusedAttempts(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts to append of a whole run that leaders refused for want of in-sync replicas, by log partition.

    And how often these changed. Each attempt is one batch in one request. Clients repeat it and seldom tell. A log
    partition without any is left out.

    Attributes:
        before_append: answered with NOT_ENOUGH_REPLICAS; nothing was appended.
        after_append: answered with NOT_ENOUGH_REPLICAS_AFTER_APPEND; the batch is in the leader's log.
        isr_changes: times that the leader's in-sync replicas became others; None in a history of an older version.
    """

    before_append: dict[str, int]
    after_append: dict[str, int]
    isr_changes: dict[str, int] | None = None


class Recorder(Protocol):
    """Writes a history as the run goes."""

    def record(self, event: Event) -> None:
        """Take one event. It gets the next index, in the order of the calls, whatever its own field has."""
        ...
