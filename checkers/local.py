"""Judging histories in this process: one that is stored, or rows that never were in a file.

The Spark job distributes the same: its workers call :func:`judge_each`, its driver calls :func:`verdict_on`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np
import pyarrow as pa

from checkers.anomalies.lost_write import ANOMALY as LOST_WRITE
from checkers.anomalies.lost_write import lost_values
from checkers.anomalies.unseen import ANOMALY as UNSEEN
from checkers.anomalies.unseen import unseen_values
from checkers.columns.ids import Numbers
from checkers.columns.loading import RowBatch, Unit, assemble, load_units, part_of
from checkers.columns.replica_file import Ends
from checkers.errors import CheckError
from checkers.histories.discovery import Source, Sources, find_histories
from checkers.histories.stores import Place
from checkers.verdicts.partial_verdict import SHOWN, PartialVerdict, judge_batch, verdict
from checkers.verdicts.replicas import examine, with_replicas
from checkers.verdicts.verdict import Verdict
from workloads.history import SCHEMA, HistoryError, Origin, Rows, cluster, joined, subjects, to_table


def judge_each(
    units: Sequence[Unit],
    shown: int | None,
    proofs: Mapping[int, Numbers] | None = None,
    judged: Callable[[RowBatch], None] = lambda _: None,
) -> list[PartialVerdict]:
    """Judge units together, and call ``judged`` with their rows.

    A history that cannot be read has a ``problem`` that says why.
    """
    try:
        batch = load_units(units, proofs)
        parts = judge_batch(batch, shown=shown)
        judged(batch)
        return parts
    except Exception as error:  # one damaged history must not take the verdicts of thousands with it
        if len(units) > 1:
            return [part for unit in units for part in judge_each([unit], shown, proofs, judged)]
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
    with _loaded(path, ww_deps) as (source, batch):
        named = msgspec.structs.replace(source, name=name or source.name)
        return verdict_on(named, judge_batch(batch, shown=shown), shown)


def lost_in(path: Place, anomalies: Collection[str]) -> dict[str, list[int]]:
    """Every write of one stored history that is lost, by log partition: all that a verdict counts, listed or not.

    ``anomalies`` are the names under which it counts them: ``lost-write``, ``unseen``. A write with both is there once.

    Raises:
        CheckError: as :func:`check_one`.
    """
    with _loaded(path, None) as (_, batch):
        log = batch.log
        lost_ids = [*lost_values(log)] if LOST_WRITE.name in anomalies else []
        lost_ids += [unseen_values(log)] if UNSEEN.name in anomalies else []
        lost = np.unique(np.concatenate([np.zeros(0, np.int64), *lost_ids]))
        by_partition: dict[str, list[int]] = {}
        for partition, value in zip(log.values.partition[lost], log.values.number[lost].tolist(), strict=True):
            by_partition.setdefault(log.partition_key[partition], []).append(value)
        return by_partition


@contextmanager
def _loaded(path: Place, ww_deps: bool | None) -> Iterator[tuple[Source, RowBatch]]:
    """The one history that is stored there, and its rows."""
    histories = find_histories([path])
    if len(histories) != 1:
        raise CheckError(f"{path} holds {len(histories)} histories; name one of them")
    with Sources(histories) as sources:
        (source,) = sources.ready
        if source.file is None:
            raise CheckError(source.problem or f"{path} cannot be read")
        try:
            yield source, load_units([Unit(0, str(source.file), ww_deps=source.ww_deps(ww_deps))])
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
    examine(judged, replicas, shown=shown)
    return judged
