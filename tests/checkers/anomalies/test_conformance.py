"""Verdict for verdict with the reference tool, on the histories of its own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.anomalies import ANOMALIES
from checkers.columns.loading import RowBatch, Unit, load_units
from checkers.histories.discovery import Sources, find_histories
from checkers.local import check_one
from tests.checkers.conformance import BY_NAME, cases, comparable, write_history
from tests.checkers.findings import forbidden
from tests.checkers.series import lag_series, max_offsets, unseen_series
from workloads.consumers import shares
from workloads.history import import_jsonl, read_events
from workloads.operations import Event

#: Fields of ``expect`` that are no anomaly; each has a test of its own below.
NOT_ANOMALIES = {
    "valid",
    "errors_empty",
    "unseen_series",
    "realtime_lag",
    "worst_realtime_lag",
    "duplicate_values",
    "version_orders",
    "empty-transaction-graph",
}


@pytest.mark.parametrize("name", [*cases("analysis"), *cases("version-orders")])
def test_what_the_reference_expects_is_found(name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    verdict = check_one(write_history(case, tmp_path / "history.jsonl"))
    for anomaly, expected in (case.get("expect") or {}).items():
        if anomaly not in NOT_ANOMALIES:
            findings = verdict.anomalies.get(anomaly, [])
            assert comparable(findings, expected) == comparable(expected, expected), anomaly
    assert not set(case.get("expect_absent") or ()) & set(verdict.anomalies)


@pytest.mark.parametrize("name", cases("analysis"))
def test_everything_the_reference_reports_is_reported_and_nothing_else(name: str, tmp_path: Path) -> None:
    """The whole error map of the reference, not only what its tests look at; unseen has its own test."""
    case = BY_NAME[name]
    verdict = check_one(write_history(case, tmp_path / "history.jsonl"))
    reported = case.get("reference_errors") or {}
    compared = [anomaly for anomaly in (*KERNELS, *CYCLES) if anomaly not in ("unseen", *BETTER)]
    for anomaly in compared:
        expected = reported.get(anomaly, [])
        assert comparable(verdict.anomalies.get(anomaly, []), expected) == comparable(expected, expected), anomaly


KERNELS = [anomaly.name for anomaly in ANOMALIES.values() if anomaly.kernel is not None]
CYCLES = ("G0", "G1c", "G0-realtime", "G1c-realtime")
#: Anomalies that the reference does not know.
BETTER = (
    "phantom-read", "corrupt-read", "returned-key", "divergent-state", "divergent-reads", "dead-cleaner",
    "unfounded-out-of-order", "unexplained-output", "stalled-application", "crash-loop",
)  # fmt: skip


#: The reference's words for a strongly connected component, and the cycle with which ours tells it.
COMPONENTS = {
    "PL-1-cycle-exists": "G0",
    "strong-PL-1-cycle-exists": "G0-realtime",
    "PL-2-cycle-exists": "G1c",
    "strong-PL-2-cycle-exists": "G1c-realtime",
}


@pytest.mark.parametrize("name", cases("analysis"))
def test_a_component_that_the_reference_knows_of_is_told_by_a_cycle_in_it(name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    verdict = check_one(write_history(case, tmp_path / "history.jsonl"))
    reported = case.get("reference_errors") or {}
    assert {COMPONENTS[note] for note in reported if note in COMPONENTS} == {c for c in CYCLES if c in verdict.counts}
    for note in COMPONENTS.keys() & reported.keys():
        for component, cycle in zip(reported[note], verdict.anomalies[COMPONENTS[note]], strict=True):
            assert {node.index for node in cycle.cycle} <= set(component["scc"])


@pytest.mark.parametrize("name", cases("analysis"))
def test_operations_without_any_dependency_are_told_where_the_reference_tells_them(name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    verdict = check_one(write_history(case, tmp_path / "history.jsonl"))
    empty = "empty-transaction-graph"
    assert (empty in verdict.anomalies) == (empty in (case.get("reference_errors") or {}))
    if empty in verdict.anomalies:
        assert verdict.valid is False


@pytest.mark.parametrize("name", cases("analysis"))
def test_unseen_values_are_the_references_but_for_keys_that_nobody_wrote(name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    verdict = check_one(write_history(case, tmp_path / "history.jsonl"))
    acknowledged = {str(m[1]) for op in case["history"] if op["type"] == "ok" for m in _micro(op) if m[0] == "send"}
    unseen = ((case.get("reference_errors") or {}).get("unseen") or {}).get("messages", {})
    expected = {key: values for key, values in unseen.items() if key in acknowledged and values}
    messages = {str(f.key): f.messages for f in verdict.anomalies.get("unseen", [])}
    assert {key: sorted(map(str, values)) for key, values in messages.items()} == {
        key: sorted(map(str, values)) for key, values in expected.items()
    }


def _micro(operation: dict[str, Any]) -> list[list[Any]]:
    return operation["value"] if operation["f"] in ("send", "poll", "txn") else []


def test_an_aborted_poll_that_reads_again_is_no_anomaly_at_all(tmp_path: Path) -> None:
    verdict = check_one(write_history(BY_NAME["poll-skip/txn-abort-good"], tmp_path / "history.jsonl"))
    assert forbidden(verdict) == []
    assert (verdict.valid, (verdict.reason or "").partition(",")[0]) == ("unknown", "two operations have index 1")


def test_an_empty_history_is_not_valid(tmp_path: Path) -> None:
    verdict = check_one(write_history(BY_NAME["checker/empty-history"], tmp_path / "history.jsonl"))
    assert verdict.valid is False
    assert "empty history" in (verdict.reason or "")


def test_every_value_of_two_alternating_offsets_is_a_duplicate(tmp_path: Path) -> None:
    case = BY_NAME["duplicate/hash-insensitive"]
    verdict = check_one(write_history(case, tmp_path / "history.jsonl"))
    assert sorted(f.value for f in verdict.anomalies["duplicate"]) == case["expect"]["duplicate_values"]


def test_the_version_order_of_gaps_and_conflicts(tmp_path: Path) -> None:
    """At the conflicting offset either value may stand in the index."""
    with Sources(
        find_histories([write_history(BY_NAME["version-orders/gap-and-conflict"], tmp_path / "h.jsonl")])
    ) as sources:
        file = sources.ready[0].file
        assert file is not None
        batch = load_units([Unit(0, str(file))])
        order, names = batch.log.order, dict(zip(batch.log.values.number.tolist(), "abcd", strict=False))
        names = _letters(batch, names)
        entries = zip(order.entry_offset.tolist(), order.entry_value.tolist(), strict=True)
        log = sorted((int(order.offsets.number[o]), names[int(batch.log.values.number[v])]) for o, v in entries)
        last = {names[int(n)]: int(i) for n, i in zip(batch.log.values.number, order.last_index, strict=True)}
    assert log == [(0, "a"), (1, "b"), (1, "c"), (3, "b"), (4, "d")]
    assert last == {"a": 0, "b": 2, "c": 1, "d": 3}


def _letters(batch: RowBatch, names: dict[int, str]) -> dict[int, str]:
    """Codes of foreign values, in the order in which the file has them: a, b, then c, d."""
    return {code: "abcd"[-2 - code] for code in names}


@pytest.mark.parametrize("case", [name for name in cases("function") if name != "op-max-offsets"])
def test_first_and_last_index_of_a_value(case: str, tmp_path: Path) -> None:
    """The reference's functions take a vector of sets by offset; here it becomes polls of one key."""
    data = BY_NAME[case]
    records = [[offset, value] for offset, values in enumerate(data["input"]) for value in values or ()]
    poll = {"process": 0, "type": "ok", "f": "poll", "value": [["poll", {"x": records}]], "time": 0}
    history = {"history": [poll], "options": {}}
    with Sources(find_histories([write_history(history, tmp_path / "h.jsonl")])) as sources:
        batch = load_units([Unit(0, str(sources.ready[0].file))])
    order = batch.log.order
    values = ["abcd"[-2 - code] for code in batch.log.values.number.tolist()]
    first = dict(zip(values, order.first_index.tolist(), strict=True))
    last = dict(zip(values, order.last_index.tolist(), strict=True))
    if data["function"] == "log->value->first-index":
        assert first == data["expect"]
    else:
        ends = [sorted(v for v in values if last[v] == index) or None for index in range(len(data["expect"]))]
        assert ends == data["expect"]


