"""A soak in its time, and what ends it before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from checkers import Outcome, matrix_of
from harness.campaigns.campaign import Checking, Job
from harness.campaigns.campaign.turn_loop import FAILED_IN_ROW_MAX
from harness.campaigns.soak import resources
from harness.campaigns.soak.ending import end, exit_code, sentences
from harness.campaigns.soak.ledger import Planned, read_ledger, read_verdicts
from harness.campaigns.soak.session import time_left
from harness.campaigns.soak.state import RecordedState, SoakState
from harness.ground.errors import HarnessError
from harness.plan import parse_plan
from harness.records.run_record import Ended
from harness.records.verdict_lines import read_matrix
from tests.harness.campaigns.soak.conftest import IDENTITIES, KnowingChecks, Workshop, asked, facts_of, line_of


def with_outcome(outcome: Outcome) -> KnowingChecks:
    return KnowingChecks(lambda world, cell, seed: line_of(world, cell, seed, outcome))


def test_every_world_has_its_turns_beside_the_others(workshop: Workshop) -> None:
    workshop.session(asked(for_s=20.0))
    drawn = [entry for entry in read_ledger(workshop.directory) if isinstance(entry, Planned)]
    worlds = Counter(entry.world for entry in drawn if entry.again is None)
    assert worlds["simulated"] > worlds["processes"] > 5  # two places and one
    assert len({entry.seed for entry in drawn if entry.again is None}) == sum(worlds.values())


def test_it_ends_when_its_time_is_over_and_everything_is_judged(workshop: Workshop) -> None:
    state = workshop.session(asked(for_s=5.0)).state
    assert state.elapsed_s < 10
    assert not state.planned
    assert not state.performed
    assert state.judged == len(list(read_verdicts(workshop.directory)))


def test_the_time_that_a_soak_lay_dead_is_not_counted(workshop: Workshop) -> None:
    first = workshop.session(asked(for_s=5.0)).state.judged
    workshop.clock.now += 1_000
    assert workshop.session(asked(for_s=10.0)).state.judged > first


def test_until_finding_ends_after_a_finding_that_is_not_known_and_its_tries(workshop: Workshop) -> None:
    state = workshop.session(asked(for_s=None, until_finding=True)).state
    assert state.findings
    assert state.tries
    findings = frozenset(state.findings)
    other = Workshop(workshop.directory.parent / "other", workshop.plan, workshop.clock)
    other.directory.mkdir()
    other.checks = KnowingChecks(
        lambda world, cell, seed: line_of(world, cell, seed - seed % 2, Outcome.BROKEN_PROMISE)
    )
    recorded = other.session(asked(for_s=30.0, until_finding=True), known_findings=findings)
    assert recorded.elapsed_s > 29  # both identities are known


def test_fail_fast_stops_what_runs(workshop: Workshop) -> None:
    workshop.checks = with_outcome(Outcome.BROKEN_PROMISE)
    state = workshop.session(asked(for_s=None, fail_fast=True)).state
    assert state.findings
    assert state.planned  # they are done when the soak is resumed
    assert not state.performed


def test_a_finding_of_a_real_world_is_tried_again_as_often_as_asked_and_one_in_virtual_time_once(
    workshop: Workshop,
) -> None:
    state = workshop.session(asked(for_s=60.0, tries=4)).state
    by_world: dict[str, list[int]] = {"simulated": [], "processes": []}
    for turn, shown in state.tries.items():
        by_world[state.places[turn].split("/")[1]].append(len(shown))
        assert all(shown)
    assert set(by_world["simulated"]) == {1}
    assert set(by_world["processes"]) <= {1, 2, 3, 4}
    assert 4 in by_world["processes"]
    cells = Counter(state.places[turn].rpartition("/")[0] for turn in state.tries)
    assert max(cells.values()) <= 2  # once for each identity
    assert state.failures == []


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_cells_lie_in_a_campaigns_order_whatever_the_turns(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    for name in ("witness", "write_report"):
        monkeypatch.setattr(f"harness.campaigns.soak.ending.{name}", lambda directory, progress: None)
    recorded = workshop.session(wanted := asked(for_s=20.0, seed=seed))
    end(recorded, wanted, workshop.plan, "", earlier=[], progress=workshop.progress)
    cells = [f"{cell.world}/{cell.cell}" for cell in read_matrix(workshop.directory).cells]
    assert cells == sorted(workshop.plan.cells)


def test_a_finding_of_a_real_world_that_does_not_repeat_is_flaky_and_no_failure(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[int] = Counter()

    def line(world: str, cell: str, seed: int):
        seen[seed] += 1
        return line_of(world, cell, seed, Outcome.BROKEN_PROMISE if seen[seed] == 1 else Outcome.HELD)

    workshop.plan = parse_plan('families = ["kill"]\n[worlds.processes]\nparallel = 1\n', "t.toml")
    workshop.checks = KnowingChecks(line)
    recorded = workshop.session(wanted := asked(for_s=30.0))
    state = recorded.state
    (turn,) = [turn for turn, shown in state.tries.items() if shown == [False, False, False]][:1]
    assert state.failures == []
    for name in ("witness", "write_report"):
        monkeypatch.setattr(f"harness.campaigns.soak.ending.{name}", lambda directory, progress: None)
    ending = end(recorded, wanted, workshop.plan, "", earlier=[], progress=workshop.progress)
    (sought,) = state.sought[turn]
    sentence = f"flaky: {state.places[turn]} ({sought}): 0 of 3 tries from its seed showed it again."
    assert (ending.exit_code, sentence in ending.sentences) == (1, True)


@pytest.mark.parametrize("world", ["processes", "simulated"])
def test_a_try_that_nobody_could_judge_shows_nothing_and_refutes_nothing(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    seen: Counter[int] = Counter()

    def line(world: str, cell: str, seed: int):
        seen[seed] += 1
        return line_of(world, cell, seed, Outcome.BROKEN_PROMISE if seen[seed] == 1 else Outcome.UNKNOWN)

    workshop.plan = parse_plan(f'families = ["kill"]\n[worlds.{world}]\nparallel = 1\n', "t.toml")
    workshop.checks = KnowingChecks(line)
    recorded = workshop.session(wanted := asked(for_s=30.0))
    state = recorded.state
    assert state.failures == []
    turn = next(turn for turn, shown in state.tries.items() if set(shown) == {None})
    for name in ("witness", "write_report"):
        monkeypatch.setattr(f"harness.campaigns.soak.ending.{name}", lambda directory, progress: None)
    ending = end(recorded, wanted, workshop.plan, "", earlier=[], progress=workshop.progress)
    (sentence,) = [sentence for sentence in ending.sentences if f"{state.places[turn]} (" in sentence]
    assert not sentence.startswith("flaky")
    assert sentence.endswith(f"{len(state.tries[turn])} could not be judged.")


def test_a_simulated_finding_that_does_not_repeat_is_the_harnesss_own_error(workshop: Workshop) -> None:
    seen: Counter[int] = Counter()

    def line(world: str, cell: str, seed: int):
        seen[seed] += 1
        return line_of(world, cell, seed, Outcome.BROKEN_PROMISE if seen[seed] == 1 else Outcome.HELD)

    workshop.plan = parse_plan('families = ["kill"]\n[worlds.simulated]\nparallel = 1\n', "t.toml")
    workshop.checks = KnowingChecks(line)
    state = workshop.session(asked(for_s=5.0)).state
    assert len(state.failures) >= 1
    assert "does not repeat itself" in state.failures[0]


def test_a_simulated_run_that_repeats_one_finding_of_two_does_not_repeat_itself(workshop: Workshop) -> None:
    seen: Counter[int] = Counter()

    def line(world: str, cell: str, seed: int):
        seen[seed] += 1
        verdict_line = line_of(world, cell, seed, Outcome.BROKEN_PROMISE)
        shown = {"lost-write": list(IDENTITIES[: 3 - seen[seed]])}
        return msgspec.structs.replace(
            verdict_line, judgement=msgspec.structs.replace(verdict_line.judgement, identities=shown)
        )

    workshop.plan = parse_plan('families = ["kill"]\n[worlds.simulated]\nparallel = 1\n', "t.toml")
    workshop.checks = KnowingChecks(line)
    assert "does not repeat itself" in workshop.session(asked(for_s=5.0)).state.failures[0]


def test_a_world_whose_runs_do_nothing_but_fail_is_given_up_and_the_others_go_on(workshop: Workshop) -> None:
    recorded = RecordedState(workshop.directory, workshop.clock)
    workshop.checks = KnowingChecks()
    workshop.checks._judge = lambda directory: line_of("x", "y/z", 1)  # judged elsewhere

    def end(job: Job) -> Ended:
        failed = job.spec.world.name == "processes"
        return Ended(status="harness-failed", reason="java is gone") if failed else Ended(status="completed")

    for loop in workshop.steps(recorded, asked(for_s=6.0)):
        workshop.runs.end = end
        loop._settle = lambda judged: None
        loop._check = lambda: None
        if recorded.elapsed_s > 6:
            break
    state = recorded.state
    assert state.ended["processes", "harness-failed"] == FAILED_IN_ROW_MAX
    assert state.ended["simulated", "completed"] > 3
    assert state.failures == ["the processes world is given up: 3 runs in a row failed (java is gone)"]
    recorded.close()


def test_turns_of_a_world_that_is_given_up_do_not_keep_a_resumed_soak_from_ending(workshop: Workshop) -> None:
    recorded = RecordedState(workshop.directory, workshop.clock)
    for turn in range(5):
        choice = "acks=1,isr=1,unclean=false"
        recorded.write(Planned(turn=turn, world="processes", choice=choice, family="kill", seed=turn))
    recorded.close()
    recorded = RecordedState(workshop.directory, workshop.clock)
    workshop.checks = KnowingChecks()
    workshop.checks._judge = lambda directory: line_of(*facts_of(directory), Outcome.UNKNOWN)

    def end(job: Job) -> Ended:
        return Ended(status="harness-failed" if job.spec.world.name == "processes" else "completed", reason="no java")

    for count, _ in enumerate(workshop.steps(recorded, asked(for_s=3.0))):
        workshop.runs.end = end
        assert count < 200
    assert len(recorded.state.planned) == 2
    recorded.close()


def test_runs_that_failed_in_the_harness_are_named_and_many_of_them_are_its_failure(workshop: Workshop) -> None:
    state = workshop.session().state
    silent = matrix_of([], 0)
    state.ended.clear()
    state.ended.update({("kafka", "completed"): 19, ("kafka", "harness-failed"): 1})
    assert "1 of 20 runs in the kafka world failed in the harness, so they say nothing." in list(sentences(state, ""))
    assert exit_code(state, silent, "") == 2
    state.ended["kafka", "harness-failed"] = 3
    assert exit_code(state, silent, "") == 70


def test_it_ends_where_no_world_is_left(workshop: Workshop) -> None:
    recorded = RecordedState(workshop.directory, workshop.clock)
    workshop.plan = parse_plan('families = ["kill"]\n[worlds.processes]\nparallel = 1\n', "t.toml")
    steps = workshop.steps(recorded, asked(for_s=60.0))
    next(steps)._check = lambda: None
    workshop.runs.end = lambda job: Ended(status="harness-failed", reason="java is gone")
    with pytest.raises(HarnessError, match="the processes world is given up"):
        list(steps)
    recorded.close()


def test_the_disk_stays_below_its_limit_and_the_last_of_each_finding_is_kept(workshop: Workshop) -> None:
    workshop.checks, workshop.left_bytes = with_outcome(Outcome.BROKEN_PROMISE), 200_000
    limit = 6_000_000
    recorded = RecordedState(workshop.directory, workshop.clock)
    for _ in workshop.steps(recorded, asked(for_s=60.0, disk_bytes=limit)):
        assert sum(file.stat().st_size for file in workshop.directory.rglob("*") if file.is_file()) <= limit
    recorded.close()
    state = SoakState.read(workshop.directory)
    assert state.dropped > 20
    lines = {line.history: line for line in read_verdicts(workshop.directory)}
    smallest: dict[tuple[str, str, str], int] = {}
    for line in lines.values():
        for identity in line.judgement.identities["lost-write"]:
            key = line.run.world, line.run.cell, identity
            smallest[key] = min(line.run.seed, smallest.get(key, line.run.seed))
    for (world, cell, _), seed in smallest.items():
        assert (workshop.directory / f"runs/{world}/{cell}/{seed}").is_dir()


def test_a_disk_that_is_full_of_findings_ends_the_soak_with_a_sentence(workshop: Workshop) -> None:
    workshop.checks, workshop.left_bytes = with_outcome(Outcome.BROKEN_PROMISE), 400_000
    with pytest.raises(
        HarnessError, match=r"is the last of its kind, and one run .* may leave .*; raise --disk to \S+MB or more"
    ):
        workshop.session(asked(for_s=600.0, disk_bytes=3_500_000))
    assert workshop.session(asked(for_s=0.0, disk_bytes=10**9)).state.performed == {}


def test_clean_runs_leave_their_verdict_their_coverage_and_their_seed(workshop: Workshop) -> None:
    workshop.checks = with_outcome(Outcome.HELD)
    state = workshop.session().state
    assert len(state.kept_runs) == 0
    assert state.dropped == state.judged > 5
    assert not list(workshop.directory.glob("runs/*/*/*/*"))
    for line in read_verdicts(workshop.directory):
        assert line.run.seed
        assert line.judgement.coverage


def test_of_permitted_loss_one_run_of_a_kind_is_kept(workshop: Workshop) -> None:
    workshop.checks = with_outcome(Outcome.PERMITTED_LOSS)
    state = workshop.session(asked(for_s=30.0)).state
    kinds = {(run.planned.world, run.planned.cell, what) for run in state.kept_runs.kept.values() for what in run.shows}
    assert len(state.kept_runs) <= len(kinds) <= 16
    assert state.dropped > 20


def test_a_batch_whose_java_died_is_judged_by_a_new_one(tmp_path: Path) -> None:
    renewed = []

    def judge(directories):
        if not renewed:
            raise HarnessError("the Spark job failed: connection refused")
        return [directory.name for directory in directories]

    checks = Checking(judge, lambda: renewed.append(True))
    checks.begin([tmp_path / "one"])
    assert checks.answer(patience_s=10) == ["one"]
    assert (renewed, checks.busy) == ([True], False)


def test_where_java_cannot_be_started_anew_the_soak_ends_and_what_waits_stays(workshop: Workshop) -> None:
    def judge(directories):
        raise HarnessError("the Spark job failed: connection refused")

    with pytest.raises(HarnessError, match="connection refused"):
        workshop.session(checks=Checking(judge, lambda: None))
    waiting = len(SoakState.read(workshop.directory).performed)
    assert waiting > 0
    assert workshop.session(asked(for_s=0.0)).state.judged >= waiting


def test_the_memory_limit_ends_a_soak_that_does_nothing(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources.psutil, "virtual_memory", lambda: SimpleNamespace(available=5 * 10**8, total=10**9))
    limited = asked(memory_bytes=10**6)
    with pytest.raises(HarnessError, match=r"are used, and --memory allows 1MB; raise --memory$"):
        workshop.session(limited)
    monkeypatch.setattr(resources.psutil, "virtual_memory", lambda: SimpleNamespace(available=10**7, total=10**9))
    with pytest.raises(HarnessError, match=r"^only 10MB of this machine's memory are free; end other programs"):
        workshop.session(limited)


def test_a_full_disk_tears_no_line_of_the_ledger(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = RecordedState(workshop.directory, workshop.clock)
    recorded.write(msgspec.structs.replace(Planned(turn=0, world="simulated", choice="a", family="kill", seed=1)))
    size = (workshop.directory / "ledger.jsonl").stat().st_size

    def half(file, content: bytes) -> None:
        with Path(file.path).open("ab") as torn:
            torn.write(content[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("harness.campaigns.soak.ledger.AppendOnly._write", half)
        with pytest.raises(HarnessError, match="No space left on device; make room"):
            recorded.write(Planned(turn=1, world="simulated", choice="a", family="kill", seed=2))
    assert (workshop.directory / "ledger.jsonl").stat().st_size == size
    recorded.close()


@pytest.mark.parametrize(
    ("left_s", "words"),
    [(0.0, "0 s left"), (1.2, "2 s left"), (29.9, "30 s left"), (599.0, "599 s left"), (7_200.0, "120 min left")],
)
def test_the_time_that_is_left_is_in_units_of_its_size(left_s: float, words: str) -> None:
    assert time_left(left_s) == words
