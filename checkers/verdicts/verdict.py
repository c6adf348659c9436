"""What a check says of one history. Findings are data: an anomaly, where it was seen, and its witness."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from checkers.measures.availability import Availability
from checkers.measures.delivery import Delivery
from checkers.measures.exercise import Exercise
from checkers.measures.recovery import Recovery


class Verdict(msgspec.Struct, kw_only=True):
    """What the checkers say of one history, whatever was promised.

    ``anomalies`` maps an anomaly's name to its findings (each a mapping with the fields of the anomaly's specification,
    at least ``key``, the log partition), maybe capped; ``counts`` are never capped; ``times_us`` are the moments of the
    listed findings on the run's clock (of the lost write, of the wrong read; None where it is not known). ``faults``
    are the receipts found in the history. ``valid`` is false if any anomaly was found but those that the field allows
    (:class:`checkers.anomalies.Allowed`), or if nothing was sent or read at all; "unknown" with a ``reason`` if it
    could not be told. ``replicas_compared`` counts the log partitions whose replicas' logs were compared with each
    other; None where there are no such logs, so that nothing is said of them.
    """

    history: str
    valid: bool | Literal["unknown"]
    anomalies: dict[str, list[dict[str, Any]]] = {}
    counts: dict[str, int] = {}
    times_us: dict[str, list[int | None]] = {}
    exercise: Exercise = msgspec.field(default_factory=Exercise)
    availability: dict[str, Availability] = {}
    faults: list[dict[str, Any]] = []
    delivery: Delivery = msgspec.field(default_factory=Delivery)
    recovery: Recovery = msgspec.field(default_factory=Recovery)
    worst_realtime_lag: dict[str, Any] | None = None
    consume_counts: dict[int, int] = {}
    replicas_compared: int | None = None
    reason: str | None = None
