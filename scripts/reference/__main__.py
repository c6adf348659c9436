"""Writes `docs/reference/`: `make reference`."""

from __future__ import annotations

from scripts.reference import DIRECTORY, PAGES

for name, make in PAGES.items():
    (DIRECTORY / name).write_text(make(), encoding="utf-8")
