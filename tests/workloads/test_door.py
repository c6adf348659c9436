"""The doors of workloads: what they cost whoever imports them."""

import subprocess
import sys

import workloads
import workloads.history


def test_every_name_of_the_doors_is_there() -> None:
    for door in (workloads, workloads.history):
        assert all(hasattr(door, name) for name in door.__all__)


def test_a_worker_that_reads_histories_needs_no_library_of_the_driver() -> None:
    """docs/guides/spark-cluster.md lists what a cluster's workers must have; payloads' checksums are not in it."""
    code = "import sys, workloads.history; print(*{name.partition('.')[0] for name in sys.modules})"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"workloads", "numpy", "pyarrow", "msgspec"} <= set(modules)
    assert not {"crc32c", "harness", "nemesis", "checkers"} & set(modules)
