"""An installed wheel does what a clone does: plans, stories and templates are inside."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from harness.plan import CI_FILES, plans_here
from tests.packaging.conftest import ROOT, Installed, done

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("wheel")]


def test_the_wheel_has_everything_that_is_no_python_too(installed: Installed) -> None:
    inside = set(zipfile.ZipFile(installed.wheel).namelist())
    packages = [ROOT / name for name in ("harness", "nemesis", "checkers", "workloads")]
    files = [file for package in packages for file in package.rglob("*") if file.is_file()]
    sources = {file.relative_to(ROOT).as_posix() for file in files if "__pycache__" not in file.parts}
    plans = {f"harness/plans/{name}.toml" for name in plans_here()}
    assert (sources | plans | {f"harness/{name}" for name in CI_FILES.values()}) - inside == set()
    assert not [name for name in inside if name.startswith(("tests/", "docs/", "results/"))]


def test_its_metadata_is_what_an_index_takes(installed: Installed, tmp_path: Path) -> None:
    checked = done(
        [sys.executable, "-m", "twine", "check", "--strict", str(installed.wheel)], tmp_path, installed.environment
    )
    assert checked.returncode == 0, checked.stdout
    with zipfile.ZipFile(installed.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        metadata = wheel.read(name).decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata


@pytest.fixture(scope="module")
def program(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed program, in a virtual environment that has nothing else."""
    directory = tmp_path_factory.mktemp("installed")
    commands = [
        [sys.executable, "-m", "venv", "--without-pip", "venv"],
        [sys.executable, "-m", "pip", "--python", "venv/bin/python", "install", "--quiet", str(installed.wheel)],
    ]
    for command in commands:
        ran = done(command, directory, installed.environment)
        assert ran.returncode == 0, ran.stderr
    return directory / "venv" / "bin" / "ackproof"


def test_outside_of_the_clone_it_writes_explains_and_performs(
    program: Path, installed: Installed, tmp_path: Path
) -> None:
    where = done(
        [str(program.with_name("python")), "-c", "import harness; print(harness.__file__)"],
        tmp_path,
        installed.environment,
    )
    assert where.stdout.startswith(str(program.parent.parent))
    shown = {}
    for line in (
        "init demo",
        "plan demo.toml --explain",
        "stories S01",
        "init default",
        "plan default.toml",
        "init ci",
        "init client --language python",
        "schema matrix",
        "check --help",
    ):
        ran = done([str(program), *line.split()], tmp_path, installed.environment)
        assert ran.returncode == 0, ran.stderr
        shown[line] = ran.stdout
    assert shown["init demo"] == "ackproof plan demo.toml --explain\n"
    assert "under kill: No acknowledged write may be lost" in shown["plan demo.toml --explain"]
    assert "16 cells, 16 as expected" in shown["stories S01"]
    assert shown["init client --language python"] == "ackproof client check python3 client.py\n"
    assert (tmp_path / "client.py").is_file()
    assert shown["plan default.toml"].startswith("default: 3,648 runs")
    assert (tmp_path / "ackproof" / "run.sh").stat().st_mode & 0o111
