"""Histories judged in memory, without a file."""

from __future__ import annotations

from collections.abc import Iterable

from checkers.local import check_rows
from checkers.verdicts.partial_verdict import SHOWN
from checkers.verdicts.verdict import Verdict
from workloads.history.rows import Rows
from workloads.operations import Event


def judge_events(
    events: Iterable[Event], *, name: str = "", complete: bool = True, ww_deps: bool = False, shown: int | None = SHOWN
) -> Verdict:
    """Judge events in memory. Their indexes are given anew, in the order in which they come."""
    rows = Rows()
    for event in events:
        rows.add(event)
    return check_rows(rows, name=name, complete=complete, ww_deps=ww_deps, shown=shown)
