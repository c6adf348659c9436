"""Hunts: what counts as found, and that it does not depend on who looks."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.ground.errors import HarnessError
from harness.lab.search import (
    EVERYTHING,
    PLAIN,
    PORTFOLIOS,
    Alarm,
    Portfolio,
    as_it_is,
    hunt,
    portfolios_for,
    run_in_memory,
)
from harness.lab.search.hunting import BLOCK, BLOCK_MAX, KILLED_MAX, alarms_of, growing_sizes, without
from harness.lab.search.sameness import finding_of
from harness.lab.search.turns import blocks_of, turns_of
from harness.plan import RunSpec, parse_plan, plan_text
from workloads import WORKLOADS

BY_NAME = {portfolio.name: portfolio for portfolio in PORTFOLIOS}
#: Settings change nothing of bursts, and programs run in no virtual time.
NOT_HUNTED = {"bursts", "application"}
EARLY = {"planted.bug": "acknowledge-after-append"}


def test_portfolios_have_names_of_their_own_and_settings_that_can_be() -> None:
    assert len({portfolio.name for portfolio in EVERYTHING}) == len(EVERYTHING)
    for portfolio in EVERYTHING:
        spec = portfolio.spec(1, 0, {})
        assert (spec.schedule is not None) is bool(portfolio.kinds)
        assert spec.chosen().planted_bug == "none"


def test_a_cleanup_policy_is_hunted_for_in_the_portfolios_that_it_fits() -> None:
    kept, cleaned = (portfolios_for({"cleanup.policy": policy}) for policy in ("delete", "compact"))
    assert {portfolio.name for portfolio in (*kept, *cleaned)} == {portfolio.name for portfolio in PLAIN}
    assert {portfolio.name.partition("-")[0] for portfolio in cleaned} == {"compacted"}
    assert all(portfolio.spec(1, 0, {"cleanup.policy": "delete"}) for portfolio in kept)
    assert all(portfolio.spec(1, 0, {"cleanup.policy": "compact"}) for portfolio in cleaned)


@pytest.mark.parametrize(
    ("changed", "workloads"),
    [
        ({"planted.bug": "keep-generation"}, {*WORKLOADS} - NOT_HUNTED),
        ({"missed.epoch": "kafka"}, {*WORKLOADS} - NOT_HUNTED),
        ({"cleanup.policy": "compact"}, {"keyed", "keyed-transactions"}),
        ({"commit.mode": "auto"}, {"groups", "consume-transform-produce"}),
        ({"transaction.version": 1}, {"transactions", "keyed-transactions", "consume-transform-produce"}),
        ({"acks": 1}, {"steady"}),
    ],
)
def test_a_hunt_looks_at_every_workload_that_a_setting_can_change(
    changed: dict[str, object], workloads: set[str]
) -> None:
    """It is told the settings, and no portfolio that suits a planted bug."""
    assert {portfolio.workload.name for portfolio in portfolios_for(changed)} == workloads


def test_a_plain_hunt_has_a_turn_of_everything_within_seconds_and_then_shares_its_time() -> None:
    """Prices are of runs of plain writes, of which a core does some 20 a second."""
    assert sum(portfolio.price for portfolio in PLAIN) < 200
    turns = list(itertools.islice(turns_of(PLAIN), 20 * len(PLAIN)))
    first = [turn.portfolio for turn in turns[: len(PLAIN)]]
    assert {portfolio.name for portfolio in first} == {portfolio.name for portfolio in PLAIN}
    assert [portfolio.price for portfolio in first] == sorted(portfolio.price for portfolio in PLAIN)
    spent = []
    for portfolio in PLAIN:
        numbers = [turn.number for turn in turns if turn.portfolio is portfolio]
        assert numbers == [*range(len(numbers))]
        spent.append(len(numbers) * portfolio.price / portfolio.share)
    assert max(spent) - min(spent) <= max(portfolio.price / portfolio.share for portfolio in PLAIN)


@pytest.mark.parametrize(
    "portfolio", [portfolio for portfolio in EVERYTHING if portfolio.kinds], ids=lambda portfolio: portfolio.name
)
def test_a_storm_is_written_down_as_a_plan_and_read_as_the_same(portfolio: Portfolio) -> None:
    """Its families are those that plans know, also where its kinds have other names."""
    spec = portfolio.spec(1, 0, {})
    (again,) = parse_plan(plan_text(spec, "again"), "again.toml").runs()
    assert (again.schedule, again.family, again.settings) == (spec.schedule, spec.family, spec.settings)


def test_a_planted_bug_is_found_by_the_checkers_and_its_control_is_silent() -> None:
    result = hunt(EARLY, seed=1, seconds=600)
    assert result.alarming is not None
    assert "lost-write" in {alarm.by for alarm in result.alarming.alarms}
    assert result.alarming.spec.settings["planted.bug"] == "acknowledge-after-append"
    assert alarms_of(without(result.alarming.spec, EARLY)) == ()


def test_an_invariant_sees_it_before_anything_is_lost() -> None:
    result = hunt({"planted.bug": "commit-with-two"}, seed=1, seconds=600)
    assert result.alarming is not None
    assert result.alarming.alarms[0].by == "candidates-are-complete"


@pytest.mark.system
def test_what_is_found_does_not_depend_on_the_number_of_workers() -> None:
    results = [hunt({"planted.bug": "join-anywhere"}, seed=2, seconds=600, workers=workers) for workers in (1, 3)]
    first, second = (
        (result.schedules, result.alarming and (result.alarming.number, result.alarming.alarms)) for result in results
    )
    assert first == second
    assert results[0].alarming is not None


def test_a_replica_that_never_comes_back_into_the_isr_is_an_alarm() -> None:
    """Its log goes on with the other two, so nothing is lost, and nothing stalls."""
    kept_out = {"planted.bug": "keep-fenced-out"}
    spec = BY_NAME["stories"].spec(7, 0, kept_out)
    assert alarms_of(spec) == (Alarm("out-of-sync", "ackproof-0: not in its ISR: broker 2"),)
    assert alarms_of(without(spec, kept_out)) == ()
    finding = finding_of(run_in_memory(spec))
    assert (finding.anomaly, finding.in_words()) == ("out-of-sync", "a replica does not come back into the ISR")


def test_a_permitted_loss_is_no_finding() -> None:
    careless = Portfolio(name="careless", settings={"acks": 1}, families=("kill",))
    for run in as_it_is(3, seed=1, portfolios=(careless,)):
        assert run.alarms == ()


def test_the_time_of_a_hunt_is_that_of_the_processor_and_has_its_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run takes a second of it, and so does each control; there is no other clock."""
    spent = 0.0

    def alarmed(_spec: RunSpec) -> tuple[Alarm, ...]:
        nonlocal spent
        spent += 1.0
        return (Alarm("lost-write", ""),)

    monkeypatch.setattr("harness.lab.search.hunting.alarms_of", alarmed)
    monkeypatch.setattr("harness.lab.search.hunting.time", SimpleNamespace(process_time=lambda: spent))
    result = hunt(EARLY, seed=1, seconds=8)
    assert (len(result.spurious), result.schedules, result.seconds) == (5, 5, 10.0)


