"""How often subscribed consumers got each value: {times: how many (process, log partition, value)}.

Informational, as in the reference tool: consumer groups commit offsets late, so more than once is ordinary. Counts ok
polls of processes that had subscribed.
"""

from __future__ import annotations

import numpy as np

from checkers.columns.ids import dense_ids
from checkers.columns.log import Log
from workloads import Function
from workloads.history import FUNCTION_CODE, OK, Kind

_SUBSCRIBE = FUNCTION_CODE[Function.SUBSCRIBE]


def consume_counts(log: Log, histories: int) -> list[dict[int, int]]:
    """The distribution for each history. O(n)."""
    listed = np.isin(log.kind, (Kind.LISTED, Kind.DROPPED)) & (log.function == _SUBSCRIBE) & (log.type == OK)
    counts: list[dict[int, int]] = [{} for _ in range(histories)]
    if not listed.any():
        return counts
    rows = log.reads[(log.type[log.reads] == OK) & np.isin(log.client[log.reads], np.unique(log.client[listed]))]
    ids = dense_ids(log.client[rows], log.value_id[rows], int(log.client.max(initial=0)) + 1)
    times = np.bincount(ids.of, minlength=len(ids))
    owner = np.zeros(len(ids), dtype=np.int64)
    owner[ids.of] = log.segment_history[log.segment[rows]]
    for history in np.unique(owner).tolist():
        values, number = np.unique(times[owner == history], return_counts=True)
        counts[history] = dict(zip(values.tolist(), number.tolist(), strict=True))
    return counts
