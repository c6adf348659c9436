"""A free run of Kafka held against the core's controller: what Kafka logged must be steps that the controller makes.

Observed, in ``cluster.jsonl`` of a run: whom the controller fenced and took back; each change of a log partition, with
leader, leader epoch, ISR, ELR, last known leader and partition epoch; each proposal that was refused, and why (since
4.0); of brokers, when they began to lead or to follow, the ISR that a leader counts with, and where a follower
truncated.

Not observed: heartbeats, registrations, planned moves, that a broker asks to stop in order, and which of two things
that were logged at about the same time came first. :mod:`harness.lab.conform.controller_search` tries these, with the
core's own controller.

Fetches are not observed either. So a leader may propose what it likes, and of brokers no more is held than that they do
what the controller said, and truncate to where a leader epoch began.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness.ground.errors import PlanError
from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    IsrChanged,
    Observation,
    ProposalRefused,
    Truncated,
)
from harness.lab.conform.controller_search import SLACK_US, Between, ControllerSearch, LoggedFact, PartitionChange
from harness.plan import Kafka
from harness.records.cluster_file import read_observations
from harness.records.run_record import read_record
from nemesis.cluster import CONTROLLER
from workloads import LogPartition, Settings

_Role = BecameLeader | BecameFollower | IsrChanged | Truncated


class FreeRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one log partition of a run.

    ``changes`` of it and ``refusals`` by the controller, and ``roles`` of brokers, were observed; ``deviations`` of the
    controller are known ones. ``misfit`` is empty, or the first that does not fit, with its neighbours and what the
    core would show.
    """

    partition: str
    changes: int
    roles: int
    refusals: int = 0
    deviations: int = 0
    misfit: tuple[str, ...] = ()

    @property
    def compared(self) -> bool:
        """True if something was held: the core begins with the first change, and all else is held against it."""
        return self.changes > 0 and self.changes + self.roles > 1

    @property
    def fits(self) -> bool:
        """True if something was compared, and all of it fits."""
        return self.compared and not self.misfit


def held_run(run: Path, bug: str = "none") -> list[FreeRun]:
    """Hold each log partition of the topics that a run wrote to; with a planted ``bug``.

    Raises:
        PlanError: this run's log does not say enough.
    """
    record = read_record(run)
    if not isinstance(record.world, Kafka) or record.world.mode != "kraft" or record.world.controllers != 1:
        raise PlanError(f"{run} is not a run of Apache Kafka with one KRaft controller; only its log says enough")
    settings = Settings.from_mapping({**record.settings, "planted.bug": bug})
    written = [line for line in read_observations(run) if not (line.partition or "").startswith("__")]
    try:
        return held_observations(written, settings)
    except PlanError as error:
        raise PlanError(f"{run}: {error}") from error


def is_held(line: Observation) -> bool:
    """True if this is held: a fact of a workload's log partition, or of the controller that fences a broker or not."""
    return not (line.partition or "").startswith("__") and isinstance(line.fact, _Role | PartitionChange | Between)


def held_observations(seen: Sequence[Observation], settings: Settings) -> list[FreeRun]:
    """Hold each log partition that was observed; errors as above."""
    names = sorted({line.partition for line in seen if line.partition is not None}, key=LogPartition.named)
    if not names:
        raise PlanError("no log partition was observed in this run, so nothing is compared")
    return [_held_partition(name, seen, settings) for name in names]


def _held_partition(partition: str, seen: Sequence[Observation], settings: Settings) -> FreeRun:
    changes = _new([
        LoggedFact(line.time_us, line.node, line.fact)
        for line in seen
        if line.node >= CONTROLLER and isinstance(line.fact, PartitionChange) and line.fact.partition == partition
    ])  # fmt: skip
    roles = [
        LoggedFact(line.time_us, line.node, line.fact)
        for line in seen
        if line.node < CONTROLLER and isinstance(line.fact, _Role) and line.fact.partition == partition
    ]
    between = [
        LoggedFact(line.time_us, line.node, line.fact)
        for line in seen
        if line.node >= CONTROLLER and isinstance(line.fact, Between) and line.partition in {None, partition}
    ]
    end_us = max(line.time_us for line in seen)
    order = ControllerSearch(changes, between, settings, end_us - SLACK_US).depth_first()
    return FreeRun(
        partition=partition,
        changes=len(changes),
        roles=len(roles),
        refusals=sum(isinstance(said.fact, ProposalRefused) for said in between),
        deviations=order.deviations,
        misfit=order.misfit or _role_misfit(roles, changes),
    )


def _role_misfit(roles: Sequence[LoggedFact[_Role]], changes: Sequence[LoggedFact[PartitionChange]]) -> tuple[str, ...]:
    """The first of the brokers' ``roles`` that does not fit."""
    begins = {said.fact.end_offset for said in roles if isinstance(said.fact, BecameLeader)}
    for said in roles:
        if isinstance(said.fact, Truncated):
            if said.fact.to_offset not in begins:
                return f"does not fit: {said}", "no leader epoch is known to begin there"
        elif not any(_obeys(said, change) for change in changes):
            return f"does not fit: {said}", "the controller has said nothing that this follows"
    return ()


def _obeys(said: LoggedFact[_Role], change: LoggedFact[PartitionChange]) -> bool:
    """True if the broker does what the controller said then, and not before."""
    fact, word = said.fact, change.fact
    if change.time_us > said.time_us + SLACK_US:
        return False
    match fact:
        case IsrChanged():
            return fact.partition_epoch == word.partition_epoch and set(fact.isr or ()) == set(word.isr or ())
        case BecameLeader():
            leads = (word.leader, word.leader_epoch) == (said.node, fact.leader_epoch)
            return leads and set(fact.isr or ()) == set(word.isr or ())
        case BecameFollower():
            return fact.leader_epoch == word.leader_epoch and fact.leader in {None, word.leader}
    return False


def _new(changes: Iterable[LoggedFact[PartitionChange]]) -> list[LoggedFact[PartitionChange]]:
    """Without those that a controller which was started again repeats."""
    new: list[LoggedFact[PartitionChange]] = []
    for said in changes:
        if said.fact.partition_epoch is None:
            raise PlanError("this run's controller logged no partition epochs, so its log cannot be compared")
        if not any(_repeats(said.fact, earlier.fact) for earlier in new):
            new.append(said)
    return new


def _repeats(fact: PartitionChange, other: PartitionChange) -> bool:
    same_epochs = (fact.partition_epoch, fact.leader_epoch) == (other.partition_epoch, other.leader_epoch)
    return same_epochs and fact.leader == other.leader and set(fact.isr or ()) == set(other.isr or ())
