"""Lines of Kafka's VerifiableProducer and VerifiableConsumer: what they prove, and what they cannot."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.local import check_one
from checkers.verdicts.verdict import Verdict
from tests.workloads.history.event_strategies import examples
from workloads.history import HistoryError, import_history, read_events
from workloads.history.verifiable import _Values

Line = dict[str, Any]


def line(name: str, **fields: Any) -> Line:
    return {"timestamp": 1_700_000_000_000, "name": name} | fields


def acked(value: str, offset: int, partition: int = 0) -> Line:
    return line("producer_send_success", key=None, value=value, topic="orders", partition=partition, offset=offset)


def failed(value: str, message: str = "Expiring 1 record(s)") -> Line:
    kind = "class org.apache.kafka.common.errors.TimeoutException"
    return line("producer_send_error", key=None, value=value, topic="orders", exception=kind, message=message)


def assigned(*partitions: int) -> Line:
    return line("partitions_assigned", partitions=[{"topic": "orders", "partition": number} for number in partitions])


def read(*records: tuple[str, int], partition: int = 0, verbose: bool = True) -> list[Line]:
    """A poll's records of one log partition: values with their offsets."""
    log_partition = {"topic": "orders", "partition": partition}
    offsets = [offset for _, offset in records]
    part = log_partition | {"count": len(records), "minOffset": min(offsets), "maxOffset": max(offsets)}
    told = [line("record_data", key=None, value=value, offset=offset, **log_partition) for value, offset in records]
    return [*(told if verbose else ()), line("records_consumed", count=len(records), partitions=[part])]


START, END = line("startup_complete"), line("shutdown_complete")


def written(path: Path, lines: Iterable[Line | str]) -> Path:
    path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in lines))
    return path


def judged(tmp_path: Path, *lines: Line | str, name: str = "both.jsonl") -> Verdict:
    return check_one(written(tmp_path / name, lines))


SENT = [START, *(acked(f"1.{number}", number) for number in range(4)), END]
ALL = read(*((f"1.{number}", number) for number in range(4)))


def test_a_log_that_was_read_whole_holds(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *SENT, START, assigned(0), *ALL, END)
    assert (verdict.valid, verdict.counts) == (True, {})
    assert (verdict.exercise.acknowledged, verdict.exercise.records_read) == (4, 4)
    (only,) = verdict.left_out
    assert only.startswith("when sends began, and what a producer sent before what")


def test_the_lines_may_be_in_any_order_and_behind_prefixes_and_noise(tmp_path: Path) -> None:
    lines = [*SENT, START, assigned(0), *ALL]
    prefixed = [f"[2025-01-01 00:00:00,000] INFO {json.dumps(text)}" for text in lines]
    for name, each in (("consumer-first.log", [*lines[6:], *lines[:6]]), ("prefixed.txt", prefixed)):
        noisy = ["SLF4J: No providers {} were found", "", *each, '{"timestamp":17000']
        verdict = judged(tmp_path, *noisy, name=name)
        assert (verdict.valid, verdict.counts) == (True, {})
        assert "lines without an object of JSON that has a name (2 times, first in line 1)" in verdict.left_out


def test_an_acknowledged_record_that_readers_passed_over_is_lost(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *SENT, assigned(0), *read(("1.0", 0), ("1.2", 2), ("1.3", 3)))
    assert verdict.valid is False
    assert verdict.counts == {"lost-write": 1, "unseen": 1, "int-poll-skip": 1}
    (lost,) = verdict.anomalies["lost-write"]
    assert (lost.key, lost.value) == ("orders-0", "1.1")


def test_an_acknowledged_record_that_nobody_read_is_unseen(tmp_path: Path) -> None:
    assert judged(tmp_path, *SENT, assigned(0), *read(("1.0", 0), ("1.1", 1))).counts == {"unseen": 2}


