"""A command loads what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("kafka", "confluent_kafka", "pyspark", "networkx", "paramiko", "scipy")
#: The modules that a worker process imports for a run in virtual time.
WORKER = "harness.runs.run.performing, harness.worlds.simulated"


@pytest.mark.parametrize("modules", ["harness.cli.run", WORKER])
def test_a_run_in_virtual_time_waits_for_no_library_that_it_does_not_use(modules: str) -> None:
    script = f"import sys, {modules}; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
