#!/usr/bin/env python
"""Draws docs/matrix.png, the matrix of the README: losses on real Kafka by client and settings, as a browser shows it.

From the root of a clone with the tests' programs (make setup-test): .venv/bin/python scripts/matrix-picture.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from playwright.sync_api import sync_playwright

from checkers import Cell
from harness.campaigns.report.page import content_of, render
from scripts.reference.losses import CAMPAIGNS, kept_matrix, rows_of

PICTURE: Final = Path("docs/matrix.png")
WIDTH_PX: Final = 1080
#: The settings in which rows differ; the client is before them.
DIFFER: Final = ("acks", "enable.idempotence", "unclean.leader.election.enable")


def cells_shown() -> Iterator[Cell]:
    """The cells of the picture, each with the client and the settings of its row as its label."""
    for row in (row for campaign in CAMPAIGNS for row in rows_of(campaign)):
        label = {"client": row.client, **{name: row.settings[name] for name in DIFFER}}
        # Cells of older versions lack newer settings; the picture shows none of these.
        yield from (msgspec.structs.replace(cell, label=label, settings=row.settings) for cell in row.cells.values())


def main() -> None:
    """Render the cells that were run on Apache Kafka, and take a picture of their table."""
    content = content_of(kept_matrix(CAMPAIGNS[0]).verdict, list(cells_shown()), [], [])
    page = render(
        title="",
        campaign={},
        plan="",
        setups=[],
        definitions={},
        wedged=[],
        certificates=[],
        seen={},
        left_out=[],
        other=None,
        **content,
    )
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file, sync_playwright() as driver:
        file.write(page)
        file.flush()
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        opened = browser.new_page(viewport={"width": WIDTH_PX, "height": 1200})
        opened.goto(Path(file.name).as_uri())
        opened.locator(".matrix").screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
