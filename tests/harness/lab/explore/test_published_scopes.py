"""The published table of scopes (results/reference/explore/scopes.jsonl) is of the scopes and the core of now.

`python -m tests.harness.lab.explore.test_published_scopes` writes it into docs/guides/explore.md, and that of scopes
with a coordinator into the page beside the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import pytest

from harness.lab.explore import Limits, Scope, exhaust, known_scopes, scope_named
from workloads import PlantedBug

ROOT: Final = Path(__file__).parents[4]
PAGE: Final = ROOT / "results/reference/explore/README.md"
GUIDE: Final = ROOT / "docs/guides/explore.md"
#: A table of results on the page.
TABLE: Final = re.compile(r"(?<=\n\n)\| scope \| what happens \|.*?\n\n", re.DOTALL)
#: The columns of the tables.
FEW: Final = ("scope", "what happens", "states", "seconds", "outcome")
ALL: Final = ("scope", "what happens", "states", "transitions", "depth", "seconds", "outcome")


class Search(msgspec.Struct):
    """The fields of a line that are needed here."""

    scope: Any
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
    lines = [_search(msgspec.json.decode(line)) for line in file.read_bytes().splitlines()]
    assert lines, f"{file} is empty"
    return lines


def _search(line: dict[str, Any]) -> Search:
    """A line, whose scope is of the kind that the scope of this name has now."""
    search = msgspec.convert(line, Search)
    kind = type(known_scopes()[search.scope["name"]])
    return msgspec.structs.replace(search, scope=msgspec.convert(search.scope, kind))


def table(searches: list[Search], columns: tuple[str, ...]) -> str:
    rows = [columns, ["---"] * len(columns), *([_row(search)[column] for column in columns] for search in searches)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n\n"


def _row(search: Search) -> dict[str, str]:
    return {
        "scope": search.scope.name,
        "what happens": search.scope.title.partition(":")[0],
        "states": f"{search.states:,}",
        "transitions": f"{search.transitions:,}",
        "depth": str(search.depth),
        "seconds": f"{search.processor_seconds:,.1f}",
        "outcome": f"`{search.broken[0]}` in {len(search.steps)} steps" if search.broken else "held in all",
    }


@pytest.fixture(scope="module")
def searches() -> list[Search]:
    return published()


def test_published_counts_are_of_the_scopes_as_they_are_defined_now(searches: list[Search]) -> None:
    scopes = known_scopes()
    for search in searches:
        # A rule that was named on the command line is no part of what may happen.
        assert msgspec.structs.replace(search.scope, rules=()) == scopes[search.scope.name]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.system) if kind == "GroupScope" else kind
        for kind in sorted({type(scope).__name__ for scope in known_scopes().values()})
    ],
)
def test_the_smallest_published_scope_of_each_kind_has_as_many_states_now(searches: list[Search], kind: str) -> None:
    of_kind = [search for search in searches if type(search.scope).__name__ == kind]
    held = [search for search in of_kind if search.exhausted and search.acknowledged and search.broken is None]
    smallest = min(held, key=lambda search: search.states)
    result = exhaust(smallest.scope, workers=1)
    assert (result.states, result.transitions, result.depth) == (smallest.states, smallest.transitions, smallest.depth)


@pytest.mark.parametrize(("name", "column"), [("tla-1", 1), ("tla-2", 2), ("tla-3", 3)])
def test_the_largest_scopes_begin_as_was_published(name: str, column: int) -> None:
    """Their searches take up to hours. Of twelve planted bugs that were tried seven change these first counts."""
    row = re.search(r"^\| 4 \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    states = int(row[1].split("|")[column - 1].replace(",", ""))
    result = exhaust(scope_named(name), limits=Limits(states=states), workers=1)
    assert (result.states, result.depth) == (states, 4)


def tables(searches: list[Search]) -> list[str]:
    """The tables of the page: of replication, and of scopes with a coordinator."""
    replicated = [search for search in searches if isinstance(search.scope, Scope)]
    others = [search for search in searches if not isinstance(search.scope, Scope)]
    return [table(replicated, FEW), table(others, ALL)]


def test_the_tables_of_the_page_are_those_of_the_published_searches(searches: list[Search]) -> None:
    assert TABLE.findall(PAGE.read_text(encoding="utf-8")) == tables(searches)


def test_the_guide_explains_every_constant() -> None:
    page = GUIDE.read_text(encoding="utf-8").partition("## Scopes")[2].partition("## In reports")[0]
    constants = {name for scope in known_scopes().values() for name in msgspec.to_builtins(scope.constants)}
    assert [name for name in sorted(constants) if f"`{name}`" not in page] == []


def test_a_search_without_a_line_is_named(searches: list[Search]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert ("`tla-3`, three records, was searched once and has no line" in page) == (
        "tla-3" not in {search.scope.name for search in searches}
    )


def test_for_every_planted_bug_it_is_written_what_a_search_sees() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Planted bugs")[2]
    assert [bug for bug in get_args(PlantedBug) if bug != "none" and not re.search(rf"\b{bug}\b", section)] == []


if __name__ == "__main__":
    replacing = iter(tables(published()))
    PAGE.write_text(TABLE.sub(lambda _: next(replacing), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
