"""Moments by log partition, sorted once, so that many questions "how many before then" cost a search each."""

from __future__ import annotations

import numpy as np

from checkers.columns.ids import Numbers


class Times:
    """Moments of segments: ``segment`` and ``time_us`` are int64 of one length, ``segments`` bounds the first.

    O(n log n) to make; segments times the span of the moments must fit into 63 bits, which days of 10^6 segments do.
    """

    def __init__(self, segment: Numbers, time_us: Numbers, segments: int) -> None:
        self._low = int(time_us.min()) if len(time_us) else 0
        self._span = (int(time_us.max()) if len(time_us) else 0) - self._low + 2
        self._keys = segment * self._span + (time_us - self._low)
        self._keys.sort()
        self._starts = np.searchsorted(self._keys, np.arange(segments) * self._span)

    def before(self, segment: Numbers, time_us: Numbers) -> Numbers:
        """Of each pair: how many moments of ``segment`` lie before ``time_us`` (int64, any value)."""
        place = np.clip(time_us, self._low, self._low + self._span - 1) - self._low
        found: Numbers = np.searchsorted(self._keys, segment * self._span + place) - self._starts[segment]
        return found

    def between(self, segment: Numbers, begin_us: Numbers, end_us: Numbers) -> Numbers:
        """Of each triple: how many moments of ``segment`` lie in [``begin_us``, ``end_us``)."""
        return self.before(segment, end_us) - self.before(segment, begin_us)


class Spans:
    """Spans of time of segments, from a begin to an end that is not earlier (int64, microseconds)."""

    def __init__(self, segment: Numbers, begin_us: Numbers, end_us: Numbers, segments: int) -> None:
        self._begun, self._ended = Times(segment, begin_us, segments), Times(segment, end_us, segments)

    def meeting(self, segment: Numbers, begin_us: Numbers, end_us: Numbers) -> Numbers:
        """Of each triple: how many spans of ``segment`` begin before ``end_us`` and end at ``begin_us`` or later."""
        return self._begun.before(segment, end_us) - self._ended.before(segment, begin_us)

    def around(self, segment: Numbers, time_us: Numbers) -> Numbers:
        """Of each pair: how many spans of ``segment`` begin before ``time_us`` and end then or later."""
        return self.meeting(segment, time_us, time_us)
