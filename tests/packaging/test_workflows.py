"""Files that `ackproof init ci` writes: every step that runs a command is run, with short plans, in a new directory.

Real Kafka is left out here: tests/harness/worlds/kafka and scripts/kafka-campaign.sh have it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import yaml

from harness.plan import starter
from tests.packaging.conftest import ROOT, Installed, done

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("wheel")]

SHORT = """
name = "short"
[settings]
acks = "all"
min.insync.replicas = 2
[worlds.simulated]
runs = 2
workload = { writes_per_second = 20.0, duration_ms = 12_000 }
faults = { exercised_min = 1, at_stake_min = 1 }
"""


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory, installed: Installed) -> Path:
    """The virtual environment of both workflows, empty: that the script makes one is seen where a clone is installed.

    Its pip is that of the tests: to install another is most of the work of making it.
    """
    directory = tmp_path_factory.mktemp("venv") / "venv"
    made = done(
        [sys.executable, "-m", "venv", "--without-pip", str(directory)], directory.parent, installed.environment
    )
    assert made.returncode == 0, made.stderr
    return directory


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A directory with everything of ``ci``, and plans that take seconds."""
    for to, source in starter("ci").items():
        (tmp_path / to).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / to).write_bytes(source.read_bytes())
        (tmp_path / to).chmod(source.stat().st_mode)
    for plan in (tmp_path / "ackproof").glob("*.toml"):
        plan.write_text(SHORT)
    # What a runner has and this machine need not change: packages are there, and root needs no sudo.
    (tmp_path / "bin").mkdir()
    for name, what in {"apt-get": 'echo "$@"', "sudo": 'while [[ $1 == -* ]]; do shift; done; exec "$@"'}.items():
        (tmp_path / "bin" / name).write_text(f"#!/usr/bin/env bash\n{what}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def steps_of(directory: Path, workflow: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    content = yaml.safe_load((directory / ".github" / "workflows" / workflow).read_text())
    (job,) = content["jobs"].values()
    return content.get("env", {}), job["steps"]


def run_steps(directory: Path, workflow: str, installed: Installed, begin: str = "", **changes: str) -> str:
    """Run each step as a runner does, from the one named ``begin`` on; the answer is what the job's page was given."""
    env, steps = steps_of(directory, workflow)
    names = [step.get("name") for step in steps]
    steps = steps[names.index(begin) if begin else 0 :]
    shutil.copy(installed.wheel, directory / "ackproof")
    summary = directory / f"{workflow}.md"
    shell = {
        **installed.environment,
        **env,
        "ACKPROOF_LOCK": "none",  # what it depends on is there
        "GITHUB_STEP_SUMMARY": str(summary),
        "PATH": os.pathsep.join(
            [str(directory / "bin"), str(Path(sys.executable).parent), installed.environment["PATH"]]
        ),
        **changes,
    }
    for step in steps:
        if "run" in step:
            ran = done(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], directory, shell)
            assert ran.returncode == 0, f"{step['name']}: {ran.stdout}{ran.stderr}"
    return summary.read_text()


def paths_kept(directory: Path, workflow: str) -> list[Path]:
    """The files that the last step, an upload, would keep."""
    *_, last = steps_of(directory, workflow)[1]
    return [path for pattern in last["with"]["path"].split() for path in directory.glob(pattern)]


def test_a_night_that_found_something_is_remembered_though_its_job_fails(fresh: Path) -> None:
    steps = steps_of(fresh, "ackproof-nightly.yml")[1]
    cached = {step["uses"]: step for step in steps if step.get("with", {}).get("path") == "ackproof-nights"}
    assert cached.keys() == {
        "actions/cache/restore@v4",
        "actions/cache/save@v4",
    }  # actions/cache saves after success only
    restored, saved = cached["actions/cache/restore@v4"], cached["actions/cache/save@v4"]
    assert saved["if"] == "always()"
    assert saved["with"]["key"] == restored["with"]["key"]
    assert saved["with"]["key"].startswith(restored["with"]["restore-keys"])


def test_without_a_wheel_and_a_version_nothing_of_that_name_is_installed(fresh: Path, installed: Installed) -> None:
    ran = done(["bash", "ackproof/run.sh", "install"], fresh, installed.environment | {"ACKPROOF": ""})
    assert ran.returncode == 64
    assert "put a wheel of ackproof beside ackproof/run.sh" in ran.stderr
    assert not (fresh / ".ackproof-venv").exists()


def test_the_pull_requests_steps_pass_and_leave_what_they_upload(fresh: Path, installed: Installed, venv: Path) -> None:
    reported = run_steps(fresh, "ackproof-pull-request.yml", installed, ACKPROOF_VENV=str(venv))
    assert reported.startswith("**No promise was broken: 1 of 1 cell held.")
    kept = {path.name: path for path in paths_kept(fresh, "ackproof-pull-request.yml")}
    assert kept.keys() == {"report.html", "matrix.json", "matrix.md", "junit.xml", "verdicts.jsonl"}
    assert Xml.parse(kept["junit.xml"]).getroot().get("tests") == "1"  # noqa: S314 - our own


def test_the_nights_steps_pass_and_the_second_is_compared_with_the_first(
    fresh: Path, installed: Installed, venv: Path
) -> None:
    short = {"ACKPROOF_KAFKA": "none", "ACKPROOF_FOR": "3s", "ACKPROOF_VENV": str(venv)}
    first = run_steps(fresh, "ackproof-nightly.yml", installed, **short)
    assert "is not worse than" not in first
    second = run_steps(fresh, "ackproof-nightly.yml", installed, begin="Night", **short)
    nights = sorted((fresh / "ackproof-nights").glob("*/"))
    assert len(nights) == 2
    assert all(
        {path.name for path in night.iterdir()} >= {"matrix.json", "night.json", "verdicts.jsonl.xz"}
        for night in nights
    )
    (trend,) = (fresh / "ackproof-results").glob("*/nights.html")
    assert trend.parent.name == nights[1].name, "only the second had a night to look back to"
    assert (fresh / "ackproof-nights" / "nights.html").read_text() == trend.read_text()
    compared = f"ackproof-results/{nights[1].name} is not worse than ackproof-nights/{nights[0].name}: 1 cell in both"
    assert compared in second


def test_a_plain_machine_comes_from_a_clone_to_a_night_as_the_page_says(tmp_path: Path, installed: Installed) -> None:
    page = (ROOT / "docs" / "start" / "ci.md").read_text()
    (block,) = [block for block in page.split("```sh\n") if block.startswith("CLONE/ci/run.sh install\n")]
    lines = block.partition("```")[0].splitlines()
    (tmp_path / "CLONE").symlink_to(ROOT)
    quick = {"ACKPROOF_LOCK": "none", "ACKPROOF_KAFKA": "none", "ACKPROOF_FOR": "3s", "PIP_NO_BUILD_ISOLATION": "0"}
    search = os.pathsep.join([str(Path(sys.executable).parent), installed.environment["PATH"]])
    for line in lines:
        ran = done(["bash", "-c", line], tmp_path, {**installed.environment, **quick, "PATH": search})
        assert ran.returncode == 0, f"{line}: {ran.stdout}{ran.stderr}"
        if line.endswith(" init ci"):
            (tmp_path / "ackproof" / "nightly.toml").write_text(SHORT)
    assert [path.name for path in (tmp_path / "ackproof-nights").glob("*/matrix.json")] == ["matrix.json"]
