"""``verdicts.jsonl`` and ``matrix.json`` of a campaign: written when its histories were checked, read by all others.

A line is a :class:`checkers.verdicts.judgement.VerdictLine`: the verdict on one history and, of a run, its judgement.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from checkers import (
    ANOMALIES,
    Cell,
    Matrix,
    RunFacts,
    Verdict,
    VerdictLine,
    accepting,
    build_matrix,
    matrix_of,
    still_back,
)
from harness.ground.errors import NamedWronglyError, ResultsError
from harness.plan import RunSpec
from harness.records import files
from harness.records.accepted_file import read_accepted
from harness.records.campaign_record import planned_cells, read_campaign_record
from harness.records.run_record import RunRecord, read_record
from workloads import Settings, unknown_name

#: Verdicts as they are written, and as they are kept where disk is dear (``xz verdicts.jsonl``).
VERDICTS_FILES: Final = (files.VERDICTS_FILE, f"{files.VERDICTS_FILE}.xz")


class JudgedRuns(NamedTuple):
    """The runs of a campaign, by their path in it (``runs/...``): their lines, and why others are ``left_out``."""

    lines: dict[str, VerdictLine]
    left_out: dict[str, str]


class WrittenVerdicts(NamedTuple):
    """A file of verdicts; ``kept`` of them are of an earlier check, whose histories cannot be read now."""

    file: Path
    kept: int = 0


def facts_of(spec: RunSpec) -> RunFacts:
    """Return the facts of a run that its judgement needs."""
    return RunFacts(
        cell=spec.cell,
        family=spec.family,
        world=spec.world.name,
        seed=spec.seed,
        settings=spec.chosen().to_mapping(),
        client_defaults=spec.client_defaults,
        exercised_min=spec.faults.exercised_min,
        at_stake_min=spec.faults.at_stake_min,
    )


def write_lines(file: Path, lines: Iterable[VerdictLine]) -> WrittenVerdicts:
    """Write ``lines`` into ``file``, which may exist.

    A verdict on a history that was read outlives the history: it is kept if that history
    is gone or cannot be read now.
    """
    earlier = _earlier(file)
    content, kept = [], 0
    for line in lines:
        before = earlier.get(line.history)
        keeps = before is not None and line.says_nothing and not before.says_nothing
        kept += keeps
        content.append(msgspec.json.encode(before if keeps else line) + b"\n")
    files.write_file(file, b"".join(content))
    return WrittenVerdicts(file, kept)


def _earlier(file: Path) -> dict[str, VerdictLine]:
    """Read the verdicts in ``file`` by history; lines that this version does not understand are ignored."""
    earlier: dict[str, VerdictLine] = {}
    for text in file.read_bytes().splitlines() if file.is_file() else ():
        with suppress(ResultsError):
            line = read_line(text, file, "it is written again")
            earlier[line.history] = line
    return earlier


def read_lines(directory: Path) -> JudgedRuns:
    """The judged runs of the campaign in ``directory``.

    A line of an earlier version, which has no judgement, is judged from its run's ``run.json``; a run without a line is
    unknown, and says why. One whose ``run.json`` cannot be read either is left out; so are histories of other tools,
    which are in no cell.

    Raises:
        NamedWronglyError: ``directory`` is not a campaign.
        ResultsError: it was not checked yet, or a file of it cannot be read; the text says which and what to do.
    """
    if not any((directory / file).exists() for file in (*VERDICTS_FILES, files.CAMPAIGN_FILE, "runs")):
        raise NamedWronglyError(f"{directory} is not a campaign; name a directory below results/")
    path = verdicts_in(directory)
    if path is None:
        raise ResultsError(f"{directory} holds no {files.VERDICTS_FILE}; {_judging(directory)}")
    lines = {_key(line.history): line for line in _decoded(_texts(path), path)}
    runs = {_key(run.relative_to(directory).as_posix()): run for run in files.run_directories(directory)}
    return _judged(directory, lines, runs)


def _judged(
    directory: Path, lines: Mapping[tuple[str, ...], VerdictLine], runs: Mapping[tuple[str, ...], Path]
) -> JudgedRuns:
    judged = JudgedRuns({}, {})
    # Runs whose files are there come first, so that the witness of a cell is one of them where it can be.
    for key in sorted({*lines, *runs}, key=lambda key: (key not in runs, key)):
        line, run = lines.get(key), runs.get(key)
        if run is not None:
            name = run.relative_to(directory).as_posix()
            if line is None or line.judgement is None:
                try:
                    record = read_record(run)
                except ResultsError as error:  # one damaged file must not take the report of all others with it
                    judged.left_out[name] = str(error)
                    continue
                line = VerdictLine.of(_unjudged(record) if line is None else line, facts_of(record))
            judged.lines[name] = msgspec.structs.replace(line, history=name)
        elif line is not None and line.judgement is not None:
            judged.lines[line.history] = line
    return judged


def verdicts_in(directory: Path) -> Path | None:
    """The file of verdicts in ``directory``, plain or packed; None if it does not exist."""
    return next((path for name in VERDICTS_FILES if (path := directory / name).is_file()), None)


def _texts(path: Path) -> list[bytes]:
    content = files.read_file(path, _judging(path.parent)) or b""
    try:
        return (lzma.decompress(content) if path.suffix == ".xz" else content).splitlines()
    except lzma.LZMAError as error:
        raise ResultsError(f"{path} cannot be unpacked: {error}; restore it, or remove it") from error


def _decoded(texts: Iterable[bytes], path: Path) -> Iterator[VerdictLine]:
    for number, text in enumerate(texts, 1):
        if text.strip():
            yield read_line(text, f"line {number} of {path}", _judging(path.parent))


def read_line(text: bytes, what: object, advice: str) -> VerdictLine:
    """A line of verdicts whose receipts, settings and anomalies are known here; errors name ``what``, with ``advice``.

    Raises:
        ResultsError: it is not such a line.
    """
    with files.understanding(what, advice):
        line = msgspec.json.decode(text, type=VerdictLine)
        if line.run is not None:
            Settings.from_mapping(line.run.settings)
        # Findings of an anomaly that is not known here would be in no count of the matrix.
        if strange := line.counts.keys() - ANOMALIES.keys():
            raise msgspec.ValidationError(unknown_name("anomaly", min(strange), ANOMALIES))
        return line


def _judging(directory: Path) -> str:
    """Say how to get verdicts; a soak deletes runs, so theirs cannot be made again."""
    if (directory / files.LEDGER_FILE).is_file():
        return (
            "the soak deleted most of its runs, so restore the file from a copy; to judge the runs that are left, "
            f"write to another file: ackproof check {directory} --out FILE"
        )
    return f"check its histories first: ackproof check {directory}"


def _key(name: str) -> tuple[str, ...]:
    """The path of a run below ``runs/``, without the directories above: a campaign may be moved after its check."""
    parts = [part for part in Path(name).parts if part != files.HISTORY]
    return tuple(parts[len(parts) - parts[::-1].index("runs") :]) if "runs" in parts else tuple(parts)


def _unjudged(record: RunRecord) -> Verdict:
    ended = record.ended
    why = ended.reason or ("it was killed or is still running" if ended.status == "running" else "it was never checked")
    return Verdict(history="", valid="unknown", reason=f"no verdict: {why}")


def write_matrix(directory: Path) -> Matrix:
    """Write ``matrix.json`` of the campaign in ``directory`` from its verdicts.

    Raises:
        NamedWronglyError, ResultsError: as :func:`read_lines`; or there is no run.
    """
    runs = read_lines(directory)
    planned = planned_cells(directory)
    cells = cells_of_campaign(directory, build_matrix(runs.lines.values()).cells)
    matrix = matrix_of(cells, planned, runs.left_out)
    if not matrix.cells and not (directory / files.CAMPAIGN_FILE).is_file():
        raise NamedWronglyError(f"{directory} holds no run; name a campaign's directory (results/...)")
    files.write_json(directory / files.MATRIX_FILE, matrix)
    return matrix


def read_matrix(directory: Path) -> Matrix:
    """``matrix.json`` of the campaign in ``directory``.

    Raises:
        ResultsError: it is missing or cannot be read.
    """
    return files.read_json(directory / files.MATRIX_FILE, Matrix, f"make it with: ackproof report {directory}")


def cells_of_campaign(directory: Path, cells: Iterable[Cell]) -> list[Cell]:
    """The same cells, held against the ``accepted.toml`` in their campaign's directory.

    What was gone and is back is known to a soak only, which sees earlier nights: its ``matrix.json`` says it.
    """
    if not (acceptances := read_accepted(directory)):
        return list(cells)
    record = read_campaign_record(directory)
    held = accepting(cells, acceptances, record.began if record else "")
    with suppress(ResultsError):
        return still_back(held, read_matrix(directory).cells)
    return held
