"""The chart of a finding is the same from the rows that it needs as from a whole history, of which they are few."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from markupsafe import Markup

from checkers import Finding, check_one
from harness.bench import synthetic
from harness.bench.committed_transactions import write_committed_transactions
from harness.bench.group_work import write_group_work
from harness.bench.pipeline_work import write_pipeline_work
from harness.bench.synthetic import SyntheticHistory, write_synthetic
from harness.records.files import HISTORY
from harness.report import group_chart as group_charts
from harness.report import needed_rows
from harness.report import transaction_chart as transaction_charts
from harness.report.copies_chart import OfCopies, copies_chart
from harness.report.finding_chart import finding_chart
from harness.report.group_chart import OfGroups, group_chart
from harness.report.needed_rows import needed_of
from harness.report.transaction_chart import OfTransactions, transaction_chart
from tests.harness.report.test_planted_findings import MARKS
from workloads import Event
from workloads.history import read_events

#: Commits, or transactions, that are drawn here.
LAST = 6


def drawn(run: Path, events: Iterable[Event], finding: Finding) -> Markup:
    if isinstance(finding, OfGroups):
        return group_chart(events, finding, [])
    if isinstance(finding, OfTransactions):
        return transaction_chart(events, finding, [])
    assert isinstance(finding, OfCopies)
    return copies_chart(run, events, finding)


def findings_in(run: Path) -> list[Finding]:
    return [finding for findings in check_one(run / HISTORY).anomalies.values() for finding in findings]


@pytest.mark.parametrize("name", MARKS)
def test_a_chart_of_the_rows_that_it_needs_is_the_chart_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(synthetic, "WRITES", 32)
    write_synthetic(tmp_path / HISTORY, 300, planted=1, plants=(name,))
    findings = findings_in(tmp_path)
    assert findings
    for finding in findings:
        whole = drawn(tmp_path, list(read_events(tmp_path / HISTORY)), finding)
        assert whole
        assert finding_chart(tmp_path, finding, []).drawing == whole


@pytest.mark.parametrize(
    "write",
    [write_group_work, write_pipeline_work, write_committed_transactions],
    ids=["groups", "pipelines", "transactions"],
)
def test_few_events_of_a_history_are_needed_however_many_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., SyntheticHistory]
) -> None:
    for module, name in ((group_charts, "COMMITS_MAX"), (transaction_charts, "TRANSACTIONS_MAX")):
        monkeypatch.setattr(module, name, LAST)
        monkeypatch.setattr(needed_rows, name, LAST)
    monkeypatch.setattr(synthetic, "WRITES", 32)
    write(tmp_path / HISTORY, 1_000, planted=1)
    events = list(read_events(tmp_path / HISTORY))
    (finding,) = findings_in(tmp_path)
    assert isinstance(finding, OfGroups | OfTransactions)
    needed = list(read_events(tmp_path / HISTORY, needed_of(finding)))
    # Of each transaction its begin, its end, and polls that tell where its records are.
    assert 0 < len(needed) <= 2 * LAST * 4 < len(events) / 10
    assert drawn(tmp_path, needed, finding) == drawn(tmp_path, events, finding) != ""
