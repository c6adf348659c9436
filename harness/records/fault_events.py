"""Writes receipts of faults, broken invariants and refused attempts into a history, as events."""

from __future__ import annotations

import msgspec

from nemesis.receipts import Receipt, to_json
from workloads import NEMESIS, BrokenInvariant, Clock, Event, EventType, Function, Recorder, RefusedAttempts


def record_fault(recorder: Recorder, clock: Clock, receipt: Receipt) -> None:
    """Record the present state of a receipt."""
    _record(recorder, clock, Function.FAULT, to_json(receipt))


def record_broken_invariant(recorder: Recorder, clock: Clock, broken: BrokenInvariant | None) -> None:
    """Record the invariant that a run broke first, if it broke any."""
    if broken is not None:
        _record(recorder, clock, Function.INVARIANT, msgspec.json.encode(broken).decode())


def record_refused_attempts(recorder: Recorder, clock: Clock, attempts: RefusedAttempts | None) -> None:
    """Record what brokers counted in a whole run, if they could."""
    if attempts is not None:
        _record(recorder, clock, Function.REFUSED, msgspec.json.encode(attempts).decode())


def _record(recorder: Recorder, clock: Clock, function: Function, detail: str) -> None:
    recorder.record(
        Event(time_us=clock.now_us(), process=NEMESIS, type=EventType.INFO, function=function, detail=detail)
    )
