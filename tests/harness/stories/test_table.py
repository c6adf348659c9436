"""Every story in every column comes out as its file expects it."""

from __future__ import annotations

import pytest

from harness.stories import COLUMNS, known_stories, perform_cell

STORIES = known_stories()


@pytest.mark.parametrize("number", STORIES)
def test_a_story_ends_as_expected_in_every_column(number):
    """An expected loss is worth as much as an expected rescue: a cluster that never loses anything proves nothing."""
    cells = [perform_cell(STORIES[number], name) for name, column in COLUMNS.items() if column.settings is not None]
    assert {cell.column: cell.disagreements for cell in cells if cell.disagreements} == {}
