"""The contract between a workload and a world: a clock, producers and consumers.

A workload is written once, against callbacks, and runs in virtual time as on real sockets. Pinned semantics:

* ``done`` is called exactly once per call, by the clock, never before the call has returned.
* Everything runs on the clock's one thread; an adapter with threads of its own hands results over to that thread.
* Every call ends: an adapter answers ``info`` after its own time limit, or when it is closed.
* No answer of the log is raised; outcomes are data (:class:`SendOutcome`, :class:`PollOutcome`).

What not every client can do is a *capability*: an attribute that is None where it is lacking, with the reason in
:attr:`Clients.lacks`. Nothing is a stub.

Intentionally not part of the contract: how records are batched unasked, retries, metadata refresh. Those are the
client's own, and under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from workloads.errors import CLIENT_CLOSED, CLIENT_CRASHED, TIME_LIMIT
from workloads.operations import EventType, ProducerEpoch
from workloads.settings import GroupProtocol, IsolationLevel, OffsetReset
from workloads.transaction_errors import Call, ErrorClass, class_of

#: Errors that tell of this harness, not of the library.
_OWN_ERRORS: Final = (CLIENT_CLOSED, CLIENT_CRASHED, TIME_LIMIT)


class SendOutcome(msgspec.Struct, frozen=True, gc=False):
    """The end of a send. ``type`` is OK, FAIL or INFO; ``offset`` is None where the log named none (acks=0).

    ``answered_us`` is the time on the run's clock at which the client answered, None where that is now: an answer of
    another thread takes its time to get here. ``error_class`` is that of the error of a transactional call.
    """

    type: EventType
    offset: int | None = None
    error: str | None = None
    node: int | None = None
    answered_us: int | None = None
    error_class: ErrorClass | None = None

    @classmethod
    def of_call(cls, call: Call, error: str, own: ErrorClass | None = None) -> SendOutcome:
        """The end of a transactional call with an error, to which the client itself gives the class ``own``."""
        error_class = class_of(call, error, own)
        kind = EventType.FAIL if error_class is ErrorClass.ABORTABLE else EventType.INFO
        return cls(kind, error=error, error_class=error_class)


def failures(answers: Mapping[int, SendOutcome]) -> dict[str, str]:
    """The errors of sends that failed in a transaction, by value as :class:`TransactionEnd` has them.

    An error that tells of this harness, such as its own time limit, is left out. The library said nothing of that send,
    so a commit without it would contradict no word of the library (KAFKA-9279).
    """
    return {
        str(value): outcome.error or ""
        for value, outcome in answers.items()
        if outcome.type is not EventType.OK and not (outcome.error or "").startswith(_OWN_ERRORS)
    }


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """One record as the client handed it over, still encoded. The payload of a ``tombstone`` is that of its header.

    ``headers`` are the names and contents of its headers, where the library tells them.
    """

    partition: str
    offset: int
    key: bytes
    payload: bytes
    tombstone: bool = False
    headers: tuple[tuple[str, bytes], ...] = ()


class PollOutcome(msgspec.Struct, frozen=True):
    """The end of a poll. An empty OK poll is ordinary."""

    type: EventType
    records: tuple[Fetched, ...] = ()
    error: str | None = None


class Offsets(msgspec.Struct, frozen=True):
    """Offsets by log partition, of those about which there was an answer; ``error`` is why some are missing."""

    offsets: dict[str, int]
    error: str | None = None


class Assignment(msgspec.Struct, frozen=True):
    """The log partitions that a group leaves to a member.

    ``generation`` is the group's, or the member's epoch (KIP-848), None where the library does not tell which one the
    assignment belongs to, and for a client that is no member.
    """

    partitions: tuple[str, ...]
    generation: int | None = None


class OwnCommit(msgspec.Struct, frozen=True):
    """News of a commit that a library made by itself: its begin, or its end, which has an ``answer``.

    Begin and end have one ``number``, which no other commit of the instance has. The answer has what the group took.
    """

    number: int
    offsets: dict[str, int]
    answer: Offsets | None = None


#: The header of a tombstone in which its payload travels: a record without a value could not be told from another.
PAYLOAD_HEADER: Final = "ackproof"


class Membership(msgspec.Struct, frozen=True):
    """The way in which a consumer is a member of ``group``.

    Attributes:
        instance_id: the name of a static member (KIP-345), None for a member that leaves when it is closed.
        protocol: "classic" or, where brokers assign, "consumer" (KIP-848).
        session_timeout_ms: silence after which the group gives a member up.
        auto_commit_ms: how often the library commits by itself, None for never.
        reset: where it begins in a log partition in which the group has no offset, or one that is not there.
        retention_ms: for how long the group keeps offsets without members, None where that is longer than any run.
    """

    group: str
    instance_id: str | None = None
    protocol: GroupProtocol = "classic"
    session_timeout_ms: int = 6_000
    auto_commit_ms: int | None = None
    reset: OffsetReset = "earliest"
    retention_ms: int | None = None


class MemberToken(msgspec.Struct, frozen=True):
    """A member's group and generation as its library has it, for a transaction that commits the member's offsets.

    ``token`` is None where the client is no member now; ``error`` says why.
    """

    token: object | None
    error: str | None = None


class ClientCapability(StrEnum):
    """The things that a client may lack, by the name of the attribute that is None then."""

    TRANSACTIONS = "transactions"
    TOMBSTONES = "tombstones"
    EPOCHS = "epochs"
    SUBSCRIPTION = "subscription"
    COMMITS = "commits"
    OWN_COMMITS = "own_commits"


class Clock(Protocol):
    """Time of a run, in microseconds since it began."""

    def now_us(self) -> int:
        """The present time."""
        ...

    def call_at(self, time_us: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` once, at ``time_us`` or as soon after it as possible."""
        ...


