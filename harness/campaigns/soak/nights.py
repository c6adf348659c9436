"""Earlier nights, read from a directory or a store: what they found, and what all of them add up to.

A night is a directory with verdicts: of a soak, or of a campaign. A soak leaves ``night.json`` beside its matrix, so
that a year of nights is read without their verdicts, which may be gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from checkers import (
    Cell,
    CheckError,
    DatedCell,
    Earlier,
    Matrix,
    Place,
    Scratch,
    ScratchKind,
    counted,
    fetch,
    files_at,
    percent,
    place_of,
    proportion,
    read_bytes,
)
from harness.campaigns.comparison import DEFECTS, SAYING, ComparedFinding, Results, differing, read_results
from harness.ground.errors import NamedWronglyError, ResultsError
from harness.plan import Simulated
from harness.records.files import CAMPAIGN_FILE, MATRIX_FILE, VERDICTS_FILE, understanding
from workloads import reason_of

NIGHT_FILE: Final = "night.json"
#: Verdicts as they are written, and packed.
_VERDICTS: Final = (VERDICTS_FILE, f"{VERDICTS_FILE}.xz")
Content = TypeVar("Content")


class NightRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``night.json``: what is not in ``matrix.json``.

    ``began`` is UTC, ``elapsed_s`` seconds of work; ``memory_bytes`` and ``disk_bytes`` are the most that was used.
    ``verdicts_bytes`` is how long ``verdicts.jsonl`` was: one of another length has other findings.
    """

    began: str
    elapsed_s: float
    memory_bytes: int
    disk_bytes: int
    verdicts_bytes: int
    findings: dict[str, ComparedFinding]


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """One night; ``record`` is None where a campaign left it, or a soak that never ended.

    ``seed`` is what its runs' seeds follow from; None where it was not noted.
    """

    results: Results
    began: str
    seed: int | None = None
    record: NightRecord | None = None

    @property
    def runs(self) -> int:
        """Runs that were judged."""
        return sum(cell.runs_judged for cell in self.results.cells.values())

    @property
    def runs_per_hour(self) -> float | None:
        """The night's speed, None where its time was not noted."""
        worked_s = self.record.elapsed_s if self.record else 0.0
        return self.runs / worked_s * 3_600 if worked_s else None


class _Begun(msgspec.Struct, frozen=True):
    began: str = ""
    seed: int | None = None


def read_nights(places: Iterable[str], without: Path) -> list[Night]:
    """Every night at or below ``places``, which are paths or URIs of stores, oldest first; but not ``without``.

    Raises:
        NamedWronglyError: a place cannot be read, or holds no night.
    """
    nights = []
    for text in places:
        try:
            root = place_of(text)
        except CheckError as error:
            raise NamedWronglyError(f"--nights: {error}") from error
        try:
            directories = _places_of_nights(files_at(root))
        except OSError as error:
            raise NamedWronglyError(f"--nights {text} cannot be read: {reason_of(error)}") from error
        own = without.resolve()
        nights += [
            read_night(directory)
            for directory in directories
            if not (isinstance(directory, Path) and directory.resolve() == own)
        ]
    return sorted(nights, key=lambda night: (night.began, night.results.name))


def _places_of_nights(files: Sequence[Place]) -> list[Place]:
    """The directories with verdicts, without those above or below a night: they are of the same runs, checked again."""
    directories = dict.fromkeys(file.parent for file in files if file.name in _VERDICTS)
    nights = {file.parent for file in files if file.name == CAMPAIGN_FILE and file.parent in directories}
    return [
        directory
        for directory in directories
        if directory in nights
        or not any(directory.is_relative_to(night) or night.is_relative_to(directory) for night in nights)
    ]


def read_night(directory: Place) -> Night:
    """The night whose verdicts are in ``place``.

    Raises:
        ResultsError: it cannot be read.
    """
    try:
        record = _decoded(directory / NIGHT_FILE, NightRecord)
        matrix = _decoded(directory / MATRIX_FILE, Matrix)
        begun = _decoded(directory / CAMPAIGN_FILE, _Begun) or _Begun()
        if record is None or matrix is None or not _is_of(record, directory):
            return Night(results=_from_verdicts(directory), began=begun.began, seed=begun.seed)
    except OSError as error:
        raise ResultsError(f"{directory} cannot be read: {error}") from error
    cells = {cell.key: cell for cell in matrix.cells}
    results = Results(name=str(directory), cells=cells, findings=record.findings)
    return Night(results=results, began=record.began, seed=begun.seed, record=record)


