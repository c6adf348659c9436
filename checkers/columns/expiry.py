"""The age of records: which may be gone from a log that keeps them for retention.ms only, or that says where it begins.

A broker drops whole segments whose youngest record is older than retention.ms, read or not. So a record of the last
retention.ms is due like any other, and the absence of an older one proves nothing::

    written at 2 s      4 s        20 s                   retention.ms is 10 s, and the last reader was there at 22 s
    expired             expired    due

A broker that was asked for the begin of a log tells by itself that all before it is gone, whatever removed it: its age,
its size, or an operator.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from checkers.columns.ids import Flags, Numbers
from checkers.columns.log_rows import LogRows
from workloads import Function
from workloads.history import FUNCTION_CODE, NONE, Kind

#: Brokers go by the clocks of clients and of their own, which may differ from the history's by this much.
CLOCKS_US: Final = 1_000_000
_LATE_US: Final = 2**61
_LOG_START: Final = FUNCTION_CODE[Function.LOG_START]


def expired(log: LogRows) -> Flags:
    """``bool[value]``: it may be gone for its age, or it is before the begin of its log partition. O(n) in the rows."""
    old = _older_than_retention(log)
    starts = np.flatnonzero((log.function == _LOG_START) & (log.kind == Kind.REACHED))
    return old | _before(log, starts) if len(starts) else old


def _before(log: LogRows, starts: Numbers) -> Flags:
    """``bool[value]``: no place is known of it at or behind the begin of its log partition that these rows tell."""
    start = np.zeros(log.partition_count, dtype=np.int64)
    np.maximum.at(start, log.partition[starts], log.offset[starts])
    last = np.full(len(log.values), NONE, dtype=np.int64)
    placed = np.concatenate([log.sends, log.all_reads])
    np.maximum.at(last, log.value_id[placed], log.offset[placed])
    gone: Flags = last < start[log.values.partition]
    return gone & (start[log.values.partition] > 0)


def _older_than_retention(log: LogRows) -> Flags:
    """``bool[value]``: older than retention.ms at the end of the last read of its log partition."""
    kept_us = {
        int(log.partition[drain]): times.retention_ms * 1000
        for drain, times in log.cleaner_times.items()
        if times.retention_ms is not None
    }
    if not kept_us:
        return np.zeros(len(log.values), dtype=bool)
    first_us = np.full(len(log.values), _LATE_US, dtype=np.int64)
    begun_us = np.where(log.invoke_us >= 0, log.invoke_us, log.time_us)[log.attempts]
    np.minimum.at(first_us, log.value_id[log.attempts], begun_us)
    limit_us = np.full(log.partition_count, -_LATE_US, dtype=np.int64)
    looks = np.concatenate([log.all_reads, np.array(sorted(log.cleaner_times), dtype=np.int64)])
    np.maximum.at(limit_us, log.partition[looks], log.time_us[looks])
    for partition in range(log.partition_count):
        limit_us[partition] += CLOCKS_US - kept_us.get(partition, _LATE_US)
    old: Flags = first_us < limit_us[log.values.partition]
    return old
