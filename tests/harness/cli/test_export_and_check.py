"""An exported history is judged as its run was: verdict, every finding, and the promise that its settings make."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from checkers.anomalies.lost_write import LostWrite
from checkers.histories import HISTORY
from checkers.local import check_one
from checkers.verdicts.verdict import Verdict
from harness.campaigns import campaign
from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.plan import parse_plan
from harness.records.files import RUN_FILE
from harness.runs.run.performing import perform_run
from tests.checkers.conformance import BY_NAME
from tests.checkers.conformance import write_history as write_case
from tests.checkers.test_recorded_histories import ARCHIVE
from workloads.generators import WORKLOADS
from workloads.history import import_history

RESULTS = Path(__file__).parents[3] / "results"


class Case(NamedTuple):
    """A run in virtual time of a workload."""

    workload: str
    settings: str
    families: str = '"kill", "power"'


#: Settings that a workload cannot do without.
NEEDED = {
    "groups": 'group.protocol = "consumer"\n',
    "consume-transform-produce": 'group.protocol = "consumer"\n',
    "keyed": 'cleanup.policy = "compact"\n',
    "keyed-transactions": 'cleanup.policy = "compact"\n',
}
#: Members are given up within the run, so that a broker that takes the offsets of any lets two of them commit a record.
HASTY = 'isolation.level = "read_committed"\nsession.timeout.ms = 1_000\ndelivery.timeout.ms = 3_000\n'
WEAK = "unclean.leader.election.enable = true\nmin.insync.replicas = 1"
#: A user's program runs in real time; tests/checkers/anomalies/test_against_the_judge.py exports such histories.
IN_VIRTUAL_TIME = [name for name, kind in WORKLOADS.items() if not kind.applied]
#: Runs that keep every promise, runs that may lose, and runs of brokers with a defect, of every workload.
CASES = [
    *(Case(name, 'acks = "all"', '"kill", "pause"') for name in IN_VIRTUAL_TIME),
    *(Case(name, WEAK, '"kill", "wipe"') for name in IN_VIRTUAL_TIME),
    Case("steady", 'acks = "all"\nplanted.bug = "acknowledge-after-append"', '"kill", "wipe"'),
    Case("bursts", 'acks = "all"\nplanted.bug = "acknowledge-after-append"', '"kill", "wipe"'),
    Case("groups", 'planted.bug = "commit-of-any-member"'),
    Case("groups", 'planted.bug = "load-first-commits"'),
    Case("groups", 'planted.bug = "load-first-commits"\noffsets.retention.minutes = 1'),
    Case("keyed", 'planted.bug = "keep-first-value"'),
    Case("transactions", 'planted.bug = "forget-abort-on-follower"'),
    Case("transactions", 'planted.bug = "pass-hanging-transaction"'),
    Case("keyed-transactions", 'planted.bug = "pass-hanging-transaction"'),
    Case("consume-transform-produce", HASTY + 'planted.bug = "offsets-of-any-member"'),
    Case("consume-transform-produce", 'planted.bug = "answer-unstable-offsets"'),
]
PLAN = """seed = {seed}
families = [{families}]
[settings]
{settings}
[workload]
name = "{workload}"
duration_ms = 5_000
writes_per_second = 30.0
[faults]
count = 2
[worlds.simulated]
"""


def performed(directory: Path, case: Case, seed: int = 3) -> Path:
    settings = NEEDED.get(case.workload, "") + case.settings
    plan = PLAN.format(seed=seed, families=case.families, settings=settings, workload=case.workload)
    assert perform_run(parse_plan(plan, "p").runs()[0], directory / "run").status == "completed"
    return directory / "run"


def exported(run: Path) -> Path:
    file = run.parent / f"{run.name}.jsonl"
    assert exit_code_of(["export", str(run), "--out", str(file)]) == 0
    return file


def judged(path: Path) -> tuple[str, dict[str, Any]]:
    """The outcome and the whole line of the verdict, but the name of the history."""
    (history,) = campaign.judge_all([path], Progress())
    line = replace(history.line, history="")
    return history.outcome, msgspec.to_builtins(line, str_keys=True)


def test_every_workload_has_a_run_with_findings_and_one_without() -> None:
    assert {case.workload for case in CASES} == set(IN_VIRTUAL_TIME)
    assert {case.workload for case in CASES if "planted" in case.settings} == set(IN_VIRTUAL_TIME)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.workload}-{case.settings.split(chr(10))[-1]}")
def test_an_export_is_judged_as_its_run_was(tmp_path: Path, case: Case) -> None:
    run = performed(tmp_path, case)
    expected, again = judged(run), judged(exported(run))
    assert again == expected
    assert expected[1]["replicas_compared"] is not None
    assert expected[1]["judgement"] is not None


def test_the_runs_above_show_findings(tmp_path: Path) -> None:
    counts = judged(exported(performed(tmp_path, CASES[-2])))[1]["counts"]
    assert {"two-owners", "doubled-effect"} <= counts.keys()


def test_an_export_that_was_stored_is_exported_as_it_came(tmp_path: Path) -> None:
    file = exported(performed(tmp_path, CASES[0]))
    assert exit_code_of(["import", str(file), "--out", str(tmp_path / "copy")]) == 0
    assert exported(tmp_path / "copy").read_bytes() == file.read_bytes()
    assert judged(tmp_path / "copy") == judged(file)


def test_a_history_that_was_cut_off_is_exported_as_one(tmp_path: Path) -> None:
    case = BY_NAME["lost-write/consistent"]
    write_case(case, tmp_path / "h.jsonl")
    file = (tmp_path / "h.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text('{"options": {"complete": false}}\n' + file.split("\n", 1)[1])
    assert check_one(tmp_path / "h.jsonl").counts["unseen"] == 3
    import_history(tmp_path / "cut.jsonl", tmp_path / "stored" / HISTORY)
    for path in (tmp_path / "cut.jsonl", exported(tmp_path / "stored")):
        assert "unseen" not in check_one(path).counts


@pytest.mark.parametrize("name", BY_NAME)
def test_a_history_of_another_tool_survives_import_and_export(tmp_path: Path, name: str) -> None:
    if "history" not in BY_NAME[name] or not BY_NAME[name]["history"]:
        return
    file = write_case(BY_NAME[name], tmp_path / "h.jsonl")
    import_history(file, tmp_path / "stored" / HISTORY)
    before, after = check_one(file), check_one(exported(tmp_path / "stored"))
    assert replace(after, history="") == replace(before, history="")


def same(run: Path) -> Verdict:
    """The verdict on a stored run, which its export has, too."""
    expected, again = check_one(run), check_one(exported(run))
    assert (again.run is not None) == (run / RUN_FILE).exists()
    assert replace(again, history="", run=None) == replace(expected, history=""), run
    return expected


def test_recorded_runs_are_judged_from_their_exports_as_they_were(tmp_path: Path) -> None:
    """Every fifth: all were made by one exporter; the cases above have a run of every workload."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path)  # noqa: S202 - our own; filters came with 3.11.4
    verdicts = [same(path.parent) for path in sorted(tmp_path.glob(f"*/{RUN_FILE}"))[::5]]
    assert len(verdicts) == 40
    assert len([verdict for verdict in verdicts if verdict.counts.get("lost-write")]) > 10
    assert len([verdict for verdict in verdicts for lost in verdict.findings(LostWrite) if lost.fate]) > 10


def test_the_kept_runs_on_kafka_are_judged_from_their_exports_as_they_were(tmp_path: Path) -> None:
    kept = sorted(path.parents[1] for path in RESULTS.rglob(f"{HISTORY}/*.parquet"))
    assert len(kept) >= 2
    for number, run in enumerate(kept):
        copy = tmp_path / f"run-{number}"
        shutil.copytree(run, copy)
        same(copy)
