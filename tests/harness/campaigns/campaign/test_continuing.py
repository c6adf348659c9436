"""A campaign goes on where it ended: what completed stays, the rest is done again, another plan is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.campaigns.campaign.pool import PerformRun
from harness.campaigns.campaign.stages import Campaign
from harness.cli.app import exit_code_of
from harness.ground.errors import HarnessError, NamedWronglyError, PlanError, ResultsError
from harness.ground.progress import Progress
from harness.plan import Plan, read_plan
from harness.records.campaign_record import CampaignRecord, read_campaign_record
from harness.records.files import only_user_of, run_directories
from harness.records.journal import FILE_NAME, Journal
from harness.records.run_record import Ended, read_record, write_record
from tests.harness.campaigns.campaign.conftest import Fakes, fakes_in
from tests.waiting import wait_until

PLAN = """
name = "t"
families = [{families}]
[worlds.simulated]
parallel = 2
runs = 3
"""
KILLED = """
import sys
from pathlib import Path
from fake_performers import perform
from harness.ground.progress import Progress
from harness.campaigns.campaign.stages import Campaign
from harness.plan import read_plan

if __name__ == "__main__":
    plan = read_plan(Path(sys.argv[1]))
    directory = Path(sys.argv[2])
    directory.mkdir()
    Campaign.new(plan, plan.runs(), directory).perform_stages(Progress(), perform_run=perform, stages=[])
"""


def plan_at(tmp_path: Path, *families: str) -> Plan:
    file = tmp_path / "t.toml"
    file.write_text(PLAN.format(families=", ".join(f'"{family}"' for family in families)))
    return read_plan(file)


def recorded(directory: Path) -> CampaignRecord:
    record = read_campaign_record(directory)
    assert record is not None
    return record


def begun(plan: Plan, directory: Path, perform: PerformRun) -> None:
    directory.mkdir()
    Campaign.new(plan, plan.runs(), directory).perform_stages(Progress(), perform_run=perform, stages=[])


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of three runs that completed; no test changes it."""
    made = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as monkeypatch:
        begun(plan_at(made, "kill"), made / "campaign", fakes_in(made / "modules", monkeypatch).well)
    return made / "campaign"


@pytest.fixture
def finished(tmp_path: Path, finished_once: Path) -> Path:
    """A copy of the test's own."""
    return shutil.copytree(finished_once, tmp_path / "campaign")


def test_a_campaign_that_was_killed_half_way_is_finished(tmp_path: Path, fakes: Fakes) -> None:
    plan, directory = plan_at(tmp_path, "kill", "restart"), tmp_path / "campaign"
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    path = os.pathsep.join([str(fakes.directory), *sys.path])
    command = [sys.executable, str(script), str(tmp_path / "t.toml"), str(directory)]
    harness = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path})
    try:
        wait_until(lambda: len(list(directory.rglob("hanging"))) >= 2, "two runs hang", pause_s=0.05)
    finally:
        harness.kill()
        harness.wait()
    wait_until(lambda: len(list(directory.rglob("closed"))) >= 2, "its workers have ended by themselves", pause_s=0.05)

    kept = {run: (run / "run.json").stat().st_ino for run in run_directories(directory) if _completed(run)}
    assert 0 < len(kept) < 6
    assert recorded(directory).status == "running"
    campaign = Campaign.continued(plan, directory)
    assert len(campaign.missing) == 6 - len(kept)
    campaign.perform_stages(Progress(), perform_run=fakes.well, stages=[])
    assert run_directories(directory) == sorted(directory / run.directory() for run in plan.runs())
    assert all(_completed(run) for run in run_directories(directory))
    assert {run: (run / "run.json").stat().st_ino for run in kept} == kept
    record = recorded(directory)
    assert (record.status, record.worlds["simulated"].completed, len(record.continued)) == ("completed", 6, 1)


def _completed(run: Path) -> bool:
    return read_record(run).ended.status == "completed"


