"""Targets by role. A schedule names roles; which broker holds one is asked when the fault fires."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from nemesis.cluster import CLIENTS, ClusterView, PartitionView

#: Picks are drawn below this and taken modulo the number of candidates: 60 divides evenly by 1 to 6.
PICKS: Final = 60


class RoleKind(StrEnum):
    """What a node is at the moment. The first five are roles in one log partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    FOLLOWERS = "followers"
    ISR_MEMBER = "isr-member"
    OUT_OF_ISR = "out-of-isr"
    BROKER = "broker"
    MINORITY = "minority"
    NAMED = "named"
    CONTROLLER = "controller"
    PRODUCER = "producer"


class Role(msgspec.Struct, frozen=True):
    """Who is meant: a kind, the log partition by its position among the run's partitions, and a drawn pick.

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
    """The brokers that hold ``role`` now, ascending; none if nobody does.

    Roles in a partition are the controller's word and may name a broker that is dead; BROKER and MINORITY choose among
    those that run.
    """
    in_partition = _IN_PARTITION.get(role.kind)
    if in_partition is None:
        return _ANYWHERE[role.kind](role, view)
    name = partition_of(role, view)
    return in_partition(role, view.partitions[name]) if name else ()


def partition_of(role: Role, view: ClusterView) -> str:
    """The name of the log partition that ``role`` speaks of; empty if there is none."""
    names = sorted(view.partitions)
    return names[role.partition % len(names)] if names else ""


def _one(candidates: tuple[int, ...], pick: int) -> tuple[int, ...]:
    return (candidates[pick % len(candidates)],) if candidates else ()


def _leader(_: Role, state: PartitionView) -> tuple[int, ...]:
    return () if state.leader is None else (state.leader,)


def _followers(_: Role, state: PartitionView) -> tuple[int, ...]:
    return tuple(sorted(set(state.replicas) - {state.leader}))


def _follower(role: Role, state: PartitionView) -> tuple[int, ...]:
    return _one(_followers(role, state), role.pick)


def _isr_member(role: Role, state: PartitionView) -> tuple[int, ...]:
    return _one(tuple(sorted(state.isr)), role.pick)


def _out_of_isr(role: Role, state: PartitionView) -> tuple[int, ...]:
    return _one(tuple(sorted(set(state.replicas) - set(state.isr))), role.pick)


def _broker(role: Role, view: ClusterView) -> tuple[int, ...]:
    return _one(tuple(sorted(view.running)), role.pick)


def _minority(role: Role, view: ClusterView) -> tuple[int, ...]:
    """The largest minority of all brokers, consecutive in a circle from the pick on, as far as it runs."""
    brokers = tuple(sorted(view.brokers))
    chosen = {brokers[(role.pick + step) % len(brokers)] for step in range((len(brokers) - 1) // 2)}
    return tuple(sorted(chosen & set(view.running)))


def _named(role: Role, view: ClusterView) -> tuple[int, ...]:
    return (role.pick,) if role.pick in view.brokers else ()


_IN_PARTITION: Final[dict[RoleKind, Callable[[Role, PartitionView], tuple[int, ...]]]] = {
    RoleKind.LEADER: _leader,
    RoleKind.FOLLOWER: _follower,
    RoleKind.FOLLOWERS: _followers,
    RoleKind.ISR_MEMBER: _isr_member,
    RoleKind.OUT_OF_ISR: _out_of_isr,
}
_WORDS: Final = {
    RoleKind.LEADER: "the leader",
    RoleKind.FOLLOWER: "a follower",
    RoleKind.FOLLOWERS: "all followers",
    RoleKind.ISR_MEMBER: "an in-sync replica",
    RoleKind.OUT_OF_ISR: "a replica out of sync",
    RoleKind.BROKER: "a random broker",
    RoleKind.MINORITY: "a random minority",
    RoleKind.CONTROLLER: "the active controller",
    RoleKind.PRODUCER: "a producer",
}
_ANYWHERE: Final[dict[RoleKind, Callable[[Role, ClusterView], tuple[int, ...]]]] = {
    RoleKind.BROKER: _broker,
    RoleKind.MINORITY: _minority,
    RoleKind.NAMED: _named,
    RoleKind.CONTROLLER: lambda _, view: view.controllers[:1],
    # Which one, the workload knows.
    RoleKind.PRODUCER: lambda _role, _view: (CLIENTS,),
}


def most_holders(role: Role, brokers: int) -> int:
    """The number of brokers that can hold ``role`` at once, at most, in a cluster of ``brokers``; others are none."""
    if role.kind in {RoleKind.CONTROLLER, RoleKind.PRODUCER}:
        return 0
    if role.kind is RoleKind.FOLLOWERS:
        return brokers - 1
    return (brokers - 1) // 2 if role.kind is RoleKind.MINORITY else 1
