"""The published table of scopes (results/reference/explore/scopes.jsonl) is of the scopes and the core of now.

`python -m tests.harness.explore.test_published_scopes` writes it into docs/explore.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

import msgspec
import pytest

from harness.explore import Scope, exhaust, known_scopes
from workloads import PlantedBug

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "explore.md"
BUGS: Final = ROOT / "results/reference/explore/README.md"
#: The table of results on the page.
TABLE: Final = re.compile(r"(?<=\n\n)\| scope \| what happens \|.*?\n\n", re.DOTALL)


class Search(msgspec.Struct):
    """The fields of a line that are needed here."""

    scope: Scope
    states: int
    transitions: int
    depth: int
    processor_seconds: float
    exhausted: bool
    acknowledged: int
    broken: tuple[str, str] | None
    steps: list[object]


def published() -> list[Search]:
    file = ROOT / "results/reference/explore/scopes.jsonl"
    lines = [msgspec.json.decode(line, type=Search) for line in file.read_bytes().splitlines()]
    assert lines, f"{file} is empty"
    return lines


def table(searches: list[Search]) -> str:
    head = ["scope", "what happens", "states", "transitions", "depth", "seconds", "outcome"]
    rows = [head, ["---"] * len(head), *map(_row, searches)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n\n"


def _row(search: Search) -> list[str]:
    counts = [f"{search.states:,}", f"{search.transitions:,}", str(search.depth), f"{search.processor_seconds:,.1f}"]
    outcome = f"`{search.broken[0]}` in {len(search.steps)} steps" if search.broken else "held in all"
    return [search.scope.name, search.scope.title.partition(":")[0], *counts, outcome]


@pytest.fixture(scope="module")
def searches() -> list[Search]:
    return published()


def test_published_counts_are_of_the_scopes_as_they_are_defined_now(searches: list[Search]) -> None:
    known = known_scopes()
    for search in searches:
        # A rule that was named on the command line is no part of what may happen.
        assert msgspec.structs.replace(search.scope, rules=()) == known[search.scope.name]


def test_the_smallest_published_scope_has_as_many_states_now(searches: list[Search]) -> None:
    held = [search for search in searches if search.exhausted and search.acknowledged and search.broken is None]
    smallest = min(held, key=lambda search: search.states)
    result = exhaust(smallest.scope, workers=1)
    assert (result.states, result.transitions, result.depth) == (smallest.states, smallest.transitions, smallest.depth)


def test_the_table_of_the_page_is_that_of_the_published_searches(searches: list[Search]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert TABLE.findall(page) == [table(searches)]
    assert ("`tla-3`, three records, was searched once and has no line" in page) == (
        "tla-3" not in {search.scope.name for search in searches}
    )


def test_for_every_planted_bug_it_is_written_what_a_search_sees() -> None:
    section = BUGS.read_text(encoding="utf-8").partition("## Planted bugs")[2]
    assert [bug for bug in get_args(PlantedBug) if bug != "none" and not re.search(rf"\b{bug}\b", section)] == []


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(table(published()), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
