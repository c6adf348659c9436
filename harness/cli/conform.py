"""The command `ackproof conform`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from checkers import counted
from harness.cli.hunt import BUGS
from harness.cli.terminal import Terminal, WordType, path_type, takes_json
from harness.ground.errors import (
    EXIT_BROKEN,
    EXIT_HARNESS,
    EXIT_HELD,
    EXIT_UNKNOWN,
    HarnessError,
    HostError,
    NamedWronglyError,
    PlanError,
)
from harness.lab.conform import (
    ELSEWHERE,
    ComparedStep,
    Comparison,
    FreeRun,
    RecordedTrace,
    Word,
    held_run,
    hold,
    performed_elsewhere,
    playable,
    story_of,
    traces_in,
    write_trace,
)
from harness.records.files import CLUSTER_FILE
from harness.runs.stories import Story, chosen_columns, known_stories, read_story
from workloads import unknown_name

#: The world of stories whose world is not named.
WORLD: Final = "kafka"


@click.command()
@click.argument("stories", nargs=-1, metavar="[STORY|FILE|TRACE|RUN]...")
@click.option("--world", type=WordType("world", ELSEWHERE), help=f"Where stories are performed; by default {WORLD}.")
@click.option("--version", default="", help="The release of Apache Kafka; see `ackproof kafka list`.")
@click.option("--settings", "columns", multiple=True, metavar="COLUMN", help="Only these columns; by default all/2.")
@click.option("--save", type=path_type, metavar="DIR", help="Keep what the cluster showed, a trace for each story.")
@click.option(
    "--bug", type=WordType("bug", BUGS), metavar="NAME", help="Plant this bug in the core: it must be noticed."
)
@takes_json
def conform(
    terminal: Terminal,
    stories: Sequence[str],
    *,
    world: str | None,
    version: str,
    columns: Sequence[str],
    save: Path | None,
    bug: str | None,
) -> int:
    """Compare the core with a real cluster, step by step.

    The core is the reference broker's. A STORY (S01), or a FILE of your own (my.toml, docs/guides/stories.md), is
    performed on Apache Kafka, which needs root, or on the reference broker's processes. Without one every story that
    this world can perform is. The core performs it in virtual time, at the same pace. After each step both must show
    the same leader, epochs, ISR, logs and answers. What the checkers find on the cluster is compared with what the
    story's file expects. A TRACE is what --save kept, a file or a directory: it needs no cluster. A RUN is the
    directory of a run on Apache Kafka: the changes of log partitions that its controller logged must be changes that
    the core's controller makes, in some order, and what it refused must be refused. Exit code 0 if every step is the
    same or explained, 1 if not, 70 if a story could not be performed, 2 if nothing was compared, or nothing of a log
    partition.
    """
    named = known_stories() | _own_stories(stories)
    given = {"--world": world, "--version": version, "--settings": columns, "--save": save}
    if save is not None and save.exists() and not save.is_dir():
        raise NamedWronglyError(f"--save {save} is not a directory; name a directory")
    for word in stories:
        if word not in named:
            _refuse(word, [option for option, value in given.items() if value])
    if runs := [Path(word) for word in stories if _is_run(word)]:
        if len(runs) < len(stories):
            raise PlanError("name either runs, or stories and traces, but not both")
        return _hold_runs(terminal, runs, bug or "none")
    results: list[Comparison] = []
    failed: list[str] = []
    chosen = [(word, named.get(word)) for word in stories]
    for trace in _traces(terminal, chosen, (world or WORLD, version), columns, save, failed=failed):
        compared = hold(trace, story_of(trace), bug or "none")
        results.append(compared)
        terminal.answer(compared, _lines(compared))
    steps = sum(len(result.steps) for result in results)
    if not terminal.as_json:
        unexplained = sum(result.count(Word.UNEXPLAINED) for result in results)
        not_performed = f", {len(failed)} not performed" if failed else ""
        terminal.say(
            f"{counted(len(results), 'story', 'stories')}, {counted(steps, 'step')}, "
            f"{unexplained} unexplained{not_performed}"
        )
    if steps and not all(result.conforms for result in results):
        return EXIT_BROKEN
    if failed:
        return EXIT_HARNESS
    return EXIT_HELD if steps else EXIT_UNKNOWN


def _traces(
    terminal: Terminal,
    chosen: Sequence[tuple[str, Story | None]],
    world: tuple[str, str],
    patterns: Sequence[str],
    save: Path | None,
    *,
    failed: list[str],
) -> Iterator[RecordedTrace]:
    """Recorded traces, and those of stories that are performed for it in a world (its name, the release).

    Where no word is ``chosen``, they are all that this world can perform.

    A story that could not be performed goes to ``failed``, and the next one follows, unless this machine cannot offer
    the world, or something was not undone.
    """
    columns = _columns(patterns)
    every = known_stories()
    for word, story in chosen or [(number, every[number]) for number in playable(every.values(), columns, *world)]:
        if story is None:
            yield from traces_in(Path(word))
            continue
        for column in columns:
            try:
                trace = performed_elsewhere(story, column, *world)
            except HostError:
                raise
            except HarnessError as error:
                failed.append(f"{word} {column}: {error}")
                terminal.complain(failed[-1])
                continue
            if _is_own(word):
                trace = msgspec.structs.replace(trace, script=Path(word).read_text(encoding="utf-8"))
            if save is not None:
                terminal.note(f"{write_trace(save, trace)}")
            yield trace


def _hold_runs(terminal: Terminal, runs: Sequence[Path], bug: str) -> int:
    """A line for each log partition of these runs, and the first change or act that does not fit."""
    every: list[FreeRun] = []
    for run in runs:
        for held in held_run(run, bug):
            every.append(held)
            more = f", {counted(held.deviations, 'known deviation')}" if held.deviations else ""
            refusals = f", {counted(held.refusals, 'refusal')}" if held.refusals else ""
            seen = f"{counted(held.changes, 'change')}{refusals}, {counted(held.roles, 'act')} of brokers"
            result = "all fit" if held.fits else "not all fit" if held.compared else "nothing was compared"
            head = f"{held.partition} of {run.name}: {seen}: {result}{more}"
            terminal.answer(held, [head, *(f"  {line}" for line in held.misfit)])
    idle = sum(not held.compared for held in every)
    wrong = sum(not held.fits for held in every) - idle
    if not terminal.as_json:
        not_compared = f", {idle} not compared" if idle else ""
        terminal.say(
            f"{counted(len(runs), 'run')}, {counted(len(every), 'log partition')}, "
            f"{wrong} of them unexplained{not_compared}"
        )
    return EXIT_BROKEN if wrong else EXIT_UNKNOWN if idle else EXIT_HELD


def _own_stories(words: Sequence[str]) -> dict[str, Story]:
    """The reader's own stories among these words, each by its file."""
    own = {word: read_story(Path(word)) for word in words if _is_own(word)}
    numbers = [*known_stories(), *(story.number for story in own.values())]
    for word, story in own.items():
        if numbers.count(story.number) > 1:
            raise PlanError(f"{word} has the number of another story, {story.number}; give it another one, such as M1")
    return own


