"""Targets by role. A schedule names roles; which broker holds one is asked when the fault fires."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

import msgspec

from nemesis.cluster import CLIENTS, ClusterView, PartitionView

_NUMBERS: Final = re.compile(r"(\d+)")
#: Picks are drawn below this and taken modulo the number of candidates: 60 divides evenly by 1 to 6.
PICKS: Final = 60


class RoleKind(StrEnum):
    """The roles of nodes at a moment. The first five are roles in one log partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    FOLLOWERS = "followers"
    ISR_MEMBER = "isr-member"
    OUT_OF_ISR = "out-of-isr"
    BROKER = "broker"
    MINORITY = "minority"
    RACK = "rack"
    NAMED = "named"
    CONTROLLER = "controller"
    PRODUCER = "producer"
    INSTANCE = "instance"
    COORDINATOR = "coordinator"
    TRANSACTION_COORDINATOR = "transaction-coordinator"


class Role(msgspec.Struct, frozen=True):
    """The nodes that are meant: a kind, the log partition by its position among the run's partitions, and a drawn pick.

    ``pick`` decides among several candidates (modulo their number); for NAMED it is the broker's own number.
    """

    kind: RoleKind
    partition: int = 0
    pick: int = 0

    def __str__(self) -> str:
        if self.kind in _IN_PARTITION:
            return f"{_WORDS[self.kind]} of partition {self.partition}"
        return f"broker {self.pick}" if self.kind is RoleKind.NAMED else _WORDS[self.kind]


def resolve(role: Role, view: ClusterView) -> tuple[int, ...]:
    """The brokers that hold ``role`` now, ascending; empty if no broker does.

    Roles in a partition are the controller's word and may name a broker that is dead, and so may RACK; BROKER and
    MINORITY choose among those that run.
    """
    in_partition = _IN_PARTITION.get(role.kind)
    if in_partition is None:
        return _ANYWHERE[role.kind](role, view)
    name = partition_of(role, view)
    return in_partition(role, view.partitions[name]) if name else ()


def partition_of(role: Role, view: ClusterView) -> str:
    """The name of the log partition that ``role`` speaks of; empty if there is no log partition."""
    names = sorted(view.partitions, key=_in_order)
    return names[role.partition % len(names)] if names else ""


def _in_order(name: str) -> list[str | int]:
    """Sorts names with numbers in them as people count: "log-2" is before "log-10"."""
    return [int(part) if part.isdecimal() else part for part in _NUMBERS.split(name)]


def _picked(candidates: Iterable[int], pick: int) -> tuple[int, ...]:
    ordered = sorted(candidates)
    return (ordered[pick % len(ordered)],) if ordered else ()


def _followers(state: PartitionView) -> set[int]:
    return set(state.replicas) - {state.leader}


def _rack(role: Role, view: ClusterView) -> tuple[int, ...]:
    """Every broker of one rack."""
    racks = sorted({*view.racks.values()})
    chosen = racks[role.pick % len(racks)] if racks else None
    return tuple(sorted(node for node, rack in view.racks.items() if rack == chosen))


def _minority(role: Role, view: ClusterView) -> tuple[int, ...]:
    """The largest minority of all brokers, consecutive in a circle from the pick on, as far as it runs."""
    brokers = tuple(sorted(view.brokers))
    chosen = {brokers[(role.pick + step) % len(brokers)] for step in range((len(brokers) - 1) // 2)}
    return tuple(sorted(chosen & set(view.running)))


_IN_PARTITION: Final[dict[RoleKind, Callable[[Role, PartitionView], tuple[int, ...]]]] = {
    RoleKind.LEADER: lambda _, state: () if state.leader is None else (state.leader,),
    RoleKind.FOLLOWER: lambda role, state: _picked(_followers(state), role.pick),
    RoleKind.FOLLOWERS: lambda _, state: tuple(sorted(_followers(state))),
    RoleKind.ISR_MEMBER: lambda role, state: _picked(state.isr, role.pick),
    RoleKind.OUT_OF_ISR: lambda role, state: _picked(set(state.replicas) - set(state.isr), role.pick),
}
_WORDS: Final = {
    RoleKind.LEADER: "the leader",
    RoleKind.FOLLOWER: "a follower",
    RoleKind.FOLLOWERS: "all followers",
    RoleKind.ISR_MEMBER: "an in-sync replica",
    RoleKind.OUT_OF_ISR: "a replica out of sync",
    RoleKind.BROKER: "a random broker",
    RoleKind.MINORITY: "a random minority",
    RoleKind.RACK: "a random rack",
    RoleKind.CONTROLLER: "the active controller",
    RoleKind.PRODUCER: "a producer",
    RoleKind.INSTANCE: "an instance of the application",
    RoleKind.COORDINATOR: "the group's coordinator",
    RoleKind.TRANSACTION_COORDINATOR: "a transaction coordinator",
}
_ANYWHERE: Final[dict[RoleKind, Callable[[Role, ClusterView], tuple[int, ...]]]] = {
    RoleKind.BROKER: lambda role, view: _picked(view.running, role.pick),
    RoleKind.MINORITY: _minority,
    RoleKind.RACK: _rack,
    RoleKind.NAMED: lambda role, view: (role.pick,) if role.pick in view.brokers else (),
    RoleKind.CONTROLLER: lambda _, view: view.controllers[:1],
    RoleKind.COORDINATOR: lambda _, view: view.coordinators,
    RoleKind.TRANSACTION_COORDINATOR: lambda role, view: _picked(view.transaction_coordinators, role.pick),
    # Which one, the workload knows.
    RoleKind.PRODUCER: lambda _role, _view: (CLIENTS,),
    RoleKind.INSTANCE: lambda _role, _view: (CLIENTS,),
}


def largest_rack(racks: Iterable[str]) -> int:
    """The number of brokers in the largest of these racks, one for each broker; 1 without racks."""
    return max(Counter(racks).values(), default=1)


def most_holders(role: Role, brokers: int, rack_size: int = 1) -> int:
    """The number of brokers that can hold ``role`` at once, at most, in a cluster of ``brokers``.

    ``rack_size`` is that of its largest rack.
    """
    if role.kind in {RoleKind.CONTROLLER, RoleKind.PRODUCER, RoleKind.INSTANCE}:
        return 0
    if role.kind is RoleKind.RACK:
        return rack_size
    if role.kind is RoleKind.FOLLOWERS:
        return brokers - 1
    return (brokers - 1) // 2 if role.kind is RoleKind.MINORITY else 1
