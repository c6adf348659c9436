"""The same check without Spark, for one history at a time: one that is stored, or rows that never were in a file."""

from __future__ import annotations

import pyarrow as pa

from checkers.columns.loading import Unit, assemble, load_units, part_of
from checkers.columns.replica_file import Ends
from checkers.errors import CheckError
from checkers.histories.discovery import Sources, find_histories
from checkers.histories.stores import Place
from checkers.verdicts.partial_verdict import SHOWN, judge_batch, merge, verdict
from checkers.verdicts.replicas import examine, with_replicas
from checkers.verdicts.verdict import Verdict
from workloads.history import SCHEMA, HistoryError, Origin, Rows, cluster, joined, to_table


def check_one(
    path: Place, *, name: str | None = None, ww_deps: bool | None = None, shown: int | None = SHOWN
) -> Verdict:
    """Check one stored history: a run directory, its history directory, or a file of JSON lines.

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


def check_rows(
    rows: Rows,
    *,
    name: str = "",
    complete: bool = True,
    ww_deps: bool = False,
    shown: int | None = SHOWN,
    replicas: tuple[Ends, pa.Table] | None = None,
) -> Verdict:
    """Check a history in memory, whose rows are taken out of ``rows``: the verdict is that on the same in a file.

    ``complete`` and ``ww_deps`` are as of a stored one; ``replicas`` as :func:`read_replicas` gives them.
    """
    events = rows.events
    clustered = cluster(rows.take())
    table = to_table(clustered, rows.names) if len(clustered["index"]) else SCHEMA.empty_table()
    part = part_of(table, complete=complete, events=events, joined=joined(clustered))
    parts = judge_batch(assemble([Unit(0, name, ww_deps=ww_deps)], [part]), shown=shown)
    judged = verdict(name, merge(parts, shown=shown), Origin(), shown=shown)
    if replicas is not None:
        examine(judged, *replicas, shown=shown)
    return judged
