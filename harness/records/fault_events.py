"""Writes receipts of faults and broken invariants into a history, as events."""

from __future__ import annotations

import msgspec

from nemesis.receipts import Receipt, to_json
from workloads import NEMESIS, BrokenInvariant, Clock, Event, EventType, Function, Recorder


def record_fault(recorder: Recorder, clock: Clock, receipt: Receipt) -> None:
    """Record the present state of a receipt."""
    _record(recorder, clock, Function.FAULT, to_json(receipt))


def record_broken_invariant(recorder: Recorder, clock: Clock, broken: BrokenInvariant | None) -> None:
    """Record the invariant that a run broke first, if it broke any."""
    if broken is not None:
        _record(recorder, clock, Function.INVARIANT, msgspec.json.encode(broken).decode())


def _record(recorder: Recorder, clock: Clock, function: Function, detail: str) -> None:
    recorder.record(
        Event(time_us=clock.now_us(), process=NEMESIS, type=EventType.INFO, function=function, detail=detail)
    )
