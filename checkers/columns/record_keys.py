"""The keys of records in compacted log partitions: which records the cleaner may remove.

A cleaner keeps the last record of each key ("the head") and may remove every earlier one; it also removes a tombstone,
some time after it has removed what the tombstone deletes (Kafka's design, "Log Compaction"; KIP-534). Three records of
key 7::

    offset 3  value 40                superseded by offset 8
    offset 8  value 41                superseded by offset 9
    offset 9  value 42  tombstone     the head; it may go too, and then no record of key 7 is left

So the absence of 40, 41 and 42 proves nothing. Where 40 or 41 is the last record of key 7, a deleted key came back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from checkers.columns.ids import Flags, Numbers, dense_ids
from checkers.columns.log_rows import LogRows
from workloads.history import FAIL, NONE

_BEHIND_ALL: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """The record keys of the values of a log, by value id.

    Attributes:
        of: a dense number for (log partition, record key), -1 for a value without a key (int64).
        number: by that number, the record key itself (int64).
        tombstone: the value deletes its key (bool).
        superseded: a later record of its key was acknowledged or read, or its own place is not known and its key has
            others, or a tombstone of its key may be later: its end or its place is not known (bool).
        possible: it has a key, and is in the log or may be: what failed or was aborted is not (bool).
        removable: its absence proves nothing, because a cleaner may have removed it, as all that was aborted (bool).
    """

    of: Numbers
    number: Numbers
    tombstone: Flags
    superseded: Flags
    possible: Flags
    removable: Flags


def record_keys(log: LogRows) -> RecordKeys | None:
    """Look up the key of each value that was sent; None where no history has keys. O(n log n) in the sends."""
    if log.record_key is None or log.tombstone is None:
        return None
    values = len(log.values)
    key_of, offset = np.full(values, NONE, dtype=np.int64), log.last_offset
    tombstone, superseded = np.zeros(values, dtype=bool), np.zeros(values, dtype=bool)
    keyed = log.attempts[log.record_key[log.attempts] != NONE]
    ids = dense_ids(log.partition[keyed], log.record_key[keyed].astype(np.int64), log.partition_count)
    key_of[log.value_id[keyed]] = ids.of
    tombstone[log.value_id[keyed]] = log.tombstone[keyed].astype(bool)
    exists = (key_of != NONE) & ~log.aborted & (log.seen | log.marked(log.sends[log.committed[log.sends]]))
    possible = exists | ((key_of != NONE) & ~log.aborted & ~log.marked(log.sends[log.type[log.sends] == FAIL]))
    counts = exists | (possible & tombstone)  # It and what it deletes may be gone before anybody reads them.
    head = np.full(len(ids), NONE, dtype=np.int64)
    np.maximum.at(head, key_of[counts], np.where(tombstone & (offset == NONE), _BEHIND_ALL, offset)[counts])
    others = np.bincount(key_of[counts], minlength=len(ids))
    keyed_values = np.flatnonzero(key_of != NONE)
    mine, key = offset[keyed_values], key_of[keyed_values]
    superseded[keyed_values] = np.where(mine == NONE, others[key] > counts[keyed_values], mine < head[key])
    removable = superseded | tombstone | ((key_of != NONE) & log.aborted)
    return RecordKeys(key_of, ids.number, tombstone, superseded, possible, removable)
