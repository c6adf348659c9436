"""The command `ackproof stories`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli.terminal import Terminal, assigned, takes_json
from harness.cli.workers import chosen_workers, master_option, workers_option
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, PlanError
from harness.records.files import files_of, write_file
from harness.runs.stories import (
    Column,
    Sign,
    Story,
    StoryCell,
    chosen_columns,
    column_named,
    explained,
    known_stories,
    own_column,
    perform_table,
    read_story,
    step_lines,
)
from workloads import SettingsError, unknown_name


@click.command()
@click.argument("stories", nargs=-1, metavar="[STORY]...")
@click.option(
    "--settings",
    "columns",
    multiple=True,
    metavar="COLUMN",
    help="Only these columns (all/2/E, 'all/2*'), or settings of your own (acks=1,min.insync.replicas=2).",
)
@workers_option
@master_option
@click.option(
    "--explain", is_flag=True, help="Write a page with a diagram of the one cell here, such as S09-all-2-E.html."
)
@click.option("--list", "listed", is_flag=True, help="Only name the stories: number and title.")
@takes_json
def stories(
    terminal: Terminal,
    stories: Sequence[str],
    *,
    columns: Sequence[str],
    workers: int | None,
    master: str | None,
    explain: bool,
    listed: bool,
) -> int:
    """Perform scripted stories, and say what was not as expected.

    They are performed in virtual time. A STORY is a number (S09) or a file of your own (docs/guides/stories.md);
    none: all of them. One story in one column is shown step by step. Exit code 1 if anything is not as expected; a
    file may expect nothing.

    \b
    L  an acknowledged record is lost         .  nothing is wrong
    *  no leader until a dead broker returns  X  no leader at all
    V  replicas differ                        c  records that were read changed
    D  a record is in the log twice           R  records in the wrong order
    K  a deleted key is back                  A  an aborted record was read
    E  one was read before its commit         T  a transaction counts in part
    Z  a superseded producer went on          H  a transaction stays open
    S  a group skips a record                 P  a record is processed again
    B  a group forgets a commit               O  a replaced member commits
    +  another anomaly
    """
    chosen = _stories(stories)
    names = _columns(columns)
    if not stories:
        chosen = [story for story in chosen if any(map(story.takes, names))]
    for story in chosen:
        if not any(map(story.takes, names)):
            raise PlanError(f"{story.number} is performed in other columns; name one of {', '.join(story.columns)}")
    if listed:
        return _list(terminal, chosen)
    if explain:
        if master is not None:
            raise PlanError("--explain performs its one cell on this machine; leave --master out")
        return _explain(terminal, chosen, names)
    cells = []
    for cell in perform_table(chosen, names, chosen_workers(workers, master)):
        cells.append(cell)
        if terminal.as_json:
            terminal.json(cell)
    if not terminal.as_json:
        _show(terminal, chosen, cells)
    return EXIT_BROKEN if any(cell.disagreements for cell in cells) else EXIT_HELD


def _list(terminal: Terminal, chosen: Sequence[Story]) -> int:
    for story in chosen:
        terminal.answer({"story": story.number, "title": story.title}, [f"{story.number}  {story.title}"])
    return EXIT_HELD


def _explain(terminal: Terminal, chosen: Sequence[Story], names: Sequence[Column]) -> int:
    """One cell step by step, and a page about it in the current directory."""
    if len(chosen) != 1 or len(names) != 1:
        raise PlanError("--explain is about one story in one column; name both: S09 --settings all/2/E --explain")
    cell, page = explained(chosen[0], names[0])
    file = Path(f"{cell.story}-{'own' if names[0].own else cell.column.replace('/', '-')}.html")
    with files_of(file):
        write_file(file, page.encode())
    terminal.answer(cell, [*step_lines(chosen[0], cell), f"the diagram: {file}"])
    return EXIT_BROKEN if cell.disagreements else EXIT_HELD


def _stories(words: Sequence[str]) -> list[Story]:
    stories = known_stories()
    chosen = []
    for word in words or stories:
        if word in stories:
            chosen.append(stories[word])
        elif Path(word).suffix == ".toml" or Path(word).exists():
            chosen.append(read_story(Path(word)))
        else:
            raise PlanError(f"{unknown_name('story', word, stories)} (or name a file, such as my.toml)")
        if chosen[-1].number in [story.number for story in chosen[:-1]]:
            raise PlanError(f"two stories have the number {chosen[-1].number}; give one of them another number")
    return chosen


def _columns(texts: Sequence[str]) -> list[Column]:
    """The columns that are named, then those of settings of one's own."""
    own = [own_column(assigned([text])) for text in texts if "=" in text]
    try:
        for column in own:
            column.chosen({})
    except SettingsError as error:
        raise PlanError(str(error)) from error
    patterns = [text for text in texts if "=" not in text]
    return [*map(column_named, _named(patterns) if patterns or not own else ()), *own]


