"""The synthetic histories are what the benchmark says they are: clean, or with exactly what was planted."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench import committed_transactions, synthetic, transactions
from bench.committed_transactions import CommittedBlock
from bench.group_work import GroupBlock
from bench.pipeline_work import PipelineBlock
from bench.plants import PLANTS
from bench.synthetic import make_block, write_synthetic
from bench.transactions import TransactionBlock
from checkers import ANOMALIES, check_one
from workloads.history import CLUSTERED, META_JOINED


def test_a_clean_history_has_no_anomaly(tmp_path: Path) -> None:
    written = write_synthetic(tmp_path, 40_000)
    verdict = check_one(tmp_path, ww_deps=True)
    assert (verdict.valid, verdict.counts, written.expected) == (True, {}, {})
    assert verdict.exercise.acknowledged == verdict.exercise.records_read > 0


def test_a_plant_is_of_an_anomaly_and_shows_it_once() -> None:
    assert set(PLANTS) <= set(ANOMALIES)
    assert all(PLANTS[name].counts[name] == 1 for name in PLANTS)


@pytest.mark.parametrize("name", PLANTS)
def test_what_was_planted_is_found_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(synthetic, "WRITES", 32)
    written = write_synthetic(tmp_path, 2_000, planted=2, plants=(name,))
    assert written.expected == {kind: 2 * count for kind, count in PLANTS[name].counts.items()}
    assert check_one(tmp_path, ww_deps=True).counts == written.expected


def test_half_of_the_operations_are_sends() -> None:
    block = make_block(0)
    sends = block.rows["kind"] == 1
    assert abs(sends.sum() / block.operations - 0.5) < 0.02


def test_more_anomalies_than_blocks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too few for 9 planted"):
        write_synthetic(tmp_path, 20_000, planted=9)


@pytest.mark.parametrize("planted", [0, 2])
def test_transactions_are_serial_but_for_the_cycles_that_were_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: int
) -> None:
    monkeypatch.setattr(transactions, "TRANSACTIONS", 300)
    written = write_synthetic(tmp_path, 1_200, planted=planted, builder=TransactionBlock)
    assert written.expected == ({"G0": 1, "G1c": 1} if planted else {})
    assert check_one(tmp_path, ww_deps=True).counts == written.expected
    assert pq.read_schema(tmp_path / CLUSTERED).metadata[META_JOINED] == b"true"


def test_the_work_of_groups_is_clean_but_for_what_was_planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "WRITES", 48)
    written = write_synthetic(tmp_path, 7_200, planted=len(GroupBlock.plants), builder=GroupBlock)
    verdict = check_one(tmp_path, ww_deps=True)
    assert verdict.counts == written.expected == dict.fromkeys(GroupBlock.plants, 1)
    assert verdict.groups.commits_acknowledged
    assert verdict.groups.rebalanced_over_commits is not None


def test_transactions_of_producers_are_clean_but_for_what_was_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed_transactions, "COMMITTED", 100)
    written = write_synthetic(tmp_path, 1_000, planted=6, builder=CommittedBlock)
    verdict = check_one(tmp_path, ww_deps=True)
    assert verdict.counts == written.expected
    assert set(CommittedBlock.plants) <= written.expected.keys()
    assert verdict.transactions.aborted_passed > 90
    assert pq.read_schema(tmp_path / CLUSTERED).metadata[META_JOINED] == b"true"


@pytest.mark.parametrize("planted", [0, len(PipelineBlock.plants)])
def test_the_work_of_pipelines_is_clean_but_for_what_was_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: int
) -> None:
    monkeypatch.setattr(synthetic, "WRITES", 48)
    written = write_synthetic(tmp_path, 3_000, planted=planted, builder=PipelineBlock)
    verdict = check_one(tmp_path, ww_deps=True)
    assert verdict.counts == written.expected == dict.fromkeys(PipelineBlock.plants[:planted], 1)
    assert verdict.transactions.effects > 10_000
    assert verdict.transactions.offsets_aborted > 100
