"""The same judgement without Spark, for one history at a time: shrinking, replay and tests use it."""

from __future__ import annotations

from collections.abc import Iterable

from checkers.columns.loading import Unit, load_units, part_of
from checkers.columns.loading import assemble as lay_out
from checkers.errors import CheckError
from checkers.histories.discovery import Sources, find_histories
from checkers.histories.stores import Place
from checkers.verdicts.partial_verdict import SHOWN, judge_batch, merge, verdict
from checkers.verdicts.replicas import with_replicas
from checkers.verdicts.verdict import Verdict
from workloads.history import HistoryError
from workloads.history.clustering import cluster, joined
from workloads.history.origin import Origin
from workloads.history.rows import Rows, to_table
from workloads.history.schema import SCHEMA
from workloads.operations import Event


def judge(path: Place, *, name: str | None = None, ww_deps: bool | None = None, shown: int | None = SHOWN) -> Verdict:
    """Judge one stored history: a run directory, its history directory, or a file of JSON lines.

    ``ww_deps`` says whether overwrites count as dependencies, by default as
    :meth:`checkers.histories.discovery.Source.ww_deps` has it.

    Raises:
        CheckError: there is no history there, or it cannot be read.
    """
    found = find_histories([path])
    if len(found) != 1:
        raise CheckError(f"{path} holds {len(found)} histories; name one of them")
    with Sources(found) as sources:
        (source,) = sources.ready
        if source.file is None:
            raise CheckError(source.problem or f"{path} cannot be read")
        try:
            parts = judge_batch(load_units([Unit(0, str(source.file), ww_deps=source.ww_deps(ww_deps))]), shown=shown)
            judged = verdict(name or source.name, merge(parts, shown=shown), source.origin(), shown=shown)
            return with_replicas(judged, source.file, shown=shown)
        except HistoryError as error:
            raise CheckError(str(error)) from error


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
    parts = judge_batch(lay_out([Unit(0, name, ww_deps=ww_deps)], [part]), shown=shown)
    return verdict(name, merge(parts, shown=shown), Origin(), shown=shown)
