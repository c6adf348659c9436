"""`ackproof/run.sh`: what becomes of a night, whatever ends it. A program that stands for ackproof takes no time."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from harness.campaigns.soak import read_nights
from harness.cli.app import exit_code_of
from tests.packaging.conftest import ROOT
from tests.packaging.traced import signal_as_child_is_reaped
from tests.waiting import wait_until

LIMIT_S = 600.0
#: ackproof as far as the script knows it. Where there is a file "endless", a soak goes on until it is asked to end, and
#: healing takes as long as there is a file "slow".
STAND_IN = """
import os, pathlib, signal, sys, time
command, *rest = sys.argv[1:]
def note(words):
    with open("calls", "a") as calls:
        calls.write(words + chr(10))
def leave():
    for name in "verdicts.jsonl", "matrix.json", "matrix.md", "nights.html":
        (directory / name).write_text(f"{name} of {directory.name}")
def end(number, frame):
    note(signal.Signals(number).name)
    leave()
    sys.exit(130)
note(" ".join([command, *rest]))
if command == "release":
    print("4.4.0 was not judged")
    sys.exit(2)
if command == "heal" and os.path.exists("unhealed"):
    sys.exit(70)
if command == "heal" and os.path.exists("slow"):
    pathlib.Path("begun").touch()
    while os.path.exists("slow"):
        time.sleep(0.02)
if rest[0].endswith(".toml") and "wrong" in pathlib.Path(rest[0]).read_text():
    print("the plan is wrong", file=sys.stderr)
    sys.exit(64)
if command == "soak":
    directory = pathlib.Path(rest[rest.index("--resume" if rest[0] == "--resume" else "--out") + 1])
    directory.mkdir(parents=True, exist_ok=True)
    if os.path.exists("endless"):
        signal.signal(signal.SIGTERM, end)
        pathlib.Path("begun").touch()
        while True:
            time.sleep(0.02)
    leave()
