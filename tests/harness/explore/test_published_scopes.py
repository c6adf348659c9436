"""The published table of scopes (results/reference/explore/scopes.jsonl) is of the scopes and the core of now."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from harness.explore import Scope, exhaust, known_scopes
from workloads import PlantedBug

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explore.md").read_text(encoding="utf-8")
#: A line of the table of results: its scope, and states, transitions, depth and seconds.
ROW = re.compile(
    r"^\| ([\w/-]+)(?:, two workers)? \| .*? \| ([\d,]+) \| ([\d,]+) \| (\d+) \| ([\d,.]+) \| ([\d,]+) \|", re.MULTILINE
)


class _Measured(msgspec.Struct):
    """What a line says; the rest of it is not needed here."""

    scope: Scope
    states: int
    transitions: int
    depth: int
    processor_seconds: float
    exhausted: bool
    acknowledged: int
    broken: tuple[str, str] | None


@pytest.fixture(scope="module")
def measured() -> list[_Measured]:
    file = ROOT / "results/reference/explore/scopes.jsonl"
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


def test_the_table_of_the_page_has_the_published_counts(measured: list[_Measured]) -> None:
    *rows, last = ROW.findall(PAGE.partition("\n| scope | what happens |")[2].partition("\n\n")[0])
    assert last[0] == "tla-3", "the page says that its last line is not published"
    assert rows == [
        (
            line.scope.name,
            f"{line.states:,}",
            f"{line.transitions:,}",
            str(line.depth),
            f"{line.processor_seconds:,.1f}",
            f"{line.states / line.processor_seconds:,.0f}",
        )
        for line in measured
    ]


def test_the_page_says_of_every_planted_bug_what_a_search_sees() -> None:
    section = PAGE.partition("## Planted bugs")[2].partition("\n## ")[0]
    assert [bug for bug in get_args(PlantedBug) if bug != "none" and not re.search(rf"\b{bug}\b", section)] == []
