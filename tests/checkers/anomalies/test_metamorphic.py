"""Changes of a history that must change no verdict, and changes that must."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from checkers.anomalies import EMPTY_GRAPH
from checkers.verdicts.verdict import Verdict
from tests.checkers.history_strategies import KEYS, histories
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import INVOKE, OK
from tests.workloads.history.event_strategies import examples
from workloads.operations import Event, Function, MicroOperation, Poll, Record, Send


def judged(events: list[Event]) -> Verdict:
    return judge_events(events, shown=None, ww_deps=True)


def changed(event: Event, **fields: Any) -> Event:
    return Event(**{name: getattr(event, name) for name in event.__struct_fields__} | fields)


def renumbered(events: list[Event]) -> list[Event]:
    return [changed(event, index=index, time_us=10 * index) for index, event in enumerate(events)]


@given(histories())
@examples(26)
def test_reading_a_value_that_nobody_wrote_adds_one_phantom_and_nothing_else(history: list[Event]) -> None:
    assume(history)  # what is empty is judged to prove nothing, and no more
    before = judged(history)
    phantom = Poll({"x": (Record(2**62 - 1, 10**6),)})
    read = {"process": 77, "function": Function.POLL, "time_us": 0, "index": 0}
    asked = Event(**read, type=INVOKE, micro=(Poll(),))
    after = judged(renumbered([*history, asked, Event(**read, type=OK, micro=(phantom,))]))
    assert after.counts.get("phantom-read", 0) == before.counts.get("phantom-read", 0) + 1
    loss = ("lost-write", "phantom-read")
    assert before.counts.get(EMPTY_GRAPH) == after.counts.get(EMPTY_GRAPH), "nobody wrote it, so it depends on nothing"
    assert without(after.counts, *loss) == without(before.counts, *loss), "the read also passes whatever was not read"


@given(histories(), st.data())
@examples(20, suppress_health_check=[HealthCheck.filter_too_much])
def test_taking_an_acknowledged_value_out_of_every_read_adds_that_lost_write(
    history: list[Event], data: st.DataObject
) -> None:
    before = judged(history)
    candidates = _only_in_the_middle(history, before)
    assume(candidates)
    key, value = data.draw(st.sampled_from(candidates))
    after = judged([changed(event, micro=tuple(_without(m, key, value) for m in event.micro)) for event in history])
    lost = {(f.key, f.value) for f in after.anomalies.get("lost-write", [])}
    was_lost = {(f.key, f.value) for f in before.anomalies.get("lost-write", [])}
    assert lost == was_lost | {(key, value)}


def _only_in_the_middle(history: list[Event], verdict: Verdict) -> list[tuple[str, int]]:
    """Acknowledged values with a told offset, read by somebody, below another ok read, and strange in no other way."""
    strange = {(f.key, v) for name in STRANGE for f in verdict.anomalies.get(name, []) for v in f.written}
    sent = [
        (m.partition, m.value, m.offset)
        for event in history
        if event.type == OK
        for m in event.micro
        if isinstance(m, Send) and m.offset is not None
    ]
    reads = [
        (key, record)
        for event in history
        if event.type == OK
        for m in event.micro
        if isinstance(m, Poll)
        for key, records in m.records.items()
        for record in records
        if not record.defect
    ]
    sends = [(m.partition, m.value) for e in history if e.type != INVOKE for m in e.micro if isinstance(m, Send)]
    writes = []
    for key, value, offset in sent:
        is_read = any(k == key and record.value == value for k, record in reads)
        passed = any(k == key and record.offset > offset and (key, record.value) not in strange for k, record in reads)
        alone = sends.count((key, value)) == 1
        if is_read and passed and alone and (key, value) not in strange:
            writes.append((key, value))
    return sorted(set(writes))


STRANGE = ("duplicate", "inconsistent-offsets", "lost-write", "phantom-read")


def _without(operation: MicroOperation, key: str, value: int) -> MicroOperation:
    if isinstance(operation, Send):
        return operation
    return Poll(
        {k: tuple(r for r in records if k != key or r.value != value) for k, records in operation.records.items()}
    )


@given(histories(), st.integers(1, 10**9))
@examples(20)
def test_shifting_times_changes_nothing_but_when_it_was(history: list[Event], by: int) -> None:
    before = judged(history)
    after = judged([changed(event, time_us=event.time_us + by) for event in history])
    assert without(after.anomalies, "inconsistent-offsets") == without(before.anomalies, "inconsistent-offsets")
    assert after.counts == before.counts
    assert after.exercise == before.exercise
    lag = lambda verdict: verdict.worst_realtime_lag and verdict.worst_realtime_lag.lag  # noqa: E731
    assert lag(after) == lag(before)


@given(histories(), st.integers(2, 5))
@examples(20)
def test_stretching_time_changes_only_lag_and_availability(history: list[Event], factor: int) -> None:
    before = judged(history)
    after = judged([changed(event, time_us=event.time_us * factor) for event in history])
    assert after.counts == before.counts
    if before.worst_realtime_lag:
        assert after.worst_realtime_lag is not None
        assert after.worst_realtime_lag.lag == before.worst_realtime_lag.lag * factor


@given(histories())
@examples(20)
def test_the_names_of_log_partitions_do_not_matter(history: list[Event]) -> None:
    """Renaming turns the order in which partitions are stored around."""
    names = dict(zip(KEYS, reversed(KEYS), strict=True))
    before = judged(history)
    after = judged([_renamed(event, names) for event in history])
    assert after.counts == before.counts
    lost_writes = sorted(
        repr(msgspec.structs.replace(f, key=names[f.key])) for f in after.anomalies.get("lost-write", [])
    )
    assert lost_writes == sorted(map(repr, before.anomalies.get("lost-write", [])))


def _renamed(event: Event, names: dict[str, str]) -> Event:
    micro = tuple(
        Send(names[m.partition], m.value, m.offset)
        if isinstance(m, Send)
        else Poll({names[key]: records for key, records in m.records.items()})
        for m in event.micro
    )
    return changed(event, micro=micro, partitions=tuple(names[key] for key in event.partitions))


@given(histories(), histories())
@examples(20)
def test_independent_partitions_are_judged_as_if_alone(first: list[Event], other: list[Event]) -> None:
    """Two histories over different partitions by different processes, one after the other or mixed: counts add up."""
    assume(first and other)
    away = {key: f"other-{key}" for key in KEYS}
    second = [changed(_renamed(event, away), process=event.process + 1000) for event in other]
    apart = [judged(first), judged(other)]
    mixed = [event for pair in zip(first, second, strict=False) for event in pair]
    mixed += first[len(second) :] + second[len(first) :]
    together = judged(renumbered(mixed))
    names = {name for verdict in apart for name in verdict.counts}
    assert together.counts == {name: sum(v.counts.get(name, 0) for v in apart) for name in sorted(names)} or _differ_by(
        together, apart
    )


def _differ_by(together: Verdict, apart: list[Verdict]) -> bool:
    """Cycles with real time that overlap in time are told as one stretch, and the whole depends on something if either
    does; everything else adds up."""
    sums = {name: sum(v.counts.get(name, 0) for v in apart) for v in apart for name in v.counts}
    assert (EMPTY_GRAPH in together.counts) == (sums.get(EMPTY_GRAPH, 0) == len(apart))
    realtime = [name for name in sums if name.endswith("-realtime") or name == EMPTY_GRAPH]
    return without(together.counts, *realtime) == without(sums, *realtime)


def without(mapping: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: content for name, content in mapping.items() if name not in names}
