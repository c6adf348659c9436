"""Wrong forms of the rules of transactions, in whole runs: the checkers find each, and nothing without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from checkers import check_rows
from harness.broker.core.transaction_coordinator import LOG
from harness.plan import RunSpec, Simulated
from harness.records.replica_dump import replicas_in_memory
from harness.runs.run import choices_of, perform_schedule
from harness.worlds.simulated import SimulatedWorld
from nemesis.cluster import CLIENTS, Link, Target, require
from nemesis.faults import ClientCrash
from nemesis.plan import FaultPlan
from nemesis.roles import Role, RoleKind
from nemesis.schedule import Schedule, ScheduledFault
from workloads import Event
from workloads.history import Rows
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

DURATION_MS = 5_000
#: A part of a run: what is done to its cluster, by the milliseconds since it began.
Script = Mapping[int, Callable[[Target], object]]
OF_CLIENTS = [Link(CLIENTS, node) for node in range(3)]
FROM_2 = [Link(2, node) for node in (0, 1)]
AWAY = [*FROM_2, *(Link(node, 2) for node in (0, 1))]


class InMemory:
    """Takes a history and keeps it."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.record: Callable[[Event], None] = self.rows.add


def anomalies(
    script: Script,
    *,
    aborts_percent: int = 25,
    takeover_every_ms: int = 0,
    crashes: Sequence[int] = (),
    **settings: Any,
) -> set[str]:
    """The findings in a run of the workload `transactions` with read_committed readers.

    Both producers die at the times of ``crashes``.
    """
    chosen = Settings(min_insync_replicas=2, enable_idempotence=True, isolation_level="read_committed", **settings)
    workload = WorkloadPlan(
        name="transactions",
        topic="t",
        partitions=2,
        producers=2,
        writes_per_second=60.0,
        duration_ms=DURATION_MS,
        sends_per_transaction=4,
        aborts_percent=aborts_percent,
        takeover_every_ms=takeover_every_ms,
    )
    spec = RunSpec(
        world=Simulated(),
        cell="planted",
        family="kill",
        settings=chosen.to_mapping(),
        workload=workload,
        faults=FaultPlan(families=("kill",)),
        schedule=Schedule(
            steps=tuple(crash(at_ms, pick) for at_ms in crashes for pick in (0, 1)), healed_ms=DURATION_MS
        ),
        seed=1,
    )
    choices = choices_of(spec)
    world, recorder = SimulatedWorld(spec, choices), InMemory()
    for at_ms, act in script.items():
        world.clock.call_at(at_ms * 1000, partial(act, world.target))
    report = perform_schedule(spec, world, recorder, choices.draw)
    assert report.sends.acknowledged > 50
    verdict = check_rows(recorder.rows, name="run", replicas=replicas_in_memory(report.ends, world.replica_logs()))
    assert report.drained or "hanging-transaction" in verdict.counts
    return {*verdict.counts}


def crash(at_ms: int, pick: int) -> ScheduledFault:
    """Let a producer die."""
    fault = ClientCrash(Role(RoleKind.PRODUCER, pick=pick))
    return ScheduledFault(
        begin_ms=at_ms, end_ms=at_ms + 100, group=pick, family="client-crash", scenario="crash", fault=fault
    )


def coordinate(node: int) -> Callable[[Target], object]:
    """Move the coordinator."""
    return lambda target: require(target.leadership).move_leader(str(LOG), node)


def lead(node: int) -> Callable[[Target], object]:
    """Move the leader of a log partition."""
    return lambda target: require(target.leadership).move_leader("t-0", node)


def hold(links: list[Link], api: str) -> Callable[[Target], object]:
    """Hold messages back."""
    return lambda target: require(target.messages).hold(links, api)


def release_one(*, newest: bool) -> Callable[[Target], object]:
    """Deliver one request of a client to broker 2."""
    return lambda target: require(target.messages).release_one(Link(CLIENTS, 2), newest=newest)


def release(links: list[Link], api: str) -> Callable[[Target], object]:
    """Deliver what is held."""
    return lambda target: require(target.messages).release(links, "hold", api)


