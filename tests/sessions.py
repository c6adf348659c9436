"""Processes with a session of their own: a test that waits for one in vain ends all of it, and says where each was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def begun(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], errors: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Python with these arguments, which imports from this repository; ``errors`` is where it writes its errors."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=directory,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"},
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,
    )


def printed(process: subprocess.Popen[str], limit_s: float) -> tuple[str, str]:
    """Output and errors of a process at its end, which must come in time."""
    try:
        return process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGABRT)  # Python prints then what its threads wait for
        output, errors = process.communicate()
        pytest.fail(f"not over after {limit_s:.0f} s:\n{output}{errors or ''}")
