"""The releases that were judged and are kept here: their records are valid, and their pages are made of them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from harness.lab.findings import FINDINGS
from harness.lab.releases import as_markdown
from harness.records.release_file import ReleaseRecord
from harness.records.schemas import schema_of

KEPT = sorted((Path(__file__).parents[4] / "results" / "reference" / "releases").glob("*/release.json"))


def test_the_newest_of_each_line_that_is_spoken_of_is_kept() -> None:
    assert {path.parent.name for path in KEPT} >= {"4.4.0", "4.3.1", "4.2.2", "3.9.2"}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_a_record_is_valid_and_its_page_is_made_of_it(path: Path) -> None:
    content = path.read_bytes()
    jsonschema.validate(json.loads(content), schema_of("release.v1.schema.json"))
    record = msgspec.json.decode(content, type=ReleaseRecord)
    assert record.release == path.parent.name
    assert path.with_name("release.md").read_text(encoding="utf-8") == as_markdown(record)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_entries_of_known_defects_agree_with_what_was_seen(path: Path) -> None:
    record = msgspec.json.decode(path.read_bytes(), type=ReleaseRecord)
    findings = [entry for entry in record.entries if entry.kind in {"finding", "defect"}]
    assert {entry.name.split()[1] for entry in findings} == set(FINDINGS)
    assert [entry.name for entry in findings if entry.result == "new"] == []
