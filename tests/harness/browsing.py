"""A page in a headless browser: what it says, asks for and complains about."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

LIMIT_S = 240.0


class Opened:
    """A page in a window of its own, and what it said, asked for and complained about."""

    def __init__(self, browser: Browser, file: Path, *, scheme: str = "light", scripts: bool = True) -> None:
        viewport = {"width": 1000, "height": 800}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, java_script_enabled=scripts)  # type: ignore[arg-type]
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())

    def wait(self, condition: str) -> None:
        """Ask again and again; the driver's own way needs an eval, which the page forbids."""
        until = time.monotonic() + LIMIT_S
        while not self.page.evaluate(condition):
            assert time.monotonic() < until, condition
            self.page.wait_for_timeout(30)

    def close(self) -> None:
        self.page.context.close()


@contextmanager
def browsing() -> Iterator[Browser]:
    """The browser that is installed, else the driver's own."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next(filter(None, map(shutil.which, names)), None)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=program, args=arguments)
        except Error as error:
            pytest.skip(f"needs Chromium: {error}")
        yield started
        started.close()
