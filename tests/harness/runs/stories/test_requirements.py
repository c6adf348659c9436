"""The needs of a story in a run of a plan, and what is said where the run lacks one."""

from __future__ import annotations

from typing import Final

import pytest

from harness.plan import AnyWorld, Kafka, Namespaces, Processes, RunSpec, Simulated
from harness.runs.stories import column_named, known_stories, unmet
from nemesis.plan import FaultPlan
from workloads import WorkloadPlan

ON_KAFKA: Final = Kafka(host=Namespaces())


@pytest.mark.parametrize(
    ("number", "column", "world", "workload", "problem"),
    [
        ("G01", "g", Simulated(), "groups", ""),
        ("G01", "g", Simulated(), "steady", 'has members of a group; write name = "groups" under [workload]'),
        ("G01", "g", ON_KAFKA, "groups", ""),
        ("G01", "g", Processes(), "groups", 'says "join m", which the reference broker has in virtual time only'),
        ("G13", "g", ON_KAFKA, "groups", ""),
        ("G15", "g", ON_KAFKA, "groups", "needs tombstones.wait.for.replicas=true, and Apache Kafka 4.3.1 does not"),
        ("T01", "v2", Simulated(), "transactions", ""),
        ("T01", "v2", Simulated(), "steady", 'has transactions; write name = "transactions" under [workload]'),
        ("T01", "v2", ON_KAFKA, "transactions", ""),
        ("T01", "v2", Processes(), "transactions", 'says "init p", which the reference broker has'),
        ("T04", "v2", ON_KAFKA, "transactions", 'says "hold EndTxn clients>1", but between clients and Kafka'),
        ("T07", "v2", ON_KAFKA, "transactions", 'says "release last 1>0", which is for virtual time only'),
        ("T30", "o2", Simulated(), "groups", ""),
        ("T34", "v2", Simulated(), "transactions", "writes to two log partitions, which a script in a plan cannot"),
        ("S83", "all/2", Simulated(), "keyed", ""),
        ("S80", "all/2", ON_KAFKA, "keyed", ""),
        ("S83", "all/2", Processes(), "keyed", "needs a compacted topic, which the reference broker has in virtual"),
        ("S18", "all/2", ON_KAFKA, "steady", ""),
        ("S40", "all/2", ON_KAFKA, "steady", ""),
        ("S42", "all/2", ON_KAFKA, "steady", "needs missed.epoch=forget, and Apache Kafka 4.3.1 does not work so; le"),
        ("S50", "all/2", ON_KAFKA, "steady", "needs replica.lag.max.messages=2, and Apache Kafka 4.3.1 does not work"),
        ("S50", "all/2", Simulated(), "steady", ""),
        ("S51", "all/2", ON_KAFKA, "steady", 'says "drop AlterPartition 0>controller", but a link of Kafka'),
    ],
)
def test_a_run_of_a_plan_has_what_its_story_needs(
    number: str, column: str, world: AnyWorld, workload: str, problem: str
) -> None:
    story = known_stories()[number]
    settings = column_named(column).chosen(story.settings)
    plan = WorkloadPlan(topic="story", partitions=1, name=workload)
    spec = RunSpec(
        world=world,
        cell=column,
        family=number,
        settings=settings.to_mapping(),
        workload=plan,
        faults=FaultPlan(),
        seed=0,
    )
    assert unmet(story, spec).startswith(problem)
    assert bool(unmet(story, spec)) == bool(problem)


def test_a_story_that_expects_every_record_to_stay_needs_a_topic_that_keeps_them() -> None:
    settings = column_named("g").chosen({"cleanup.policy": "compact"})
    spec = RunSpec(
        world=Simulated(),
        cell="g",
        family="G01",
        settings=settings.to_mapping(),
        workload=WorkloadPlan(topic="story", partitions=1, name="groups"),
        faults=FaultPlan(),
        seed=0,
    )
    assert unmet(known_stories()["G01"], spec) == "expects every record to stay; leave cleanup.policy out"
    assert unmet(known_stories()["G14"], spec).startswith("needs segment.ms=1000")


def test_transactions_of_a_story_need_idempotent_producers() -> None:
    story = known_stories()["G13"]
    settings = {**column_named("g").chosen(story.settings).to_mapping(), "enable.idempotence": False}
    spec = RunSpec(
        world=Simulated(),
        cell="g",
        family="G13",
        settings=settings,
        workload=WorkloadPlan(topic="story", partitions=1, name="groups"),
        faults=FaultPlan(),
        seed=0,
    )
    assert unmet(story, spec) == "has transactions; write enable.idempotence = true under [settings]"
