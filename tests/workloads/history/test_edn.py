"""Jepsen's EDN: read form by form, in blocks of any size, and what is said of a text that is none."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.local import check_one
from tests.checkers.conformance import BY_NAME
from tests.workloads.history.event_strategies import examples
from workloads.history import HistoryError, Origin, edn, import_history, read_events
from workloads.history.edn import EdnError, operations
from workloads.operations import Event


def read(text: str) -> list[Any]:
    return [value for _, value in operations(io.StringIO(text))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("true", True),
        (":type", "type"),
        (":jepsen.kafka/send", "jepsen.kafka/send"),
        ("a-symbol", "a-symbol"),
        ("-12", -12),
        ("+3", 3),
        ("7N", 7),
        ("1.5M", 1.5),
        ("2.5e3", 2500.0),
        ("22/7", "22/7"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("##Inf", "##Inf"),
        (r"\a", "a"),
        (r"\newline", "\n"),
        (r"\u0041", "A"),
        (r"\(", "("),
        (r'"a \"text\" \\ \n \u00e9 of ) ] }"', 'a "text" \\ \n \u00e9 of ) ] }'),
        ('"two\nlines"', "two\nlines"),
        ("{:a 1, :b [2 3]}", {"a": 1, "b": [2, 3]}),
        ("{5 [[3 7]] nil 1 [1 2] 3}", {"5": [[3, 7]], "null": 1, "[1,2]": 3}),
        ("{:s #{3 1 2}}", {"s": [1, 2, 3]}),
        ('{:s #{:b "a" 1}}', {"s": [1, "a", "b"]}),
        ("{:l (1 2)}", {"l": [1, 2]}),
        ("#jepsen.history.Op{:index 0}", {"index": 0}),
        ('#inst "2020-01-01T00:00:00Z"', "2020-01-01T00:00:00Z"),
        ('{:error #object[java.lang.Exception 0x1f "boom"]}', {"error": ["java.lang.Exception", "0x1f", "boom"]}),
        ("#a #b {:c #d 1}", {"c": 1}),
        ("#:op{:f :send, :other/g 1}", {"op/f": "send", "other/g": 1}),
        ("^{:line 3} {:a 1}", {"a": 1}),
        ("^:private {:a #_ hidden 1 #_ #_ 2 3}", {"a": 1}),
        ("; a comment { [\n{:a 1} ; and another\n", {"a": 1}),
        ("#_ {:not :this} {:a 1}", {"a": 1}),
        ('{:re #"a\\.b"}', {"re": "a.b"}),
    ],
)
def test_every_kind_of_form_has_its_plain_value(text: str, value: Any) -> None:
    assert read(text) == [value]
    json.dumps(read(text))


def test_operations_come_one_by_one_however_they_are_laid_out() -> None:
    each = ["{:a 1}", "#jepsen.history.Op{:a 2}", "{:a\n3}"]
    for text in (
        "\n".join(each),
        f"[{' '.join(each)}]",
        f"({','.join(each)})",
        f"[\n {each[0]}\n {each[1]} {each[2]}]\n",
    ):
        assert read(text) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert read("") == read(" ,\n;nothing\n") == read("[]") == []


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("{:a 1", 1, "the file ends inside"),
        ("{:a 1}\n[", 2, "the file ends inside"),
        ("{:a 1}\n\n{:b}", 3, "a key without a value"),
        ("{:a 1]", 1, "] closes nothing"),
        (")", 1, "\\) closes nothing"),
        ('{:a "open}\n', 1, "is no EDN"),
        ("{:a @b}", 1, "is no EDN"),
        ("[" * 300, 1, "nested too deeply"),
        ("#a " * 300 + "1", 1, "nested too deeply"),
    ],
)
def test_a_text_that_is_no_edn_is_refused_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(EdnError, match=why) as raised:
        read(text)
    assert raised.value.line == line


def test_an_operation_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edn, "FORM_MAX", 1_000)
    monkeypatch.setattr(edn, "BLOCK", 100)
    for text in ('{:a "' + "x" * 5_000 + '"}', "[{:a [" + "1 " * 5_000 + "]}]"):
        with pytest.raises(EdnError):
            read(text)


class Endless(io.StringIO):
    """A vector of a hundred thousand operations, which is never whole in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.most = 100_000, 0

    def read(self, size: int | None = -1) -> str:
        if self.left == 100_000:
            self.left -= 1
            return "["
        if self.left <= 0:
            return ""
        self.left -= 1_000
        return "{:a 1}\n" * 1_000 if self.left > 0 else "]"


def test_a_vector_of_all_operations_is_read_in_blocks() -> None:
    reader = edn._Reader(Endless())
    largest = count = 0
    while (token := reader.token()) is not None:
        count += len([*reader.taken(*token)])
        largest = max(largest, len(reader._text))
    assert count == 99_000
    assert largest < 20_000


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def as_edn(value: Any) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case list():
            return f"[{' '.join(map(as_edn, value))}]"
    return "{" + ", ".join(f"{as_edn(key)} {as_edn(item)}" for key, item in value.items()) + "}"


