"""Writes the latencies of a campaign's rows as a table: ``python -m scripts.latency_table DIR`` makes its README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from checkers import Latency, VerdictLine, quantile_us
from checkers.measures.latency import added
from harness.records.campaign_record import read_campaign_record
from harness.records.verdict_lines import read_lines
from scripts.reference.markdown import table, wrapped
from workloads import spelled

SHARES: Final = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
Rows = dict[str, list[Latency]]


def rows_of(lines: Sequence[VerdictLine]) -> Rows:
    """The latencies of each run, by the settings of its row."""
    varying = _varying(lines)
    rows: Rows = {}
    for line in lines:
        if line.run is not None:
            name = ", ".join(f"{setting}={spelled(line.run.settings[setting])}" for setting in varying)
            rows.setdefault(name, []).append(line.latency)
    return rows


def _varying(lines: Sequence[VerdictLine]) -> list[str]:
    every = [line.run.settings for line in lines if line.run is not None]
    return [name for name in every[0] if len({repr(settings[name]) for settings in every}) > 1] if every else []


def table_of(rows: Rows) -> str:
    """One row for each choice of settings, all its runs together."""
    lines = []
    for name, runs in rows.items():
        every: dict[int, int] = {}
        for run in runs:
            every = added(every, run.all)
        told = [quantile_us(every, share) for share in SHARES.values()]
        each = " / ".join(f"{(quantile_us(run.all, 0.5) or 0) / 1000:.1f}" for run in runs)
        lines.append((name, *(f"{(us or 0) / 1000:.1f} ms" for us in told), each, f"{sum(every.values()):,}"))
    return table(["settings", *SHARES, "p50 of each run", "writes"], lines)


def written(directory: Path, lines: Sequence[VerdictLine]) -> str:
    """The page of this campaign."""
    record = read_campaign_record(directory)
    day = "" if record is None else f" on {record.began[:10]}"
    head = (
        f"Latencies of acknowledged writes{day}, without a fault. The plan beside this page says how to read them. "
        "A row has a price against another if each of its runs is slower than each of the other's."
    )
    return f"# {directory.name}\n\n{wrapped(head)}\n\n{table_of(rows_of(lines))}\n"


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    page = directory / "README.md"
    page.write_text(written(directory, list(read_lines(directory).lines.values())), encoding="utf-8")
    click.echo(page)
