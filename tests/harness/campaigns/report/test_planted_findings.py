"""Each anomaly of transactions, groups and keys, planted in a run and judged as every run: what a reader is told."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import get_args, get_type_hints
from xml.etree import ElementTree as Xml

import pytest

from bench import synthetic
from bench.synthetic import write_synthetic
from checkers import ANOMALIES, Finding, check_one
from checkers.anomalies.cycles import CYCLES
from checkers.anomalies.order import ORDER
from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.comparison import (
    FindingStatus,
    accept_commands,
    compare_results,
    finding_sentences,
    read_results,
)
from harness.campaigns.report import write
from harness.campaigns.report.accounts import Account, accounts_of
from harness.campaigns.report.finding_chart import RENDERERS
from harness.campaigns.report.loading import read_campaign
from harness.records.files import HISTORY
from harness.records.verdict_lines import read_matrix, write_matrix
from tests.harness.campaigns.report.conftest import empty_campaign
from workloads.settings import Settings

#: By anomaly, some of the words that its account has of its own.
WORDS = {
    "aborted-read": "A poll (operation ",
    "early-read": "0.02 ms before its producer asked to commit it",
    "failed-send-committed": "failed (MessageTimedOut), and the commit of its transaction was answered",
    "zombie": "(id 4000, epoch 3) asked to commit 0.01 ms after its successor had been told that it was in charge",
    "hanging-transaction": "The last stable offset of t000000-0 was 32 and its high watermark 33, 20.00 s after",
    "group-skip": "no member of group planted processed it, and the group has committed 34",
    "group-went-back": "it was at 31",
    "returned-group": "Asked later (operation ",
    "two-owners": "the member before it began a commit of offset 32, and the group took it",
    "unfenced-instance": "Another instance of the static member m of group planted had started",
    "stale-generation": "Another one was assigned it in the same generation",
    "missing-effect": "Group planted had committed offset 32 of t000000-0. No transaction with what was made of",
    "doubled-effect": "All were made of the record at offset 0 of t000000-0",
    "aborted-commit": "named offset 31. Of all that its members handed over, only a transaction that was aborted",
    "unstable-offset": "named offset 31. Then a transaction with offset 32 was open",
    "lost-tombstone": "did not see it, though the log keeps it for 86400.",
    "cleaned-early": "did not see it, though the log keeps it for 3600.",
    "returned-key": "Key 7 of t000000-0 was deleted by the tombstone at offset 33",
    "divergent-reads": "was read by final readers (process 120), and not by others (process 130), which read on to an",
    "divergent-state": "Of key 7 of t000000-0, final readers had different last records",
}
#: By anomaly, the words beside the two marks of its chart.
MARKS = {
    "aborted-read": ("read here",),
    "early-read": ("read here",),
    "zombie": ("a successor was in charge", "asked to commit"),
    "hanging-transaction": ("last stable offset", "high watermark"),
    "group-skip": ("the group committed past it", "read, and processed by no member"),
    "group-went-back": ("the commit that counts", "the group was here"),
    "returned-group": ("the group was deleted", "the group was here"),
    "two-owners": ("the commit that counts", "taken from the member before"),
    "unfenced-instance": ("another instance began", "taken from the instance before"),
    "missing-effect": ("the group committed past it", "read, and without an effect"),
    "doubled-effect": ("made of offset 0", "made of offset 0"),
    "aborted-commit": ("aborted", "the group was here"),
    "unstable-offset": ("committed later", "the group was here"),
    "lost-tombstone": ("acknowledged", "reader 120"),
    "cleaned-early": ("acknowledged", "reader 120"),
    "returned-key": ("acknowledged", "reader 120"),
    "divergent-reads": ("reader 120", "reader 130"),
    "divergent-state": ("acknowledged", "reader 120", "reader 130"),
}
#: Their sentences say all: a send that failed has no offset, and neither has an assignment.
WITHOUT_CHART = {"failed-send-committed", "stale-generation"}
#: About single writes, their order, and clients: told by the account of a write, or by no more than the finding.
OF_WRITES = {
    *("lost-write", "unseen", "duplicate", "reordered", "inconsistent-offsets", "phantom-read", "corrupt-read", "G1a"),
    *("precommitted-read", "broken-invariant", "out-of-sync", "wedged-client"),
    *(anomaly.name for anomaly in (*ORDER, *CYCLES)),
}
#: They are about programs under test, and planted where those are.
OF_APPLICATIONS = {"unexplained-output", "stalled-application", "crash-loop", "reordered-effect", "wrong-fold"}
#: Their findings are not about what clients saw: they are planted where replicas are.
OF_REPLICAS = {"divergent-replicas", "divergent-tables"}
#: No promise is broken, so a cell has no account of it.
WARNINGS = {"dead-cleaner", "expired-write", "unfounded-out-of-order"}
#: Its write is lost, and the account is of the loss.
OF_A_LOSS = {"torn-transaction"}
SAFE = Settings(min_insync_replicas=2, isolation_level="read_committed")


def campaign_of(parent: Path, cells: Sequence[str], *, planted: bool) -> Path:
    """A campaign with a cell for each anomaly, whose history has it where it is ``planted``."""
    directory, make = empty_campaign(parent)
    for name in cells:
        history = parent / "histories" / name
        write_synthetic(history, 300, planted=int(planted), plants=(name,))
        verdict = check_one(history)
        make(SAFE, world="kafka", cell=name, valid=verdict.valid, counts=verdict.counts, anomalies=verdict.anomalies)
        history.rename(directory / "runs" / "kafka" / name / "7" / HISTORY)
    write_matrix(directory)
    choose_witnesses(directory)
    return directory


@pytest.fixture(scope="module", autouse=True)
def _few_writes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(synthetic, "WRITES", 32)
        yield


@pytest.fixture(scope="module")
def planted_once(tmp_path_factory: pytest.TempPathFactory, _few_writes: None) -> Path:
    """The campaign with all of them; no test changes it."""
    return campaign_of(tmp_path_factory.mktemp("planted") / "planted", list(WORDS), planted=True)


@pytest.fixture
def planted(tmp_path: Path, planted_once: Path) -> Path:
    """A copy of the test's own."""
    return shutil.copytree(planted_once, tmp_path / "planted")


