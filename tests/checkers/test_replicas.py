"""Replicas that differ where both say that the record is committed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from checkers.replicas import ReplicaLog, add_to, divergent_replicas
from checkers.verdict import Verdict


def replica(node: int, digests: dict[int, int], high_watermark: int) -> ReplicaLog:
    offsets = np.array(sorted(digests), dtype=np.int64)
    numbers = np.array([digests[offset] for offset in sorted(digests)], dtype=np.int64)
    return ReplicaLog(node=node, offsets=offsets, digests=numbers, high_watermark=high_watermark)


def test_a_committed_offset_with_two_records_is_found() -> None:
    logs = [replica(1, {4: 40, 5: 50}, 6), replica(2, {4: 40, 5: 51}, 6)]
    assert divergent_replicas({"t-0": logs}) == [{"key": "t-0", "offset": 5, "replicas": {1: 50, 2: 51}}]


def test_tails_above_a_high_watermark_may_differ() -> None:
    assert divergent_replicas({"t-0": [replica(1, {5: 50}, 6), replica(2, {5: 51}, 5)]}) == []


def test_a_replica_that_begins_later_or_has_holes_does_not_differ() -> None:
    assert divergent_replicas({"t-0": [replica(1, {4: 40, 5: 50, 6: 60}, 7), replica(2, {6: 60}, 7)]}) == []


def test_one_replica_has_nothing_to_differ_from() -> None:
    assert divergent_replicas({"t-0": [replica(1, {4: 40}, 5)], "t-1": []}) == []


@given(st.lists(st.tuples(st.dictionaries(st.integers(0, 8), st.integers(0, 1)), st.integers(0, 9)), max_size=4))
def test_what_is_found_is_what_comparing_every_pair_finds(logs: list[tuple[dict[int, int], int]]) -> None:
    committed = min((high for _, high in logs), default=0)
    expected = [
        offset for offset in range(committed) if len({digests[offset] for digests, _ in logs if offset in digests}) > 1
    ]
    found = divergent_replicas({"t-0": [replica(node, *log) for node, log in enumerate(logs)]})
    assert [finding["offset"] for finding in found] == expected


def test_a_verdict_with_divergent_replicas_is_not_valid() -> None:
    verdict = Verdict(history="h", valid=True)
    add_to(verdict, [], shown=None)
    assert verdict.valid is True
    add_to(verdict, [{"key": "t-0", "offset": 1, "replicas": {}}] * 3, shown=2)
    assert (verdict.valid, verdict.counts, len(verdict.anomalies["divergent-replicas"])) == (
        False,
        {"divergent-replicas": 3},
        2,
    )