def test_a_record_that_is_in_the_log_twice_is_a_duplicate(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *SENT, assigned(0), *ALL, *read(("1.2", 4)))
    assert verdict.counts["duplicate"] == 1


def test_two_values_at_one_offset_are_found(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *SENT, acked("2.0", 2), assigned(0), *ALL)
    assert verdict.counts["inconsistent-offsets"] == 1


@pytest.mark.parametrize("message", ["Expiring 1 record(s)", "Expiring 1 record(s) for orders-1:120000 ms"])
def test_a_failed_send_may_be_in_the_log_or_not(tmp_path: Path, message: str) -> None:
    lines = [*SENT, failed("1.4", message), assigned(0, 1), *ALL]
    for more in ([], read(("1.4", 0), partition=1)):
        verdict = judged(tmp_path, *lines, *more)
        assert (verdict.valid, verdict.counts) == (True, {})
        assert "whether failed sends (producer_send_error) are in the log; they may be or not" in verdict.left_out[1]


def test_a_failed_send_does_not_make_another_log_partition_lose_it(tmp_path: Path) -> None:
    """Its attempts are tried one by one: the record in one partition proves nothing of the other."""
    sent = [acked("1.0", 0), acked("1.1", 0, 1), failed("1.2"), acked("1.3", 2), acked("1.4", 2, 1)]
    reads = [*read(("1.0", 0), ("1.2", 1), ("1.3", 2)), *read(("1.1", 0), ("1.4", 2), partition=1)]
    assert judged(tmp_path, *sent, assigned(0, 1), *reads).counts == {}


def test_a_producer_that_was_killed_leaves_records_without_a_line(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *SENT[:-1], assigned(0), *ALL, *read(("1.4", 4), ("1.5", 5)))
    assert (verdict.valid, verdict.counts) == (True, {})
    assert "records without a producer's line; they count as sent, and not acknowledged (2 times" in str(
        verdict.left_out
    )


def test_counts_alone_prove_nothing(tmp_path: Path) -> None:
    counts = read(*((f"1.{number}", number) for number in range(4)), verbose=False)
    for lines in (counts, [*counts, *read(("1.0", 0))]):
        verdict = judged(tmp_path, *SENT, assigned(0), *lines)
        assert (verdict.valid, "--verbose" in str(verdict.reason)) == ("unknown", True)
    assert "unseen" not in verdict.counts


@pytest.mark.parametrize(
    ("lines", "who"), [(SENT, "VerifiableConsumer"), ([START, assigned(0), *ALL], "VerifiableProducer")]
)
def test_the_lines_of_one_side_alone_prove_nothing(tmp_path: Path, lines: list[Line], who: str) -> None:
    verdict = judged(tmp_path, *lines)
    assert verdict.valid == "unknown"
    assert f"no line of a {who} is here; put the lines of all" in str(verdict.reason)


def test_what_is_before_the_first_record_that_was_read_is_not_lost(tmp_path: Path) -> None:
    """As of a group that began at its last commit, or at the end of the log."""
    verdict = judged(tmp_path, *SENT, assigned(0), *read(("1.2", 2), ("1.3", 3)))
    assert (verdict.valid, verdict.counts) == (True, {})
    assert "acknowledged sends before the first record that any consumer read (2 times" in str(verdict.left_out)


def test_a_log_partition_that_no_consumer_had_is_not_judged(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *SENT, acked("1.9", 0, 3), assigned(0), *ALL)
    assert (verdict.valid, verdict.counts) == (True, {})
    assert judged(tmp_path, *SENT, acked("1.9", 0, 3), assigned(0, 3), *ALL).counts == {"unseen": 1}


def test_a_send_without_acknowledgement_is_none(tmp_path: Path) -> None:
    sent = [acked(f"1.{number}", -1) for number in range(4)]
    verdict = judged(tmp_path, *sent, assigned(0), *read(("1.0", 0), ("1.2", 1)))
    assert (verdict.valid, verdict.counts, verdict.exercise.acknowledged) == (True, {}, 0)
    assert "sends without an offset (acks=0), which no broker acknowledged (4 times" in str(verdict.left_out)