def test_each_has_an_account_with_its_title_its_words_its_rule_and_a_command(planted: Path) -> None:
    told: dict[str, Account] = {account.anomaly: account for account in accounts_of(read_campaign(planted))}
    assert set(told) == set(WORDS)
    for name, words in WORDS.items():
        assert words in " ".join(told[name].sentences), name
        assert (told[name].title, told[name].why) == (ANOMALIES[name].title, ANOMALIES[name].rule)
        assert told[name].command.endswith("--family kill --world kafka --seed 7")
        assert "lost" not in " ".join(told[name].sentences)
        assert "acks=0" not in " ".join(told[name].sentences), "a transaction's write without an offset has failed"


def test_no_anomaly_of_transactions_groups_and_keys_lacks_its_account_or_its_chart() -> None:
    told = set(ANOMALIES) - OF_WRITES - WARNINGS
    assert told == set(WORDS) | OF_REPLICAS | OF_A_LOSS | OF_APPLICATIONS
    for name in told:
        anomaly = ANOMALIES[name]
        assert anomaly.title, name
        assert anomaly.rule, name
        assert anomaly.finding.words is not Finding.words, name
        views = get_type_hints(anomaly.finding.view)["return"]
        drawn = (get_args(views) or (views,))[0] in RENDERERS
        assert drawn == (name not in WITHOUT_CHART | OF_A_LOSS | OF_APPLICATIONS), name
    assert set(WORDS) == set(MARKS) | WITHOUT_CHART


def test_each_is_drawn_with_what_contradicts_it(planted: Path) -> None:
    charts = {account.anomaly: account for account in accounts_of(read_campaign(planted))}
    page = unescape(write(planted).read_text(encoding="utf-8"))
    for name, words in MARKS.items():
        drawing = Xml.fromstring(charts[name].chart)  # noqa: S314 - our own
        told = [mark.text for mark in drawing.iter("text")]
        assert all(told.count(word) == words.count(word) for word in words), (name, told)
        assert charts[name].chart_words in page


def test_a_lost_write_whose_transaction_is_torn_is_told_as_both(tmp_path: Path) -> None:
    (account,) = accounts_of(read_campaign(campaign_of(tmp_path, ["torn-transaction"], planted=True)))
    assert account.anomaly == "lost-write"
    assert "Another write of the transaction that is operation " in account.sentences[0]


def test_the_page_and_the_file_for_ci_tell_each(planted: Path) -> None:
    page = unescape(write(planted).read_text(encoding="utf-8"))
    suites = Xml.parse(planted / "junit.xml").getroot()  # noqa: S314 - our own
    failures = {case.get("name"): case.find("failure") for case in suites.iter("testcase")}
    for name, words in WORDS.items():
        assert words in page, name
        failure = failures[name]
        assert failure is not None
        assert failure.get("message") == f"1 {name} in 1 run"
        assert words in str(failure.text)
        assert "Run it again: ackproof run" in str(failure.text)
    lines = [words for cell in read_matrix(planted).cells for words in accept_commands(str(planted), cell)]
    assert len(lines) == len(WORDS)
    markdown = (planted / "matrix.md").read_text(encoding="utf-8")
    told = lines[:10]  # as many accounts as the table's file has
    assert all(line in page for line in lines)
    assert sum(f"`{line}`" in markdown for line in lines) == len(told)


def test_a_campaign_after_a_clean_one_says_which_are_new(planted: Path, tmp_path: Path) -> None:
    clean = campaign_of(tmp_path / "clean", list(WORDS), planted=False)
    compared = compare_results(read_results(clean), read_results(planted))
    assert {defect.anomaly for defect in compared.new_defects} == set(WORDS)
    assert {defect.status for defect in compared.new_defects} == {FindingStatus.NEW}
    for defect in compared.new_defects:
        sentences = "\n".join(finding_sentences([defect], str(planted)))
        assert f": {defect.anomaly}; 1 finding, in 1 of 1 run" in sentences
