"""Histories as JSON lines: out and in again, and what is said of lines that are none."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.history.event_strategies import events, examples, normalised, record_all
from workloads.history import HistoryError, HistoryWriter, export_jsonl, import_jsonl, read_events
from workloads.history.origin import LARGEST, Origin, ValueCodes
from workloads.operations import Event, EventType, Function, Poll, Record, Send


def imported(tmp_path: Path, *lines: object) -> Path:
    source = tmp_path / "h.jsonl"
    source.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    import_jsonl(source, tmp_path / "stored")
    return tmp_path / "stored"


def operation(**fields: object) -> dict[str, object]:
    return {"process": 0, "type": "ok", "f": "send", "value": [["send", "x", [0, 1]]], "time": 5} | fields


@given(events().filter(lambda history: all(e.process >= 0 and e.function not in OWN for e in history)))
@examples(15)
def test_what_is_exported_can_be_imported(history: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        first, second = Path(scratch) / "first", Path(scratch) / "second"
        with HistoryWriter(first, "run") as writer:
            record_all(writer, history)
        sink = io.BytesIO()
        assert export_jsonl(first, sink) == len(history)
        (Path(scratch) / "h.jsonl").write_bytes(sink.getvalue())
        import_jsonl(Path(scratch) / "h.jsonl", second)
        again = [normalised(event) for event in read_events(second)]
        assert again == [normalised(event) for event in read_events(first)]


OWN = (Function.FAULT, Function.PHASE)


def test_a_read_that_could_not_be_decoded_comes_back_as_one(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "first", "run") as writer:
        unreadable = (Poll({"t-0": (Record(0, -1),)}),)
        writer.record(Event(time_us=0, process=0, type=EventType.OK, function=Function.POLL, micro=unreadable))
    sink = io.BytesIO()
    export_jsonl(tmp_path / "first", sink)
    stored = imported(tmp_path, *sink.getvalue().decode().splitlines())
    assert [event.micro for event in read_events(stored)] == [unreadable]


@given(st.lists(st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2) | st.none()))
def test_every_foreign_value_has_a_number_of_its_own(values: list[object]) -> None:
    codes = ValueCodes()
    numbers = [codes.code(value) for value in values]
    origin = Origin(values=codes.values)
    assert [origin.value(number) for number in numbers] == values
    assert all(-(2**63) <= number <= LARGEST and number != -1 for number in numbers)


def test_keys_of_objects_and_numbers_are_the_same_key(tmp_path: Path) -> None:
    stored = imported(
        tmp_path,
        operation(value=[["send", 11, [5, 641]]]),
        operation(f="poll", value=[["poll", {"11": [[5, 641]]}]]),
    )
    micro = [event.micro[0] for event in read_events(stored)]
    assert micro == [Send("11", 641, 5), Poll({"11": (Record(5, 641),)})]


def test_the_files_own_indexes_are_kept_where_it_gives_them(tmp_path: Path) -> None:
    stored = imported(tmp_path, {"options": {"ww_deps": True}}, operation(index=7), operation(index=9))
    origin = Origin.load(stored)
    assert origin.options == {"ww_deps": True}
    assert origin.index(1) == 9


def test_operations_that_no_checker_knows_pass_without_an_event(tmp_path: Path) -> None:
    stored = imported(tmp_path, operation(f="debug-topic-partitions", value=None), operation())
    assert [event.index for event in read_events(stored)] == [1]


def test_a_foreign_nemesis_is_a_fault(tmp_path: Path) -> None:
    stored = imported(tmp_path, operation(process="nemesis", type="info", f="kill", value="n1"))
    (event,) = read_events(stored)
    assert event.function == Function.FAULT
    assert json.loads(event.detail or "") == {"f": "kill", "value": "n1"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2: not valid JSON (Input data was truncated); write one object a line"),
        ("[1]", "line 2: not an operation"),
        ('{"process": 0, "f": "send"}', 'line 2: the operation has no "type"'),
        (json.dumps(operation(type="okay")), 'line 2: type is "okay"; it must be one of invoke'),
        (json.dumps(operation(value=[["append", "x", 1]])), 'is neither ["send", key, value]'),
        (json.dumps(operation(value=[["send", "x", [-4, 1]]])), "line 2: offset is -4"),
        (
            json.dumps(operation(value=[["poll", {"x": [[None, 1]]}]])),
            "line 2: the record [null,1] was read without an offset; write [offset, value]",
        ),
        (json.dumps(operation(process=1.5)), "line 2: process is 1.5"),
        (json.dumps(operation(instance="p")), 'line 2: instance is "p"; it must be null or a whole number'),
        (json.dumps(operation(instance=-1)), "line 2: instance is -1"),
        ("[" * 100_000, "line 2: nested too deeply"),
        ("null", "line 2: not an operation"),
        (json.dumps(operation(index="a")), 'line 2: index is "a"; it must be a whole number'),
        (json.dumps(operation(time=1e300)), "line 2: time is 1e300"),
        (json.dumps(operation(time=2**70)), f"line 2: time is {2**70}"),
        (json.dumps(operation(node="n1")), 'line 2: node is "n1"'),
        (json.dumps(operation(f="drain", value=["x"], offset=-7)), "line 2: offset is -7"),
        (
            json.dumps(operation(value=[["send", "", [0, 1]]])),
            "line 2: a key is empty; write the name of a log partition",
        ),
        (json.dumps(operation(value=5)), "line 2: value is 5; it must be a list"),
        (json.dumps(operation(f={"a": 1})), "line 2: not an operation"),
        (
            json.dumps(operation(value=[["poll", {"x": [[0, 1, "odd"]]}]])),
            'line 2: the record [0,1,"odd"] is not [offset, value], or [offset, -1, defect]',
        ),
        (json.dumps(operation() | {"rebalance-log": [[]]}), "line 2: rebalance-log has []; write [what, [key, ...]]"),
        (json.dumps(operation(value=[["poll", {"x": [7]}]])), "line 2: the record 7 is not [offset, value]"),
        (json.dumps(operation(process={"a": None})), 'line 2: process is {"a":null}; it must be'),
        (json.dumps(operation(value=[["send", None]])), 'line 2: ["send",null] is neither ["send", key, value]'),
    ],
)
def test_a_line_that_is_no_operation_is_named_with_its_reason(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(HistoryError) as caught:
        imported(tmp_path, operation(), line)
    assert reason in str(caught.value)
    assert "h.jsonl" in str(caught.value)


@pytest.mark.parametrize("options", [None, [1], {"ww_deps": 5}])
def test_options_that_are_none_are_named(tmp_path: Path, options: object) -> None:
    with pytest.raises(HistoryError, match="line 1: options must be an object"):
        imported(tmp_path, {"options": options}, operation())
