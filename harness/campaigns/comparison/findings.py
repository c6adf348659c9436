"""The findings and cells of one campaign or night.

A finding is known again by its identity (:mod:`checkers.verdicts.identity`), a cell by its world and name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from checkers import Cell, Outcome, RunFacts, VerdictLine, build_matrix, latest_receipts
from harness.ground.errors import NamedWronglyError
from harness.plan import Simulated
from harness.records.files import MATRIX_FILE, VERDICTS_FILE
from harness.records.verdict_lines import cells_of_campaign, read_lines, read_matrix, verdicts_in


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest run that shows a finding: where it lies in its campaign, its cell and seed, how many faults took
    effect, and the names of their scenarios in the order of their beginning.
    """

    run: str
    world: str
    cell: str
    seed: int
    faults: int
    scenarios: tuple[str, ...] = msgspec.field(name="stories")

    def is_of(self, key: str) -> bool:
        """True where its cell is the one that ``key`` names."""
        return _key(self.world, self.cell) == key


def smallest(examples: Iterable[Example], key: str) -> Example:
    """The run to look at: of the cell that ``key`` names if there is one, with the fewest faults."""
    return min(examples, key=lambda example: (not example.is_of(key), example.faults, example.seed))


class ComparedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A defect as one campaign showed it.

    Attributes:
        identity: twelve digits, the same for the same defect in every campaign; "stalled" of a log that did not come
            back.
        anomaly: its name in the checkers' registry, or "stalled".
        permitted: true where the settings permit it in every run that showed it.
        runs: how many runs showed it, by cell (:attr:`checkers.Cell.key`).
        example: the run to look at: one where nothing permits it before others; then one in virtual time, because that
            repeats; then with the fewest faults; then with the smallest seed.
    """

    identity: str
    anomaly: str
    permitted: bool
    runs: dict[str, int]
    example: Example


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The cells and the findings of one campaign or night.

    Attributes:
        name: what sentences call it: its directory.
        cells: those of its matrix, by :attr:`checkers.Cell.key`.
        findings: by identity; None where only a matrix is left, which says of no run what it found.
    """

    name: str
    cells: dict[str, Cell]
    findings: dict[str, ComparedFinding] | None

    def with_cells(self, cells: Iterable[Cell]) -> Results:
        """The same with these cells in their place."""
        return msgspec.structs.replace(self, cells={cell.key: cell for cell in cells})


def read_results(directory: Path) -> Results:
    """The results in a campaign's directory: from its verdicts, also packed (``xz``), else from its matrix alone.

    Raises:
        NamedWronglyError: it holds neither.
        ResultsError: a file of it cannot be read.
    """
    if verdicts_in(directory) is not None:
        results = results_of(str(directory), read_lines(directory).lines.values())
        return results.with_cells(cells_of_campaign(directory, results.cells.values()))
    if not directory.is_dir():
        raise NamedWronglyError(f"{directory} is not a directory; name a campaign that was checked (results/...)")
    if not (directory / MATRIX_FILE).is_file():
        raise NamedWronglyError(f"{directory} holds no {VERDICTS_FILE}; name a campaign that was checked (results/...)")
    cells = read_matrix(directory).cells
    return Results(name=str(directory), cells={cell.key: cell for cell in cells}, findings=None)


def results_of(name: str, lines: Iterable[VerdictLine]) -> Results:
    """The results that follow from lines of ``verdicts.jsonl``; each line is looked at once, so they may be streamed.

    Lines without a judgement are histories of other tools, which are in no cell.
    """
    tally = _Tally()
    cells = build_matrix(tally.seen(line) for line in lines).cells
    return Results(name=name, cells={cell.key: cell for cell in cells}, findings=tally.findings())


def _key(world: str, cell: str) -> str:
    return f"{world}/{cell}"


class RunFinding(NamedTuple):
    """A finding of one run: its identity, its anomaly, and true where the run's settings and faults permit it."""

    identity: str
    anomaly: str
    permitted: bool


def shown_by(line: VerdictLine) -> Iterator[RunFinding]:
    """Name the defects of one run, each once, by its first anomaly; what nothing permits before what something does.

    What nothing permits is always named, by its anomaly where it has no identity.
    """
    if (judgement := line.judgement) is None:
        return
    identities = judgement.identities or _identified(line)
    identities = identities | {name: [name] for name in judgement.broken if name not in identities}
    told: set[str] = set()
    for counted, permitted in ((judgement.broken, False), (judgement.permitted, True)):
        for anomaly in filter(counted.__contains__, identities):
            yield from (RunFinding(name, anomaly, permitted) for name in identities[anomaly] if name not in told)
            told.update(identities[anomaly])
    if judgement.stalled:
        yield RunFinding(Outcome.STALLED, Outcome.STALLED, permitted=False)


class _Tally:
    """Findings by identity while lines go by; of each one example is kept, whatever the number of runs."""

    def __init__(self) -> None:
        self._runs: dict[str, Counter[str]] = {}
        self._broken: set[str] = set()
        self._examples: dict[str, tuple[tuple[bool, bool, int, int], str, Example]] = {}

    def seen(self, line: VerdictLine) -> VerdictLine:
        """Count what the line's run showed; the answer is the line."""
        if line.run is not None:
            for finding in shown_by(line):
                self._add(finding, line, line.run)
        return line

    def _add(self, finding: RunFinding, line: VerdictLine, run: RunFacts) -> None:
        identity, anomaly, permitted = finding
        self._runs.setdefault(identity, Counter())[_key(run.world, run.cell)] += 1
        self._broken |= set() if permitted else {identity}
        example = _example(line, run)
        rank = (permitted, run.world != Simulated.name, example.faults, run.seed)
        if identity not in self._examples or rank < self._examples[identity][0]:
            self._examples[identity] = rank, anomaly, example

    def findings(self) -> dict[str, ComparedFinding]:
        """All of them, in the order in which they first showed."""
        return {
            identity: ComparedFinding(
                identity=identity,
                anomaly=anomaly,
                permitted=identity not in self._broken,
                runs=dict(self._runs[identity]),
                example=example,
            )
            for identity, (_, anomaly, example) in self._examples.items()
        }


def _identified(line: VerdictLine) -> dict[str, list[str]]:
    """Identities of a line that was judged before findings had any; what it found stays judged as it was."""
    again = VerdictLine.of(line, line.run).judgement if line.anomalies else None
    return again.identities if again else {}


def _example(line: VerdictLine, run: RunFacts) -> Example:
    effective = [receipt for receipt in latest_receipts(line.faults) if receipt.took_effect]
    scenarios = dict.fromkeys(receipt.story for receipt in sorted(effective, key=lambda receipt: receipt.begun_us))
    return Example(
        run=line.history,
        world=run.world,
        cell=run.cell,
        seed=run.seed,
        faults=len(effective),
        scenarios=tuple(filter(None, scenarios)),
    )
