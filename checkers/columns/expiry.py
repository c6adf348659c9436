"""The age of records: which may be gone from a log that keeps them for retention.ms only.

A broker drops whole segments whose youngest record is older than retention.ms, read or not. So a record of the last
retention.ms is due like any other, and the absence of an older one proves nothing::

    written at 2 s      4 s        20 s                   retention.ms is 10 s, and the last reader was there at 22 s
    expired             expired    due
"""

from __future__ import annotations

from typing import Final

import numpy as np

from checkers.columns.ids import Flags
from checkers.columns.log_rows import LogRows

#: Brokers go by the clocks of clients and of their own, which may differ from the history's by this much.
CLOCKS_US: Final = 1_000_000
_LATE_US: Final = 2**61


def expired(log: LogRows) -> Flags:
    """``bool[value]``: older than retention.ms at the end of the last read of its log partition. O(n) in the rows."""
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
