"""``reordered``: of two acknowledged writes of one producer, the one that was asked for later stands first in the log.

Example: a producer sends ``a`` and, before it has an answer, ``b``; ``b`` is acknowledged at 0, and ``a``, which had to
be sent again, at 1. A producer with several requests in flight and without idempotence does this.

Precisely, per log partition and producer instance, for acknowledged writes only, in the order in which they were
invoked (within one operation, in the order that it names them): a write is reordered if its *last* place stands before
the *first* place of a write that was invoked earlier. Each such write counts once, however many it overtook; the
finding names the overtaken one that stands furthest behind. So this looks across sends in flight at the same time,
each of which is a process of its own; ``nonmonotonic-send`` compares within a process.

False alarms avoided: a duplicate counts with whichever of its places excuses it. Places are those of the answer and of
all reads; nothing is claimed of a write that no ok poll read, or that is lost: what took its place may have been sent
later. Nor of one that shares an offset with another value, because that log was cut back in between; nor of a value
that was sent by more than one operation. Writes that are uncertain or failed are left out even where they were read: a
producer that gave one up owes it no order. Where the instance or the invocation is not known, as in histories of other
tools and of layout 2, nothing is claimed.

Findings: key, delta, values, ops (the earlier invoked first). O(n log n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.lost_write import lost_values
from checkers.columns.ids import Flags, Numbers, dense_ids
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads.history import OK


class Reordered(Finding, kw_only=True):
    """A write and the overtaken one that stands furthest behind, which comes first."""

    delta: int
    values: list[Any]
    ops: list[EventPlace]


def find(log: Log) -> Found:
    """All writes that stand before one that their producer was asked for earlier, the furthest first."""
    rows = log.sends[_comparable(log)]
    producer = dense_ids(log.partition[rows], log.instance[rows].astype(np.int64), log.partition_count).of
    invoked = np.lexsort((log.invoke_index[rows], producer))  # stable: sends of one operation stay as they stand
    rows, producer = rows[invoked], producer[invoked]
    furthest = _furthest_until(producer, log.order.first_index[log.value_id[rows]])
    delta = log.order.last_index[log.value_id[rows]] - log.order.first_index[log.value_id[rows[furthest]]]
    back = np.flatnonzero(delta < 0)
    later, earlier = rows[back], rows[furthest[back]]

    def describe(place: int) -> Reordered:
        one, two = int(earlier[place]), int(later[place])
        return Reordered(
            key=log.key(two),
            delta=int(delta[back[place]]),
            values=[int(log.value[one]), int(log.value[two])],
            ops=[log.op(one), log.op(two)],
        )

    return Found(partition=log.partition[later], describe=describe, row=later, rank=delta[back])


def _comparable(log: Log) -> Flags:
    """Of completed send: whether it was acknowledged, and producer, invocation and place in the log are known."""
    sends, order = log.sends, log.order
    known = (log.type[sends] == OK) & (log.instance[sends] >= 0) & (log.invoke_index[sends] >= 0)
    once = np.bincount(log.value_id[sends], minlength=len(log.values)) == 1
    shared = np.bincount(order.entry_offset, minlength=len(order.offsets)) > 1
    placed = log.read_ok & once
    placed[order.entry_value[shared[order.entry_offset]]] = False
    for lost in lost_values(log):
        placed[lost] = False
    comparable: Flags = known & placed[log.value_id[sends]]
    return comparable


def _furthest_until(group: Numbers, place: Numbers) -> Numbers:
    """Of entry (groups stand together): which entry of its group, itself or an earlier one, has the largest place."""
    above = group * (int(place.max(initial=0)) + 1) + place
    is_furthest = above == np.maximum.accumulate(above)
    furthest: Numbers = np.maximum.accumulate(np.where(is_furthest, np.arange(len(place)), 0))
    return furthest


ANOMALY = Anomaly.documented("reordered", __doc__, Reordered, find, about=About.PRODUCERS)
