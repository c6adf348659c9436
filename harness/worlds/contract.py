"""The contract of a world, in which a run happens. The nemesis, the workload and the phases of a run see only this.

A world is used once: ``open``, ``drive`` as often as needed, ``close``. It owns the run's clock, on whose one thread
all callbacks happen. ``close`` always leaves nothing behind, also after an error, and is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict

import msgspec

from harness.ground.observations import Observation
from harness.records.replica_dump import ReplicaLogs
from nemesis.cluster import Target
from workloads import BrokenInvariant, Clients, Clock, RefusedAttempts, SendOutcome
from workloads.driver import InstanceProcesses


class NodeCrash(msgspec.Struct, frozen=True):
    """A node that ended by itself, not by an act of the harness.

    ``time_us`` is the time at which the harness noticed it, on the run's clock; ``exit`` says how the node ended
    ("status 1", "signal 11"), ``words`` are the last of its log. ``returned_us`` is the time at which it was seen to
    run again, None until then.
    """

    time_us: int
    node: int
    exit: str
    words: str
    returned_us: int | None = None


class DirectWrite(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record for one broker. The broker may wait ``timeout_ms`` for replicas before it answers.

    ``producer_id``, ``producer_epoch`` and ``sequence`` are those of an idempotent producer, -1 without one. A broker
    takes any producer id that it has not seen yet (KIP-360). A ``tombstone`` deletes its key in a compacted log.
    """

    partition: str
    key: bytes
    payload: bytes
    acks: int
    timeout_ms: int
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    tombstone: bool = False


class DirectClient(Protocol):
    """A client that sends one request to the broker that it is given, whatever the metadata says about leaders."""

    def produce(self, broker: int, write: DirectWrite, done: Callable[[SendOutcome], None]) -> None:
        """Send ``write`` to ``broker`` over a new connection, once.

        ``done`` is called once, by the clock, never before this has returned: with the broker's answer, or with INFO
        when the connection was refused or broke; not at all while neither happens. With acks=0 it is OK as soon as the
        request was handed over, even if no broker takes it.
        """

    def delete_group(self, broker: int, group: str, done: Callable[[SendOutcome], None]) -> None:
        """Ask ``broker``, the coordinator, to forget a group; ``done`` is called as in :meth:`produce`."""


class PlacedRecord(NamedTuple):
    """A record in a replica's log. ``value`` is that of the history, -1 if the record cannot be decoded.

    A record that is not ``intact`` is torn or damaged: its batch's checksum is wrong. Not every world shows such ones.
    """

    offset: int
    leader_epoch: int
    value: int
    intact: bool = True


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of a log partition, as its own broker sees it. A field that the world cannot see is None.

    Offsets are exclusive ends. A broker that does not run has only its log: ``records`` and ``log_end``, which is 0 if
    its disk has nothing of the log. ``leading`` is its own opinion, and ``isr`` that of a leader. ``epochs`` are pairs
    of a leader epoch and the offset at which it starts in this log (rule 19), ``written_high_watermark`` is that on its
    disk: both are of dead brokers too. Where no transaction is open, the ``last_stable_offset`` is the high watermark,
    or the end of the log where it is seen on disk.
    """

    node: int
    running: bool
    log_end: int
    records: tuple[PlacedRecord, ...] = ()
    leading: bool = False
    leader_epoch: int | None = None
    high_watermark: int | None = None
    isr: tuple[int, ...] | None = None
    epochs: tuple[tuple[int, int], ...] | None = None
    written_high_watermark: int | None = None
    last_stable_offset: int | None = None

    @property
    def known_high_watermark(self) -> int | None:
        """The high watermark of a running broker, or where it does not tell that, the last that it has written down."""
        told = self.high_watermark is not None or not self.running
        return self.high_watermark if told else self.written_high_watermark


class GroupWord(msgspec.Struct, frozen=True, kw_only=True):
    """The word of a coordinator about the run's group; what it does not tell is None.

    ``committed`` are the offsets that the group remembers, by log partition. ``assigned`` is the number of members that
    have a log partition.
    """

    committed: dict[str, int] | None = None
    members: int | None = None
    assigned: int | None = None


class Flushed(TypedDict, total=False):
    """A forced disk: log end offsets by log partition, or files."""

    flushed: dict[str, int] | int


class Replicas(Protocol):
    """A view of replicas and brokers from outside. Its one action is :meth:`flush`."""

    def state(self, node: int, partition: str) -> ReplicaState:
        """The replica of ``partition`` on broker ``node``; an empty one where its disk has none."""

    def fenced(self) -> frozenset[int]:
        """The brokers that the controller counts as dead (or that have not registered)."""

    def group_is_empty(self, node: int) -> bool | None:
        """True if a broker that coordinates the run's group knows of no member; None where it does not tell."""

    def group(self, node: int) -> GroupWord:
        """The word of a broker about the run's group, which it coordinates. This question changes nothing."""

    def transaction(self, node: int, transactional_id: str) -> str | None:
        """The state of a transactional id and its producer epoch, by the word of ``node``, which coordinates it.

        None where it does not tell that, or knows of no such id.
        """

    def stable_end(self, node: int, partition: str) -> int | None:
        """The last stable offset, as ``node``, the leader of ``partition``, tells readers; None where it does not."""

    def flush(self, node: int) -> Flushed:
        """Force to disk everything that broker ``node`` has written, its checkpoints too."""


