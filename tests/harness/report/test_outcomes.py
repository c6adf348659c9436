"""Every outcome that a cell can have looks like nothing else, with and without colour."""

from __future__ import annotations

from checkers.verdicts.outcome import OF_CELLS
from harness.report.outcomes import LEGEND, STYLES, UNPROMISED


def test_every_outcome_of_a_cell_has_a_style() -> None:
    assert set(STYLES) == set(OF_CELLS)
    assert set(LEGEND) == {*STYLES.values(), UNPROMISED}


def test_no_two_outcomes_share_sign_word_or_colour() -> None:
    for unlike in ("sign", "word", "name", "background"):
        assert len({getattr(style, unlike) for style in LEGEND}) == len(LEGEND)
    assert len(set(LEGEND.values())) == len(LEGEND)
