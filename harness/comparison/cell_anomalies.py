"""What became of findings cell by cell: of each anomaly that a cell showed and no promise permits, over several nights.

A finding is one anomaly in one story of faults, so one defect that is met in forty stories is forty findings, and
which of the rare ones show in a night is chance. Whether the cell shows the anomaly at all is much less so: this
decides when a night is worse (:mod:`harness.comparison.changes`), and this is what people are told first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from harness.comparison.findings import (
    Chance,
    Example,
    Finding,
    FindingStatus,
    Results,
    Traced,
    breaks,
    chance_of_silence,
    smallest,
    why_unproved,
)
from harness.comparison.settings import differing
from workloads import spelled

#: A cell and an anomaly.
Name = tuple[str, str]
FindingsByName = dict[Name, list[Finding]]


class CellAnomaly(msgspec.Struct, frozen=True, kw_only=True):
    """An anomaly that no promise permits in one cell, over several nights.

    Attributes:
        cell: its key (:func:`harness.comparison.findings.key_of`).
        anomaly: its name in the checkers' registry, or "stalled".
        status: of the anomaly in this cell, not of single findings; in JSON its name is ``fate``. Nights with other
            settings in the cell do not count. Never ``not seen``. It is not new where every finding of it is known, if
            only from another cell.
        findings: those of it by identity, each with its own status.
        runs: how many runs of the cell show the most frequent finding, in the night that showed the anomaly last; so
            at least so many of ``judged`` show the anomaly.
        example: the run to look at.
        looked: of one that is gone: how many runs were judged since, which show nothing of it.
        missed_by_chance: of one that is gone: how likely that is if it is as frequent as before. Its ``high`` end is
            an upper bound where several findings are of this anomaly, of which the most frequent is counted.
        why: of one that was not looked for: why not.
    """

    cell: str
    anomaly: str
    status: FindingStatus = msgspec.field(name="fate")
    findings: dict[str, FindingStatus]
    runs: int
    judged: int
    example: Example
    looked: int = 0
    missed_by_chance: Chance = Chance(0.0, 0.0)
    why: str = ""


def cell_anomalies_of(earlier: Sequence[Results], latest: Results, traced: Sequence[Traced]) -> list[CellAnomaly]:
    """Every anomaly of every cell, those of ``latest`` first; ``traced`` is what became of its findings.

    Nights of which only a matrix is left say nothing of findings, and are passed over.
    """
    if latest.findings is None:
        return []
    here = _shown(latest)
    nights = [(night, _shown(night)) for night in earlier if night.findings is not None]
    statuses = {one.finding.identity: one.status for one in traced}
    there = [_there(name, found, statuses, nights, latest) for name, found in here.items()]
    last: dict[Name, tuple[Results, list[Finding]]] = {}
    for night, shown in nights:
        last |= {name: (night, found) for name, found in shown.items() if name not in here}
    return [*_with_unseen(there, traced), *(_silent(name, *last[name], statuses, latest) for name in last)]


def _shown(night: Results) -> FindingsByName:
    """The findings that nothing permits, by cell and anomaly."""
    found: FindingsByName = {}
    for finding in (night.findings or {}).values():
        for key in () if finding.permitted else finding.runs:
            if breaks(night.cells[key], finding.anomaly):
                found.setdefault((key, finding.anomaly), []).append(finding)
    return found


def _there(
    name: Name,
    found: Sequence[Finding],
    statuses: Mapping[str, FindingStatus],
    nights: Sequence[tuple[Results, FindingsByName]],
    latest: Results,
) -> CellAnomaly:
    """One that ``latest`` shows."""
    cell = latest.cells[name[0]]
    own = {one.identity: statuses[one.identity] for one in found}
    had = [name in shown and not differing(night.cells[name[0]], cell).settings for night, shown in nights]
    if any(had):
        status = FindingStatus.KNOWN if had[-1] else FindingStatus.BACK
    else:
        status = next(
            status for status in (FindingStatus.NEW, FindingStatus.KNOWN, FindingStatus.BACK) if status in own.values()
        )
    return _kind(name, found, cell.runs_judged, status, own)


def _with_unseen(there: Iterable[CellAnomaly], traced: Sequence[Traced]) -> Iterator[CellAnomaly]:
    """The same, each with those findings of it that an earlier night showed in its cell and the latest did not."""
    unseen: dict[Name, dict[str, FindingStatus]] = {}
    for one in traced:
        if one.status is FindingStatus.NOT_SEEN and not one.finding.permitted:
            for key in one.finding.runs:
                unseen.setdefault((key, one.finding.anomaly), {})[one.finding.identity] = one.status
    for kind in there:
        yield msgspec.structs.replace(kind, findings=kind.findings | unseen.get((kind.cell, kind.anomaly), {}))


def _silent(
    name: Name, night: Results, found: Sequence[Finding], statuses: Mapping[str, FindingStatus], latest: Results
) -> CellAnomaly:
    """One that an earlier ``night`` was the last to show."""
    before, cell = night.cells[name[0]], latest.cells.get(name[0])
    kind = _kind(
        name, found, before.runs_judged, FindingStatus.GONE, {one.identity: statuses[one.identity] for one in found}
    )
    if cell is None or why_unproved(cell):
        return msgspec.structs.replace(kind, status=FindingStatus.NOT_LOOKED_FOR, why=why_unproved(cell))
    if other := differing(before, cell).settings:
        words = ", ".join(f"{setting} was {spelled(one)}, is {spelled(two)}" for setting, (one, two) in other.items())
        return msgspec.structs.replace(
            kind, status=FindingStatus.NOT_LOOKED_FOR, why=f"the cell has other settings: {words}"
        )
    missed = chance_of_silence(kind.runs, before, cell)
    return msgspec.structs.replace(kind, looked=cell.runs_judged, missed_by_chance=missed)


def _kind(
    name: Name, found: Sequence[Finding], judged: int, status: FindingStatus, findings: dict[str, FindingStatus]
) -> CellAnomaly:
    key, anomaly = name
    return CellAnomaly(
        cell=key,
        anomaly=anomaly,
        status=status,
        findings=findings,
        runs=max(one.runs[key] for one in found),
        judged=judged,
        example=smallest((one.example for one in found), key),
    )
