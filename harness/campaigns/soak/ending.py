"""The end of a soak: matrix, report, what became of earlier findings, and the exit code, from its verdicts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from checkers import Matrix, VerdictLine, accepting, counted, matrix_of
from harness.campaigns.campaign import FAILED_SHARE_MAX, witness, world_runs, write_report
from harness.campaigns.comparison import (
    CellAnomaly,
    Results,
    accepted_sentences,
    cell_anomalies_of,
    cells_by_status,
    finding_sentences,
    offered_sentences,
    results_of,
)
from harness.campaigns.soak.ledger import Sampled, read_ledger, read_verdicts
from harness.campaigns.soak.nights import NIGHT_FILE, Night, NightRecord, accumulated, cells_before
from harness.campaigns.soak.soak_file import SoakRequest
from harness.campaigns.soak.state import RecordedState, SoakState
from harness.campaigns.soak.trend import write_trend
from harness.ground.errors import EXIT_BROKEN, EXIT_HARNESS, ResultsError
from harness.ground.machine.versions import this_machine, versions
from harness.ground.progress import Progress
from harness.plan import Plan
from harness.records.accepted_file import read_accepted
from harness.records.campaign_record import CampaignRecord, WorldRuns, write_campaign_record
from harness.records.files import MATRIX_FILE, REPORT_FILE, VERDICTS_FILE, write_json

#: A shell's exit code for a program that Ctrl-C ended.
EXIT_INTERRUPTED: Final = 130
#: Cells whose nights are said; all of them are on the page.
CELLS_MAX: Final = 12


class Ending(NamedTuple):
    """The end of a soak: sentences for its last lines, the exit code, and the report's path, None without a report."""

    sentences: tuple[str, ...]
    exit_code: int
    report: Path | None


def end(
    recorded: RecordedState, asked: SoakRequest, plan: Plan, why: str, *, earlier: Sequence[Night], progress: Progress
) -> Ending:
    """Write matrix, report and trend of everything that was judged; ``why`` is what ended the soak before its time.

    Where there is no room for the report, a sentence says so, and the exit code is the same.
    """
    directory, state = recorded.directory, recorded.state
    results = results_of(str(directory), _kept_first(directory, state))
    results = results.with_cells(
        accepting(results.cells.values(), read_accepted(directory), asked.began, cells_before(earlier, results))
    )
    cells = list(results.cells.values())
    matrix = matrix_of(cells, len(plan.cells))
    night = _night(directory, asked, state, results)
    before = [night.results for night in earlier]
    kinds = cell_anomalies_of(before, results)
    lines = [*sentences(state, why), *_without_run(plan.cells, results.cells)]
    if earlier:
        lines += _memory([*earlier, night], kinds)
    lines += [*finding_sentences(kinds, str(directory), cells), *accepted_sentences(cells)]
    record = campaign_record(asked, plan, state, "interrupted" if why else "completed")
    lines += offered_sentences(directory, cells, record)
    lines += _tried(state)
    report = None
    try:
        write_json(directory / MATRIX_FILE, matrix)
        write_json(directory / NIGHT_FILE, night.record)
        write_campaign_record(directory, record)
        if matrix.cells:
            witness(directory, progress)
            write_report(directory, progress)
            report = directory / REPORT_FILE
        if earlier:
            lines.append(f"All nights: {write_trend(directory, [*earlier, night], kinds)}")
    except ResultsError as error:
        lines.append(f"The report cannot be written: {error}.")
    return Ending((*lines, matrix.verdict.sentence), exit_code(state, matrix, why), report)


def exit_code(state: SoakState, matrix: Matrix, why: str) -> int:
    """70 if the harness failed at something, or at many runs, 1 if a promise was broken, 130 if it was stopped, else
    the matrix's.
    """
    if state.failures or any(failed > FAILED_SHARE_MAX * ended for _, failed, ended in _failed(state)):
        return EXIT_HARNESS
    if matrix.verdict.exit_code == EXIT_BROKEN or not why:
        return matrix.verdict.exit_code
    return EXIT_INTERRUPTED


def sentences(state: SoakState, why: str) -> Iterator[str]:
    """Say what was done, and what ended it."""
    waiting = len(state.planned) + len(state.performed)
    rest = f", {waiting} left for --resume" if waiting else ""
    tried = f"; {counted(state.tried, 'try', 'tries')} of findings" if state.tried else ""
    sessions = "" if state.sessions == 1 else f" in {state.sessions} sessions"
    unjudged = f" and {state.unjudged:,} that could not be" if state.unjudged else ""
    done = f"{counted(state.judged, 'run')} judged{unjudged}, {state.dropped:,} of them dropped after judging{rest}"
    yield f"{done}{tried}; {state.elapsed_s:,.0f} s of work{sessions}."
    yield from (f"The harness failed: {failure}." for failure in state.failures)
    for world, failed, ended in _failed(state):
        yield f"{failed:,} of {ended:,} runs in the {world} world failed in the harness, so they say nothing."
    if why and why not in state.failures:
        yield f"Ended before its time: {why}."


