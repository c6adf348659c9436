"""A soak that dies at any moment goes on as if it had not: every turn counts once, and no finding is lost."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.campaigns.soak import disk_budget, ledger
from harness.campaigns.soak.kept_runs import findings_of
from harness.campaigns.soak.ledger import Planned, read_ledger, read_verdicts
from harness.campaigns.soak.state import RecordedState, SoakState
from harness.campaigns.soak.turn_planner import TurnPlanner
from harness.plan import Plan, parse_plan
from tests.harness.campaigns.soak.conftest import PLAN, Clock, Workshop, asked, outcome_of_seed


class Death(BaseException):
    """SIGKILL, as far as a process can do it to itself: nothing after it is done."""


class Deaths:
    """Counts everything that a soak does to files, and dies at the effects that it was given, half way into each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fatal_effects: set[int]) -> None:
        self.count, self.fatal_effects = 0, fatal_effects
        write, delete = ledger.AppendOnly._write, shutil.rmtree
        monkeypatch.setattr(ledger.AppendOnly, "_write", lambda file, content: self.write(write, file, content))
        monkeypatch.setattr(ledger.os, "fsync", lambda file: None)  # a hundred soaks, and power is not what fails here
        monkeypatch.setattr(disk_budget.shutil, "rmtree", lambda directory: self.delete(delete, directory))

    def effect(self, what: str = "") -> bool:
        """The next effect; true if it is the last one before death."""
        self.count += 1
        return self.count in self.fatal_effects

    def performed(self, what: str) -> None:
        if self.effect():
            raise Death

    def write(self, write, file, content: bytes) -> None:
        if self.effect():
            # Nothing, the begin, or all of it, and no more is known of it than that.
            os.write(file._file, content[: len(content) * (self.count % 3) // 2])
            raise Death
        write(file, content)

    def delete(self, delete, directory: Path) -> None:
        if self.effect():
            (directory / "run.json").unlink(missing_ok=True)
            raise Death
        delete(directory)


def soaked(directory: Path, monkeypatch: pytest.MonkeyPatch, fatal_effects: set[int]) -> tuple[Workshop, Deaths, int]:
    """A soak that dies at these effects and is resumed each time; how often it died."""
    directory.mkdir()
    workshop, deaths, died = (
        Workshop(directory, parse_plan(PLAN, "t.toml"), Clock()),
        Deaths(monkeypatch, fatal_effects),
        0,
    )
    workshop.effect = deaths.performed
    while True:
        try:
            workshop.session(asked(for_s=3.0))
        except Death:
            died += 1
            workshop.checks._batch = None
        else:
            return workshop, deaths, died


def assert_whole(directory: Path) -> None:
    """Every turn that was drawn was judged once, with the verdict of its seed; files are those of what is kept."""
    drawn = [entry for entry in read_ledger(directory) if isinstance(entry, Planned)]
    assert [entry.turn for entry in drawn] == list(range(len(drawn)))
    lines = list(read_verdicts(directory))
    runs = [entry for entry in drawn if entry.again is None]
    assert Counter(line.history for line in lines) == Counter(entry.directory for entry in runs)
    assert all(line.outcome == outcome_of_seed(line.run.seed) for line in lines)
    state = SoakState.read(directory)
    assert not state.planned
    assert not state.performed
    assert state.judged + state.unjudged == len(runs)
    assert state.findings == Counter(finding for line in lines for finding in findings_of(line))
    on_disk = {path.relative_to(directory).as_posix() for path in directory.glob("runs/*/*/*/*")}
    assert on_disk == {run.planned.directory for run in state.kept_runs.kept.values()}
    assert not list(directory.glob("tries/*"))
    shown = {(line.run.world, line.run.cell, finding) for line in lines for finding in findings_of(line)}
    kept = {(o.planned.world, o.planned.cell, finding) for o in state.kept_runs.kept.values() for finding in o.findings}
    assert shown == kept


def test_a_death_at_every_single_effect_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        _, deaths, died = soaked(tmp_path / "alive", patched, set())
    assert died == 0
    assert_whole(tmp_path / "alive")
    for effect in range(1, deaths.count + 1):
        with monkeypatch.context() as patched:
            _, _, died = soaked(tmp_path / str(effect), patched, {effect})
        assert died == 1
        assert_whole(tmp_path / str(effect))
        shutil.rmtree(tmp_path / str(effect))


@settings(max_examples=15)
@given(gaps=st.lists(st.integers(1, 25), min_size=2, max_size=6))
def test_death_after_death_changes_nothing(tmp_path_factory: pytest.TempPathFactory, gaps: list[int]) -> None:
    directory = tmp_path_factory.mktemp("deaths") / "soak"
    fatal_effects = {sum(gaps[:number]) for number in range(1, len(gaps) + 1)}
    with pytest.MonkeyPatch.context() as patched:
        _, deaths, died = soaked(directory, patched, fatal_effects)
    # A soak of three seconds may be over before the last of them.
    assert died == sum(effect <= deaths.count for effect in fatal_effects)
    assert_whole(directory)


def test_a_run_that_ended_before_its_entry_was_written_is_not_done_again(workshop: Workshop) -> None:
    recorded = RecordedState(workshop.directory, workshop.clock)

    def die(what: str) -> None:
        if what == "ended":
            raise Death

    workshop.effect = die
    with pytest.raises(Death):
        list(workshop.steps(recorded, asked()))
    recorded.close()
    (directory,) = workshop.directory.glob("runs/*/*/*/*")
    before = (directory / "run.json").stat().st_ino
    workshop.effect = lambda what: None
    workshop.session()
    performed = [job.directory for job in workshop.runs.performed]
    assert directory not in performed
    assert not directory.exists() or (directory / "run.json").stat().st_ino == before
    assert_whole(workshop.directory)


def test_what_was_chosen_can_be_computed_again_from_the_ledger(workshop: Workshop, plan: Plan) -> None:
    workshop.session(asked(for_s=20.0))
    state, verdicts, planner = SoakState(), read_verdicts(workshop.directory), TurnPlanner(plan, asked().seed)
    chosen = 0
    for entry in read_ledger(workshop.directory):
        if isinstance(entry, Planned) and entry.again is None:
            again = planner.next_turn(entry.turn, entry.world, state.cells)
            assert (again.choice, again.family, again.seed) == (entry.choice, entry.family, entry.seed)
            chosen += 1
        state.note(entry, verdicts)
    assert chosen > 20