"""


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a repository with the script, a plan, and what stands for ackproof."""
    monkeypatch.chdir(tmp_path)
    for name in ("ACKPROOF", "ACKPROOF_VENV", "ACKPROOF_LOCK", "ACKPROOF_SUMMARY", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    Path("ackproof").mkdir()
    shutil.copy(ROOT / "ci" / "run.sh", "ackproof/run.sh")
    Path("ackproof/nightly.toml").write_text("right")
    program("ackproof", f"#!{sys.executable}\n{STAND_IN}")
    return tmp_path


def program(name: str, text: str) -> None:
    path = Path(".ackproof-venv/bin") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def script(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "ackproof/run.sh", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def calls() -> list[list[str]]:
    return [line.split() for line in Path("calls").read_text().splitlines()]


def nights() -> list[str]:
    return sorted(night.name for night in Path("ackproof-nights").glob("*/"))


def earlier(*names: str, status: str = "completed") -> None:
    """Nights that were kept before."""
    for name in names:
        night = Path("ackproof-nights") / name
        night.mkdir(parents=True)
        for file in ("matrix.json", "verdicts.jsonl.xz"):
            (night / file).touch()
        (night / "campaign.json").write_text(f'{{\n "status": "{status}"\n}}')


@contextmanager
def going_on(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The script, as a terminal starts it: a shell's own background jobs would ignore INT, and so would bash then."""
    command = ["env", "--default-signal", "bash", "ackproof/run.sh", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = subprocess.Popen(command, env=os.environ | {"ACKPROOF_FOR": "10m"}, start_new_session=True, **pipes)
    try:
        yield running
    finally:
        running.terminate()
        running.communicate(timeout=LIMIT_S)


def processes_here() -> list[list[str]]:
    """Command lines of whatever works in this directory, but for the test's own process."""
    here = []
    for process in psutil.process_iter(["cmdline", "cwd", "status"]):
        living = process.info["status"] != psutil.STATUS_ZOMBIE and process.pid != os.getpid()
        if living and process.info["cwd"] == str(Path.cwd()):
            here.append(process.info["cmdline"])
    return here


def test_a_night_is_compared_where_its_runs_are_and_kept_with_the_trend() -> None:
    earlier("2001-01-01T000000", "2002-01-01T000000")
    earlier("2003-01-01T000000", status="interrupted")
    ran = script("nightly", ACKPROOF_SUMMARY="summary", ACKPROOF_FOR="1s")
    assert ran.returncode == 0, ran.stderr
    tonight = nights()[-1]
    assert [call[0] for call in calls()] == ["heal", "soak", "compare"]
    assert calls()[1][1:] == (
        f"{Path.cwd()}/ackproof/nightly.toml --out ackproof-results/{tonight} --for 1s --nights ackproof-nights".split()
    )
    assert calls()[2] == ["compare", "ackproof-nights/2002-01-01T000000", f"ackproof-results/{tonight}"]
    assert Path("ackproof-nights/nights.html").read_text() == f"nights.html of {tonight}"
    assert Path("summary").read_text().startswith(f"matrix.md of {tonight}")
    for directory in ("ackproof-nights", "ackproof-results"):
        assert Path(directory, ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("kind", ["nightly", "pull-request"])
def test_a_plan_that_is_wrong_is_said_once_and_no_night_is_kept(kind: str) -> None:
    Path(f"ackproof/{kind}.toml").write_text("wrong")
    ran = script(kind)
    assert (ran.returncode, ran.stderr) == (64, "the plan is wrong\n")
    assert not Path("ackproof-nights").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whoever_ends_the_script_ends_the_soak_in_order_and_the_night_is_kept(number: signal.Signals) -> None:
    earlier("2001-01-01T000000")
    Path("endless").touch()
    with going_on("nightly") as night:
        wait_until(Path("begun").exists, "the soak has begun", LIMIT_S)
        night.send_signal(number)
        os.killpg(night.pid, number)  # as `timeout` and terminals do, which signal the group too
        assert night.wait(LIMIT_S) == 130
    assert [call[0] for call in calls()] == ["heal", "soak", "SIGTERM", "heal"], "asked once, and not compared"
    assert {path.name for path in Path("ackproof-nights", nights()[-1]).iterdir()} == {
        "matrix.json",
        "verdicts.jsonl.xz",
    }
    assert processes_here() == []


def soak_of(night: subprocess.Popen[str]) -> psutil.Process:
    (soaking,) = [
        process for process in psutil.Process(night.pid).children(recursive=True) if "soak" in process.cmdline()
    ]
    return soaking


def test_a_signal_that_comes_as_ackproof_ends_takes_no_exit_code_away() -> None:
    Path("endless").touch()
    with going_on("nightly") as night:
        wait_until(Path("begun").exists, "the soak has begun", LIMIT_S)
        soaking = soak_of(night)
        waiting = soaking.parent()
        assert waiting is not None
        signal_as_child_is_reaped(waiting.pid, soaking.pid, signal.SIGTERM, soaking.terminate)
        assert night.wait(LIMIT_S) == 130


#: While the script hears a signal, between its first command for that and the second, there comes another.
ANOTHER = """
set -T
commands=0 # bash counts the beginning of the function as one
trap '[ "${FUNCNAME[0]:-}" != pass_on ] || [ "$((++commands))" != 3 ] || kill -TERM $$' DEBUG
"""


def test_a_signal_that_comes_while_another_is_passed_on_does_not_keep_it_from_the_soak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("endless").touch()
    Path("another").write_text(ANOTHER)
    monkeypatch.setenv("BASH_ENV", "another")
    with going_on("nightly") as night:
        wait_until(Path("begun").exists, "the soak has begun", LIMIT_S)
        night.terminate()
        wait_until(lambda: ["SIGTERM"] in calls(), "it is asked to end", LIMIT_S)
        assert night.wait(LIMIT_S) == 130
    assert calls().count(["SIGTERM"]) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_night_that_is_stopped_while_it_heals_does_not_begin(number: signal.Signals) -> None:
    Path("slow").touch()
    with going_on("nightly") as night:
        wait_until(Path("begun").exists, "healing has begun", LIMIT_S)
        night.send_signal(number)
        Path("slow").unlink()
        assert night.wait(LIMIT_S) == 130
    assert {call[0] for call in calls()} == {"heal"}


def test_a_night_that_was_killed_is_healed_before_the_next_and_can_be_gone_on_with() -> None:
    killed = Path("ackproof-results/2001-01-01T000000")
    killed.mkdir(parents=True)
    (killed / "verdicts.jsonl").write_text("what was judged before")
    earlier("2000-01-01T000000", "2002-01-01T000000")
    earlier(killed.name, status="interrupted")
    Path("endless").touch()
    with going_on("resume", str(killed)) as resumed:
        wait_until(Path("begun").exists, "the soak has begun", LIMIT_S)
        assert nights() == ["2000-01-01T000000", "2002-01-01T000000"], "what was kept of it is no earlier night"
        resumed.terminate()
        assert resumed.wait(LIMIT_S) == 130
    assert calls()[:2] == [["heal", "ackproof-results"], ["soak", "--resume", str(killed)]]
    Path("endless").unlink()
    assert script("resume", str(killed)).returncode == 0
    assert calls()[-1] == ["compare", "ackproof-nights/2000-01-01T000000", str(killed)]
    assert nights() == ["2000-01-01T000000", "2001-01-01T000000", "2002-01-01T000000"]


def test_what_cannot_be_healed_is_no_green_night() -> None:
    Path("unhealed").touch()
    assert script("nightly").returncode == 70
    assert nights(), "it was done all the same"


@pytest.mark.parametrize("killed", [False, True], ids=["the script lives", "the script was killed"])
def test_a_night_that_no_signal_reached_is_stopped_in_order(killed: bool) -> None:
    Path("endless").touch()
    with going_on("nightly") as night:
        wait_until(Path("begun").exists, "the soak has begun", LIMIT_S)
        if killed:
            night.kill()
            night.wait(LIMIT_S)
        assert script("stop").returncode == 0
        assert night.wait(LIMIT_S) == (-signal.SIGKILL if killed else 130)
    in_order = [] if killed else [["heal", "ackproof-results"]]
    assert calls()[2:] == [["SIGTERM"], *in_order, ["heal", "ackproof-results"]]
    assert len(nights()) == (0 if killed else 1), "a script that was killed keeps nothing"
    assert processes_here() == []


def test_where_no_night_goes_on_nobody_is_stopped() -> None:
    Path("ackproof-results").mkdir()
    Path("ackproof-results/.lock").write_text(f"{os.getpid()}\n")  # the number of a dead script, since given to another
    assert script("stop").returncode == 0
    assert calls() == [["heal", "ackproof-results"]]


def test_two_nights_never_overlap() -> None:
    Path("ackproof-results").mkdir()
    with Path("ackproof-results/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = script("nightly")
    assert ran.returncode == 70
    assert ran.stderr.startswith("another ackproof/run.sh works in ackproof-results")
    assert not Path("calls").exists()


def test_what_an_installation_needs_is_said(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    for name in ("bash", "dirname", "flock", "mkdir", "python3"):
        (tmp_path / "few" / name).symlink_to(str(shutil.which(name)))
    ran = script("install", ACKPROOF="a-wheel", PATH=str(tmp_path / "few"))
    assert (ran.returncode, ran.stderr) == (70, "xz is missing: install the packages xz-utils and util-linux\n")


def test_releases_that_were_not_judged_fail_the_weekly_job_and_are_on_its_page() -> None:
    ran = script("releases", ACKPROOF_SUMMARY="summary")
    assert (ran.returncode, ran.stdout) == (2, "4.4.0 was not judged\n")
    assert Path("summary").read_text() == ran.stdout
    assert calls() == [["release", "--newest"]]
    workflow = (ROOT / "ci" / "github-releases.yml").read_text(encoding="utf-8")
    assert workflow.rstrip().endswith("run: ackproof/run.sh releases")
    assert "cron" in workflow


def test_its_first_lines_are_its_help() -> None:
    for arguments in ([], ["nightly", "too-much"], ["resume"], ["nonsense"]):
        ran = script(*arguments)
        assert ran.returncode == 64
        assert ran.stdout.startswith("Runs ackproof on any machine")
        assert ran.stdout.splitlines()[-1].startswith("69 Kafka cannot be fetched")


PLAN = """
name = "short"
families = ["kill", "pause"]
[settings]
acks = "all"
min.insync.replicas = 2
[worlds.simulated]
workload = { writes_per_second = 20.0, duration_ms = 12_000 }
"""


@pytest.mark.system
@pytest.mark.xdist_group("soak")
def test_a_real_night_that_is_stopped_is_kept_and_the_next_one_looks_back_to_it() -> None:
    Path("ackproof/nightly.toml").write_text(PLAN)
    own = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from harness.cli import main; main()"
    program("ackproof", f'#!/usr/bin/env bash\nexec {sys.executable} -c {shlex.quote(own)} "$@"\n')
    verdicts = Path("ackproof-results").glob
    with going_on("nightly") as night:
        wait_until(lambda: any(file.stat().st_size for file in verdicts("*/verdicts.jsonl")), "one is judged", LIMIT_S)
        night.send_signal(signal.SIGTERM)
        output, _ = night.communicate(timeout=LIMIT_S)
    assert night.returncode == 130, output
    assert "Ended before its time: it was asked to stop." in output
    assert processes_here() == []
    (kept,) = read_nights(["ackproof-nights"], Path("elsewhere"))
    assert kept.runs > 0
    assert exit_code_of(["heal", "ackproof-results"]) == 0


def test_that_kafka_is_not_wanted_is_said() -> None:
    done = script("kafka", ACKPROOF_KAFKA="none")
    assert (done.returncode, done.stdout) == (0, "Apache Kafka is not installed: ACKPROOF_KAFKA=none\n")
    assert not Path("calls").exists()
