#!/usr/bin/env python
"""Draws docs/matrix.png, the matrix of the README: the rows about real Kafka that differ, photographed in a browser.

From the root of a clone with the tests' programs (make setup-test): .venv/bin/python scripts/matrix-picture.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from playwright.sync_api import sync_playwright

from harness.records.verdict_lines import read_matrix
from harness.report.page import content_of, render

CAMPAIGN: Final = Path("results/reference/kafka-default")
PICTURE: Final = Path("docs/matrix.png")
WIDTH_PX: Final = 1080
#: Settings of the rows that are shown, and their two settings that differ.
SAME: Final = {"min.insync.replicas": 2, "enable.idempotence": False}
ACKS, UNCLEAN = "acks", "unclean.leader.election.enable"
ROWS: Final = ((0, False), (1, False), ("all", False), ("all", True))


def main() -> None:
    """Render the cells that were run on Apache Kafka, and take a picture of their table."""
    matrix = read_matrix(CAMPAIGN)
    cells = [
        msgspec.structs.replace(cell, label={name: cell.settings[name] for name in (ACKS, UNCLEAN)})
        for cell in matrix.cells
        if cell.world == "kafka"
        and SAME.items() <= cell.settings.items()
        and (cell.settings[ACKS], cell.settings[UNCLEAN]) in ROWS
    ]
    content = content_of(matrix.verdict, cells, [], [])
    page = render(
        title="",
        campaign={},
        plan="",
        setups=[],
        definitions={},
        wedged=[],
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
