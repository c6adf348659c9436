"""``dead-cleaner``: a compacted log has far more old records of its keys than its settings let it.

Example: min.cleanable.dirty.ratio is 0.01 and segment.ms a second. Key 7 was written ten times, and other keys for some
seconds after that. Ten seconds later a final reader still reads all ten records of key 7, and nothing new was written.

The ratio bounds the share of a log that duplicates may waste (Kafka's documentation of topic settings): a cleaner takes
a log up once the part that it has not cleaned is a larger share. Each record there is at most one old record, and makes
at most one old record of the cleaned part. So of all old records twice the ratio is the most, and three times it is
allowed for, as the ratio is of bytes.

What counts is behind: records of segments that are closed. One is closed once a record was sent segment.ms after its
own was acknowledged, and that one was acknowledged; min.compaction.lag.ms and five seconds later a reader begins.

False alarms avoided: records of the newest segment; records whose later one the reader did not read, as that of a key
that returned; records whose place is not known; topics whose settings are not known; ratios of a third and more, which
allow everything. It is a warning, and no promise is broken: no cleaner is bound to a time (KIP-354), and one that is
short of memory or processors cleans late.

Not found: a cleaner that stops where few keys are written again.

Findings, one a reader: key, old (records), records (all that it read there), ratio, reader, leader (where leaders were
moved for the reader). O(n log n) in the records that final readers read, once for each of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Allowed, Anomaly, Finding, Found
from checkers.columns.expiry import CLOCKS_US
from checkers.columns.ids import Numbers, rows_of, smallest_of, stable_order
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.columns.record_keys import RecordKeys
from workloads import CleanerTimes
from workloads.history import NONE, OK

#: Two rounds of a cleaner on a busy machine. Brokers of ours look for work each half second.
ROUNDS_US: Final = 5_000_000
#: Old records are at most twice the ratio; bytes are no records.
TIMES: Final = 3


class DeadCleaner(Finding, kw_only=True):
    """A log that its cleaner has left alone for too long, as a final reader read it."""

    old: int
    records: int
    ratio: float
    reader: EventPlace
    leader: int | None = None

    @override
    def words(self) -> str:
        led = "" if self.leader is None else f" while broker {self.leader} led"
        return (
            f"Of {self.records} records in closed segments of {self.key} that a final reader read{led} (operation "
            f"{self.reader.number} of the history), {self.old} had a later record of their key. With "
            f"min.cleanable.dirty.ratio={self.ratio} the cleaner was due."
        )


def find(log: Log) -> Found:
    """Final readers that read too many old records."""
    keys = log.keys
    if keys is None or not log.cleaner_times:
        return Found.nothing()
    began_us = smallest_of(log.client, np.where(log.invoke_us >= 0, log.invoke_us, log.time_us))
    sends = log.sends[(log.type[log.sends] == OK) & (log.offset[log.sends] >= 0) & (log.invoke_us[log.sends] >= 0)]
    reads = log.final_reads[stable_order(log.client[log.final_reads])]
    partition, client = log.partition[sends], log.client[reads]
    counted = {}
    for drain in log.drains.tolist():
        times = log.cleaner_times.get(drain)
        if times is not None and times.dirty_ratio is not None:
            mine = sends[rows_of(int(log.partition[drain]), partition)]
            end = _closed(log, mine, times, int(began_us[log.client[drain]]))
            counted[drain] = _old(log, keys, reads[rows_of(int(log.client[drain]), client)], end)
    ratios = {drain: log.cleaner_times[drain].dirty_ratio or 0.0 for drain in counted}
    rows = np.array([row for row, (old, records) in counted.items() if old > TIMES * ratios[row] * records], np.int64)

    def describe(number: int) -> DeadCleaner:
        drain = int(rows[number])
        old, records = counted[drain]
        leader = None if log.node[drain] == NONE else int(log.node[drain])
        return DeadCleaner(
            key=log.key(drain), old=old, records=records, ratio=ratios[drain], reader=log.op(drain), leader=leader
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=log.index[rows])


def _old(log: Log, keys: RecordKeys, reads: Numbers, end: int) -> tuple[int, int]:
    """The records that a final reader read below the end of closed segments: those before a later one, and all."""
    reads = reads[log.offset[reads] < end]
    keyed = reads[keys.of[log.value_id[reads]] != NONE]
    _, number = np.unique(keys.of[log.value_id[keyed]], return_inverse=True)
    newest = np.full(len(keyed), NONE, dtype=np.int64)
    np.maximum.at(newest, number, log.offset[keyed])
    return int((log.offset[keyed] < newest[number]).sum()), len(reads)


def _closed(log: Log, sends: Numbers, times: CleanerTimes, began_us: int) -> int:
    """The end of what was in closed segments early enough for a cleaner before a reader began; 0 for nothing."""
    ready_us = began_us - times.record_ms * 1000 - ROUNDS_US
    closing = log.invoke_us[sends[log.time_us[sends] <= ready_us]]
    latest_us = int(closing.max(initial=0)) - (times.segment_ms or 0) * 1000 - CLOCKS_US
    return int(log.offset[sends[log.time_us[sends] <= latest_us]].max(initial=NONE)) + 1


ANOMALY = Anomaly.documented(
    "dead-cleaner",
    __doc__,
    DeadCleaner,
    find,
    Allowed.ALWAYS,
    title="A compacted log was not cleaned when it was due",
    rule="min.cleanable.dirty.ratio bounds the share of a log that old records of its keys may waste.",
)
