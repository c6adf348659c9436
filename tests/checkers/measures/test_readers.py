"""Waits of readers for log partitions, and the lag of polls, beside recounts event by event."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from checkers.measures.latency import histogram
from checkers.measures.read_availability import ReadAvailability
from tests.checkers.history_strategies import KEYS, histories
from tests.checkers.in_memory import judge_events
from tests.checkers.receipts import PLAIN
from tests.checkers.series import lag_series
from tests.workloads.history.event_strategies import examples
from workloads.operations import HARNESS, NEMESIS, Event, EventType, Function, Poll, Record, Send

OK, INFO, INVOKE = EventType.OK, EventType.INFO, EventType.INVOKE
MS = 1_000


@dataclass
class Log:
    """A log partition "t-0" to which is written, and readers by process: a history event by event. Times in ms."""

    events: list[Event] = field(default_factory=list)
    values: int = 0

    def phase(self, time_ms: int, mark: str) -> None:
        detail = json.dumps({"mark": mark})
        self.events.append(
            Event(time_us=time_ms * MS, process=HARNESS, type=INFO, function=Function.PHASE, detail=detail)
        )

    def write(self, time_ms: int, offset: int | None, *, key: str = "t-0", node: int | None = None) -> None:
        who: dict[str, Any] = {"process": 1_000 + self.values, "function": Function.SEND}
        sent = Send(key, self.values)
        self.events.append(Event(time_us=time_ms * MS, type=INVOKE, micro=(sent,), **who))
        sent = Send(key, self.values, offset)
        self.events.append(Event(time_us=time_ms * MS, type=OK, micro=(sent,), node=node, **who))
        self.values += 1

    def read(self, time_ms: int, *offsets: int, key: str = "t-0", process: int = 1) -> None:
        who: dict[str, Any] = {"time_us": time_ms * MS, "process": process, "function": Function.POLL}
        self.events.append(Event(type=INVOKE, micro=(Poll(),), **who))
        read = Poll({key: tuple(Record(offset, offset) for offset in offsets)})
        self.events.append(Event(type=OK, micro=(read,), **who))

    def assign(self, time_ms: int, *, key: str = "t-0", process: int = 1) -> None:
        who: dict[str, Any] = {"time_us": time_ms * MS, "process": process, "function": Function.ASSIGN}
        self.events += [Event(type=kind, partitions=(key,), **who) for kind in (INVOKE, OK)]

    def join(self, time_ms: int, group: str, *, key: str = "t-0", process: int = 1) -> None:
        detail = json.dumps({"group": group})
        who: dict[str, Any] = {"time_us": time_ms * MS, "process": process, "function": Function.REBALANCE}
        self.events.append(Event(type=OK, partitions=(key,), detail=detail, **who))

    def look(self, begun_ms: int, ended_ms: int, *seen: tuple[int, int | None, int, int]) -> None:
        receipt = PLAIN | {"sequence": 0, "took_effect": True}
        for time_ms, more in ((begun_ms, {"mark": "begin"}), (ended_ms, {"mark": "end", "seen": {"t-0": seen}})):
            detail = json.dumps(receipt | more)
            self.events.append(
                Event(time_us=time_ms * MS, process=NEMESIS, type=INFO, function=Function.FAULT, detail=detail)
            )

    def measured(self) -> ReadAvailability:
        return judge_events(sorted(self.events, key=lambda event: event.time_us)).read_availability["t-0"]


def cut_off() -> Log:
    """A write each 100 ms for 5 s, read at once, but not from 1.0 s to 3.5 s; the log is healed at 5 s."""
    log = Log()
    log.phase(0, "break")
    log.assign(0)
    for number in range(50):
        log.write(number * 100, number, node=int(number >= 20))
        if not 1_000 < number * 100 < 3_500:
            log.read(number * 100 + 10, number)
    log.phase(5_000, "heal")
    return log


def test_a_reader_that_is_cut_off_waits_from_the_first_record_that_it_does_not_get() -> None:
    """It read record 10 at 1,010 ms; record 11 was acknowledged at 1,100 ms; it read again at 3,510 ms."""
    waited = cut_off().measured()
    assert (waited.longest_gap_us, waited.gap_start_us) == (2_410 * MS, 1_100 * MS)
    assert waited.by_leader[0] == 2_410 * MS
    assert waited.by_leader[1] < 200 * MS
    assert waited.by_group == {}


def test_no_reader_waits_while_nothing_is_written() -> None:
    log = Log()
    log.phase(0, "break")
    for time_ms, offset in ((100, 0), (3_000, 1)):
        log.write(time_ms, offset)
        log.read(time_ms + 20, offset)
    log.phase(5_000, "heal")
    assert log.measured().longest_gap_us == 20 * MS


def test_another_reader_ends_the_wait_but_not_that_of_a_group() -> None:
    log = cut_off()
    log.join(0, "late")
    log.join(0, "away", process=3)
    for number in range(50):
        log.read(number * 100 + 20, number, process=2)
    waited = log.measured()
    assert waited.longest_gap_us < 200 * MS
    assert waited.by_group == {"late": 2_410 * MS, "away": 5_000 * MS}


def test_a_reader_that_never_reads_waits_until_the_log_is_healed_and_final_readers_do_not_help() -> None:
    log = Log()
    log.phase(0, "break")
    log.assign(0)
    log.write(500, 0)
    log.phase(2_000, "heal")
    log.read(2_500, 0, process=9)
    assert log.measured().longest_gap_us == 1_500 * MS


def test_records_before_the_workload_count_from_its_begin() -> None:
    log = Log()
    log.write(100, 0)
    log.phase(1_000, "break")
    log.assign(1_000)
    log.read(1_300, 0)
    log.phase(2_000, "heal")
    assert log.measured() == ReadAvailability(
        longest_gap_us=300 * MS, gap_start_us=1_000 * MS, by_leader={-1: 300 * MS}
    )


def test_the_leader_of_a_wait_is_the_one_that_was_seen_last() -> None:
    log = Log()
    log.phase(0, "break")
    log.assign(0)
    log.look(50, 1_800, (60 * MS, 2, 4, 3), (900 * MS, 1, 5, 3))
    log.write(100, 0)
    log.read(400, 0)
    log.write(1_000, 1)
    log.read(1_200, 1)
    log.phase(2_000, "heal")
    assert log.measured().by_leader == {2: 300 * MS, 1: 200 * MS}


def test_without_offsets_or_readers_it_is_not_known() -> None:
    """With acks=0 no client is told of a record; a final reader is no reader of the workload."""
    unread, untold = Log(), Log()
    for log in (unread, untold):
        log.phase(0, "break")
    unread.write(100, 0)
    untold.write(100, None)
    untold.assign(0)
    for log in (unread, untold):
        log.phase(1_000, "heal")
        log.assign(1_100, process=9)
        log.read(1_200, 0, process=9)
        assert judge_events(log.events).read_availability == {}


def longest_wait(events: list[Event], key: str, readers: set[int] | None, begin: int, end: int) -> int:
    """The longest wait of these readers, None for all: from record to read, one pair after the other."""
    told = [
        (event.time_us, micro.offset)
        for event in events
        for micro in event.micro
        if event.type is OK and isinstance(micro, Send) and micro.partition == key and micro.offset is not None
    ]
    reads = [
        (event.time_us, record.offset)
        for event in events
        for micro in event.micro
        if event.type is OK and isinstance(micro, Poll) and (readers is None or event.process in readers)
        for record in micro.records.get(key, ())
        if not record.defect
    ]
    longest, reached, last = 0, -1, begin
    for time_us, offset in [*reads, (end, -1)]:
        new = [since for since, offset in told if offset > reached]
        if new:
            longest = max(longest, min(time_us, end) - max(min(new), last, begin))
        reached, last = max(reached, offset), time_us
    return longest


def has_readers(events: list[Event], key: str, end: int) -> bool:
    return any(
        event.time_us < end
        and event.type is OK
        and (
            (event.function in (Function.ASSIGN, Function.REBALANCE) and key in event.partitions)
            or any(isinstance(micro, Poll) and micro.records.get(key) for micro in event.micro)
        )
        for event in events
    )


@given(histories())
@examples(50)
def test_waits_are_those_of_a_recount_read_by_read(history: list[Event]) -> None:
    measured = judge_events(history).read_availability
    for key in KEYS:
        tries = [e.time_us for e in history if any(isinstance(m, Send) and m.partition == key for m in e.micro)]
        told = any(
            event.type is OK and isinstance(micro, Send) and micro.partition == key and micro.offset is not None
            for event in history
            for micro in event.micro
        )
        if not told or not has_readers(history, key, max(tries)):
            assert key not in measured
            continue
        assert measured[key].longest_gap_us == longest_wait(history, key, None, min(tries), max(tries))
        assert max(measured[key].by_leader.values(), default=0) == measured[key].longest_gap_us


@given(st.integers(0, 2**32))
@examples(20)
def test_waits_of_groups_are_those_of_a_recount_of_their_members(seed: int) -> None:
    chosen, log = random.Random(seed), Log()
    members = {process: f"group-{process % 2}" for process in range(4)}
    log.phase(0, "break")
    for process, group in members.items():
        log.join(0, group, process=process)
    written, time_ms = 0, 0
    for _ in range(60):
        time_ms += chosen.randrange(50)
        if chosen.random() < 0.5:
            log.write(time_ms, written)
            written += 1
        elif written:
            log.read(time_ms, chosen.randrange(written), process=chosen.randrange(5))
    log.phase(time_ms + 30, "heal")
    measured = judge_events(log.events).read_availability.get("t-0")
    if not written:
        assert measured is None
        return
    assert measured is not None
    end = (time_ms + 30) * MS
    assert measured.longest_gap_us == longest_wait(log.events, "t-0", None, 0, end)
    for group in set(members.values()):
        of = {process for process, name in members.items() if name == group}
        assert measured.by_group[group] == longest_wait(log.events, "t-0", of, 0, end)


def test_lag_counts_polls_of_the_workload_and_not_those_of_final_readers() -> None:
    log = cut_off()
    log.assign(6_000, process=9)
    log.read(6_100, 0, process=9)
    lag = judge_events(log.events).consumer_lag.polls
    assert (
        sum(lag.values()) == sum(event.function is Function.POLL and event.type is INVOKE for event in log.events) - 1
    )


@given(histories())
@examples(20)
def test_the_largest_lag_is_that_of_a_recount_of_every_poll(history: list[Event]) -> None:
    counted = judge_events(history).consumer_lag.polls
    tries = {
        key: [e.time_us for e in history if any(isinstance(m, Send) and m.partition == key for m in e.micro)]
        for key in KEYS
    }
    lags = [lag for lag in lag_series(history) if tries[lag.key]]
    within = [lag for lag in lags if min(tries[lag.key]) <= lag.time_us <= max(tries[lag.key])]
    largest = histogram(np.array([max((lag.lag_us for lag in within), default=0)]))
    assert max(counted, default=0) <= max(largest)
    if lags == within and lags:  # else the last of several empty polls, which lags most, may be outside
        assert max(counted) == max(largest)
