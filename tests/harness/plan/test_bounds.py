"""Numbers of plans: each has bounds with a reason, said once, and too much is refused before anything is made."""

# ruff: noqa: E501 - the sentences are compared whole

from __future__ import annotations

import time

import pytest

from harness.ground.errors import PlanError
from harness.plan import chosen_faults, parse_plan
from harness.plan.bounds import COMBINATIONS_MAX, EXCLUSIONS_MAX

WORLD = "\n[worlds.simulated]\n"
#: The most that a read with as many choices as there may be may cost, in seconds of the processor: many times its cost.
READ_MAX_S = 10.0


def refusal(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    return str(caught.value)


def lists_of(*lengths: int) -> str:
    names = ("linger.ms", "retry.backoff.ms", "retries")
    axes = zip(names, lengths, strict=False)
    return "[matrix]\n" + "".join(f"{name} = {list(range(1, length + 1))}\n" for name, length in axes)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("brokers = 101", "brokers: 101 is too large; the most is 100: controllers have the numbers from 100 on"),
        ("faults.dead_brokers_max = 1_000_000_000", "faults: dead_brokers_max=1000000000 exceeds the 3 brokers of the plan; lower it"),
        ("workload.writes_per_second = 1e-300", "workload.writes_per_second: 1e-300 is too small; the least is 0.001"),
        ("workload.writes_per_second = 100_000\nworkload.duration_ms = 60_000", "worlds.simulated.workload: writes_per_second=100000, duration_ms=60000 and payload_bytes=0 make 6000000 writes, which are 24.0 GB; a simulated cluster has them in memory, and the most is 8.0 GB, so lower one of them"),
        ("workload.writes_per_second = 2_000\nworkload.payload_bytes = 1_000_000", "worlds.simulated.workload: writes_per_second=2000, duration_ms=10000 and payload_bytes=1000000 make 20000 writes, which are 20.1 GB; a simulated cluster has them in memory, and the most is 8.0 GB, so lower one of them"),
        (f"seed = {'9' * 5000}", "an integer here has more than 64 bits, and TOML's have no more; write a smaller one"),
        (f"seed = 0x{'f' * 5000}", "seed: an integer here has more than 64 bits, and TOML's have no more; write a smaller one"),
    ],
)  # fmt: skip
def test_a_number_out_of_bounds_is_refused_once_with_the_reason(text: str, sentence: str) -> None:
    assert refusal(text + WORLD) == f"p.toml: {sentence}"


def test_real_clusters_may_have_more_writes_than_simulated_ones() -> None:
    many = "workload = { writes_per_second = 2_000, duration_ms = 3_600_000 }"
    assert parse_plan(f"{many}\n[worlds.processes]", "p.toml").runs()
    assert "make 7200000 writes, which are 28.8 GB; a simulated cluster has them in memory" in refusal(many + WORLD)
    more = many.replace("2_000", "40_000")
    assert refusal(f"{more}\n[worlds.processes]") == (
        "p.toml: worlds.processes.workload: writes_per_second=40000, duration_ms=3600000 and payload_bytes=0 make 144000000 writes; "
        "the most is 100000000, so lower one of them: no larger history was ever checked"
    )


def test_a_matrix_is_counted_before_it_is_built() -> None:
    began = time.process_time()
    assert refusal(lists_of(1_000, 1_000, 1_000) + WORLD) == (
        "p.toml: matrix: 1000 x 1000 x 1000 values are 1000000000 combinations; the most is 10000, before exclusions, "
        "so leave values out"
    )
    assert refusal(lists_of(100_000) + WORLD).startswith("p.toml: matrix: 100000 values are 100000 combinations; ")
    assert time.process_time() - began < READ_MAX_S


def test_exclusions_are_counted_too() -> None:
    many = "[[matrix.exclude]]\nacks = 1\n" * (EXCLUSIONS_MAX + 1)
    assert refusal(lists_of(10) + many + WORLD) == (
        "p.toml: matrix.exclude: 101 exclusions are too many; the most is 100, so shrink the matrix instead"
    )


def test_the_largest_matrix_is_read_in_seconds() -> None:
    exclusions = "".join(
        f"[[matrix.exclude]]\nlinger.ms = {number}\nretry.backoff.ms = {number}\n"
        for number in range(1, EXCLUSIONS_MAX + 1)
    )
    began = time.process_time()
    plan = parse_plan(lists_of(100, 100) + exclusions + WORLD, "p.toml")
    assert len(plan.choices) == COMBINATIONS_MAX - EXCLUSIONS_MAX
    assert time.process_time() - began < READ_MAX_S


def test_chosen_scenarios_are_looked_at_once_for_settings_of_the_same_timings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred scenarios, each for each of five thousand choices, took 40 s."""
    looked_at: list[object] = []
    longest = chosen_faults._longest
    monkeypatch.setattr(
        chosen_faults, "_longest", lambda scenario, *rest: looked_at.append(scenario) or longest(scenario, *rest)
    )
    chosen = 'faults.scenarios = ["kill/leader-ahead"]\nworkload.duration_ms = 60_000\n'
    plan = parse_plan(chosen + lists_of(10, 10) + "request.timeout.ms = [1_500, 2_000]" + WORLD, "p.toml")
    assert (len(plan.choices), len(looked_at)) == (200, 2)