def test_what_the_broker_does_as_it_is_too_is_not_blamed_on_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two runs have an alarm with the change and without it, the third only with it."""
    asked = itertools.count()
    silent_from = 4

    def alarmed(spec: object) -> tuple[Alarm, ...]:
        number = next(asked)
        return () if number > silent_from else (Alarm("lost-write", f"answer {number}"),)

    monkeypatch.setattr("harness.lab.search.hunting.alarms_of", alarmed)
    result = hunt(EARLY, seed=1, seconds=600)
    names = [turn.portfolio.name for turn in itertools.islice(turns_of(PORTFOLIOS), 3)]
    assert [run.portfolio for run in result.spurious] == names[:2]
    assert result.alarming is not None
    assert (result.alarming.portfolio, result.schedules) == (names[2], 3)


def test_a_hunt_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.lab.search.hunting.alarms_of", lambda _: ())
    result = hunt(EARLY, seed=1, seconds=0)
    assert (result.alarming, result.schedules) == (None, 1)


def test_no_worker_outlives_its_hunt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that ends with the interpreter closes a pipe which that writes to: a traceback after the answer."""
    monkeypatch.setattr("harness.lab.search.hunting.alarms_of", lambda _: ())
    hunt(EARLY, seed=1, seconds=0, workers=2)
    assert multiprocessing.active_children() == []


