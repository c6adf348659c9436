"""Findings in words: for each cell what is new, known, back and gone, in short lines, and each finding where asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from checkers import Cell, counted
from harness.campaigns.comparison.acceptance import LISTED_MAX, each_accept_command
from harness.campaigns.comparison.cell_anomalies import CellAnomaly, CellFinding, Chance, FindingStatus
from harness.campaigns.comparison.findings import Example, smallest
from harness.ground.machine.this_call import command

#: The words of a status before a cell, in the order of sentences.
_BEFORE_CELL: Final = {
    FindingStatus.NEW: "new in",
    FindingStatus.BACK: "back in",
    FindingStatus.KNOWN: "known in",
    FindingStatus.GONE: "gone from",
    FindingStatus.NOT_LOOKED_FOR: "not looked for in",
}
#: Chances below this are said to be none.
_NEARLY_NONE: Final = 0.0001
#: The most commands at a cell of a comparison.
_ACCEPTED_MAX: Final = 3
#: Statuses of an anomaly that the latest night does not show.
_SILENT: Final = frozenset({FindingStatus.GONE, FindingStatus.NOT_LOOKED_FOR})


def finding_sentences(kinds: Iterable[CellAnomaly], after: str, cells: Iterable[Cell] = ()) -> Iterator[str]:
    """Some lines for each cell and status: what, the smallest run with its scenarios, the command that shows it again.

    ``after`` is the directory of the latest night, ``cells`` are its own: what is red there has the command that
    accepts it, a finding of several cells at the first of them.
    """
    together: dict[tuple[FindingStatus, str, str], list[CellAnomaly]] = {}
    for anomaly in sorted(kinds, key=lambda anomaly: list(_BEFORE_CELL).index(anomaly.status)):
        together.setdefault((anomaly.status, anomaly.cell, anomaly.why), []).append(anomaly)
    shown = {cell.key: cell for cell in cells}
    red = dict.fromkeys(key for status, key, _ in together if status not in _SILENT and key in shown)
    commands = {cell.key: words for cell, words in each_accept_command(after, [shown[key] for key in red])}
    for anomalies in list(together.values())[:LISTED_MAX]:
        yield _head(anomalies)
        yield from _silence(anomalies) if anomalies[0].status is FindingStatus.GONE else _again(anomalies, after)
        if anomalies[0].status not in _SILENT:
            yield from _accepting(commands.pop(anomalies[0].cell, ()))
    if len(together) > LISTED_MAX:
        yield f"... and {len(together) - LISTED_MAX:,} more such cells."


def _accepting(commands: Sequence[str]) -> Iterator[str]:
    yield from (f"  {words}" for words in commands[:_ACCEPTED_MAX])
    if len(commands) > _ACCEPTED_MAX:
        yield f"  ... and {len(commands) - _ACCEPTED_MAX} more findings"


def each_finding(anomalies: Iterable[CellAnomaly]) -> Iterator[str]:
    """A line for each finding of each cell."""
    for anomaly in anomalies:
        for finding in anomaly.findings:
            name = " ".join(dict.fromkeys((anomaly.anomaly, finding.identity)))
            runs = counted(finding.runs, "run")
            yield f"{_word(anomaly, finding)}: {name}, in {runs} of {anomaly.cell}: {_shows(finding.example)}."


def _word(anomaly: CellAnomaly, finding: CellFinding) -> str:
    """The status of one finding: that of its anomaly where the latest night shows nothing of this."""
    if anomaly.status in _SILENT:
        return anomaly.status
    return "not seen" if not finding.seen else "new" if finding.new else "known"


def cells_by_status(kinds: Sequence[CellAnomaly]) -> str:
    """The numbers of cells with new, known, ... findings; "none" without any."""
    cells = {status: {anomaly.cell for anomaly in kinds if anomaly.status is status} for status in _BEFORE_CELL}
    counts = [
        f"{words} {counted(len(cells[status]), 'cell')}" for status, words in _BEFORE_CELL.items() if cells[status]
    ]
    return ", ".join(counts) or "none"


def _head(anomalies: Sequence[CellAnomaly]) -> str:
    """The first line: the anomalies of a cell, the number of their findings, and their runs."""
    first = anomalies[0]
    shown_now = first.status not in _SILENT
    all_findings = [finding for anomaly in anomalies for finding in anomaly.findings]
    shown = [finding for finding in all_findings if finding.seen or not shown_now]
    unseen, new = len(all_findings) - len(shown), sum(finding.new for finding in shown)
    more = [f"{new} of them new"] if new and first.status is not FindingStatus.NEW else []
    if unseen:
        more.append(f"{unseen} more not seen this time")
    runs, judged = max(anomaly.runs for anomaly in anomalies), first.judged
    least = "" if len(shown) == 1 or runs == judged else "at least "
    findings = ", ".join((counted(len(shown), "finding"), *more))
    before = "" if shown_now else " before"
    why = f"; {first.why}" if first.why else ""
    names = ", ".join(anomaly.anomaly for anomaly in anomalies)
    share = f"{findings}, in {least}{runs:,} of {counted(judged, 'run')}{before}"
    return f"{_BEFORE_CELL[first.status]} {first.cell}: {names}; {share}{why}."


def _again(anomalies: Sequence[CellAnomaly], after: str) -> Iterator[str]:
    example = smallest((anomaly.example for anomaly in anomalies), anomalies[0].cell)
    elsewhere = "" if example.is_of(anomalies[0].cell) else ", in another cell"
    yield f"  smallest{elsewhere}: {_shows(example)}"
    # A kept campaign has no runs any more, and a run of before is elsewhere.
    if anomalies[0].status is not FindingStatus.NOT_LOOKED_FOR and Path(after, example.run).is_dir():
        yield f"  {command('replay', f'{after}/{example.run}')}"


def _silence(anomalies: Sequence[CellAnomaly]) -> Iterator[str]:
    """The chance that the same anomalies are merely missed."""
    rarest = max((anomaly.missed_by_chance for anomaly in anomalies), key=lambda chance: chance.high)
    chance, runs = _chance(rarest), counted(anomalies[0].looked, "run")
    what = "it" if len(anomalies) == 1 else "the rarest of them"
    yield f"  as frequent as before, {what} would be missed by {runs} with a chance {chance}"


def _chance(chance: Chance) -> str:
    """Its interval: shares of few runs leave much open."""
    if chance.high < _NEARLY_NONE:
        return "below 0.01 % (at 95 % confidence)"
    low = "0" if chance.low < _NEARLY_NONE else f"{100 * chance.low:.2g}"
    return f"of {low} to {100 * chance.high:.2g} % (at 95 % confidence)"


def _shows(example: Example) -> str:
    scenarios = f" of {', '.join(example.scenarios)}" if example.scenarios else ""
    return f"{counted(example.faults, 'fault')}{scenarios}, seed {example.seed}"
