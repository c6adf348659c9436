"""Cells are judged in memory; what would be stored of the same performance has the same verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import HISTORY, Verdict, check_one
from harness.plan import RunSpec
from harness.records.replica_dump import write_replicas
from harness.runs.stories import Story, StoryCell, known_stories, perform_cell
from harness.runs.stories.script.performer import Performance
from harness.runs.stories.table import cells
from harness.worlds.simulated import SimulatedWorld
from workloads import Event
from workloads.history import HistoryInMemory, HistoryWriter


class Both:
    """Hands each event to two recorders."""

    def __init__(self, in_memory: HistoryInMemory, on_disk: HistoryWriter) -> None:
        self._recorders = (in_memory, on_disk)

    def record(self, event: Event) -> None:
        for recorder in self._recorders:
            recorder.record(event)


#: A cell with each sign, and one with every kind of script: each sign comes from another part of what is stored.
CELLS = (
    *(("S01", "a0"), ("S07", "a0"), ("S15", "all/2/HW"), ("S20", "all/1/U"), ("S21", "all/2/NI"), ("S23", "all/2/NI")),
    *(("S80", "a1"), ("T01", "v2/RU"), ("T02", "v2/RU"), ("T05", "v1"), ("T22", "v2")),
    *(("G02", "g/M"), ("G06", "g/1/U")),
)


@pytest.mark.parametrize(("number", "column"), CELLS)
def test_the_verdict_in_memory_is_the_one_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, column: str
) -> None:
    verdicts: list[Verdict] = []
    perform, judge = cells.perform_script, cells.judged

    def performed(story: Story, spec: RunSpec, world: SimulatedWorld, history: HistoryInMemory) -> Performance:
        with HistoryWriter(tmp_path / HISTORY, number) as stored:
            performance = perform(story, spec, world, Both(history, stored))
        write_replicas(tmp_path, performance.report.ends, world.replica_logs())
        return performance

    def judged(story: Story, name: str, performance: Performance, verdict: Verdict) -> StoryCell:
        verdicts.append(verdict)
        return judge(story, name, performance, verdict)

    monkeypatch.setattr(cells, "perform_script", performed)
    monkeypatch.setattr(cells, "judged", judged)
    perform_cell(known_stories()[number], column)
    (verdict,) = verdicts
    assert verdict == check_one(tmp_path / HISTORY, name=verdict.history, shown=None)
