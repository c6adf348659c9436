"""Accepted findings: what a team knows, has given a reason, an owner and an end, and does not want to be woken for.

An acceptance is of cells, and of one finding there (its identity) or of all findings of one anomaly. It changes no
outcome: a promise that is broken stays broken. A cell is **excused** if each of its findings that nothing permits is
accepted, and then it decides no exit code. An acceptance is worth nothing

* after its last day (**expired**), held against the day on which the campaign or night began;
* in a cell that it does not name, unless it says how many runs of that cell did not show the finding (**grown**);
* where the finding shows more often than when it was accepted, beyond chance (**more often**): with the share of both
  campaigns together so large a difference comes with a chance below :data:`MORE_CHANCE` (Fisher's exact test,
  one-sided). An entry without ``shown`` does not say how often that was;
* once the cell was free of the anomaly, and shows it again (**back**). A finding of one run in twenty is silent on many
  nights, so silence alone is not freedom: it is where runs after the acceptance would have missed the anomaly with a
  chance below :data:`GONE_CHANCE`, if it is as frequent as when it showed last. A newer acceptance begins afresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from checkers.verdicts.cells import AcceptedFinding, Cell
from checkers.verdicts.outcome import Outcome

#: Below this chance of missing what is still there, silence says that it is gone.
GONE_CHANCE: Final = 0.05
#: Below this chance of a number of runs that is larger by as much, a finding has grown.
MORE_CHANCE: Final = 0.01
Words: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class AcceptanceStatus(StrEnum):
    """The worth of an acceptance for a finding; all but the first are red."""

    ACCEPTED = "accepted"
    EXPIRED = "expired"
    MORE_OFTEN = "more often"
    BACK = "back"
    GROWN = "grown"


class Acceptance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of ``accepted.toml``.

    Attributes:
        identity: of the one finding; "" for every finding of the anomaly.
        anomaly: its name in the checkers' registry, or "stalled".
        cells: where, as ``kafka/acks=all,isr=2,unclean=false/kill``.
        reason, owner: why, and who is asked when it ends.
        until: the last day on which it counts.
        since: when the campaign began for whose sake it was accepted; None: always.
        shown: by cell, how many runs of that campaign showed it, and of how many. 0 of them: there it was not yet seen,
            and to see it there is chance until it is more than that.
        finding: the number of the project's own account of it (docs/findings), "" without one.
    """

    identity: str = ""
    anomaly: str = ""
    cells: Annotated[tuple[Words, ...], msgspec.Meta(min_length=1)]
    reason: Words
    owner: Words
    until: date
    since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    shown: dict[str, tuple[int, int]] = {}
    finding: str = ""

    def is_of(self, cell: Cell, anomaly: str, identity: str) -> bool:
        """True where it speaks of this finding of a cell, also where the finding shows as another anomaly there."""
        if self.identity:
            return self.identity == identity
        return self.anomaly == anomaly or identity in cell.identities.get(self.anomaly, ())


class DatedCell(NamedTuple):
    """A cell as a night showed it that began then (UTC, ISO 8601)."""

    began: str
    cell: Cell


#: Cells of earlier nights with the same settings, by key, in the order of time.
Earlier: TypeAlias = Mapping[str, Sequence[DatedCell]]


class _Night(NamedTuple):
    """The day on which a night began, and one cell in earlier nights."""

    day: date
    earlier: Sequence[DatedCell]


def accepting(
    cells: Iterable[Cell], acceptances: Sequence[Acceptance], began: str, earlier: Earlier | None = None
) -> list[Cell]:
    """The same cells, which say what became of acceptances of their findings; ``began`` is when the night began."""
    if not acceptances or not began:
        return list(cells)
    day = datetime.fromisoformat(began).date()
    return [_accepting(cell, acceptances, _Night(day, (earlier or {}).get(cell.key, ()))) for cell in cells]


def still_back(cells: Iterable[Cell], before: Iterable[Cell]) -> list[Cell]:
    """The same cells; what was back ``before``, when earlier nights were known, is back still."""
    was = {
        (cell.key, finding) for cell in before for finding in cell.accepted if finding.status == AcceptanceStatus.BACK
    }
    back = {(key, msgspec.structs.replace(finding, status=AcceptanceStatus.ACCEPTED)) for key, finding in was}
    return [
        _with(cell, [finding if (cell.key, finding) not in back else _red(finding) for finding in cell.accepted])
        for cell in cells
    ]


def _red(finding: AcceptedFinding) -> AcceptedFinding:
    return msgspec.structs.replace(finding, status=AcceptanceStatus.BACK)


def _accepting(cell: Cell, acceptances: Sequence[Acceptance], night: _Night) -> Cell:
    findings = [
        _worth(cell, anomaly, identity, speaking, night)
        for anomaly, identity in cell.shown()
        if (speaking := [acceptance for acceptance in acceptances if acceptance.is_of(cell, anomaly, identity)])
    ]
    return _with(cell, findings)


