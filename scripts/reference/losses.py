"""The page of losses on Apache Kafka: each figure is made of the verdicts that are kept beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from checkers import Cell, Matrix, Outcome, build_matrix, percent, quantile_us, seconds
from harness.campaigns.report import bound_words, exercised_faults, style_of
from harness.campaigns.report.svg import milliseconds
from harness.records.campaign_record import read_campaign_record
from harness.records.verdict_lines import read_lines
from scripts.reference.markdown import page, table, wrapped
from workloads import SettingValue, spelled

KEPT: Final = Path(__file__).parents[2] / "results" / "reference"
FILE: Final = KEPT / "losses.md"
#: Campaigns whose rows the page has, first those in which clients have their defaults.
CAMPAIGNS: Final = (
    "kafka-usual-advice-java",
    "kafka-usual-advice-kafka-python",
    "kafka-usual-advice-librdkafka",
    "kafka-weaker",
)
#: An older campaign of more settings.
OLDER: Final = "kafka-default"
#: The settings of a row, and what they are called there.
SETTINGS: Final = {
    "acks": "acks",
    "enable.idempotence": "idempotence",
    "min.insync.replicas": "min ISR",
    "unclean.leader.election.enable": "unclean",
}
FAMILIES: Final = ("kill", "partition", "pause", "power")
#: Libraries under the names by which people know them.
LIBRARIES: Final = {"java": "Java", "confluent-kafka": "librdkafka"}
WORLDS: Final = {"kafka": "Apache Kafka", "processes": "The reference broker on processes"}
INTRODUCTION: Final = """
▼ this share of the acknowledged writes is lost, as permitted. ✓ none lost, as promised, in this number of
faults that met writes; at most this share of such faults loses some (95 %). ○ none lost, though loss is permitted. ✖ a
promise is broken: findings. – not exercised: too few faults met writes.

[What was run, and on which machine](README.md).
"""
EVIDENCE: Final = """
Faults are those that met writes. At stake: the least and the median number of writes at stake in one of them. Latencies
are of acknowledged writes: p50 and p99 of those that began while no fault was in effect, which also wait for nodes that
start again, and p99 of the others. Without a write: the longest time in which a log partition took none.
"""


class Row(NamedTuple):
    """The cells of one choice of settings and one client library, by family."""

    client: str
    settings: dict[str, SettingValue]
    cells: dict[str, Cell]

    @property
    def words(self) -> tuple[str, ...]:
        """The client and the settings, a word each."""
        return (self.client, *(spelled(self.settings[name]) for name in SETTINGS))


@cache
def kept_matrix(campaign: str) -> Matrix:
    """The matrix of a campaign, made of its verdicts again."""
    return build_matrix(read_lines(KEPT / campaign).lines.values())


def rows_of(campaign: str, world: str = "kafka") -> list[Row]:
    """The rows of a campaign in one world."""
    record = read_campaign_record(KEPT / campaign)
    client = record.worlds[world].client if record else msgspec.UNSET
    rows: dict[tuple[str, ...], Row] = {}
    for cell in kept_matrix(campaign).cells:
        if cell.world == world:
            row = Row(LIBRARIES.get(str(client), str(client)), {name: cell.settings[name] for name in SETTINGS}, {})
            rows.setdefault(row.words, row).cells[cell.family] = cell
    return list(rows.values())


def losses() -> str:
    """Write the page."""
    newest = [row for campaign in CAMPAIGNS for row in rows_of(campaign)]
    runs = sorted({cell.runs for row in newest for cell in row.cells.values()})
    of_each = f"Runs a cell: {', '.join(map(str, runs))}."
    blocks = [wrapped(INTRODUCTION.strip())]
    blocks += ["## Clients with their defaults", of_each, _losses_table(newest)]
    blocks += ["## The evidence behind it", wrapped(EVIDENCE.strip()), _evidence_table(newest)]
    blocks.append("## Sixteen settings, one run a cell")
    for world, name in WORLDS.items():
        blocks += [f"{name}, with kafka-python:", _losses_table(rows_of(OLDER, world))]
    title = "What was lost on Apache Kafka 4.3.1"
    return page(title, "the verdicts in `results/reference/`", *blocks)


def _losses_table(rows: Sequence[Row]) -> str:
    words = ([*row.words, *map(shown, map(row.cells.get, FAMILIES))] for row in rows)
    return table(["client", *SETTINGS.values(), *FAMILIES], words)


def shown(cell: Cell | None) -> str:
    """A cell in a few words."""
    if cell is None:
        return ""
    words = ""
    if cell.outcome is Outcome.PERMITTED_LOSS:
        words = percent(cell.loss.rate)
    elif cell.outcome is Outcome.BROKEN_PROMISE:
        words = ", ".join(f"{count:,} {anomaly}" for anomaly, count in list(cell.broken.items())[:1])
        words += ", and others" * (len(cell.broken) > 1)
    elif cell.outcome is Outcome.HELD:
        words = f"{exercised_faults(cell)}"
        words += "" if cell.loss_permitted else f", {bound_words(cell).partition(' after ')[0]}"
    return f"{style_of(cell).sign} {words}".rstrip()


def _evidence_table(rows: Sequence[Row]) -> str:
    head = ["client", *SETTINGS.values(), "family", "faults", "at stake", "acknowledged", "lost"]
    return table([*head, "p50", "p99", "p99 in faults", "without a write"], _evidence_rows(rows))


def _evidence_rows(rows: Sequence[Row]) -> Iterator[Sequence[str]]:
    for row in rows:
        for family, cell in row.cells.items():
            at_stake = cell.exercised[family].writes_a_fault
            yield (
                *row.words,
                family,
                f"{exercised_faults(cell):,}",
                "?" if at_stake is None else f"{at_stake[0]:,}, {at_stake[1]:,}",
                f"{cell.acknowledged:,}",
                f"{cell.lost:,}",
                _ms(quantile_us(cell.latency.calm, 0.5)),
                _ms(quantile_us(cell.latency.calm, 0.99)),
                _ms(quantile_us(cell.latency.in_fault, 0.99)),
                seconds(cell.longest_gap_us),
            )


def _ms(time_us: int | None) -> str:
    return "?" if time_us is None else milliseconds(time_us / 1000)
