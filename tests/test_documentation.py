"""Modules and rooms that the documentation names are there, and docs/architecture.md names every room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PACKAGES = ("harness", "checkers", "nemesis", "workloads")
#: From the root, in text and in pictures.
PATH = re.compile(rf"(?<![\w/.])(?:{'|'.join((*PACKAGES, 'tests', 'docs', 'plans'))})/[\w/.*-]*\w")
DOCUMENTS = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _named(document: Path) -> list[str]:
    return sorted(set(PATH.findall(document.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("document", "path"),
    [(document.relative_to(ROOT).as_posix(), path) for document in DOCUMENTS for path in _named(document)],
)
def test_what_the_documentation_names_is_there(document: str, path: str) -> None:
    assert list(ROOT.glob(path)), f"{document} names {path}"


@pytest.mark.parametrize(
    "room",
    sorted(
        file.parent.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).glob("*/__init__.py")
    ),
)
def test_the_architecture_names_every_room(room: str) -> None:
    assert f"`{room}/" in ARCHITECTURE.read_text(encoding="utf-8")
