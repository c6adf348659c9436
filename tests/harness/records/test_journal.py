"""The undo journal: whatever a dead harness left is named in it."""

import os
from pathlib import Path

import pytest

from harness.records.journal import FILE_NAME, Journal, PendingUndo, not_undone


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


def test_an_announced_deed_stands_before_it_is_done(path: Path) -> None:
    Journal(path).intend("process", {"token": "t", "command": ["sleep"]})
    assert not_undone(path) == [PendingUndo(1, "process", {"token": "t", "command": ["sleep"]})]


def test_facts_learned_after_the_deed_join_it(path: Path) -> None:
    journal = Journal(path)
    entry = journal.intend("process", {"token": "t"})
    journal.amend(entry, {"pid": 17, "start_ticks": 99})
    assert not_undone(path) == [PendingUndo(entry, "process", {"token": "t", "pid": 17, "start_ticks": 99})]


def test_an_undone_deed_no_longer_stands_and_undoing_twice_is_harmless(path: Path) -> None:
    journal = Journal(path)
    first, second = journal.intend("bridge", {"name": "a"}), journal.intend("namespace", {"name": "b"})
    journal.done(first)
    journal.done(first)
    assert [undo.entry for undo in not_undone(path)] == [second]


def test_a_torn_last_line_is_passed_over(path: Path) -> None:
    Journal(path).intend("bridge", {"name": "a"})
    with path.open("ab") as file:
        file.write(b'{"entry": 2, "kind": "names')
    assert [undo.facts["name"] for undo in not_undone(path)] == ["a"]


def test_a_journal_continued_after_a_torn_line_loses_nothing(path: Path) -> None:
    Journal(path).intend("bridge", {"name": "a"})
    with path.open("ab") as file:
        file.write(b'{"entry": 2, "kind": "names')
    entry = Journal(path).intend("namespace", {"name": "b"})
    assert entry == 2
    assert [undo.facts["name"] for undo in not_undone(path)] == ["a", "b"]


def test_a_missing_journal_means_that_nothing_stands(path: Path) -> None:
    assert not_undone(path) == []


def test_every_line_is_synced_before_the_deed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    journal = Journal(path)
    monkeypatch.setattr("harness.records.journal.os.fsync", lambda _: synced.append(path.read_bytes()))
    journal.intend("process", {"token": "t"})
    assert synced
    assert synced[-1].endswith(b'"facts":{"token":"t"}}\n')


def test_close_is_idempotent(path: Path) -> None:
    journal = Journal(path)
    journal.intend("bridge", {"name": "a"})
    journal.close()
    journal.close()
    assert len(not_undone(path)) == 1


def test_a_pipe_is_no_journal_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE_NAME)
    with pytest.raises(OSError, match="not a regular file"):
        not_undone(tmp_path / FILE_NAME)
