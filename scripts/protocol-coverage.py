#!/usr/bin/env python3
"""Print which words of the protocol random schedules have reached, and which invariants they broke: [SCHEDULES [SEED]].

Each schedule has one to three families of all that there are in virtual time, and settings of every rule that the
reference broker has.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from typing import Any, Final

from harness.choices import Choices
from harness.plan import RunSpec, Simulated
from harness.run import perform_schedule
from harness.worlds.simulated import SimulatedWorld
from nemesis.cluster import Capability
from nemesis.plan import FaultPlan
from nemesis.scenarios import FAMILIES, needs_of
from tests.harness.worlds.simulated.protocol_coverage import Coverage
from tests.harness.worlds.simulated.protocol_words import WORDS
from workloads import PRESETS, Event, Settings, SettingsError, WorkloadPlan

LACKING: Final = {
    Capability.CLOCKS,
    Capability.DISK_SPACE,
    Capability.DISK_SPEED,
    Capability.REASSIGNMENT,
    Capability.SUCCESSION,
}
QUICK: Final = {
    "replica.lag.time.max.ms": 1_000,
    "broker.session.timeout.ms": 1_000,
    "broker.heartbeat.interval.ms": 250,
}
BY_EPOCH: Final = {"leader.election": "largest-epoch-and-log-end"}
BY_NUMBER: Final[list[dict[str, Any]]] = [
    {"commit.rule": "majority", **BY_EPOCH},
    {"quorum.required.acks": 2, **BY_EPOCH},
    {"quorum.required.acks": 2, "leader.election": "largest-log-end"},
    {"quorum.required.acks": 2},
]
WORKLOAD: Final = WorkloadPlan(writes_per_second=30.0, duration_ms=12_000, partitions=2, producers=2, consumers=2)


class NoRecorder:
    """Keeps no history."""

    def record(self, event: Event) -> None:
        """Forget the event."""


def drawn_settings(draw: random.Random) -> dict[str, Any]:
    """Settings of any rule."""
    acks = draw.choice([0, 1, "all", "all", "all"])
    chosen: dict[str, Any] = {**QUICK, "acks": acks, "min.insync.replicas": draw.choice([1, 2, 2, 3])}
    chosen["unclean.leader.election.enable"] = draw.random() < 0.3
    chosen["enable.idempotence"] = acks == "all" and draw.random() < 0.5
    rule = draw.random()
    if rule < 0.25:
        chosen["eligible.leader.replicas"] = True
    elif rule < 0.5:
        chosen["era"] = draw.choice([era for era in PRESETS if era[0].isdigit()])
    elif rule < 0.65:
        chosen |= {**draw.choice(BY_NUMBER), "min.insync.replicas": 1, "unclean.leader.election.enable": False}
    if draw.random() < 0.3:
        chosen["flush.messages"] = 1
    if draw.random() < 0.2:
        chosen |= {"request.timeout.ms": 6_000, "delivery.timeout.ms": 12_000}
    return chosen


def drawn_run(number: int, seed: int) -> RunSpec | None:
    """Schedule ``number``; None where its settings do not go together."""
    draw = random.Random(f"{seed}/{number}")  # noqa: S311 (repeatable on purpose)
    families = [name for name in FAMILIES if not needs_of(name) & LACKING]
    try:
        settings = Settings.from_mapping(drawn_settings(draw))
    except SettingsError:
        return None
    chosen = tuple(draw.sample(families, draw.choice([1, 1, 2, 3])))
    return RunSpec(
        world=Simulated(),
        cell="coverage",
        family="+".join(chosen),
        settings=settings.to_mapping(),
        workload=WORKLOAD,
        faults=FaultPlan(
            families=chosen,
            count=6,
            dead_brokers_max=draw.choice([2, 2, 3]),
            healed_ms_min=draw.choice([1_000, 2_500]),
        ),
        seed=draw.getrandbits(40),
        racks=("a", "b", "c"),
        log_dirs=2,
    )


def main(schedules: int = 200, seed: int = 1) -> int:
    """Perform them; the exit code is 1 if an invariant was broken."""
    reached: Counter[str] = Counter()
    broken, performed, began = 0, 0, time.process_time()
    for number in range(schedules):
        spec = drawn_run(number, seed)
        if spec is None:
            continue
        choices = Choices(spec.seed)
        world = SimulatedWorld(spec, choices)
        words = Coverage(world.cluster).words
        perform_schedule(spec, world, NoRecorder(), choices.draw)
        reached.update(words)
        performed += 1
        if world.broken_invariant is not None:
            broken += 1
            sys.stderr.write(f"schedule {number}: {world.broken_invariant.text}\n")
    each_ms = (time.process_time() - began) / max(performed, 1) * 1_000
    head = f"{performed} schedules, {each_ms:.1f} ms of a processor each, {broken} with a broken invariant"
    sys.stdout.write(f"{head}\n\n")
    for word in sorted(WORDS):
        sys.stdout.write(f"{reached[word] or 'never':>6}  {word}\n")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
