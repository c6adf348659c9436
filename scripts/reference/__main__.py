"""Writes `docs/reference/`: `make reference`."""

from __future__ import annotations

from scripts.reference import DIRECTORY, PAGES
from scripts.reference.conformance import FILE, compared, conformance

for name, make in PAGES.items():
    (DIRECTORY / name).write_text(make(), encoding="utf-8")
FILE.write_text(conformance(compared()), encoding="utf-8")
