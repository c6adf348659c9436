"""Faults of disks: what is done in which order, and what counts as having happened."""

import pytest

from nemesis.faults import (
    Away,
    AwayWiped,
    CorruptRecord,
    FailDirectory,
    FullDisk,
    LyingDisk,
    PowerLoss,
    SlowDisk,
    WipeDisk,
)
from nemesis.receipts import degraded_to, effect_shown
from nemesis.roles import Role, RoleKind
from tests.conftest import ObedientCluster

LEADER = Role(RoleKind.LEADER, 1)


@pytest.fixture
def cluster():
    return ObedientCluster()


def played(fault, cluster):
    """The acts on the cluster, and the evidence of both ends, of the leader of partition 1, which is broker 1."""
    aim = fault.aim(cluster.view())
    assert aim.nodes == (1,)
    evidence = fault.begin(cluster.target(), aim), fault.end(cluster.target(), aim)
    return cluster.calls, evidence


def test_a_disk_is_emptied_after_its_broker_died_and_before_it_returns(cluster):
    calls, evidence = played(WipeDisk(LEADER), cluster)
    assert calls == [("kill", 1), ("wipe", (1,)), ("restart", 1)]
    assert evidence == ({"1": {"kill": "1", "wipe": "(1,)"}}, {"1": {"restart": "1"}})


def test_a_broker_that_was_away_returns_with_its_disk(cluster):
    calls, evidence = played(Away(LEADER), cluster)
    assert calls == [("stop", (1,)), ("restart", 1)]
    assert evidence == ({"1": {"stop": "(1,)"}}, {"1": {"restart": "1"}})
    assert not Away.destroys_copy


def test_a_broker_that_is_replaced_finds_its_disk_empty(cluster):
    calls, _ = played(AwayWiped(LEADER), cluster)
    assert calls == [("stop", (1,)), ("wipe", (1,)), ("restart", 1)]
    assert AwayWiped.destroys_copy


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


def test_a_failed_directory_is_replaced_while_its_broker_is_down(cluster):
    calls, evidence = played(FailDirectory(LEADER), cluster)
    assert calls == [("fail", (1, "t-1")), ("kill", 1), ("replace", (1,)), ("restart", 1)]
    assert evidence[1] == {"1": {"kill": "1", "replace": "(1,)", "restart": "1"}}


def test_a_disk_that_lies_ends_nobody_and_takes_nothing_by_itself(cluster):
    calls, _ = played(LyingDisk(LEADER), cluster)
    assert calls == [("lie", (1,)), ("obey", (1,))]
    assert not LyingDisk.stops_brokers
    assert not LyingDisk.destroys_copy


@pytest.mark.parametrize("fault", [WipeDisk(LEADER), CorruptRecord(LEADER), FullDisk(LEADER), SlowDisk(LEADER)])
def test_a_leader_that_does_not_run_has_no_disk_to_hit(fault):
    cluster = ObedientCluster(partitions=())
    assert fault.aim(cluster.view()).impossible == "the leader of partition 1 does not exist now"
    assert ObedientCluster(blind=True).target().files.wipe(1) == {}


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
    assert (effect_shown(aim, seen, fault.shows)[0], degraded_to(seen, fault)) == (took_effect, came_to)


def test_of_two_disks_one_that_was_damaged_makes_it_no_kill():
    assert degraded_to({"1": {"exit": "9"}, "2": {"exit": "9", "corrupted": {}}}, CorruptRecord(LEADER)) == ""
    assert degraded_to({"1": {"exit": "9"}}, FullDisk(LEADER)) == "", "a fault without one of its own is what it is"


@pytest.mark.parametrize(
    ("lost", "came_to"),
    [({"t-0": 0, "t-1": 0}, "kill"), ({"t-0": 0, "t-1": 3}, ""), ({}, "kill"), (None, "")],
)
def test_a_loss_of_power_that_took_no_record_was_a_kill(lost: object, came_to: str) -> None:
    """Only counted records prove it."""
    evidence = {"1": {"exit": "9"} | ({} if lost is None else {"lost": lost})}
    assert degraded_to(evidence, PowerLoss(LEADER)) == came_to
