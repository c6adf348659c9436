"""Pages that are made from the code are up to date; `make reference` writes them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from harness.cli.campaign import campaign
from harness.ground.known_defects import ProductFinding, product_findings
from scripts.reference import DIRECTORY, PAGES, affected


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == PAGES[name]()


def test_the_page_of_commands_does_not_depend_on_a_command_that_was_called_by_itself() -> None:
    assert "Show this message" in CliRunner().invoke(campaign, ["--help"]).output
    assert (DIRECTORY / "commands.md").read_text(encoding="utf-8") == PAGES["commands.md"]()


@pytest.mark.parametrize("finding", product_findings().values(), ids=lambda finding: finding.number)
def test_the_page_of_a_finding_says_first_who_is_affected_and_what_to_do(finding: ProductFinding) -> None:
    page = (affected.PAGES / finding.page).read_text(encoding="utf-8")
    assert page == affected.with_affected(page, finding)
    first = page.split("\n## ")[1]
    assert first.startswith(f"Who is affected, and what to do\n\n{affected.BEGIN}\n")
    assert "\nReported: " in first
