"""The delivery that a run's producers got: records at most once, at least once, or exactly once, in order or not.

The terms are those of KAFKA-5494: *at most once*, acknowledged records appear in the log once or not at all; *at
least once*, each appears, some several times; *exactly once*, each appears exactly once. A run that both loses and
doubles gives none of them. What one run shows is not what its settings promise: "exactly-once" here means that
nothing else happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.lost_write import lost_values
from checkers.columns.ids import Numbers, dense_ids, one_of, starts_of
from checkers.columns.log import Log
from checkers.columns.phases import RunMarks
from checkers.measures.measure import Measure
from workloads import Function
from workloads.history import FUNCTION_CODE, NONE, OK, Kind

Observed = Literal["exactly-once", "at-least-once", "at-most-once", "none", "unknown"]


class Delivery(Measure):
    """Counts of acknowledged records. ``observed`` is "unknown" where some record may be lost or merely unread, and
    where no record was acknowledged.

    ``reordered`` is the count of the anomaly of that name. ``ordered`` says whether the records that are left of each
    producer's are in the order in which it was asked to send them. It is None where that is not known: something was
    not read, two values share an offset, or the producers of some records (``unattributed``) are not known. It is None
    too where no record has another of its producer instance before it on the log partition (``comparable`` counts
    those).
    """

    observed: Observed = "unknown"
    ordered: bool | None = None
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    unattributed: int = 0
    comparable: int = 0

    @classmethod
    @override
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[Delivery]:
        return _count(log, len(phases))

    @property
    def words(self) -> str:
        """The delivery in words: ``exactly-once, in order``."""
        return f"{self.observed}{', in order' if self.ordered else '' if self.ordered is None else ', not in order'}"


def _count(log: Log, histories: int) -> list[Delivery]:
    """Count lost, duplicated, unattributed and comparable records; :func:`decide` draws the conclusions."""
    order = log.order
    begins = starts_of(order.entry_value)
    several = order.entry_value[begins][np.diff(np.append(begins, len(order.entry_value))) > 1]
    lost = np.concatenate(lost_values(log)) if log.partition_count else several[:0]
    acknowledged = log.sends[log.type[log.sends] == OK]
    has_producer = log.instance[acknowledged] != NONE
    unattributed, attributed = acknowledged[~has_producer], log.partition[acknowledged[has_producer]]
    first = dense_ids(attributed, log.instance[acknowledged[has_producer]], log.partition_count).partition
    counts = (
        _by_history(log, log.values.partition[lost[log.sent_ok[lost]]], histories),
        _by_history(log, log.values.partition[several[log.sent_ok[several]]], histories),
        _by_history(log, log.partition[unattributed], histories),
        _by_history(log, attributed, histories) - _by_history(log, first, histories),
    )
    return [
        Delivery(lost=lost, duplicated=duplicated, unattributed=unattributed, comparable=comparable)
        for lost, duplicated, unattributed, comparable in np.stack(counts, axis=1).tolist()
    ]


def decide(delivery: Delivery, counts: Mapping[str, int], *, certain: bool) -> Delivery:
    """Fill in ``observed``, ``ordered`` and ``reordered``, from the whole ``counts`` of anomalies.

    ``certain`` says that records were acknowledged, and that each was read, or the log read to its end.
    """
    observed: Observed
    if delivery.lost:
        observed = "none" if delivery.duplicated else "at-most-once"
    elif not certain:
        observed = "unknown"
    else:
        observed = "at-least-once" if delivery.duplicated else "exactly-once"
    reordered = counts.get("reordered", 0)
    attributed = certain and not delivery.unattributed and not counts.get("inconsistent-offsets")
    comparable = attributed and delivery.comparable > 0
    ordered = False if reordered else True if comparable else None
    return msgspec.structs.replace(delivery, observed=observed, ordered=ordered, reordered=reordered)


def _by_history(log: Log, partitions: Numbers, histories: int) -> Numbers:
    return np.bincount(log.partition_history[partitions], minlength=histories)


_SUBSCRIBE = FUNCTION_CODE[Function.SUBSCRIBE]


def consume_counts(log: Log, histories: int) -> list[dict[int, int]]:
    """Count how often subscribed consumers got each value, by history: {times: (process, log partition, value)s}. O(n).

    Informational, as in the reference tool: consumer groups commit offsets late, so more than once is ordinary. Counts
    ok polls of processes that had subscribed.
    """
    listed = one_of(log.kind, Kind.LISTED, Kind.DROPPED) & (log.function == _SUBSCRIBE) & (log.type == OK)
    counts: list[dict[int, int]] = [{} for _ in range(histories)]
    if not listed.any():
        return counts
    rows = log.reads[(log.type[log.reads] == OK) & np.isin(log.client[log.reads], np.unique(log.client[listed]))]
    ids = dense_ids(log.client[rows], log.value_id[rows], int(log.client.max(initial=0)) + 1)
    times = np.bincount(ids.of, minlength=len(ids))
    owner = np.zeros(len(ids), dtype=np.int64)
    owner[ids.of] = log.partition_history[log.partition[rows]]
    for history in np.unique(owner).tolist():
        values, number = np.unique(times[owner == history], return_counts=True)
        counts[history] = dict(zip(values.tolist(), number.tolist(), strict=True))
    return counts
