"""The door of the checkers costs a worker, and a command, no library that they have not or do not use."""

from __future__ import annotations

import subprocess
import sys


def test_a_worker_needs_nothing_that_only_the_driver_has() -> None:
    """docs/guides/spark-cluster.md lists what workers of a cluster must have; ackproof sends its own packages along."""
    code = "import sys, checkers.spark.pipeline; print(*{name.partition('.')[0] for name in sys.modules})"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"checkers", "nemesis", "workloads", "numpy", "pyarrow", "msgspec"} <= set(modules)
    assert not {"harness", "scipy", "pyspark", "networkx", "rich", "click"} & set(modules)
