"""Scopes of transactions: late requests end the next transaction under version 1 only, and planted bugs are found."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from checkers import ANOMALIES
from harness.broker.core.transaction_coordinator import TransactionRecord, TransactionState
from harness.broker.core.types import TopicPartition
from harness.cli.app import exit_code_of
from harness.ground.errors import PlanError
from harness.lab.explore import TRANSACTION_RULES, AnyScope, Limits, TransactionScope, exhaust, scope_named, steps_of
from harness.lab.explore.transactions.producers import PartWritten, ProducerNode, record_of
from harness.lab.explore.transactions.rules import InCharge, broken_promises
from harness.lab.explore.transactions.servers import CoordinatorCopy, PartitionCopy
from harness.lab.explore.transactions.space import TransactionSpace
from tests.harness.lab.explore.transactions.twin import PlainTransactions, both, observations, plain_servers
from tests.harness.lab.explore.twin import INVARIANTS


def scope(name: str, **constants: object) -> TransactionScope:
    named = scope_named(name)
    assert isinstance(named, TransactionScope)
    return named.varied({key.replace("_", "-"): value for key, value in constants.items()}, {})


def only(chosen: AnyScope, *rules: str) -> AnyScope:
    return replace(chosen, rules=rules)


def texts(chosen: AnyScope, workers: int = 1) -> list[str]:
    result = exhaust(chosen, workers=workers)
    assert result.broken is not None
    return [step.text for step in steps_of(chosen, result)]


# --- late requests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "late"),
    [
        ("late-end/1", "the request to commit in epoch 0 arrives late, after its sender has given it up"),
        (
            "late-marker/1",
            "the commit marker in epoch 0 for partition 0 arrives late, after its sender has given it up",
        ),
    ],
    ids=["KAFKA-17754", "KAFKA-19446"],
)
def test_under_version_1_a_late_request_ends_the_next_transaction(name: str, late: str) -> None:
    chosen = only(scope(name), "early-read")
    result = exhaust(chosen)
    assert result.broken is not None
    steps = steps_of(chosen, result)
    assert [step.text for step in steps].index(late) >= len(steps) - 2  # Its marker may be a step of its own.
    assert "b" in steps[-1].brokers[1]
    assert "a committed b open" in steps[-1].brokers[2]


@pytest.mark.parametrize("name", ["late-end", "late-marker"])
def test_under_version_2_a_late_request_changes_nothing(name: str) -> None:
    result = exhaust(scope(name))
    assert result.exhausted
    assert result.acknowledged == 2


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("late-end/1", "aborted-read"),
        ("late-end/1", "hanging-transaction"),
        ("late-marker/1", "aborted-read"),
        ("late-marker/1", "torn-transaction"),
    ],
)
def test_what_follows_from_a_late_request_is_found_too(name: str, rule: str) -> None:
    result = exhaust(only(scope(name), rule))
    assert result.broken is not None
    assert result.broken[0] == rule


def test_a_late_write_leaves_a_transaction_hanging_under_version_1_only() -> None:
    """Story T14, and rule 37 says so."""
    late = scope("late-end", delayed="Produce")
    assert exhaust(late).exhausted
    hanging = exhaust(late.varied({}, {"transaction.version": 1}))
    assert hanging.broken is not None
    assert hanging.broken[0] == "hanging-transaction"


# --- planted bugs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bug", "chosen", "rule"),
    [
        ("marker-of-any-epoch", scope("late-marker"), "early-read"),
        pytest.param(
            "answer-before-decision",
            scope("coordinator-moved", transactions=1, writes=1, partitions=1),
            "lost-write",
            marks=pytest.mark.system,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_planted_bug_is_found_and_nothing_without_it(bug: str, chosen: TransactionScope, rule: str) -> None:
    assert exhaust(chosen).exhausted
    result = exhaust(chosen.varied({}, {"planted.bug": bug}))
    assert result.broken is not None
    assert result.broken[0] == rule


# --- the search ------------------------------------------------------------------------------------------------------

SMALL = scope("transactions", transactions=1, writes=1, partitions=1, delays=0)


def test_the_count_does_not_depend_on_the_number_of_workers() -> None:
    alone, shared = (exhaust(scope("late-end"), workers=workers) for workers in (1, 2))
    assert alone.exhausted
    assert (alone.states, alone.transitions, alone.depth) == (shared.states, shared.transitions, shared.depth)


def test_a_counterexample_is_the_same_with_any_number_of_workers() -> None:
    chosen = scope("late-marker/1")
    assert texts(chosen) == texts(chosen, workers=2)


@pytest.mark.parametrize(
    "chosen",
    [
        scope("late-end", writes=1),
        scope("late-marker", writes=1),
        scope("late-end/1", writes=1),
        scope("late-marker/1", writes=1),
        scope("transactions", producers=1, transactions=1, writes=1, partitions=1, delayed="WriteTxnMarkers"),
    ],
    ids=["late end", "late marker", "late end, version 1", "late marker, version 1", "a move"],
)
def test_a_search_without_reductions_sees_the_same_and_breaks_the_same_rules(chosen: TransactionScope) -> None:
    reduced, plain = both(chosen)
    assert reduced[:2] == plain[:2]
    assert reduced[2] <= plain[2]


def test_the_twin_sees_what_a_reduction_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = scope("late-marker/1", writes=1)
    with plain_servers():
        seen = observations(PlainTransactions(chosen))
    monkeypatch.setattr(TransactionSpace, "_matters", lambda *_: False)
    assert observations(TransactionSpace(chosen))[1] < seen[1]


def test_a_step_that_is_remembered_is_what_the_core_does_again() -> None:
    space = TransactionSpace(scope("late-marker", writes=1))
    observations(space)
    for (digest, event), results in list(space.nodes._steps.items()):
        assert space.nodes.perform(digest, event) == results


def test_a_limit_ends_a_search() -> None:
    assert exhaust(SMALL, limits=Limits(states=20)).stopped == "--states 20"


# --- rules -----------------------------------------------------------------------------------------------------------

A, A2 = record_of(0, 0), record_of(0, 1)
NOTHING = PartitionCopy((), (), (), 0, ())
KNOWS_NOTHING = CoordinatorCopy(0, None, None, True, ())


def knowing(state: TransactionState) -> CoordinatorCopy:
    record = TransactionRecord(0, 0, 0, state, (TopicPartition("t", 0),))
    return KNOWS_NOTHING._replace(record=record)


def with_end(end: str, number: int = 0) -> ProducerNode:
    return ProducerNode(number, transactions=(PartWritten(0, (A, A2), end),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("coordinator", "part", "producer", "last", "rules"),
    [
        (KNOWS_NOTHING, NOTHING._replace(readable=(A, A2)), with_end("committed"), InCharge(), []),
        (KNOWS_NOTHING, NOTHING._replace(readable=(A, A2)), with_end("committing"), InCharge(), []),
        (KNOWS_NOTHING, NOTHING._replace(aborted=(A, A2)), with_end("committing"), InCharge(), []),
        (KNOWS_NOTHING, NOTHING._replace(readable=(A,)), with_end("open"), InCharge(), ["early-read"]),
        (KNOWS_NOTHING, NOTHING._replace(readable=(A,)), with_end("aborted"), InCharge(), ["aborted-read"]),
        (KNOWS_NOTHING, NOTHING._replace(readable=(A,)), with_end("committing"), InCharge(1), ["zombie"]),
        (KNOWS_NOTHING, NOTHING._replace(readable=(A,)), with_end("committing"), InCharge(1, (A,)), []),
        (
            KNOWS_NOTHING,
            NOTHING._replace(readable=(A,), aborted=(A2,)),
            with_end("committed"),
            InCharge(),
            ["torn-transaction", "lost-write"],
        ),
        (KNOWS_NOTHING, NOTHING._replace(open=(0,)), with_end("open"), InCharge(), ["hanging-transaction"]),
        (knowing(TransactionState.ONGOING), NOTHING._replace(open=(0,)), with_end("open"), InCharge(), []),
        (knowing(TransactionState.PREPARE_ABORT), NOTHING._replace(open=(0,)), with_end("aborting"), InCharge(), []),
        (
            knowing(TransactionState.COMPLETE_COMMIT),
            NOTHING._replace(open=(0,)),
            with_end("open"),
            InCharge(),
            ["hanging-transaction"],
        ),
    ],
)
def test_each_promise_is_broken_by_what_breaks_it_only(
    coordinator: CoordinatorCopy, part: PartitionCopy, producer: ProducerNode, last: InCharge, rules: list[str]
) -> None:
    assert [name for name, _ in broken_promises(coordinator, [part], [producer], last)] == rules


def test_rules_have_the_names_of_anomalies_or_of_invariants() -> None:
    assert {*TRANSACTION_RULES} - {"assertion"} <= {*ANOMALIES} | INVARIANTS


# --- the command -----------------------------------------------------------------------------------------------------


def test_a_counterexample_of_transactions_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["explore", "late-marker/1", "--workers", "1", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["broken"][0] in TRANSACTION_RULES
    assert answer["steps"][-1]["brokers"][0].startswith("coordinator 0: ")
    assert "other transactional ids" in " ".join(answer["left_out"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["late-end", "--rule", "logs-match"], 'unknown rule of this scope "logs-match"'),
        (["calm-1", "--rule", "zombie"], 'unknown rule of this scope "zombie"'),
        (["late-end", "--constant", "records=1"], 'unknown constant "records"'),
        (["late-end", "--constant", "producers=9"], "--constant producers: takes a whole number from 1 to 4, not 9"),
        (["late-end", "--set", "cleanup.policy=compact"], "leave out cleanup.policy"),
    ],
)
def test_what_a_scope_of_transactions_cannot_follow_is_refused(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["explore", *words]) == 64
    assert why in capsys.readouterr().err


def test_a_scope_says_what_it_leaves_out() -> None:
    left_out = " ".join(scope("late-end").leaves_out())
    assert "requests that are delayed, other than EndTxn" in left_out
    assert "appended and not committed" in left_out
    assert "appended and not committed" not in " ".join(scope("transactions").leaves_out())


def test_settings_that_are_wrong_are_an_error_of_the_plan() -> None:
    with pytest.raises(PlanError, match=r"leader\.election"):
        exhaust(scope("late-end").varied({}, {"leader.election": "largest-log-end"}))
