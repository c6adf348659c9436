"""Makes the world that a run's plan names. Only this module knows all worlds."""

from __future__ import annotations

from pathlib import Path

from harness.ground.choices import Choices
from harness.plan import Existing, Kafka, Processes, RunSpec, Simulated
from harness.worlds.contract import World

# ruff: noqa: PLC0415 - each world is loaded when it is needed: the clients of real ones take a third of a second


def world_for(
    spec: RunSpec, directory: Path, choices: Choices, *, observe: bool = False, invariants: bool = True
) -> World:
    """The world that ``spec`` names, not yet opened. The run's files are in ``directory``, which must exist.

    A simulated world takes ``choices``, is observed if ``observe`` is true (real ones always are), and has its
    invariants checked if ``invariants`` is true.
    """
    match spec.world:
        case Simulated():
            from harness.worlds.simulated import SimulatedWorld

            return SimulatedWorld(spec, choices, observe=observe, invariants=invariants)
        case Processes():
            from harness.worlds.processes import processes_world

            return processes_world(spec, directory)
        case Kafka():
            from harness.worlds.kafka import kafka_world

            return kafka_world(spec, directory)
        case Existing():
            from harness.worlds.existing import existing_world

            return existing_world(spec, directory)