def test_a_log_partition_that_is_assigned_again_may_be_read_again(tmp_path: Path) -> None:
    again = [assigned(0), *read(("1.0", 0), ("1.1", 1)), assigned(0), *ALL]
    assert judged(tmp_path, *SENT, *again).counts == {}
    without = [text for text in again[1:] if text["name"] != "partitions_assigned"]
    assert judged(tmp_path, *SENT, assigned(0), *without).counts == {"nonmonotonic-poll": 1}


def test_two_consumers_of_a_group_may_write_into_one_file(tmp_path: Path) -> None:
    sent = [acked("1.0", 0), acked("1.1", 0, 1), acked("1.2", 1), acked("1.3", 1, 1)]
    reads = [assigned(0), assigned(1), *read(("1.0", 0)), *read(("1.1", 0), partition=1)]
    reads += [*read(("1.2", 1)), *read(("1.3", 1), partition=1)]
    assert judged(tmp_path, *sent, *reads).counts == {}


def test_lines_that_are_not_taken_over_are_said(tmp_path: Path) -> None:
    more = [line("offsets_committed", offsets=[], success=True), line("tool_data", sent=4), line("branched", a=1)]
    told = str(judged(tmp_path, *SENT, assigned(0), *ALL, *more).left_out)
    assert "what groups committed (offsets_committed)" in told
    assert 'lines with the name \\"branched\\"' in told or 'lines with the name "branched"' in told
    assert "tool_data" not in told


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (
            acked("1.0", 9),
            r'line 7: the value "1.0" is acknowledged twice, and values must be unique; .*--value-prefix',
        ),
        (
            line("record_data", value="1.0", topic="orders", partition=0),
            "line 7: the line has no offset that is a whole",
        ),
        (line("producer_send_success", value="x", topic="orders", offset=1), "line 7: the line has no partition"),
        (line("offsets_acknowledged", offsets=[]), "line 7: a VerifiableShareConsumer wrote this"),
        (line("producer_send_error", value="x"), "line 7: the line has no topic that is a text"),
    ],
)
def test_a_line_that_is_wrong_is_refused(tmp_path: Path, wrong: Line, why: str) -> None:
    with pytest.raises(HistoryError, match=why):
        import_history(written(tmp_path / "h.log", [*SENT, wrong]), tmp_path / "stored")


def test_a_long_poll_is_cut_and_no_record_is_left_behind(tmp_path: Path) -> None:
    many = [(f"1.{number}", number) for number in range(2_500)]
    lines = [*(acked(*each) for each in many), assigned(0), *read(*many)[:-1]]
    import_history(written(tmp_path / "h.log", lines), tmp_path / "stored")
    polls = [event for event in read_events(tmp_path / "stored") if event.function == "poll" and event.type == "ok"]
    assert [len(event.micro[0].records["orders-0"]) for event in polls] == [1_000, 1_000, 500]
    assert check_one(tmp_path / "h.log").counts == {}


@given(st.lists(st.integers(0, 30)), st.sampled_from((None, "1", "a.b")))
@examples(20)
def test_stretches_of_values_hold_what_was_added(numbers: list[int], prefix: str | None) -> None:
    stretches, plain = _Values(), set[str]()
    for number in numbers:
        value = str(number) if prefix is None else f"{prefix}.{number}"
        assert stretches.add(value) == (value not in plain)
        plain.add(value)
    names = [str(n) if prefix is None else f"{prefix}.{n}" for n in range(32)]
    assert {name for name in names if name in stretches} == plain
    assert "2.5" not in stretches
    assert None not in stretches


