"""The last record of each key as each final reader saw it: the state that a compacted log gives to its readers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.columns.ids import Numbers
from checkers.columns.log_rows import LogRows
from checkers.columns.record_keys import RecordKeys
from workloads.history import NONE


class Heads(NamedTuple):
    """The last record of a key in what one final reader read; int64, by (key, reader).

    ``key`` is a number of :attr:`checkers.columns.record_keys.RecordKeys.of`, ``client`` one of
    :attr:`checkers.columns.log_rows.LogRows.client`, ``row`` the row that read the record.
    """

    key: Numbers
    client: Numbers
    row: Numbers


def heads_of(log: LogRows, keys: RecordKeys, reads: Numbers) -> Heads:
    """The last record of each key in what each final reader read, without those that were aborted."""
    rows = reads[(keys.of[log.value_id[reads]] != NONE) & ~log.aborted[log.value_id[reads]]]
    key, client = keys.of[log.value_id[rows]], log.client[rows]
    order = np.lexsort((log.offset[rows], client, key))
    rows, key, client = rows[order], key[order], client[order]
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = (np.diff(key) != 0) | (np.diff(client) != 0)
    return Heads(key[last], client[last], rows[last])
