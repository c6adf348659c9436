"""``unseen``: acknowledged values that no ok poll had read when the history ended.

Example: ``a`` and ``b`` are acknowledged, ``a`` is read, the history ends: ``b`` is unseen. Lost and very late look
alike here; that is what the final readers of a run are for, and what ``lost-write`` decides where it can.

False alarms avoided: uncertain and failed writes never count; partitions without an acknowledged write have nothing to
see; in a compacted log only the last record of a key is due, and in one with retention.ms what is younger; a history
that was cut off tells nothing of what was still to be read, so it is passed over.

Findings, one a log partition: key, unseen (how many), messages (the values, in order). The count adds up values. O(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.columns.ids import Flags, Numbers, starts_of
from checkers.columns.log import Log

#: The reference tool lists as many for a key.
MESSAGES_MAX = 32


class Unread(Finding, kw_only=True):
    """Values of a log partition that no client read."""

    unseen: int
    messages: list[Any]


class Unseen(Unread, kw_only=True):
    """Values that only a loss, or a slow reader, keeps from clients."""


def unseen_values(log: Log) -> Numbers:
    """Value ids (int64) of acknowledged values that were never read, and that nothing but a loss removes."""
    return never_read(log, ~log.removable)


def never_read(log: Log, among: Flags) -> Numbers:
    """Value ids (int64) of acknowledged values among these (bool) that were never read."""
    whole = log.complete[log.partition_history][log.values.partition]
    return np.flatnonzero(log.sent_ok & ~log.seen & whole & among)


def found_by_partition(log: Log, unseen: Numbers, kind: type[Unread]) -> Found:
    """These values, by log partition."""
    partition = log.values.partition[unseen]
    begins = starts_of(partition)
    counts = np.diff(np.append(begins, len(unseen)))

    def describe(number: int) -> Unread:
        mine = unseen[begins[number] : begins[number] + min(MESSAGES_MAX, int(counts[number]))]
        return kind(
            key=log.partition_key[int(partition[begins[number]])],
            unseen=int(counts[number]),
            messages=log.values.number[mine].tolist(),
        )

    return Found(
        partition=partition[begins], describe=describe, row=log.writer[unseen[begins]], rank=-counts, weight=counts
    )


def find(log: Log) -> Found:
    """Log partitions with acknowledged values that were never read."""
    return found_by_partition(log, unseen_values(log), Unseen)


ANOMALY = Anomaly.documented(
    "unseen", __doc__, Unseen, find, about=About.READERS, title="A write that was acknowledged was never read"
)
