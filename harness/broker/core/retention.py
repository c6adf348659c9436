"""Retention of one replica of a topic: whole segments go that are older than retention.ms, the oldest first (rule 47).

Each replica decides for itself, at times of its own, and only below its high watermark::

    start       start afterwards          high watermark    end
    | too old    | young, or has young     | not committed   |

A segment is as old as its youngest record. The newest segment goes too, when all of it is committed and too old: the
log is empty then, and starts where it ends. Who reads below the start is told OFFSET_OUT_OF_RANGE, so a replica that
was away for too long drops what it has and begins at its leader's start (rule 18), and a consumer passes over what it
has not read (auto.offset.reset).

Simplified: as in compacted topics segments end by time alone, and the leader stamps the time of the append. A replica
that is told of a later start drops what is below at once, and not with its next look.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from harness.broker.core.log import Cleanable
from harness.broker.core.types import NONE, TopicConfig


class ExpiredPart(msgspec.Struct, frozen=True):
    """The new start of a log: its ``offset``, and the number of ``records`` that are gone."""

    offset: int
    records: int


class Retention:
    """Lets logs of one topic start later. It keeps nothing between two looks: all of that is on the log."""

    _age_us: int

    def __init__(self, config: TopicConfig) -> None:
        self._age_us = config.retention_ms * 1000

    def expire(self, log: Cleanable, high_watermark: int, now_us: int) -> ExpiredPart | None:
        """Drop the oldest segments of ``log`` as far as they are too old; None where it starts as before."""
        offset = log.start_offset
        for first, end in pairwise((*log.segments, log.end_offset)):
            if end > self._bound(log, high_watermark) or not self._is_over(log, first, end, now_us):
                break
            offset = end
        if offset == log.start_offset:
            return None
        records = sum(len(batch.records) for batch in log.batches if batch.base_offset < offset)
        log.drop_below(offset)
        return ExpiredPart(offset, records)

    def _bound(self, log: Cleanable, high_watermark: int) -> int:  # noqa: ARG002
        """No log starts beyond this: what is not committed stays."""
        return high_watermark

    def _is_over(self, log: Cleanable, first: int, end: int, now_us: int) -> bool:
        """All records from ``first`` to ``end`` are older than retention.ms."""
        stamps = [batch.stamped_us for batch in log.batches if first <= batch.base_offset < end]
        return now_us - max(stamps, default=NONE) > self._age_us


def retention_of(make: type[Retention], config: TopicConfig) -> Retention | None:
    """The retention of a topic's logs, None where records stay at any age."""
    return make(config) if config.expires else None
