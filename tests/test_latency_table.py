"""The table of latencies of a campaign's rows."""

from __future__ import annotations

import msgspec

from checkers import Latency, quantile_us
from harness.records.verdict_lines import read_lines
from scripts.latency_table import rows_of, table_of, written
from scripts.reference.losses import KEPT

KEPT_CAMPAIGN = KEPT / "kafka-prices-java"


def run_of(*buckets: int) -> Latency:
    return Latency(calm=dict.fromkeys(buckets, 10))


def test_a_row_has_the_quantiles_of_all_its_runs_and_the_median_of_each() -> None:
    *_, row = table_of({"acks=all": [run_of(80), run_of(88)]}).splitlines()
    assert row == "| acks=all | 1.1 ms | 2.2 ms | 2.2 ms | 1.1 / 2.2 | 20 |"


def test_the_kept_table_is_of_the_kept_runs_and_no_row_of_it_has_a_price_against_another() -> None:
    kept = KEPT / "kafka-idempotence-prices"
    lines = list(read_lines(kept).lines.values())
    assert (kept / "README.md").read_text(encoding="utf-8") == written(kept, lines)
    rows = [[quantile_us(run.all, 0.5) or 0 for run in runs] for runs in rows_of(lines).values()]
    assert ([*map(len, rows)], [min(mine) > max(other) for mine in rows for other in rows]) == ([5] * 6, [False] * 36)


def test_the_page_has_the_day_and_a_row_for_each_choice_of_settings() -> None:
    lines = list(read_lines(KEPT_CAMPAIGN).lines.values())
    page = written(KEPT_CAMPAIGN, lines)
    assert len([line for line in page.splitlines() if line.startswith("| acks")]) == 5
    assert msgspec.json.decode((KEPT_CAMPAIGN / "campaign.json").read_bytes())["began"][:10] in page
