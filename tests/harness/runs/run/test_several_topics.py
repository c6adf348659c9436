"""A run over several topics of many log partitions: each is written to, attacked by its number, and read to its end."""

from harness.ground.choices import Choices
from harness.plan import RunSpec, Simulated
from harness.runs.run import perform_schedule
from harness.worlds.simulated.world import SimulatedWorld
from nemesis.faults import Kill
from nemesis.plan import FaultPlan
from nemesis.roles import Role, RoleKind
from nemesis.schedule import Schedule, ScheduledFault
from tests.harness.runs.run.test_run_in_virtual_time import Events, lost_writes
from workloads.operations import EventType, Function
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

WORKLOAD = WorkloadPlan(topics=2, partitions=12, skew=0.5, writes_per_second=100.0, duration_ms=6_000)
NAMES = {*map(str, WORKLOAD.log_partitions)}


def perform(settings):
    kill = ScheduledFault(
        begin_ms=2_000,
        end_ms=4_000,
        group=0,
        fault=Kill(Role(RoleKind.LEADER, partition=14)),
        family="kill",
        scenario="kill/given",
    )
    spec = RunSpec(
        world=Simulated(),
        cell="kill",
        family="kill",
        settings=settings.to_mapping(),
        workload=WORKLOAD,
        faults=FaultPlan(families=("kill",)),
        schedule=Schedule(steps=(kill,), healed_ms=1_000),
        seed=1,
    )
    choices, recorder = Choices(1), Events()
    world = SimulatedWorld(spec, choices)
    report = perform_schedule(spec, world, recorder, choices.draw)
    return report, recorder.events, world


def test_every_log_partition_of_both_topics_is_written_to_and_read_to_its_end():
    _, events, world = perform(Settings(min_insync_replicas=2))
    acknowledged = {e.micro[0].partition for e in events if e.function is Function.SEND and e.type is EventType.OK}
    drained = {name for e in events if e.function is Function.DRAIN and e.type is EventType.OK for name in e.partitions}
    assert acknowledged == drained == NAMES
    assert {log.partition for log in world.replica_logs().logs} == NAMES
    assert not lost_writes(events)


def test_a_fault_strikes_the_log_partition_of_the_second_topic_that_its_number_means():
    _, events, _ = perform(Settings(acks=1))
    assert str(WORKLOAD.log_partitions[14]) == "ackproof.2-2"
    (detail, *_) = [e.detail for e in events if e.function is Function.FAULT and '"kill' in e.detail]
    assert "ackproof.2-2" in detail
