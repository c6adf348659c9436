"""A real cluster that does not come back after healing although all its nodes run: ``stalled``, exit code 1."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from checkers import Outcome, VerdictLine, build_matrix, check_one
from harness.ground.machine.watch import Watch
from harness.plan import Processes, RunSpec
from harness.records.files import HISTORY
from harness.records.verdict_lines import facts_of
from harness.runs.run.performing import perform_run
from harness.worlds.hosts import Launch
from harness.worlds.processes import ReferenceDistribution
from harness.worlds.real.nodes import Nodes
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

HANGS = (sys.executable, "-c", "import time; time.sleep(300)")


def hang_when_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a node that is started a second time run, and never serve anybody."""
    launch, started = ReferenceDistribution.launch, set[int]()

    def launching(distribution: ReferenceDistribution, nodes: Nodes, node: int) -> Launch:
        usual = launch(distribution, nodes, node)
        again = node in started
        started.add(node)
        return msgspec.structs.replace(usual, command=HANGS) if again else usual

    monkeypatch.setattr(ReferenceDistribution, "launch", launching)


@pytest.mark.system
def test_a_cluster_whose_broker_hangs_after_its_restart_has_stalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang_when_started_again(monkeypatch)
    monkeypatch.setattr(Watch, "serves", True)  # on a machine without time for it, it is not known
    spec = RunSpec(
        world=Processes(),
        cell="cell/kill",
        family="kill",
        # Every write with acks=all waits for every broker.
        settings=Settings(min_insync_replicas=3).to_mapping(),
        workload=WorkloadPlan(duration_ms=6_000, drain_limit_ms=15_000),
        faults=FaultPlan(families=("kill",), scenarios=("kill/follower",), count=1),
        seed=5,
    )
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    verdict = check_one(tmp_path / "run" / HISTORY, name="runs/1")
    assert verdict.recovery.absent == {}, "the broker runs"
    assert set(verdict.recovery.unwritten) == {"ackproof-0", "ackproof-1", "ackproof-2"}
    line = VerdictLine.of(verdict, facts_of(spec))
    assert line.outcome is Outcome.STALLED
    matrix = build_matrix([line])
    assert [cell.outcome for cell in matrix.cells] == [Outcome.STALLED]
    assert matrix.verdict.exit_code == 1
    assert matrix.verdict.sentence.startswith("The log did not come back in 1 of 1 ")
