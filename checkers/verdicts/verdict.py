"""The verdict on one history. Findings are data: an anomaly, where it was seen, and its witness."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeVar

import msgspec

from checkers.anomalies import Finding, Findings
from checkers.measures.application_counts import ApplicationCounts
from checkers.measures.availability import Availability
from checkers.measures.delivery import Delivery
from checkers.measures.groups import GroupCounts
from checkers.measures.history_counts import Exercise
from checkers.measures.lag import ConsumerLag, WorstLag
from checkers.measures.latency import Latency, WritesOverTime
from checkers.measures.measure import Measure
from checkers.measures.read_availability import ReadAvailability
from checkers.measures.recovery import Recovery
from checkers.measures.situations import Situations
from checkers.measures.transaction_counts import TransactionCounts
from checkers.measures.writes_met import FaultExercise
from checkers.verdicts.moments import MarkedMoment, joined
from nemesis.plan import AT_STAKE_MIN, EXERCISED_MIN
from nemesis.receipts import Receipt
from workloads import SettingValue

Kind = TypeVar("Kind", bound=Finding)


class Measures(msgspec.Struct, kw_only=True):
    """Counts and measures of what happened in a history, or in some of its log partitions.

    ``counts`` are findings by anomaly, never capped; ``times_us`` the moments of those that are listed, on the run's
    clock (of the lost write, of the wrong read; None where it is not known), ``moments`` those of all findings, one of
    each stretch between changes of faults; only in runs of ours. ``faults`` are the receipts found in the
    history, ``fault_exercise`` the writes that each of them met; None in a verdict of an older version, which did not
    count them.
    """

    counts: dict[str, int] = {}
    times_us: dict[str, list[int | None]] = {}
    moments: dict[str, list[MarkedMoment]] = {}
    exercise: Exercise = msgspec.field(default_factory=Exercise)
    availability: dict[str, Availability] = {}
    read_availability: dict[str, ReadAvailability] = {}
    consumer_lag: ConsumerLag = msgspec.field(default_factory=ConsumerLag)
    faults: list[Receipt] = []
    fault_exercise: list[FaultExercise] | None = None
    situations: Situations = msgspec.field(default_factory=Situations)
    groups: GroupCounts = msgspec.field(default_factory=GroupCounts)
    delivery: Delivery = msgspec.field(default_factory=Delivery)
    recovery: Recovery = msgspec.field(default_factory=Recovery)
    latency: Latency = msgspec.field(default_factory=Latency)
    over_time: WritesOverTime = msgspec.field(default_factory=WritesOverTime)
    transactions: TransactionCounts = msgspec.field(default_factory=TransactionCounts)
    application: ApplicationCounts = msgspec.field(default_factory=ApplicationCounts)
    worst_realtime_lag: WorstLag | None = None
    consume_counts: dict[int, int] = {}

    def add(self, other: Measures) -> None:
        """Add the counts of other log partitions of the same history, but ``times_us``, which go with findings."""
        for name in MEASURES:
            getattr(self, name).add(getattr(other, name))
        self.availability |= other.availability
        self.read_availability |= other.read_availability
        self.consumer_lag.add(other.consumer_lag)
        self.recovery.unread |= other.recovery.unread
        self.latency.add(other.latency)
        self.latency.workload_us = max(self.latency.workload_us, other.latency.workload_us)
        self.over_time.add(other.over_time)
        for mine, theirs in zip(self.fault_exercise or (), other.fault_exercise or (), strict=False):
            _add_counts(mine, theirs, _PUT_TO_TEST)
        if _lag(other) > _lag(self):
            self.worst_realtime_lag = other.worst_realtime_lag
        for times, number in other.consume_counts.items():
            self.consume_counts[times] = self.consume_counts.get(times, 0) + number
        for name, number in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
        for name, moments in other.moments.items():
            self.moments[name] = joined(self.moments.get(name, ()), moments)


#: The fields that are measures as :class:`checkers.measures.measure.Measure` has them.
MEASURES: Final[dict[str, type[Measure]]] = {
    field.name: field.type
    for field in msgspec.structs.fields(Measures)
    if isinstance(field.type, type) and issubclass(field.type, Measure)
}
_PUT_TO_TEST: Final = ("in_flight", "recent", "recent_alone", "acknowledged", "refused", "cleaned")


def _add_counts(total: msgspec.Struct, part: msgspec.Struct, names: Iterable[str]) -> None:
    for name in names:
        setattr(total, name, getattr(total, name) + getattr(part, name))


def _lag(measures: Measures) -> int:
    return -1 if measures.worst_realtime_lag is None else measures.worst_realtime_lag.lag


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run that is judged, from its specification; ``settings`` are complete, under Kafka's names.

    ``cell`` names the choice of settings and the family within the campaign; ``client_defaults`` are the names of
    settings that have the client library's own default; ``exercised_min`` and
    ``at_stake_min`` are the plan's (:class:`nemesis.plan.FaultPlan`).
    """

    cell: str
    family: str
    world: str
    seed: int
    settings: dict[str, SettingValue]
    client_defaults: tuple[str, ...] = ()
    exercised_min: int = EXERCISED_MIN
    at_stake_min: int = AT_STAKE_MIN


class Verdict(Measures, kw_only=True):
    """The findings of the checkers in one history, whatever was promised.

    ``anomalies`` maps an anomaly's name to its findings (each with the fields of that anomaly), maybe capped. ``valid``
    is false if it has any anomaly but those that the field allows (:class:`checkers.anomalies.Allowed`), or if nothing
    was sent or read at all; "unknown" with a ``reason`` if it could not be decided. ``replicas_compared`` counts the
    log partitions whose replicas' logs were compared with each other; None without such logs. ``irregular`` says what
    another tool's history has and no real one can have: neither its silence nor its findings are certain then.
    ``left_out`` says what it has beside that and was not judged. ``run`` are the facts of the run that the history is
    of, where it says them itself.
    """

    history: str
    valid: bool | Literal["unknown"]
    anomalies: Findings = msgspec.field(default_factory=dict)
    replicas_compared: int | None = None
    reason: str | None = None
    irregular: str = ""
    left_out: list[str] = []
    run: RunFacts | None = None

    def findings(self, kind: type[Kind]) -> list[Kind]:
        """The listed findings of one kind."""
        return [finding for listed in self.anomalies.values() for finding in listed if isinstance(finding, kind)]
