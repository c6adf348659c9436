"""Every outcome that a cell can have looks like nothing else, with and without colour."""

from __future__ import annotations

import re
from pathlib import Path

from checkers.verdicts.outcome import OF_CELLS
from harness.campaigns.report.outcomes import ALL_STYLES, STYLES

ROOT = Path(__file__).parents[4]


def test_every_outcome_of_a_cell_has_a_style_with_its_word() -> None:
    assert {outcome: str(outcome) for outcome in OF_CELLS} == {key: style.word for key, style in STYLES.items()}


def test_no_two_looks_share_sign_name_meaning_or_colour() -> None:
    for unlike in ("sign", "name", "meaning", "background"):
        assert len({getattr(style, unlike) for style in ALL_STYLES}) == len(ALL_STYLES)


def test_readme_has_the_words_and_meanings_of_the_page() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| outcome of a cell |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(.*?)` \| (.*) \|$", table, re.MULTILINE)
    assert sorted(rows) == sorted((style.word, style.meaning) for style in STYLES.values())
