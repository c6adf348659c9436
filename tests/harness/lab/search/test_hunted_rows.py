"""The table of planted bugs (results/reference/hunt/README.md): each row's run is performed again, and controls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from harness.lab.search import EVERYTHING
from harness.lab.search.hunting import alarms_of, without

PAGE: Final = Path(__file__).parents[4] / "results" / "reference" / "hunt" / "README.md"
SEED: Final = 7
NUMBERS: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "six": 6}
#: A row whose run is named: bug, what it is seen by, portfolio, schedules, run.
ROW: Final = re.compile(
    r"^\|[^|]*\| `([\w-]+)` \|[^|]*\|([^|]*)\| ([\w.-]+) \| (\d+) \|[^|]*\| (\d+) \|$", re.MULTILINE
)
ROWS: Final = ROW.findall(PAGE.read_text(encoding="utf-8"))
#: The controls that are performed: of every third row.
CONTROLLED: Final = {row[0] for row in ROWS[::3]}
PORTFOLIOS: Final = {portfolio.name: portfolio for portfolio in EVERYTHING}


@pytest.mark.parametrize(
    ("bug", "seen_by", "portfolio", "schedules", "run"),
    [pytest.param(*row, id=row[0], marks=pytest.mark.system if index % 2 else ()) for index, row in enumerate(ROWS)],
)
def test_a_row_is_seen_by_what_it_says_and_controls_are_silent(
    bug: str, seen_by: str, portfolio: str, schedules: str, run: str
) -> None:
    changed = {"planted.bug": bug}
    spec = PORTFOLIOS[portfolio].spec(SEED, int(run), changed)
    seen = {alarm.by for alarm in alarms_of(spec)}
    named = set(re.findall(r"`([\w-]+)`", seen_by))
    others = re.search(r"(\w+) (?:other )?(?:anomalies|divergences)", seen_by)
    assert named <= seen
    assert len(seen - named) == (NUMBERS[others[1]] if others else 0), sorted(seen - named)
    assert int(schedules) == int(run) + 1
    assert bug not in CONTROLLED or alarms_of(without(spec, changed)) == ()


def test_every_row_that_was_found_names_its_run() -> None:
    with_finding = re.findall(
        r"^\|[^|]*\| `[\w-]+` \|[^|]*\| `[^|]*\|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(ROWS) == len(with_finding) > 40
