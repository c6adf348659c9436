"""`ackproof soak` as its users have it: killed, resumed, without Java, stopped, on a full disk, without a binary."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import psutil
import pytest

from checkers import Outcome
from harness.campaigns.soak import Ending, perform_soak
from harness.campaigns.soak.ledger import Planned, read_ledger, read_verdicts
from harness.campaigns.soak.soak_file import SoakHeartbeat, write_request
from harness.campaigns.soak.state import SoakState
from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.plan import CI_FILES, parse_plan
from harness.runs.run import heal
from tests.harness.campaigns.soak.conftest import Clock, InstantRuns, KnowingChecks, asked, facts_of, line_of
from tests.waiting import wait_until

PLAN = """
name = "s"
families = ["kill"]
[worlds.simulated]
parallel = 1
workload = { writes_per_second = 20.0, duration_ms = 8_000 }
[worlds.processes]
parallel = 1
workload = { writes_per_second = 30.0, duration_ms = 8_000, drain_limit_ms = 15_000 }
faults = { count = 2, exercised_min = 1, at_stake_min = 1 }
"""
LIMIT_S = 600.0
ROOT = Path(__file__).parents[4]


def started(*arguments: str) -> subprocess.Popen[str]:
    program = "from harness.cli import main; main()"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-c", program, "soak", *arguments], **pipes)


def beat_of(directory: Path) -> SoakHeartbeat | None:
    path = directory / "heartbeat.json"
    return msgspec.json.decode(path.read_bytes(), type=SoakHeartbeat) if path.is_file() else None


def judged(directory: Path) -> int:
    beat = beat_of(directory)
    return beat.runs if beat else 0


def runs_real_nodes(directory: Path) -> bool:
    journals = directory.glob("runs/processes/*/*/*/journal.jsonl")
    return any(b'"more"' in journal.read_bytes() for journal in journals)


def processes_of(directory: Path) -> list[list[str]]:
    return [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline"])
        if str(directory) in str(process.info["cmdline"])
    ]


def java_of(soaking: subprocess.Popen[str]) -> list[psutil.Process]:
    return [child for child in psutil.Process(soaking.pid).children() if "java" in child.name()]


#: A soak by a clock that shows how many runs were judged: as long on a busy machine, and no longer on a quick one.
BY_VERDICTS = """
import sys
from pathlib import Path
from harness.plan import read_plan
from harness.ground.progress import Progress
from harness.campaigns.soak import perform_soak
from tests.harness.campaigns.soak.conftest import asked

plan, directory, runs = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
verdicts = directory / "verdicts.jsonl"

def judged():
    return float(verdicts.read_bytes().count(10)) if verdicts.exists() else 0.0

