"""ackproof as somebody has it who has no clone: a wheel, installed into a virtual environment of its own.

What it depends on comes from the environment that the tests run in, so that nothing is fetched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 600.0


class Installed(NamedTuple):
    """A wheel, and the environment of a shell in which pip fetches nothing and finds what the wheel depends on."""

    wheel: Path
    environment: Mapping[str, str]


def done(command: list[str], directory: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=directory, env=dict(environment), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    out = tmp_path_factory.mktemp("wheel")
    built = done(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)], out, os.environ
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = out.glob("*.whl")
    # The last says with what Java starts quickly.
    names = ("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR", "SPARK_SUBMIT_OPTS")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    packages = sysconfig.get_paths()["purelib"]  # without what its .pth files add: a clone of ackproof
    quiet = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return Installed(wheel, {**kept, **quiet, "PYTHONPATH": packages})
