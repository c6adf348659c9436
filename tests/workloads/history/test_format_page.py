"""The page on histories and the reader say the same: every word of the page is taken, and no other one in silence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from checkers.local import check_one
from workloads.history import HistoryError, import_history, read_events
from workloads.history.entries import FIELDS, LISTS, MICRO
from workloads.history.left_out import DETAILS
from workloads.operations import Function

PAGE = (Path(__file__).parents[3] / "docs/guides/history-format.md").read_text()
#: A value of each field that a detail may have.
SAMPLES: dict[str, Any] = {
    "group": "g", "instance_id": "m", "generation": 3, "transactional_id": "id", "number": 0, "asked": "commit",
    "ending_us": 5, "superseded_us": 4, "late": [1], "failed": {"1": "TimeoutException"}, "handed_us": 3,
    "sources": {"t-0": [0]}, "producer": {"producer_id": 1, "producer_epoch": 0}, "error_class": "abortable",
    "high_watermark": 9, "open_ms": 10, "record_ms": 1, "tombstone_ms": 1, "segment_ms": 1, "dirty_ratio": 0.5,
    "retention_ms": 1, "reason": "fatal", "successor": 2, "silent_ms": 1, "partitions": ["t-0"], "errors": ["e"],
    "client": "java 4.1", "wedged": ["t-0"], "limit_ms": 1, "written": ["t-0"], "unwritten": {}, "lacking": {},
    "absent": {}, "unread": {}, "starved": {}, "out_of_sync": {}, "name": "n", "partition": "t-0", "time_us": 1,
    "shape": "each", "outputs_each": 1, "every": 1, "promise": "at-least-once", "inputs": ["t-0"], "outputs": ["o-0"],
    "committed": {"t-0": 9}, "exits": [], "crash_loops": [], "order": "none", "fold": "count",
    "keys": 1, "instances": 2, "progress": [], "starts": 2, "waited_ms": 1, "topics": [],
    "text": "x", "before_append": {"t-0": 1}, "after_append": {"t-0": 1}, "isr_changes": {"t-0": 1},
}  # fmt: skip


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the tables of a section, without their heads."""
    lines = [line for line in section(title).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r" \| ", line.strip("| "))] for line in lines]


def told_examples() -> list[dict[str, Any]]:
    """The operations of the section about details, as the page has them."""
    (block,) = re.findall(r"```json\n(.*?)```", section("Details"), re.DOTALL)
    return [json.loads(text) for text in re.split(r"\n(?=\{)", block.strip())]


def told_details() -> dict[str, set[str]]:
    """By function, the fields of its detail that the page names."""
    told: dict[str, set[str]] = {}
    for example in told_examples():
        told.setdefault(example["f"], set()).update(example.get("detail", ()))
    return {function: names for function, names in told.items() if names}


def test_the_page_names_every_field_of_every_detail() -> None:
    told = told_details()
    assert told.keys() == {str(function) for function in DETAILS}
    of_kinds: dict[type, set[str]] = {}
    for function, kind in DETAILS.items():
        of_kinds.setdefault(kind, set()).update(told[function])
    assert of_kinds == {kind: set(kind.__struct_encode_fields__) for kind in DETAILS.values()}


def test_the_examples_of_the_page_are_read_as_they_are(tmp_path: Path) -> None:
    examples = [{"type": "ok", "process": 1, "time": 1, "value": None} | example for example in told_examples()]
    assert left_out(tmp_path, *examples) == []
    assert [event.function for event in read_events(tmp_path / "stored")] == [example["f"] for example in examples]


def test_the_page_names_every_field_of_an_operation() -> None:
    named = set(re.findall(r"`([a-z-]+)`", " ".join(cells[0] for cells in rows("JSON lines"))))
    assert named >= FIELDS - {"value", "offset"}
    assert '"value"' in section("JSON lines")
    assert '"offset"' in section("Details")


def test_the_page_names_every_function() -> None:
    assert set(re.findall(r"[a-z-]+", PAGE)) >= set(map(str, Function))


def operation(function: str, **more: Any) -> dict[str, Any]:
    chosen = Function(function)
    value: Any = [["reached", "t-0", 1]] if chosen in MICRO else ["t-0"] if chosen in LISTS else None
    if function == "txn":
        value = [["send", "t-0", [0, 1]], ["reached", "u-0", [0, 1]]]
    return {"type": "ok", "f": function, "process": 1, "time": 1, "value": value} | more


def left_out(directory: Path, *lines: dict[str, Any]) -> list[str]:
    source = directory / "h.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return import_history(source, directory / "stored").left_out


@pytest.mark.parametrize(("function", "fields"), told_details().items())
def test_every_field_that_the_page_names_is_taken(tmp_path: Path, function: str, fields: set[str]) -> None:
    assert fields
    detail = {name: SAMPLES[name] for name in sorted(fields)}
    given = [operation(function, detail=detail), operation(function, detail=json.dumps(detail))]
    assert left_out(tmp_path, *given) == []
    stored = [json.loads(event.detail or "") for event in read_events(tmp_path / "stored")]
    assert stored == [detail, detail]
    assert left_out(tmp_path, operation(function, detail=detail | {"grp": 1}, value=None)) == [
        f'the field "grp" of the detail of {function} (first in line 1)'
    ]


@pytest.mark.parametrize("detail", [{"name": "g"}, "g", [], '{"group": 5}', 7])
def test_a_detail_that_is_not_understood_is_said(tmp_path: Path, detail: object) -> None:
    lines = [operation("commit", detail=detail), operation("commit", detail=detail)]
    (only, *_) = left_out(tmp_path, *lines)
    assert only.startswith("the detail of commit: ")
    assert only.endswith("(2 times, first in line 1)")


def test_a_field_of_an_operation_that_is_not_known_is_said(tmp_path: Path) -> None:
    lines = [operation("commit", detail={"group": "g"}), operation("commit", isolaton="read_committed")]
    assert left_out(tmp_path, *lines) == ['the field "isolaton" of an operation (first in line 2)']
    send = {"type": "ok", "f": "send", "process": 1, "value": [["send", "t-0", [0, 1]]], "isolaton": "x", "time": 1}
    assert left_out(tmp_path, send) == ['the field "isolaton" of an operation (first in line 1)']


def test_what_is_left_out_does_not_grow_without_end(tmp_path: Path) -> None:
    assert len(left_out(tmp_path, *(operation("commit", **{f"x{number}": 1}) for number in range(200)))) == 32


def test_a_verdict_says_what_was_left_out(tmp_path: Path) -> None:
    source = tmp_path / "h.jsonl"
    source.write_text(json.dumps(operation("poll", value=[["poll"]], color=1)) + "\n")
    assert check_one(source).left_out == ['the field "color" of an operation (first in line 1)']


@pytest.mark.parametrize("option", ['{"complete": 1}', '{"ww_deps": "yes"}', "[]"])
def test_options_that_cannot_be_are_refused(tmp_path: Path, option: str) -> None:
    (tmp_path / "h.jsonl").write_text(f'{{"options": {option}}}\n')
    with pytest.raises(HistoryError, match="line 1: options must be an object"):
        import_history(tmp_path / "h.jsonl", tmp_path / "stored")
