"""Makes the world of a run from what its plan says: the one place that knows them all."""

from __future__ import annotations

from pathlib import Path

from harness.choices import Choices
from harness.plan import Existing, Kafka, Processes, RunSpec, Simulated
from harness.worlds.contract import World
from harness.worlds.existing import existing_world
from harness.worlds.kafka import kafka_world
from harness.worlds.processes import processes_world
from harness.worlds.simulated import SimulatedWorld


def world_for(spec: RunSpec, directory: Path, choices: Choices, *, observe: bool = False) -> World:
    """The world that ``spec`` names, not yet opened. The run's files are in ``directory``, which must exist.

    A simulated world takes its ``choices``, and is observed where ``observe`` says so; real ones always are.
    """
    match spec.world:
        case Simulated():
            return SimulatedWorld(spec, choices, observe=observe)
        case Processes():
            return processes_world(spec, directory)
        case Kafka():
            return kafka_world(spec, directory)
        case Existing():
            return existing_world(spec, directory)
