"""What a run's producers got: records at most once, at least once, or exactly once, in order or not.

The terms are those of KAFKA-5494: *at most once*, acknowledged records appear in the log once or not at all; *at
least once*, each appears, some several times; *exactly once*, each appears exactly once. A run that both loses and
doubles gives none of them. What one run shows is not what its settings promise: "exactly-once" here means that
nothing else happened.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from checkers.anomalies.lost_write import lost_values
from checkers.columns.ids import Numbers, starts_of
from checkers.columns.log import Log
from checkers.columns.steps import Steps
from workloads.history import OK

Observed = Literal["exactly-once", "at-least-once", "at-most-once", "none", "unknown"]


class Delivery(msgspec.Struct, kw_only=True):
    """Counts of acknowledged records. ``observed`` is "unknown" where some record may be lost or merely unread.

    ``reordered`` counts acknowledged records that stand before one that their producer had sent, and had
    acknowledged, earlier.
    """

    observed: Observed = "unknown"
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0


def count(log: Log, histories: int) -> list[Delivery]:
    """Lost, duplicated and reordered records of each history; ``observed`` is decided by :func:`decide`."""
    order = log.order
    begins = starts_of(order.entry_value)
    several = order.entry_value[begins][np.diff(np.append(begins, len(order.entry_value))) > 1]
    lost = np.concatenate(lost_values(log)) if log.segments else several[:0]
    lost_by = _by_history(log, lost[log.sent_ok[lost]], histories)
    duplicated_by = _by_history(log, several[log.sent_ok[several]], histories)
    reordered_by = _reordered(log, log.send_steps, histories) + _reordered(log, log.inner_sends, histories)
    return [
        Delivery(lost=int(a), duplicated=int(b), reordered=int(c))
        for a, b, c in zip(lost_by, duplicated_by, reordered_by, strict=True)
    ]


def decide(delivery: Delivery, *, certain: bool) -> Delivery:
    """With ``observed``. ``certain`` says that every acknowledged record was read, or the log read to its end."""
    observed: Observed
    if delivery.lost:
        observed = "none" if delivery.duplicated else "at-most-once"
    elif not certain:
        observed = "unknown"
    else:
        observed = "at-least-once" if delivery.duplicated else "exactly-once"
    return msgspec.structs.replace(delivery, observed=observed)


def _by_history(log: Log, values: Numbers, histories: int) -> Numbers:
    return np.bincount(log.segment_history[log.values.segment[values]], minlength=histories)


def _reordered(log: Log, steps: Steps, histories: int) -> Numbers:
    back = (steps.delta < 0) & (log.type[steps.earlier] == OK) & (log.type[steps.later] == OK)
    return np.bincount(log.segment_history[log.segment[steps.later[back]]], minlength=histories)
