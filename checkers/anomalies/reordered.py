"""``reordered``: two acknowledged writes of one producer are in the log in another order than they were asked for.

Example: a producer sends ``a`` and, before it has an answer, ``b``; ``b`` is acknowledged at 0, and ``a``, which had to
be sent again, at 1. A producer with several requests in flight and without idempotence does this.

Precisely, per log partition and producer instance, for acknowledged writes only, in the order in which they were
invoked (within one operation, in the order that it names them): a write is reordered if its *last* place is before the
*first* place of a write that was invoked earlier. Each such write counts once, however many it overtook; the finding
names the overtaken one that is furthest behind. So this looks across sends in flight at the same time;
each of them is a process of its own, and ``nonmonotonic-send`` compares within a process.

False alarms avoided: a duplicate counts with the place that excuses it. Places are those of the answer and of all
reads. Left out are

* writes that no ok poll read, and lost ones: the value that took the place may have been sent later;
* writes that share an offset with another value: that log was cut back in between;
* values that more than one operation sent;
* uncertain and failed writes, even where they were read: a producer that gave one up owes it no order;
* writes whose instance or invocation is not known, as in histories of other tools and of layout 2.

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
    """A write and the overtaken one that is furthest behind, which comes first."""

    delta: int
    values: list[Any]
    ops: list[EventPlace]


def find(log: Log) -> Found:
    """All writes that are in the log before one that their producer was asked for earlier, the furthest first."""
    rows = log.sends[_comparable(log)]
    producer = dense_ids(log.partition[rows], log.instance[rows].astype(np.int64), log.partition_count).of
    invoked = np.lexsort((log.invoke_index[rows], producer))  # stable: sends of one operation keep their order
    rows, producer = rows[invoked], producer[invoked]
    furthest = _furthest_until(producer, log.order.first_index[log.value_id[rows]])
    delta = log.order.last_index[log.value_id[rows]] - log.order.first_index[log.value_id[rows[furthest]]]
    back = np.flatnonzero(delta < 0)
    later, earlier = rows[back], rows[furthest[back]]

    def describe(number: int) -> Reordered:
        first, second = int(earlier[number]), int(later[number])
        return Reordered(
            key=log.key(second),
            delta=int(delta[back[number]]),
            values=[int(log.value[first]), int(log.value[second])],
            ops=[log.op(first), log.op(second)],
        )

    return Found(partition=log.partition[later], describe=describe, row=later, rank=delta[back])


def _comparable(log: Log) -> Flags:
    """``bool[completed send]``: it was acknowledged, and its producer, invocation and place in the log are known."""
    sends, order = log.sends, log.order
    attributed = (log.type[sends] == OK) & (log.instance[sends] >= 0) & (log.invoke_index[sends] >= 0)
    once = np.bincount(log.value_id[sends], minlength=len(log.values)) == 1
    shared = np.bincount(order.entry_offset, minlength=len(order.offsets)) > 1
    placed = log.seen & once
    placed[order.entry_value[shared[order.entry_offset]]] = False
    for lost in lost_values(log):
        placed[lost] = False
    comparable: Flags = attributed & placed[log.value_id[sends]]
    return comparable


def _furthest_until(group: Numbers, index: Numbers) -> Numbers:
    """``int64[entry]``: the entry with the largest index up to it in its group; entries of one group are neighbours."""
    above = group * (int(index.max(initial=0)) + 1) + index
    is_furthest = above == np.maximum.accumulate(above)
    furthest: Numbers = np.maximum.accumulate(np.where(is_furthest, np.arange(len(index)), 0))
    return furthest


ANOMALY = Anomaly.documented(
    "reordered",
    __doc__,
    Reordered,
    find,
    about=About.PRODUCERS,
    title="A write is in the log before one that its producer sent earlier",
    rule="With enable.idempotence=true, or with one request in flight, a producer's writes are in the "
    "order in which they were sent.",
)
