"""Checks a run of a plan for what a story needs: settings, disks, and a world that can do each of its steps."""

from __future__ import annotations

from collections.abc import Iterator

from checkers import counted
from harness.plan import AnyWorld, Existing, Kafka, Loopback, Processes, RunSpec, Ssh
from harness.runs.stories.steps import Step
from harness.runs.stories.steps.faults import Begin
from harness.runs.stories.steps.step import WorldLimits
from harness.runs.stories.steps.waits import WaitUntil
from harness.runs.stories.steps.writes import WriteRecord
from harness.runs.stories.table.columns import REPLICAS
from harness.runs.stories.table.story import Story
from harness.worlds.limits import foreign_to, out_of_reach
from harness.worlds.simulated import OUT_OF_REACH
from nemesis.cluster import CLIENTS, CONTROLLER
from nemesis.faults import FailDirectory, Fault, LinkFault
from workloads import Settings, kind_of


def unmet(story: Story, spec: RunSpec) -> str:
    """The first thing that the story needs and the run has not, and what to write; empty where nothing is missing.

    Rules of replication that only the reference broker can switch may be chosen otherwise than the story does: that is
    what such a run is for. In Kafka's world a story is refused whose rules its release does not have.
    """
    return next(_unmet(story, spec), "")


def _unmet(story: Story, spec: RunSpec) -> Iterator[str]:
    if spec.brokers != story.replicas:
        yield (
            f"has {counted(story.replicas, 'broker')}, and a script in a plan has {REPLICAS}; leave it to ackproof "
            "stories and conform"
        )
    free = Settings.scoped("reference")
    for name, value in story.settings.items():
        if name not in free and spec.settings[name] != value:
            yield f"needs {name}={value}; write it in the plan"
    if len(spec.workload.log_partitions) != story.log_partitions:
        yield "writes to two log partitions, which a script in a plan cannot; leave it to ackproof stories and conform"
    if spec.chosen().cleanup_policy != "delete" and not story.compacted:
        yield "expects every record to stay; leave cleanup.policy out"
    if FailDirectory in story.faults() and spec.log_dirs < 2:
        yield "lets a disk of several fail; write log_dirs = 2 in the plan"
    for step in story.steps:
        if isinstance(step, WriteRecord) and step.acks not in (None, spec.chosen().acks):
            yield (
                f'says "{step.text}"; in a plan every write has the acks of the settings, by '
                "which it is judged, so leave acks out of the step"
            )
    yield from _undoable(story, spec)


def _undoable(story: Story, spec: RunSpec) -> Iterator[str]:
    """The reasons for which the run's world cannot do the story's steps."""
    world = spec.world
    if isinstance(world, Existing) or (isinstance(world, Kafka) and isinstance(world.host, Ssh)):
        yield (
            "looks at the disks of its brokers, which have to be on this machine; write [worlds.kafka] with "
            'host = "namespaces", and run as root'
        )
        return
    simulated = _limited(story, WorldLimits.VIRTUAL)
    if simulated and not world.virtual_time:
        yield _said(simulated, "which is for virtual time only; leave all worlds but [worlds.simulated] out")
    if story.transactions and not story.grouped and not kind_of(spec.workload).transactional:
        yield 'has transactions; write name = "transactions" under [workload]'
    if story.transactions and not spec.chosen().enable_idempotence:
        yield "has transactions; write enable.idempotence = true under [settings]"
    if story.grouped and not kind_of(spec.workload).grouped:
        yield 'has members of a group; write name = "groups" under [workload]'
    lacks = out_of_reach(spec)
    for fault, step in story.faults().items():
        if why_not := next((lacks[need] for need in fault.needs if need in lacks), ""):
            yield _said(step, f"and {why_not}; {_advice(world, fault)}")
    if isinstance(world, Processes):
        yield from _not_in_processes(story)
    if isinstance(world, Kafka):
        yield from _not_on_kafka(story, world)


def _not_in_processes(story: Story) -> Iterator[str]:
    """The reasons for which processes of the reference broker cannot do the story's steps."""
    only = "which the reference broker has in virtual time only; leave [worlds.processes] out"
    if story.compacted:
        yield f"needs a compacted topic, {only}"
    if Settings.from_mapping(story.settings).expires:
        yield f"needs retention.ms, {only}"
    if missing := _limited(story, WorldLimits.NOT_ON_PROCESSES):
        yield _said(missing, only)


def _not_on_kafka(story: Story, world: Kafka) -> Iterator[str]:
    """The reasons for which brokers of Kafka cannot do the story's steps, or work otherwise."""
    if rule := foreign_to(world, story.settings):
        yield f"needs {rule}; leave [worlds.kafka] out"
    for step in story.steps:
        if isinstance(step, Begin) and step.api and any(CLIENTS in link for link in step.links):
            yield _said(
                step,
                "but between clients and Kafka's brokers that ends a whole connection, and each write makes one of its "
                "own, which would not come about; leave [worlds.kafka] out",
            )
        if isinstance(step, Begin) and step.api and any(CONTROLLER in link for link in step.links):
            yield _said(
                step,
                "but a link of Kafka's nodes is cut as a whole, so the controller would fence the broker; leave "
                "[worlds.kafka] out",
            )
        # The mark on disk is an earlier one: what it covers is covered, what it misses need not be missed.
        if isinstance(step, WaitUntil) and any(state.limits is WorldLimits.NOT_ON_KAFKA for state in step.states):
            yield _said(
                step,
                "but Kafka's brokers show an earlier high watermark only; wait until replicas have the record, or "
                "leave [worlds.kafka] out",
            )


def _limited(story: Story, limits: WorldLimits) -> Step | None:
    return next((step for step in story.steps if step.limits is limits), None)


def _advice(world: AnyWorld, fault: type[Fault]) -> str:
    if isinstance(world, Processes | Kafka) and isinstance(world.host, Loopback) and issubclass(fault, LinkFault):
        return f'write host = "namespaces" under [worlds.{world.name}], and run as root'
    if {*fault.needs} & OUT_OF_REACH.keys():
        return f"leave [worlds.{world.name}] out"
    return "leave all worlds but [worlds.simulated] out"


def _said(step: Step, why_not: str) -> str:
    return f'says "{step.text}", {why_not}'
