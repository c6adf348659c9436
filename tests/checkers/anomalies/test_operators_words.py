"""Words of operators and brokers in a history of another tool: resets and seeks of groups, and the begin of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.local import check_one
from workloads.history import HistoryError, import_history

Line = dict[str, Any]
G = {"group": "reports"}
#: The first offset of histories that begin far behind zero.
BASE = 960_000_000


def op(kind: str, f: str, value: Any, process: int | str | None = 0, **more: Any) -> Line:
    return {"type": kind, "f": f, "value": value, "process": process} | more


def sent(values: range, base: int = 0) -> list[Line]:
    each = ((("invoke", value), ("ok", [base + value, value])) for value in values)
    return [op(kind, "send", [["send", "t-0", value]]) for pair in each for kind, value in pair]


def polled(process: int, values: range, base: int = 0) -> list[Line]:
    records = [[base + value, value] for value in values]
    return [
        op("invoke", "poll", [["poll"]], process),
        op("ok", "poll", [["poll", {"t-0": records}]], process),
    ]


def joined(process: int) -> Line:
    return op("ok", "rebalance", ["t-0"], process, detail=G)


def done(process: int, since: int, to: int) -> Line:
    return op("ok", "process", [["reached", "t-0", [since, to]]], process, detail=G)


def committed(process: int, to: int, function: str = "commit", kind: str = "ok") -> list[Line]:
    value = [["reached", "t-0", to]]
    return [op(each, function, value, process, detail=G) for each in ("invoke", kind)]


def counts(tmp_path: Path, *lines: Line) -> dict[str, int]:
    file = tmp_path / "h.jsonl"
    file.write_text("".join(json.dumps(line | {"time": number}) + "\n" for number, line in enumerate(lines)))
    verdict = check_one(file)
    assert verdict.left_out == []
    return {name: count for name, count in verdict.counts.items() if count}


def worked(process: int, begin: int, end: int) -> list[Line]:
    """A member reads, processes and commits a stretch."""
    return [*polled(process, range(begin, end)), done(process, begin, end), *committed(process, end)]


EVERYONE = [op("ok", "assign", ["t-0"], 9), *polled(9, range(8))]


def test_a_group_that_an_operator_sets_forward_skips_nothing(tmp_path: Path) -> None:
    first = [*sent(range(8)), joined(1), *worked(1, 0, 2)]
    later = [joined(2), *worked(2, 5, 8), *EVERYONE]
    assert counts(tmp_path, *first, *later) == {"group-skip": 3}
    for kind in ("ok", "info"):
        assert counts(tmp_path, *first, *committed(20, 5, "reset", kind), *later) == {}


@pytest.mark.parametrize("function", ["reset", "seek"])
def test_what_was_refused_sets_nothing_forward(tmp_path: Path, function: str) -> None:
    lines = [*sent(range(8)), joined(1), *worked(1, 0, 2), joined(2), *committed(2, 5, function, "fail")]
    assert counts(tmp_path, *lines, *worked(2, 5, 8), *EVERYONE) == {"group-skip": 3}


def test_what_a_group_skips_behind_a_reset_is_found(tmp_path: Path) -> None:
    lines = [*sent(range(8)), joined(1), *worked(1, 0, 2), *committed(20, 4, "reset"), joined(2), *worked(2, 6, 8)]
    assert counts(tmp_path, *lines, *EVERYONE) == {"group-skip": 2}


def test_a_group_that_an_operator_sets_back_did_not_go_back(tmp_path: Path) -> None:
    first = [*sent(range(8)), joined(1), *worked(1, 0, 6)]
    later = [joined(2), *worked(2, 3, 8), *EVERYONE]
    assert counts(tmp_path, *first, *later) == {"group-went-back": 1}
    assert counts(tmp_path, *first, *committed(20, 3, "reset"), *later) == {}


def test_a_member_that_sets_its_position_did_not_go_back(tmp_path: Path) -> None:
    first = [*sent(range(8)), joined(1), *worked(1, 0, 6), joined(2)]
    seek = op("ok", "seek", [["reached", "t-0", 2]], 2, detail=G)
    assert counts(tmp_path, *first, seek, *worked(2, 2, 8), *EVERYONE) == {}
    assert counts(tmp_path, *first[:-1], seek, joined(2), *worked(2, 2, 8), *EVERYONE) == {"group-went-back": 1}


@pytest.mark.parametrize(("begin", "odd"), [(0, "nonmonotonic-poll"), (4, "poll-skip")])
def test_a_consumer_that_sets_its_position_may_be_anywhere(tmp_path: Path, begin: int, odd: str) -> None:
    seek = op("ok", "seek", [["reached", "t-0", begin]], 1)
    first, later = [*sent(range(8)), *EVERYONE, *polled(1, range(2))], polled(1, range(begin, 8))
    assert counts(tmp_path, *first, *later) == {odd: 1}
    assert counts(tmp_path, *first, seek, *later) == {}
    assert counts(tmp_path, *first, op("ok", "seek", [["reached", "u-0", begin]], 1), *later) == {odd: 1}


def test_records_before_the_begin_of_the_log_are_not_lost(tmp_path: Path) -> None:
    start = op("ok", "log-start", [["reached", "t-0", 3]], 30)
    read = [*sent(range(8)), *polled(1, range(3, 8))]
    assert counts(tmp_path, *read) == {"lost-write": 3, "unseen": 3}
    assert counts(tmp_path, *read, start) == {"expired-write": 3}
    assert check_one(tmp_path / "h.jsonl").valid is True
    assert counts(tmp_path, start, *read) == {"expired-write": 3}
    lost = counts(tmp_path, *sent(range(8)), *polled(1, range(4, 8)), start)
    assert lost == {"lost-write": 1, "unseen": 1, "expired-write": 3}
    assert counts(tmp_path, *read, op("ok", "log-start", [["reached", "u-0", 3]], 30)) == {"lost-write": 3, "unseen": 3}


def test_a_reader_that_was_overtaken_by_the_begin_of_the_log_skips_nothing(tmp_path: Path) -> None:
    lines = [*sent(range(8)), *EVERYONE, *polled(1, range(2)), *polled(1, range(5, 8))]
    assert counts(tmp_path, *lines) == {"poll-skip": 1}
    assert counts(tmp_path, *lines, op("ok", "log-start", [["reached", "t-0", 5]], None)) == {}


def test_an_acknowledged_write_without_a_place_is_not_lost_where_records_are_gone(tmp_path: Path) -> None:
    lines = [*sent(range(3)), op("invoke", "send", [["send", "t-0", 9]]), op("ok", "send", [["send", "t-0", 9]])]
    start = op("ok", "log-start", [["reached", "t-0", 1]], 30)
    assert counts(tmp_path, *lines, *polled(1, range(3))) == {"unseen": 1}
    assert counts(tmp_path, *lines, *polled(1, range(3)), start) == {"expired-write": 1}


def test_a_final_reader_that_says_only_the_retention_is_understood(tmp_path: Path) -> None:
    lines = [*sent(range(4)), *polled(1, range(2, 4))]
    drain = {"offset": 4, "detail": {"retention_ms": 0}}
    assert counts(tmp_path, *lines) == {"lost-write": 2, "unseen": 2}
    old = [line | {"time": 0} for line in lines]
    file = tmp_path / "old.jsonl"
    drained = op("ok", "drain", ["t-0"], 1, **drain) | {"time": 5_000_000}
    file.write_text("".join(json.dumps(line) + "\n" for line in [*old, drained]))
    verdict = check_one(file)
    assert ("lost-write" in verdict.counts, verdict.left_out) == (False, [])


def test_the_generation_of_a_commit_is_read(tmp_path: Path) -> None:
    """It is a number from 0; only that of an assignment is judged."""
    told = {"detail": G | {"generation": 3}}
    work = [line | told if "detail" in line else line for line in worked(1, 0, 2)]
    lines = [*sent(range(2)), joined(1) | told, *work]
    assert counts(tmp_path, *lines, *polled(9, range(2))) == {}


def test_a_group_at_offsets_of_a_thousand_millions_that_skips(tmp_path: Path) -> None:
    lines = [*sent(range(6), BASE), joined(1), *polled(1, range(2), BASE), done(1, BASE, BASE + 2)]
    lines += [*committed(1, BASE + 2), joined(2), *polled(2, range(4, 6), BASE), done(2, BASE + 4, BASE + 6)]
    assert counts(tmp_path, *lines, *committed(2, BASE + 6), *polled(9, range(6), BASE)) == {"group-skip": 2}


def test_a_new_leader_whose_log_is_shorter(tmp_path: Path) -> None:
    again = [op("ok", "send", [["send", "t-0", [offset, 50 + offset]]]) for offset in range(3, 6)]
    lines = [*sent(range(7)), *polled(1, range(7))]
    for line in again:
        lines += [op("invoke", "send", [["send", "t-0", line["value"][0][2][1]]]), line]
    reads = [op("invoke", "poll", [["poll"]], 1), op("ok", "poll", [["poll", {"t-0": [[3, 53], [4, 54], [5, 55]]}]], 1)]
    assert counts(tmp_path, *lines, *reads)["inconsistent-offsets"] == 3


@pytest.mark.parametrize("detail", [{"high_watermark": 90, "open_ms": 70_000}, '{"high_watermark":90,"open_ms":70000}'])
def test_a_transaction_that_hangs(tmp_path: Path, detail: object) -> None:
    stable = op("ok", "stable", [["reached", "t-0", 2]], 9, detail=detail)
    lines = [*sent(range(2)), *polled(1, range(2)), stable]
    file = tmp_path / "h.jsonl"
    file.write_text("".join(json.dumps(line | {"time": n * 10**8}) + "\n" for n, line in enumerate(lines)))
    assert check_one(file).counts == {"hanging-transaction": 1}
    file.write_text(file.read_text().replace('"process": 9', '"process": "harness"'))
    assert check_one(file).counts == {"hanging-transaction": 1}


def test_an_answer_about_a_group_without_its_offsets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(json.dumps(op("ok", "committed", [["reached", 1]], 1, detail=G)) + "\n")
    with pytest.raises(HistoryError, match="is neither"):
        import_history(tmp_path / "h.jsonl", tmp_path / "stored")