class Transactions(Protocol):
    """Sends that count together or not at all. One transaction at a time.

    Calls follow each other: the next one begins when the one before was answered. OK means that the call did what it
    says, FAIL that it certainly did not, INFO that it is not known. What is to be done after an error is its class
    (:mod:`workloads.transaction_errors`).
    """

    def init(self, done: Callable[[SendOutcome], None]) -> None:
        """End what earlier producers with this transactional id left open, and fence them (KIP-98).

        Called once, and again where it ended with a RETRIABLE error.
        """
        ...

    def begin(self, done: Callable[[SendOutcome], None]) -> None:
        """Open a transaction: what is sent from now on belongs to it."""
        ...

    def send_offsets(
        self, offsets: Mapping[str, int], member: MemberToken, done: Callable[[SendOutcome], None]
    ) -> None:
        """Commit offsets of a group, by log partition, with the transaction (KIP-447)."""
        ...

    def commit(self, done: Callable[[SendOutcome], None]) -> None:
        """Let all of it count. FAIL only where nothing was committed, and :meth:`abort` must be called."""
        ...

    def abort(self, done: Callable[[SendOutcome], None]) -> None:
        """Let none of it count."""
        ...


class Tombstones(Protocol):
    """Records without a value, which delete their key from a compacted log."""

    def send_tombstone(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Append a record without a value; ``payload`` travels in its header :data:`PAYLOAD_HEADER`."""
        ...


class Epochs(Protocol):
    """The id and epoch of a producer with a transactional id, as its library tells them."""

    def told_epoch(self) -> ProducerEpoch | None:
        """The id and epoch with which the producer writes now; None while the library has not told them."""
        ...


class Producer(Protocol):
    """One producer instance; its overlapping sends are several processes of the history."""

    @property
    def transactions(self) -> Transactions | None:
        """Transactions, of a producer that was made with a transactional id."""
        ...

    @property
    def tombstones(self) -> Tombstones | None:
        """Tombstones, where the library can send headers."""
        ...

    @property
    def epochs(self) -> Epochs | None:
        """Id and epoch, of a producer that was made with a transactional id, where the library tells them."""
        ...

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Append one record to ``partition`` ("topic-number")."""
        ...

    def close(self) -> None:
        """Give up: outstanding sends end as INFO; a second call does nothing."""
        ...

    def crash(self) -> None:
        """Die as if the process had been killed: nothing that waits is sent, no connection is closed in order.

        Outstanding sends end as INFO. Idempotent, and :meth:`close` after it does nothing.
        """
        ...


def append_of(
    producer: Producer, *, tombstone: bool
) -> Callable[[str, bytes, bytes, Callable[[SendOutcome], None]], None]:
    """The call with which this producer appends a record, or a tombstone, which the workload needs then."""
    if not tombstone:
        return producer.send
    assert producer.tombstones is not None  # noqa: S101 - the workload needs them
    return producer.tombstones.send_tombstone


class Subscription(Protocol):
    """Reading as a member of a group, which deals the log partitions out."""

    def subscribe(self, topics: Sequence[str], changed: Callable[[Assignment], None]) -> None:
        """Read these topics instead of assigned partitions.

        ``changed`` is called, by the clock, with the instance's log partitions whenever the group assigned them again,
        and without any when they were taken away.
        """
        ...


class Commits(Protocol):
    """The offsets that a group remembers of its members."""

    def commit(self, offsets: Mapping[str, int], done: Callable[[Offsets], None]) -> None:
        """Let the group remember offsets by log partition, at least one; the answer has those that it took."""
        ...

    def ask_committed(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """Ask the group's coordinator which offsets it remembers of these partitions; it may remember none."""
        ...

    def ask_member(self, done: Callable[[MemberToken], None]) -> None:
        """Ask the library for the member's group and generation, for :meth:`Transactions.send_offsets`."""
        ...


class OwnCommits(Protocol):
    """The commits that a library makes by itself, as it makes them."""

    def watch_own_commits(self, told: Callable[[OwnCommit], None]) -> None:
        """``told`` is called, by the clock, with the begin and with the end of each from now on."""
        ...


class Consumer(Protocol):
    """One consumer instance, one process of the history. It reads by assignment, or as a member of a group."""

    @property
    def subscription(self) -> Subscription | None:
        """Membership, of an instance that was made for a group."""
        ...

    @property
    def commits(self) -> Commits | None:
        """Commits, of an instance that was made for a group."""
        ...

    @property
    def own_commits(self) -> OwnCommits | None:
        """Commits of its own, of an instance that was made for a group, where the library tells them."""
        ...

    def assign(self, partitions: Sequence[str], *, from_start: bool) -> None:
        """Read these log partitions from now on: from their start, or from where this instance stood."""
        ...

    def poll(self, max_wait_ms: int, done: Callable[[PollOutcome], None]) -> None:
        """Records since the last poll, in log order per partition. One poll at a time."""
        ...

    def end_offsets(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """Ask the current leaders for the end of the readable log, fresh from the broker.

        That is the high watermark; for a read_committed consumer the last stable offset.
        """
        ...

    def close(self) -> None:
        """Close the client; a second call does nothing."""
        ...


class Clients(Protocol):
    """Makes clients. ``process``, the first of the instance, names it in the history and to the world."""

    @property
    def lacks(self) -> Mapping[ClientCapability, str]:
        """The capabilities that these clients lack, with the reasons."""
        ...

    @property
    def protocols(self) -> Sequence[GroupProtocol]:
        """The group protocols that a membership can name."""
        ...

    def name_of(self, process: int) -> str:
        """Library and version of this process's client ("kafka-python 3.0.8")."""
        ...

    def producer(self, process: int, transactional_id: str | None = None) -> Producer:
        """A new producer with the run's settings; one with a ``transactional_id`` has transactions.

        Raises:
            ValueError: ``transactional_id`` is given and TRANSACTIONS is lacking.
        """
        ...

    def consumer(
        self, process: int, membership: Membership | None = None, isolation: IsolationLevel = "read_uncommitted"
    ) -> Consumer:
        """A new consumer with the run's settings; one with a ``membership`` can subscribe and commit.

        Raises:
            ValueError: ``membership`` is given and SUBSCRIPTION, or the protocol it names, is lacking; or
                ``isolation`` is read_committed and TRANSACTIONS is lacking.
        """
        ...
