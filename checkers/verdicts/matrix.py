"""The verdict on a whole campaign: one sentence, one exit code, and ``matrix.json`` for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from checkers.verdicts.cells import Cell, build_cells
from checkers.verdicts.judgement import VerdictLine
from checkers.verdicts.outcome import OF_CELLS, Outcome
from checkers.words import counted
from workloads import spelled

#: Raised whenever a field of matrix.json is removed or changes its meaning; new fields do not raise it.
MATRIX_VERSION = 2

#: Values of ``acks``, the one that promises most first.
STRONGEST_FIRST = ("all", "1", "0")


class Losses(msgspec.Struct, frozen=True):
    """Acknowledged writes that are gone, of all cells.

    Attributes:
        against_promise: writes of runs whose settings and faults permit no loss.
        permitted: the others by ``acks``, the strongest first; only those that occur.
    """

    against_promise: int
    permitted: dict[str, int]


class Summary(msgspec.Struct, frozen=True):
    """The verdict on a campaign.

    Attributes:
        sentence: for the last lines of a terminal and the head of the report.
        exit_code: 0 nothing broken but what is accepted, 1 a promise was broken or the log did not come back, 2 it is
            not known.
        outcomes: number of cells by outcome; every outcome is named. A cell of the plan without a run is not exercised.
        losses: lost writes, those of broken promises apart from those that no promise covered.
    """

    sentence: str
    exit_code: int
    outcomes: dict[str, int]
    losses: Losses


class Matrix(msgspec.Struct, frozen=True):
    """All cells of a campaign. ``left_out`` has the runs that are in no cell, by path, with the reason."""

    version: int
    verdict: Summary
    cells: list[Cell]
    left_out: dict[str, str] = {}

    def left_out_sentences(self) -> list[str]:
        """A sentence for each run that is left out."""
        return [f"The run {run} is left out: {why}." for run, why in self.left_out.items()]


def summarise(cells: Sequence[Cell], planned: int = 0, left_out: int = 0) -> Summary:
    """The sentence and exit code of all cells; the plan has ``planned`` cells (0: not known).

    A campaign in which nothing was exercised is unknown, not clean. So is one with a cell that had no run, and one
    whose runs are ``left_out``, because it is not known what they showed.
    """
    outcomes = Counter[str](dict.fromkeys(OF_CELLS, 0))
    outcomes.update(cell.outcome for cell in cells)
    outcomes[Outcome.NOT_EXERCISED] += max(0, planned - len(cells))
    head, exit_code = _head(cells, outcomes, left_out)
    losses = losses_of(cells)
    return Summary(f"{head} {_work(cells)} {_lost(losses)}{_skipped(cells)}", exit_code, dict(outcomes), losses)


def losses_of(cells: Sequence[Cell]) -> Losses:
    """The losses in all cells."""
    permitted = dict.fromkeys(STRONGEST_FIRST, 0)
    for cell in cells:
        permitted[spelled(cell.settings["acks"])] += cell.lost - cell.lost_against_promise
    return Losses(
        against_promise=sum(cell.lost_against_promise for cell in cells),
        permitted={acks: lost for acks, lost in permitted.items() if lost},
    )


def build_matrix(lines: Iterable[VerdictLine], planned: int = 0, left_out: Mapping[str, str] | None = None) -> Matrix:
    """The matrix of a campaign from the lines of its ``verdicts.jsonl``; its plan has ``planned`` cells."""
    return matrix_of(build_cells(lines), planned, left_out)


def matrix_of(cells: list[Cell], planned: int = 0, left_out: Mapping[str, str] | None = None) -> Matrix:
    """The matrix that has these cells; the plan has ``planned`` cells (0: not known)."""
    missing = dict(left_out or {})
    return Matrix(MATRIX_VERSION, summarise(cells, planned, len(missing)), cells, missing)


def settings_words(label: Mapping[str, object]) -> str:
    """Settings as one line: ``acks=1, min.insync.replicas=2``."""
    return ", ".join(f"{name}={spelled(value)}" for name, value in label.items()) or "settings not known"


def _head(cells: Sequence[Cell], outcomes: Counter[str], left_out: int) -> tuple[str, int]:
    of_all = f"of {counted(outcomes.total(), 'cell')}"
    broken = [cell for cell in cells if cell.outcome is Outcome.BROKEN_PROMISE and not cell.excused]
    if broken:
        more = f", and in {counted(len(broken) - 1, 'more cell')}" if len(broken) > 1 else ""
        accused = _accusation(broken[0])
        sentence = f"A promise was broken in {len(broken)} {of_all}: {accused}{more}."
        return sentence, Outcome.BROKEN_PROMISE.exit_code
    stalled = [cell for cell in cells if cell.outcome is Outcome.STALLED and not cell.excused]
    if stalled:
        where = f"{settings_words(stalled[0].label)} under {stalled[0].family} ({stalled[0].world})"
        sentence = f"The log did not come back in {len(stalled)} {of_all}: {where}, {stalled[0].note}."
        return sentence, Outcome.STALLED.exit_code
    held, lost, rest = outcomes[Outcome.HELD], outcomes[Outcome.PERMITTED_LOSS], _rest(outcomes, left_out)
    excused = sum(cell.excused for cell in cells)
    accepted = f", apart from accepted findings in {excused}" if excused else ""
    if rest or not held + lost + excused:
        judged = held + lost + excused
        sentence = f"Unknown: {judged} {of_all} could be judged, and in these no promise was broken{accepted}"
        return f"{sentence}{rest}.", Outcome.UNKNOWN.exit_code
    weak = sum(cell.outcome is Outcome.HELD and cell.loss_permitted for cell in cells)
    kept = (
        (held - weak, "held"),
        (weak, "lost nothing though loss is permitted"),
        (lost, "lost acknowledged writes as their settings permit"),
    )
    parts = [[str(count), words] for count, words in kept if count]
    if not parts:
        return f"No promise was broken{accepted} {of_all}.", Outcome.HELD.exit_code
    parts[0].insert(1, of_all)
    sentence = f"No promise was broken{accepted}: {', '.join(' '.join(part) for part in parts)}."
    return sentence, Outcome.HELD.exit_code


def _rest(outcomes: Counter[str], left_out: int) -> str:
    """Name what keeps the verdict unknown; "" where nothing does."""
    named = [f"{outcomes[name]} {name}" for name in (Outcome.UNKNOWN, Outcome.NOT_EXERCISED) if outcomes[name]]
    named += [f"{counted(left_out, 'run')} left out"] if left_out else []
    return f" ({', '.join(named)})" if named else ""


def _accusation(cell: Cell) -> str:
    findings = ", ".join(f"{count:,} {anomaly}" for anomaly, count in cell.broken.items())
    return f"{settings_words(cell.label)} under {cell.family} ({cell.world}): {findings}"


def _work(cells: Sequence[Cell]) -> str:
    runs = sum(cell.runs_judged for cell in cells)
    in_fault = sum(cell.acknowledged_in_fault for cell in cells)
    return f"{counted(runs, 'run')} judged, {in_fault:,} writes acknowledged during faults."


def _skipped(cells: Sequence[Cell]) -> str:
    """The records that consumer groups committed and did not process, where their settings permit that."""
    skipped = sum(cell.permitted.get("group-skip", 0) for cell in cells)
    return f" Skipped by consumer groups, as permitted: {skipped:,}." if skipped else ""


def _lost(losses: Losses) -> str:
    """Keep the losses of acks=0 apart: they must not hide the rest."""
    if not losses.against_promise and not losses.permitted:
        return "No acknowledged write was lost."
    against = f"Lost against a promise: {losses.against_promise:,}"
    by_acks = ", ".join(f"{lost:,} with acks={acks}" for acks, lost in losses.permitted.items())
    return f"{against}; as permitted: {by_acks}." if by_acks else f"{against}."
