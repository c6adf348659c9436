"""Pages of findings and reports about them: their parts in order, and the files that a report hands over."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

from harness.ground.known_defects import ProductFinding, product_findings

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = ROOT / "docs" / "findings"
REPORTS: Final = PAGES / "reports"
PARTS: Final = [
    "Who is affected, and what to do",
    "See it",
    "What happens",
    "Why",
    "Releases",
    "Known before",
]
PARTS_OF_A_REPORT: Final = [
    "Versions",
    "The promise",
    "Steps",
    "Observed and expected",
    "Logs",
    "Cause",
    "Cure",
    "Objections",
    "Known before",
]
#: The findings that are new, or whose consequence is.
TO_BE_REPORTED: Final = {"002", "006", "007", "008", "010", "011", "014", "015"}
#: Lines of a script.
LINES_MAX: Final = 80
FINDINGS: Final = product_findings()
SCRIPTS: Final = sorted(REPORTS.rglob("*.py"))


def parts_of(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("finding", FINDINGS.values(), ids=FINDINGS.keys())
def test_a_page_says_first_what_to_do_and_then_how_to_see_it(finding: ProductFinding) -> None:
    page = PAGES / finding.page
    text = page.read_text(encoding="utf-8")
    assert parts_of(page) == PARTS
    beginning = f"# {finding.title}\n\n## {PARTS[0]}\n"
    assert text.lower().startswith(beginning.lower())
    assert len(re.findall(r"^Reported: ", text, re.MULTILINE)) == 1
    assert f"\nackproof finding {finding.number}" in text.split("\n## ")[2]


def test_each_finding_that_is_new_has_a_report_and_its_page_leads_there() -> None:
    assert {report.stem for report in REPORTS.glob("*.md")} == TO_BE_REPORTED
    without = [
        number
        for number in TO_BE_REPORTED
        if f"([report](reports/{number}.md))" not in (PAGES / FINDINGS[number].page).read_text(encoding="utf-8")
    ]
    assert without == []


@pytest.mark.parametrize("number", sorted(TO_BE_REPORTED))
def test_a_report_has_all_parts_and_hands_over_each_of_its_files(number: str) -> None:
    report = REPORTS / f"{number}.md"
    text = report.read_text(encoding="utf-8")
    assert parts_of(report) == PARTS_OF_A_REPORT
    assert not re.search(r"\{[A-Z]+\}", text)
    named = set(re.findall(rf"\]\(({number}/[\w./-]+)\)", text))
    assert named == {path.relative_to(REPORTS).as_posix() for path in (REPORTS / number).iterdir()} - {
        f"{number}/__pycache__"
    }
    linked = [target for target in re.findall(r"\]\((?!https?:)([^)#]+)", text) if not (REPORTS / target).exists()]
    assert linked == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(REPORTS).as_posix())
def test_a_script_is_short_needs_nothing_of_this_project_and_can_be_executed(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_MAX
    imported = set(re.findall(r"^ *(?:from|import) (\w+)", text, re.MULTILINE))
    assert imported
    assert imported.isdisjoint(path.name for path in ROOT.iterdir() if path.is_dir())
    assert os.access(script, os.X_OK) == (script.name == "show.py") == text.startswith("#!")


def test_every_report_has_a_script() -> None:
    assert {script.parent.name for script in SCRIPTS if script.name == "show.py"} == TO_BE_REPORTED
