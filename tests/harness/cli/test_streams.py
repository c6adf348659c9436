"""Standard streams as shells give them: full, closed, in ASCII; and a reader that goes away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.plan import CI_FILES

MAIN = "from harness.cli.app import main; main()"
FULL = Path("/dev/full")

pytestmark = pytest.mark.system


def ackproof(
    *arguments: str, redirected: str = "", where: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, with ``redirected`` behind it, such as ``>&-``."""
    command = ["bash", "-c", f'"$@" {redirected}', "bash", sys.executable, "-c", MAIN, *arguments]
    variables = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=60, cwd=where)


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


def test_a_reader_that_goes_away_is_no_broken_promise() -> None:
    done = ackproof("--help", redirected='| true; exit "${PIPESTATUS[0]}"')
    assert done.returncode in {0, 70}, "0 where all was written before it went away"
    assert done.stderr == ""


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
