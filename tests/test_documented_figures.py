"""Figures of README, CHANGELOG and Makefile are those of the code and of what was measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

from checkers import Outcome
from harness.cli.hunt import BUGS
from harness.plan import read_plan
from nemesis.plan import FaultPlan
from workloads import PlantedBug

ROOT: Final = Path(__file__).parent.parent
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
CHANGELOG: Final = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven")


def test_readme_says_how_many_exercised_faults_plans_ask_for() -> None:
    plans = [read_plan(path) for path in sorted((ROOT / "plans").glob("*.toml"))]
    default = FaultPlan().exercised_min
    fewer = sorted({world.faults.exercised_min for plan in plans for world in plan.worlds} - {default})
    assert f"(`exercised_min`: {default}, but {' or '.join(map(str, fewer))} in some plans of ours" in README


def test_the_changelog_counts_planted_bugs_and_outcomes() -> None:
    bugs = len([bug for bug in get_args(PlantedBug) if bug != "none"])
    assert f"planted bugs ({len(BUGS)} of {bugs})" in CHANGELOG
    of_cells = len([outcome for outcome in Outcome if outcome is not Outcome.NOT_VALID])
    assert f"{NUMBERS[of_cells]} outcomes of a cell" in CHANGELOG
    rows = re.findall(
        r"^\| `(.*?)` \| ", README.partition("| outcome of a cell |")[2].partition("\n\n")[0], re.MULTILINE
    )
    assert len(rows) == of_cells
