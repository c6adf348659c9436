"""The published table of scopes (results/reference/explore/scopes.jsonl) is of the scopes and the core of now."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.explore import Scope, exhaust, known_scopes


class _Measured(msgspec.Struct):
    """What a line says; the rest of it is not needed here."""

    scope: Scope
    states: int
    transitions: int
    depth: int
    exhausted: bool
    acknowledged: int
    broken: tuple[str, str] | None


@pytest.fixture(scope="module")
def measured() -> list[_Measured]:
    file = Path(__file__).parents[3] / "results/reference/explore/scopes.jsonl"
    lines = [msgspec.json.decode(line, type=_Measured) for line in file.read_bytes().splitlines()]
    assert lines, f"{file} is empty"
    return lines


def test_published_counts_are_of_the_scopes_as_they_are_defined_now(measured: list[_Measured]) -> None:
    known = known_scopes()
    for line in measured:
        # A rule that was named on the command line is no part of what may happen.
        assert msgspec.structs.replace(line.scope, rules=()) == known[line.scope.name]


def test_the_smallest_published_scope_has_as_many_states_now(measured: list[_Measured]) -> None:
    held = [line for line in measured if line.exhausted and line.acknowledged and line.broken is None]
    smallest = min(held, key=lambda line: line.states)
    result = exhaust(smallest.scope, workers=1)
    assert (result.states, result.transitions, result.depth) == (smallest.states, smallest.transitions, smallest.depth)
