"""The whole way of the data through the command line: plan, runs in both worlds, Spark, matrix, report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.sessions import begun, printed
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("end-to-end")]

LIMIT_S = 600
BOTH_WORLDS = """
families = ["kill"]
[settings]
min.insync.replicas = 2
[matrix]
acks = [1, "all"]
[worlds.simulated]
runs = 3
workload = { writes_per_second = 20.0, duration_ms = 6_000 }
faults = { count = 2 }
[worlds.processes]
parallel = 2
workload = { writes_per_second = 50.0, duration_ms = 4_000 }
faults = { count = 1, exercised_min = 1, at_stake_min = 1 }
"""
LONG = """
[worlds.processes]
workload = { writes_per_second = 50.0, duration_ms = 600_000 }
"""


def ackproof(*arguments: str, directory: Path) -> subprocess.Popen[str]:
    return begun(["-c", "from harness.cli import main; main()", *arguments], directory, os.environ)


def finished(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> tuple[int, str, str]:
    out, err = printed(process, limit_s)
    return process.returncode, out, err


def brokers_below(directory: Path) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(str(directory) in argument for argument in process.info["cmdline"] or ())
        and "harness.broker.server" in process.info["cmdline"]
    ]


def test_a_campaign_tells_the_loss_of_acks_1_from_the_safety_of_acks_all(tmp_path: Path) -> None:
    (tmp_path / "both.toml").write_text(BOTH_WORLDS)
    code, out, err = finished(ackproof("campaign", "both.toml", directory=tmp_path))
    assert code == 0, out + err
    assert "processes and simulated runs: 8/8" in err
    assert out.splitlines()[-1] == "results/both/report.html"
    assert (tmp_path / "results" / "both" / "report.html").stat().st_size > 1000
    matrix = json.loads((tmp_path / "results" / "both" / "matrix.json").read_text())
    cells = {(cell["world"], cell["settings"]["acks"]): cell for cell in matrix["cells"]}
    assert cells["simulated", 1]["outcome"] == "permitted loss"
    assert cells["simulated", "all"]["outcome"] == "held"
    assert cells["processes", "all"]["lost"] == 0
    assert all(cell["runs_judged"] == cell["runs"] for cell in cells.values())
    witness = cells["simulated", 1]["witness"]["run"]
    code, out, err = finished(ackproof("replay", f"results/both/{witness}", directory=tmp_path))
    assert code == 0, out + err
    assert "reproduced identically" in out.splitlines()[-1]


def test_a_killed_harness_leaves_a_history_that_is_judged_and_processes_that_heal_ends(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    harness = ackproof("campaign", "long.toml", directory=tmp_path)
    results = tmp_path / "results" / "long"
    try:
        wait_until(lambda: len(list(results.rglob("live-*.parquet"))) >= 3, "three files are written", LIMIT_S)
        below = psutil.Process(harness.pid).children(recursive=True)
        workers = [process for process in below if "harness.broker.server" not in process.cmdline()]
        for process in (psutil.Process(harness.pid), *workers):
            process.kill()
        harness.communicate(timeout=LIMIT_S)
        assert brokers_below(tmp_path)
    finally:
        code, out, _ = finished(ackproof("heal", "results/long", directory=tmp_path))
    assert code == 0
    assert "things were left behind and are undone" in out
    assert brokers_below(tmp_path) == []
    code, out, err = finished(ackproof("check", "results/long", directory=tmp_path))
    assert code == 2, err
    assert out.splitlines()[-1] == "1 history: 1 unknown; see results/long/verdicts.jsonl"


def test_ctrl_c_closes_the_cluster_and_keeps_the_run(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    harness = ackproof("campaign", "long.toml", directory=tmp_path)
    try:
        wait_until(lambda: list(tmp_path.rglob("live-*.parquet")), "a file is written", LIMIT_S)
        os.killpg(harness.pid, signal.SIGINT)
        code, _, err = finished(harness)
    finally:
        harness.kill()
    assert code == 130
    assert (
        err.splitlines()[-1]
        == "ackproof: interrupted; what was done is kept; judge it with: ackproof check results/long"
    )
    assert brokers_below(tmp_path) == []
    (run_file,) = tmp_path.rglob("run.json")
    assert json.loads(run_file.read_text())["ended"]["status"] == "interrupted"
