"""Packages with a door are entered through it: nothing in the source imports past ``__all__`` but itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1]
PACKAGES = ("checkers", "harness", "nemesis", "workloads")
DOORS = (
    "harness.campaign",
    "harness.cluster",
    "harness.comparison",
    "harness.explore",
    "harness.plan",
    "harness.report",
    "harness.run",
    "harness.search",
    "harness.soak",
    "harness.stories",
)


@cache
def imports() -> tuple[tuple[str, str], ...]:
    """Every import of the source: the importing module, and the imported one."""
    return tuple(_imports())


def _imports() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in (SOURCE / package).rglob("*.py"):
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield name, node.module
                elif isinstance(node, ast.Import):
                    yield from ((name, alias.name) for alias in node.names)


@pytest.mark.parametrize("door", DOORS)
def test_nothing_imports_past_a_door(door: str) -> None:
    past = [(by, what) for by, what in imports() if what.startswith(f"{door}.") and not f"{by}.".startswith(f"{door}.")]
    assert past == []