def test_failed_runs_are_done_again_and_forgotten(tmp_path: Path, fakes: Fakes) -> None:
    plan, directory = plan_at(tmp_path, "kill", "pause"), tmp_path / "campaign"
    with pytest.raises(HarnessError, match="3 of 6 runs"):
        begun(plan, directory, fakes.perform)
    assert len(recorded(directory).failures) == 3
    Campaign.continued(plan, directory).perform_stages(Progress(), perform_run=fakes.well, stages=[])
    record = recorded(directory)
    assert (record.worlds["simulated"].completed, record.worlds["simulated"].failed, record.failures) == (6, 0, {})


def test_a_run_whose_record_was_torn_is_done_again(tmp_path: Path, fakes: Fakes, finished: Path) -> None:
    plan, directory = plan_at(tmp_path, "kill"), finished
    run = run_directories(directory)[0]
    (run / "run.json").write_bytes((run / "run.json").read_bytes()[:50])
    Campaign.continued(plan, directory).perform_stages(Progress(), perform_run=fakes.well, stages=[])
    assert _completed(run)


def test_what_an_interrupted_run_left_is_undone_before_it_is_done_again(
    tmp_path: Path, fakes: Fakes, finished: Path
) -> None:
    plan, directory = plan_at(tmp_path, "kill"), finished
    run = run_directories(directory)[0]
    left = tmp_path / "ackproof-left"
    left.mkdir()
    journal = Journal(run / FILE_NAME)
    journal.intend("directory", {"path": str(left)})
    journal.close()
    write_record(run, read_record(run).spec(), Ended(status="running"))
    Campaign.continued(plan, directory).perform_stages(Progress(), perform_run=fakes.well, stages=[])
    assert not left.exists()
    assert _completed(run)
    assert not (run / FILE_NAME).exists()


def test_nothing_is_left_to_do_in_a_campaign_that_completed_but_its_stages(
    tmp_path: Path, fakes: Fakes, finished: Path
) -> None:
    plan, directory = plan_at(tmp_path, "kill"), finished
    again = Campaign.continued(plan, directory)
    assert again.missing == []
    assert again.perform_stages(Progress(), perform_run=fakes.perform, stages=[]) == directory / "report.html"


def test_another_plan_or_seed_is_refused(tmp_path: Path, finished: Path) -> None:
    directory = finished
    other = plan_at(tmp_path, "kill", "pause")
    with pytest.raises(PlanError, match=r"begun with another plan, or another seed \(see .*plan\.toml\)"):
        Campaign.continued(other, directory)
    same = tmp_path / "t.toml"
    plan_at(tmp_path, "kill")
    refused = ["campaign", str(same), "--out", str(directory), "--continue", "--seed", "2"]
    assert exit_code_of(refused) == 64
    assert exit_code_of(["campaign", str(same), "--continue"]) == 64


def test_runs_of_something_else_are_refused(tmp_path: Path, finished: Path) -> None:
    plan, directory = plan_at(tmp_path, "kill"), finished
    with pytest.raises(NamedWronglyError, match="holds no campaign to be continued; leave --continue out"):
        Campaign.continued(plan, tmp_path)
    spec = plan.runs()[0]
    stranger = directory / "runs" / "simulated" / "other" / "1"
    stranger.mkdir(parents=True)
    write_record(stranger, spec, Ended(status="completed"))
    with pytest.raises(
        NamedWronglyError, match=r"is not a run of this plan; continue with .*, or begin a new campaign"
    ):
        Campaign.continued(plan, directory)


def test_two_cannot_work_on_one_campaign(tmp_path: Path, fakes: Fakes, finished: Path) -> None:
    plan, directory = plan_at(tmp_path, "kill"), finished
    with (
        only_user_of(directory),
        pytest.raises(ResultsError, match=r"another ackproof process works in .*; wait until it ends"),
    ):
        Campaign.continued(plan, directory).perform_stages(Progress(), perform_run=fakes.well, stages=[])
    assert recorded(directory).status == "completed"