#: Another broker leads, and serves readers with what it noted as a follower.
MOVED: Script = {2_000: lead(1), 4_000: lead(2)}

#: A transaction is left half written, and its successor comes only two seconds later.
HANGS: Script = {2_000: hold(OF_CLIENTS, "InitProducerId"), 4_000: release(OF_CLIENTS, "InitProducerId")}

#: The coordinator decides while no follower hears of it, and dies.
UNDECIDED: Script = {
    1_000: coordinate(2),
    2_000: hold(OF_CLIENTS, "EndTxn"),
    2_200: lambda target: target.links.cut(AWAY),
    2_201: release(OF_CLIENTS, "EndTxn"),
    2_500: lambda target: target.processes.kill(2),
    2_501: lambda target: target.links.heal(AWAY),
    4_000: lambda target: target.processes.restart(2),
}

#: Markers of an earlier coordinator arrive when the next transactions of their producers wait for their ends.
LATE_MARKERS: Script = {
    1_000: coordinate(2),
    2_000: hold(FROM_2, "WriteTxnMarkers"),
    2_300: coordinate(0),
    2_600: hold(OF_CLIENTS, "EndTxn"),
    3_200: release(FROM_2, "WriteTxnMarkers"),
    3_300: release(OF_CLIENTS, "EndTxn"),
}


#: The coordinator has decided and no follower has heard of it; it leads again in another epoch, sends the marker of one
#: partition, and dies. The producers died before they were answered.
UNCOMMITTED: Script = {
    1_000: coordinate(2),
    2_000: hold(OF_CLIENTS, "EndTxn"),
    2_200: hold([*AWAY, Link(2, 1), Link(1, 2)], "Fetch"),
    2_201: release(OF_CLIENTS, "EndTxn"),
    2_300: hold([Link(2, 1)], "WriteTxnMarkers"),
    2_400: coordinate(0),
    2_450: coordinate(2),
    2_650: release([Link(2, 0), Link(0, 2), Link(2, 1)], "Fetch"),
    2_600: lambda target: target.processes.kill(2),
    4_200: lambda target: target.processes.restart(2),
}


@pytest.mark.parametrize(
    ("bug", "script", "ways", "expected"),
    [
        ("forget-abort-on-follower", MOVED, {}, "aborted-read"),
        ("pass-hanging-transaction", HANGS, {"takeover_every_ms": 2_100}, "aborted-read"),
        ("answer-before-decision", UNDECIDED, {}, "lost-write"),
        ("marker-of-any-epoch", LATE_MARKERS, {"aborts_percent": 67}, "lost-write"),
        ("markers-uncommitted", UNCOMMITTED, {"crashes": (2_500,)}, "torn-transaction"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_form_is_found_in_virtual_time_and_nothing_without_it(
    bug: str, script: Script, ways: dict[str, Any], expected: str
) -> None:
    assert anomalies(script, **ways) == set()
    assert expected in anomalies(script, planted_bug=bug, **ways)


#: Producers send their EndTxn again after request.timeout.ms. Of one the second copy arrives, and the first when half
#: of its next transaction is written. Then the run ends.
LATE_END: Script = {
    1_000: coordinate(2),
    2_000: hold(OF_CLIENTS, "EndTxn"),
    3_780: hold([Link(CLIENTS, 1)], "Produce"),
    3_800: release_one(newest=True),
    4_200: release_one(newest=False),
    4_250: release_one(newest=False),
    4_500: release([Link(CLIENTS, 1)], "Produce"),
    DURATION_MS + 1_200: release(OF_CLIENTS, "EndTxn"),  # Nothing begins any more.
}


@pytest.mark.parametrize(("version", "hangs"), [(1, True), (2, False)])
def test_a_late_end_leaves_a_transaction_hanging_under_version_1_only(version: int, hangs: bool) -> None:
    """KAFKA-17754: the half that is written later belongs to no transaction that the coordinator knows."""
    seen = anomalies(LATE_END, aborts_percent=0, transaction_version=version)
    assert ("hanging-transaction" in seen) is hangs
    assert hangs or seen == set()
