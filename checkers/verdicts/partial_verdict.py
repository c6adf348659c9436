"""Judges some log partitions of each history, and makes a verdict of such parts.

Parts are plain data, so they travel from Spark's workers to the driver; the same code makes verdicts without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from checkers.anomalies import ANOMALIES, EMPTY_GRAPH, Allowed, Findings
from checkers.anomalies.broken_invariant import ANOMALY as BROKEN_INVARIANT
from checkers.anomalies.broken_invariant import InvariantBroken, broken_invariants
from checkers.anomalies.cycles import Cycle, EmptyGraph
from checkers.anomalies.out_of_sync import ANOMALY as OUT_OF_SYNC
from checkers.anomalies.out_of_sync import ReplicaOutOfSync, replicas_out_of_sync
from checkers.columns.loading import RowBatch
from checkers.cycles.edges import Dependency, related
from checkers.cycles.trimming import core_steps
from checkers.measures.availability import WorkloadTimes, availability, bounds
from checkers.measures.delivery import consume_counts, decide
from checkers.measures.history_counts import drained
from checkers.measures.lag import lags, lags_in_workload, worst
from checkers.measures.latency import latencies
from checkers.measures.read_availability import read_availability
from checkers.measures.recovery import recovery
from checkers.measures.writes_met import fault_exercise
from checkers.verdicts.moments import moments_of
from checkers.verdicts.run_in_file import run_of
from checkers.verdicts.verdict import MEASURES, Measures, Verdict
from workloads import Function
from workloads.history import FUNCTION_CODE, Origin, shown_key

#: Findings shown of each anomaly; counts are always whole.
SHOWN = 32
#: The reference tool lists as many cycles of a kind, the shortest.
CYCLES_SHOWN = 8
#: Histories with more log partitions than this list no availability by partition.
AVAILABILITY_MAX = 1000
_SUBSCRIBE = FUNCTION_CODE[Function.SUBSCRIBE]
_CUT_OFF = "the history was cut off before its end; what was still to be read is not known"


class PartialVerdict(Measures, kw_only=True):
    """The judgement of some log partitions of one history.

    ``problem`` says why it could not be read; ``steps`` are dependencies between operations that may be on a cycle;
    ``related`` is true if some operation depends on another. ``broken_invariants`` and ``out_of_sync`` are the
    history's, in every part.
    """

    history: int
    complete: bool
    own: bool
    events: int
    problem: str | None = None
    subscribed: bool = False
    partitions: int = 0
    undrained: list[str] = msgspec.field(default_factory=list)
    findings: Findings = msgspec.field(default_factory=dict)
    ww_deps: bool = True
    related: bool = False
    steps: list[Dependency] = msgspec.field(default_factory=list)
    broken_invariants: list[InvariantBroken] = msgspec.field(default_factory=list)
    out_of_sync: list[ReplicaOutOfSync] = msgspec.field(default_factory=list)


def judge_batch(batch: RowBatch, *, shown: int | None = SHOWN) -> list[PartialVerdict]:
    """Apply every kernel to a batch."""
    log, histories = batch.log, len(batch.histories)
    put_to_test = fault_exercise(log, batch.phases)
    workload = bounds(log, batch.phases)
    every_lag, consumed = lags(log), consume_counts(log, histories)
    lagging, consumer_lag = worst(log, every_lag, histories), lags_in_workload(log, every_lag, workload, histories)
    took, over_time = latencies(log, batch.phases)
    reached, depends = drained(log), related(log)
    subscribed = np.bincount(log.partition_history[log.partition[log.function == _SUBSCRIBE]], minlength=histories) > 0
    partials = [
        PartialVerdict(
            history=batch.histories[number],
            complete=bool(log.complete[number]),
            own=batch.phases[number].own,
            events=batch.events[number],
            subscribed=bool(subscribed[number]),
            faults=batch.phases[number].receipts,
            fault_exercise=put_to_test[number],
            latency=took[number],
            over_time=over_time[number],
            worst_realtime_lag=lagging[number],
            consumer_lag=consumer_lag[number],
            consume_counts=consumed[number],
            ww_deps=bool(batch.ww_deps[number]),
            related=bool(depends[number]),
            broken_invariants=broken_invariants(batch.phases[number]),
            out_of_sync=replicas_out_of_sync(batch.phases[number]),
        )
        for number in range(histories)
    ]
    for name, kind in MEASURES.items():
        for partial, measure in zip(partials, kind.of_each(log, batch.phases), strict=True):
            setattr(partial, name, measure)
    _by_partition(batch, partials, workload, reached)
    for partial, phases in zip(partials, batch.phases, strict=True):
        partial.recovery = recovery(phases, partial.undrained)
    _add_anomalies(batch, partials, shown)
    for step in core_steps(log, ww_deps=batch.ww_deps, joined=batch.joined, whole=batch.whole):
        partials[step.history].steps.append(step)
    return partials


def _add_anomalies(batch: RowBatch, partials: list[PartialVerdict], shown: int | None) -> None:
    log = batch.log
    for name, anomaly in ANOMALIES.items():
        if anomaly.kernel is None:
            continue
        occurrences = anomaly.kernel(log)
        if not len(occurrences.partition):
            continue
        counts = occurrences.counts(log.partition_history, len(partials))
        findings = occurrences.shown(log, shown)
        for number in np.flatnonzero(counts).tolist():
            partials[number].counts[name] = int(counts[number])
            partials[number].findings[name] = [finding for finding, _ in findings[number]]
            partials[number].times_us[name] = [time_us for _, time_us in findings[number]]
        for number, moments in moments_of(anomaly.finding, occurrences, log, batch.phases).items():
            partials[number].moments[name] = moments


def _by_partition(batch: RowBatch, partials: list[PartialVerdict], workload: WorkloadTimes, reached: Any) -> None:
    log = batch.log
    is_listed = log.partition_count <= AVAILABILITY_MAX * len(partials)
    measured = availability(log, workload) if is_listed else []
    readers = read_availability(log, batch.phases, workload) if is_listed else []
    for partition, key in enumerate(log.partition_key):
        partial = partials[int(log.partition_history[partition])]
        partial.partitions += 1
        if partial.own and not reached[partition]:
            partial.undrained.append(key)
        if measured:
            partial.availability[key] = measured[partition]
            if (waited := readers[partition]) is not None:
                partial.read_availability[key] = waited


def verdict(name: str, parts: Iterable[PartialVerdict], origin: Origin, *, shown: int | None = SHOWN) -> Verdict:
    """The verdict on a history from all its parts."""
    partial = _merged(parts, shown)
    exercised = partial.exercise
    exercised.drained = partial.own and partial.partitions > 0 and not partial.undrained
    for anomaly, cycles in _cycles(partial.steps).items():
        partial.counts[anomaly] = len(cycles)
        partial.findings[anomaly] = [*(cycles if shown is None else cycles[: min(shown, CYCLES_SHOWN)])]
    for by_world, seen in ((BROKEN_INVARIANT, partial.broken_invariants), (OUT_OF_SYNC, partial.out_of_sync)):
        if seen:
            partial.counts[by_world.name] = len(seen)
            partial.findings[by_world.name] = [*seen]
            partial.times_us[by_world.name] = [finding.time_us for finding in seen]
    foreign = partial.events > 0 and not partial.own  # a run that ended before its first event is no other tool's
    if partial.complete and foreign and not partial.related and partial.problem is None:
        partial.counts[EMPTY_GRAPH] = 1
        partial.findings[EMPTY_GRAPH] = [EmptyGraph(sends=exercised.attempted, reads=exercised.records_read)]
    valid, reason = _validity(partial, origin)
    certain = exercised.acknowledged > 0 and _all_read(partial)
    partial.delivery = decide(partial.delivery, partial.counts, certain=certain)
    partial.consume_counts = dict(sorted(partial.consume_counts.items()))
    if partial.worst_realtime_lag is not None:
        partial.worst_realtime_lag.key = shown_key(str(partial.worst_realtime_lag.key))
    return Verdict(
        **{name: getattr(partial, name) for name in Measures.__struct_fields__},
        history=name,
        valid=valid,
        anomalies={
            name: [finding.told(origin) for finding in partial.findings[name]]
            for name in ANOMALIES
            if name in partial.findings
        },
        reason=reason,
        irregular=origin.irregular,
        left_out=origin.left_out,
        run=run_of(origin),
    )


def _merged(parts: Iterable[PartialVerdict], shown: int | None) -> PartialVerdict:
    """The parts of one history as one part."""
    merged, *rest = parts
    for part in rest:
        merged.problem = merged.problem or part.problem
        merged.subscribed |= part.subscribed
        merged.related |= part.related
        merged.partitions += part.partitions
        merged.undrained += part.undrained
        merged.steps += part.steps
        merged.add(part)
        if merged.partitions > AVAILABILITY_MAX:
            merged.availability, merged.read_availability = {}, {}
        for name in part.counts:
            findings = merged.findings.get(name, []) + part.findings[name]
            times_us = merged.times_us.get(name, []) + part.times_us[name]
            merged.findings[name], merged.times_us[name] = findings[:shown], times_us[:shown]
    return merged


def _cycles(steps: Sequence[Dependency]) -> dict[str, list[Cycle]]:
    """Cycles by anomaly; networkx takes a quarter of a second to load, which only histories with suspects pay."""
    if not steps:
        return {}
    from checkers.cycles.search import find_cycles  # noqa: PLC0415

    return find_cycles(steps)


def _validity(partial: PartialVerdict, origin: Origin) -> tuple[bool | Literal["unknown"], str | None]:
    """False if something is wrong, "unknown" with the reason if it is not known, else true."""
    if partial.problem is not None:
        return "unknown", partial.problem
    undrained = bool(partial.undrained)
    allowed = {
        Allowed.NEVER: False,
        Allowed.ALWAYS: True,
        Allowed.SUBSCRIBED: partial.subscribed,
        Allowed.ORDERED_BY_OVERWRITES: partial.ww_deps,
    }
    wrong = [name for name in partial.counts if not allowed[ANOMALIES[name].allowed]]
    if undrained:
        wrong = [name for name in wrong if name != "unseen"]
    if partial.complete and not partial.exercise.attempted and not partial.exercise.records_read:
        return False, "nothing was sent or read: an empty history proves nothing"
    if wrong:
        return False, "no operation depends on another: that proves nothing" if wrong == [EMPTY_GRAPH] else None
    why_unknown = _why_unknown(partial, origin)
    return (True, None) if why_unknown is None else ("unknown", why_unknown)


def _why_unknown(partial: PartialVerdict, origin: Origin) -> str | None:
    """Say why a history without anything wrong proves nothing; None where it proves something."""
    if not partial.complete:
        return str(origin.options.get("incomplete") or _CUT_OFF)
    if origin.irregular:
        return f"{origin.irregular}, so silence proves nothing; correct the history"
    if unread := partial.application.unread:
        name, why = next(iter(unread.items()))
        return f"the output {name} of the application was not read to its end: {why}"
    if partial.undrained:
        listed = ", ".join(partial.undrained[:3]) + (", ..." if len(partial.undrained) > 3 else "")
        return f"the final readers did not reach the end of {listed}"
    return None


def _all_read(partial: PartialVerdict) -> bool:
    """Tell that every acknowledged record was read, or the log was read to its end."""
    return partial.complete and (partial.exercise.drained or not partial.counts.get("unseen"))