def _with(cell: Cell, findings: Sequence[AcceptedFinding]) -> Cell:
    """The cell with these findings, and excused if there is no other, and each is accepted."""
    accepted = sum(finding.status == AcceptanceStatus.ACCEPTED for finding in findings)
    red = cell.outcome.exit_code == Outcome.BROKEN_PROMISE.exit_code
    return msgspec.structs.replace(cell, accepted=[*findings], excused=red and accepted == len(list(cell.shown())))


def _worth(cell: Cell, anomaly: str, identity: str, speaking: Iterable[Acceptance], night: _Night) -> AcceptedFinding:
    """Take the best of the acceptances that speak of one finding; of equals the one that lasts longest."""
    worth = [(_status(cell, (anomaly, identity), acceptance, night), acceptance) for acceptance in speaking]
    order = list(AcceptanceStatus)
    status, best = min(worth, key=lambda each: (order.index(each[0]), -each[1].until.toordinal()))
    more = ""
    if status is AcceptanceStatus.MORE_OFTEN:
        (now, judged), (before, all_before) = runs_showing(cell, anomaly, identity), best.shown[cell.key]
        more = f"{now:,} of {judged:,} runs, {before:,} of {all_before:,} when it was accepted"
    return AcceptedFinding(
        anomaly=anomaly,
        identity=identity,
        status=status,
        reason=best.reason,
        owner=best.owner,
        until=best.until,
        more=more,
    )


def _status(cell: Cell, finding: tuple[str, str], acceptance: Acceptance, night: _Night) -> AcceptanceStatus:
    if cell.key not in (*acceptance.cells, *acceptance.shown):
        return AcceptanceStatus.GROWN
    if night.day > acceptance.until:
        return AcceptanceStatus.EXPIRED
    if _went(finding[0], acceptance.since, night.earlier):
        return AcceptanceStatus.BACK
    before = acceptance.shown.get(cell.key)
    more = before is not None and more_often(before, runs_showing(cell, *finding))
    return AcceptanceStatus.MORE_OFTEN if more else AcceptanceStatus.ACCEPTED


def _went(anomaly: str, since: datetime | None, earlier: Sequence[DatedCell]) -> bool:
    """True if runs after ``since`` say that the cell was free of the anomaly for a time."""
    showing: Cell | None = None
    silent = 0
    for began, cell in earlier:
        if showing_runs(cell, anomaly):
            showing, silent = cell, 0
        elif showing is not None and (since is None or datetime.fromisoformat(began) > since):
            silent += 0 if cell.outcome.proves_nothing else cell.runs_judged
            if missed_by_chance(showing_runs(showing, anomaly), showing.runs_judged, silent) < GONE_CHANCE:
                return True
    return False


def showing_runs(cell: Cell, anomaly: str) -> int:
    """The number of runs that show the most frequent finding of the anomaly; 0 without a finding."""
    if anomaly == Outcome.STALLED:
        return sum(cell.stalled.values())
    return max(cell.identities.get(anomaly, {}).values(), default=0)


def runs_showing(cell: Cell, anomaly: str, identity: str) -> tuple[int, int]:
    """The number of runs of the cell that show a finding, and of all that were judged or show it."""
    runs = cell.identities.get(anomaly, {}).get(identity) or showing_runs(cell, anomaly)
    return runs, max(runs, cell.runs_judged)


def more_often(before: tuple[int, int], now: tuple[int, int]) -> bool:
    """True where chance does not explain that a larger share of runs, each (number, of all), shows a finding now."""
    (shown, judged), (runs, all_runs) = before, now
    if runs * judged <= shown * all_runs:
        return False
    from scipy.stats import hypergeom  # noqa: PLC0415 - takes a second, which only what grew pays

    return bool(hypergeom.sf(runs - 1, judged + all_runs, shown + runs, all_runs) < MORE_CHANCE)


def missed_by_chance(showing: int, judged: int, silent: int) -> float:
    """The chance that ``silent`` runs show nothing of what ``showing`` of ``judged`` runs did.

    With every share as likely as another before anything was seen (Laplace).
    """
    judged = max(judged, showing)
    chance = 1.0
    for run in range(silent):
        chance *= (judged - showing + 1 + run) / (judged + 2 + run)
    return chance


def acceptance_words(cell: Cell) -> str:
    """The sentences of acceptances on the cell's findings, each once; "" without one."""
    return "; ".join(dict.fromkeys(map(_words, cell.accepted)))


def _words(finding: AcceptedFinding) -> str:
    head = {
        AcceptanceStatus.ACCEPTED: f"accepted until {finding.until}",
        AcceptanceStatus.EXPIRED: f"was accepted until {finding.until}",
        AcceptanceStatus.MORE_OFTEN: f"is accepted, but shows more often than chance explains: {finding.more}",
        AcceptanceStatus.BACK: "was accepted, was gone, and is back",
        AcceptanceStatus.GROWN: "is accepted, but not in this cell",
    }[AcceptanceStatus(finding.status)]
    return f"{head} ({finding.owner}: {finding.reason})"
