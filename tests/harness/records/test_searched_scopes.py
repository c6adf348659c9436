"""``scopes.jsonl``: which searches have put every state to the test, and files that are something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.ground.errors import ResultsError
from harness.records.searched_scopes import SCOPES_FILE, SearchedScope, read_searched_scopes

HELD: dict[str, Any] = {
    "scope": {"name": "killed", "title": "a broker is killed", "constants": {"records": 1}, "families": ["kill"]},
    "settings": {"acks": "all"},
    "version": "1",
    "states": 1342,
    "exhausted": True,
    "acknowledged": 1,
    "permitted": False,
    "broken": None,
}


def searched(**changes: Any) -> SearchedScope:
    return msgspec.convert({**HELD, **changes}, SearchedScope)


def test_a_search_holds_that_saw_every_state_with_every_rule_and_something_to_lose() -> None:
    assert searched().holds


@pytest.mark.parametrize(
    "changes",
    [
        {"exhausted": False},
        {"acknowledged": 0},
        {"permitted": True},
        {"broken": ["logs-match", "broker 1 has another record"]},
        {"scope": {**HELD["scope"], "rules": ["logs-match"]}},
    ],
)
def test_another_search_does_not(changes: dict[str, Any]) -> None:
    assert not searched(**changes).holds


def test_lines_are_read_in_their_order_and_no_file_is_no_search(tmp_path: Path) -> None:
    assert read_searched_scopes(tmp_path) == []
    lines = [{**HELD, "states": states} for states in (5, 3)]
    (tmp_path / SCOPES_FILE).write_bytes(b"\n".join(map(msgspec.json.encode, lines)) + b"\n")
    assert [scope.states for scope in read_searched_scopes(tmp_path)] == [5, 3]


@pytest.mark.parametrize("line", [b"", b"held in all states", b"{}", b"\xff\xfe", b'{"scope": "killed"}'])
def test_a_line_that_is_none_of_a_search_is_named(line: bytes, tmp_path: Path) -> None:
    (tmp_path / SCOPES_FILE).write_bytes(msgspec.json.encode(HELD) + b"\n" + line + b"\n")
    with pytest.raises(
        ResultsError,
        match=r"line 2 of .*scopes.jsonl cannot be read .*delete the lines that `ackproof explore SCOPE --json`",
    ):
        read_searched_scopes(tmp_path)