def _failed(state: SoakState) -> Iterator[tuple[str, int, int]]:
    """The worlds whose runs failed in the harness: how many failed, and how many ended."""
    for (world, status), failed in state.ended.items():
        if status != "completed":
            yield world, failed, sum(count for (name, _), count in state.ended.items() if name == world)


def _without_run(planned: Sequence[str], judged: Container[str]) -> Iterator[str]:
    """Name the cells without a judged run."""
    if without := [cell for cell in planned if cell not in judged]:
        more = f" and {len(without) - CELLS_MAX} more" if len(without) > CELLS_MAX else ""
        yield f"{len(without)} of {len(planned)} cells had no run judged: {', '.join(without[:CELLS_MAX])}{more}."


def _tried(state: SoakState) -> Iterator[str]:
    """Say how often findings were shown again by their seeds; those that always were are a number."""
    steady = 0
    for turn, tries in state.tries.items():
        if all(tries):
            steady += 1
            continue
        shown = [answer for answer in tries if answer is not None]
        unknown = f"; {len(tries) - len(shown)} could not be judged" if len(shown) < len(tries) else ""
        sought, run = ", ".join(sorted(state.sought[turn])), state.places[turn]
        again = "it" if len(state.sought[turn]) == 1 else "one of them"
        count = f"{sum(shown)} of {counted(len(shown), 'try', 'tries')} from its seed showed {again} again"
        flaky = "" if all(shown) else "flaky: "
        yield f"{flaky}{run} ({sought}): {count}{unknown}."
    if steady:
        yield f"Tried again from their seeds: {counted(steady, 'run')} with findings; every try showed some again."


def _memory(nights: Sequence[Night], kinds: Sequence[CellAnomaly]) -> Iterator[str]:
    """Sum up all nights: their cells first, then their findings."""
    cells = accumulated(nights)
    yield from (f"{cell.key}: {cell.sentence} ({counted(cell.nights, 'night')})." for cell in cells[:CELLS_MAX])
    if len(cells) > CELLS_MAX:
        yield f"... and {len(cells) - CELLS_MAX} more cells."
    earlier = counted(len(nights) - 1, "earlier night")
    yield f"Findings that nothing permits, after {earlier}: {cells_by_status(kinds)}."


def _night(directory: Path, asked: SoakRequest, state: SoakState, results: Results) -> Night:
    samples = [entry for entry in read_ledger(directory) if isinstance(entry, Sampled)]
    record = NightRecord(
        began=asked.began,
        elapsed_s=state.elapsed_s,
        memory_bytes=max((sample.memory.total for sample in samples), default=0),
        disk_bytes=max((sample.disk_bytes for sample in samples), default=0),
        verdicts_bytes=(directory / VERDICTS_FILE).stat().st_size,
        findings=results.findings or {},
    )
    return Night(results=results, began=asked.began, seed=asked.seed, record=record)


def _kept_first(directory: Path, state: SoakState) -> Iterator[VerdictLine]:
    """All verdicts, each once; those whose files are there first, so that they are the witnesses."""
    kept = {run.planned.directory for run in state.kept_runs.kept.values()}
    yield from (line for line in read_verdicts(directory) if line.history in kept)
    yield from (line for line in read_verdicts(directory) if line.history not in kept)


def campaign_record(asked: SoakRequest, plan: Plan, state: SoakState, status: str) -> CampaignRecord:
    """``campaign.json`` of a soak: a campaign whose runs were not planned before."""
    worlds: dict[str, WorldRuns] = {}
    for world in plan.worlds:
        name = world.world.name
        completed, failed = state.ended[name, "completed"], state.ended[name, "harness-failed"]
        counted = world_runs(world.world, completed + failed)
        counted.completed, counted.failed, counted.wall_ms = completed, failed, state.wall_ms[name]
        worlds[name] = counted
    return CampaignRecord(
        name=asked.name,
        plan=asked.plan,
        seed=asked.seed,
        status=status,
        began=asked.began,
        command=asked.command,
        machine=this_machine(),
        versions=versions(),
        worlds=worlds,
        cells=len(plan.cells),
    )
