"""Faults on disks: what they do to their brokers, in which order, and what their evidence says."""

import pytest

from nemesis.cluster import LOG_PARTS
from nemesis.corrupt import CorruptRecord
from nemesis.families import FAMILIES, SCRIPTED
from nemesis.full_disk import FullDisk
from nemesis.receipts import judge, less
from nemesis.roles import Role, RoleKind
from nemesis.slow_disk import SlowDisk
from nemesis.story import Scene, Timings
from nemesis.wipe import START_MS, WipeDisk
from tests.conftest import ObedientCluster

LEADER = Role(RoleKind.LEADER, 1)


@pytest.fixture
def cluster():
    return ObedientCluster()


def played(fault, cluster):
    """What was done to the cluster, and the evidence of both ends, of the leader of partition 1, which is broker 1."""
    aim = fault.aim(cluster.view())
    assert aim.nodes == (1,)
    evidence = fault.begin(cluster.target(), aim), fault.end(cluster.target(), aim)
    return cluster.calls, evidence


def test_a_disk_is_emptied_after_its_broker_died_and_before_it_returns(cluster):
    calls, evidence = played(WipeDisk(LEADER), cluster)
    assert calls == [("kill", 1), ("wipe", (1,)), ("restart", 1)]
    assert evidence == ({"1": {"kill": "1", "wipe": "(1,)"}}, {"1": {"restart": "1"}})


def test_a_record_of_the_roles_own_partition_is_damaged(cluster):
    calls, _ = played(CorruptRecord(LEADER, pick=7), cluster)
    assert calls == [("kill", 1), ("corrupt", (1, "t-1", 7)), ("restart", 1)]


def test_a_broker_that_ended_over_a_full_disk_is_started_when_there_is_room_again(cluster):
    calls, evidence = played(FullDisk(LEADER), cluster)
    assert calls == [("fill", (1,)), ("free", (1,)), ("restart", 1)]
    assert evidence[1] == {"1": {"free": "(1,)", "restart": "1"}}


def test_a_slow_disk_ends_nobody(cluster):
    calls, _ = played(SlowDisk(LEADER), cluster)
    assert calls == [("slow", (1,)), ("restore", (1,))]
    assert not SlowDisk.stops_brokers


@pytest.mark.parametrize("fault", [WipeDisk(LEADER), CorruptRecord(LEADER), FullDisk(LEADER), SlowDisk(LEADER)])
def test_a_leader_that_does_not_run_has_no_disk_to_hit(fault):
    cluster = ObedientCluster(partitions=())
    assert fault.aim(cluster.view()).impossible == "nobody is the leader of partition 1 now"
    assert ObedientCluster(blind=True).target().files.wipe(1) == {}


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
    return next(story for story in (*FAMILIES[family], *SCRIPTED.get(family, ())) if story.name == name).parts(scene)


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


@pytest.mark.parametrize("story", FAMILIES["corrupt"], ids=lambda story: story.name)
def test_every_story_chooses_its_record_by_chance(story, scene):
    picks = [part.fault.pick for part in story.parts(scene) if isinstance(part.fault, CorruptRecord)]
    assert picks
    assert set(picks) == {LOG_PARTS - 1}


@pytest.mark.parametrize(
    ("seen", "took_effect", "came_to"),
    [
        pytest.param({}, False, "", id="nothing was observed"),
        pytest.param({"1": {"exit": "9"}}, False, "kill", id="a death and nothing more"),
        pytest.param({"1": {"exit": "9", "wiped": {}, "corrupted": {}}}, True, "", id="an empty disk was emptied"),
    ],
)
@pytest.mark.parametrize("fault", [WipeDisk(LEADER), CorruptRecord(LEADER)])
def test_what_left_the_disk_as_it_was_came_to_a_kill(cluster, fault, seen, took_effect, came_to):
    aim = fault.aim(cluster.view())
    assert (judge(aim, seen, fault.shows)[0], less(seen, fault.shows)) == (took_effect, came_to)


def test_of_two_disks_one_that_was_damaged_makes_it_no_kill():
    assert less({"1": {"exit": "9"}, "2": {"exit": "9", "corrupted": {}}}, CorruptRecord.shows) == ""
    assert less({"1": {"exit": "9"}}, FullDisk.shows) == "", "a fault without a deed of its own is what it is"