@given(st.lists(values.map(lambda value: {"v": value}), max_size=4), st.integers(1, 9))
@examples(20)
def test_what_is_written_as_edn_is_read_back_at_any_size_of_block(given: list[Any], block: int) -> None:
    before, edn.BLOCK = edn.BLOCK, block  # type: ignore[misc]
    try:
        assert read("\n".join(map(as_edn, given))) == given
        assert read(f"[{as_edn(given)[1:]}") == given
    finally:
        edn.BLOCK = before  # type: ignore[misc]


def in_edn(operation: dict[str, Any]) -> str:
    """An operation as Jepsen writes it: keywords for names, whole numbers for the keys that are some."""

    def form(name: str, value: Any) -> str:
        if name in ("type", "f") or (name == "process" and isinstance(value, str)):
            return f":{value}"
        if name == "value" and isinstance(value, list):
            return f"[{' '.join(map(micro, value))}]"
        return as_edn(value)

    def micro(item: Any) -> str:
        if not isinstance(item, list):
            return as_edn(item)
        kind, *rest = item
        return f"[:{kind} {' '.join(map(as_edn, rest))}]"

    return "{" + ", ".join(f":{name} {form(name, value)}" for name, value in operation.items()) + "}"


@pytest.mark.parametrize("layout", ["{}\n", "#jepsen.history.Op{}\n"])
@pytest.mark.parametrize("name", ["g1a/failed-write-read", "poll-skip/txn-abort-no-rollback", "lost-write/consistent"])
def test_a_history_in_edn_is_judged_as_the_same_in_json_lines(tmp_path: Path, name: str, layout: str) -> None:
    history = [{k: v for k, v in op.items() if k != "pos"} for op in BY_NAME[name]["history"]]
    (tmp_path / "h.jsonl").write_text("".join(json.dumps(op) + "\n" for op in history))
    (tmp_path / "history.edn").write_text("".join(layout.replace("{}", in_edn(op)) for op in history))
    plain, other = check_one(tmp_path / "h.jsonl"), check_one(tmp_path / "history.edn")
    assert other.counts == plain.counts != {}
    assert (other.valid, other.anomalies) == (plain.valid, plain.anomalies)


JEPSEN = """
{:type :info, :process :nemesis, :f :kill, :value {"n1" :killed}, :time 5, :index 0}
{:type :invoke, :process 0, :f :txn, :value [[:poll] [:send 5 7]], :time 10, :index 1, :poll-ms 1000}
{:type :ok, :process 0, :f :txn, :value [[:poll {6 [[0 1] [2 3]]}] [:send 5 [3 7]]], :time 20, :index 2,
 :rebalance-log [{:keys #{6}, :type :assigned}]}
{:type :invoke, :process 1, :f :assign, :value [5 6], :time 21, :index 3}
{:type :ok, :process 1, :f :assign, :value [5 6], :time 22, :index 4}
{:type :invoke, :process 1, :f :debug-topic-partitions, :value [5], :time 23, :index 5}
{:type :info, :process 1, :f :crash, :value nil, :time 24, :index 6, :error [:timeout "x"], :ext #{:a}}
"""


def imported(directory: Path, text: str, name: str = "history.edn") -> tuple[list[Event], Origin]:
    (directory / name).write_text(text)
    origin = import_history(directory / name, directory / "stored")
    return [*read_events(directory / "stored")], origin


def test_what_jepsen_says_and_is_not_judged_is_said(tmp_path: Path) -> None:
    events, origin = imported(tmp_path, JEPSEN)
    assert [event.function for event in events] == ["fault", "txn", "txn", "assign", "assign", "crash"]
    assert events[2].rebalanced == ("6",)
    assert origin.left_out == [
        'the field "poll-ms" of an operation (first in line 3)',
        'operations with f "debug-topic-partitions", which ackproof does not judge (first in line 8)',
        'the field "ext" of an operation (first in line 9)',
    ]
    with tempfile.TemporaryDirectory() as scratch:
        lines = "".join(f" {line}" for line in JEPSEN.splitlines())
        assert imported(Path(scratch), f"[{lines}]")[0] == events


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{:type :ok, :f :send, :value [[:send 1]]}", "line 1: .* is neither"),
        ("\n{:type :ok, :f :send, :value []}\n\n{:type :done, :f :send, :value []}", 'line 4: type is "done"'),
        ("{:type :ok, :f :send, :value []}\n7", "line 2: not an operation"),
        ("{:type :ok, :f :send, :value []}\n{:type", "line 2: the file ends inside"),
        ("{:type :ok, :f :poll, :value [[:poll {1 [[nil 3]]}]]}", "line 1: .*without an offset"),
    ],
)
def test_a_wrong_operation_is_refused_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(HistoryError, match=rf"history\.edn, {why}"):
        imported(tmp_path, text)
    assert not [*tmp_path.rglob("*.jsonl")]
