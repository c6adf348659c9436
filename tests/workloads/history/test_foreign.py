"""Other tools' files are recognised by what they contain, and refused with the kinds that there are."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest

from checkers.errors import CheckError
from checkers.histories.discovery import find_histories
from checkers.local import check_one
from workloads.history import HistoryError, HistoryKind, import_history, importing, read_events, recognised

LINE = '{"type": "ok", "f": "send", "process": null, "value": [["send", "x", [0, 1]]]}\n'
READ = '{"type": "ok", "f": "poll", "process": null, "value": [["poll", {"x": [[0, 1]]}]]}\n'
FORM = "{:type :ok, :f :send, :process nil, :value [[:send 0 [0 1]]]}\n"
VERIFIABLE = '{"timestamp":1,"name":"startup_complete"}\n'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LINE, HistoryKind.JSON_LINES),
        ("\ufeff" + LINE, HistoryKind.JSON_LINES),
        ('\n\n{"options": {}}\n', HistoryKind.JSON_LINES),
        (FORM, HistoryKind.EDN),
        (f"[{FORM}]", HistoryKind.EDN),
        (f"; made by hand\n\n ({FORM})", HistoryKind.EDN),
        (f"#jepsen.history.Op{FORM}", HistoryKind.EDN),
        (f"[#jepsen.history.Op {FORM}]", HistoryKind.EDN),
        ("{:process 0 :index 3\n :f :poll\n :type :invoke}", HistoryKind.EDN),
        (VERIFIABLE, HistoryKind.VERIFIABLE),
        ("SLF4J: nothing\n[INFO] consumer: " + VERIFIABLE, HistoryKind.VERIFIABLE),
        ('{"name":"record_data","value":"1","topic":"t","partition":0,"offset":1}', HistoryKind.VERIFIABLE),
        ("PAR1 and the rest", HistoryKind.PARQUET),
        ("{:valid? true, :perf {:latency 5}}", None),
        ("<!doctype html>", None),
        ('{"name": "ackproof", "version": 1}', None),
        ('{"a": 1}', None),
        ("[1, 2]", None),
        ("acks=all\n", None),
    ],
)
def test_a_file_is_what_it_contains_whatever_its_name_is(tmp_path: Path, text: str, kind: HistoryKind | None) -> None:
    (tmp_path / "file").write_text(text)
    assert recognised(tmp_path / "file") is kind


@pytest.mark.parametrize("name", ["h.edn", "h.txt", "history", "h.jsonl", "h.json", "h.log"])
def test_the_name_decides_nothing(tmp_path: Path, name: str) -> None:
    for text in (LINE + READ, FORM + "{:type :ok, :f :poll, :process nil, :value [[:poll {0 [[0 1]]}]]}"):
        (tmp_path / name).write_text(text)
        assert check_one(tmp_path / name).valid is True


@pytest.mark.parametrize(
    ("pack", "name"), [(gzip.compress, "gzip"), (lzma.compress, "xz"), (bz2.compress, "bzip2"), (None, "zstd")]
)
def test_a_packed_file_is_to_be_unpacked(tmp_path: Path, pack: object, name: str) -> None:
    content = pack(FORM.encode()) if callable(pack) else b"\x28\xb5\x2f\xfd rest"
    for file in (tmp_path / "history.edn.gz", tmp_path / "history.jsonl"):
        file.write_bytes(content)
        with pytest.raises((CheckError, HistoryError), match=rf"is compressed \({name}\); unpack it first"):
            check_one(file)


def test_a_refusal_names_the_kinds_and_how_to_convert(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of the sort")
    with pytest.raises(CheckError) as raised:
        check_one(tmp_path / "notes.txt")
    for word in ("JSON lines", "history.edn", "VerifiableProducer", "docs/guides/history-format.md"):
        assert word in str(raised.value)


def test_a_file_of_lines_that_are_no_operations_is_refused_with_the_first(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(CheckError, match=r'h\.jsonl, line 1: the operation has no "type"'):
        check_one(tmp_path / "h.jsonl")


def test_an_array_of_operations_is_to_be_written_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(f"[{LINE.strip()},\n {READ}]")
    with pytest.raises(
        CheckError, match=r"h\.json is one array of JSON; write one object a line: jq -c '\.\[\]' h\.json"
    ):
        check_one(tmp_path / "h.json")


@pytest.mark.parametrize("block", [importing.SPLIT_BYTES, 150])
def test_a_history_that_is_cut_into_splits_keeps_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """A form over two lines before the others, so that lines here and there differ."""
    monkeypatch.setattr(importing, "SPLIT_BYTES", block)
    source, directory = tmp_path / "history.edn", tmp_path / "stored"
    forms = [FORM.replace("[0 1]", f"[{offset} {offset}]") for offset in range(20)]
    odd = "{:type :ok, :f :sleep, :process nil, :value 1}\n"
    source.write_text("".join(["{:type :info, :f :kill,\n :process :nemesis, :value nil}\n", *forms, odd, *forms[:1]]))
    origin = import_history(source, directory)
    assert len([*read_events(directory)]) == 22
    assert origin.left_out == ['operations with f "sleep", which ackproof does not judge (first in line 23)']
    source.write_text(source.read_text() + "\n{:type :ok, :f :send, :process -1, :value []}\n")
    with pytest.raises(HistoryError, match=r"history\.edn, line 26: process is -1"):
        import_history(source, tmp_path / "again")


def test_a_directory_of_jepsen_gives_its_history_and_not_its_results(tmp_path: Path) -> None:
    (tmp_path / "history.edn").write_text(FORM)
    (tmp_path / "results.edn").write_text("{:valid? true}")
    (tmp_path / "jepsen.log").write_text("INFO")
    assert [history.path.name for history in find_histories([tmp_path])] == ["history.edn"]


def test_text_that_is_no_utf_8_is_refused_in_edn_and_passed_over_in_logs(tmp_path: Path) -> None:
    (tmp_path / "history.edn").write_bytes(FORM.encode() + b'"\xff"')
    with pytest.raises(CheckError, match="no text of UTF-8"):
        check_one(tmp_path / "history.edn")
    sent = {"timestamp": 1, "name": "producer_send_success", "value": "1", "topic": "t", "partition": 0, "offset": 0}
    (tmp_path / "h.log").write_bytes(b"\xff\n" + json.dumps(sent).encode())
    assert check_one(tmp_path / "h.log").valid == "unknown"


def end_without_value(kind: str, *, is_read: bool) -> str:
    """A send of 9 whose end does not repeat it, and more records before that end than a small split holds."""
    sends = "".join(LINE.replace("[0, 1]", f"[{offset}, {100 + offset}]") for offset in range(2, 20))
    records = [[0, 1], *([[1, 9]] if is_read else []), *([offset, 100 + offset] for offset in range(2, 20))]
    asked = '{"type": "invoke", "f": "send", "process": 1, "value": [["send", "x", 9]]}\n'
    ended = f'{{"type": "{kind}", "f": "send", "process": 1, "value": null}}\n'
    return LINE + asked + sends + ended + READ.replace("[[0, 1]]", json.dumps(records))


@pytest.mark.parametrize("block", [1 << 20, 300])
def test_an_end_without_a_value_is_of_what_its_process_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(importing, "SPLIT_BYTES", block)
    anomalies = {}
    for kind in ("ok", "fail", "info"):
        for is_read in (True, False):
            path = tmp_path / f"{kind}-{is_read}.jsonl"
            path.write_text(end_without_value(kind, is_read=is_read))
            anomalies[kind, is_read] = [*check_one(path).anomalies]
    assert anomalies == {
        ("ok", True): [],
        ("ok", False): ["unseen"],
        ("fail", True): ["G1a"],
        ("fail", False): [],
        ("info", True): [],
        ("info", False): [],
    }


def test_an_end_without_a_value_in_edn_is_of_what_its_process_began(tmp_path: Path) -> None:
    forms = [
        "{:type :invoke, :f :txn, :value [[:poll] [:send x 9]], :process 1}",
        "{:type :fail, :f :txn, :value nil, :process 1, :error [:timeout nil]}",
        "{:type :ok, :f :poll, :process nil, :value [[:poll {x [[1 9]]}]]}",
    ]
    (tmp_path / "history.edn").write_text("\n".join(forms))
    assert "G1a" in check_one(tmp_path / "history.edn").anomalies


def test_an_end_that_may_be_of_two_operations_is_said(tmp_path: Path) -> None:
    asked = '{"type": "invoke", "f": "send", "process": 1, "value": [["send", "x", %d]]}\n'
    ended = '{"type": "fail", "f": "send", "process": 1}\n'
    (tmp_path / "h.jsonl").write_text(LINE + asked % 9 + asked % 8 + ended + READ.replace("]]", "], [1, 9]]", 1))
    verdict = check_one(tmp_path / "h.jsonl")
    assert verdict.anomalies == {}
    assert [text for text in verdict.left_out if text.startswith("ends without a value")]


def test_a_client_with_a_name_is_refused_and_a_fault_is_not(tmp_path: Path) -> None:
    """Names mark faults: what such a client did would not be judged."""
    (tmp_path / "h.jsonl").write_text(LINE.replace("null", '"worker-1"') + READ)
    with pytest.raises(CheckError, match='line 1: process is "worker-1"; that of a client is a whole number or null'):
        check_one(tmp_path / "h.jsonl")
    (tmp_path / "h.jsonl").write_text(LINE + '{"type": "info", "f": "kill", "process": "n1", "value": {}}\n' + READ)
    assert check_one(tmp_path / "h.jsonl").valid is True


def test_a_log_partition_may_be_named_by_anything_that_edn_has(tmp_path: Path) -> None:
    for name in ("[5 0]", "true", "nil", "{:topic a, :partition 0}", "#{2 1}", ":t/p"):
        sent = f"{{:type :ok, :f :send, :process nil, :value [[:send {name} [0 1]]]}}\n"
        seen = f"{{:type :ok, :f :poll, :process nil, :value [[:poll {{{name} [[0 1]] 7 nil}}]]}}\n"
        (tmp_path / "history.edn").write_text(sent + seen)
        assert check_one(tmp_path / "history.edn").valid is True, name
