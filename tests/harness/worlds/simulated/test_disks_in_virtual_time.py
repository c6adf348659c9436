"""Emptied and damaged disks against the reference broker: who loses, and who only fetches again (numbers S..)."""

from types import MappingProxyType

import pytest

from harness.broker.core.types import TopicPartition
from harness.ground.choices import Choices
from harness.plan import RunSpec, Simulated
from harness.worlds.simulated.world import SimulatedWorld
from nemesis.cluster import Capability
from nemesis.disk_parts import LOG_PARTS
from nemesis.plan import FaultPlan
from tests.harness.runs.run.test_run_in_virtual_time import lost_writes, perform
from workloads.plan import WorkloadPlan
from workloads.settings import ACKS_ALL, Settings

SEEDS = range(2)
MIN_ISR_2 = {"acks": ACKS_ALL, "min_insync_replicas": 2}


def losses(family, story, faults=MappingProxyType({}), **settings):
    """Lost writes of a run for each seed; every fault of the story was possible and took effect."""
    counts = []
    for seed in SEEDS:
        report, events = perform(family, seed, Settings(**settings), scenarios=(story,), **faults)
        assert report.drained, report.unhealthy
        assert report.sends.acknowledged > 150
        assert all(receipt.took_effect for receipt in report.faults)
        counts.append(len(lost_writes(events)))
    return counts


@pytest.mark.parametrize("settings", [{}, {"flush_messages": 1}, {"min_insync_replicas": 1}])
@pytest.mark.parametrize("story", ["S08", "S25"])
def test_an_emptied_disk_of_the_last_in_sync_replica_loses_whatever_is_flushed(story, settings):
    assert all(losses("wipe", story, **(MIN_ISR_2 | settings)))


def test_an_unclean_election_saves_what_the_emptied_disk_lost():
    """S08: a replica that is out of the ISR and has everything leads before the empty one is back."""
    assert losses("wipe", "S08", **MIN_ISR_2, unclean_leader_election_enable=True) == [0] * len(SEEDS)


@pytest.mark.parametrize(("family", "story"), [("wipe", "S08"), ("power", "S09"), ("corrupt", "S34")])
def test_eligible_leader_replicas_outlive_one_destroyed_copy(family, story):
    """Rule 15; with min.insync.replicas=1 there is nobody else who surely has everything."""
    assert losses(family, story, **MIN_ISR_2, eligible_leader_replicas=True) == [0] * len(SEEDS)
    assert any(losses(family, story, acks=ACKS_ALL, eligible_leader_replicas=True))


def test_eligible_leader_replicas_do_not_outlive_two():
    assert all(losses("wipe", "S25", **MIN_ISR_2, eligible_leader_replicas=True))


@pytest.mark.parametrize("story", ["wipe/follower", "wipe/leader", "wipe/follower-then-leader", "S36"])
def test_one_emptied_disk_among_replicas_in_sync_is_filled_again(story):
    assert losses("wipe", story, **MIN_ISR_2) == [0] * len(SEEDS)


@pytest.mark.parametrize("story", ["wipe/follower", "S36"])
def test_without_broker_epochs_a_broker_that_is_back_at_once_leads_with_its_empty_disk(story):
    assert any(losses("wipe", story, **MIN_ISR_2, broker_epochs=False))


@pytest.mark.parametrize("settings", [{}, {"flush_messages": 1}])
def test_a_damaged_record_of_the_last_in_sync_replica_loses_it_and_all_that_follow(settings):
    """S34: recovery ends the log at the record (rule 25)."""
    assert any(losses("corrupt", "S34", **(MIN_ISR_2 | settings)))


@pytest.mark.parametrize("story", ["S35", "corrupt/leader", "corrupt/follower"])
def test_a_damaged_record_among_replicas_in_sync_is_fetched_again(story):
    assert losses("corrupt", story, **MIN_ISR_2) == [0] * len(SEEDS)


@pytest.mark.parametrize(
    "settings", [{}, {"flush_messages": 1}, {"flush_messages": 1, "eligible_leader_replicas": True}]
)
def test_all_replicas_without_power_lose_what_lying_disks_had_flushed(settings):
    """S33 is S11 on disks that lie about fsync: flushing cannot help."""
    faults = {"dead_brokers_max": 3}
    assert all(losses("lying-disk", "S33", faults, **(MIN_ISR_2 | settings)))
    assert any(losses("power", "S11", faults, **(MIN_ISR_2 | settings))) is ("flush_messages" not in settings)


def test_one_lying_disk_among_replicas_in_sync_is_filled_again():
    assert losses("lying-disk", "lying-disk/follower", **MIN_ISR_2, flush_messages=1) == [0] * len(SEEDS)


