"""The table of planted bugs in plain hunts: it follows from the hunts that are kept, and each of those repeats."""

from __future__ import annotations

import msgspec
import pytest

from harness.lab.search import PLAIN
from harness.lab.search.hunting import alarms_of
from scripts.hunted_bugs import BUGS, TABLE, KeptHunt, kept_rows, of_bug, page_of

BY_NAME = {portfolio.name: portfolio for portfolio in PLAIN}
ROWS = kept_rows()
#: Every sixth hunt of the newest commit that found something.
REPEATED = [row for row in ROWS if row.commit == ROWS[-1].commit and row.run is not None][::6]


def row(seconds: float, run: int | None = 0, bug: str = BUGS[0]) -> KeptHunt:
    return KeptHunt(commit="c", bug=bug, seed=1, seconds=seconds, schedules=1, run=run)


def test_the_page_is_made_of_the_hunts_that_are_kept() -> None:
    assert page_of(ROWS) == TABLE.read_text(encoding="utf-8")
    assert {each.bug for each in ROWS} <= {*BUGS}
    assert len({(each.commit, each.bug, each.seed) for each in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row(1.0), row(9.0), row(3.0)], "3.0, 3 of 3"),
        ([row(60.0, None), row(9.0), row(3.0)], "9.0, 2 of 3"),
        ([row(60.0, None), row(60.0, None), row(3.0)], "not, 1 of 3"),
        ([], ""),
    ],
)
def test_a_cell_has_the_median_where_most_hunts_found_the_bug(rows: list[KeptHunt], words: str) -> None:
    assert of_bug(rows) == words


def test_a_bug_that_was_not_hunted_has_an_empty_line() -> None:
    page = page_of([row(2.0), msgspec.structs.replace(row(4.0), commit="d")])
    assert page.count("\n| `") == len(BUGS) + 1
    assert f"| `{BUGS[0]}` | 2.0, 1 of 1 | 4.0, 1 of 1 |" in page
    assert f"| `{BUGS[1]}` |  |  |" in page


@pytest.mark.parametrize("kept", REPEATED, ids=lambda kept: kept.bug)
def test_a_hunt_that_is_kept_finds_the_same_again(kept: KeptHunt) -> None:
    assert kept.run is not None
    spec = BY_NAME[kept.portfolio].spec(kept.seed, kept.run, {"planted.bug": kept.bug})
    assert tuple(alarm.by for alarm in alarms_of(spec)) == kept.by
