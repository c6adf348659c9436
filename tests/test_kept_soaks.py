"""Soaks that were harmed for a while, as `results/reference/` keeps them: each went on, and counted every run once."""

from __future__ import annotations

import lzma
import re
from pathlib import Path
from typing import Final

import pytest

from harness.records.verdict_lines import read_matrix
from scripts.expect import every_run_of_a_soak_counts_once
from scripts.harmed_soaks import JUDGED, KEPT, MOMENTS

KAFKA: Final = KEPT.parent / "soak-kafka"
ROW: Final = re.compile(r"\| (\d+\.\d) \| (.*) \| (.*) \| (\d+) \| (\d+) \| (.*) \|")


def rows_of(harm: str) -> list[tuple[float, int, int, str]]:
    """Seconds, exit code at the end, runs, and what is wrong, of each soak in a kept table."""
    rows = ROW.findall((KEPT / f"{harm}.md").read_text(encoding="utf-8"))
    return [(float(at_s), int(code), int(runs), wrong) for at_s, _, _, code, runs, wrong in rows]


def test_a_soak_on_kafka_counted_each_run_once_over_ten_kills(tmp_path: Path) -> None:
    for name in ("ledger.jsonl", "verdicts.jsonl"):
        (tmp_path / name).write_bytes(lzma.decompress((KAFKA / f"{name}.xz").read_bytes()))
    (tmp_path / "matrix.json").write_bytes((KAFKA / "matrix.json").read_bytes())
    assert list(every_run_of_a_soak_counts_once(tmp_path, 11)) == []
    assert sum(cell.runs for cell in read_matrix(KAFKA).cells) == 52
    assert not any(cell.broken for cell in read_matrix(KAFKA).cells)


def test_soaks_were_killed_at_every_moment_and_each_went_on() -> None:
    assert tuple(at_s for at_s, _, _, _ in rows_of("killed"))[: len(MOMENTS)] == MOMENTS


@pytest.mark.parametrize("harm", ["killed", "filled"])
def test_each_harmed_soak_ended_with_a_verdict_on_its_runs(harm: str) -> None:
    rows = rows_of(harm)
    assert len(rows) >= 10
    assert [row for row in rows if row[1] not in JUDGED or not row[2] or row[3] != "nothing"] == []
