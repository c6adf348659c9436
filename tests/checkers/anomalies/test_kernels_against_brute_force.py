"""Each kernel finds exactly what its naive twin finds."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from checkers.anomalies.lost_write import LostWrite
from checkers.local import check_rows
from tests.checkers import brute_force, group_twins, pipeline_twins, transactional_twins
from tests.checkers.history_strategies import KEYS, cleaned_histories, histories, keyed_histories, pipelined_histories
from tests.checkers.in_memory import judge_events
from tests.checkers.series import Lag, lag_series, unseen_series
from tests.workloads.history.event_strategies import examples
from workloads.history.rows import Rows
from workloads.operations import Event, EventType, Function, MicroOperation, Poll, Record, Send

Finding = dict[str, Any]


def _op(reference: Finding) -> int:
    return int(reference["op_pos"])


def _inner(f: Finding) -> tuple[Any, ...]:
    return (f["key"], _op(f["op"]), *f["values"], f["delta"])


def _step(f: Finding) -> tuple[Any, ...]:
    return (f["key"], *map(_op, f["ops"]))


def _gone(f: Finding) -> tuple[Any, ...]:
    return (f["key"], f["record-key"], f["value"], f["offset"], _op(f["writer"]), _op(f["reader"]))


COMPARED: dict[str, tuple[Callable[[list[Event]], list[tuple[Any, ...]]], Callable[[Finding], tuple[Any, ...]]]] = {
    "unseen": (brute_force.unseen, lambda f: (f["key"], tuple(f["messages"]))),
    "expired-write": (brute_force.expired_write, lambda f: (f["key"], tuple(f["messages"]))),
    "duplicate": (brute_force.duplicate, lambda f: (f["key"], f["value"], f["count"], tuple(f["offsets"]))),
    "inconsistent-offsets": (
        brute_force.inconsistent_offsets,
        lambda f: (f["key"], f["offset"], f["index"], tuple(f["values"])),
    ),
    "phantom-read": (brute_force.phantom_read, lambda f: (f["key"], f["value"])),
    "corrupt-read": (brute_force.corrupt_read, lambda f: (f["key"], f["offset"], f["defect"])),
    "poll-skip": (brute_force.poll_skip, lambda f: (*_step(f), f["delta"], tuple(f["skipped"]))),
    "nonmonotonic-poll": (brute_force.nonmonotonic_poll, lambda f: (*_step(f), *f["values"], f["delta"])),
    "nonmonotonic-send": (brute_force.nonmonotonic_send, lambda f: (*_step(f), *f["values"], f["delta"])),
    "reordered": (brute_force.reordered, lambda f: (*_step(f), *f["values"], f["delta"])),
    "G1a": (brute_force.g1a, lambda f: (f["key"], f["value"], _op(f["reader"]))),
    "precommitted-read": (brute_force.precommitted_read, lambda f: (f["key"], _op(f["op"]), f["value"])),
    "int-poll-skip": (brute_force.int_poll_skip, lambda f: (*_inner(f), tuple(f["skipped"]))),
    "int-nonmonotonic-poll": (brute_force.int_nonmonotonic_poll, _inner),
    "int-send-skip": (brute_force.int_send_skip, lambda f: (*_inner(f), tuple(f["skipped"]))),
    "int-nonmonotonic-send": (brute_force.int_nonmonotonic_send, _inner),
    "returned-key": (
        brute_force.returned_key,
        lambda f: (f["key"], f["record-key"], f["value"], f["offset"], f["tombstone"], f["tombstone-offset"]),
    ),
    "divergent-reads": (
        brute_force.divergent_reads,
        lambda f: (f["key"], f["value"], tuple(f["readers"]), tuple(f["others"])),
    ),
    "dead-cleaner": (
        brute_force.dead_cleaner,
        lambda f: (f["key"], f["old"], f["records"], f["ratio"], _op(f["reader"])),
    ),
    "lost-tombstone": (brute_force.lost_tombstone, _gone),
    "cleaned-early": (brute_force.cleaned_early, _gone),
    "divergent-state": (
        brute_force.divergent_state,
        lambda f: (f["key"], f["record-key"], tuple(sorted(f["states"].items()))),
    ),
}
#: Twins of anomalies that have a test of their own, here, in ``test_transaction_anomalies.py`` or in
#: ``tests/checkers/verdicts/test_replicas.py``.
COMPARED_APART: dict[str, tuple[Callable[..., Any], ...]] = {
    "lost-write": (brute_force.lost_write, brute_force.lost_after_drain),
    **dict.fromkeys(("G0", "G0-realtime", "G1c", "G1c-realtime"), (brute_force.cycles,)),
    "empty-transaction-graph": (brute_force.dependencies,),
    "unfounded-out-of-order": (brute_force.unfounded_out_of_order,),
    "divergent-replicas": (brute_force.divergent_offsets,),
    "divergent-tables": (brute_force.divergent_keys,),
    "group-skip": (group_twins.group_skip,),
    "group-went-back": (group_twins.group_went_back,),
    "returned-group": (group_twins.returned_group,),
    "two-owners": (group_twins.two_owners,),
    "unfenced-instance": (group_twins.unfenced_instance,),
    "stale-generation": (group_twins.stale_generation,),
    **{name: (twin,) for name, twin in (transactional_twins.TWINS | pipeline_twins.TWINS).items()},
}


@given(st.one_of(histories(), keyed_histories()))
@examples(100)
def test_every_kernel_agrees_with_its_twin(history: list[Event]) -> None:
    verdict = judge_events(history, shown=None)
    for anomaly, (twin, essence) in COMPARED.items():
        findings = [essence(msgspec.to_builtins(finding)) for finding in verdict.anomalies.get(anomaly, [])]
        assert sorted(findings, key=repr) == sorted(twin(history), key=repr), anomaly


@given(cleaned_histories())
@examples(100)
def test_records_that_are_gone_too_early_are_those_that_each_reader_had_to_see(history: list[Event]) -> None:
    verdict = judge_events(history, shown=None)
    for anomaly in ("lost-tombstone", "cleaned-early", "dead-cleaner"):
        twin, essence = COMPARED[anomaly]
        findings = [essence(msgspec.to_builtins(finding)) for finding in verdict.anomalies.get(anomaly, [])]
        assert sorted(findings) == twin(history), anomaly


@given(pipelined_histories())
@examples(100)
def test_reordered_writes_are_found_across_sends_in_flight(history: list[Event]) -> None:
    verdict = judge_events(history, shown=None)
    twin, essence = COMPARED["reordered"]
    assert sorted(essence(msgspec.to_builtins(finding)) for finding in verdict.anomalies.get("reordered", [])) == twin(
        history
    )
    assert verdict.delivery.reordered == len(twin(history))


@given(histories(), st.integers(0, 2**32))
@examples(40)
def test_steps_inside_an_operation_are_excused_where_a_rebalance_touched_the_partition(
    history: list[Event], seed: int
) -> None:
    chance = random.Random(seed)
    touched = {
        (key, event.index)
        for event in history
        for key in KEYS
        if event.type != EventType.INVOKE and event.micro and chance.randrange(3) == 0
    }
    plain, excused = judge_events(history, shown=None), check_rows(_rebalanced(history, touched), shown=None)
    for anomaly in ("int-poll-skip", "int-nonmonotonic-poll"):
        twin, essence = COMPARED[anomaly]
        findings = sorted(essence(msgspec.to_builtins(finding)) for finding in excused.anomalies.get(anomaly, []))
        assert findings == [expected for expected in twin(history) if expected[:2] not in touched], anomaly
    inner = ("int-poll-skip", "int-nonmonotonic-poll")
    for anomaly in (plain.anomalies.keys() | excused.anomalies.keys()) - set(inner):
        findings, expected = (sorted(map(repr, verdict.anomalies.get(anomaly, ()))) for verdict in (excused, plain))
        assert findings == expected, anomaly


def _rebalanced(history: list[Event], touched: set[tuple[str, int]]) -> Rows:
    rows = Rows()
    for event in history:
        keys = tuple(key for key in KEYS if (key, event.index) in touched)
        rows.add(msgspec.structs.replace(event, rebalanced=keys))
    return rows


@given(st.one_of(histories(), keyed_histories()))
@examples(66)
def test_lost_writes_are_those_passed_by_a_reader_and_those_a_drain_missed(history: list[Event]) -> None:
    findings = judge_events(history, shown=None).findings(LostWrite)
    passed = [(f.key, f.value, f.index, f.max_read_index, f.writer.op_pos) for f in findings if not f.rule]
    assert sorted(passed) == brute_force.lost_write(history)
    drained = {(f.key, f.value) for f in findings if f.rule}
    assert drained == set(brute_force.lost_after_drain(history)) - {(key, value) for key, value, *_ in passed}


@given(histories(), st.integers(0, 2**32))
@examples(100)
def test_errors_without_a_reason_are_those_where_nothing_is_missing(history: list[Event], seed: int) -> None:
    chance = random.Random(seed)
    told = [
        msgspec.structs.replace(event, error=chance.choice((None, "OutOfOrderSequenceNumberError: 4", "TimeLimit")))
        if event.type in (EventType.INFO, EventType.FAIL) and event.function == Function.SEND
        else event
        for event in history
    ]
    findings = judge_events(told, shown=None).anomalies.get("unfounded-out-of-order", [])
    seen = [(f.key, f.value, f.op.op_pos, f.unanswered) for f in findings]
    assert sorted(seen) == brute_force.unfounded_out_of_order(told)


@given(histories(), st.booleans())
@examples(40)
def test_kinds_of_cycles_are_those_that_a_search_of_all_paths_finds(history: list[Event], ww_deps: bool) -> None:
    verdict = judge_events(history, shown=None, ww_deps=ww_deps)
    expected = brute_force.cycles(history, ww_deps=ww_deps)
    assert {name for name in verdict.anomalies if name.startswith(("G0", "G1c"))} == expected
    independent = bool(history) and not brute_force.dependencies(history, ww_deps=True)
    assert ("empty-transaction-graph" in verdict.anomalies) == independent
    edges = brute_force.dependencies(history, ww_deps=ww_deps)
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

    history = [
        event(0, 0, EventType.INVOKE, Poll()),
        event(1, 0, EventType.OK, Poll({"x": (Record(1, 7), Record(1, 8))})),
        event(2, 1, EventType.INVOKE, Send("x", 7)),
        event(3, 1, EventType.OK, Send("x", 7, 1)),
    ]
    assert brute_force.cycles(history, ww_deps=False) == {"G1c-realtime"}
    assert "G1c-realtime" in judge_events(history, ww_deps=False).anomalies


@given(histories())
@examples(20)
def test_counts_are_never_capped(history: list[Event]) -> None:
    whole, capped = judge_events(history, shown=None), judge_events(history, shown=1)
    assert whole.counts == capped.counts
    assert all(len(findings) == 1 for findings in capped.anomalies.values())


@given(histories())
@examples(40)
def test_the_worst_lag_is_the_largest_of_all_polls(history: list[Event]) -> None:
    worst = judge_events(history).worst_realtime_lag
    series = lag_series(history)
    assert (worst is None) == (not series)
    if worst is not None:
        assert worst.lag == max(lag.lag_us for lag in series)
        assert Lag(worst.time, worst.process, worst.key, worst.lag) in series


@given(histories())
@examples(26)
def test_unseen_values_are_those_of_the_last_point_of_their_series(history: list[Event]) -> None:
    points = list(unseen_series(history))
    expected = {key: number for key, number in points[-1].unseen.items() if number} if points else {}
    findings = judge_events(history, shown=None).anomalies.get("unseen", [])
    assert {finding.key: finding.unseen for finding in findings} == expected


@given(histories())
@examples(26)
def test_values_are_counted_as_often_as_subscribed_consumers_got_them(history: list[Event]) -> None:
    assert judge_events(history).consume_counts == brute_force.consume_counts(history)


@given(histories())
@examples(26)
def test_deliveries_are_counted_for_acknowledged_records(history: list[Event]) -> None:
    delivery = judge_events(history, shown=None).delivery
    lost, duplicated = brute_force.delivery(history)
    assert (delivery.lost, delivery.duplicated) == (lost, duplicated)
    if lost:
        assert delivery.observed == ("none" if duplicated else "at-most-once")
    else:
        assert delivery.observed in ("unknown", "at-least-once" if duplicated else "exactly-once")
