"""Histories judged in memory, without a file."""

from __future__ import annotations

from collections.abc import Iterable

from checkers.columns.loading import Unit, assemble, part_of
from checkers.verdicts.partial_verdict import SHOWN, judge_batch, merge, verdict
from checkers.verdicts.verdict import Verdict
from workloads.history.clustering import cluster, joined
from workloads.history.origin import Origin
from workloads.history.rows import Rows, to_table
from workloads.history.schema import SCHEMA
from workloads.operations import Event


def judge_events(
    events: Iterable[Event], *, name: str = "", complete: bool = True, ww_deps: bool = False, shown: int | None = SHOWN
) -> Verdict:
    """Judge events in memory. Their indexes are given anew, in the order in which they come."""
    rows = Rows()
    for event in events:
        rows.add(event)
    return judge_rows(rows, name=name, complete=complete, ww_deps=ww_deps, shown=shown)


def judge_rows(
    rows: Rows, *, name: str = "", complete: bool = True, ww_deps: bool = False, shown: int | None = SHOWN
) -> Verdict:
    """Judge rows that were never written to a file; they are taken out of ``rows``."""
    events = rows.events
    clustered = cluster(rows.take())
    table = to_table(clustered, rows.names) if len(clustered["index"]) else SCHEMA.empty_table()
    part = part_of(table, complete=complete, events=events, joined=joined(clustered))
    parts = judge_batch(assemble([Unit(0, name, ww_deps=ww_deps)], [part]), shown=shown)
    return verdict(name, merge(parts, shown=shown), Origin(), shown=shown)
