"""Scopes in which a log is compacted: what a log must say of each key, and the searches themselves."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core.cleaner import Cleaner, Pass
from harness.broker.core.messages import Deletion, RecordBatch
from harness.broker.core.types import NONE, PartitionState
from harness.ground.errors import PlanError
from harness.lab.explore import Result, Scope, exhaust, scope_named, story_text
from harness.lab.explore.brokers import BrokerCopy
from harness.lab.explore.keys import content_of, key_of, lacking, numbers_of, united
from harness.lab.explore.rules import Shown, broken_rules
from tests.harness.lab.explore.twin import both

COMPACTED = scope_named("compacted")
LATE = scope_named("compacted-late")
#: In small: two brokers, one of them away.
TWO = {"brokers": 2, "in-sync": 1}
MIN_ISR_1 = {"min.insync.replicas": 1}


def log(text: str) -> list[tuple[int, int] | None]:
    """The records of epoch 0 by offset, where a point stands for one that was cleaned away."""
    return [None if letter == "." else (0, ord(letter) - ord("a")) for letter in text]


@pytest.mark.parametrize(
    ("keys", "has", "committed", "lacks"),
    [
        ("kK", "ab", "ab", (None, None)),
        ("kK", ".b", "ab", (None, None)),
        ("kK", "..", "ab", (None, None)),
        ("kK", "a.", "ab", (1, 0)),
        ("kK", "a", "ab", (1, 0)),
        ("kk", "a.", "ab", (1, 0)),
        ("kk", ".b", "ab", (None, None)),
        ("kk", "..", "ab", (1, None)),
        ("kk", ".b", "a", (0, None)),
        ("kKx", "..cd", "abcd", (None, None)),
        ("kKx", "a.cd", "abcd", (1, 0)),
        ("", "ab", "ab", (None, None)),
        ("", "a.", "ab", (1, None)),
    ],
)
def test_a_log_lacks_the_last_record_of_a_key_unless_that_is_a_tombstone_with_nothing_to_delete(
    keys: str, has: str, committed: str, lacks: tuple[int | None, int | None]
) -> None:
    assert lacking(keys, log(has), log(committed)) == lacks


def test_two_logs_say_together_what_a_cleaner_has_removed_from_one_of_them() -> None:
    assert united(log("a.c"), log(".b")) == tuple(log("abc"))
    assert united(log(".b"), log("a.c")) == tuple(log("abc"))
    assert united((), log(".b")) == tuple(log(".b"))


def test_a_record_has_the_key_of_its_place_and_later_ones_have_the_last() -> None:
    assert [key_of("kKx", record) for record in range(5)] == ["k", "K", "x", "x", "x"]
    records = tuple(content_of("kKx", record) for record in range(3))
    assert records == ((b"k", b"\0"), Deletion(b"k", b"\1"), (b"x", b"\2"))
    assert [type(record) for record in records] == [tuple, Deletion, tuple]
    assert numbers_of(RecordBatch(3, 3, records)) == [0, 1, 2]
    assert content_of("", 7) == 7
    assert numbers_of(RecordBatch(1, 1, (7,))) == [7]


@pytest.mark.parametrize(
    ("constants", "settings", "words"),
    [
        (
            {},
            {"cleanup.policy": "compact"},
            r"cleanup\.policy=compact needs records with keys; add --constant keys=kKx",
        ),
        ({"keys": "k1"}, {}, r"keys=k1 are not letters; write one a record, a capital for a tombstone, as in kKx"),
        ({"cleanings": 1}, {}, r"cleanings happen in a compacted log; add --set cleanup\.policy=compact"),
        ({}, {"min.compaction.lag.ms": 1}, r"no age of records; leave out min\.compaction\.lag\.ms"),
        (
            {},
            {"cleanup.policy": "compact,delete", "retention.ms": 5_000},
            r"no age of records; leave out retention\.ms",
        ),
    ],
)
def test_a_scope_in_which_no_cleaner_could_do_anything_is_refused(
    constants: dict[str, object], settings: dict[str, object], words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        exhaust(scope_named("calm-1").varied(constants, settings))


def test_a_scope_says_which_passes_of_cleaners_it_leaves_out() -> None:
    assert "cleaners of compacted logs" in scope_named("calm-1").leaves_out()
    assert any(
        "more than 2 passes of cleaners that change something, 1 of them" in sentence for sentence in LATE.leaves_out()
    )


ALONE = PartitionState((0,), (0,), 0, 0, 0)


@pytest.mark.parametrize(
    ("has", "read", "acknowledged", "broken"),
    [
        ("..c", "abc", (0, 1, 2), None),
        ("a.c", "abc", (0, 1, 2), ("deleted-stay-deleted", "broker 0 may lead with a, which b has deleted")),
        ("a", "ab", (0, 1), ("candidates-are-complete", "broker 0 may lead without b, acknowledged")),
        ("ab.", "abc", (0, 1, 2), ("candidates-are-complete", "broker 0 may lead without c, acknowledged")),
        ("a", "a", (0, 1), ("candidates-are-complete", "broker 0 may lead without b, acknowledged")),
        ("ab", "a", (0, 1), None),
    ],
)
def test_a_candidate_has_the_last_of_each_key_and_all_that_was_acknowledged_and_not_yet_read(
    has: str, read: str, acknowledged: tuple[int, ...], broken: tuple[str, str] | None
) -> None:
    copy = BrokerCopy(0, alive=True, away=NONE, incarnation=1, log=tuple(log(has)), flushed=0)
    rules = broken_rules(ALONE, [copy], Shown(acknowledged, tuple(log(read))), "kKx")
    assert rules == ([] if broken is None else [broken])


def kinds(result: Result) -> list[str]:
    return [step.action.kind for step in result.trace]


def test_a_replica_that_is_away_for_longer_than_a_tombstone_stays_brings_back_what_was_deleted() -> None:
    """The shortest way of Kafka's rules to docs/findings/006-compaction-race.md, of two brokers."""
    late = LATE.varied(TWO, MIN_ISR_1)
    result = exhaust(late)
    assert result.broken == ("deleted-stay-deleted", "broker 1 may lead with a, which b has deleted")
    assert kinds(result) == ["write", "deliver", "write", "write", "clean", "write", "clean-late", *["deliver"] * 3]
    assert story_text(late, result) is None  # Stories have no single pass of a cleaner.


