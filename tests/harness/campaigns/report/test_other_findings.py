"""A witness that is not a loss tells its own story: a record that stands more than once, one that was overtaken."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import ANOMALIES, OF_TRANSACTIONS_AND_KEYS, REPLICAS_FILE, REPLICAS_META, REPLICAS_SCHEMA, Ends, Verdict
from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.report import accounts, write
from harness.campaigns.report.loading import read_campaign
from harness.records.verdict_lines import write_matrix
from tests.checkers.findings import a_finding
from tests.harness.campaigns.report.conftest import PARTITION, MakeRun
from tests.nemesis.receipt_factory import a_receipt
from workloads.settings import Settings
from workloads.values import join

Campaign = tuple[Path, MakeRun]
SAFE = Settings(min_insync_replicas=2, enable_idempotence=True, isolation_level="read_committed")
TWICE, OTHER = join(2, 10), join(2, 45)
KEY = 7
DUPLICATE = {"key": PARTITION, "value": TWICE, "count": 2, "offsets": [10, 45]}
REORDERED = {
    "key": PARTITION,
    "values": [join(2, 40), join(1, 52)],
    "delta": -2,
    "ops": [{"op_pos": op} for op in (80, 84)],
}


#: By broker, the records of its disk: offset, leader epoch, value.
Disks = Mapping[int, Sequence[tuple[int, int, int]]]
BOTH: Disks = {node: [(10, 3, TWICE), (45, 4, TWICE)] for node in (0, 1)}


def story_of(
    campaign: Campaign, anomaly: str, finding: Mapping[str, Any], disks: Disks = BOTH
) -> tuple[accounts.Account, str, Path]:
    directory, make = campaign
    verdict = make(SAFE, history=True, cluster=True, valid=False, anomalies={anomaly: [finding]}, counts={anomaly: 1})
    run = directory / verdict.history
    rest = (OF_TRANSACTIONS_AND_KEYS | {"record_key": KEY}).values()
    held = [(PARTITION, node, *record, *rest) for node, records in disks.items() for record in records]
    columns = dict(zip(REPLICAS_SCHEMA.names, zip(*held, strict=True), strict=True))
    ends = msgspec.json.encode(Ends(held={PARTITION: list(disks)}))
    table = pa.table(columns, schema=REPLICAS_SCHEMA).replace_schema_metadata({REPLICAS_META: ends})
    pq.write_table(table, run / REPLICAS_FILE)
    write_matrix(directory)
    choose_witnesses(directory)
    page = write(directory)
    (story,) = accounts.accounts_of(read_campaign(directory))
    return story, unescape(page.read_text()), run


def marks(story: accounts.Account) -> dict[str, list[int]]:
    """Offsets by the words that the chart has beside them."""
    named: dict[str, list[int]] = {}
    for offset, word in re.findall(r"offset (\d+), broker \S+</title><path [^>]*/><text [^>]*>([^<]*)<", story.chart):
        named.setdefault(word, []).append(int(offset))
    return named


def test_a_doubled_record_is_told_by_its_places_their_epochs_and_when(campaign: Campaign) -> None:
    story, page, _ = story_of(campaign, "duplicate", DUPLICATE)
    reported = story.sentences
    assert story.title == "A record is in the log more than once"
    assert reported[0].startswith(
        "Write 10 of process 2 to ackproof-0 at offset 10 was sent at 1.050 s and acknowledged"
    )
    assert "At 1.053 s or near it, the write was put at offset 10, appended under leader epoch 3." in reported
    assert "At 7.003 s or near it, the write was put at offset 45, appended under leader epoch 4." in reported
    assert "At 5.900 s broker 1 began to lead in epoch 4." in reported
    assert [sentence for sentence in reported if sentence.startswith("Fault: kill")]
    assert "Write 10 of process 2 was read at 2 offsets: 10, 45." in reported
    assert [sentence for sentence in reported if "the same producer id and epoch" in sentence]
    assert marks(story) == {"acknowledged here": [10], "and here": [45]}
    assert "lost" not in " ".join([story.title, *reported, story.chart])
    assert "crosses were lost" not in page


def test_a_write_that_was_overtaken_is_told_with_the_one_that_stands_before_it(campaign: Campaign) -> None:
    story, page, _ = story_of(campaign, "reordered", REORDERED)
    reported = story.sentences
    assert story.title == "A write is in the log before one that its producer sent earlier"
    assert reported[0].startswith("Write 40 of process 2 to ackproof-0 at offset 40 was sent at 4.050 s")
    ends = "was sent at 6.300 s, later, and acknowledged at 6.303 s: it is at offset 38, before offset 40."
    assert f"Write 52 of process 1 of the same producer {ends}" in reported
    assert marks(story) == {"sent earlier": [40], "sent later": [38]}
    assert "lost" not in " ".join([story.title, *reported, story.chart])
    assert "crosses were lost" not in page


def test_a_doubled_record_that_nobody_acknowledged_is_told_by_its_places(campaign: Campaign) -> None:
    story, _, _ = story_of(campaign, "duplicate", DUPLICATE | {"value": join(7, 1)})
    assert not story.chart
    assert "Write 1 of process 7 was read at 2 offsets: 10, 45." in story.sentences


def test_a_loss_keeps_its_cross_and_its_words(campaign: Campaign) -> None:
    directory, make = campaign
    make(SAFE, lost=1, history=True, cluster=True)
    write_matrix(directory)
    choose_witnesses(directory)
    page = unescape(write(directory).read_text())
    assert "crosses were lost" in page
    assert "A write that was acknowledged is gone" in page


@pytest.mark.parametrize(
    ("anomaly", "finding", "words"),
    [
        (
            "missing-effect",
            {"value": TWICE, "offset": 10, "committed": 46, "group": "g"},
            f"Group g had committed offset 46 of {PARTITION}. No transaction",
        ),
        (
            "doubled-effect",
            {"source": "in-0", "offset": 10, "values": [TWICE, join(2, 11)], "writers": []},
            "All were made of the record at offset 10 of in-0",
        ),
        ("aborted-commit", {"offset": 46, "group": "g"}, "only a transaction that was aborted had it"),
        ("unstable-offset", {"offset": 4, "pending": 7, "group": "g"}, "a transaction with offset 7 was open"),
    ],
)
def test_a_finding_about_a_pipeline_says_what_group_and_transactions_disagree_about(
    campaign: Campaign, anomaly: str, finding: dict[str, Any], words: str
) -> None:
    story, page, _ = story_of(campaign, anomaly, {"key": PARTITION, **finding})
    assert words in " ".join(story.sentences)
    assert story.title in page
    assert story.title == ANOMALIES[anomaly].title
    assert story.why == ANOMALIES[anomaly].rule


@pytest.mark.parametrize(
    ("anomaly", "finding", "words"),
    [
        (
            "divergent-replicas",
            {"offset": 45, "replicas": {0: TWICE, 1: OTHER}},
            f"At offset 45 of {PARTITION}, when the run had ended, broker 0 holds write 10 of process 2, broker 1",
        ),
        (
            "divergent-tables",
            {"record-key": KEY, "replicas": {0: TWICE, 1: OTHER}},
            "broker 0 it is write 10 of process 2, on broker 1 it is write 45",
        ),
    ],
)
def test_copies_that_differ_are_told_and_drawn_with_what_each_disk_holds(
    campaign: Campaign, anomaly: str, finding: dict[str, Any], words: str
) -> None:
    disks = {0: [(44, 3, TWICE), (45, 4, TWICE)], 1: [(44, 3, TWICE), (45, 4, OTHER)], 2: []}
    story, page, run = story_of(campaign, anomaly, {"key": PARTITION, **finding}, disks)
    assert words in " ".join(story.sentences)
    assert (story.title, story.why) == (ANOMALIES[anomaly].title, ANOMALIES[anomaly].rule)
    held = re.findall(r'fill="(\S+)"><title>(broker \d, offset \d+: [^<]*)<', story.chart)
    colours = {words: colour for colour, words in held}
    same, odd = "write 10 of process 2", "write 45 of process 2"
    assert list(colours) == [f"broker {copy}" for copy in (
        f"0, offset 44: {same}", f"0, offset 45: {same}", f"1, offset 44: {same}", f"1, offset 45: {odd}")]  # fmt: skip
    *usual, other = colours.values()
    assert len(set(usual)) == 1
    assert other != usual[0]
    rows = re.findall(r'text-anchor="end">([^<]*)<', story.chart)
    told = ["acknowledged", "reader 5"] if "record-key" in finding else []
    assert rows == [*told, "broker 0", "broker 1", "broker 2"]
    assert story.chart.count(">none<") == len(rows) - 2, "in the history nothing has this key"
    assert story.chart_words in page
    (run / REPLICAS_FILE).unlink()
    (without,) = accounts.accounts_of(read_campaign(campaign[0]))
    assert "offset 45" not in without.chart
    assert words in " ".join(without.sentences)


def test_what_is_found_comes_before_the_faults_of_its_run_and_only_the_first_of_these_are_named(tmp_path: Path) -> None:
    faults = [a_receipt(sequence=number, group=number) for number in range(66)]
    doubled = a_finding("duplicate", **DUPLICATE)
    line = Verdict(history="h", valid=False, faults=faults)
    sentences = accounts.narration_of(tmp_path, "duplicate", doubled, line, idempotent=False).sentences
    named = [number for number, sentence in enumerate(sentences) if sentence.startswith("Fault: ")]
    assert len(named) == 6
    places = next(number for number, sentence in enumerate(sentences) if "was read at 2 offsets" in sentence)
    assert places < named[0]
    assert sentences[-1] == "Not told here: 60 later faults of the run."


def test_a_write_that_is_on_disk_is_not_called_gone(campaign: Campaign) -> None:
    directory, make = campaign
    lost = {"key": PARTITION, "value": TWICE, "index": 10, "writer": {"op_pos": 1}, "fate": "in the log"}
    lost["copies"] = [{"node": 1, "offset": 10}]
    make(SAFE, history=True, cluster=True, valid=False, anomalies={"lost-write": [lost]}, counts={"lost-write": 1})
    write_matrix(directory)
    choose_witnesses(directory)
    page = unescape(write(directory).read_text())
    assert "It is still in the log, on broker 1 at offset 10" in page
    assert "A write that was acknowledged is in the log, and final readers missed it" in page
    assert "is gone" not in page.split('id="words"')[0]
