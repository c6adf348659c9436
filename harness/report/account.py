"""What a run's files say about one finding: the timeline of its write, and its narrative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from checkers import Verdict, read_receipts
from harness.report.names import fault_name, moment
from harness.report.narrative import differing, narrate, places, remains
from harness.report.timeline import Subject, Timeline, read_timeline
from nemesis.receipts import Receipt
from workloads.history import HistoryError


class Account(NamedTuple):
    """The sentences of a finding, and the timeline that they come from; None where there is no single write."""

    timeline: Timeline | None
    sentences: list[str]


def account_of(run: Path, anomaly: str, finding: Mapping[str, Any], line: Verdict, *, idempotent: bool) -> Account:
    """The account of ``finding`` of the run in ``run``, whose verdict is ``line``.

    ``idempotent`` says that its producers were.
    """
    receipts = read_receipts(line.faults)
    try:
        timeline, trouble = _timeline(run, anomaly, finding, line, receipts)
    except HistoryError as error:
        timeline, trouble = None, [f"The history of this run cannot be read any more: {error}."]
    effective = [receipt for receipt in receipts if receipt.took_effect]
    faults = [f"Fault: {fault_name(receipt)} at {moment(receipt.begun_us)}." for receipt in effective]
    told = narrate(timeline) if timeline else [*trouble, *faults]
    copies = places(finding, idempotent=idempotent)
    return Account(timeline, [*differing(finding), *told, *copies, *remains(finding)])


def _timeline(
    run: Path, anomaly: str, finding: Mapping[str, Any], line: Verdict, receipts: Sequence[Receipt]
) -> tuple[Timeline | None, list[str]]:
    """The timeline of the write that the finding names first, or why there is none."""
    partition, values = finding.get("key"), _values(finding)
    if not isinstance(partition, str) or not values:
        return None, [] if "replicas" in finding else ["The finding names no single write."]
    others = [*line.anomalies.get("lost-write", []), *line.anomalies.get("unseen", [])]
    lost = frozenset(value for other in others if other.get("key") == partition for value in _values(other))
    subject = Subject(anomaly, partition, values, finding.get("offsets") or ())
    timeline = read_timeline(run, subject, receipts, lost)
    return timeline, [] if timeline else ["The history holds no acknowledgement of this value."]


def _values(finding: Mapping[str, Any]) -> list[int]:
    """The written values that a finding of any kind names."""
    several = [finding.get("value"), *(finding.get("values") or ()), *(finding.get("messages") or ())]
    return [value for value in several if isinstance(value, int)]
