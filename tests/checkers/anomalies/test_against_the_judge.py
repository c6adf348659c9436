"""Each kernel finds exactly what the slow judge finds, and measures what its naive twin measures."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.local import check_one
from tests.checkers import brute_force
from tests.checkers.history_strategies import KEYS, cleaned_histories, histories, keyed_histories, pipelined_histories
from tests.checkers.in_memory import judge_events
from tests.checkers.judge.comparison import checked
from tests.checkers.judge.small_worlds import KINDS
from tests.checkers.judge.spoiling import history
from tests.checkers.judge.verdict import RULES, by_the_judge
from tests.checkers.series import Lag, lag_series, unseen_series
from tests.workloads.history.event_strategies import examples
from workloads.history import Origin
from workloads.history.exporting import line_of
from workloads.operations import Event, EventType, Function, MicroOperation, Poll, Record, Send

#: Histories of each kind that are compared always, and in all.
SAMPLE, WHOLE = range(25), range(25, 500)
#: Anomalies that the judge does not look at, and their slow twins.
TWINS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("G0", "G0-realtime", "G1c", "G1c-realtime"), brute_force.cycles),
    "empty-transaction-graph": brute_force.dependencies,
    "dead-cleaner": brute_force.dead_cleaner,
    "divergent-replicas": brute_force.divergent_offsets,
    "divergent-tables": brute_force.divergent_keys,
}


def compared(kind: str, seeds: Iterable[int]) -> Counter[str]:
    """Compare the checkers with the judge over spoiled histories of a kind; how often they counts each anomaly."""
    counts = Counter[str]()
    for seed in seeds:
        events = history(kind, seed)
        places = checked(judge_events(events, shown=None))
        assert places == by_the_judge(events), (kind, seed)
        counts.update(places.keys())
    return counts


@pytest.mark.parametrize("kind", KINDS)
def test_the_checkers_agree_with_the_judge_over_some_spoiled_histories(kind: str) -> None:
    assert compared(kind, SAMPLE)


@pytest.mark.system
def test_the_checkers_agree_with_the_judge_over_all_spoiled_histories_and_these_have_every_anomaly() -> None:
    counts = sum((compared(kind, WHOLE) for kind in KINDS), Counter[str]())
    assert set(RULES) - set(counts) == set()


def test_a_history_as_json_lines_is_judged_as_its_events_are(tmp_path: Path) -> None:
    for kind in KINDS:
        events = history(kind, 1)
        lines = [msgspec.json.encode(line_of(event, Origin())) for event in events]
        (path := tmp_path / f"{kind}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        assert checked(check_one(path, shown=None)) == by_the_judge(events), kind


@given(st.one_of(histories(), keyed_histories(), cleaned_histories(), pipelined_histories()))
@examples(400)
def test_the_checkers_agree_with_the_judge_over_histories_full_of_lies(events: list[Event]) -> None:
    assert checked(judge_events(events, shown=None)) == by_the_judge(events)


@given(cleaned_histories())
@examples(200)
def test_a_cleaner_that_stands_still_is_seen_by_its_old_records(events: list[Event]) -> None:
    findings = [msgspec.to_builtins(f) for f in judge_events(events, shown=None).anomalies.get("dead-cleaner", [])]
    told = [(f["key"], f["old"], f["records"], f["ratio"], f["reader"]["op_pos"]) for f in findings]
    assert sorted(told) == brute_force.dead_cleaner(events)


@given(pipelined_histories())
@examples(100)
def test_reordered_writes_are_counted_across_sends_in_flight(events: list[Event]) -> None:
    verdict = judge_events(events, shown=None)
    assert verdict.delivery.reordered == verdict.counts.get("reordered", 0)


@given(histories(), st.integers(0, 2**32))
@examples(120)
def test_steps_inside_an_operation_are_excused_where_a_rebalance_touched_the_partition(
    events: list[Event], seed: int
) -> None:
    chance = random.Random(seed)
    touched = {
        (key, event.index)
        for event in events
        for key in KEYS
        if event.type != EventType.INVOKE and event.micro and chance.randrange(3) == 0
    }
    spoiled = [
        msgspec.structs.replace(event, rebalanced=tuple(key for key in KEYS if (key, event.index) in touched))
        for event in events
    ]
    assert checked(judge_events(spoiled, shown=None)) == by_the_judge(spoiled)


@given(histories(), st.booleans())
@examples(120)
def test_kinds_of_cycles_are_those_that_a_search_of_all_paths_finds(events: list[Event], ww_deps: bool) -> None:
    verdict = judge_events(events, shown=None, ww_deps=ww_deps)
    expected = brute_force.cycles(events, ww_deps=ww_deps)
    assert {name for name in verdict.anomalies if name.startswith(("G0", "G1c"))} == expected
    independent = bool(events) and not brute_force.dependencies(events, ww_deps=True)
    assert ("empty-transaction-graph" in verdict.anomalies) == independent
    edges = brute_force.dependencies(events, ww_deps=ww_deps)
    for name in expected:
        for cycle in verdict.anomalies[name]:
            nodes = [node.op_pos for node in cycle.cycle]
            kinds = [step.type for step in cycle.steps]
            assert nodes[0] == nodes[-1]
            assert ("wr" in kinds) == name.startswith("G1c")
            assert ("realtime" in kinds) == name.endswith("realtime")
            taken = {(a, b, kind) for (a, b), kind in zip(pairwise(nodes), kinds, strict=True) if kind != "realtime"}
            assert taken <= edges


def test_a_read_before_its_write_was_begun_is_a_cycle_with_time_also_at_a_contested_offset() -> None:
    def event(index: int, process: int, kind: EventType, *micro: MicroOperation) -> Event:
        function = Function.SEND if isinstance(micro[0], Send) else Function.POLL
        return Event(index=index, time_us=index, process=process, type=kind, function=function, micro=micro)

    events = [
        event(0, 0, EventType.INVOKE, Poll()),
        event(1, 0, EventType.OK, Poll({"x": (Record(1, 7), Record(1, 8))})),
        event(2, 1, EventType.INVOKE, Send("x", 7)),
        event(3, 1, EventType.OK, Send("x", 7, 1)),
    ]
    assert brute_force.cycles(events, ww_deps=False) == {"G1c-realtime"}
    assert "G1c-realtime" in judge_events(events, ww_deps=False).anomalies


@given(histories())
@examples(60)
def test_counts_are_never_capped(events: list[Event]) -> None:
    whole, capped = judge_events(events, shown=None), judge_events(events, shown=1)
    assert whole.counts == capped.counts
    assert all(len(findings) == 1 for findings in capped.anomalies.values())


@given(histories())
@examples(120)
def test_the_worst_lag_is_the_largest_of_all_polls(events: list[Event]) -> None:
    worst = judge_events(events).worst_realtime_lag
    series = lag_series(events)
    assert (worst is None) == (not series)
    if worst is not None:
        assert worst.lag == max(lag.lag_us for lag in series)
        assert Lag(worst.time, worst.process, worst.key, worst.lag) in series


@given(histories())
@examples(80)
def test_unseen_values_are_those_of_the_last_point_of_their_series(events: list[Event]) -> None:
    points = list(unseen_series(events))
    expected = {key: number for key, number in points[-1].unseen.items() if number} if points else {}
    findings = judge_events(events, shown=None).anomalies.get("unseen", [])
    assert {finding.key: finding.unseen for finding in findings} == expected


@given(histories())
@examples(80)
def test_values_are_counted_as_often_as_subscribed_consumers_got_them(events: list[Event]) -> None:
    assert judge_events(events).consume_counts == brute_force.consume_counts(events)


@given(histories())
@examples(80)
def test_deliveries_are_counted_for_acknowledged_records(events: list[Event]) -> None:
    delivery, counts = judge_events(events, shown=None).delivery, by_the_judge(events)
    sent = {
        (micro.partition, micro.value)
        for event in events
        if event.type is EventType.OK
        for micro in event.micro
        if isinstance(micro, Send)
    }
    lost, duplicated = (len(counts.get(name, set()) & sent) for name in ("lost-write", "duplicate"))
    assert (delivery.lost, delivery.duplicated) == (lost, duplicated)
    if lost:
        assert delivery.observed == ("none" if duplicated else "at-most-once")
    else:
        assert delivery.observed in ("unknown", "at-least-once" if duplicated else "exactly-once")
