"""Whatever a topic, a node, a client or an error is called: on the page, in Markdown and in JUnit it is text."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.report import write
from harness.records.verdict_lines import write_matrix
from tests.harness.campaigns.report.conftest import MakeRun
from tests.harness.campaigns.report.test_report import Page
from workloads.settings import Settings

EVIL = "</script></pre><script>alert(1)</script><img src=x onerror=alert(2)>"

LOST: dict[str, Any] = {"key": f"{EVIL}-0", "value": 1, "index": 41, "node": EVIL, "error": EVIL}
WEDGED: dict[str, Any] = {"key": f"{EVIL}-0", "instance": 3, "client": f"{EVIL} 1.0", "errors": [EVIL]}


@pytest.mark.parametrize(("anomaly", "finding"), [("lost-write", LOST), ("wedged-client", WEDGED)])
def test_markup_in_a_finding_is_text_everywhere(
    campaign: tuple[Path, MakeRun], anomaly: str, finding: dict[str, Any]
) -> None:
    directory, make = campaign
    make(Settings(acks=1), lost=1, counts={anomaly: 1}, anomalies={anomaly: [finding]}, reason=EVIL)
    write_matrix(directory)
    choose_witnesses(directory)
    page = Page(write(directory).read_text())
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [script for script in page.scripts if script.startswith("alert")]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("onerror")]
    assert "<script" not in (directory / "matrix.md").read_text()
    tags = {element.tag for element in Xml.parse(directory / "junit.xml").iter()}  # noqa: S314 - our own
    assert tags <= {"testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out"}
