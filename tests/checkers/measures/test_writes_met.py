"""Writes that faults put to the test, and risky situations, against a recount of every event by itself."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.measures.situations import Situations
from checkers.measures.writes_met import RECENT_US
from tests.checkers.in_memory import judge_events
from tests.checkers.receipts import PLAIN
from workloads.operations import HARNESS, NEMESIS, Event, EventType, Function, Poll, Record, RefusedAttempts, Send

OK, FAIL, INFO, INVOKE = EventType.OK, EventType.FAIL, EventType.INFO, EventType.INVOKE
MS = 1_000
KEYS = ("t-0", "t-1")


@dataclass
class Sent:
    """One send: when it was made, when and how it ended (None: never)."""

    key: str
    begun_us: int
    ended_us: int
    kind: EventType | None
    offset: int | None = None
    error: str | None = None


@dataclass
class Fault:
    begun_us: int
    ended_us: int | None
    took_effect: bool = True
    touched: tuple[str, ...] | None = None
    seen: dict[str, list[tuple[int, int | None, int, int]]] = field(default_factory=dict)


@dataclass
class History:
    """Sends, polls (key, time, process) and faults on one clock."""

    sends: list[Sent] = field(default_factory=list)
    polls: list[tuple[str, int, int]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def events(self) -> list[Event]:
        events = [Event(time_us=0, process=HARNESS, type=INFO, function=Function.PHASE, detail='{"mark": "break"}')]
        for number, sent in enumerate(self.sends):
            who: dict[str, Any] = {"process": number, "instance": 0, "function": Function.SEND}
            events.append(Event(time_us=sent.begun_us, type=INVOKE, micro=(Send(sent.key, number),), **who))
            if sent.kind is not None:
                micro = (Send(sent.key, number, sent.offset),)
                events.append(Event(time_us=sent.ended_us, type=sent.kind, micro=micro, error=sent.error, **who))
        for number, (key, time_us, process) in enumerate(self.polls):
            who = {"process": 1_000 + process, "function": Function.POLL}
            events.append(Event(time_us=time_us, type=INVOKE, micro=(Poll(),), **who))
            read = (Poll({key: (Record(10_000 + number, 10_000 + number),)}),)
            events.append(Event(time_us=time_us, type=OK, micro=read, **who))
        for sequence, fault in enumerate(self.faults):
            receipt = PLAIN | {"sequence": sequence, "took_effect": fault.took_effect}
            receipt |= {} if fault.touched is None else {"touched": list(fault.touched)}
            events.append(_mark(fault.begun_us, receipt | {"mark": "begin"}))
            if fault.ended_us is not None:
                events.append(_mark(fault.ended_us, receipt | {"mark": "end", "seen": fault.seen}))
        return sorted(events, key=lambda event: event.time_us)


def _mark(time_us: int, detail: dict[str, Any]) -> Event:
    return Event(time_us=time_us, process=NEMESIS, type=INFO, function=Function.FAULT, detail=json.dumps(detail))


def recount(history: History, fault: Fault) -> dict[str, int]:
    """The measure, send by send."""
    mine = [sent for sent in history.sends if fault.touched is None or sent.key in fault.touched]
    ended_us = 10**18 if fault.ended_us is None else fault.ended_us
    done = [sent for sent in mine if sent.kind is OK]
    refused = [sent for sent in mine if sent.kind is not None and (sent.error or "").startswith("NotEnough")]
    recent = [sent for sent in done if fault.begun_us - RECENT_US <= sent.ended_us < fault.begun_us]
    isr_at_strike = {key: looks[0][3] for key, looks in fault.seen.items()} if fault.ended_us is not None else {}
    return {
        "in_flight": sum(sent.begun_us < fault.begun_us <= sent.ended_us for sent in done),
        "recent": len(recent),
        "recent_alone": sum(isr_at_strike.get(sent.key) == 1 for sent in recent),
        "acknowledged": sum(fault.begun_us <= sent.ended_us <= ended_us for sent in done),
        "refused": sum(sent.begun_us <= ended_us and sent.ended_us >= fault.begun_us for sent in refused),
    }


def drawn(seed: int, length: int) -> History:
    chance = random.Random(seed)
    history = History()
    for _ in range(length):
        begun_us = chance.randrange(3_000) * MS
        kind = chance.choice([OK, OK, OK, FAIL, INFO, None])
        error = chance.choice([None, "NotEnoughReplicasError: 1 < 2", "NotEnoughReplicasAfterAppendError", "Timeout"])
        ended_us = begun_us + chance.choice([0, 1, 20, 400]) * MS
        sent = Sent(chance.choice(KEYS), begun_us, ended_us, kind, error=None if kind in (OK, None) else error)
        history.sends.append(sent)
    for _ in range(chance.randrange(4)):
        begun_us = chance.randrange(3_000) * MS
        ended_us = None if chance.random() < 0.2 else begun_us + chance.randrange(1_500) * MS
        touched = chance.choice([None, (), ("t-0",), ("t-1",), KEYS, ("elsewhere",)])
        seen: dict[str, list[tuple[int, int | None, int, int]]] = {
            key: [(begun_us, 0, 4, chance.choice([1, 3]))] for key in KEYS if chance.random() < 0.5
        }
        history.faults.append(Fault(begun_us, ended_us, chance.random() < 0.8, touched, seen))
    return history


@given(st.integers(0, 2**32), st.integers(0, 40))
def test_what_faults_put_to_the_test_agrees_with_a_recount(seed: int, length: int) -> None:
    history = drawn(seed, length)
    exercises = judge_events(history.events()).fault_exercise
    assert exercises is not None
    by_sequence = {
        exercise.sequence: {
            name: getattr(exercise, name) for name in ("in_flight", "recent", "recent_alone", "acknowledged", "refused")
        }
        for exercise in exercises
    }
    effective = {sequence: fault for sequence, fault in enumerate(history.faults) if fault.took_effect}
    assert by_sequence == {sequence: recount(history, fault) for sequence, fault in effective.items()}


def counts(history: History) -> tuple[int, ...]:
    exercises = judge_events(history.events()).fault_exercise
    assert exercises is not None
    return exercises[0].in_flight, exercises[0].recent, exercises[0].acknowledged, exercises[0].refused


def test_a_fault_after_the_last_acknowledgement_exercised_nothing() -> None:
    """Sends of a producer that stopped working are in flight for ever, and never at a broker."""
    dead = [
        Sent("t-0", time_ms * MS, time_ms * MS + 900 * MS, INFO, error="KafkaTimeoutError")
        for time_ms in range(900, 2_000, 50)
    ]
    history = History([Sent("t-0", 0, MS, OK), *dead], faults=[Fault(1_500 * MS, 1_800 * MS)])
    assert sum(counts(history)) == 0


def test_a_fault_meets_writes_in_each_of_four_ways() -> None:
    fault = Fault(1_000 * MS, 1_200 * MS)
    for sent in (
        Sent("t-0", 990 * MS, 1_900 * MS, OK),
        Sent("t-0", 600 * MS, 601 * MS, OK),
        Sent("t-0", 1_100 * MS, 1_200 * MS, OK),
        Sent("t-0", 1_100 * MS, 6_100 * MS, INFO, error="NOT_ENOUGH_REPLICAS: Broker: Not enough in-sync replicas"),
    ):
        assert sum(counts(History([sent], faults=[fault]))) == 1


def test_writes_of_log_partitions_that_a_fault_did_not_touch_are_not_exercised_by_it() -> None:
    history = History([Sent("t-1", 1_100 * MS, 1_110 * MS, OK)], faults=[Fault(1_000 * MS, 2_000 * MS)])
    assert counts(history) == (0, 0, 1, 0)
    history.faults[0].touched = ("t-0",)
    assert counts(history) == (0, 0, 0, 0)


def situations(attempts: RefusedAttempts | None) -> Situations:
    """The situations of a history of two log partitions when brokers said this."""
    sends = [Sent("t-0", 0, MS, INFO, error="NotEnoughReplicasError"), Sent("t-1", 0, MS, OK, 0)]
    events = History(sends).events()
    if attempts is not None:
        detail = msgspec.json.encode(attempts).decode()
        events.append(Event(time_us=MS, process=NEMESIS, type=INFO, function=Function.REFUSED, detail=detail))
    return judge_events(events).situations


def counted(attempts: RefusedAttempts | None) -> tuple[int | None, int | None]:
    met = situations(attempts)
    return met.refused_before_append, met.refused_after_append


@pytest.mark.parametrize(
    ("told", "changes"), [({"t-0": 3, "t-1": 4, "u-0": 9}, 7), ({}, 0), (None, None)], ids=["told", "none", "not told"]
)
def test_changes_of_in_sync_replicas_are_those_that_brokers_told(told, changes) -> None:
    assert situations(RefusedAttempts(before_append={}, after_append={}, isr_changes=told)).isr_changes == changes
    assert situations(None).isr_changes is None


def test_refused_attempts_are_those_that_brokers_told_not_those_that_clients_ended_with() -> None:
    other = {"t-0": 4, "t-1": 3, "not-here-0": 9}
    assert counted(RefusedAttempts(before_append=other, after_append={"t-1": 2})) == (7, 2)
    assert counted(RefusedAttempts(before_append={}, after_append={})) == (0, 0)


def test_refused_attempts_that_nobody_counted_are_not_known_and_not_0() -> None:
    assert counted(None) == (None, None)


def test_with_acks_0_nobody_is_told_of_truncations() -> None:
    met = judge_events(History([Sent("t-0", 0, MS, OK)]).events()).situations
    assert met.read_across_truncation is None


def test_what_only_the_cluster_knew_is_not_known_without_its_word() -> None:
    met = judge_events(History([Sent("t-0", 0, MS, OK, 0)], faults=[Fault(0, MS)]).events()).situations
    assert met.leader_changed_in_flight is met.acknowledged_at_isr is met.acknowledged_across_epochs is None


def test_a_send_in_flight_over_a_change_of_leader_is_acknowledged_across_epochs() -> None:
    looks = [(1_000 * MS, 0, 4, 3), (1_900 * MS, 0, 4, 3), (2_000 * MS, 1, 5, 1), (3_000 * MS, 1, 5, 1)]
    sends = [
        Sent("t-0", 1_500 * MS, 2_050 * MS, OK),  # from before the last look at the old leader to after the new one's
        Sent("t-0", 1_950 * MS, 2_100 * MS, OK),  # made between the looks: it may not have met the old leader
        Sent("t-0", 1_500 * MS, 2_050 * MS, INFO),
        Sent("t-1", 1_500 * MS, 2_050 * MS, OK),
    ]
    faults = [
        Fault(time_ms * MS, 3_000 * MS, seen={"t-0": looks}) for time_ms in (1_000, 1_100)
    ]  # two that overlap saw the same
    met = judge_events(History(sends, faults=faults).events()).situations
    assert (met.leader_changed_in_flight, met.acknowledged_across_epochs) == (1, 1)
    assert met.acknowledged_at_isr == {1: 2, 3: 0}


def test_a_change_of_leader_that_two_faults_saw_at_different_times_is_one() -> None:
    wide = [(1_000 * MS, 0, 4, 3), (1_800 * MS, 0, 4, 3), (2_100 * MS, 1, 5, 1), (3_000 * MS, 1, 5, 1)]
    narrow = [(1_200 * MS, 0, 4, 3), (1_900 * MS, 0, 4, 3), (2_000 * MS, 1, 5, 1), (3_000 * MS, 1, 5, 1)]
    sends = [
        Sent("t-0", 1_500 * MS, 2_150 * MS, OK),
        Sent("t-0", 1_850 * MS, 2_050 * MS, OK),  # across by the narrow look only
    ]
    faults = [Fault(1_000 * MS, 3_000 * MS, seen={"t-0": looks}) for looks in (wide, narrow)]
    met = judge_events(History(sends, faults=faults).events()).situations
    assert (met.leader_changed_in_flight, met.acknowledged_across_epochs) == (1, 2)


def test_a_send_in_flight_over_two_changes_of_leader_is_one_send() -> None:
    looks = [(1_000 * MS, 0, 4, 3), (2_000 * MS, 1, 5, 3), (2_500 * MS, 2, 6, 3)]
    fault = Fault(1_000 * MS, 3_000 * MS, seen={"t-0": looks})
    met = judge_events(History([Sent("t-0", 900 * MS, 2_600 * MS, OK)], faults=[fault]).events()).situations
    assert (met.leader_changed_in_flight, met.acknowledged_across_epochs) == (2, 1)


def test_acknowledgements_before_a_strike_are_known_by_the_isr_of_that_moment() -> None:
    sends = [Sent("t-0", time_ms * MS, time_ms * MS, OK) for time_ms in (400, 600, 999, 1_000)]
    fault = Fault(1_000 * MS, 1_500 * MS, seen={"t-0": [(1_000 * MS, 0, 4, 1)]})
    met = judge_events(History(sends, faults=[fault]).events()).situations
    assert met.acknowledged_before_strike == {1: 2}


def test_a_consumer_that_read_before_and_after_a_truncation_read_across_it() -> None:
    sends = [
        Sent("t-0", 10 * MS, 20 * MS, OK, 5),
        Sent("t-0", 30 * MS, 40 * MS, OK, 6),
        Sent("t-0", 100 * MS, 110 * MS, OK, 6),  # 6 was taken: what was acknowledged there is gone
    ]
    polls = [("t-0", 15 * MS, 0), ("t-0", 200 * MS, 0), ("t-0", 150 * MS, 1), ("t-0", 200 * MS, 1), ("t-0", 9 * MS, 2)]
    met = judge_events(History(sends, polls).events()).situations
    assert met.read_across_truncation == 1
    assert judge_events(History(sends[:2], polls).events()).situations.read_across_truncation == 0


def test_offsets_out_of_order_among_sends_in_flight_together_are_no_truncation() -> None:
    sends = [Sent("t-0", 10 * MS, 20 * MS, OK, 9), Sent("t-0", 15 * MS, 30 * MS, OK, 8)]
    polls = [("t-0", 5 * MS, 0), ("t-0", 40 * MS, 0)]
    assert judge_events(History(sends, polls).events()).situations.read_across_truncation == 0
