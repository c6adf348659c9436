"""The runs that keep their files: those with a finding, the shortest of each first, as long as there is room.

A run that is dropped keeps its line of verdicts, its coverage and its seed; one in virtual time can be done again from
that. Files are kept for what they show: for each finding in each cell, and where a cell lost writes as permitted or
could not be judged, for one run that shows that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from checkers import Outcome, VerdictLine
from harness.campaigns.comparison import shown_by
from harness.campaigns.soak.ledger import Planned

#: Outcomes of runs that show nothing, so that their files are not needed.
_SILENT: Final = frozenset({Outcome.HELD, Outcome.NOT_EXERCISED})


class KeptRun(NamedTuple):
    """A judged run whose files are there.

    Attributes:
        planned: its turn.
        bytes: what its files take.
        shows: what its files are kept for: findings by cell; nothing where it is clean.
        findings: identities of what nothing permits.
        length: how long its account is: what is permitted after what is not, faults that took effect, the seed. So the
            example of a finding (:class:`harness.campaigns.comparison.Example`) is the shortest.
    """

    planned: Planned
    bytes: int
    shows: frozenset[str]
    findings: frozenset[str]
    length: tuple[bool, int, int]

    @property
    def alarming(self) -> bool:
        """It shows something that nothing permits."""
        return bool(self.findings)


def findings_of(line: VerdictLine) -> frozenset[str]:
    """Identities of what a run showed and nothing permits."""
    return frozenset(finding.identity for finding in shown_by(line) if not finding.permitted)


def kept_for(planned: Planned, left_bytes: int, line: VerdictLine) -> KeptRun:
    """Say what the files of a run that has just been judged are kept for."""
    judgement, findings = line.judgement, findings_of(line)
    silent = line.outcome in _SILENT
    shown = () if silent else {finding.identity for finding in shown_by(line)} or {line.outcome.value}
    return KeptRun(
        planned=planned,
        bytes=left_bytes,
        shows=frozenset(f"{planned.world}/{planned.cell}/{identity}" for identity in shown),
        findings=findings,
        length=(not findings, len(judgement.faults) if judgement else 0, planned.seed),
    )


class KeptRuns:
    """The judged runs whose files are there, by turn; of each thing that they show it knows the shortest."""

    def __init__(self) -> None:
        self.kept: dict[int, KeptRun] = {}
        self.bytes = 0
        self._best: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.kept)

    def add(self, run: KeptRun) -> None:
        """Take up a run that has just been judged."""
        self.kept[run.planned.turn] = run
        self.bytes += run.bytes
        for what in run.shows:
            best = self._best.get(what)
            if best is None or run.length < self.kept[best].length:
                self._best[what] = run.planned.turn

    def remove(self, turn: int) -> None:
        """Forget a run; never the best of what it shows."""
        self.bytes -= self.kept.pop(turn).bytes

    @property
    def best(self) -> list[KeptRun]:
        """The runs that show something best, each once, in the order of their turns."""
        return [self.kept[turn] for turn in sorted(set(self._best.values()))]

    def superfluous(self) -> list[int]:
        """Turns whose files show nothing that a better run does not; alarming turns stay."""
        needed = set(self._best.values())
        return [turn for turn, run in self.kept.items() if not run.alarming and turn not in needed]

    def longest(self, needed_bytes: int) -> list[int]:
        """Turns that may go where there is no more room, the longest first, until so much is free."""
        needed, chosen, freed = set(self._best.values()), [], 0
        for turn in sorted(self.kept.keys() - needed, key=lambda turn: self.kept[turn].length, reverse=True):
            if freed >= needed_bytes:
                break
            chosen.append(turn)
            freed += self.kept[turn].bytes
        return chosen


def trimmed(line: VerdictLine) -> VerdictLine:
    """The line without what grows with a night: of a clean run receipts, of a permitted finding all examples but one.

    What nothing permits stays whole. Counts, coverage and the judgement are those of the whole verdict.
    """
    if findings_of(line):
        return line
    if line.outcome in _SILENT and not line.anomalies:
        return msgspec.structs.replace(line, faults=[], fault_exercise=[])
    first = {name: findings[:1] for name, findings in line.anomalies.items()}
    return msgspec.structs.replace(line, anomalies=first, times_us={n: t[:1] for n, t in line.times_us.items()})
