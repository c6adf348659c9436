"""What a check says of one history. Findings are data: an anomaly, where it was seen, and its witness."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from checkers.measures.delivery import Delivery


class Exercise(msgspec.Struct, kw_only=True):
    """How much a history exercised the log; counts of writes unless the name says otherwise.

    ``acknowledged_in_fault`` counts writes acknowledged between the begin and the end of a fault that took effect.
    ``drained`` is true when the final readers reached, on every partition, the log end offset asked after healing.
    """

    attempted: int = 0
    acknowledged: int = 0
    acknowledged_in_fault: int = 0
    rejected: int = 0
    unknown: int = 0
    records_read: int = 0
    drained: bool = False


class Availability(msgspec.Struct, kw_only=True):
    """Availability of one log partition to writers, in microseconds of the run's clock.

    ``longest_gap_us`` is the longest window of the workload phase without an acknowledged write, begun at
    ``gap_start_us``; ``recovery_us`` is the time from the final heal to the next acknowledged write, None if there
    was none.
    """

    longest_gap_us: int
    gap_start_us: int
    recovery_us: int | None = None


class Verdict(msgspec.Struct, kw_only=True):
    """The judgement of one history; one line of ``verdicts.jsonl``.

    ``anomalies`` maps an anomaly's name to its findings (each a mapping with the fields of the anomaly's docstring,
    at least ``key``, the log partition), maybe capped; ``counts`` are never capped. ``faults`` are the receipts found
    in the history. ``valid`` is false if any anomaly was found but those that the field allows (see
    ``checkers.anomalies.ALLOWED``), or if nothing was sent or read at all; "unknown" with a ``reason`` if it could not
    be told. ``replicas_compared`` counts the log partitions whose replicas' logs were compared with each other; None
    where there are no such logs, so that nothing is said of them.
    """

    history: str
    valid: bool | Literal["unknown"]
    anomalies: dict[str, list[dict[str, Any]]] = {}
    counts: dict[str, int] = {}
    exercise: Exercise = msgspec.field(default_factory=Exercise)
    availability: dict[str, Availability] = {}
    faults: list[dict[str, Any]] = []
    delivery: Delivery = msgspec.field(default_factory=Delivery)
    worst_realtime_lag: dict[str, Any] | None = None
    consume_counts: dict[int, int] = {}
    replicas_compared: int | None = None
    reason: str | None = None
