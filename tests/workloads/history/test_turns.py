"""Foreign histories whose processes do what no process does say so, and their silence is no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.local import check_one
from workloads.history import importing
from workloads.history.importing import import_jsonl
from workloads.history.origin import Origin


def line(process: object, kind: str, value: list[Any], **more: object) -> str:
    return json.dumps({"process": process, "type": kind, "f": value[0][0], "value": value, **more})


SEND, SENT = [["send", "x", 1]], [["send", "x", [0, 1]]]
POLL, READ = [["poll"]], [["poll", {"x": [[0, 1]]}]]
WHOLE = [line(0, "invoke", SEND), line(0, "ok", SENT), line(1, "invoke", POLL), line(1, "ok", READ)]
FAILED = line(1, "fail", POLL)


def written(directory: Path, lines: list[str]) -> Path:
    source = directory / "h.jsonl"
    source.write_text("\n".join(lines))
    return source


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            [WHOLE[0], line(0, "invoke", [["send", "x", 2]]), *WHOLE[1:]],
            "index 1: process 0 begins an operation and is busy with another since index 0",
        ),
        ([FAILED, *WHOLE], "index 0: process 1 ends an operation that it did not begin"),
        ([*WHOLE, FAILED], "index 4: process 1 ends an operation that it did not begin"),
        (
            [
                line(0, "invoke", SEND, index=7),
                line(0, "ok", SENT, index=8),
                *WHOLE[2:],
                line(0, "invoke", POLL, index=7),
            ],
            "two operations have index 7",
        ),
    ],
)
@pytest.mark.parametrize("split_bytes", [10, 70, 10_000])
def test_a_history_that_no_client_can_have_had_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], reason: str, split_bytes: int
) -> None:
    monkeypatch.setattr(importing, "SPLIT_BYTES", split_bytes)
    verdict = check_one(written(tmp_path, lines))
    assert (verdict.valid, verdict.counts) == ("unknown", {})
    assert verdict.reason == f"{reason}, so silence proves nothing; correct the history"


def test_what_it_shows_counts_all_the_same(tmp_path: Path) -> None:
    later = [line(0, "invoke", [["send", "x", 2]]), line(0, "ok", [["send", "x", [0, 2]]])]
    verdict = check_one(written(tmp_path, [*WHOLE, *later, later[1]]))
    assert verdict.valid is False
    assert "inconsistent-offsets" in verdict.counts
    assert verdict.irregular == "index 6: process 0 ends an operation that it did not begin"


@pytest.mark.parametrize(
    "lines",
    [
        WHOLE,
        [*WHOLE, line(0, "invoke", [["send", "x", 2]])],
        [line(None, "ok", SENT), line("nemesis", "info", [["kill"]]), line("nemesis", "info", [["kill"]]), *WHOLE],
        [*WHOLE, line(0, "ok", [["drain", "x"]]), line(0, "info", [["debug"]])],
    ],
)
def test_a_history_in_order_says_nothing_of_the_kind(tmp_path: Path, lines: list[str]) -> None:
    import_jsonl(written(tmp_path, lines), tmp_path / "stored")
    assert Origin.load(tmp_path / "stored").irregular == ""


def test_an_import_says_it_too(tmp_path: Path) -> None:
    import_jsonl(written(tmp_path, [*WHOLE, FAILED]), tmp_path / "stored")
    assert check_one(tmp_path / "stored").valid == "unknown"
