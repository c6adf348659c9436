"""A soak that is killed in its first seconds is begun again or resumed, whatever it has written by then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from checkers import Outcome
from harness.campaigns.campaign import Job
from harness.campaigns.soak import Ending, SoakRequest, perform_soak
from harness.campaigns.soak.soak_file import write_request
from harness.campaigns.soak.state import SoakState
from harness.cli import soak as command
from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.plan import parse_plan
from harness.records.run_record import Ended, read_record
from tests.harness.campaigns.soak.conftest import Clock, InstantRuns, KnowingChecks, asked, facts_of, line_of

PLAN = 'families = ["kill"]\n[worlds.simulated]\nparallel = 1\n'


def ending_in(directory: Path, end: Callable[[Job], Ended] | None = None, **limits: object) -> Ending:
    """The end of a session in ``directory`` whose runs each leave 400,000 bytes and no finding."""
    clock = Clock()
    runs = InstantRuns(clock, lambda what: None, left_bytes=400_000)
    runs.end = end or runs.end
    checks = KnowingChecks()
    checks._judge = lambda run: line_of(
        *facts_of(run), Outcome.HELD if read_record(run).ended.status == "completed" else Outcome.UNKNOWN
    )
    wanted = asked(**{"for_s": 6.0, **limits})
    return perform_soak(
        directory, parse_plan(PLAN, "t.toml"), wanted, Progress(), runs=runs, checks=checks, clock=clock
    )


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories in which the command begins a soak."""
    directories: list[Path] = []

    def begin(directory: Path, *_: object, **__: object) -> Ending:
        directories.append(directory)
        return Ending((), 0, None)

    monkeypatch.setattr(command, "perform_soak", begin)
    return directories


@pytest.mark.parametrize(
    "left",
    [{}, {".s.toml.99": ""}, {".plan.toml.99": "fam"}, {"plan.toml": PLAN}, {"plan.toml": PLAN, ".soak.json.99": "{"}],
    ids=lambda left: "+".join(left) or "nothing",
)
def test_what_was_left_before_the_request_is_no_obstacle(
    left: dict[str, str], begun: list[Path], tmp_path: Path
) -> None:
    (file := tmp_path / "s.toml").write_text(PLAN)
    (directory := tmp_path / "soak").mkdir()
    for name, text in left.items():
        (directory / name).write_text(text)
    assert exit_code_of(["soak", str(file), "--for", "1m", "--out", str(directory)]) == 0
    assert begun == [directory]


@pytest.mark.parametrize(
    "left", [{"plan.toml": PLAN + "# mine"}, {"plan.toml": PLAN, "notes": ""}, {"soak.json": "{}"}]
)
def test_a_directory_with_anything_else_is_not_taken(left: dict[str, str], begun: list[Path], tmp_path: Path) -> None:
    (file := tmp_path / "s.toml").write_text(PLAN)
    (directory := tmp_path / "soak").mkdir()
    for name, text in left.items():
        (directory / name).write_text(text)
    assert exit_code_of(["soak", str(file), "--for", "1m", "--out", str(directory)]) == 64
    assert begun == []


@pytest.mark.parametrize("ledger", [None, b"", b'{"type":"beg'])
def test_what_was_left_after_the_request_is_resumed(ledger: bytes | None, tmp_path: Path) -> None:
    write_request(tmp_path, asked())
    if ledger is not None:
        (tmp_path / "ledger.jsonl").write_bytes(ledger)
    assert ending_in(tmp_path).exit_code != 70


def test_a_soak_is_written_down_before_anything_that_takes_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for slow in ("wait_for_workers", "begin_session"):
        monkeypatch.setattr(f"harness.campaigns.soak.session.{slow}", killed)
    wanted = asked()
    with pytest.raises(KeyboardInterrupt):
        perform_soak(tmp_path, parse_plan(PLAN, "t.toml"), wanted, Progress())
    assert msgspec.json.decode((tmp_path / "soak.json").read_bytes(), type=SoakRequest) == wanted


def test_a_disk_that_has_room_again_does_not_end_with_70_for_ever(tmp_path: Path) -> None:
    full = ending_in(tmp_path, disk_bytes=100_000)
    assert full.exit_code == 70
    assert any("raise --disk" in sentence for sentence in full.sentences)
    roomy = ending_in(tmp_path, disk_bytes=10**9)
    assert roomy.exit_code != 70
    assert not any("The harness failed" in sentence for sentence in roomy.sentences)


def test_runs_that_failed_on_a_full_disk_are_done_again_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [10**9]
    monkeypatch.setattr("harness.campaigns.soak.disk_budget.free_bytes", lambda directory: free[-1])

    def end(job: Job) -> Ended:
        free.append(0)
        return Ended(status="harness-failed", reason="No space left on device")

    full = ending_in(tmp_path, end)
    assert full.exit_code == 70
    assert any("no space is left for a run" in sentence for sentence in full.sentences)
    free.append(10**9)
    assert ending_in(tmp_path).exit_code != 70
    assert ("simulated", "harness-failed") not in SoakState.read(tmp_path).ended


def test_a_world_that_was_given_up_is_no_failure_of_the_session_that_could_use_it(tmp_path: Path) -> None:
    given_up = ending_in(tmp_path, lambda job: Ended(status="harness-failed", reason="java is gone"))
    assert given_up.exit_code == 70
    assert any("the simulated world is given up" in sentence for sentence in given_up.sentences)
    assert ending_in(tmp_path, for_s=60.0).exit_code != 70
