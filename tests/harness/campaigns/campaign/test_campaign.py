"""Campaigns: every run is performed or its failure told, nothing is overwritten, and stages see only files."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.campaigns.campaign import pool as pools
from harness.campaigns.campaign.pool import LATE, STOPPED, Job, PerformRun, Pool
from harness.campaigns.campaign.stages import STAGES, Campaign, Stage
from harness.campaigns.campaign.turn_loop import SIMULATED_LIMIT_S, limit_of
from harness.ground.errors import HarnessError, ResultsError
from harness.ground.progress import Progress
from harness.plan import Plan, RunSpec, parse_plan
from harness.records.campaign_record import CampaignRecord
from harness.records.files import exact_campaign, files_of, new_campaign, run_directories, write_file
from harness.records.run_record import Ended, RunRecord, read_record, write_record
from harness.worlds.real import lifetime_s
from tests.waiting import wait_until

Check = Callable[[Path], object]


def plan_of(*families: str, runs: int = 3, parallel: int = 2) -> Plan:
    """A plan of fake runs. A worker takes half a second of a processor to start: one will do where one is enough."""
    listed = ", ".join(f'"{family}"' for family in families)
    world = f"[worlds.simulated]\nparallel = {parallel}\nruns = {runs}"
    return parse_plan(f'name = "t"\nfamilies = [{listed}]\n{world}', "t.toml")


def perform_campaign(
    plan: Plan, runs: list[RunSpec], directory: Path, perform: PerformRun, check: Check = lambda _: None
) -> Path:
    """A campaign with another performer, and of the other stages only what looks at the directory."""
    return Campaign.new(plan, runs, directory).perform_stages(Progress(), perform_run=perform, stages=[looking(check)])


def looking(check: Check) -> Stage:
    return Stage("check", lambda directory, _: check(directory))


@pytest.mark.parametrize(("runs", "prepared"), [(1, []), (4, ["prepared"])])
def test_a_stage_is_prepared_while_several_runs_go_on(
    tmp_path: Path, perform: PerformRun, runs: int, prepared: list[str]
) -> None:
    plan, seen = plan_of("kill", runs=runs), []
    ready = threading.Event()

    def prepare() -> None:
        seen.append("prepared")
        ready.set()

    stage = Stage("check", lambda _directory, _progress: ready.wait(60.0) if runs > 1 else None, prepare)
    Campaign.new(plan, plan.runs(), new_campaign(tmp_path, "t")).perform_stages(
        Progress(), perform_run=perform, stages=[stage]
    )
    assert seen == prepared


def test_every_run_leaves_its_directory_and_is_counted(tmp_path: Path, perform: PerformRun) -> None:
    plan, seen = plan_of("kill", runs=5), []
    directory = new_campaign(tmp_path, "t")
    report = perform_campaign(plan, plan.runs(), directory, perform, lambda d: seen.extend(run_directories(d)))
    assert report == directory / "report.html"
    assert seen == sorted(directory / run.directory() for run in plan.runs())
    assert [read_record(path).ended.status for path in seen] == ["completed"] * 5
    record = msgspec.json.decode((directory / "campaign.json").read_bytes(), type=CampaignRecord)
    assert (record.status, record.worlds["simulated"].completed) == ("completed", 5)
    assert list(record.stages_ms) == ["simulated", "check"]
    assert [stage.name for stage in STAGES] == ["check", "witnesses", "report"]
    assert (directory / "plan.toml").read_text() == plan.text


def test_worlds_in_virtual_time_go_beside_the_first_in_real_time_and_give_way_to_it(
    tmp_path: Path, perform: PerformRun
) -> None:
    worlds = "[worlds.simulated]\nruns = 2\n[worlds.processes]\nruns = 1\n[worlds.kafka]\nruns = 1"
    plan = parse_plan(f'name = "t"\nfamilies = ["kill"]\n{worlds}', "t.toml")
    directory = new_campaign(tmp_path, "t")
    perform_campaign(plan, plan.runs(), directory, perform)
    record = msgspec.json.decode((directory / "campaign.json").read_bytes(), type=CampaignRecord)
    assert list(record.stages_ms) == ["processes+simulated", "kafka", "check"]
    niceness = {run.world.name: int((directory / run.directory() / "niceness").read_text()) for run in plan.runs()}
    assert niceness["simulated"] > niceness["processes"] == niceness["kafka"] == os.nice(0)


def test_a_run_in_real_time_gets_no_idle_worker_of_virtual_time(tmp_path: Path, perform: PerformRun) -> None:
    worlds = "[worlds.simulated]\nruns = 1\n[worlds.processes]\nruns = 1"
    runs = parse_plan(f'name = "t"\nfamilies = ["kill"]\n{worlds}', "t.toml").runs()
    pool, niceness = Pool(perform), {}
    try:
        for run in sorted(runs, key=lambda run: not run.world.virtual_time):
            pool.perform_job(Job(run, tmp_path / run.world.name), limit_s=240)
            pool.wait()
            niceness[run.world.name] = int((tmp_path / run.world.name / "niceness").read_text())
    finally:
        pool.close()
    assert niceness == {"simulated": os.nice(0) + pools.NICENESS, "processes": os.nice(0)}


def test_one_failed_run_in_twenty_is_told_and_the_campaign_goes_on(tmp_path: Path, perform: PerformRun) -> None:
    plan, failing = plan_of("kill", runs=20, parallel=1), plan_of("pause", runs=1)
    directory = new_campaign(tmp_path, "t")
    perform_campaign(plan, plan.runs() + failing.runs(), directory, perform)
    record = msgspec.json.decode((directory / "campaign.json").read_bytes(), type=CampaignRecord)
    assert (record.worlds["simulated"].completed, record.worlds["simulated"].failed) == (20, 1)
    assert list(record.failures.values()) == ["broker 1 died at its start; read logs/1.log"]


def test_too_many_failed_runs_end_the_campaign_after_its_report(tmp_path: Path, perform: PerformRun) -> None:
    plan, checked = plan_of("kill", "pause", parallel=1), []
    with pytest.raises(HarnessError, match=r"3 of 6 runs in the simulated world failed.*broker 1 died at its start"):
        perform_campaign(plan, plan.runs(), new_campaign(tmp_path, "t"), perform, checked.append)
    assert checked == [tmp_path / "t"]
    assert b'"status": "failed"' in (tmp_path / "t" / "campaign.json").read_bytes()


def test_what_every_run_fails_of_is_said_after_the_first_few(tmp_path: Path, perform: PerformRun) -> None:
    plan, checked = plan_of("pause", runs=20, parallel=1), []
    with pytest.raises(HarnessError, match=r"given up: 3 runs in a row failed \(broker 1 died.*; what was done"):
        perform_campaign(plan, plan.runs(), new_campaign(tmp_path, "t"), perform, checked.append)
    assert checked == []
    assert b'"status": "failed"' in (tmp_path / "t" / "campaign.json").read_bytes()


def test_what_keeps_the_first_run_out_of_somebody_elses_cluster_is_not_tried_again(
    tmp_path: Path, perform: PerformRun
) -> None:
    world = '[worlds.kafka]\nhost = "existing"\nbootstrap = ["kafka-1.example:9092"]\nruns = 20'
    plan = parse_plan(f'name = "t"\nfamilies = ["pause"]\n{world}', "t.toml")
    with pytest.raises(HarnessError, match=r"the kafka world is given up: its first run failed \(broker 1 died"):
        perform_campaign(plan, plan.runs(), new_campaign(tmp_path, "t"), perform)
    assert len(run_directories(tmp_path / "t")) == 1


@pytest.mark.parametrize("family", ["kill", "upgrade+kill"])
@pytest.mark.parametrize("patience_ms", [5_000, 3_600_000])
def test_nodes_outlive_the_limit_of_their_run(tmp_path: Path, patience_ms: int, family: str) -> None:
    plan = parse_plan(f'families = ["{family}"]\n[worlds.kafka]', "t.toml", {"delivery.timeout.ms": patience_ms})
    (spec,) = plan.runs()
    assert lifetime_s(spec) >= limit_of(spec)


def test_a_worker_that_dies_costs_its_own_run_only(tmp_path: Path, perform: PerformRun) -> None:
    plan, dying = plan_of("kill", runs=20), plan_of("partition", runs=2)
    directory = new_campaign(tmp_path, "t")
    perform_campaign(plan, dying.runs() + plan.runs(), directory, perform)
    ends = [read_record(path).ended for path in run_directories(directory)]
    assert [ended.status for ended in ends].count("completed") == 20
    assert [ended.reason for ended in ends if ended.status == "harness-failed"] == [
        "its worker process died (exit 9); dmesg shows if this machine is out of memory"
    ] * 2


def test_a_run_that_goes_on_after_its_limit_is_said_to_be_late(
    tmp_path: Path, perform: PerformRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "GRACE_S", 0.0)
    pool = Pool(perform)
    try:
        pool.perform_job(Job(plan_of("restart").runs()[0], tmp_path / "run"), limit_s=0.0)
        ((_, ended),) = pool.wait()
    finally:
        pool.close()
    assert ended.reason == LATE


def test_a_worker_that_is_told_to_stop_closes_its_world_and_the_run_says_why_it_failed(
    tmp_path: Path, perform: PerformRun
) -> None:
    pool = Pool(perform)
    try:
        pool.perform_job(Job(plan_of("restart").runs()[0], tmp_path / "run"), limit_s=240)
        wait_until((tmp_path / "run" / "hanging").exists, "the run hangs", 240, 0.02)
        (worker,) = multiprocessing.active_children()
        os.kill(worker.pid or 0, signal.SIGTERM)
        ((_, ended),) = pool.wait()
    finally:
        pool.close()
    assert (tmp_path / "run" / "closed").exists()
    assert ended.reason == STOPPED


def test_a_simulated_run_of_many_writes_has_time_for_them() -> None:
    text = 'families = ["kill"]\n[workload]\nwrites_per_second = 1_000.0\nduration_ms = DURATION\n[worlds.simulated]\n'
    short, long = (parse_plan(text.replace("DURATION", ms), "t.toml").runs()[0] for ms in ("10_000", "1_000_000"))
    assert limit_of(short) == SIMULATED_LIMIT_S
    assert limit_of(long) > 1_000


def test_a_full_disk_ends_the_campaign_at_once(tmp_path: Path, perform: PerformRun) -> None:
    plan = plan_of("kill+pause", runs=4, parallel=1)
    with pytest.raises(ResultsError, match="No space left on device; make room"):
        perform_campaign(plan, plan.runs(), new_campaign(tmp_path, "t"), perform)


@pytest.mark.parametrize(("family", "left"), [("restart", False), ("rolling", True)])
def test_ctrl_c_closes_worlds_and_keeps_what_was_done(
    tmp_path: Path, perform: PerformRun, family: str, *, left: bool
) -> None:
    plan = plan_of(family, runs=3)
    directory = new_campaign(tmp_path, "t")

    def interrupt_when_hanging() -> None:
        deadline = time.monotonic() + 240
        while not list(directory.rglob("hanging")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_when_hanging).start()
    with pytest.raises(KeyboardInterrupt, match=f"ackproof check {directory}") as caught:
        perform_campaign(plan, plan.runs(), directory, perform)
    assert str(caught.value).endswith(f"was not undone: ackproof heal {directory}") is left
    hanging = list(directory.rglob("hanging"))
    assert hanging
    assert all((path.parent / "closed").exists() for path in hanging)
    assert b'"status": "interrupted"' in (directory / "campaign.json").read_bytes()


def test_ctrl_c_that_meets_a_worker_while_it_starts_ends_nobody(
    tmp_path: Path, perform: PerformRun, capfd: pytest.CaptureFixture[str]
) -> None:
    run = plan_of("kill").runs()[0]
    pool = Pool(perform)
    try:
        pool.perform_job(Job(run, tmp_path / "run"), limit_s=240)
        (worker,) = multiprocessing.active_children()
        for _ in range(100):  # it imports, for most of this time; nothing is waited for
            os.kill(worker.pid or 0, signal.SIGINT)
            time.sleep(0.001)
        ((_, ended),) = pool.wait()
    finally:
        pool.close()
    assert ended.status == "completed"
    assert capfd.readouterr().err == ""


def test_an_existing_campaign_is_never_overwritten(tmp_path: Path) -> None:
    assert [new_campaign(tmp_path, "t").name for _ in range(3)] == ["t", "t-2", "t-3"]
    (tmp_path / "t" / "file").touch()
    with pytest.raises(ResultsError, match="is not empty, and results are never overwritten"):
        exact_campaign(tmp_path / "t")
    assert exact_campaign(tmp_path / "new" / "one").is_dir()


def test_a_directory_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match=r"File exists .*; name another directory"):
        new_campaign(tmp_path / "file", "t")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room on this disk"),
        (errno.EROFS, "make this disk writable, or work in another directory"),
        (errno.EACCES, "change its permissions, or work in a directory that you own"),
    ],
)
def test_an_error_of_the_disk_says_what_helps_whatever_the_command(number: int, advice: str) -> None:
    with pytest.raises(ResultsError) as raised, files_of(Path("there")):
        raise OSError(number, os.strerror(number), "there/file")
    assert str(raised.value).endswith(f"; {advice}")


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "a", b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ResultsError, match="No space left on device; make room"):
        write_file(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_files_are_for_everybody_whom_the_umask_admits(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_file(tmp_path / "report.html", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o644


def test_run_json_is_the_run_and_its_end(tmp_path: Path) -> None:
    spec = plan_of("kill").runs()[0]
    write_record(tmp_path, spec, Ended(status="completed", wall_ms=3))
    content = (tmp_path / "run.json").read_bytes()
    assert msgspec.json.decode(content, type=RunSpec) == spec
    assert read_record(tmp_path) == RunRecord.of(spec, Ended(status="completed", wall_ms=3))
    assert read_record(tmp_path).spec() == spec


def test_a_directory_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"holds no run\.json; name a run directory"):
        read_record(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ResultsError, match=r"run\.json cannot be read"):
        read_record(tmp_path)


def _with_its_environment(run: RunSpec, directory: Path) -> Ended:
    ended = Ended(status="completed", reason=os.environ.get("ACKPROOF_TEST_MARK", ""))
    directory.mkdir(parents=True)
    write_record(directory, run, ended)
    return ended


@pytest.mark.parametrize("mark", ["first", "second"])
def test_a_worker_has_the_environment_of_now_and_not_of_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.setenv("ACKPROOF_TEST_MARK", mark)
    plan, seen = plan_of("kill", runs=1), []
    directory = new_campaign(tmp_path, "t")
    perform_campaign(plan, plan.runs(), directory, _with_its_environment, lambda d: seen.extend(run_directories(d)))
    assert [read_record(path).ended.reason for path in seen] == [mark]
