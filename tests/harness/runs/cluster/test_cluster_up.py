"""docs/guides/cluster-by-hand.md, followed at two terminals: on real processes, with a client of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.records.journal import FILE_NAME, not_undone
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("cluster-up")]

ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs" / "guides" / "cluster-by-hand.md").read_text(encoding="utf-8")
(PLAY,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [line.partition(" #")[0].split() for line in TEXT.splitlines() if line.startswith("ackproof ")]
UP, SHOW, KILL, CUT, HEAL, HEAL_DEAD, *_ = COMMANDS
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
LIMIT_S = 600.0


def begun(words: list[str], directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from harness.cli import main; main()", *words[1:]]
    return subprocess.Popen(
        command, cwd=directory, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def done(words: list[str], directory: Path) -> str:
    process = begun(words, directory)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, f"{shlex.join(words)}: {err}"
    return out


def play(servers: str, directory: Path) -> str:
    (directory / "play.py").write_text(PLAY)
    command = [sys.executable, "play.py", servers]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout


def nodes_of(directory: Path) -> list[psutil.Process]:
    below = str(directory / "results")
    alive = (
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
    )
    return [process for process in alive if below in " ".join(process.info["cmdline"] or ())]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The cluster of the page, and its bootstrap servers; whatever is left of it at the end is healed."""
    process = begun(UP, tmp_path)
    assert process.stdout is not None
    try:
        first, servers = process.stdout.readline(), process.stdout.readline().strip()
        assert first == "The cluster is in results/cluster and has the topic playground. Ctrl-C ends it.\n"
        yield process, servers
    finally:
        process.kill()
        process.communicate()
        begun(HEAL_DEAD, tmp_path).communicate()


def test_a_cluster_is_written_to_broken_healed_read_and_ended_as_the_page_says(
    tmp_path: Path, up: tuple[subprocess.Popen[str], str]
) -> None:
    process, servers = up
    assert play(servers, tmp_path) == "100 of 100 are there\n"
    (killed,) = json.loads(done([*KILL, "--json"], tmp_path))["receipts"]
    assert (killed["fault"], killed["took_effect"]) == ("kill", True)
    assert killed["begin_evidence"][str(killed["targets"][0])]["exit"] == "signal 9"
    assert play(servers, tmp_path) == "100 of 100 are there\n"
    done(CUT, tmp_path)
    done(HEAL, tmp_path)
    wait_until(lambda: "in sync 0 1 2 of 3" in done(SHOW, tmp_path), "everybody is in sync", LIMIT_S)
    assert play(servers, tmp_path) == "100 of 100 are there\n"
    receipts = [json.loads(line) for line in (tmp_path / "results" / "cluster" / "receipts.jsonl").open()]
    assert sorted((receipt["fault"], receipt["mark"]) for receipt in receipts) == [
        ("kill", "begin"), ("kill", "end"), ("partition", "begin"), ("partition", "end"),
    ]  # fmt: skip
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "ended\n")
    assert nodes_of(tmp_path) == []
    assert not_undone(tmp_path / "results" / "cluster" / FILE_NAME) == []
    assert not (tmp_path / "results" / "cluster" / "cluster.sock").exists()


def test_what_a_killed_cluster_leaves_is_ended_by_heal(tmp_path: Path, up: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = up
    done([*KILL[:-1], "0"], tmp_path)
    done(["ackproof", "cluster", "break", "pause", "--node", "1"], tmp_path)
    process.kill()
    process.wait()
    assert len(nodes_of(tmp_path)) == 3
    assert "things were left behind and are undone" in done(HEAL_DEAD, tmp_path)
    assert nodes_of(tmp_path) == []
    assert not_undone(tmp_path / "results" / "cluster" / FILE_NAME) == []
    assert begun(SHOW, tmp_path).wait() == 64


def test_a_program_of_a_user_runs_beside_the_cluster_and_is_killed_and_healed_by_hand(tmp_path: Path) -> None:
    loop = shlex.join([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"])
    process = begun([*UP, "--application", loop, "--instances", "1"], tmp_path)
    log = tmp_path / "results" / "cluster" / "application" / "instance-0.log"
    try:
        wait_until(lambda: log.is_file() and log.read_text().endswith("\n"), "it runs", limit_s=LIMIT_S)
        pid = int(log.read_text())
        assert '"instance":0' in done(["ackproof", "cluster", "break", "kill-instance", "--node", "0"], tmp_path)
        assert not psutil.pid_exists(pid)
        assert '"instance":0' in done(HEAL, tmp_path)
        wait_until(lambda: log.read_text().count("\n") == 2, "it runs again")
        again = int(log.read_text().split()[-1])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        assert not psutil.pid_exists(again)
    finally:
        process.kill()
        process.communicate()
        begun(HEAL_DEAD, tmp_path).communicate()
