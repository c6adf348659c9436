"""Evidence: the facts that an act left, as they were observed. Nothing observed is an empty mapping.

Each act has a type of its own; who performs it gives that, and who reads it names that. Several acts on one node make
one evidence: their mappings are joined, as in ``{**killed, **wiped}``. That is why these are mappings: they are written
in the order in which things were observed, with no name that was not. A world observes those of the names that it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypedDict, is_typeddict

import msgspec


class WhyNot(TypedDict, total=False):
    """The reason why the controller, or a node, would not, or why it is not known whether it did."""

    refused: str
    unconfirmed: str


class ProcessSeen(WhyNot, total=False):
    """A process that was started, frozen, awakened (messages had ``waited``), or asked to end by a ``signal``."""

    exit: str | None
    pid: int | str
    incarnation: int
    state: str
    words: str
    signal: int
    waited: int
    links_updated: bool


class Killed(ProcessSeen, total=False):
    """A process that was killed; ``connect`` is what a client meets there."""

    connect: str


class PowerLost(Killed, total=False):
    """A loss of power: records that were lost, and of these the flushed, by log partition, or bytes of segments."""

    lost: dict[str, int]
    lost_flushed: dict[str, int] | int
    log_bytes_before: int
    log_bytes_after: int


class Corruption(TypedDict, total=False):
    """The record that was damaged on a disk.

    ``offset`` is the first one of its batch; ``lost`` are the records that the next start drops, which looks at it if
    it is ``read_again``. ``position``, ``before`` and ``after`` are of the byte in ``file``.
    """

    partition: str
    offset: int
    file: str
    recovery_point: int
    read_again: bool
    lost: int
    position: int
    before: int
    after: int


class DiskDamaged(TypedDict, total=False):
    """The disk of a dead node: what is gone, in records by log partition or in files and bytes, or a changed record."""

    wiped: dict[str, int]
    corrupted: Corruption


class CopyTaken(PowerLost, DiskDamaged, total=False):
    """The records that a node lost, whichever act took them."""


class InstanceSeen(TypedDict, total=False):
    """An instance of an application that was killed, asked to end, frozen, or started as the process ``pid``.

    Or it was cut off from ``broker``, and ``lost_packets`` of it were dropped until that ended.
    """

    instance: int
    pid: int | str
    exit: str | None
    asked: bool
    frozen: bool
    broker: int
    lost_packets: int


class DirectoryFailed(Killed, total=False):
    """A log directory that failed, by the log partitions in it, or was replaced: records that are gone by partition."""

    failed: list[str]
    replaced: dict[str, int]


class DiskLied(TypedDict, total=False):
    """A disk that began to lie, with what was durable before, or stopped, with what it wrote: records, or bytes."""

    lies: dict[str, int]
    durable_log_bytes: int
    cached: dict[str, int]
    log_bytes: int


class DiskFilled(TypedDict, total=False):
    """A disk that was filled, or has room again, and how the node's process had ended meanwhile, if it had."""

    filled_bytes: int
    free_bytes: int
    freed_bytes: int
    exit: str | None


class DiskSlowed(TypedDict, total=False):
    """A slow disk, and the ``limit`` that the kernel lists."""

    device: str
    writes_per_second: int
    limit: int | str | None


class LeaderMoved(WhyNot, total=False):
    """A log partition after its leader was moved, as the controller has it."""

    leader: int | None
    leader_epoch: int
    election: str


class Reassigned(WhyNot, total=False):
    """A log partition after a reassignment; ``in_one_rack`` are those of its replicas that share one."""

    replicas: list[int]
    leader: int | None
    leader_epoch: int
    in_one_rack: dict[str, list[int]]


class NodeSaid(TypedDict, total=False):
    """The words of a node since its newest start, which is the ``incarnation``: its release."""

    version: str
    incarnation: int


class Prepared(NodeSaid, total=False):
    """The release that a node is to have, and the one that it has."""

    wanted: str


class MembersChanged(WhyNot, DiskDamaged, total=False):
    """Controllers that vote, replicas as they were asked for by log partition, brokers that the cluster knows."""

    voters: list[int]
    assigned: dict[str, list[int]]
    registered: list[int]


class Described(NodeSaid, MembersChanged, total=False):
    """A node that is ready, and its cluster: finalized features by level, and the node's settings in effect."""

    features: dict[str, int]
    changed: dict[str, str]


class Finalized(WhyNot, total=False):
    """The features of the cluster, by level."""

    features_before: dict[str, int]
    features: dict[str, int]


class ClockSet(TypedDict, total=False):
    """The error of a node's wall clock."""

    offset_ms: int


class ProducerDied(TypedDict, total=False):
    """A producer that was ended, its sends without an answer, and the producer that writes on."""

    instance: int
    outstanding: int
    successor: int


class LinksCut(TypedDict, total=False):
    """Links that deliver nothing, or not every message, or deliver again: counts by link, by node, or in all."""

    cut: int
    under_way: str
    held: dict[str, Any] | int
    silent: list[int]
    filtered: list[str]
    dropped: dict[str, int] | int
    delayed: int
    whole_connection: bool
    released: str


class PacketsLost(LinksCut, total=False):
    """Links that lose a share of their packets."""

    lost_pct: int


class LinksSlowed(TypedDict, total=False):
    """Links that became slow, with their limits by link, or are quick again, with what ``passed`` meanwhile."""

    slow: list[str]
    kbit: dict[str, int]
    delay_ms: dict[str, int]
    quick: list[str]
    passed: dict[str, dict[str, int]]


class ConnectionsHeld(TypedDict, total=False):
    """The connections that are held, by link."""

    connections: dict[str, list[str]]


#: By the number of the node that was hit. Who reads it names the act: ``of_nodes: Mapping[str, PowerLost]``.
ByNode: TypeAlias = Mapping[str, Any]
#: The evidence that a receipt keeps: by node where nodes were hit, of the act itself where links were.
Observed: TypeAlias = Mapping[str, Any]
#: Every act here; a corruption is a fact of one.
_ACTS: Final = [kind for kind in [*globals().values()] if is_typeddict(kind) and kind is not Corruption]


def by_node(observed: Observed) -> ByNode:
    """The evidence of each node; nothing of links."""
    return {name: seen for name, seen in observed.items() if name.isdigit()}


def check_evidence(observed: Observed) -> None:
    """Look at stored evidence: its names have the types that they have here, and others say nothing.

    Raises:
        msgspec.ValidationError: they have not.
    """
    for act in _ACTS:
        msgspec.convert(by_node(observed), dict[str, act])  # type: ignore[valid-type]
