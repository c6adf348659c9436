"""Receipts of faults as events of a history."""

from __future__ import annotations

from nemesis.receipts import Receipt, to_json
from workloads import NEMESIS, Clock, Event, EventType, Function, Recorder


def record_fault(recorder: Recorder, clock: Clock, receipt: Receipt) -> None:
    """Write down what a receipt says now."""
    recorder.record(
        Event(
            time_us=clock.now_us(),
            process=NEMESIS,
            type=EventType.INFO,
            function=Function.FAULT,
            detail=to_json(receipt),
        )
    )
