"""A campaign on a Spark cluster leaves what one on this machine leaves, and tells what became of each run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from checkers import check_one
from harness.campaigns.campaign import spread_runs
from harness.campaigns.campaign.pool import PerformRun
from harness.campaigns.campaign.stages import Campaign, Stage
from harness.cli.app import exit_code_of
from harness.ground.errors import HarnessError, ResultsError
from harness.ground.progress import Progress
from harness.plan import Plan, RunSpec, parse_plan
from harness.records.files import run_directories
from harness.records.run_record import read_record

PLAN = """
name = "t"
families = ["kill"]
[matrix]
acks = [1, "all"]
[worlds.simulated]
runs = 3
workload = { writes_per_second = 20.0, duration_ms = 6_000 }
faults = { count = 2 }
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has blocks of runs performed in this process, one after the other; the answer has their sizes."""
    performed: list[int] = []

    def spread(
        master: str,
        perform: Callable[[Sequence[Any]], list[Any]],
        blocks: Iterable[Sequence[Any]],
        lost: Callable[[Sequence[Any], str], list[Any]],
    ) -> Iterator[list[Any]]:
        assert master == "spark://host:7077"
        for block in blocks:
            performed.append(len(block))
            yield lost(block, "a Spark job failed: killed") if block[0].family == "partition" else perform(block)

    monkeypatch.setattr(spread_runs, "spread", spread)
    return performed


def perform_campaign(
    plan: Plan, directory: Path, perform: PerformRun, stages: Sequence[Stage] = (), more: Sequence[RunSpec] = ()
) -> None:
    directory.mkdir()
    Campaign.new(plan, [*plan.runs(), *more], directory).perform_stages(
        Progress(), perform_run=perform, stages=stages, master="spark://host:7077"
    )


def plan_of(family: str, runs: int) -> Plan:
    return parse_plan(f'name = "t"\nfamilies = ["{family}"]\n[worlds.simulated]\nruns = {runs}\n', "t.toml")


def record_of(directory: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((directory / "campaign.json").read_bytes())
    return record


def test_what_executors_send_is_written_and_counted(tmp_path: Path, here: list[int], perform: PerformRun) -> None:
    prepared: list[int] = []
    stage = Stage("check", lambda directory, _: len(run_directories(directory)), lambda: prepared.append(1))
    perform_campaign(plan_of("kill", 10), tmp_path / "t", perform, [stage])
    runs = run_directories(tmp_path / "t")
    assert [read_record(run).ended.status for run in runs] == ["completed"] * 10
    assert all((run / "niceness").read_text() for run in runs), "what a run left beside its record"
    assert here == [4, 4, 2]
    record = record_of(tmp_path / "t")
    assert (record["status"], record["worlds"]["simulated"]["completed"]) == ("completed", 10)
    assert prepared == [], "its Spark would take the place of the cluster's"


def test_a_run_that_no_worker_survives_is_told_as_one_here_is(
    tmp_path: Path, here: list[int], perform: PerformRun
) -> None:
    """Two of 22: not too many, and not three in a row."""
    perform_campaign(plan_of("kill", 20), tmp_path / "t", perform, more=plan_of("partition", 2).runs())
    record = record_of(tmp_path / "t")
    assert record["worlds"]["simulated"]["failed"] == 2
    assert set(record["failures"].values()) == {"a Spark job failed: killed"}
    assert sum(here) == len(run_directories(tmp_path / "t")) == 22


def test_what_every_run_fails_of_is_said_after_the_first_few(
    tmp_path: Path, here: list[int], perform: PerformRun
) -> None:
    with pytest.raises(HarnessError, match=r"given up: 3 runs in a row failed \(broker 1 died"):
        perform_campaign(plan_of("pause", 20), tmp_path / "t", perform)
    assert len(run_directories(tmp_path / "t")) == 3
    assert here == [4]


def test_an_executor_without_room_ends_the_campaign(tmp_path: Path, here: list[int], perform: PerformRun) -> None:
    with pytest.raises(ResultsError, match="make room"):
        perform_campaign(plan_of("kill+pause", 2), tmp_path / "t", perform)
    assert record_of(tmp_path / "t")["status"] == "failed"


def test_what_was_done_before_is_not_done_again(tmp_path: Path, here: list[int], perform: PerformRun) -> None:
    plan, directory = plan_of("kill", 6), tmp_path / "t"
    perform_campaign(plan, directory, perform)
    kept, missing = run_directories(directory)[:4], run_directories(directory)[4:]
    for run in missing:
        (run / "run.json").unlink()
    before = {run: (run / "run.json").stat().st_mtime_ns for run in kept}
    here.clear()
    Campaign.continued(plan, directory).perform_stages(
        Progress(), perform_run=perform, stages=[], master="spark://host:7077"
    )
    assert here == [2]
    assert {run: (run / "run.json").stat().st_mtime_ns for run in kept} == before
    assert len(run_directories(directory)) == 6


@pytest.mark.parametrize("world", ["processes", "kafka"])
def test_a_world_in_real_time_is_not_for_executors(
    world: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(f'families = ["kill"]\n[worlds.simulated]\n[worlds.{world}]\n')
    assert exit_code_of(["campaign", "p.toml", "--master", "spark://host:7077"]) == 64
    said = capsys.readouterr().err
    assert re.search(rf"virtual time only; leave --master out, or take \[worlds.{world}\] out of the plan", said)
    assert not Path("results").exists()


def test_what_is_no_master_is_said_before_a_directory_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text('families = ["kill"]\n[worlds.simulated]\n')
    assert exit_code_of(["campaign", "p.toml", "--master", "hosts:7077"]) == 64
    assert '"hosts:7077" is not a Spark master' in capsys.readouterr().err
    assert not Path("results").exists()


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_runs_leave_the_same_whoever_performs_them(tmp_path: Path) -> None:
    plan, left = parse_plan(PLAN, "t.toml"), []
    for number, master in enumerate((None, "local[1]")):
        directory = tmp_path / str(number)
        directory.mkdir()
        Campaign.new(plan, plan.runs(), directory).perform_stages(Progress(), stages=[], master=master)
        verdicts = [check_one(run, name=run.name) for run in run_directories(directory)]
        left.append((dict(_left_in(directory)), verdicts))
    files, verdicts = left[0]
    assert len(files) >= 3 * len(plan.runs())
    assert {verdict.valid for verdict in verdicts} == {True, False}, "acks=1 loses"
    assert left[1] == left[0]


def _left_in(directory: Path) -> Iterator[tuple[str, object]]:
    """The files of all runs by their names, without the time that a machine took."""
    for run in run_directories(directory):
        for file in run.rglob("*"):
            name = str(file.relative_to(directory))
            if file.name == "run.json":
                record = json.loads(file.read_bytes())
                record["ended"]["wall_ms"] = 0
                yield name, record
            elif file.is_file():
                yield name, file.read_bytes()
