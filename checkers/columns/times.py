"""Moments by log partition, sorted once, so that many questions "how many before then" cost a search each."""

from __future__ import annotations

import numpy as np

from checkers.columns.ids import Numbers


class Times:
    """Moments of log partitions: ``partition`` and ``time_us`` are int64 of one length, ``count`` bounds the first.

    O(n log n) to make; log partitions times the span of moments must fit into 63 bits, as days of 10^6 of them do.
    """

    def __init__(self, partition: Numbers, time_us: Numbers, count: int) -> None:
        self._low = int(time_us.min()) if len(time_us) else 0
        self._span = (int(time_us.max()) if len(time_us) else 0) - self._low + 2
        self._keys = partition * self._span + (time_us - self._low)
        self._keys.sort()
        self._starts = np.searchsorted(self._keys, np.arange(count) * self._span)

    def before(self, partition: Numbers, time_us: Numbers) -> Numbers:
        """Count for each pair the moments of ``partition`` before ``time_us`` (int64, any value)."""
        within = np.clip(time_us, self._low, self._low + self._span - 1) - self._low
        earlier: Numbers = np.searchsorted(self._keys, partition * self._span + within) - self._starts[partition]
        return earlier

    def between(self, partition: Numbers, begin_us: Numbers, end_us: Numbers) -> Numbers:
        """Count for each triple the moments of ``partition`` in [``begin_us``, ``end_us``)."""
        return self.before(partition, end_us) - self.before(partition, begin_us)


class Spans:
    """Spans of time of log partitions, from a begin to an end that is not earlier (int64, microseconds)."""

    def __init__(self, partition: Numbers, begin_us: Numbers, end_us: Numbers, count: int) -> None:
        self._begun, self._ended = Times(partition, begin_us, count), Times(partition, end_us, count)

    def meeting(self, partition: Numbers, begin_us: Numbers, end_us: Numbers) -> Numbers:
        """Count for each triple the spans of ``partition`` from before ``end_us`` to ``begin_us`` or later."""
        return self._begun.before(partition, end_us) - self._ended.before(partition, begin_us)

    def around(self, partition: Numbers, time_us: Numbers) -> Numbers:
        """Count for each pair the spans of ``partition`` that begin before ``time_us`` and end then or later."""
        return self.meeting(partition, time_us, time_us)
