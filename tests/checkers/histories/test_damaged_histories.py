"""A history that is damaged, refused or no history at all is told by itself; the others are judged."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from checkers import local
from checkers.columns.loading import Unit, load_each
from checkers.errors import CheckError
from checkers.histories import stores
from checkers.histories.discovery import Sources, find_histories
from checkers.histories.scratch import Scratch
from checkers.local import check_one, judge_each
from checkers.spark.pipeline import check
from checkers.spark.planning import plan
from tests.checkers.conformance import BY_NAME, write_history
from tests.checkers.scenes import Scene
from tests.workloads.history.event_strategies import record_all
from workloads.history import HistoryError, HistoryWriter
from workloads.history.files import check_metadata
from workloads.history.schema import META_VERSION


def stored(directory: Path, sends: int = 200) -> Path:
    """A history with one lost write; its file."""
    scene = Scene()
    for value in range(sends):
        scene.send(value, value)
    scene.poll(*((offset, offset) for offset in range(sends) if offset != 3))
    with HistoryWriter(directory, "run") as writer:
        record_all(writer, scene.events)
    return directory / "clustered.parquet"


def damaged(file: Path) -> Path:
    """The same file with a stretch of its first pages written over; its footer is whole."""
    content = bytearray(file.read_bytes())
    content[8:600] = b"\x5a" * 592
    file.write_bytes(content)
    return file


def test_damaged_pages_are_told_and_the_histories_in_the_same_batch_are_judged(tmp_path: Path) -> None:
    files = [stored(tmp_path / "good"), damaged(stored(tmp_path / "bad")), stored(tmp_path / "fine")]
    units = [Unit(number, str(file)) for number, file in enumerate(files)]
    parts = {part.history: part for part in judge_each(units, None, {})}
    assert str(files[1]) in (parts[1].problem or "")
    assert [parts[number].counts["lost-write"] for number in (0, 2)] == [1, 1]
    each = load_each([(number, str(file)) for number, file in enumerate(files)])
    assert [batch.histories for batch in each] == [[0], [2]]


def test_whatever_one_history_makes_a_kernel_raise_is_its_own_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [stored(tmp_path / "good"), stored(tmp_path / "strange", sends=7)]

    def fails(batch: object, *, shown: int | None) -> list[object]:
        if 1 in batch.histories:  # type: ignore[attr-defined]
            raise IndexError("out of bounds")
        return judged(batch, shown=shown)  # type: ignore[arg-type, return-value]

    judged = local.judge_batch
    monkeypatch.setattr(local, "judge_batch", fails)
    good, strange = judge_each([Unit(number, str(file)) for number, file in enumerate(files)], None, {})
    assert good.counts["lost-write"] == 1
    assert strange.problem == f"{files[1]} cannot be judged (IndexError: out of bounds); please report it"


def test_what_lies_beside_a_history_and_cannot_be_read_makes_only_that_history_unknown(tmp_path: Path) -> None:
    for name in ("bad", "good"):
        stored(tmp_path / name)
    (tmp_path / "bad" / "origin.json").write_text('{"values": 5}')
    with Sources(find_histories([tmp_path])) as sources:
        planned = plan(sources.ready, None)
    assert [unit.history for unit in planned.units] == [1]
    assert f"{tmp_path / 'bad' / 'origin.json'} cannot be read" in planned.problems[0]
    with pytest.raises(CheckError, match="restore it, or import the history again"):
        check_one(tmp_path / "bad")


def test_a_store_that_refuses_a_file_which_it_listed_makes_only_that_history_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bad", "good"):
        stored(tmp_path / name)

    def refuses(path: Path) -> bytes | None:
        if "bad" in path.parts:
            raise OSError("AWS Error ACCESS_DENIED during GetObject")
        return None

    monkeypatch.setattr(stores, "read_bytes", refuses)
    with Sources(find_histories([tmp_path])) as sources:
        planned = plan(sources.ready, None)
    assert [unit.history for unit in planned.units] == [1]
    assert "ACCESS_DENIED" in planned.problems[0]


#: Things that may lie where a history should, and would keep its reader waiting or end it.
IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("gone"),
    "a device": lambda path: path.symlink_to(os.devnull),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("what", IRREGULAR)
@pytest.mark.parametrize("name", ["clustered.parquet", "live-00001.parquet"])
def test_what_is_no_file_makes_only_its_history_unknown(tmp_path: Path, name: str, what: str) -> None:
    for directory in ("bad", "good"):
        stored(tmp_path / directory)
    (tmp_path / "bad" / name).unlink(missing_ok=True)
    IRREGULAR[what](tmp_path / "bad" / name)
    bad, good = check([tmp_path])
    assert good.counts["lost-write"] == 1
    assert bad.valid == "unknown"
    assert f"{tmp_path / 'bad' / name} cannot be read: " in (bad.reason or "")


@pytest.mark.parametrize("what", IRREGULAR)
@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_what_is_named_and_is_no_file_is_told_and_the_next_is_judged(tmp_path: Path, name: str, what: str) -> None:
    IRREGULAR[what](tmp_path / name)
    bad, good = check([tmp_path / name, stored(tmp_path / "good").parent])
    assert good.counts["lost-write"] == 1
    assert (bad.reason or "").startswith(f"{tmp_path / name} cannot be read: ")


def test_metadata_that_is_no_text_is_another_layout() -> None:
    with pytest.raises(HistoryError, match="has history layout \ufffd, and this version reads"):
        check_metadata("a", {META_VERSION: b"\xff"})


@pytest.mark.parametrize("name", ["report.html", "notes.txt", "no-ending"])
def test_any_other_file_is_not_called_a_broken_history(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("<!doctype html>")
    with pytest.raises(CheckError, match=f"{name} is no history that can be read: a history is a run"):
        check_one(tmp_path / name)


def test_json_lines_with_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    file = write_history(BY_NAME["lost-write/consistent"], tmp_path / "h.jsonl")
    before = check_one(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert check_one(file) == before


def test_the_scratch_directory_of_a_dead_check_is_removed_by_the_next_one(tmp_path: Path) -> None:
    dead = Scratch("ackproof-check-", tmp_path)
    (dead.path / "history").mkdir()
    with Scratch("ackproof-check-", tmp_path) as alive:
        assert dead.path.exists(), "its maker lives"
        os.close(dead._lock)  # what the kernel does when a process ends
        with Scratch("ackproof-check-", tmp_path) as next_one:
            assert sorted(tmp_path.iterdir()) == sorted([alive.path, next_one.path])
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_nobody_locked_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "ackproof-check-of-somebody"
    other.mkdir()
    held = tmp_path / "ackproof-check-held"
    held.mkdir()
    with (held / ".in-use").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Scratch("ackproof-check-", tmp_path).close()
    assert other.exists()
    assert held.exists()
