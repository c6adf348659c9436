"""Judging histories in this process: one that is stored, or rows that never were in a file.

The Spark job distributes the same: its workers call :func:`judge_each`, its driver calls :func:`verdict_on`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from checkers.columns.ids import Numbers
from checkers.columns.loading import Unit, assemble, load_units, part_of
from checkers.columns.replica_file import Ends
from checkers.errors import CheckError
from checkers.histories.discovery import Source, Sources, find_histories
from checkers.histories.stores import Place
from checkers.verdicts.partial_verdict import SHOWN, PartialVerdict, judge_batch, verdict
from checkers.verdicts.replicas import examine, with_replicas
from checkers.verdicts.verdict import Verdict
from workloads.history import SCHEMA, HistoryError, Origin, Rows, cluster, joined, subjects, to_table


def judge_each(
    units: Sequence[Unit], shown: int | None, proofs: Mapping[int, Numbers] | None = None
) -> list[PartialVerdict]:
    """Judge units together. A history that cannot be read has a ``problem`` that says why."""
    try:
        return judge_batch(load_units(units, proofs), shown=shown)
    except Exception as error:  # one damaged history must not take the verdicts of thousands with it
        if len(units) > 1:
            return [part for unit in units for part in judge_each([unit], shown, proofs)]
        expected = isinstance(error, (HistoryError, OSError))
        why = f"{units[0].path} cannot be judged ({type(error).__name__}: {error}); please report it"
        problem = str(error) if expected else why
        return [PartialVerdict(history=units[0].history, complete=False, own=False, events=0, problem=problem)]


def verdict_on(source: Source, parts: Iterable[PartialVerdict], shown: int | None) -> Verdict:
    """The verdict on a history from all its parts, with the findings of its replicas' own logs.

    Raises:
        HistoryError: the file with the origin of the history cannot be read.
    """
    return with_replicas(verdict(source.name, parts, source.origin(), shown=shown), source.file, shown=shown)


def check_one(
    path: Place, *, name: str | None = None, ww_deps: bool | None = None, shown: int | None = SHOWN
) -> Verdict:
    """Check one stored history: a run directory, its history directory, or a file of JSON lines.

    ``ww_deps`` says whether overwrites count as dependencies, by default as
    :meth:`checkers.histories.discovery.Source.ww_deps` has it.

    Raises:
        CheckError: there is no history there, or it cannot be read.
    """
    histories = find_histories([path])
    if len(histories) != 1:
        raise CheckError(f"{path} holds {len(histories)} histories; name one of them")
    with Sources(histories) as sources:
        (source,) = sources.ready
        if source.file is None:
            raise CheckError(source.problem or f"{path} cannot be read")
        named = msgspec.structs.replace(source, name=name or source.name)
        try:
            unit = Unit(0, str(source.file), ww_deps=source.ww_deps(ww_deps))
            return verdict_on(named, judge_batch(load_units([unit]), shown=shown), shown)
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
    """Check a history in memory, whose rows are taken out of ``rows``; stored in a file it has the same verdict.

    ``complete`` and ``ww_deps`` are as of a stored one; ``replicas`` as :func:`read_replicas` gives them.
    """
    events = rows.events
    clustered = cluster(rows.take())
    table = to_table(clustered, rows.names) if len(clustered["index"]) else SCHEMA.empty_table()
    part = part_of(table, complete=complete, events=events, joined=joined(clustered), subjects=subjects(clustered))
    parts = judge_batch(assemble([Unit(0, name, ww_deps=ww_deps)], [part]), shown=shown)
    judged = verdict(name, parts, Origin(), shown=shown)
    if replicas is not None:
        examine(judged, *replicas, shown=shown)
    return judged
