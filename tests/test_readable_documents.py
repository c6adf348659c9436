"""Documents can be read: short lines, short cells of tables, short sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from scripts.reference.affected import MADE
from tests.test_language import turns

ROOT: Final = Path(__file__).parent.parent


def _pages(directory: str) -> tuple[str, ...]:
    return tuple(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / directory).glob("*.md")))


DECISIONS: Final = _pages("docs/decisions")
FINDINGS: Final = _pages("docs/findings")
REFERENCE: Final = _pages("docs/reference")
GUIDES: Final = (*_pages("docs/start"), *_pages("docs/explained"), *_pages("docs/guides"))
#: Dated figures, each beside the data that it is of.
FIGURES: Final = (
    "results/reference/losses.md",
    "results/reference/measurements.md",
    "results/reference/hunt/README.md",
    "results/reference/explore/README.md",
)
KEPT: Final = (
    "README.md",
    "CHANGELOG.md",
    "docs/index.md",
    "docs/architecture.md",
    "docs/extending.md",
    "results/README.md",
    "results/reference/README.md",
    *DECISIONS,
    *FINDINGS,
    *REFERENCE,
    *GUIDES,
    *FIGURES,
)
LINE_MAX: Final = 120
CELL_MAX: Final = 120
SENTENCE_WORDS_MAX: Final = 35
#: Words of a document, without blocks of code.
WORDS_MAX: Final = {
    "README.md": 650,
    "docs/architecture.md": 700,
    "docs/extending.md": 850,
    "results/README.md": 500,
    "results/reference/README.md": 1150,  # more than half of them in tables
    **dict.fromkeys(DECISIONS, 350),
    **dict.fromkeys(FINDINGS, 600),
    **dict.fromkeys(GUIDES, 650),
    "docs/explained/method.md": 760,
}

BLOCK: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def prose(text: str) -> str:
    """The document without blocks of code and targets of links."""
    without_blocks = BLOCK.sub("", text)
    return LINK.sub(r"\1", LINK.sub(r"\1", without_blocks))


def sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*#|] ?|\d+\. )", prose(text)):
        yield from re.split(r"(?<=[.:;!?])\s+", paragraph.strip())


def cells(text: str) -> Iterator[str]:
    for line in prose(text).splitlines():
        if line.startswith("|"):
            yield from (cell.strip() for cell in line.strip("|").split("|"))


@pytest.mark.parametrize("document", KEPT)
def test_lines_cells_and_sentences_are_short(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    lines = [line for line in BLOCK.sub("", text).splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > LINE_MAX] == []
    assert [cell for cell in cells(text) if len(cell) > CELL_MAX] == []
    assert [sentence for sentence in sentences(text) if len(sentence.split()) > SENTENCE_WORDS_MAX] == []


@pytest.mark.parametrize("document", KEPT)
def test_a_document_speaks_plainly(document: str) -> None:
    assert list(turns(prose((ROOT / document).read_text(encoding="utf-8")))) == []


def test_limits_catch_what_is_too_long() -> None:
    long = "word " * (SENTENCE_WORDS_MAX + 1)
    assert max(len(sentence.split()) for sentence in sentences(f"Short.\n\n{long}end.\n\nShort.")) > SENTENCE_WORDS_MAX
    assert [len(cell) for cell in cells(f"| a | {'b' * 130} |")] == [1, 130]
    assert prose("[a link](https://example.org/" + "x" * 200 + ")") == "a link"


#: Words of README and docs/, without docs/reference/: two hours of reading, and some room.
ALL_WORDS_MAX: Final = 27_150


def words_of(document: str) -> int:
    """Words by hand: what is made of data is no reading of its own."""
    return len(re.findall(r"\w[^\s|]*", prose(MADE.sub("", (ROOT / document).read_text(encoding="utf-8")))))


@pytest.mark.parametrize("document", WORDS_MAX)
def test_a_document_is_read_to_its_end(document: str) -> None:
    assert words_of(document) <= WORDS_MAX[document]


def test_all_documents_together_are_two_hours_of_reading() -> None:
    pages = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    assert sum(words_of(page) for page in ["README.md", *pages] if page not in REFERENCE) <= ALL_WORDS_MAX
