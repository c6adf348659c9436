"""The table of latencies of a campaign's rows, and when there is none."""

from __future__ import annotations

from pathlib import Path

import msgspec

from checkers import Latency
from scripts import latency_table
from scripts.latency_table import main, table_of, unlike
from scripts.reference.losses import KEPT

KEPT_CAMPAIGN = KEPT / "kafka-prices-java"


def run_of(*buckets: int) -> Latency:
    return Latency(calm=dict.fromkeys(buckets, 10))


def test_a_row_has_the_quantiles_of_all_its_runs_and_the_median_of_each() -> None:
    *_, row = table_of({"acks=all": [run_of(80), run_of(88)]}).splitlines()
    assert row == "| acks=all | 1.1 ms | 2.2 ms | 2.2 ms | 1.1 / 2.2 | 20 |"


def test_runs_of_a_row_that_differ_too_much_are_named() -> None:
    assert list(unlike({"a": [run_of(80), run_of(81)]})) == []
    assert list(unlike({"a": [run_of(80), run_of(88)]})) == ["a: p50 of its runs is 1.1 ms, 2.2 ms"]
    assert list(unlike({"a": [Latency()]})) == ["a: p50 of its runs is not known"]


def test_the_table_of_a_busy_machine_is_not_written(tmp_path: Path, monkeypatch, capsys) -> None:
    for file in KEPT_CAMPAIGN.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert main(tmp_path) == 1
    assert "differ too much" in capsys.readouterr().err
    assert not (tmp_path / "README.md").exists()
    monkeypatch.setattr(latency_table, "TWICE_MAX", 1_000.0)
    assert main(tmp_path) == 0
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| acks")]
    assert len(rows) == 5
    assert msgspec.json.decode((tmp_path / "campaign.json").read_bytes())["began"][:10] in page
