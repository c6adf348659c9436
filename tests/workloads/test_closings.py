"""The closings of each kind of workload, in their order, and what each of them does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workloads.leaders import ObedientLeaders
from workloads import WORKLOADS, EventType, Function, IsolationLevel, Settings, WorkloadPlan, kind_of
from workloads.application_closings import (
    AwaitStableOutput,
    CatchUp,
    EndInstances,
    PrintEffects,
    ReadOutput,
    TellEffects,
    WriteLastOutput,
)
from workloads.closings import (
    CLEANING_MS,
    CLOSING_MS,
    RETENTION_WAIT_MS_MAX,
    SETTLE_MS,
    AskCommitted,
    AwaitStable,
    Closings,
    FinishGroup,
    Lead,
    Levels,
    ReadAgain,
    Rest,
    WriteLast,
)
from workloads.driver import Workload
from workloads.plan import LISTED

COMMITTED: Levels = ("read_committed", "read_uncommitted")
BROKERS = (4, 7)
NOTHING_MORE = Closings()
AT_BOTH_LEVELS = (
    ReadAgain("read_uncommitted"),
    *(Lead(4), ReadAgain("read_committed", 4), ReadAgain("read_uncommitted", 4)),
    *(Lead(7), ReadAgain("read_committed", 7), ReadAgain("read_uncommitted", 7)),
)
#: The closings of readers of committed records, where two brokers can lead.
CLOSINGS = {
    "steady": NOTHING_MORE,
    "bursts": NOTHING_MORE,
    "keyed": Closings(
        before=(Rest(),),
        again=(Lead(4), ReadAgain("read_committed", 4), Lead(7), ReadAgain("read_committed", 7)),
    ),
    "transactions": Closings(before=(AwaitStable(),), again=AT_BOTH_LEVELS),
    "keyed-transactions": Closings(before=(AwaitStable(), Rest()), again=AT_BOTH_LEVELS),
    "groups": Closings(after=(FinishGroup(),), again=(AskCommitted(4), AskCommitted(7))),
    "consume-transform-produce": Closings(
        before=(FinishGroup(), WriteLast(), AwaitStable()),
        again=(
            ReadAgain("read_uncommitted"),
            *(Lead(4), ReadAgain("read_committed", 4), ReadAgain("read_uncommitted", 4), AskCommitted(4)),
            *(Lead(7), ReadAgain("read_committed", 7), ReadAgain("read_uncommitted", 7), AskCommitted(7)),
        ),
    ),
    "application": Closings(
        before=(CatchUp(), EndInstances(), PrintEffects()),
        after=(
            *(WriteLastOutput(), AwaitStableOutput()),
            *(ReadOutput("read_committed"), ReadOutput("read_uncommitted"), TellEffects()),
        ),
    ),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_kind_of_workload_has_its_closings_in_this_order(name: str) -> None:
    assert WORKLOADS[name].closings(COMMITTED, BROKERS) == CLOSINGS[name]


def test_listed_writes_end_with_the_final_read() -> None:
    assert kind_of(WorkloadPlan(name=LISTED)).closings(COMMITTED, BROKERS) == NOTHING_MORE


@pytest.mark.parametrize("name", WORKLOADS)
def test_where_no_leader_can_be_moved_nothing_is_done_under_each(name: str) -> None:
    steps = WORKLOADS[name].closings(COMMITTED, ()).again
    assert steps == ((ReadAgain("read_uncommitted"),) if WORKLOADS[name].transactional else ())


@pytest.fixture
def workload(perfect_world: Any, events: Any) -> Any:
    def make(**settings: Any) -> Workload:
        plan, world = WorkloadPlan(partitions=2, drain_limit_ms=9_000), perfect_world
        return Workload(plan, Settings(**settings), clients=world.clients, clock=world.clock, recorder=events)

    return make


@pytest.mark.parametrize(("level", "other"), [COMMITTED, COMMITTED[::-1]])
def test_the_run_s_own_level_comes_first(workload: Any, level: IsolationLevel, other: IsolationLevel) -> None:
    made = workload(isolation_level=level)
    made.kind = WORKLOADS["transactions"]
    assert made.closings((4,)).again == (ReadAgain(other), Lead(4), ReadAgain(level, 4), ReadAgain(other, 4))


@pytest.mark.parametrize(
    ("stays_ms", "rest_ms"),
    [(1_000, 1_000 + CLEANING_MS), (86_400_000, RETENTION_WAIT_MS_MAX + CLEANING_MS)],
)
def test_cleaners_have_time_for_tombstones_that_go_within_a_run(workload: Any, stays_ms: int, rest_ms: int) -> None:
    begun = Rest().begin(workload(delete_retention_ms=stays_ms).begin_ending(ObedientLeaders()))
    assert (begun.work.finished, begun.limit_ms, begun.pause_ms) == (True, 0, rest_ms)


def test_under_a_leader_a_read_proves_nothing_of_a_log_that_lacks_something_or_that_it_does_not_lead(
    workload: Any, perfect_world: Any, events: Any
) -> None:
    leaders = ObedientLeaders(BROKERS, cannot={7})
    made = workload().begin_ending(leaders)

    def read(begun: Any) -> None:
        perfect_world.drive(lambda: begun.finished, perfect_world.clock.now_us() + 1_000_000)
        begun.end()

    read(made.begin_drain({"ackproof-1": "no leader"}))
    for broker in BROKERS:
        assert Lead(broker).begin(made).work.finished
        begun = ReadAgain("read_uncommitted", broker).begin(made)
        assert (begun.limit_ms, begun.pause_ms) == (4_500, CLOSING_MS)
        read(begun.work)
    assert leaders.moved == [(("ackproof-0",), 4), (("ackproof-0",), 7)]
    said = {(e.node, e.partitions[0]): (e.type, e.error) for e in events.of(Function.DRAIN)}
    assert said == {
        (None, "ackproof-0"): (EventType.OK, None),
        (None, "ackproof-1"): (EventType.INFO, "no leader"),
        (4, "ackproof-0"): (EventType.OK, None),
        (4, "ackproof-1"): (EventType.INFO, "no leader"),
        (7, "ackproof-0"): (EventType.INFO, "broker 7 does not lead it"),
        (7, "ackproof-1"): (EventType.INFO, "no leader"),
    }


def test_while_a_transaction_is_open_only_reads_of_uncommitted_records_prove_an_end(
    workload: Any, perfect_world: Any, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Open:
        limit_ms, held = 7_000, {"ackproof-1": "a transaction is open"}

        def __init__(self, *_: object) -> None: ...

        def start(self, _partitions: object) -> None: ...

    monkeypatch.setattr("workloads.ending.StableOffsets", Open)
    made = workload().begin_ending(ObedientLeaders())
    begun = AwaitStable().begin(made)
    assert (begun.limit_ms, begun.pause_ms) == (7_000, 0)
    for level in COMMITTED:
        drain = ReadAgain(level).begin(made).work
        perfect_world.drive(lambda drain=drain: drain.finished, perfect_world.clock.now_us() + 1_000_000)
        drain.end()
    assert [(e.partitions[0], e.error) for e in events.of(Function.DRAIN) if e.type is not EventType.OK] == [
        ("ackproof-1", "a transaction is open")
    ]
    assert len(events.of(Function.DRAIN, EventType.OK)) == 3


class Told:
    """An ending that keeps what it is told to do."""

    plan = WorkloadPlan(drain_limit_ms=9_000, recovery_limit_ms=2_500)
    outputs = ("out-0", "out-1")
    leaders = ObedientLeaders(BROKERS, cannot={7})

    def __init__(self) -> None:
        self.told: list[Any] = []

    def write(self, partitions: tuple[str, ...]) -> None:
        self.told.append(("write", partitions))

    def ask_committed(self) -> None:
        self.told.append("ask")

    def finish_group(self) -> None:
        self.told.append("finish")


@pytest.mark.parametrize(
    ("closing", "told", "limit_ms", "pause_ms"),
    [
        (AskCommitted(4), ["ask"], 4_500, CLOSING_MS),
        (AskCommitted(7), [], 0, 0),
        (FinishGroup(), ["finish"], 4_500, CLOSING_MS),
        (WriteLast(), [("write", ("out-0", "out-1"))], 2_500, SETTLE_MS),
    ],
)
def test_a_group_is_finished_and_its_outputs_written_to_and_only_a_broker_that_coordinates_it_is_asked(
    closing: Any, told: list[Any], limit_ms: int, pause_ms: int
) -> None:
    ending = Told()
    begun = closing.begin(ending)
    assert (ending.told, begun.limit_ms, begun.pause_ms) == (told, limit_ms, pause_ms)
