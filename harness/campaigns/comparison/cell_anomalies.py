"""Anomalies that no promise permits, cell by cell, over several nights: new, known, back, gone or not looked for.

A cell and its anomaly have a status, which decides when a night is worse (:mod:`harness.campaigns.comparison.changes`).
Findings are a list inside: an anomaly has several where a run can tell their causes apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import StrEnum
from typing import NamedTuple

import msgspec

from checkers import Cell, Outcome, more_often, proportion
from harness.campaigns.comparison.findings import ComparedFinding, Example, Results, smallest
from harness.campaigns.comparison.settings import differing
from workloads import spelled


class FindingStatus(StrEnum):
    """The status of an anomaly of a cell in the latest night, after earlier ones with the same settings in this cell.

    * ``new``: no earlier night showed it there, and one of its findings was seen in no cell of any earlier night, or
      more runs of this cell show it than chance explains.
    * ``known``: the night before showed it there; or all its findings are known from other cells.
    * ``back``: an earlier night showed it there, the night before did not.
    * ``gone``: an earlier night showed it there, and this one did not, though it put the cell to the test.
    * ``not looked for``: as gone, but the cell was not put to the test with these settings: silence says nothing.
    """

    NEW = "new"
    KNOWN = "known"
    BACK = "back"
    GONE = "gone"
    NOT_LOOKED_FOR = "not looked for"


class Chance(NamedTuple):
    """A probability, from ``low`` to ``high`` at 95 % confidence: it follows from a share that was counted."""

    low: float
    high: float


class CellFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a cell's anomaly: its identity, and how many runs of the cell show it in the night that it is from.

    ``new`` is true where no earlier night showed this identity in any cell; ``seen`` where the latest night shows it in
    this cell.
    """

    identity: str
    runs: int
    example: Example
    new: bool
    seen: bool


class CellAnomaly(msgspec.Struct, frozen=True, kw_only=True):
    """An anomaly that no promise permits in one cell, over several nights.

    Attributes:
        cell: its key (:attr:`checkers.Cell.key`).
        anomaly: its name in the checkers' registry, or "stalled".
        status: its status in this cell; in JSON its name is ``fate``.
        findings: those of the night that showed the anomaly last; then those of earlier nights that this cell does not
            show now, if it still shows the anomaly.
        runs: how many runs of the cell show the most frequent finding, in the night that showed the anomaly last; so
            at least this many of ``judged`` show the anomaly.
        example: the run to look at.
        first, last: the names of the nights that showed it first and last.
        looked: of one that is gone: how many runs were judged since, which show nothing of it.
        missed_by_chance: of one that is gone: how likely that is if it is as frequent as before. Its ``high`` end is
            an upper bound where several findings are of this anomaly, because only the most frequent one is counted.
        why: of one that was not looked for: why not.
    """

    cell: str
    anomaly: str
    status: FindingStatus = msgspec.field(name="fate")
    findings: list[CellFinding]
    runs: int
    judged: int
    example: Example
    first: str
    last: str
    looked: int = 0
    missed_by_chance: Chance = Chance(0.0, 0.0)
    why: str = ""


class _Name(NamedTuple):
    """A cell and an anomaly."""

    cell: str
    anomaly: str


class _Night(NamedTuple):
    """A night and its findings that nothing permits, by cell and anomaly."""

    results: Results
    shown: Mapping[_Name, Sequence[ComparedFinding]]

    def shows(self, name: _Name, cell: Cell) -> bool:
        """True where its cell has the settings of ``cell`` and shows the anomaly."""
        return name in self.shown and not differing(self.results.cells[name.cell], cell).settings


def cell_anomalies_of(earlier: Sequence[Results], latest: Results) -> list[CellAnomaly]:
    """Every anomaly of every cell, those of ``latest`` first; ``earlier`` nights are in the order of time.

    A night that has only a matrix left says nothing of findings, and is passed over.
    """
    if latest.findings is None:
        return []
    nights = [_night(night) for night in earlier if night.findings is not None]
    now = _night(latest)
    silent: dict[_Name, _Night] = {}
    for night in nights:
        silent |= {name: night for name in night.shown if name not in now.shown}
    return [
        *(_shown_now(name, now, nights) for name in now.shown),
        *(_silent(name, night, now, nights) for name, night in silent.items()),
    ]


def _night(results: Results) -> _Night:
    shown: dict[_Name, list[ComparedFinding]] = {}
    for finding in (results.findings or {}).values():
        for cell in () if finding.permitted else finding.runs:
            if _breaks(results.cells[cell], finding.anomaly):
                shown.setdefault(_Name(cell, finding.anomaly), []).append(finding)
    return _Night(results, shown)


