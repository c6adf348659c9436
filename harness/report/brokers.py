"""Who led the partition when, as the brokers themselves reported it, and which of them answered a producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from harness.observations import BecameFollower, BecameLeader, IsrChanged, Observation, ReplicaRecovered
from nemesis.receipts import Receipt

#: Reports of a broker after which it leads, or leads no more. One that started again has reported neither yet.
ROLES: Final = (BecameLeader, BecameFollower, ReplicaRecovered)

#: Faults that end a broker's process when they begin, "died" included, which nobody ordered.
ENDING: Final = frozenset({"kill", "powerloss", "wipedisk", "corruptrecord", "died"})


class Leadership(NamedTuple):
    """A stretch of time in which ``node`` believed to lead. The dead do not lead, though they cannot report so."""

    node: int
    epoch: int
    begin_us: int
    end_us: int


class LeaderState(NamedTuple):
    """What a broker last reported of its own leading; None for what it did not."""

    epoch: int | None = None
    isr: tuple[int, ...] | None = None


def leaderships(observations: Sequence[Observation], faults: Sequence[Receipt], end_us: int) -> list[Leadership]:
    """All of them, by broker and time; two may overlap, and then one of the two is deposed and does not know it."""
    roles = [seen for seen in observations if isinstance(seen.fact, ROLES)]
    found: list[Leadership] = []
    for node in sorted({seen.node for seen in roles if isinstance(seen.fact, BecameLeader)}):
        own = [seen for seen in roles if seen.node == node]
        deaths = [fault.begun_us for fault in faults if fault.fault in ENDING and node in fault.targets]
        for seen, next_us in zip(own, [*(later.time_us for later in own[1:]), end_us], strict=True):
            if isinstance(seen.fact, BecameLeader):
                ended_us = min([next_us, *(death_us for death_us in deaths if death_us > seen.time_us)])
                epoch = -1 if seen.fact.leader_epoch is None else seen.fact.leader_epoch
                found.append(Leadership(node, epoch, seen.time_us, ended_us))
    return found


def answering_broker(led: Sequence[Leadership], time_us: int, removers: Sequence[int] | None) -> int | None:
    """The broker that answered at ``time_us``, where the client does not know; None if it cannot be told.

    One leader: it. Two: a write that is lost (``removers`` are brokers that truncated it later) was on a deposed one,
    any other on the one of the newest epoch.
    """
    then = [one for one in led if one.begin_us <= time_us <= one.end_us]
    if len(then) > 1 and removers is not None:
        then = [one for one in then if one.node in removers]
    elif len(then) > 1:
        then = [max(then, key=lambda one: one.epoch)]
    return then[0].node if len(then) == 1 else None


def leader_state(observations: Sequence[Observation], node: int | None, time_us: int) -> LeaderState:
    """What ``node`` last reported, at or before ``time_us``, of its leader epoch and its in-sync replicas."""
    state = LeaderState()
    for seen in observations:
        fact = seen.fact
        if seen.node == node and isinstance(fact, BecameLeader | IsrChanged) and seen.time_us <= time_us:
            epoch = state.epoch if fact.leader_epoch is None else fact.leader_epoch
            state = LeaderState(epoch, state.isr if fact.isr is None else fact.isr)
    return state
