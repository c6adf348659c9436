"""Standard streams as shells give them: full, closed, in ASCII; a reader that goes away; a signal at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.plan import CI_FILES, parse_plan
from harness.runs.run.performing import perform_run

MAIN = "from harness.cli.app import main; main()"
FULL = Path("/dev/full")

pytestmark = pytest.mark.system


def ackproof(
    *arguments: str, redirected: str = "", where: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, with ``redirected`` behind it, such as ``>&-``."""
    command = ["bash", "-c", f'"$@" {redirected}', "bash", sys.executable, "-c", MAIN, *arguments]
    variables = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=600, cwd=where)


@pytest.mark.parametrize("arguments", [("--help",), ("stories", "S03", "--settings", "a1"), ("schema", "matrix")])
def test_a_full_standard_output_is_a_sentence_and_the_exit_code_of_the_harness(arguments: tuple[str, ...]) -> None:
    done = ackproof(*arguments, redirected=f"> {FULL}")
    assert done.stderr == (
        "ackproof: standard output cannot be written (No space left on device); make room or send it elsewhere; "
        "what this command wrote into files is there\n"
    )
    assert done.returncode == 70


@pytest.mark.parametrize(("arguments", "code"), [(("schema", "matrix"), 0), (("report", "nowhere"), 64)])
def test_without_standard_output_a_command_ends_as_it_would(arguments: tuple[str, ...], code: int) -> None:
    done = ackproof(*arguments, redirected=">&-")
    assert done.stderr.startswith("ackproof: standard output is closed: what this command finds is in files and in its")
    assert "Traceback" not in done.stderr
    assert done.returncode == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_last_word_changes_nothing(number: signal.Signals) -> None:
    """While Spark ends, for example."""
    late = f"import atexit, os; atexit.register(os.kill, os.getpid(), {number.value}); {MAIN}"
    command = [sys.executable, "-c", late, "report", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.stderr == "ackproof: nowhere is not a campaign; name a directory below results/\n"
    assert done.returncode == 64


@pytest.mark.parametrize("shell", ["2>&-", f"2> {FULL}", ">&- 2>&-", "<&-"])
def test_without_other_streams_the_exit_code_says_it(shell: str) -> None:
    done = ackproof("report", "nowhere", redirected=shell)
    assert (done.returncode, done.stdout) == (64, "")


@pytest.mark.parametrize("shell", [f"2> {FULL}", '2>&1 > lines | true; exit "${PIPESTATUS[0]}"'])
def test_work_goes_on_where_its_progress_cannot_be_written(tmp_path: Path, shell: str) -> None:
    done = ackproof("init", "ci", redirected=shell, where=tmp_path)
    assert done.returncode == 0
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")} >= CI_FILES.keys()


def test_a_child_does_not_write_into_the_file_that_got_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    script = (
        "import subprocess; from harness.cli.streams import see_to_streams; see_to_streams();"
        f"file = open({str(tmp_path / 'file')!r}, 'w'); subprocess.run(['echo', 'said by a child'], check=True)"
    )
    subprocess.run(["bash", "-c", '"$@" >&- 2>&-', "bash", sys.executable, "-c", script], check=True)
    assert (tmp_path / "file").read_text() == ""


def unread(*arguments: str) -> tuple[int, str]:
    """The exit code of a command whose reader has gone before it began, and what it complains of."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", MAIN, *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=600)
    os.close(writer)
    complaints = [line for line in done.stderr.splitlines() if line.startswith("ackproof")]
    return done.returncode, "\n".join(complaints)  # a slow machine shows progress, too


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("stories", "--list"), 0),
        (("stories", "S03", "--settings", "a1", "--json"), 0),
        (("schema", "matrix"), 0),
        (("kafka", "list"), 0),
        (("plan", "plans/demo.toml", "--explain"), 0),
        (("assess", "{topics}", "--producer", "acks=0", "--require", "no weakness"), 1),
    ],
)
def test_a_reader_that_goes_away_changes_no_exit_code(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    topics = tmp_path / "topics"
    topics.write_text("Topic: t\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\n")
    assert unread(*(word.format(topics=topics) for word in arguments)) == (code, "")


def test_a_history_is_exported_as_far_as_it_is_read(tmp_path: Path) -> None:
    plan = "[workload]\nduration_ms = 2_000\nwrites_per_second = 20.0\n[faults]\ncount = 0\n[worlds.simulated]\n"
    perform_run(parse_plan(plan, "p").runs()[0], tmp_path / "run")
    assert unread("export", str(tmp_path / "run")) == (0, "")


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_what_ascii_lacks_is_escaped(tmp_path: Path, variables: dict[str, str]) -> None:
    done = ackproof("schema", "--out", str(tmp_path / "größe"), PYTHONCOERCECLOCALE="0", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\\" in done.stdout


def test_json_in_ascii_is_json() -> None:
    script = (
        "from harness.cli.streams import see_to_streams; from harness.cli.terminal import Terminal; see_to_streams();"
        "Terminal().json({'bound': '\\u2264 3', 'path': '\\xe4', 'sign': '\\U0001f600'})"
    )
    variables = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=variables)
    assert done.stdout.isascii()
    assert json.loads(done.stdout) == {"bound": "\u2264 3", "path": "\xe4", "sign": "\U0001f600"}
