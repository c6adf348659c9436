"""The door of the checkers: every name is what it says, and it costs a worker nothing that it has not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import checkers


def test_every_name_is_found_where_its_import_says() -> None:
    tree = ast.parse(Path(checkers.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imported = {
        alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == checkers._HOME
    for name, home in imported.items():
        assert getattr(checkers, name) is getattr(sys.modules[str(home)], name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Chekc'"):
        checkers.Chekc  # noqa: B018


def test_a_worker_needs_neither_the_faults_nor_what_only_the_driver_needs() -> None:
    """docs/spark-cluster.md lists what workers of a cluster must have; ackproof sends checkers and workloads along."""
    code = "import sys, checkers.spark.pipeline; print(*{name.partition('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"checkers", "workloads", "numpy", "pyarrow", "msgspec"} <= set(found)
    assert not {"nemesis", "harness", "scipy", "pyspark", "networkx", "rich", "click"} & set(found)