def _breaks(cell: Cell, anomaly: str) -> bool:
    """True where the cell shows the anomaly in a run in which nothing permits it."""
    return bool(cell.stalled) if anomaly == Outcome.STALLED else anomaly in cell.broken


def _shown_now(name: _Name, now: _Night, nights: Sequence[_Night]) -> CellAnomaly:
    """An anomaly that the latest night shows."""
    cell = now.results.cells[name.cell]
    having = [night for night in nights if night.shows(name, cell)]
    identities = {finding.identity for finding in now.shown[name]}
    unseen = {
        finding.identity: _finding(name, finding, seen=False)
        for night in having
        for finding in night.shown[name]
        if finding.identity not in identities
    }
    new = identities - {identity for night in nights for identity in night.results.findings or ()}
    if having:
        status = FindingStatus.KNOWN if having[-1] is nights[-1] else FindingStatus.BACK
    elif new or any(_grown(name, now, night) for night in nights):
        status = FindingStatus.NEW
    else:
        before = (nights[-1].results.findings or {}).keys()
        status = FindingStatus.KNOWN if identities & before else FindingStatus.BACK
    anomaly = _anomaly(name, now, status, first=having[0] if having else now, seen=True, new=new)
    return msgspec.structs.replace(anomaly, findings=[*anomaly.findings, *unseen.values()])


def _grown(name: _Name, now: _Night, before: _Night) -> bool:
    """True where chance does not explain that the cell shows now what it did not ``before`` with these settings."""
    cell, silent = now.results.cells[name.cell], before.results.cells.get(name.cell)
    if silent is None or differing(silent, cell).settings:
        return False
    runs = max(finding.runs[name.cell] for finding in now.shown[name])
    return more_often((0, silent.runs_judged), (runs, max(runs, cell.runs_judged)))


def _silent(name: _Name, last: _Night, now: _Night, nights: Sequence[_Night]) -> CellAnomaly:
    """An anomaly that an earlier night was the ``last`` to show."""
    before, cell = last.results.cells[name.cell], now.results.cells.get(name.cell)
    first = next(night for night in nights if night.shows(name, before))
    anomaly = _anomaly(name, last, FindingStatus.GONE, first=first, seen=False)
    why = _why_unproved(cell)
    if cell is not None and not why:
        other = differing(before, cell).settings
        words = ", ".join(f"{setting} was {spelled(had)}, is {spelled(has)}" for setting, (had, has) in other.items())
        why = f"the cell has other settings: {words}" if other else ""
    if cell is None or why:
        return msgspec.structs.replace(anomaly, status=FindingStatus.NOT_LOOKED_FOR, why=why)
    missed = _chance_of_silence(anomaly.runs, before, cell)
    return msgspec.structs.replace(anomaly, looked=cell.runs_judged, missed_by_chance=missed)


def _anomaly(
    name: _Name, night: _Night, status: FindingStatus, *, first: _Night, seen: bool, new: Set[str] = frozenset()
) -> CellAnomaly:
    """The anomaly as ``night`` shows it, the latest where it is ``seen``; ``new`` are identities."""
    findings = night.shown[name]
    return CellAnomaly(
        cell=name.cell,
        anomaly=name.anomaly,
        status=status,
        findings=[_finding(name, finding, seen=seen, new=finding.identity in new) for finding in findings],
        runs=max(finding.runs[name.cell] for finding in findings),
        judged=night.results.cells[name.cell].runs_judged,
        example=smallest((finding.example for finding in findings), name.cell),
        first=first.results.name,
        last=night.results.name,
    )


def _finding(name: _Name, finding: ComparedFinding, *, seen: bool, new: bool = False) -> CellFinding:
    runs = finding.runs[name.cell]
    return CellFinding(identity=finding.identity, runs=runs, example=finding.example, new=new, seen=seen)


def _why_unproved(cell: Cell | None) -> str:
    """Say why silence of ``cell`` proves nothing about what it showed before; "" where it proves something."""
    if cell is None or not cell.runs_judged:
        return "no run of the cell was judged"
    return f"the outcome of the cell is {cell.outcome}" if cell.outcome.proves_nothing else ""


def _chance_of_silence(runs: int, shown: Cell, silent: Cell) -> Chance:
    """The chance that no run of ``silent`` shows what ``runs`` of ``shown`` did, if it is as frequent in both."""
    judged = max(shown.runs_judged, 1)
    share = proportion(min(runs, judged), judged)
    return Chance((1 - share.high) ** silent.runs_judged, (1 - share.low) ** silent.runs_judged)