def _events(name: str, tmp_path: Path) -> list[Event]:
    import_jsonl(write_history(BY_NAME[name], tmp_path / "h.jsonl"), tmp_path / "stored")
    return list(read_events(tmp_path / "stored"))


def test_the_largest_offset_of_every_key_that_an_operation_shows(tmp_path: Path) -> None:
    case = BY_NAME["op-max-offsets"]
    write_history({"history": [case["input"]], "options": {}}, tmp_path / "h.jsonl")
    import_jsonl(tmp_path / "h.jsonl", tmp_path / "stored")
    (event,) = read_events(tmp_path / "stored")
    assert max_offsets(event) == case["expect"]


@pytest.mark.parametrize("consumers", [1, 2, 3])
def test_no_key_with_unseen_values_is_left_unread(consumers: int) -> None:
    """The reference's generator adds such keys to a third of its assignments; ours never leaves one out."""
    widest = max(BY_NAME["gen-poll-unseen"]["expect"]["with_wrapper"]["assign_value_sets"], key=len)
    assert {key for share in shares(widest, consumers) for key in share} == set(widest)


def test_every_polls_lag_is_the_references(tmp_path: Path) -> None:
    expected = BY_NAME["realtime-lag/up-to-date"]["expect"]
    lags = lag_series(_events("realtime-lag/up-to-date", tmp_path))
    as_reference = [dict(zip(("time", "process", "key", "lag"), lag, strict=True)) for lag in lags]
    assert as_reference == expected["realtime_lag"]
    verdict = check_one(tmp_path / "h.jsonl")
    assert msgspec.to_builtins(verdict.worst_realtime_lag) == expected["worst_realtime_lag"]


def test_the_series_of_unseen_values_is_the_references(tmp_path: Path) -> None:
    points = unseen_series(_events("unseen/series", tmp_path))
    expected = BY_NAME["unseen/series"]["expect"]["unseen_series"]
    assert [{"time": p.time_us, "unseen": p.unseen} for p in points] == [
        {"time": point["time"], "unseen": point["unseen"]} for point in expected
    ]
