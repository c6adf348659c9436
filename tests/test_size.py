"""The size of the source by room: a limit is raised only with a line of reason in decision 41."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
#: Lines of Python, the most that each may have.
LINES_MAX: Final = {
    "harness/cli": 4_580,
    "harness/assess": 7_910,
    "harness/lab": 17_330,
    "harness/campaigns": 9_960,
    "harness/runs": 7_010,
    "harness/worlds": 21_100,
    "harness/records": 1_770,
    "harness/plan": 3_580,
    "harness/broker": 12_560,
    "harness/ground": 1_440,
    "checkers": 15_200,
    "nemesis": 5_150,
    "workloads": 11_170,
    "bench": 2_300,
    "tests": 85_800,
}


def lines_of(folder: str) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", LINES_MAX)
def test_a_room_has_no_more_lines_than_its_limit_and_no_limit_is_far_away(folder: str) -> None:
    lines = lines_of(folder)
    assert lines <= LINES_MAX[folder], f"{folder} has {lines}: cut, or raise its limit with a reason in decision 41"
    assert lines >= 0.95 * LINES_MAX[folder], f"{folder} has {lines}: lower its limit"


def test_every_room_has_a_limit() -> None:
    rooms = {f"harness/{path.parent.name}" for path in (ROOT / "harness").glob("*/__init__.py")}
    assert rooms == {folder for folder in LINES_MAX if folder.startswith("harness/")}
