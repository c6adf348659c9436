"""The same check without Spark, for one history at a time: replay and tests use it."""

from __future__ import annotations

from checkers.columns.loading import Unit, load_units
from checkers.errors import CheckError
from checkers.histories.discovery import Sources, find_histories
from checkers.histories.stores import Place
from checkers.verdicts.partial_verdict import SHOWN, judge_batch, merge, verdict
from checkers.verdicts.replicas import with_replicas
from checkers.verdicts.verdict import Verdict
from workloads.history import HistoryError


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
