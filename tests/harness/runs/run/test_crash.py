"""A broker of the reference that crashes in a real run: noticed, written down everywhere, and not called held."""

import os
import signal
from pathlib import Path

import pytest

from checkers import check_one as check
from harness.campaigns.campaign.judged_histories import judge_all, write_verdicts
from harness.ground.observations import NodeCrashed
from harness.ground.progress import Progress
from harness.plan import Processes, RunSpec
from harness.records.cluster_file import read_observations
from harness.records.files import HISTORY
from harness.records.journal import FILE_NAME, not_undone
from harness.records.run_record import read_record
from harness.runs.run.performing import perform_run
from harness.worlds.real import RealWorld
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan


class CrashingWorld(RealWorld):
    """Broker 1 ends by a signal that the harness did not send, a second after the run's begin."""

    def open(self) -> None:
        super().open()
        (pid,) = [
            action.facts["pid"]
            for action in not_undone(self._directory / FILE_NAME)
            if action.kind == "process" and action.facts["node"] == 1
        ]
        self.clock.call_at(self.clock.now_us() + 1_000_000, lambda: os.kill(pid, signal.SIGABRT))


@pytest.mark.system
def test_a_run_whose_broker_crashed_is_a_failure_of_the_harness(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("harness.worlds.processes.RealWorld", CrashingWorld)
    spec = RunSpec(
        world=Processes(),
        cell="cell/kill",
        family="kill",
        settings={"acks": "all", "min.insync.replicas": 1},
        workload=WorkloadPlan(writes_per_second=60.0, duration_ms=5_000, drain_limit_ms=20_000),
        faults=FaultPlan(count=0),
        seed=1,
    )
    run = tmp_path / "run"
    ended = perform_run(spec, run)
    assert ended.status == "harness-failed"
    assert "node 1 of the reference broker crashed (signal 6)" in str(ended.reason)
    assert ended.report is not None
    (death,) = ended.report["deaths"]
    assert (death["node"], death["exit"]) == (1, "signal 6")
    assert death["returned_us"] > death["time_us"]
    assert [seen.node for seen in read_observations(run) if isinstance(seen.fact, NodeCrashed)] == [1]
    assert [receipt.fault for receipt in check(run / HISTORY).faults] == ["died", "died"]
    assert read_record(run).ended.status == "harness-failed"
    assert not_undone(run / FILE_NAME) == []
    by_hand = "harness.campaigns.campaign.judged_histories.check"
    monkeypatch.setattr(by_hand, lambda histories, **_: [check(history.path / HISTORY) for history in histories])
    judged = judge_all([run], Progress())
    assert [judged_run.outcome for judged_run in judged] == ["unknown"]
    assert "crashed" in write_verdicts(tmp_path, judged).file.read_text()
