"""Evidence: what was observed of one act, at a node or on links. Nothing observed is an empty mapping.

Several acts on one node make one evidence: their mappings are joined, as in ``{**killed, **wiped}``. That is why this
is a mapping and no struct: it is written in the order in which things were observed, with no name that was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict

import msgspec


class Corruption(TypedDict, total=False):
    """The record that was damaged on a disk.

    ``offset`` is the first one of its batch, ``read_again`` says whether the next start looks at it; ``lost`` are the
    records that this start will drop. ``position``, ``before`` and ``after`` are of the byte in ``file``.
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


class Evidence(TypedDict, total=False):
    """The facts that one act showed; each act has the names of its group, in every world."""

    # Asked of the controller, or of a node: why it would not, or why it is not known whether it did.
    refused: str
    unconfirmed: str
    # Processes: how one ended, its number, what a client meets there, and its last words.
    exit: str | None
    pid: int | str
    incarnation: int
    connect: str
    words: str
    signal: int
    state: str
    waited: int
    links_updated: bool
    # Power and disks: records by log partition, or bytes of log segments.
    lost: dict[str, int]
    lost_flushed: dict[str, int] | int
    log_bytes_before: int
    log_bytes_after: int
    log_bytes: int
    wiped: dict[str, int]
    corrupted: Corruption
    failed: list[str]
    replaced: dict[str, int]
    lies: dict[str, int]
    cached: dict[str, int]
    durable_log_bytes: int
    filled_bytes: int
    free_bytes: int
    freed_bytes: int
    flushed: dict[str, int] | int
    device: str
    writes_per_second: int
    limit: int | str | None
    # Leaders and replicas, as the controller has them afterwards.
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    election: str
    # Of these, those that are together in a rack.
    in_one_rack: dict[str, list[int]]
    # Forms of nodes: the release that is wanted, the one that runs, features by level, and settings in effect.
    wanted: str
    version: str
    features: dict[str, int]
    features_before: dict[str, int]
    changed: dict[str, str]
    # Members of a cluster: controllers that vote, brokers that it knows, replicas as they were asked for.
    voters: list[int]
    registered: list[int]
    assigned: dict[str, list[int]]
    # Clocks and clients.
    offset_ms: int
    instance: int
    outstanding: int
    successor: int
    # Links: by link, by the node that holds it back, or in all.
    cut: int
    under_way: str
    dropped: dict[str, int] | int
    lost_pct: int
    delayed: int
    held: dict[str, Any] | int
    silent: list[int]
    slow: list[str]
    quick: list[str]
    kbit: dict[str, int]
    delay_ms: dict[str, int]
    passed: dict[str, dict[str, int]]
    filtered: list[str]
    released: str
    whole_connection: bool
    connections: dict[str, list[str]]


#: By the number of the node that was hit.
ByNode: TypeAlias = dict[str, Evidence]
#: The evidence that a receipt keeps: by node where nodes were hit, of the act itself where links were.
Observed: TypeAlias = ByNode | Evidence


def by_node(observed: Mapping[str, Any]) -> ByNode:
    """The evidence of each node; nothing of links."""
    return {name: seen for name, seen in observed.items() if name.isdigit()}


def check_evidence(observed: Mapping[str, Any]) -> None:
    """Look at stored evidence: its names have the types that they have here, and others say nothing.

    Raises:
        msgspec.ValidationError: they have not.
    """
    msgspec.convert(by_node(observed), ByNode)