def test_an_assertion_of_the_core_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AssertionError("a leader is in the ISR")

    monkeypatch.setattr("harness.lab.search.hunting.run_in_memory", fails)
    assert alarms_of(BY_NAME["stories"].spec(1, 0, {})) == (Alarm("assertion", "a leader is in the ISR"),)


@pytest.mark.parametrize("error", [ValueError("no such offset"), HarnessError("a node did not answer")])
def test_a_run_that_crashes_is_a_finding_and_the_hunt_goes_on(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The first of three runs of the core as it is does not come to its end."""
    numbers = itertools.count()

    def crashes_once(spec: object) -> object:
        if not next(numbers):
            raise error
        return run_in_memory(spec)  # type: ignore[arg-type]

    monkeypatch.setattr("harness.lab.search.hunting.run_in_memory", crashes_once)
    first, *others = as_it_is(3, seed=1, portfolios=PORTFOLIOS)
    assert first.alarms == (Alarm("crash", f"{type(error).__name__}: {error}"),)
    assert [run.alarms for run in others] == [(), ()]


@pytest.mark.parametrize("deaths", [1, KILLED_MAX])
def test_a_worker_that_is_killed_takes_nothing_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, deaths: int
) -> None:
    """Over the second block, as where memory is short: its runs are performed again, and what was found is kept."""
    specs = [BY_NAME["stories"].spec(1, number, EARLY) for number in range(BLOCK + 1)]
    controls, taken = [without(spec, EARLY) for spec in specs[:BLOCK]], tmp_path / "taken"

    def alarmed(spec: RunSpec) -> tuple[Alarm, ...]:
        if spec in controls:  # judged by this process, once it has the first block
            taken.touch()
        elif spec == specs[BLOCK] and (killed := len(list(tmp_path.glob("[0-9]")))) < deaths:
            while not taken.exists():
                time.sleep(0.001)
            (tmp_path / str(killed)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return (Alarm("crash", "as planned"),) if spec in controls or "planted.bug" in spec.settings else ()

    monkeypatch.setattr("harness.lab.search.hunting.alarms_of", alarmed)
    result = hunt(EARLY, seed=1, seconds=600, workers=2, portfolios=[BY_NAME["stories"]])
    assert [run.number for run in result.spurious] == list(range(BLOCK))
    if deaths < KILLED_MAX:
        assert result.alarming is not None
        assert (result.alarming.number, result.stopped) == (BLOCK, "")
    else:
        assert result.alarming is None
        assert f"killed {KILLED_MAX} times in a row, over runs {BLOCK} to" in result.stopped


def test_a_single_run_of_a_hunt_is_performed_again() -> None:
    portfolios = [BY_NAME["network"], BY_NAME["stories"]]
    alarming = hunt({"planted.bug": "join-anywhere"}, seed=5, seconds=600, portfolios=portfolios).alarming
    assert alarming is not None
    assert alarming.number > 0
    again = hunt(
        {"planted.bug": "join-anywhere"},
        seed=5,
        seconds=0,
        portfolios=[BY_NAME[alarming.portfolio]],
        first=alarming.number,
    )
    assert again.alarming is not None
    assert (again.alarming.spec, again.alarming.alarms, again.schedules) == (alarming.spec, alarming.alarms, 1)


def test_blocks_for_a_cluster_grow_and_leave_out_no_run() -> None:
    portfolios = [BY_NAME["stories"], BY_NAME["moves"]]
    blocks = list(itertools.islice(blocks_of(turns_of(portfolios, 7), growing_sizes()), 100))
    turns = list(itertools.chain.from_iterable(blocks))
    assert turns == list(itertools.islice(turns_of(portfolios, 7), len(turns)))
    assert [len(block) for block in (blocks[0], blocks[-1])] == [BLOCK, BLOCK_MAX]
