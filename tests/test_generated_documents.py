"""Pages that are made from the code are up to date; `make reference` writes them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from harness.cli.campaign import campaign
from scripts.reference import DIRECTORY, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == PAGES[name]()


def test_the_page_of_commands_does_not_depend_on_a_command_that_was_called_by_itself() -> None:
    assert "Show this message" in CliRunner().invoke(campaign, ["--help"]).output
    assert (DIRECTORY / "commands.md").read_text(encoding="utf-8") == PAGES["commands.md"]()
