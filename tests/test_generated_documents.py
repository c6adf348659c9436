"""Pages that are made from the code are up to date; `make reference` writes them."""

from __future__ import annotations

import pytest

from scripts.reference import DIRECTORY, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == PAGES[name]()
