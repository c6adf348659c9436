"""The explanation of one cell: its steps as text, and as a page with a space-time diagram that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from harness.broker.core.types import TopicPartition
from harness.ground.templates import templates_of
from harness.runs.stories.shown.diagram import STEPS_WIDTH, WIDTH, Diagram, diagram_of
from harness.runs.stories.stage.trace import Play, Trace, TraceEntry, broker_words, leader_words, record_name
from harness.runs.stories.table.cells import WORKLOAD, StoryCell, perform_cell
from harness.runs.stories.table.columns import Column
from harness.runs.stories.table.story import Story
from harness.worlds.contract import PlacedRecord
from harness.worlds.simulated.watching import Watching

_PLAYS: Final = {Play.PLAYED: "", Play.TRIED: "no effect: ", Play.FAILED: "FAILED: "}
_MS: Final = 1000
_PARTITION: Final = TopicPartition(WORKLOAD.topic, 0)


def explained(story: Story, column: str | Column) -> tuple[StoryCell, str]:
    """Perform one cell, and explain it: the cell, and a page of HTML with a diagram of what happened.

    Raises:
        SettingsError: what the story changes does not fit the column's settings.
    """
    watched = Watching(str(_PARTITION))
    cell = perform_cell(story, column, watched)
    return cell, _page(story, cell, diagram_of(cell.trace, cell.lost, story.steps, watched, _PARTITION))


def _page(story: Story, cell: StoryCell, diagram: Diagram) -> str:
    return (
        templates_of("harness.runs.stories.shown")
        .get_template("explanation.html.j2")
        .render(
            story=story,
            cell=cell,
            diagram=diagram,
            width=WIDTH,
            steps_width=STEPS_WIDTH,
            lines=list(step_lines(story, cell)),
        )
    )


def step_lines(story: Story, cell: StoryCell) -> Iterator[str]:
    """The cell step by step: what was done, and the log, log end offset, high watermark and epoch of every replica."""
    yield f"{story.number} {story.title}; column {cell.column}"
    for entry in cell.trace.entries:
        yield from _step(cell.trace, entry)
    lost = ", ".join(cell.lost) or "nothing"
    skipped = f"; skipped: {', '.join(cell.skipped)}" if cell.skipped else ""
    seen = ", ".join((*cell.signs, *cell.others)) or "nothing else"
    yield f"acknowledged: {', '.join(cell.acknowledged)}; lost: {lost}{skipped}; seen: {seen}"
    yield from cell.disagreements or (("as expected",) if story.expects else ())


def _step(trace: Trace, entry: TraceEntry) -> Iterator[str]:
    note = f"  -> {_PLAYS[entry.play]}{entry.note}" if entry.note or entry.play is not Play.PLAYED else ""
    leader, isr = leader_words(entry.view.leader), broker_words(entry.view.isr)
    yield f"{entry.ended_us / _MS:9.1f} ms  {entry.text}{note}"
    yield f"              controller: {leader}, leader epoch {entry.view.leader_epoch}, ISR {isr}"
    names = {record.value: name for name, record in trace.records.items()}
    for replica in entry.replicas:
        if not replica.running and not replica.log_end:
            yield f"              {replica.node} is dead: nothing of the log is on its disk"
            continue
        log = " ".join(_placed(names, replica.records)) or "empty"
        end = f"log end offset {replica.log_end}"
        if replica.leader_epoch is None:
            yield f"              {replica.node} {'starts' if replica.running else 'is dead'}: {end}, log: {log}"
            continue
        seen = f"{end}, high watermark {replica.high_watermark}, leader epoch {replica.leader_epoch}"
        own = f", ISR {' '.join(map(str, replica.isr))}" if replica.isr is not None else ""
        yield f"              {replica.node} {'leads' if replica.leading else 'follows'}: {seen}{own}, log: {log}"


def _placed(names: dict[int, str], records: Iterable[PlacedRecord]) -> Iterator[str]:
    """Each record with the leader epoch under which it was appended."""
    for record in records:
        bad = "" if record.intact else " (torn or damaged)"
        yield f"{record_name(names, record.value)}/{record.leader_epoch}{bad}"
