#!/usr/bin/env python3
"""Compare guided with blind search for a planted bug: BUG PORTFOLIO [SEEDS [SECONDS]], in seconds of one core.

Guided: a schedule that reaches a pair of coverage words which no earlier one had is kept. Every other schedule is a
kept one with one change: a fault comes earlier or later, is left out, or another storm's takes its place. Labelled
streams leave every other draw as it was. Both have the same drawn schedules; only guided search pays for coverage.
The portfolio must be one of storms.
"""

from __future__ import annotations

import random
import sys
import time
from itertools import combinations

import msgspec

from harness.plan import RunSpec
from harness.search import PORTFOLIOS, Portfolio, attempt
from harness.search.data_form import steps_of
from harness.search.hunting import alarms_in, alarms_of, without
from nemesis.schedule import Schedule, Step, most_stopped

#: A fault is moved by so much at most.
MOVED_MS_MAX = 500


def changed(spec: RunSpec, other: RunSpec, draw: random.Random) -> RunSpec:
    """``spec`` with a fault moved, left out, or replaced by one of ``other``; as it is where the budget forbids it."""
    steps = list(steps_of(spec))
    place = draw.randrange(len(steps))
    step = steps[place]
    how = draw.choice(["moved", "moved", "left out", "replaced"])
    later_ms = max(-step.begin_ms, draw.randint(-MOVED_MS_MAX, MOVED_MS_MAX))
    if how == "moved":
        steps[place] = _moved(step, later_ms, spec)
    elif how == "replaced":
        fresh = draw.choice(steps_of(other))
        moved = msgspec.structs.replace(fresh, group=step.group)
        steps[place] = _moved(moved, step.begin_ms - fresh.begin_ms, spec)
    elif len(steps) > 1:
        del steps[place]
    if most_stopped(steps, spec.brokers) > spec.faults.dead_brokers_max:
        return spec
    in_order = tuple(sorted(steps, key=lambda one: one.begin_ms))
    return msgspec.structs.replace(spec, schedule=Schedule(steps=in_order, healed_ms=spec.workload.duration_ms))


def _moved(step: Step, later_ms: int, spec: RunSpec) -> Step:
    end_ms = min(step.end_ms + later_ms, spec.workload.duration_ms)
    begin_ms = min(step.begin_ms + later_ms, end_ms - 1)
    return msgspec.structs.replace(step, begin_ms=begin_ms, end_ms=end_ms)


def search(bug: str, portfolio: Portfolio, seed: int, seconds: float, *, guided: bool) -> tuple[int, float, bool]:
    """Schedules, seconds of one core, and whether the bug was found with a silent control."""
    draw = random.Random(seed)  # noqa: S311 (repeatable on purpose)
    known: set[tuple[str, ...]] = set()
    kept: list[RunSpec] = []
    planted = {"planted.bug": bug}
    number, fresh, began = 0, 0, time.process_time()
    while time.process_time() - began < seconds:
        spec = portfolio.spec(seed, fresh, planted)
        if guided and kept and number % 2:
            spec = changed(draw.choice(kept), spec, draw)
        else:
            fresh += 1
        number += 1
        trial = attempt(spec, coverage=guided)
        if alarms_in(trial):
            spent = time.process_time() - began
            if not alarms_of(without(spec, planted)):
                return number, spent, True
        if guided:
            pairs = {*combinations(sorted(trial.coverage), 2)}
            if not pairs <= known and steps_of(spec):
                known |= pairs
                kept.append(spec)
    return number, time.process_time() - began, False


def main(bug: str, name: str, seeds: str = "5", seconds: str = "60") -> int:
    """A line for each seed."""
    [portfolio] = [one for one in PORTFOLIOS if one.name == name]
    for seed in range(1, int(seeds) + 1):
        for guided in (False, True):
            schedules, spent, found = search(bug, portfolio, seed, float(seconds), guided=guided)
            how = "guided" if guided else "blind"
            sys.stdout.write(f"{bug} seed {seed} {how}: {found}, {schedules} schedules, {spent:.1f} s\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
