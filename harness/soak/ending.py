"""The end of a soak: matrix, report and exit code, from its verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from checkers import Matrix, VerdictLine, build_matrix
from harness.campaign import witness, write_report
from harness.errors import EXIT_HARNESS
from harness.machine import this_machine, versions
from harness.plan import Plan
from harness.progress import Progress
from harness.records.campaign_record import CampaignRecord, WorldRuns, write_campaign_record
from harness.records.files import MATRIX_FILE, REPORT_FILE, write_json
from harness.soak.book import Account, Book
from harness.soak.ledger import read_verdicts
from harness.soak.record import Asked

EXIT_INTERRUPTED = 130


class Ending(NamedTuple):
    """How a soak ended: sentences for its last lines, the exit code, and the report's path."""

    sentences: tuple[str, ...]
    exit_code: int
    report: Path


def end(account: Account, asked: Asked, plan: Plan, why: str, progress: Progress) -> Ending:
    """Write matrix and report of everything that was judged; ``why`` is what ended the soak before its time."""
    directory, book = account.directory, account.book
    matrix = build_matrix(_kept_first(directory, book))
    write_json(directory / MATRIX_FILE, matrix)
    write_campaign_record(directory, campaign_record(asked, plan, book, "interrupted" if why else "completed"))
    if matrix.cells:
        witness(directory, progress)
        write_report(directory, progress)
    return Ending(tuple(sentences(book, matrix, why)), exit_code(book, matrix, why), directory / REPORT_FILE)


def exit_code(book: Book, matrix: Matrix, why: str) -> int:
    """70 if the harness failed at something, 1 if a promise was broken, 130 if it was stopped, else the matrix's."""
    if book.failures:
        return EXIT_HARNESS
    if matrix.verdict.exit_code == 1 or not why:
        return matrix.verdict.exit_code
    return EXIT_INTERRUPTED


def sentences(book: Book, matrix: Matrix, why: str) -> Iterator[str]:
    """What was done, what ended it, and the verdict."""
    dropped = f"{book.dropped:,} of them dropped after judging"
    waiting = len(book.planned) + len(book.performed)
    rest = f", {waiting} left for --resume" if waiting else ""
    tried = f"{book.tried} tries of findings; {book.elapsed_s:,.0f} s of work"
    yield f"{book.judged:,} runs judged, {dropped}{rest}; {tried}."
    yield from (f"The harness failed: {failure}." for failure in book.failures)
    if why and why not in book.failures:
        yield f"Ended before its time: {why}."
    yield matrix.verdict.sentence


def _kept_first(directory: Path, book: Book) -> Iterator[VerdictLine]:
    """All verdicts, each once; those whose files are there first, so that they are the witnesses."""
    there = {one.planned.place for one in book.shelf.kept.values()}
    yield from (line for line in read_verdicts(directory) if line.history in there)
    yield from (line for line in read_verdicts(directory) if line.history not in there)


def campaign_record(asked: Asked, plan: Plan, book: Book, status: str) -> CampaignRecord:
    """``campaign.json`` of a soak: a campaign whose runs were not planned before."""
    completed = {world.world.name: book.ended[world.world.name, "completed"] for world in plan.worlds}
    failed = {world.world.name: book.ended[world.world.name, "harness-failed"] for world in plan.worlds}
    return CampaignRecord(
        name=asked.name,
        seed=asked.seed,
        status=status,
        began=asked.began,
        command=asked.command,
        machine=this_machine(),
        versions=versions(),
        worlds={
            world.world.name: WorldRuns(
                planned=completed[world.world.name] + failed[world.world.name],
                completed=completed[world.world.name],
                failed=failed[world.world.name],
                wall_ms=book.wall_ms[world.world.name],
            )
            for world in plan.worlds
        },
    )
