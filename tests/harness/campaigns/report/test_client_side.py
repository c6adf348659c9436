"""A log partition as clients saw it, from the columns of a history, against the same from its events."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaigns.report.client_side import AcknowledgedWrite, ClientSide, client_side
from harness.plan import RunSpec, Simulated
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from nemesis.plan import FaultPlan
from workloads import EventType, Function, Poll, Send
from workloads.history import HistoryError, read_events
from workloads.plan import WorkloadPlan


def by_events(history: Path, partition: str) -> ClientSide:
    """The slow twin: event after event."""
    side, invoked = ClientSide(), dict[int, int]()
    for event in read_events(history):
        if event.function is Function.DRAIN and event.type is EventType.OK and partition in event.partitions:
            side.end_offset = event.offset
        for micro in event.micro:
            if isinstance(micro, Poll):
                side.reads |= {record.offset: record.value for record in micro.records.get(partition, ())}
            elif isinstance(micro, Send) and micro.partition == partition:
                if event.type is EventType.INVOKE:
                    invoked[micro.value] = event.time_us
                elif event.type is EventType.OK:
                    side.acknowledged[micro.value] = AcknowledgedWrite(
                        value=micro.value,
                        invoked_us=invoked[micro.value],
                        acknowledged_us=event.time_us,
                        offset=micro.offset,
                        node=event.node,
                    )
    return side


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_columns_say_what_events_say(tmp_path: Path, acks: int | str) -> None:
    spec = RunSpec(
        world=Simulated(),
        cell="cell/kill",
        family="kill",
        settings={"acks": acks},
        workload=WorkloadPlan(duration_ms=8_000, writes_per_second=20.0),
        faults=FaultPlan(families=("kill", "partition")),
        seed=3,
    )
    run = tmp_path / "run"
    perform_run(spec, run)
    seen = client_side(run / HISTORY, "ackproof-1")
    assert seen == by_events(run / HISTORY, "ackproof-1")
    assert len(seen.acknowledged) > 20
    assert len(seen.reads) > 20
    assert client_side(run / HISTORY, "elsewhere-0") == ClientSide()


def test_without_a_history_the_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="holds no history"):
        client_side(tmp_path / HISTORY, "ackproof-0")