@given(st.integers(0, 2**32))
@examples(15)
def test_lost_and_unread_records_are_those_that_a_set_says(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Kafka's own tests compare sets: what was acknowledged, and what was consumed."""
    chance = random.Random(seed)
    log = [f"{chance.randint(1, 2)}.{number}" for number in range(chance.randint(2, 12))]
    gone = {value for value in log[1:] if chance.random() < 0.2}
    sent = [acked(value, offset) for offset, value in enumerate(log)]
    records = [(value, offset) for offset, value in enumerate(log) if value not in gone]
    lines = [*sent, *(failed(f"3.{number}") for number in range(chance.randint(0, 2)))]
    chance.shuffle(lines)
    verdict = judged(tmp_path_factory.mktemp("lines"), *lines, assigned(0), *read(*records))
    missing = {value for finding in verdict.anomalies.get("unseen", ()) for value in finding.messages}
    assert missing == gone
    last = max(offset for _, offset in records)
    assert verdict.counts.get("lost-write", 0) == len([value for value in gone if log.index(value) < last])


def test_two_objects_on_a_line_both_count(tmp_path: Path) -> None:
    """Two processes that write into one pipe may meet on a line; a line may go on with anything."""
    texts = [json.dumps(entry) for entry in SENT]
    lost = read(("1.0", 0), ("1.2", 2), ("1.3", 3))
    for joined in (texts[1] + texts[2], f"{texts[1]} {texts[2]}\x1b[0m", f"{{a}} {texts[1]},{texts[2]}"):
        verdict = judged(tmp_path, texts[0], joined, *texts[3:], START, assigned(0), *lost)
        assert "lost-write" in verdict.anomalies, joined


def test_an_object_that_was_cut_off_by_another_is_said(tmp_path: Path) -> None:
    torn = json.dumps(SENT[2])[:60] + json.dumps(SENT[3])
    verdict = judged(tmp_path, *SENT[:2], torn, *SENT[4:], START, assigned(0), *ALL)
    assert [text for text in verdict.left_out if text.startswith("objects of JSON without an end")]


def interleaved(rng: random.Random, readers: int, offsets: list[int]) -> list[Line]:
    """Polls of several consumers of the same log partition, in any order."""
    left = [list(offsets) for _ in range(readers)]
    lines: list[Line] = []
    while any(left):
        mine = rng.choice([each for each in left if each])
        count = rng.randint(1, len(mine))
        lines += read(*((f"1.{offset}", offset) for offset in mine[:count]))
        del mine[:count]
    return lines


@pytest.mark.parametrize("seed", range(20))
def test_two_groups_may_read_at_the_same_time(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    readers = rng.randint(2, 4)
    sent = [acked(f"1.{number}", number) for number in range(12)]
    begin = [START, assigned(0)] * readers
    assert judged(tmp_path, *sent, *begin, *interleaved(rng, readers, list(range(12)))).anomalies == {}
    lost = judged(tmp_path, *sent, *begin, *interleaved(rng, readers, [n for n in range(12) if n != 5]), name="lost")
    assert "lost-write" in lost.anomalies


def test_one_reader_that_goes_back_is_found_beside_those_that_ended(tmp_path: Path) -> None:
    """The first reader's log partition was revoked, so the second one is alone."""
    revoked = line("partitions_revoked", partitions=[{"topic": "orders", "partition": 0}])
    first, again = read(("1.0", 0), ("1.1", 1), ("1.2", 2)), read(("1.1", 1), ("1.2", 2), ("1.3", 3))
    lines = [*SENT, START, assigned(0), *ALL, revoked, assigned(0), *first, *again]
    assert "nonmonotonic-poll" in judged(tmp_path, *lines).anomalies


def test_records_without_a_value_are_not_of_a_verifiable_producer(tmp_path: Path) -> None:
    tombstones = [line("record_data", key="k", value=None, topic="orders", partition=0, offset=n) for n in (4, 5)]
    verdict = judged(tmp_path, *SENT, START, assigned(0), *ALL, *tombstones)
    assert verdict.anomalies == {}
    assert [text for text in verdict.left_out if text.startswith("records without a value")]
