"""The state of a soak: the fold of its ledger and its verdicts, the same while it runs and when it is resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from checkers import VerdictLine
from harness.campaigns.soak.kept_runs import KeptRun, KeptRuns, kept_for
from harness.campaigns.soak.ledger import (
    Began,
    Dropped,
    Entry,
    Failed,
    Judged,
    LedgerFiles,
    Performed,
    Planned,
    Tried,
    read_ledger,
    read_verdicts,
)
from harness.ground.errors import ResultsError

State = TypeVar("State")


class CellName(NamedTuple):
    """The name of one cell in one world, to which a turn may be given."""

    world: str
    choice: str
    family: str


class CellCounts(msgspec.Struct):
    """Counts of the turns of a cell: how many were ``planned`` and ``judged``, and how many ``met`` a situation.

    ``exercised`` counts the scenarios of each family that met writes.
    """

    planned: int = 0
    judged: int = 0
    met: Counter[str] = msgspec.field(default_factory=Counter)
    exercised: Counter[str] = msgspec.field(default_factory=Counter)


class SoakState:
    """The states of all turns, and what they reached.

    Attributes:
        elapsed_s: seconds of work so far, over all ``sessions``; ``turns`` have been drawn.
        planned, performed: the turns in these states; of performed ones with the bytes that they left.
        kept_runs: those that have a verdict and are not dropped. Of the ``dropped`` there is only the number, and of
            ``tried`` turns, so that memory does not grow with the runs; ``unjudged`` verdicts could not say anything.
        cells: by cell, what its turns came to; outcomes: how many runs had which.
        findings: how many runs showed each finding that nothing permits, by identity ("stalled" beside them).
        sought, places: by the turn whose findings were tried again, what is sought, and where the run is; tries: the
            answers so far.
        failures: what the harness did wrong, in sentences, without what ended an earlier session and ends none now.
        largest_bytes: by world, what a run left at most; ended: by world and status, how many runs ended so.
    """

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.sessions = self.turns = self.dropped = self.tried = self.unjudged = 0
        self.planned: dict[int, Planned] = {}
        self.performed: dict[int, tuple[Planned, int]] = {}
        self.kept_runs = KeptRuns()
        self.cells: dict[CellName, CellCounts] = {}
        self.outcomes: Counter[str] = Counter()
        self.findings: Counter[str] = Counter()
        self.sought: dict[int, frozenset[str]] = {}
        self.places: dict[int, str] = {}
        self.tries: dict[int, list[bool | None]] = {}
        self.failures: list[str] = []
        self.largest_bytes: dict[str, int] = {}
        self.wall_ms: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self._overcome: set[str] = set()
        self._covered: dict[str, int] = {}
        self._begun_tries: Counter[int] = Counter()

    @classmethod
    def read(cls, directory: Path) -> SoakState:
        """The state of the soak in ``directory``.

        Raises:
            ResultsError: its ledger or its verdicts cannot be read, or contradict each other.
        """
        state, verdicts = cls(), read_verdicts(directory)
        for entry in read_ledger(directory):
            state.note(entry, verdicts)
        return state

    def note(self, entry: Entry, verdicts: Iterator[VerdictLine]) -> None:
        """Take up ``entry``; of one that judges, the lines of its turns are the next of ``verdicts``.

        Raises:
            ResultsError: a turn is not in the state that the entry takes it from, or a line is missing.
        """
        self.elapsed_s = max(self.elapsed_s, entry.at_s)
        match entry:
            case Began():
                self.sessions += 1
                self.failures = [why for why in self.failures if why not in self._overcome]
            case Planned():
                self._plan(entry)
            case Performed():
                self._perform(entry)
            case Judged():
                for turn in entry.turns:
                    self._judge(*_taken(self.performed, turn, "performed"), next(verdicts, None))
                for tried in entry.tries:
                    _taken(self.performed, tried.turn, "performed")
                    self.tries.setdefault(tried.again, []).append(tried.shown)
                    self.tried += 1
            case Dropped():
                for turn in entry.turns:
                    if turn not in self.kept_runs.kept:
                        raise _damaged(f"turn {turn} was dropped before it was judged")
                    self.kept_runs.remove(turn)
                    self.dropped += 1
            case Failed():
                self.failures.append(entry.why)
                self._overcome |= {entry.why} if entry.ended_session else set()

    def _plan(self, entry: Planned) -> None:
        if entry.turn != self.turns:
            raise _damaged(f"turn {entry.turn} comes after turn {self.turns - 1}")
        self.turns += 1
        self.planned[entry.turn] = entry
        if entry.again is None:
            self._counts_of(entry).planned += 1
            return
        self._begun_tries[entry.again] += 1
        if (original := self.kept_runs.kept.get(entry.again)) is not None:
            self.sought[entry.again] = original.findings
            self.places[entry.again] = original.planned.directory
            for what in original.shows:
                self._covered.setdefault(what, entry.again)

    def _perform(self, entry: Performed) -> None:
        planned = _taken(self.planned, entry.turn, "planned")
        self.performed[entry.turn] = planned, entry.left_bytes
        self.largest_bytes[planned.world] = max(entry.left_bytes, self.largest_bytes.get(planned.world, 0))
        if planned.again is None:
            self.wall_ms[planned.world] += entry.wall_ms
            self.ended[planned.world, entry.status] += 1

    def _judge(self, planned: Planned, left_bytes: int, line: VerdictLine | None) -> None:
        if line is None or line.judgement is None or line.history != planned.directory:
            raise _damaged(f"turn {planned.turn} was judged, and has no verdict")
        counts = self._counts_of(planned)
        counts.judged += 1
        counts.met.update(name for name, count in line.judgement.coverage.items() if count)
        families = line.judgement.exercised.families if line.judgement.exercised else {}
        counts.exercised.update({name: family.exercised for name, family in families.items()})
        self.outcomes[line.outcome] += 1
        self.unjudged += not line.judgement.judged
        kept = kept_for(planned, left_bytes, line)
        self.findings.update(kept.findings)
        self.kept_runs.add(kept)

    def _counts_of(self, planned: Planned) -> CellCounts:
        return self.cells.setdefault(CellName(planned.world, planned.choice, planned.family), CellCounts())

    @property
    def judged(self) -> int:
        """Runs that could be judged, each once, without tries: as cells count them, without those that failed."""
        return len(self.kept_runs) + self.dropped - self.unjudged

    def needs_try(self, run: KeptRun, wanted: int) -> bool:
        """A run whose findings were tried ``wanted`` times at most, by no run before it."""
        turn = run.planned.turn
        own = any(self._covered.get(what, turn) == turn for what in run.shows)
        return run.alarming and own and self._begun_tries[turn] < wanted


def _damaged(what: str) -> ResultsError:
    return ResultsError(f"the ledger of this soak is damaged: {what}; begin a new soak")


def _taken(turns: dict[int, State], turn: int, state: str) -> State:
    if turn not in turns:
        raise _damaged(f"turn {turn} ended before it was {state}")
    return turns.pop(turn)


class RecordedState:
    """Ledger and state of a soak that goes on: what is written into the one is taken up by the other.

    ``clock`` gives seconds; ``worked_s`` of them were worked before, as far as heartbeats say. The time that a soak lay
    dead is not counted.
    """

    def __init__(self, directory: Path, clock: Callable[[], float], worked_s: float = 0.0) -> None:
        self.directory = directory
        self._ledger = LedgerFiles(directory)
        self.state = SoakState.read(directory)
        self._clock, self._began = clock, clock()
        self._before_s = max(worked_s, self.state.elapsed_s)

    @property
    def elapsed_s(self) -> float:
        """Seconds of work, those of earlier sessions too."""
        return self._before_s + self._clock() - self._began

    def write(self, entry: Entry) -> None:
        """Write ``entry`` into the ledger, with the time, and take it up."""
        timed = msgspec.structs.replace(entry, at_s=round(self.elapsed_s, 3))
        self._ledger.write(timed)
        self.state.note(timed, iter(()))

    def add_verdicts(self, lines: Sequence[tuple[int, VerdictLine]], tries: Sequence[Tried]) -> None:
        """Write down the verdicts of these turns, and the results of these tries."""
        entry = self._ledger.add_verdicts(round(self.elapsed_s, 3), lines, tries)
        self.state.note(entry, iter([line for _, line in lines]))

    def close(self) -> None:
        """Close the ledger. Idempotent."""
        self._ledger.close()
