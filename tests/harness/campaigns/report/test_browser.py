"""The page in a headless browser: it draws, fits, leads from the matrix to a story and back, and asks nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from checkers import Latency, WritesOverTime
from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.report import write
from harness.records.verdict_lines import write_matrix
from tests.harness.browsing import Opened, browsing
from tests.harness.campaigns.report.conftest import empty_campaign, make_hostile
from workloads.settings import Settings

pytestmark = pytest.mark.system

STEPS = WritesOverTime(
    begun_us=0, step_us=500_000, acknowledged=[9] * 20, rejected=[1] * 20, unknown=[0] * 20, slowest_us=[5_000] * 20
)
TAKEN = Latency(calm={80: 98}, in_fault={160: 2}, workload_us=10_000_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as started:
        yield started


def written(directory: Path) -> Path:
    write_matrix(directory)
    choose_witnesses(directory)
    return write(directory)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with losses that the settings permit and forbid, and cells that held, in two worlds."""
    directory, make = empty_campaign(tmp_path_factory.mktemp("page"))
    for world in ("processes", "simulated"):
        for family in ("kill", "pause", "partition", "power"):
            for acks in (0, 1):
                whole = family == "kill"
                more = {"latency": TAKEN, "over_time": STEPS, "history": whole, "cluster": whole}
                make(Settings(acks=acks), world=world, family=family, lost=3, **more)
            make(Settings(min_insync_replicas=2), world=world, family=family, latency=TAKEN)
    make(Settings(min_insync_replicas=2), seed=8, family="kill", lost=1, history=True, cluster=True, over_time=STEPS)
    return written(directory)


@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 25, 29)")])
def test_the_page_fits_draws_and_asks_nobody(browser: Browser, file: Path, scheme: str, ground: str) -> None:
    opened = Opened(browser, file, scheme=scheme)
    page = opened.page
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    page.evaluate("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")
    for width in (1600, 1000, 420, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = "[...document.querySelectorAll('.chart')].map(chart => chart.querySelector('svg').getBBox().width > 300)"
    assert page.evaluate(drawn).count(True) == page.locator(".chart").count() > 3
    assert opened.complaints == []
    assert opened.requests == [file.as_uri()]
    opened.close()


def test_on_paper_nothing_is_cut_off(browser: Browser, file: Path) -> None:
    opened = Opened(browser, file, scripts=False)
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 1046, "height": 718})  # A4, landscape, without its margins
    wide = "[...document.querySelectorAll('table')].filter(table => table.getBoundingClientRect().right > 1047).length"
    assert opened.page.evaluate(wide) == 0
    opened.close()


def test_a_click_leads_from_the_matrix_to_a_story_and_back(browser: Browser, file: Path) -> None:
    opened = Opened(browser, file)
    page = opened.page
    cell = page.locator(".matrix a", has_text="lost").first
    cell.click()
    panel = page.locator("details:target")
    assert panel.evaluate("panel => panel.open")
    assert "A write that was acknowledged is gone" in panel.inner_text()
    assert panel.locator(".chart svg").count() == 2
    assert panel.locator("summary").evaluate("one => one.getBoundingClientRect().top") < 400
    panel.get_by_text("back to the matrix").click()
    assert cell.evaluate("one => document.activeElement === one")
    assert opened.complaints == []
    opened.close()


def test_the_matrix_is_walked_and_left_by_keys(browser: Browser, file: Path) -> None:
    opened = Opened(browser, file)
    page = opened.page
    page.locator(".matrix a").first.focus()
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    cell_id = page.evaluate("document.activeElement.id")
    assert cell_id == page.locator(".matrix tbody tr").nth(1).locator("a").nth(1).get_attribute("id")
    page.keyboard.press("Enter")
    opened.wait("document.activeElement.tagName === 'SUMMARY'")
    assert page.evaluate("'at-' + document.activeElement.parentElement.id") == cell_id
    page.keyboard.press("Escape")
    opened.wait(f"document.activeElement.id === '{cell_id}'")
    opened.close()


def test_paper_shows_everything_by_day(browser: Browser, file: Path) -> None:
    opened = Opened(browser, file, scheme="dark")
    page = opened.page
    assert page.pdf().startswith(b"%PDF")
    assert page.locator("details:not([open])").count() == 0
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.complaints == []
    opened.close()


def test_without_scripts_the_page_shows_its_charts_and_paper_shows_everything(browser: Browser, file: Path) -> None:
    opened = Opened(browser, file, scripts=False)
    page = opened.page
    assert page.locator("#rates ~ .chart svg").is_visible()
    folded = page.locator("details:not([open]) .inside svg").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.bounding_box() is not None
    assert page.pdf().startswith(b"%PDF")
    opened.close()


def test_markup_in_names_values_and_errors_executes_nothing(browser: Browser, tmp_path: Path) -> None:
    directory, make = empty_campaign(tmp_path)
    make_hostile(directory, make)
    opened = Opened(browser, written(directory))
    page = opened.page
    page.evaluate("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")
    page.mouse.move(400, 300)
    assert page.evaluate("window.executed") is None
    assert page.locator("main img").count() == 0
    assert opened.complaints == []
    assert len(opened.requests) == 1
    opened.close()
