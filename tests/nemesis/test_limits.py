"""Faults of a run that cannot be done, by its families, its chosen scenarios, or its given schedule."""

from __future__ import annotations

import pytest

from nemesis.cluster import Capability
from nemesis.faults import Kill, PowerLoss
from nemesis.limits import limits
from nemesis.plan import FaultPlan
from nemesis.roles import Role, RoleKind
from nemesis.schedule import Schedule, ScheduledFault

NO_CUTS = {Capability.LINKS: "no links here", Capability.MESSAGES: "no links here"}
LEADER = Role(RoleKind.LEADER)


def limits_by_family(lacks, schedule=None, **plan):
    return {limit.family: limit for limit in limits(FaultPlan(**plan), schedule, lacks)}


def test_of_partitions_nothing_is_left_without_links_and_kills_lose_their_preparation() -> None:
    limit = limits_by_family(NO_CUTS, families=("kill", "pause", "partition", "rolling"))
    assert limit["partition"].nothing_left
    assert limit["partition"].why == "no links here"
    assert not limit["kill"].nothing_left
    assert (limit["kill"].kinds, limit["kill"].scenarios) == (("partition",), ("leader-ahead", "last-in-sync"))


@pytest.mark.parametrize("family", ["restart", "client-crash", "controller"])
def test_families_that_cut_nothing_have_no_limit_without_links(family: str) -> None:
    assert limits_by_family(NO_CUTS, families=(family,)) == {}


def test_a_family_of_several_kinds_of_fault_goes_on_with_those_that_are_left() -> None:
    without_power = {Capability.POWER: "no disks here"}
    assert not limits_by_family(without_power, families=("rack",))["rack"].nothing_left
    assert limits_by_family({**without_power, Capability.PROCESSES: "none", **NO_CUTS}, families=("rack",))[
        "rack"
    ].nothing_left


def test_only_scenarios_that_are_chosen_count() -> None:
    assert limits_by_family(NO_CUTS, families=("kill",), scenarios=("kill/two-overlapping",)) == {}
    assert limits_by_family(NO_CUTS, families=("kill",), scenarios=("S01",))["kill"].scenarios == ("leader-ahead",)


def test_a_given_schedule_has_its_own_faults_only() -> None:
    faults = (Kill(LEADER), PowerLoss(LEADER))
    steps = [
        ScheduledFault(begin_ms=1, end_ms=2, group=0, family=name, scenario="given", fault=fault)
        for name, fault in zip(("kill", "power"), faults, strict=True)
    ]
    schedule = Schedule(steps=tuple(steps), healed_ms=9)
    limit = limits_by_family({Capability.POWER: "no disks here"} | NO_CUTS, schedule, families=("kill", "power"))
    assert list(limit) == ["power"]
    assert limit["power"].nothing_left
