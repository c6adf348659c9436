"""Scenarios about disks that lose what was on them."""

import pytest

from nemesis.disk_parts import LOG_PARTS
from nemesis.faults import CorruptRecord
from nemesis.roles import RoleKind
from nemesis.scenarios import FAMILIES, Scene, Timings
from nemesis.scenarios.disks import START_MS


@pytest.fixture
def scene():
    return Scene(
        draw=lambda label, bound: bound - 1,
        timings=Timings(),
        fault_ms_min=500,
        fault_ms_max=3_000,
        brokers=3,
        partitions=3,
    )


def parts(family, name, scene):
    return next(scenario for scenario in FAMILIES[family].every_scenario if scenario.name == name).parts(scene)


def test_everybody_who_is_in_sync_is_emptied_at_once(scene):
    away, *emptied = parts("wipe", "all-in-sync", scene)
    assert away.end_ms >= max(part.end_ms for part in emptied)
    assert all(part.begin_ms > scene.timings.shrink_ms for part in emptied)
    assert [part.fault.role.pick for part in emptied] == [0, 1]
    assert {part.fault.role.kind for part in emptied} == {RoleKind.ISR_MEMBER}


def test_the_emptied_broker_is_started_once_more_when_it_is_surely_back(scene):
    *first, again = parts("wipe", "last-in-sync-restarted", scene)
    assert again.begin_ms == max(part.end_ms for part in first) + START_MS
    assert again.fault.role.kind is RoleKind.ISR_MEMBER


@pytest.mark.parametrize("name", ["follower-then-leader"])
@pytest.mark.parametrize("family", ["wipe", "corrupt"])
def test_the_leader_dies_only_after_the_follower_could_come_back(family, name, scene):
    hit, dies = parts(family, name, scene)
    assert dies.begin_ms >= hit.end_ms + scene.timings.fence_ms


@pytest.mark.parametrize("scenario", FAMILIES["corrupt"].scenarios, ids=lambda scenario: scenario.name)
def test_every_scenario_chooses_its_record_by_chance(scenario, scene):
    picks = [part.fault.pick for part in scenario.parts(scene) if isinstance(part.fault, CorruptRecord)]
    assert picks
    assert set(picks) == {LOG_PARTS - 1}