def _is_of(record: NightRecord, directory: Place) -> bool:
    """Verdicts here may have grown since; those of a store, or packed ones, were put there whole."""
    lines = directory / VERDICTS_FILE
    return not isinstance(lines, Path) or not lines.exists() or lines.stat().st_size == record.verdicts_bytes


def _from_verdicts(directory: Place) -> Results:
    if isinstance(directory, Path):
        return read_results(directory)
    with Scratch(ScratchKind.NIGHT) as scratch:
        for file in files_at(directory):
            if file.name in _VERDICTS and file.parent == directory and not isinstance(file, Path):
                fetch(file, scratch.path)
        return msgspec.structs.replace(read_results(scratch.path), name=str(directory))


def _decoded(file: Place, kind: type[Content]) -> Content | None:
    content = read_bytes(file)
    if content is None:
        return None
    with understanding(file, "restore it, or move the night away"):
        return msgspec.json.decode(content, type=kind)


class Accumulated(msgspec.Struct, frozen=True, kw_only=True):
    """One cell over all nights that ran it with these settings on this system; ``sentence`` says what that proves.

    ``runs`` are those of nights that say what the log does: what was not put to the test adds nothing to a bound. In
    virtual time a seed is the whole run, so of nights with one seed only one counts: one that lost before others, then
    the one with most runs.
    """

    key: str
    nights: int
    runs: int
    exercised: int
    sentence: str


def accumulated(nights: Sequence[Night]) -> list[Accumulated]:
    """Every cell of the last night, with what all of them say of it."""
    return [_accumulated(key, cell, nights) for key, cell in nights[-1].results.cells.items()] if nights else []


def _accumulated(key: str, latest: Cell, nights: Sequence[Night]) -> Accumulated:
    all_cells = [(night.seed, cell) for night in nights if (cell := night.results.cells.get(key)) is not None]
    alike = [(seed, cell) for seed, cell in all_cells if not differing(cell, latest)]
    cells = [cell for _, cell in alike]
    saying = _each_once([(seed, cell) for seed, cell in alike if cell.outcome in SAYING])
    runs, lost = sum(cell.runs_judged for cell in saying), sum(cell.runs_lost for cell in saying)
    broken = sum(cell.outcome in DEFECTS for cell in cells)
    share = proportion(lost, runs)
    if broken:
        words = f"{latest.outcome} in the last; broken, or stalled, in {broken:,} of {counted(len(cells), 'night')}"
    elif lost:
        words = f"lost in {lost:,} of {counted(runs, 'run')}, {share.low:.2%} to {share.high:.2%} at 95 %"
    elif not saying:
        words = f"{latest.outcome} in {counted(sum(cell.runs for cell in cells), 'run')}"
    else:
        words = f"held in {counted(runs, 'run')}, at most {percent(share.high)} at 95 %"
    exercised = sum(min((family.exercised for family in cell.exercised.values()), default=0) for cell in saying)
    return Accumulated(key=key, nights=len(cells), runs=runs, exercised=exercised, sentence=words)


def _each_once(cells: Sequence[tuple[int | None, Cell]]) -> list[Cell]:
    """Cells of nights with their seeds, in virtual time one of each seed."""
    order = sorted(cells, key=lambda item: (item[1].runs_lost > 0, item[1].runs_judged))
    repeated = {seed: cell for seed, cell in order if seed is not None and cell.world == Simulated.name}
    return [*repeated.values(), *(cell for seed, cell in cells if seed not in repeated)]


def cells_before(nights: Sequence[Night], results: Results) -> Earlier:
    """The cells of ``results`` as earlier nights showed them with the same settings."""
    return {
        key: [
            DatedCell(night.began, before)
            for night in nights
            if (before := night.results.cells.get(key)) is not None and not differing(before, cell).settings
        ]
        for key, cell in results.cells.items()
    }


def known_findings(nights: Iterable[Night]) -> frozenset[str]:
    """Identities of what nothing permits and an earlier night found."""
    findings = (finding for night in nights for finding in (night.results.findings or {}).values())
    return frozenset(finding.identity for finding in findings if not finding.permitted)
