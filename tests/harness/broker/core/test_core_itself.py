"""The core is sans-IO: what is proved in virtual time is the code that answers on a socket."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness.broker.core
import harness.ground.observations

FORBIDDEN = {
    "asyncio",
    "concurrent",
    "datetime",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "selectors",
    "signal",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
MODULES = [Path(harness.ground.observations.__file__), *sorted(Path(harness.broker.core.__path__[0]).glob("*.py"))]


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_core_imports_no_io_time_chance_threads_or_logging(module: Path) -> None:
    names = set(imported(ast.parse(module.read_text())))
    assert not {name for name in names if name.split(".")[0] in FORBIDDEN}
    ours = ("harness.broker.core", "harness.ground.observations")
    assert all(name.startswith(ours) for name in names if name.startswith("harness"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_core_opens_prints_and_asks_nothing(module: Path) -> None:
    calls = {
        n.func.id
        for n in ast.walk(ast.parse(module.read_text()))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert not calls & {"open", "print", "input", "exec", "eval", "__import__"}


def test_the_core_is_there_to_be_looked_at() -> None:
    assert {"broker", "controller", "replica", "log"} <= {module.stem for module in MODULES}