def _named(patterns: Sequence[str]) -> tuple[str, ...]:
    try:
        return chosen_columns(patterns or ["*"])
    except KeyError as error:
        if several := next((pattern for pattern in patterns if "," in pattern), ""):
            repeated = " ".join(f"--settings {name.strip()}" for name in several.split(","))
            raise PlanError(f"{several} names several columns; repeat the option: {repeated}") from error
        raise PlanError(str(error.args[0])) from error


def _show(terminal: Terminal, chosen: Sequence[Story], cells: Sequence[StoryCell]) -> None:
    """One cell step by step, several as a table."""
    if len(cells) > 1:
        _show_table(terminal, chosen, cells)
        return
    for line in step_lines(chosen[0], cells[0]):
        terminal.say(line)


def _show_table(terminal: Terminal, chosen: Sequence[Story], cells: Sequence[StoryCell]) -> None:
    by_place = {(cell.story, cell.column): cell for cell in cells}
    tables: dict[tuple[str, ...], list[str]] = {}
    for story in chosen:
        tables.setdefault(tuple(story.columns), []).append(story.number)
    for numbers in tables.values():
        performed = list(dict.fromkeys(cell.column for cell in cells if cell.story in numbers))
        terminal.table(
            ["story", *performed],
            [[number, *(_shown(by_place[number, name]) for name in performed)] for number in numbers],
        )
    terminal.say(_legend("".join(cell.seen.letters for cell in cells)))
    wrong = [cell for cell in cells if cell.disagreements]
    columns_of: dict[tuple[str, str], list[str]] = {}
    for cell in wrong:
        for sentence in cell.disagreements:
            columns_of.setdefault((cell.story, sentence), []).append(cell.column)
    for (number, sentence), columns in columns_of.items():
        everywhere = len(columns) == sum(cell.story == number for cell in cells) > 1
        terminal.say(f"{number} {f'in all {len(columns)} columns' if everywhere else ', '.join(columns)}: {sentence}")
    if wrong:
        terminal.say("to see a cell step by step: ackproof stories STORY --settings COLUMN")
    if silent := [story.number for story in chosen if not story.expects]:
        terminal.say(f"without an expected outcome: {', '.join(silent)}")
    terminal.say(f"{len(cells)} cells, {len(cells) - len(wrong)} as expected, {len(wrong)} not")


def _legend(letters: str) -> str:
    """The letters that a table has, and what each says."""
    meanings = {
        "L": "a record is lost",
        "S": "a group skips a record",
        **{each.letter: each.value for each in Sign},
        "+": "another anomaly",
        ".": "none of these",
    }
    return "; ".join(f"{letter}: {meaning}" for letter, meaning in meanings.items() if letter in letters)


def _shown(cell: StoryCell) -> str:
    return f"{cell.seen.letters}!" if cell.disagreements else cell.seen.letters
