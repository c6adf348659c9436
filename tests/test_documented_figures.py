"""Figures of documents and CHANGELOG are those of the code and of what was measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

import pytest

from checkers import Outcome
from harness.cli.hunt import BUGS
from nemesis.plan import FaultPlan
from scripts.reference.losses import FILE as MADE_OF_VERDICTS
from workloads import PlantedBug

ROOT: Final = Path(__file__).parent.parent
METHOD: Final = (ROOT / "docs" / "explained" / "method.md").read_text(encoding="utf-8")
CHANGES: Final = ROOT / "CHANGELOG.md"
CHANGELOG: Final = CHANGES.read_text(encoding="utf-8")
HUNTED: Final = (ROOT / "results" / "reference" / "hunt" / "README.md").read_text(encoding="utf-8")
#: A row of the table of planted bugs: the bug, and in how many schedules it was seen, by its portfolio.
PLANTED: Final = re.compile(r"^\| M?\d* ?\| `([\w-]+)` \| [^|]* \| ([^|]*) \| [^|]*\| (\d*) ?\|", re.MULTILINE)
#: Pages that may have figures of runs.
PAGES: Final = sorted(
    path
    for path in (ROOT / "README.md", CHANGES, *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").rglob("*.md"))
    if not path.is_relative_to(ROOT / "docs" / "reference") and path.name != "matrix.md" and path != MADE_OF_VERDICTS
)
#: The campaigns whose verdicts, or ledger, or recorded traces are kept.
LEDGERS: Final = {
    *(path.parent.name for path in (ROOT / "results" / "reference").rglob("matrix.json")),
    *("conform", "explore", "hunt", "certificates", "exactly-once"),
}
#: Columns of tables about what a log did in runs.
OF_RUNS: Final = re.compile(
    r"^\|(?=.*\b(?:p50|p99|lost|acknowledged|written twice|met writes|in faults)\b).*\|\n\|[-|: ]+\|", re.MULTILINE
)
#: Commands and scripts that print such a table again.
PRINTED_BY: Final = re.compile(
    r"ackproof (?:compare|finding|hunt)\b|python -m bench|make bench|-m tests\.|tests/[\w/]+\.py"
)
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
    said = dict(re.findall(r"`make (\w+)`[^(`]*\((\w+) minutes\)", readme))
    assert said.keys() == {"campaign", "test"}
    targets = re.findall(r"^(\w+):.*## [^(\n]*\(.*?(\w+) minutes", makefile, re.MULTILINE)
    assert {target: minutes for target, minutes in targets if target in said} == said


def sections_of(page: Path) -> list[str]:
    """The parts of a page, each with its title; without blocks of code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.split(r"^(?=#+ )", text, flags=re.MULTILINE)


def names_a_ledger(text: str) -> bool:
    """True if a text names a campaign whose verdicts are kept, or the beginning that several have in common."""
    words = set(re.findall(r"\w+(?:-\w+(?:\.\d+)*)*", text))
    return any(name in words or any("-" in word and name.startswith(f"{word}-") for word in words) for name in LEDGERS)


def test_pages_with_figures_are_looked_at() -> None:
    assert {"README.md", "measurements.md", "005-restart-forgets-batches.md", "kafka-stories.md"} <= {
        page.name for page in PAGES
    }
    assert {"kafka-prices-java", "night", "missed-epoch", "delivery-java"} <= LEDGERS
    assert "delivery" not in LEDGERS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_table_about_runs_names_the_verdicts_it_is_made_of_or_the_command_that_prints_it(page: Path) -> None:
    finding = page.is_relative_to(ROOT / "docs" / "findings") and PRINTED_BY.search(page.read_text(encoding="utf-8"))
    tables = [section for section in sections_of(page) if OF_RUNS.search(section)]
    without = [section for section in tables if not (finding or PRINTED_BY.search(section) or names_a_ledger(section))]
    assert [section.splitlines()[0] for section in without] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_dated_figure_of_a_plan_has_its_verdicts(page: Path) -> None:
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*] )", "".join(sections_of(page))):
        plans = re.findall(r"plans/([\w-]+)\.toml", paragraph)
        if plans and re.search(r"20\d\d-\d\d-\d\d", paragraph):
            assert {*plans} <= LEDGERS, paragraph


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_has_figures_of_runs_that_were_not_kept(page: Path) -> None:
    words = " ".join(page.read_text(encoding="utf-8").split())
    assert re.findall(r".{40}\b(?:runs?|ledgers?|verdicts|which) (?:was|were) not kept\b", words) == []
