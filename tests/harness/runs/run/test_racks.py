"""Racks in virtual time, with the outcome that the two plans state beforehand (rule 26)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.ground.choices import Choices
from harness.plan import RunSpec, read_plan
from harness.runs.run import perform_schedule
from harness.worlds.simulated.world import SimulatedWorld
from tests.conftest import EventList
from tests.harness.runs.run.test_run_in_virtual_time import lost_writes

PLANS = Path(__file__).parents[4] / "plans"
RUNS = 2


def specs(plan: str, story: str = "", **settings: Any) -> list[RunSpec]:
    runs = read_plan(PLANS / f"{plan}.toml", settings).runs()[:RUNS]
    scenarios = (story,) if story else ()
    return [
        msgspec.structs.replace(spec, faults=msgspec.structs.replace(spec.faults, scenarios=scenarios)) for spec in runs
    ]


def played(spec: RunSpec) -> tuple[Any, SimulatedWorld, int]:
    """The report, the world and how many acknowledged writes are lost."""
    choices, recorder = Choices(spec.seed), EventList()
    world = SimulatedWorld(spec, choices)
    report = perform_schedule(spec, world, recorder, choices.draw)
    assert report.drained
    assert report.sends.acknowledged > 500
    assert all(receipt.took_effect for receipt in report.faults)
    return report, world, len(lost_writes(recorder.events))


@pytest.mark.parametrize("story", ["rack/power", "rack/kill", "rack/cut"])
def test_a_rack_that_fails_takes_one_copy_where_replicas_alternate(story: str) -> None:
    for spec in specs("racks", story):
        report, world, lost = played(spec)
        assert {len(receipt.targets) or 1 for receipt in report.faults} <= {1, 3}, "rack a has three brokers"
        placed = [state.replicas for state in world.target.view().partitions.values()]
        assert all({spec.racks[node] for node in replicas} == {"a", "b", "c"} for replicas in placed)
        assert lost == 0


def test_a_rack_with_all_replicas_loses_what_nobody_flushed() -> None:
    """S11: the placement is looked at when a topic is made, and by nobody afterwards."""
    assert any(played(spec)[2] for spec in specs("racks-violated", "rack/power"))
    assert not any(played(spec)[2] for spec in specs("racks-violated", "rack/kill")), "SIGKILL takes nothing"
    assert not any(played(spec)[2] for spec in specs("racks-violated", "rack/power", **{"flush.messages": 1}))
