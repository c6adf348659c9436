"""The synthetic histories are what the benchmark says they are: clean, or with exactly what was planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import check_one
from harness.bench.synthetic import PLANTS, make_block, write_synthetic


def test_a_clean_history_has_no_anomaly(tmp_path: Path) -> None:
    written = write_synthetic(tmp_path, 40_000)
    verdict = check_one(tmp_path, ww_deps=True)
    assert (verdict.valid, verdict.counts, written.expected) == (True, {}, {})
    assert verdict.exercise.acknowledged == verdict.exercise.records_read > 0


def test_what_was_planted_is_found_and_nothing_else(tmp_path: Path) -> None:
    written = write_synthetic(tmp_path, 100_000, planted=len(PLANTS))
    assert check_one(tmp_path, ww_deps=True).counts == written.expected
    assert set(written.expected) >= set(PLANTS)


def test_half_of_the_operations_are_sends() -> None:
    block = make_block(0)
    sends = block.rows["kind"] == 1
    assert abs(sends.sum() / block.operations - 0.5) < 0.02


def test_more_anomalies_than_blocks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too few for 9 planted"):
        write_synthetic(tmp_path, 20_000, planted=9)