directory.mkdir()
ending = perform_soak(directory, read_plan(plan), asked(for_s=runs, seed=1), Progress(), clock=judged)
print(*ending.sentences)
sys.exit(ending.exit_code)
"""


@pytest.mark.system
def test_a_night_of_the_plan_that_init_writes_ends_with_0(tmp_path: Path) -> None:
    """In virtual time, until there are a few runs of each cell."""
    plan = tmp_path / "nightly.toml"
    plan.write_text((ROOT / CI_FILES["ackproof/nightly.toml"]).read_text().partition("\n# The reference broker")[0])
    command = [sys.executable, "-c", BY_VERDICTS, str(plan), str(tmp_path / "night"), "32"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No promise was broken: 8 of 8 cells held." in done.stdout


@pytest.mark.system
@pytest.mark.xdist_group("soak")
def test_a_soak_that_is_killed_goes_on_outlives_its_java_and_ends_in_order(tmp_path: Path) -> None:
    plan, directory = tmp_path / "s.toml", tmp_path / "soak"
    plan.write_text(PLAN)
    first = started(str(plan), "--for", "10m", "--out", str(directory))
    wait_until(lambda: runs_real_nodes(directory), "real nodes run", LIMIT_S)
    first.send_signal(signal.SIGKILL)
    first.wait()

    second = started("--resume", str(directory))
    wait_until(lambda: judged(directory) >= 2, "two runs are judged", LIMIT_S)
    for java in java_of(second):
        java.kill()
    before = judged(directory)
    wait_until(lambda: judged(directory) > before, "a new Java judges", LIMIT_S)
    second.send_signal(signal.SIGTERM)
    output, _ = second.communicate(timeout=LIMIT_S)  # much less than it had left
    assert second.returncode in {130, 1}, output
    assert "Ended before its time: it was asked to stop." in output
    assert output.splitlines()[-1] == str(directory / "report.html")

    lines = list(read_verdicts(directory))
    state = SoakState.read(directory)
    assert (state.sessions, state.judged, state.failures) == (2, len(lines), [])
    assert max(Counter(line.history for line in lines).values()) == 1
    drawn = {entry.turn for entry in read_ledger(directory) if isinstance(entry, Planned)}
    assert drawn == set(range(state.turns))
    assert state.turns == state.judged + state.tried + len(state.planned) + len(state.performed)
    beat = beat_of(directory)
    assert beat is not None
    assert (beat.status, beat.runs) == ("ended", len(lines))
    assert 0 < beat.disk_bytes < beat.disk_limit_bytes
    assert heal(directory) == []
    assert processes_of(directory) == []


@pytest.fixture
def small_disk(tmp_path: Path):
    directory = tmp_path / "small"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(directory)], check=True)
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.system
@pytest.mark.root
def test_a_full_disk_ends_the_soak_with_a_sentence(small_disk: Path) -> None:
    clock = Clock()
    runs = InstantRuns(clock, lambda what: None, left_bytes=150_000)
    checks = KnowingChecks(lambda world, cell, seed: line_of(world, cell, seed, Outcome.BROKEN_PROMISE))
    plan = parse_plan('families = ["kill"]\n[worlds.simulated]\nparallel = 1\n', "t.toml")
    wanted = asked(for_s=600.0, disk_bytes=10**9)
    ending = perform_soak(small_disk, plan, wanted, Progress(), runs=runs, checks=checks, clock=clock)
    assert ending.exit_code == 70
    assert any("o space" in sentence and "make room" in sentence for sentence in ending.sentences)
    assert SoakState.read(small_disk).judged > 1


@pytest.mark.system
def test_a_soak_whose_brokers_have_no_binary_any_more_ends_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    plan = parse_plan('families = ["kill"]\n[worlds.kafka]\nparallel = 1\n', "t.toml")
    directory = tmp_path / "soak"
    directory.mkdir()
    checks = KnowingChecks()
    checks._judge = lambda directory: line_of(*facts_of(directory), Outcome.UNKNOWN)
    ending = perform_soak(directory, plan, asked(for_s=600.0), Progress(), checks=checks)
    assert ending.exit_code == 70
    assert any("the kafka world is given up: 3 runs in a row failed" in sentence for sentence in ending.sentences)
    state = SoakState.read(directory)
    assert (state.ended["kafka", "harness-failed"], state.judged, state.unjudged) == (3, 0, 3)
    done, verdict = ending.sentences[0], ending.sentences[-1]
    assert done.startswith("0 runs judged and 3 that could not be, ")
    assert "0 runs judged, " in verdict, "the matrix counts as the soak does"
    assert heal(directory) == []


def test_a_resumed_soak_has_the_limits_that_it_is_given_and_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    write_request(tmp_path, asked(disk_bytes=10**9, tries=2))
    given = []

    def perform(directory, plan, wanted, progress, **more):
        write_request(directory, wanted)
        given.append(wanted)
        return Ending(("done",), 0, None)

    monkeypatch.setattr("harness.cli.soak.perform_soak", perform)
    assert exit_code_of(["soak", "--resume", str(tmp_path), "--disk", "2GB", "--for", "1h"]) == 0
    assert exit_code_of(["soak", "--resume", str(tmp_path)]) == 0
    assert [(request.disk_bytes, request.for_s, request.tries) for request in given] == [(2 * 10**9, 3600.0, 2)] * 2


def test_a_soak_that_is_too_short_for_its_cells_says_so_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.cli.soak.perform_soak", lambda *_, **__: Ending(("done",), 0, None))
    (tmp_path / "s.toml").write_text(PLAN)
    assert exit_code_of(["soak", "s.toml", "--for", "10s"]) == 0
    assert (
        "In the world processes, 10 s is short: to put each cell to the test takes about 1 run of 14 s, 1 at a time, "
        "so about 14 s. A cell that gets fewer is not exercised (exit code 2)."
    ) in capsys.readouterr().err
    assert exit_code_of(["soak", "s.toml", "--for", "1h"]) == 0
    assert "is short" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plans/smoke.toml"], "say when to end"),
        (["plans/smoke.toml", "--for", "8"], '"8" is not a duration; write a number with its unit'),
        (["plans/smoke.toml", "--for", "8h", "--disk", "much"], '"much" is not a size'),
        (["plans/smoke.toml", "--for", "0s"], '"0s" is too short for one run; write 1s or more'),
        (["plans/smoke.toml", "--for", "8h", "--disk", "5MB"], "write --disk 120MB or more"),
        (["plans/racks.toml", "--for", "8h", "--disk", "1KB"], "one run in the world simulated may leave 2MB"),
        (["plans/smoke.toml", "--resume", "."], "leave PLAN out"),
        (["--resume", ".", "--seed", "1", "--until-finding"], "leave --seed, --until-finding out"),
        (["--resume", "nowhere"], "holds no soak.json"),
        ([], "name a PLAN"),
    ],
)
def test_a_soak_that_is_asked_for_wrongly_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["soak", *arguments]) == 64
    assert message in capsys.readouterr().err
