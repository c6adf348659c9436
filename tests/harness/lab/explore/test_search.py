"""Small scopes are searched to the end, with the same counts whoever searches them."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from harness.broker.core import invariants
from harness.ground.errors import HarnessError
from harness.lab import explore
from harness.lab.explore import (
    PERMITTED,
    Limits,
    Scope,
    exhaust,
    known_scopes,
    scope_named,
    search,
    step_lines,
    steps_of,
)
from harness.lab.explore.kinds import space_of
from harness.lab.explore.space import Space

CALM = scope_named("calm-1")
MOVED = CALM.varied({"moves": 1}, {})


def count(scope: Scope, *, workers: int = 1, merged: bool = True) -> tuple[int, int]:
    """Distinct states and transitions of a scope that holds."""
    result = exhaust(scope, workers=workers, merged=merged)
    assert result.exhausted
    assert result.broken is None
    return result.states, result.transitions


def test_one_record_without_faults_has_36_states() -> None:
    assert count(CALM) == (36, 75)
    assert exhaust(CALM).depth == 15


def test_the_count_does_not_depend_on_the_number_of_workers() -> None:
    assert count(CALM, workers=2) == (36, 75)
    assert count(MOVED, workers=2) == count(MOVED) == (515, 1485)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_level_in_many_chunks_is_the_same_level(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = MOVED.varied({}, {"planted.bug": "commit-largest-log-end"})
    at_once = exhaust(wrong)
    monkeypatch.setattr(search, "_CHUNK", 3)
    assert count(MOVED, workers=workers) == (515, 1485)
    in_chunks = exhaust(wrong, workers=workers)
    assert at_once.broken is not None
    assert (in_chunks.states, in_chunks.transitions, in_chunks.trace) == (
        at_once.states,
        at_once.transitions,
        at_once.trace,
    )


def test_merging_brokers_of_other_names_leaves_fewer_states_and_the_same_verdict() -> None:
    assert count(CALM, merged=False)[0] == 61
    assert count(MOVED, merged=False)[0] == 1127
    wrong = MOVED.varied({}, {"planted.bug": "commit-largest-log-end"})
    merged, apart = exhaust(wrong), exhaust(wrong, merged=False)
    assert merged.broken is not None
    assert apart.broken is not None
    assert (merged.broken[0], len(merged.trace)) == (apart.broken[0], len(apart.trace))


def test_states_that_are_taken_for_one_have_the_same_successors() -> None:
    space = Space(MOVED)

    def successors(state: tuple[int, ...]) -> set[int]:
        return {space.canonical(step.state) for step in space.follow(state)}

    seen = {space.canonical(space.begin()): space.begin()}
    for state in (todo := list(seen.values())):
        for step in space.follow(state):
            earlier = seen.get(digest := space.canonical(step.state))
            if earlier is None:
                seen[digest] = step.state
                todo.append(step.state)
            elif earlier != step.state:
                assert successors(earlier) == successors(step.state)


def test_states_are_taken_for_one_where_a_naming_makes_them_equal_and_only_there() -> None:
    space = Space(MOVED)
    states = {space.begin(): None}
    for state in (todo := list(states)):
        fresh = [step.state for step in space.follow(state) if step.state not in states]
        states.update(dict.fromkeys(fresh))
        todo += dict.fromkeys(fresh)
    assert len(states) == 1127
    of_hash: dict[int, frozenset[tuple[int, ...]]] = {}
    for state in states:
        under_all_names = frozenset(name(state) for name in space.namings)
        assert len(under_all_names) > 1
        assert of_hash.setdefault(space.canonical(state), under_all_names) == under_all_names
    assert len(of_hash) == 515 == len(set(of_hash.values()))


def test_an_early_acknowledgement_is_found_in_one_step_and_by_any_number_of_workers() -> None:
    wrong = CALM.varied({}, {"planted.bug": "acknowledge-after-append"})
    results = [exhaust(wrong, workers=workers) for workers in (1, 2)]
    assert results[0].broken == ("candidates-are-complete", "broker 1 may lead without a, acknowledged")
    assert [step_lines_of(wrong, result) for result in results] == [
        ["  1  a client writes a to 0  0 leads 0: |a  1 in 0: |  2 in 0: |"]
    ] * 2


def step_lines_of(scope: Scope, result: object) -> list[str]:
    return list(step_lines(steps_of(scope, result)))  # type: ignore[arg-type]


def test_a_search_that_a_limit_ends_is_not_exhausted() -> None:
    result = exhaust(MOVED, limits=Limits(states=100))
    assert result.stopped == "--states 100"
    assert not result.exhausted


def test_a_search_of_which_a_worker_was_killed_ends_and_says_so() -> None:
    def kill(_depth: int, _states: int) -> None:
        worker = multiprocessing.active_children()[-1]
        worker.kill()
        worker.join()

    with pytest.raises(HarnessError, match=r"a worker of the search died .* --memory"):
        exhaust(MOVED, workers=2, level_done=kill)


@contextmanager
def searching(workers: int = 2) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """`ackproof explore` of a scope that takes minutes, after its first level, and its workers."""
    program = "from harness.cli import main; main()"
    command = [sys.executable, "-c", program, "explore", "tla-1", "--workers", str(workers)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(["env", "--default-signal", *command], start_new_session=True, **pipes)
    children: list[psutil.Process] = []
    try:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("depth 1: 9 states")
        children = psutil.Process(process.pid).children()
        yield process, children
    finally:
        for child in children:  # they have its pipes, too
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.communicate()


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.system
def test_a_search_ends_with_ctrl_c_and_one_word() -> None:
    with searching() as (process, workers):
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 130
        words = [line for line in errors.splitlines() if not line.startswith("depth ")]
        assert list(filter(None, words)) == ["ackproof: interrupted"]
        assert all(map(ended, workers))
    assert len(workers) == 2


@pytest.mark.system
def test_workers_end_with_a_search_that_was_killed() -> None:
    with searching() as (process, workers):
        process.kill()
        process.wait(240)
        deadline = time.monotonic() + 240
        while not all(map(ended, workers)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert len(workers) == 2


def test_a_search_ends_where_it_has_used_its_memory() -> None:
    assert exhaust(MOVED, limits=Limits(memory_bytes=2**20)).stopped == "--memory 1"


def test_the_most_records_that_were_acknowledged_in_a_state_are_counted_by_all_workers() -> None:
    two = CALM.varied({"records": 2}, {})
    assert [exhaust(two, workers=workers).acknowledged for workers in (1, 2)] == [2, 2]
    assert exhaust(MOVED).acknowledged == 1
    assert exhaust(CALM.varied({"records": 0}, {})).acknowledged == 0


def test_with_every_record_flushed_a_loss_of_power_reaches_the_states_of_a_kill() -> None:
    few = {"brokers": 2, "in-sync": 2}
    assert count(scope_named("power").varied(few, {})) == count(scope_named("killed").varied(few, {}))


def test_a_loss_is_permitted_where_the_last_copy_of_a_record_may_have_been_destroyed() -> None:
    alone = scope_named("wiped").varied(
        {"brokers": 2, "in-sync": 1, "proposals": 0}, {"min.insync.replicas": 1, "eligible.leader.replicas": False}
    )
    result = exhaust(alone)
    assert result.exhausted
    assert result.permitted
    lost = exhaust(replace(alone, rules=(PERMITTED,)))
    assert lost.broken == (PERMITTED, "broker 0 may lead without a, acknowledged")
    assert [step.action.kind for step in lost.trace] == ["write", "crash", "fence", "start"]


def test_a_loss_is_none_that_is_permitted_where_a_fenced_broker_stays_in_sync() -> None:
    wrong = scope_named("wiped").varied(
        {"proposals": 0}, {"eligible.leader.replicas": False, "planted.bug": "keep-fenced-in-isr"}
    )
    result = exhaust(wrong)
    assert result.broken is not None
    assert result.broken[0] == "candidates-are-complete"


def test_no_search_asks_an_invariant_that_compares_durations() -> None:
    """A state has no time in it, and a time-out passes at any moment."""
    rules = inspect.getmembers(invariants, inspect.isfunction)
    timed = [
        name for name, rule in rules if any(re.search("_[um]s$", each) for each in inspect.signature(rule).parameters)
    ]
    assert "transaction_ends_in_time" in timed
    source = "".join(path.read_text(encoding="utf-8") for path in Path(explore.__file__).parent.glob("*.py"))
    assert [name for name in timed if name in source] == []


def test_what_a_scope_leaves_out_is_said() -> None:
    message = " ".join(CALM.leaves_out())
    assert "more than 1 records, more than 0 crashes" in message
    assert "liveness" in message
    assert "fetches that wait at the leader" in message
    assert "fetches that wait at the leader" not in " ".join(CALM.varied({"fetches-park": True}, {}).leaves_out())


def test_only_the_rules_that_count_end_a_search() -> None:
    wrong = scope_named("silent").varied({"proposals": 1}, {"planted.bug": "shrink-before-acceptance"})
    first = exhaust(wrong)
    assert first.broken is not None
    assert (first.broken[0], len(first.trace)) == ("maximal-isr-is-larger", 2)
    lost = exhaust(replace(wrong, rules=("candidates-are-complete",)))
    assert lost.broken is not None
    assert (lost.broken[0], len(lost.trace)) == ("candidates-are-complete", 5)


@pytest.mark.parametrize("name", sorted(known_scopes()))
def test_every_scope_of_the_project_has_a_first_state_that_breaks_nothing(name: str) -> None:
    space = space_of(scope_named(name))
    assert space.broken(space.begin()) is None
    assert next(space.follow(space.begin()), None) is not None


@pytest.mark.parametrize(
    ("scope", "constants", "bug", "rule", "steps"),
    [
        # A follower is found silent while a proposal is pending, which the core ignores.
        ("silent", {"in-sync": 2}, "propose-again", "maximal-isr-is-larger", 4),
        # A follower hears that its fetch was fenced, though nothing comes of it in the core.
        ("moved-2", {}, "retry-without-epoch", "assertion", 9),
    ],
)
def test_what_the_core_ignores_is_offered_all_the_same(
    scope: str, constants: dict[str, object], bug: str, rule: str, steps: int
) -> None:
    """So a core that does not ignore it is seen; of one that does there are as many states as if it never happened."""
    result = exhaust(scope_named(scope).varied(constants, {"planted.bug": bug}))
    assert result.broken is not None
    assert (result.broken[0], len(result.trace)) == (rule, steps)
