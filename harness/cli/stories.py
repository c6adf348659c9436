"""`ackproof stories`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from harness.cli.terminal import State, takes_json
from harness.errors import EXIT_BROKEN, EXIT_HELD, PlanError
from harness.stories import (
    COLUMNS,
    Cell,
    Play,
    Story,
    Trace,
    TraceEntry,
    chosen_columns,
    known_stories,
    perform_table,
    read_story,
)
from workloads import unknown_name

_PLAYS: Final = {Play.PLAYED: "", Play.TRIED: "in vain: ", Play.FAILED: "FAILED: "}
_MS: Final = 1000


@click.command()
@click.argument("stories", nargs=-1, metavar="[STORY]...")
@click.option("--settings", "columns", multiple=True, metavar="COLUMN", help="Only these columns (all/2/E, 'all/2*').")
@click.option("--workers", type=click.IntRange(1), help="Processes at a time; by default as many as there are cores.")
@takes_json
def stories(state: State, stories: Sequence[str], *, columns: Sequence[str], workers: int | None) -> int:
    """Perform scripted stories in virtual time, and compare what comes of them with what is expected.

    A STORY is a number (S09) or a file of your own (docs/stories.md); none: all of them. One story in one column is
    shown step by step. Exit code 1 if anything is not as expected; a file may expect nothing.

    \b
    L  an acknowledged record is lost        .  nothing is
    *  no leader until a dead broker returns  X  no leader at all
    V  replicas differ                        c  what a consumer had read has changed
    D  a record stands twice                  R  a producer's records in the wrong order
    """
    chosen = _stories(stories)
    names = _columns(columns)
    cells = list(perform_table(chosen, names, workers or os.cpu_count() or 1))
    if state.as_json:
        for cell in cells:
            state.json(cell)
    elif len(cells) == 1:
        for line in _steps(chosen[0], cells[0]):
            state.say(line)
    else:
        _show_table(state, chosen, cells)
    return EXIT_BROKEN if any(cell.disagreements for cell in cells) else EXIT_HELD


def _stories(words: Sequence[str]) -> list[Story]:
    known = known_stories()
    found = []
    for word in words or known:
        if word in known:
            found.append(known[word])
        elif Path(word).suffix == ".toml" or Path(word).exists():
            found.append(read_story(Path(word)))
        else:
            raise PlanError(f"{unknown_name('story', word, known)} (or name a file, such as my.toml)")
    return found


def _columns(patterns: Sequence[str]) -> tuple[str, ...]:
    try:
        return chosen_columns(patterns or ["*"])
    except KeyError as error:
        raise PlanError(str(error.args[0])) from error


def _show_table(state: State, chosen: Sequence[Story], cells: Sequence[Cell]) -> None:
    performed = [name for name in COLUMNS if any(cell.column == name for cell in cells)]
    found = {(cell.story, cell.column): cell for cell in cells}
    rows = [[story.number, *(_shown(found[story.number, name]) for name in performed)] for story in chosen]
    state.table(["story", *performed], rows)
    wrong = [cell for cell in cells if cell.disagreements]
    for cell in wrong:
        for sentence in cell.disagreements:
            state.say(f"{cell.story} {cell.column}: {sentence}")
    missing = [name for name in COLUMNS if COLUMNS[name].settings is None]
    if missing:
        state.say(f"not performed, because the reference broker has no such rules: {', '.join(missing)}")
    if silent := [story.number for story in chosen if not story.expects]:
        state.say(f"nothing is expected of: {', '.join(silent)}")
    state.say(f"{len(cells)} cells, {len(cells) - len(wrong)} as expected, {len(wrong)} not")


def _shown(cell: Cell) -> str:
    return f"{cell.letters}!" if cell.disagreements else cell.letters


def _steps(story: Story, cell: Cell) -> Iterator[str]:
    yield f"{story.number} {story.title}; column {cell.column}"
    for entry in cell.trace.entries:
        yield from _step(cell.trace, entry)
    lost = ", ".join(cell.lost) or "nothing"
    yield f"acknowledged: {', '.join(cell.acknowledged)}; lost: {lost}; seen: {', '.join(cell.signs) or 'nothing else'}"
    yield from cell.disagreements or (("as expected",) if story.expects else ())


def _step(trace: Trace, entry: TraceEntry) -> Iterator[str]:
    note = f"  -> {_PLAYS[entry.play]}{entry.note}" if entry.note or entry.play is not Play.PLAYED else ""
    isr = " ".join(map(str, entry.isr)) or "empty"
    leader = "nobody leads" if entry.leader is None else f"{entry.leader} leads"
    yield f"{entry.ended_us / _MS:9.1f} ms  {entry.text}{note}"
    yield f"              controller: {leader}, leader epoch {entry.leader_epoch}, ISR {isr}"
    names = {record.value: name for name, record in trace.records.items()}
    for replica in entry.replicas:
        log = " ".join(_placed(names, replica.records)) or "empty"
        end = f"log end offset {replica.log_end}"
        if replica.leader_epoch is None:
            yield f"              {replica.node} {'starts' if replica.running else 'is dead'}: {end}, log: {log}"
            continue
        seen = f"{end}, high watermark {replica.high_watermark}, leader epoch {replica.leader_epoch}"
        own = f", ISR {' '.join(map(str, replica.isr))}" if replica.isr is not None else ""
        yield f"              {replica.node} {'leads' if replica.leading else 'follows'}: {seen}{own}, log: {log}"


def _placed(names: dict[int, str], records: Iterable[tuple[int, int, int]]) -> Iterator[str]:
    """Each record with the leader epoch under which it was appended."""
    for _, epoch, value in records:
        yield f"{names.get(value, '(fresh)')}/{epoch}"