def test_the_last_in_sync_replica_needs_an_honest_disk():
    """S09: flushing is enough on honest disks, and eligible leader replicas on those that lie."""
    flushed = {**MIN_ISR_2, "flush_messages": 1}
    assert any(losses("lying-disk", "lying-disk/last-in-sync", **flushed))
    assert losses("power", "S09", **flushed) == [0] * len(SEEDS)
    assert losses("lying-disk", "lying-disk/last-in-sync", **flushed, eligible_leader_replicas=True) == [0] * len(SEEDS)


def test_the_receipt_of_a_power_loss_counts_what_was_flushed_and_is_gone():
    report, _ = perform("lying-disk", 1, Settings(**MIN_ISR_2, flush_messages=1), scenarios=("lying-disk/follower",))
    lost = [
        seen for receipt in report.faults if receipt.fault == "powerloss" for seen in receipt.begin_evidence.values()
    ]
    assert lost
    assert all(seen["lost_flushed"] == seen["lost"] and any(seen["lost"].values()) for seen in lost)


#: The broker that was started again must have registered before it is hit again.
TWO_DIRS = {"log_dirs": 2, "healed_ms_min": 3_000}


@pytest.mark.parametrize("dirs", [1, 2])
@pytest.mark.parametrize("story", ["leader", "follower", "follower-then-leader"])
def test_a_failed_log_directory_among_replicas_in_sync_is_filled_again(story, dirs):
    plan = TWO_DIRS | {"log_dirs": dirs}
    assert losses("log-directory", f"log-directory/{story}", plan, **MIN_ISR_2) == [0] * len(SEEDS)


def test_the_last_in_sync_replicas_directory_takes_with_it_what_was_flushed():
    """S08 by one disk of several; eligible leader replicas outlive it as they do an emptied disk."""
    assert all(losses("log-directory", "log-directory/last-in-sync", TWO_DIRS, **MIN_ISR_2, flush_messages=1))
    kept = losses("log-directory", "log-directory/last-in-sync", TWO_DIRS, **MIN_ISR_2, eligible_leader_replicas=True)
    assert kept == [0] * len(SEEDS)


def test_a_broker_with_another_directory_goes_on_and_one_with_none_ends():
    for dirs, exits in ((1, {"status 1"}), (2, {None})):
        report, _ = perform(
            "log-directory", 1, Settings(**MIN_ISR_2), scenarios=("log-directory/leader",), log_dirs=dirs
        )
        hit = [seen for receipt in report.faults for seen in receipt.begin_evidence.values()]
        assert {seen.get("exit") for seen in hit} == exits
        assert all(len(seen["failed"]) == (3 if dirs == 1 else 1) or len(seen["failed"]) == 2 for seen in hit)
        assert all(receipt.end_evidence["0"]["replaced"] for receipt in report.faults if receipt.targets == (0,))


@pytest.fixture
def cluster():
    spec = RunSpec(
        world=Simulated(),
        cell="wipe",
        family="wipe",
        settings=Settings().to_mapping(),
        workload=WorkloadPlan(topic="t"),
        faults=FaultPlan(families=("wipe",)),
        seed=1,
    )
    world = SimulatedWorld(spec, Choices(1))
    world.open()
    world.drive(lambda: False, world.clock.now_us() + 100_000)  # Until every broker has heard of its replicas.
    return world.cluster


class TestStorage:
    def test_only_a_dead_brokers_disk_can_be_touched(self, cluster):
        assert cluster.target.files.wipe(0) == cluster.target.files.corrupt(0, "t-0", 0) == {}

    def test_evidence_counts_what_is_gone(self, cluster):
        cluster.kill(0)
        assert cluster.target.files.corrupt(0, "t-0", LOG_PARTS // 2) == {}
        assert cluster.target.files.wipe(0) == {"wiped": dict.fromkeys(cluster.view().partitions, 0)}
        assert cluster.log(0, TopicPartition("t", 0)) is None

    def test_disks_in_memory_are_neither_full_nor_slow(self, cluster):
        assert cluster.target.lacks.keys() >= {Capability.DISK_SPACE, Capability.DISK_SPEED}
        assert cluster.target.disk_space is cluster.target.disk_speed is None


@pytest.mark.parametrize(("family", "story"), [("wipe", "S08"), ("power", "S09"), ("corrupt", "S34")])
def test_elections_by_the_logs_outlive_one_destroyed_copy_and_the_isr_does_not(family, story):
    """Rules 27, 28: the last member of the ISR is waited for by nobody."""
    k2 = {"acks": ACKS_ALL, "quorum_required_acks": 2}
    majority = {"acks": ACKS_ALL, "commit_rule": "majority", "leader_election": "largest-epoch-and-log-end"}
    assert any(losses(family, story, **k2))
    assert losses(family, story, **k2, leader_election="largest-epoch-and-log-end") == [0] * len(SEEDS)
    assert losses(family, story, **majority) == [0] * len(SEEDS)
