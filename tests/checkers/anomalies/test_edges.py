"""Small histories at the edges of promises: what may be, and what may not, by one event more or less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.local import check_one

Line = dict[str, Any]
KEPT = {"record_ms": 0, "tombstone_ms": 0}


class Told:
    """A history as lines, an event a millisecond."""

    def __init__(self, tmp_path: Path) -> None:
        self._path, self._lines = tmp_path / "h.jsonl", list[Line]()

    def event(self, process: int, kind: str, f: str, value: Any, **more: Any) -> Told:
        time_us = 1000 * (len(self._lines) + 1)
        line = {"time": time_us, "process": process, "instance": process, "type": kind, "f": f, "value": value}
        self._lines.append(line | more)
        return self

    def asked(self, process: int, kind: str, f: str, value: Any, **more: Any) -> Told:
        self.event(process, "invoke", f, value, **{name: more[name] for name in more.keys() - {"error"}})
        return self.event(process, kind, f, value, **more)

    def send(
        self,
        value: int,
        offset: int | None,
        key: int = 1,
        kind: str = "ok",
        *,
        tombstone: bool = False,
        process: int = 0,
    ) -> Told:
        of_key = {"key": key, "tombstone": True} if tombstone else {"key": key}
        self.event(process, "invoke", "send", [["send", "t-0", value, of_key]])
        return self.event(process, kind, "send", [["send", "t-0", [offset, value], of_key]])

    def txn(self, kind: str, *sends: tuple[str, int | None, int], process: int = 1, **detail: Any) -> Told:
        self.event(process, "invoke", "txn", [["send", name, value] for name, _, value in sends])
        told = {
            "transactional_id": f"id{process}",
            "number": 0,
            "asked": "commit",
            "ending_us": 1000 * len(self._lines) + 500,
        }
        done = [["send", name, [offset, value]] for name, offset, value in sends]
        return self.event(process, kind, "txn", done, detail=told | detail)

    def poll(self, process: int, *records: tuple[int, int], name: str = "t-0", level: str | None = None) -> Told:
        more = {} if level is None else {"isolation": level}
        self.event(process, "invoke", "poll", [["poll"]], **more)
        return self.event(process, "ok", "poll", [["poll", {name: records}]] if records else [["poll"]], **more)

    def final(
        self,
        process: int,
        end: int,
        *records: tuple[int, int],
        name: str = "t-0",
        level: str | None = None,
        detail: Line | None = None,
    ) -> Told:
        more: Line = {} if level is None else {"isolation": level}
        self.asked(process, "ok", "assign", [name], **more).poll(process, *records, name=name, level=level)
        told = more if detail is None else more | {"detail": detail}
        return self.event(process, "ok", "drain", [name], offset=end, **told)

    def member(self, process: int, kind: str, f: str, offset: int | None, group: str = "g") -> Told:
        return self.asked(process, kind, f, [["reached", "t-0", offset]], detail={"group": group})

    def committed(self, offset: int | None, group: str = "g") -> Told:
        detail = {"group": group}
        self.event(30, "invoke", "committed", [], detail=detail)
        return self.event(30, "ok", "committed", [["reached", "t-0", offset]], detail=detail)

    @property
    def anomalies(self) -> set[str]:
        self._path.write_text("".join(json.dumps(line) + "\n" for line in self._lines))
        return set(check_one(self._path).anomalies)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


@pytest.mark.parametrize(("kind", "went_back"), [("fail", True), ("info", False), ("ok", False)])
@pytest.mark.parametrize(("first", "other"), [(5, 2), (9, 0), (1_000_000_002, 1_000_000_001)])
def test_a_commit_that_was_refused_is_not_where_a_group_may_be(
    told: Told, first: int, other: int, kind: str, *, went_back: bool
) -> None:
    told.member(10, "ok", "commit", first).member(11, kind, "commit", other).committed(other)
    assert ("group-went-back" in told.anomalies) is went_back


@pytest.mark.parametrize(("kind", "is_back"), [("fail", True), ("info", False), ("ok", False)])
def test_a_commit_that_was_refused_makes_no_group_again(told: Told, kind: str, *, is_back: bool) -> None:
    told.member(10, "ok", "commit", 3).member(40, "ok", "delete-group", None).member(11, kind, "commit", 3)
    assert ("returned-group" in told.committed(3).anomalies) is is_back


def test_a_deletion_that_was_refused_does_not_excuse_a_group_that_forgot(told: Told) -> None:
    told.member(10, "ok", "commit", 3).member(40, "fail", "delete-group", None).committed(None)
    assert "group-went-back" in told.anomalies


@pytest.mark.parametrize(("process", "offset"), [(0, 2), (0, None), (3, None)])
def test_a_deleted_key_that_was_written_again_is_not_back(told: Told, process: int, offset: int | None) -> None:
    """The later record may be lost, and that is another matter."""
    told.send(1, 0).send(2, 1, tombstone=True).send(3, offset, kind="info" if process else "ok", process=process)
    assert "returned-key" not in told.final(20, 4, (0, 1), detail=KEPT).anomalies


@pytest.mark.parametrize(("key", "kind"), [(1, "fail"), (2, "ok")])
def test_a_deleted_key_is_back_where_the_later_record_failed_or_is_of_another_key(
    told: Told, key: int, kind: str
) -> None:
    told.send(1, 0).send(2, 1, tombstone=True).send(3, 2 if kind == "ok" else None, key=key, kind=kind)
    read = [(0, 1), *([(2, 3)] if kind == "ok" else [])]
    assert "returned-key" in told.final(20, 4, *read, detail=KEPT).anomalies


def test_a_key_that_is_written_between_two_final_readers_is_no_difference(told: Told) -> None:
    told.send(1, 0).final(20, 1, (0, 1), detail=KEPT).send(2, 1).final(21, 2, (1, 2), detail=KEPT)
    assert told.anomalies == set()


def test_a_key_that_is_deleted_between_two_final_readers_is_no_difference(told: Told) -> None:
    told.send(1, 0).send(4, 1, key=2).final(20, 2, (0, 1), (1, 4), detail=KEPT)
    told.send(2, 2, tombstone=True).final(21, 3, (1, 4), detail=KEPT)
    assert told.anomalies == set()


@pytest.mark.parametrize("ends", [(3, 3), (3, 5), (5, 3)])
def test_two_final_readers_differ_below_both_ends_whatever_these_are(told: Told, ends: tuple[int, int]) -> None:
    told.send(1, 0).send(2, 1).send(3, 2, key=2)
    told.final(20, ends[0], (0, 1), (2, 3), detail=KEPT).final(21, ends[1], (1, 2), (2, 3), detail=KEPT)
    assert "divergent-state" in told.anomalies


@pytest.mark.parametrize(("kind", "lost"), [("info", False), ("fail", True)])
def test_a_tombstone_of_unknown_end_may_have_deleted_its_key(told: Told, kind: str, *, lost: bool) -> None:
    told.send(1, 0).send(3, None, kind=kind, tombstone=True, process=3).send(4, 5, key=2)
    assert ("lost-write" in told.final(20, 6, (5, 4), detail=KEPT).anomalies) is lost


def test_a_tombstone_of_unknown_end_deletes_no_other_key(told: Told) -> None:
    told.send(1, 0).send(3, None, key=7, kind="info", tombstone=True, process=3).send(4, 5, key=2)
    assert "lost-write" in told.final(20, 6, (5, 4), detail=KEPT).anomalies


COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@pytest.mark.parametrize("first", [True, False])
def test_an_offset_has_one_value_for_readers_of_both_levels(told: Told, *, first: bool) -> None:
    levels = (COMMITTED, UNCOMMITTED) if first else (UNCOMMITTED, COMMITTED)
    told.poll(5, (0, 1), (1, 2), level=levels[0]).poll(6, (0, 2), (1, 1), level=levels[1])
    told.event(0, "ok", "send", [["send", "t-0", 1]]).event(0, "ok", "send", [["send", "t-0", 2]])
    assert "inconsistent-offsets" in told.anomalies


def test_an_offset_that_one_level_passes_over_has_one_value(told: Told) -> None:
    told.txn("fail", ("t-0", 0, 1), asked="abort").send(3, 2)
    told.final(5, 3, (2, 3), level=COMMITTED).final(6, 3, (0, 1), (2, 3), level=UNCOMMITTED)
    assert "inconsistent-offsets" not in told.anomalies


def test_the_only_value_of_a_transaction_is_no_half_of_it(told: Told) -> None:
    told.txn("ok", ("t-0", 0, 1)).poll(5, (0, 1), level=COMMITTED).send(3, 2)
    assert told.final(20, 3, (2, 3), level=COMMITTED).anomalies == {"lost-write"}


@pytest.mark.parametrize("kind", ["ok", "info"])
@pytest.mark.parametrize("end", [1, 2])
def test_a_transaction_of_which_one_value_was_read_and_the_other_is_gone_is_torn(
    told: Told, kind: str, end: int
) -> None:
    """With one value read it was committed, also where its end is not known."""
    told.txn(kind, ("t-0", 0, 1), ("t-1", 0, 2))
    told.final(20, 2, (0, 1), level=COMMITTED).final(21, end, name="t-1", level=COMMITTED)
    assert "torn-transaction" in told.anomalies


@pytest.mark.parametrize(("offset", "end", "asked"), [(None, 2, "commit"), (2, 2, "commit"), (0, 2, None)])
def test_a_value_of_unknown_place_or_behind_the_end_or_never_committed_tears_nothing(
    told: Told, offset: int | None, end: int, asked: str | None
) -> None:
    told.txn("info", ("t-0", 0, 1), ("t-1", offset, 2), asked=asked)
    told.final(20, 2, (0, 1), level=COMMITTED).final(21, end, name="t-1", level=COMMITTED)
    assert "torn-transaction" not in told.anomalies


@pytest.mark.parametrize(("told_after_us", "late"), [(200, False), (-200, True)])
def test_a_commit_that_was_asked_for_before_the_successor_was_told_is_none_of_a_zombie(
    told: Told, told_after_us: int, *, late: bool
) -> None:
    told.txn("ok", ("t-0", 0, 1), ending_us=1500, superseded_us=1500 + told_after_us)
    assert ("zombie" in told.final(20, 2, (0, 1), level=COMMITTED).anomalies) is late


@pytest.mark.parametrize(
    ("groups", "second", "level", "doubled"),
    [
        (("g", "h"), "ok", COMMITTED, False),
        (("g", "g"), "ok", COMMITTED, True),
        (("g", "g"), "info", COMMITTED, True),
        (("g", "g"), "ok", UNCOMMITTED, True),
        (("g", "g"), "info", UNCOMMITTED, False),
    ],
)
def test_each_group_has_one_effect_of_a_record(
    told: Told, groups: tuple[str, str], second: str, level: str, *, doubled: bool
) -> None:
    """A reader of uncommitted records shows an effect as well, and proves no commit."""
    told.event(0, "ok", "send", [["send", "t-0", [0, 1]]])
    for number, (group, kind) in enumerate(zip(groups, ("ok", second), strict=True)):
        member, producer = 10 + number, 110 + number
        told.asked(member, "ok", "subscribe", ["t-0"])
        told.event(member, "ok", "rebalance", ["t-0"], detail={"group": group})
        told.poll(member, (0, 1), level=level)
        told.member(member + 500, "ok", "offsets", 1, group)
        detail = {"group": group, "handed_us": 1, "sources": {"t-0": [0]}}
        told.txn(kind, ("o-0", 2 * number, 100 + number), process=producer, **detail)
    names = told.final(21, 4, (0, 100), (2, 101), name="o-0", level=level).anomalies
    assert ("doubled-effect" in names) is doubled


def test_a_tombstone_that_every_reader_read_is_not_lost(told: Told) -> None:
    """Each final reader is asked for what it read itself, of whatever level it is."""
    day = {"record_ms": 0, "tombstone_ms": 86_400_000}
    told.send(1, 0, tombstone=True)
    told.final(20, 2, (0, 1), level=UNCOMMITTED, detail=day).final(21, 2, (0, 1), level=COMMITTED, detail=day)
    assert "lost-tombstone" not in told.anomalies


@pytest.mark.parametrize("level", [COMMITTED, UNCOMMITTED])
def test_a_tombstone_that_the_reader_of_one_level_lacks_is_lost(told: Told, level: str) -> None:
    day = {"record_ms": 0, "tombstone_ms": 86_400_000}
    told.send(1, 0, tombstone=True).send(2, 1, key=2)
    for process, other in ((20, UNCOMMITTED), (21, COMMITTED)):
        told.final(process, 2, *([(0, 1)] if other != level else []), (1, 2), level=other, detail=day)
    assert "lost-tombstone" in told.anomalies


def test_readers_of_uncommitted_records_may_see_what_was_aborted_or_is_open(told: Told) -> None:
    told.txn("fail", ("t-0", 0, 1), asked="abort").txn("info", ("t-0", 1, 2), process=2, asked=None)
    assert told.final(20, 2, (0, 1), (1, 2), level=UNCOMMITTED).anomalies == set()


@pytest.mark.parametrize("levels", [(COMMITTED, UNCOMMITTED), (UNCOMMITTED, COMMITTED)])
def test_the_readers_of_either_level_find_what_is_wrong(told: Told, levels: tuple[str, str]) -> None:
    """The one who came first is no better than the other."""
    told.send(1, 0).send(2, 1, tombstone=True).send(4, 2, key=2).send(5, 3, key=3)
    kept: Any = {"detail": KEPT}
    told.final(20, 5, (1, 2), (2, 4), (3, 5), level=levels[0], **kept)
    told.final(21, 5, (0, 1), (2, 4), (3, 5), (4, 4), level=levels[1], **kept)
    told.final(22, 5, (2, 4), level=levels[1], **kept)
    assert told.anomalies >= {"returned-key", "duplicate", "divergent-state"}


def test_a_value_that_a_reader_of_the_other_level_read_is_not_unseen(told: Told) -> None:
    told.txn("ok", ("t-0", 0, 1)).send(3, 2).poll(5, (2, 3), level=UNCOMMITTED)
    assert told.poll(6, (0, 1), (2, 3), level=COMMITTED).anomalies == set()


def test_a_final_reader_that_does_not_tell_its_level_is_asked_for_what_it_read(told: Told) -> None:
    told.send(1, 0).poll(5, (0, 1), level=UNCOMMITTED)
    assert told.final(20, 1, (0, 1)).anomalies == set()


def test_a_tombstone_that_is_the_last_record_brings_no_key_back(told: Told) -> None:
    told.send(1, 0).send(2, 1, tombstone=True).send(3, 2, tombstone=True)
    assert "returned-key" not in told.final(20, 3, (1, 2), detail=KEPT).anomalies


@pytest.mark.parametrize(("anomaly", "kept"), [("returned-key", KEPT), ("lost-tombstone", {"tombstone_ms": 60_000})])
def test_the_place_of_a_tombstone_is_known_from_whoever_read_it(told: Told, anomaly: str, kept: Line) -> None:
    told.send(1, 0).send(2, None, tombstone=True).final(20, 2, (0, 1), (1, 2), detail=kept)
    assert anomaly in told.final(21, 2, (0, 1), detail=kept).anomalies


@pytest.mark.parametrize(
    ("kind", "asked", "lost"), [("info", "commit", False), ("info", None, True), ("fail", "abort", True)]
)
def test_a_tombstone_deletes_its_key_if_its_transaction_may_have_been_committed(
    told: Told, kind: str, asked: str | None, *, lost: bool
) -> None:
    told.send(1, 0).event(1, "invoke", "txn", [["send", "t-0", 2, {"key": 1, "tombstone": True}]])
    end: Line = {"transactional_id": "a", "number": 0, "asked": asked, "ending_us": None if asked is None else 3000}
    told.event(1, kind, "txn", [["send", "t-0", [1, 2], {"key": 1, "tombstone": True}]], detail=end).send(4, 5, key=2)
    assert ("lost-write" in told.final(20, 6, (5, 4), detail=KEPT).anomalies) is lost


def test_a_record_of_an_aborted_transaction_replaces_no_other_and_is_the_state_of_no_key(told: Told) -> None:
    told.send(1, 0).event(1, "invoke", "txn", [["send", "t-0", 2, {"key": 1}]])
    end: Line = {"transactional_id": "a", "number": 0, "asked": "abort", "ending_us": 3000}
    told.event(1, "fail", "txn", [["send", "t-0", [1, 2], {"key": 1}]], detail=end).send(4, 3, key=2)
    told.final(20, 4, (1, 2), (3, 4), level=UNCOMMITTED, detail=KEPT)
    told.final(21, 4, (0, 1), (3, 4), level=UNCOMMITTED, detail=KEPT)
    told.final(22, 4, (3, 4), level=COMMITTED, detail=KEPT)
    assert told.anomalies >= {"lost-write", "divergent-state"}


@pytest.mark.parametrize("tombstone", [True, False])
def test_a_key_may_be_written_behind_the_end_of_two_final_readers(told: Told, *, tombstone: bool) -> None:
    """The second one came when a cleaner had been there, though both were told the same end."""
    told.send(1, 0).send(4, 1, key=2).final(20, 2, (0, 1), (1, 4), detail=KEPT)
    told.send(2, 2, tombstone=tombstone).final(21, 2, (1, 4), detail=KEPT)
    assert "divergent-state" not in told.anomalies


def test_a_half_whose_place_only_another_reader_knows_is_gone_all_the_same(told: Told) -> None:
    told.txn("info", ("t-0", 0, 1), ("t-1", None, 2)).final(20, 2, (0, 1), level=COMMITTED)
    told.final(21, 2, (0, 2), name="t-1", level=UNCOMMITTED).final(22, 2, name="t-1", level=COMMITTED)
    assert "torn-transaction" in told.anomalies


def test_a_final_reader_that_got_a_broken_record_did_not_miss_it(told: Told) -> None:
    told.event(0, "ok", "send", [["send", "t-0", [0, 1]]]).final(20, 1, (0, 1))
    told.asked(21, "ok", "assign", ["t-0"]).event(21, "invoke", "poll", [["poll"]])
    told.event(21, "ok", "poll", [["poll", {"t-0": [[0, -1, "checksum"]]}]])
    assert told.event(21, "ok", "drain", ["t-0"], offset=1).anomalies == {"corrupt-read"}


def of_group(told: Told, level: str, *records: tuple[int, int]) -> None:
    """A member is assigned t-0, reads and processes records, and commits up to 4."""
    told.asked(10, "ok", "subscribe", ["t-0"], isolation=level).event(
        10, "ok", "rebalance", ["t-0"], detail={"group": "g"}
    )
    told.poll(10, *records, level=level).event(10, "ok", "process", [["reached", "t-0", [0, 4]]], detail={"group": "g"})
    told.member(11, "ok", "commit", 4)


@pytest.mark.parametrize(("level", "skips"), [(COMMITTED, False), (UNCOMMITTED, True)])
def test_a_group_passes_over_what_its_own_level_does_not_see(told: Told, level: str, *, skips: bool) -> None:
    told.txn("fail", ("t-0", 0, 1), asked="abort").poll(5, (0, 1), level=UNCOMMITTED)
    of_group(told, level, (3, 4))
    assert ("group-skip" in told.anomalies) is skips


def test_a_group_passes_over_what_was_gone_when_it_came(told: Told) -> None:
    """By a later record of the key, or as the log began later."""
    told.send(1, 0).event(0, "ok", "send", [["send", "t-0", [1, 2]]]).poll(5, (0, 1), (1, 2)).send(3, 2)
    told.event(40, "ok", "log-start", [["reached", "t-0", 2]])
    of_group(told, COMMITTED, (2, 3))
    assert "group-skip" not in told.anomalies


@pytest.mark.parametrize("order", [("g", "h"), ("h", "g")])
def test_each_group_over_one_input_owes_its_own_effects(told: Told, order: tuple[str, str]) -> None:
    told.event(0, "ok", "send", [["send", "t-0", [0, 1]]]).poll(5, (0, 1), level=COMMITTED)
    for number, group in enumerate(order):
        kind, asked = ("ok", "commit") if group == "g" else ("fail", "abort")
        detail: Line = {"transactional_id": group, "number": 0, "asked": asked, "ending_us": 1, "sources": {"t-0": [0]}}
        told.event(110 + number, "invoke", "txn", [["send", "o-0", 100 + number]])
        done = [["send", "o-0", [2 * number, 100 + number]], ["reached", "t-0", 1]]
        told.event(110 + number, kind, "txn", done, detail=detail | {"group": group, "handed_us": 1}).committed(
            1, group
        )
    assert {"missing-effect", "aborted-commit"} <= told.anomalies


def test_an_operator_may_set_a_group_past_a_record_without_its_effect(told: Told) -> None:
    told.event(0, "ok", "send", [["send", "t-0", [0, 1]]]).poll(5, (0, 1), level=COMMITTED)
    detail: Line = {"group": "g", "handed_us": 1, "sources": {"t-0": [0]}, "asked": "abort", "ending_us": 1}
    told.event(110, "invoke", "txn", [["send", "o-0", 100]])
    done = [["send", "o-0", [0, 100]], ["reached", "t-0", 1]]
    told.event(110, "fail", "txn", done, detail=detail | {"transactional_id": "a", "number": 0})
    assert {"missing-effect", "aborted-commit"}.isdisjoint(told.member(40, "ok", "reset", 1).committed(1).anomalies)


def test_a_group_stays_where_only_an_operator_set_it(told: Told) -> None:
    assert "group-went-back" in told.member(40, "ok", "reset", 3).committed(1).anomalies


@pytest.mark.parametrize(("asked", "kind"), [(None, "info"), ("abort", "fail"), ("abort", "info")])
def test_a_transaction_without_a_commit_is_not_where_a_group_may_be(told: Told, asked: str | None, kind: str) -> None:
    told.member(10, "ok", "commit", 1)
    told.event(110, "invoke", "txn", [])
    detail: Line = {"transactional_id": "a", "number": 0, "asked": asked, "ending_us": None if asked is None else 1}
    told.event(110, kind, "txn", [["reached", "t-0", 1]], detail=detail | {"group": "g"})
    assert "group-went-back" in told.member(10, "ok", "commit", 5).committed(1).anomalies


@pytest.mark.parametrize(("kind", "stale"), [("fail", True), ("info", False), ("ok", False)])
def test_a_refused_deletion_begins_no_generation_again(told: Told, kind: str, *, stale: bool) -> None:
    told.event(10, "ok", "rebalance", ["t-0"], detail={"group": "g", "generation": 5})
    told.member(40, kind, "delete-group", None)
    told.event(11, "ok", "rebalance", ["t-0"], detail={"group": "g", "generation": 5})
    assert ("stale-generation" in told.anomalies) is stale
