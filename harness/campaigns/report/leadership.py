"""Finds out who led the partition when, as the brokers reported it, and which of them answered a producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    IsrChanged,
    Observation,
    ReplicaRecovered,
    Seen,
    of_kind,
)
from nemesis.receipts import Receipt

#: Reports of a broker after which it leads, or leads no more. One that started again has reported neither yet.
Role = BecameLeader | BecameFollower | ReplicaRecovered


class LeaderInterval(NamedTuple):
    """A stretch of time in which ``node`` believed to lead. The dead do not lead, though they cannot report so."""

    node: int
    epoch: int
    begin_us: int
    end_us: int


class LeaderState(NamedTuple):
    """The last report of a broker on its own leading; None for what it did not report."""

    epoch: int | None = None
    isr: tuple[int, ...] | None = None


def leaderships(observations: Sequence[Observation], faults: Sequence[Receipt], end_us: int) -> list[LeaderInterval]:
    """All of them, by broker and time; two may overlap, and then one of the two is deposed and does not know it."""
    roles: list[Seen[Role]] = of_kind(observations, BecameLeader, BecameFollower, ReplicaRecovered)
    periods: list[LeaderInterval] = []
    for node in sorted({seen.node for seen in roles}):
        own = [seen for seen in roles if seen.node == node]
        deaths = [fault.begun_us for fault in faults if fault.facts.ends_process and node in fault.targets]
        ends = [*(seen.time_us for seen in own[1:]), end_us]
        for (begin_us, _, fact), next_us in zip(own, ends, strict=True):
            if isinstance(fact, BecameLeader):
                ended_us = min([next_us, *(death_us for death_us in deaths if death_us > begin_us)])
                periods.append(LeaderInterval(node, comparable_epoch(fact.leader_epoch), begin_us, ended_us))
    return periods


def comparable_epoch(epoch: int | None) -> int:
    """A leader epoch to compare with others; one that was not reported is older than any."""
    return -1 if epoch is None else epoch


def answering_broker(led: Sequence[LeaderInterval], time_us: int, removers: Sequence[int] | None) -> int | None:
    """The broker that answered at ``time_us``, where the client does not know; None if it is not known.

    One leader: it. Two: a write that is lost (``removers`` are brokers that truncated it later) was on a deposed one,
    any other on the one of the newest epoch.
    """
    then = [period for period in led if period.begin_us <= time_us <= period.end_us]
    if len(then) > 1 and removers is not None:
        then = [period for period in then if period.node in removers]
    elif len(then) > 1:
        then = [max(then, key=lambda period: period.epoch)]
    return then[0].node if len(then) == 1 else None


def leader_state(observations: Sequence[Observation], node: int | None, time_us: int) -> LeaderState:
    """Give what ``node`` last reported, at or before ``time_us``, of its leader epoch and its in-sync replicas."""
    epoch, isr = None, None
    for seen in isr_reports(observations):
        if seen.node == node and seen.time_us <= time_us:
            epoch = epoch if seen.fact.leader_epoch is None else seen.fact.leader_epoch
            isr = isr if seen.fact.isr is None else seen.fact.isr
    return LeaderState(epoch, isr)


def isr_reports(observations: Sequence[Observation]) -> list[Seen[BecameLeader | IsrChanged]]:
    """Give everything that was reported of leader epochs and in-sync replicas."""
    reports: list[Seen[BecameLeader | IsrChanged]] = of_kind(observations, BecameLeader, IsrChanged)
    return reports
