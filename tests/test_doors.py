"""Packages with a door are entered through it: nothing in the source imports past ``__init__.py`` but itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

#: All of these look at the same imports, which one worker keeps.
pytestmark = pytest.mark.xdist_group("doors")
SOURCE = Path(__file__).parents[1]
PACKAGES = ("checkers", "harness", "nemesis", "workloads")
#: Each package with a door, and the modules of it that others import besides: they are contracts, or large.
DOORS: dict[str, tuple[str, ...]] = {
    "checkers": (),
    "harness.assess": (),
    "harness.campaigns.campaign": (),
    "harness.worlds.clients": ("programs",),
    "harness.runs.cluster": (),
    "harness.campaigns.comparison": (),
    "harness.lab.client_check": (),
    "harness.lab.client_table": (),
    "harness.lab.conform": (),
    "harness.lab.explore": (),
    "harness.lab.findings": (),
    "harness.plan": (),
    "harness.campaigns.report": (),
    "harness.runs.run": (),
    "harness.lab.search": (),
    "harness.campaigns.soak": (),
    "harness.runs.stories": (),
    "nemesis.faults": (),
    "nemesis.scenarios": (),
    "workloads": ("driver", "garbage_collection", "history", "values"),
    "workloads.history": (),
}


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
                    yield from ((name, _imported(node.module, alias.name)) for alias in node.names)
                elif isinstance(node, ast.Import):
                    yield from ((name, alias.name) for alias in node.names)


def _imported(module: str, name: str) -> str:
    """The module that ``from module import name`` reaches: ``module``, or its part ``name`` where that is a module."""
    package = SOURCE.joinpath(*module.split("."))
    part = package / name
    is_module = part.with_suffix(".py").is_file() or (part / "__init__.py").is_file()
    return f"{module}.{name}" if is_module and name not in _given(package / "__init__.py") else module


@cache
def _given(door: Path) -> set[str]:
    """The names that a package imports for others: a function may have the name of its module."""
    nodes = ast.walk(ast.parse(door.read_text()))
    return {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


@pytest.mark.parametrize("door", DOORS)
def test_nothing_imports_past_a_door(door: str) -> None:
    opened = tuple(f"{door}.{module}" for module in DOORS[door])
    past = [
        (by, module)
        for by, module in imports()
        if module.startswith(f"{door}.") and not f"{by}.".startswith(f"{door}.") and not module.startswith(opened)
    ]
    assert past == []
