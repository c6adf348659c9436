"""What a story needs of a run of a plan: its settings, its disks, and a world that can do each of its steps."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plan import AnyWorld, Existing, Kafka, Loopback, RunSpec, Simulated, Ssh
from harness.stories import steps as s
from harness.stories.story import Story
from nemesis.cluster import CLIENTS
from workloads import Settings


def needs_own_disks(story: Story) -> bool:
    """True if each broker needs a disk that can lose what was not forced to it."""
    return story.first_deed(s.Deed.POWER, s.Deed.LIE) is not None


def unmet(story: Story, spec: RunSpec) -> str:
    """The first thing that the story needs and the run has not, and what to write; empty where there is none.

    Rules of replication that only the reference broker can switch may be chosen otherwise than the story does: that is
    what such a run is for.
    """
    return next(_unmet(story, spec), "")


def _unmet(story: Story, spec: RunSpec) -> Iterator[str]:
    free = Settings.scoped("reference")
    for name, value in story.settings.items():
        if name not in free and spec.settings[name] != value:
            yield f"needs {name}={value}; write it in the plan"
    if story.first_deed(s.Deed.FAIL) and spec.log_dirs < 2:
        yield "lets a disk of several fail; write log_dirs = 2 in the plan"
    for step in story.steps:
        if isinstance(step, s.Write) and step.acks not in (None, spec.chosen().acks):
            yield (
                f'says "{step.text}"; in a plan every write has the acks of the settings, by '
                "which it is judged, so leave acks out of the step"
            )
    yield from _undoable(story, spec.world)


def _undoable(story: Story, world: AnyWorld) -> Iterator[str]:
    """Why a world cannot do the story's steps."""
    if isinstance(world, Simulated):
        return
    if isinstance(world, Existing) or isinstance(world.host, Ssh):
        yield (
            "looks at the disks of its brokers, which have to be on this machine; write [worlds.kafka] with "
            'host = "namespaces", and run as root'
        )
        return
    if step := story.first_deed(s.Deed.FAIL, s.Deed.REPLACE) or story.first(s.ReleaseOne):
        yield f'says "{step.text}", which is for virtual time only; leave all worlds but [worlds.simulated] out'
    if not isinstance(world, Kafka):
        return
    step = story.first(s.LinkStep, s.Withhold, s.Isolate, s.Shrink, s.Fence)
    if step and isinstance(world.host, Loopback):
        yield (
            f'says "{step.text}", which is done to Kafka in namespaces only; write host = "namespaces" under '
            "[worlds.kafka], and run as root"
        )
    for one in story.steps:
        if isinstance(one, s.Drop | s.Hold) and one.api and any(CLIENTS in link for link in one.links):
            yield (
                f'says "{one.text}", but between clients and Kafka\'s brokers that ends a whole connection, and '
                "each write makes one of its own, which would not come about; leave [worlds.kafka] out"
            )
        if isinstance(one, s.WaitUntil) and not one.tried and any(isinstance(state, s.Covers) for state in one.states):
            yield (
                f'says "{one.text}", but Kafka\'s brokers do not show their high watermark; wait until replicas have '
                "the record, or leave [worlds.kafka] out"
            )