def test_where_tombstones_wait_for_replicas_nothing_that_was_deleted_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[Pass] = []
    clean = Cleaner.clean

    def noted(cleaner: Cleaner, *given: Any) -> Pass | None:
        done = clean(cleaner, *given)
        passes.extend([] if done is None else [done])
        return done

    monkeypatch.setattr(Cleaner, "clean", noted)
    result = exhaust(scope_named("compacted-waits"), workers=1)
    assert (result.exhausted, result.broken) == (True, None)
    assert any(done.tombstones for done in passes), "tombstones do go"


def test_what_is_found_among_records_with_keys_is_no_story_even_if_no_log_was_cleaned() -> None:
    """A story made of a counterexample sends records that have no key in common."""
    scope = COMPACTED.varied(TWO, {**MIN_ISR_1, "planted.bug": "acknowledge-after-append"})
    result = exhaust(scope)
    assert sorted(kinds(result)) == ["deliver", "deliver", "write"]
    assert story_text(scope, result) is None


def test_while_no_time_limit_of_a_tombstone_is_over_nothing_comes_back() -> None:
    result = exhaust(COMPACTED.varied(TWO, MIN_ISR_1))
    assert result.exhausted
    assert result.acknowledged == 4


def test_a_cleaner_that_fails_is_seen_though_it_has_changed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_cleaner: Cleaner, *_: object) -> None:
        raise AssertionError("a cleaner that fails")

    monkeypatch.setattr(Cleaner, "clean", fails)
    result = exhaust(COMPACTED.varied(TWO, MIN_ISR_1))
    assert (result.broken, kinds(result)) == (("assertion", "broker 0: a cleaner that fails"), ["clean"])


def broken(scope: Scope) -> tuple[str, list[str]]:
    result = exhaust(scope)
    assert result.broken is not None
    return result.broken[0], kinds(result)


@pytest.mark.parametrize(
    ("bug", "rule", "steps"),
    [
        ("remove-tombstone-early", "deleted-stay-deleted", 8),
        ("keep-first-value", "deleted-stay-deleted", 4),
    ],
)
def test_a_wrong_cleaner_is_found_on_a_shortest_way(bug: str, rule: str, steps: int) -> None:
    broken_rule, way = broken(COMPACTED.varied(TWO, {**MIN_ISR_1, "planted.bug": bug}))
    assert (broken_rule, len(way)) == (rule, steps)


def test_a_cleaner_above_the_high_watermark_is_found_on_a_shortest_way() -> None:
    rule, way = broken(COMPACTED.varied({}, {"planted.bug": "clean-above-high-watermark"}))
    assert rule == "candidates-are-complete"
    assert sorted(way[:-1]) == ["deliver", "deliver", "write", "write", "write"]
    assert way[-1] == "clean"


@pytest.mark.system
def test_a_search_without_reductions_sees_the_same_of_cleaned_logs() -> None:
    """Time limits of tombstones are numbers of their own there."""
    reduced, plain = both(LATE.varied(TWO, MIN_ISR_1))
    assert reduced[:2] == plain[:2]
    assert (reduced[2], plain[2]) == (4_587, 7_219)
    assert plain[1] == {"deleted-stay-deleted"}
