"""The pages to look at: small, whole, linked, and of the kinds that the command makes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from scripts.matrix_picture import main

ROOT: Final = Path(__file__).parent.parent
EXAMPLES: Final = ROOT / "docs" / "examples"
KINDS: Final = ("campaign", "assessment", "certificate", "nights")


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_a_page_with_its_pictures_and_the_readme_leads_to_it(kind: str) -> None:
    page = (EXAMPLES / f"{kind}.html").read_text(encoding="utf-8")
    assert '<div class="verdict code-' in page
    assert len(page) < 600_000
    assert not re.search(r"/(tmp|work|home)/", page)
    pictures = [EXAMPLES / f"{kind}-{scheme}.png" for scheme in ("light", "dark")]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert f"(docs/examples/{kind}.html)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_are_small_and_no_other_files() -> None:
    files = {file.name for file in EXAMPLES.iterdir()}
    assert files == {f"{kind}{end}" for kind in KINDS for end in (".html", "-light.png", "-dark.png")}
    assert sum(file.stat().st_size for file in EXAMPLES.iterdir()) < 2_000_000


def test_the_readme_leads_to_every_finding() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    findings = sorted((ROOT / "docs" / "findings").glob("0*.md"))
    assert len(findings) == 15
    assert [page.name for page in findings if f"(docs/findings/{page.name})" not in readme] == []


def test_the_image_is_built_of_the_starter_and_the_wheel() -> None:
    done = subprocess.run(["make", "-n", "image"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "-m build --wheel" in done.stdout
    assert re.search(
        r"init ci.*\n?.*docker build --tag ackproof --file ackproof/Containerfile \.", done.stdout, re.DOTALL
    )


def test_the_picture_of_the_readme_is_drawn_of_the_kept_cells_by_day_and_by_night() -> None:
    picture = ROOT / "docs" / "matrix.svg"
    before = picture.read_text(encoding="utf-8")
    main()
    assert picture.read_text(encoding="utf-8") == before
    assert "prefers-color-scheme: dark" in before
    assert before.count("<rect ") >= 24
    assert "(docs/matrix.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