def _is_own(word: str) -> bool:
    return word.endswith(".toml")


def _is_run(word: str) -> bool:
    return (Path(word) / CLUSTER_FILE).is_file()


def _refuse(word: str, given: Sequence[str]) -> None:
    """Refuse a word that names nothing, and a trace or a run with options that only a performance has."""
    if not Path(word).exists():
        or_name = "or name a file, such as my.toml, a trace, or a directory of traces"
        raise PlanError(f"{unknown_name('story', word, known_stories())} ({or_name})")
    if given:
        what = "run" if _is_run(word) else "trace"
        raise NamedWronglyError(f"{word} is a recorded {what}, so nothing is performed; leave {', '.join(given)} out")


def _columns(patterns: Sequence[str]) -> tuple[str, ...]:
    try:
        return chosen_columns(patterns or ["all/2"])
    except KeyError as error:
        raise PlanError(str(error.args[0])) from error


def _lines(compared: Comparison) -> Iterator[str]:
    """One line, and the first step that no deviation explains, with those beside it."""
    counts = ", ".join(f"{number} {word}" for word in Word if (number := compared.count(word)))
    outcome = "" if compared.disagreements is None else ", otherwise" if compared.disagreements else ", as expected"
    yield f"{compared.story} {compared.column} on {compared.system}: {counts or 'no step was compared'}{outcome}"
    yield from (f"  {sentence}" for sentence in compared.disagreements or ())
    if (wrong := compared.unexplained) is not None:
        for step in compared.steps[max(0, wrong - 1) : wrong + 2]:
            yield from _step(step)


def _step(step: ComparedStep) -> Iterator[str]:
    yield f"  step {step.number}, {step.text}: {step.word}"
    for difference in step.differences:
        why = f" ({difference.why})" if difference.why else ""
        yield f"    {difference.fact}: the cluster shows {difference.real}; the core shows {difference.core}{why}"
