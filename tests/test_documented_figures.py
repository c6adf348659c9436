"""Figures of documents and CHANGELOG are those of the code and of what was measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

from checkers import Outcome
from harness.cli.hunt import BUGS
from nemesis.plan import FaultPlan
from workloads import PlantedBug

ROOT: Final = Path(__file__).parent.parent
METHOD: Final = (ROOT / "docs" / "explained" / "method.md").read_text(encoding="utf-8")
CHANGELOG: Final = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
HUNTED: Final = (ROOT / "results" / "reference" / "hunt" / "README.md").read_text(encoding="utf-8")
#: A row of the table of planted bugs: the bug, and in how many schedules it was seen, by its portfolio.
PLANTED: Final = re.compile(r"^\| M?\d* ?\| `([\w-]+)` \| [^|]* \| ([^|]*) \| [^|]*\| (\d*) ?\|", re.MULTILINE)
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven")


def test_method_says_how_many_exercised_faults_a_plan_asks_for_by_default() -> None:
    assert f"(`exercised_min`, by default {FaultPlan().exercised_min})" in METHOD


def test_the_changelog_counts_planted_bugs_and_outcomes() -> None:
    bugs = len([bug for bug in get_args(PlantedBug) if bug != "none"])
    assert f"planted bugs ({len(BUGS)} of {bugs})" in CHANGELOG
    of_cells = len([outcome for outcome in Outcome if outcome is not Outcome.NOT_VALID])
    assert f"{NUMBERS[of_cells]} outcomes of a cell" in CHANGELOG


def test_the_table_of_hunts_has_every_planted_bug_and_its_page_counts_them() -> None:
    rows = PLANTED.findall(HUNTED)
    assert {bug for bug, _, _ in rows} == {bug for bug in get_args(PlantedBug) if bug != "none"}
    schedules = [int(number) for _, seen_by, number in rows if number and not seen_by.startswith("nothing")]
    assert f"{len(schedules)} of {len(rows)} are found in {min(schedules)} to {max(schedules)}\nschedules" in HUNTED


def test_readme_and_makefile_say_the_same_of_how_long_a_target_takes() -> None:
    readme, makefile = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
    said = dict(re.findall(r"^- `make (\w+)`[^(]*\((\w+) minutes\)", readme, re.MULTILINE))
    assert said.keys() == {"campaign", "test"}
    targets = re.findall(r"^(\w+):.*## [^(\n]*\(.*?(\w+) minutes", makefile, re.MULTILINE)
    assert {target: minutes for target, minutes in targets if target in said} == said