class World(Protocol):
    """One cluster and the clients that talk to it."""

    @property
    def clock(self) -> Clock:
        """The run's clock; it starts at 0 when the world is opened."""

    @property
    def clients(self) -> Clients:
        """Makes producers and consumers with the run's settings."""

    @property
    def target(self) -> Target:
        """The cluster, for the nemesis."""

    @property
    def direct(self) -> DirectClient | None:
        """Sends single writes for scripted stories; None where this world cannot."""

    @property
    def replicas(self) -> Replicas | None:
        """Shows replicas to scripted stories; None where this world cannot."""

    @property
    def instances(self) -> InstanceProcesses | None:
        """Starts the instances of the application under test; None where the run has none, or this world cannot."""

    def open(self) -> None:
        """Start the cluster, create the run's topic, return when every partition has a leader and a full ISR.

        Raises:
            HarnessError: with what to do, if that does not happen within the world's own limit.
        """

    def drive(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """Let time pass until ``finished()`` is true or the clock reads ``limit_us``; the answer is ``finished()``."""

    def hindrance(self) -> str:
        """Say what of this machine serves the nodes too slowly now for them to do their work; "" if nothing does."""

    def observations(self) -> Sequence[Observation]:
        """All observations of the cluster so far, in order of time."""

    def refused_attempts(self) -> RefusedAttempts | None:
        """Count the attempts to append that leaders refused until now; None where no one can."""

    def crashes(self) -> Sequence[NodeCrash]:
        """Every node that ended by itself until now, in the order in which they were noticed."""

    @property
    def broken_invariant(self) -> BrokenInvariant | None:
        """The first invariant that the cluster broke; None if it broke none, or this world cannot check any."""

    def out_of_sync(self, healed_us: int) -> Mapping[str, str]:
        """The log partitions that lack an in-sync replica though nothing hinders it, and which; all was healed then.

        Empty where too little time has passed since, or this world cannot tell what hinders a replica.
        """

    def replica_logs(self) -> ReplicaLogs | None:
        """The logs of the run's topic on the brokers' disks, once the world is closed; None if no disk is in reach."""

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """The settings in effect, with defaults, by role: producer, consumer, broker.

        They are known once the world is open, and after that.

        Raises:
            HarnessError: the world was never open.
        """

    def close(self) -> None:
        """End every process, remove every rule."""
