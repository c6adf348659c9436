"""Each kind of page, by day and by night, on a wide screen, a phone and paper: nothing is cut, all can be read."""

from __future__ import annotations

import lzma
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from playwright.sync_api import Browser

from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.comparison import cell_anomalies_of
from harness.campaigns.report import write
from harness.campaigns.soak.nights import read_nights
from harness.campaigns.soak.trend import write_trend
from harness.cli.app import exit_code_of
from harness.records.files import VERDICTS_FILE
from harness.records.verdict_lines import write_matrix
from harness.runs.stories import explained, known_stories
from tests.harness.browsing import Opened, browsing

pytestmark = pytest.mark.system

KEPT: Final = Path("results/reference")
WIDTHS: Final = (1600, 1280, 768, 420, 390)
#: Text of any size; WCAG 2 asks for no more of an ordinary one.
CONTRAST_MIN: Final = 4.5
#: A4 across, without its margins.
PAPER: Final = {"width": 1046, "height": 718}
OPENED: Final = "document.querySelectorAll('details').forEach(folded => { folded.open = true; })"
MEASURES: Final = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")


class Kind(NamedTuple):
    """A page, and how many texts it shows at least."""

    file: Path
    texts: int


def reported(name: str, directory: Path) -> Path:
    """The report of a campaign that is kept without its runs."""
    copy = directory / name.replace("/", "-")
    shutil.copytree(KEPT / name, copy)
    packed = copy / f"{VERDICTS_FILE}.xz"
    (copy / VERDICTS_FILE).write_bytes(lzma.decompress(packed.read_bytes()))
    packed.unlink()
    write_matrix(copy)
    choose_witnesses(copy)
    return write(copy)


def nights(directory: Path) -> Path:
    """Two nights, the second with anomalies of long names."""
    places = [str(KEPT / f"kafka-short-timeout-{client}") for client in ("kafka-python", "librdkafka")]
    both = read_nights(places, directory)
    return write_trend(directory, both, cell_anomalies_of([both[0].results], both[1].results))


def assessed(directory: Path) -> Path:
    """An assessment of topics with names as long as Kafka lets them be, and of a file in a deep directory."""
    deep = directory / "/".join(["of-the-team-that-owns-it"] * 3)
    deep.mkdir(parents=True)
    names = ("orders", "payments.authorised.by-the-third-party." + "v" * 200, "q" * 249)
    rows = [
        f"Topic: {name}\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas={number % 2 + 1}\n"
        f"\tTopic: {name}\tPartition: 0\tLeader: 0\tReplicas: 0,1,2\tIsr: 0,1,2\n"
        for number, name in enumerate(names)
    ]
    (topics := deep / "topics.txt").write_text("".join(rows))
    (producer := deep / "producer.properties").write_text("acks=all\nretries=2147483647\n")
    page = directory / "assess.html"
    asked = [str(topics), "--producer", str(producer), "--release", "4.3.1", "--require", "no loss by kill"]
    exit_code_of(["assess", *asked, "--page", str(page)])
    return page


def story(directory: Path) -> Path:
    _, page = explained(known_stories()["S40"], "all/2/E")
    (file := directory / "story.html").write_text(page)
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as started:
        yield started


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    directory = tmp_path_factory.mktemp("pages")
    return {
        "campaign": Kind(reported("kafka-weaker", directory), 300),
        "broken": Kind(reported("kafka-short-timeout-librdkafka", directory), 300),
        "certificate": Kind(reported("certificates/from-3.9.2-one-acknowledgement", directory), 200),
        "nights": Kind(nights(directory), 100),
        "assessment": Kind(assessed(directory), 60),
        "story": Kind(story(directory), 100),
    }


KINDS: Final = ("campaign", "broken", "certificate", "nights", "assessment", "story")


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_is_wider_than_its_screen_breaks_words_by_letters_or_hides_what_must_be_scrolled(
    browser: Browser, kinds: dict[str, Kind], kind: str
) -> None:
    opened = Opened(browser, kinds[kind].file)
    opened.page.evaluate(OPENED)
    for width in WIDTHS:
        opened.page.set_viewport_size({"width": width, "height": 800})
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, width
        assert opened.page.evaluate(f"({MEASURES}).cut()") == [], width
        assert opened.page.evaluate(f"({MEASURES}).broken()") == [], width
    opened.close()


@pytest.mark.parametrize(("kind", "cards"), [("campaign", 3), ("certificate", 4), ("nights", 3), ("assessment", 1)])
def test_on_a_phone_each_value_of_a_card_stands_under_the_heading_of_its_column(
    browser: Browser, kinds: dict[str, Kind], kind: str, cards: int
) -> None:
    opened = Opened(browser, kinds[kind].file)
    opened.page.evaluate(OPENED)
    opened.page.set_viewport_size({"width": 420, "height": 800})
    assert opened.page.evaluate("document.querySelectorAll('.cards').length") == cards
    assert opened.page.evaluate(f"({MEASURES}).mislabelled()") == []
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_text_stands_out_from_what_is_behind_it(
    browser: Browser, kinds: dict[str, Kind], kind: str, scheme: str
) -> None:
    opened = Opened(browser, kinds[kind].file, scheme=scheme)
    opened.page.evaluate(OPENED)
    opened.page.set_viewport_size({"width": 1600, "height": 800})
    texts: list[dict[str, Any]] = opened.page.evaluate(f"({MEASURES}).texts()")
    assert len(texts) >= kinds[kind].texts
    assert [text for text in texts if text["contrast"] < CONTRAST_MIN] == []
    opened.close()


@pytest.mark.parametrize(("kind", "pages"), [("campaign", 20), ("broken", 16), ("nights", 4), ("assessment", 8)])
def test_paper_cuts_nothing_breaks_no_word_by_letters_and_is_little(
    browser: Browser, kinds: dict[str, Kind], kind: str, pages: int
) -> None:
    opened = Opened(browser, kinds[kind].file)
    paper = opened.page.pdf(prefer_css_page_size=True)
    assert 0 < len(re.findall(rb"/Type ?/Page\b", paper)) <= pages
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size(PAPER)  # type: ignore[arg-type]
    assert opened.page.evaluate(f"({MEASURES}).beyond({PAPER['width']})") == []
    assert opened.page.evaluate(f"({MEASURES}).broken()") == []
    opened.close()
