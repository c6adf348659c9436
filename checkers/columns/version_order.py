"""The order of values in a log partition, as far as clients saw it.

Each offset has the set of values that were seen there: by sends that must have happened and whose offset is known, and
by polls of any outcome, because a log must not hand out unsafe data even to a transaction that aborts. The
*index* of an offset is its place among the offsets at which anything was seen; holes (transaction markers,
compaction) are lawful. A value seen at several offsets has a first and a last index; where one index is asked for, it
is the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.columns.ids import Ids, Numbers, dense_ids, distinct_pairs, starts_of
from checkers.columns.log_rows import LogRows
from workloads.history import NONE


@dataclass(frozen=True, slots=True)
class VersionOrder:
    """The order of values in every log partition; all arrays are int64.

    Attributes:
        offsets: the different (partition, offset) at which values were seen.
        index: ``int64[offset id]``: its place within its log partition, from 0.
        entry_offset, entry_value: offset id and value id, one entry for each value at each offset, by (value, offset).
        first_index, last_index: ``int64[value]``: its first and last index, -1 where no offset is known.
        sure_index: ``int64[value]``: the last index that it has alone: where two values share an offset, nothing is
            claimed about the order of either.
        at_offset: ``int64[offset id]``: one value id (the smallest).
        first_offset_id: ``int64[log partition]``: its first offset id.
    """

    offsets: Ids
    index: Numbers
    entry_offset: Numbers
    entry_value: Numbers
    first_index: Numbers
    last_index: Numbers
    sure_index: Numbers
    at_offset: Numbers
    first_offset_id: Numbers

    def between(self, partition: int, low: int, high: int, limit: int = 100) -> Numbers:
        """One value id (int64) for each index strictly between two of a log partition, at most ``limit`` of them."""
        base = int(self.first_offset_id[partition])
        return self.at_offset[base + low + 1 : base + min(high, low + 1 + limit)]


def version_order(log: LogRows, reads: Numbers) -> VersionOrder:
    """The version order of every log partition, as far as these reads show it (int64: rows)."""
    placed = log.sends[(log.offset[log.sends] >= 0) & log.committed[log.sends]]
    rows = np.concatenate([placed, reads])
    offsets = dense_ids(log.partition[rows], log.offset[rows], log.partition_count)
    first_offset_id = np.searchsorted(offsets.partition, np.arange(log.partition_count))
    index = np.arange(len(offsets), dtype=np.int64) - first_offset_id[offsets.partition]
    entry_value, entry_offset = distinct_pairs(log.value_id[rows], offsets.of, len(offsets))
    first_index = np.full(len(log.values), NONE, dtype=np.int64)
    last_index, sure_index = first_index.copy(), first_index.copy()
    at_offset = np.full(len(offsets), NONE, dtype=np.int64)
    if len(entry_value):
        begins = starts_of(entry_value)
        ends = np.append(begins[1:], len(entry_value)) - 1
        first_index[entry_value[begins]] = index[entry_offset[begins]]
        last_index[entry_value[begins]] = index[entry_offset[ends]]
        at_offset[entry_offset[::-1]] = entry_value[::-1]
        alone = np.bincount(entry_offset, minlength=len(offsets))[entry_offset] == 1
        sure_index[entry_value[alone]] = index[entry_offset[alone]]
    return VersionOrder(
        offsets=offsets,
        index=index,
        entry_offset=entry_offset,
        entry_value=entry_value,
        first_index=first_index,
        last_index=last_index,
        sure_index=sure_index,
        at_offset=at_offset,
        first_offset_id=first_offset_id,
    )
