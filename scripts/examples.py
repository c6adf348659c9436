#!/usr/bin/env python
"""Makes docs/examples: pages as ackproof writes them, and pictures of their first screens by day and by night.

From the root of a clone with the tests' programs (make setup-test): make examples. A minute; no Kafka.
"""

from __future__ import annotations

import lzma
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from harness.campaigns.campaign import witness
from harness.campaigns.report import write
from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.ground.templates import jointed
from harness.records.files import REPORT_FILE, VERDICTS_FILE
from harness.records.verdict_lines import write_matrix

EXAMPLES: Final = Path("docs/examples")
CERTIFICATE: Final = Path("results/reference/certificates/from-3.9.2-one-acknowledgement")
SCREEN: Final = {"width": 1100, "height": 600}
NIGHTS: Final = 3
CAMPAIGN: Final = """name = "example"
families = ["kill", "pause", "partition", "power"]
[settings]
min.insync.replicas = 2
[matrix]
acks = [1, "all"]
[worlds.simulated]
runs = 20
"""
#: The reference broker with a bug that nights find.
NIGHT: Final = """name = "nights"
families = ["kill", "move"]
[settings]
acks = "all"
min.insync.replicas = 2
planted.bug = "acknowledge-after-append"
[faults]
count = 2
[worlds.simulated]
workload = { writes_per_second = 20.0, duration_ms = 8_000 }
"""


def run(*arguments: str) -> None:
    """A command of ackproof; a broken promise is an answer, too."""
    if (code := exit_code_of(arguments)) not in {0, 1}:
        raise SystemExit(f"ackproof {' '.join(arguments)}: exit code {code}")


def campaign(work: Path) -> Path:
    """Two choices of settings under four families of faults, in virtual time."""
    (plan := work / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    run("campaign", str(plan), "--out", str(work / "campaign"))
    return work / "campaign" / REPORT_FILE


def assessment(work: Path) -> Path:
    """The README's question."""
    page = work / "assess.html"
    run("assess", "docs/start/topics.txt", "--producer", "acks=all", "--release", "4.3.1", "--page", str(page))
    return page


def certificate(work: Path) -> Path:
    """A kept upgrade of Kafka, with what of its run is kept."""
    copy = work / "certificate"
    shutil.copytree(CERTIFICATE, copy)
    (copy / VERDICTS_FILE).write_bytes(lzma.decompress((copy / f"{VERDICTS_FILE}.xz").read_bytes()))
    write_matrix(copy)
    witness(copy, Progress())
    return write(copy)


def nights(work: Path) -> Path:
    """Short nights of a broker with a planted bug."""
    (plan := work / "night.toml").write_text(NIGHT, encoding="utf-8")
    for night in range(1, NIGHTS + 1):
        out = work / "nights" / f"night-{night}"
        run("soak", str(plan), "--for", "10s", "--out", str(out), "--nights", str(work / "nights"))
    return out / "nights.html"


def pictures(pages: Sequence[Path]) -> None:
    """The first screen of each page, by day and by night."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        for page in pages:
            for scheme in ("light", "dark"):
                opened = browser.new_page(viewport=SCREEN, color_scheme=scheme)  # type: ignore[arg-type]
                opened.goto(page.absolute().as_uri())
                opened.screenshot(path=EXAMPLES / f"{page.stem}-{scheme}.png")
        browser.close()


def main() -> None:
    """Make all of them again."""
    EXAMPLES.mkdir(exist_ok=True)
    pages = []
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        for make in (campaign, assessment, certificate, nights):
            # The machine's own directory says nothing to a reader.
            text = make(work).read_text(encoding="utf-8")
            for written in (f"{work}/", str(jointed(f"{work}/"))):
                text = text.replace(written, "")
            (page := EXAMPLES / f"{make.__name__}.html").write_text(text, encoding="utf-8")
            pages.append(page)
    pictures(pages)


if __name__ == "__main__":
    main()
