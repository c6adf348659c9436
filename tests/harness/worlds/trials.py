"""Runs on real machines that must lose, or must not: judged, tried again where chance decides, told where they fail."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkers.judgement import Judgement, judge
from checkers.plain import judge as check
from harness.plan import RunSpec
from harness.report.timeline import read_observations
from harness.run.perform import perform
from harness.rundir import HISTORY, read_record
from nemesis.journal import FILE_NAME, standing

#: Tries that a permitted loss has to show itself.
SEEDS = (11, 12, 13)
TOLD = frozenset({"election", "isr", "fenced", "registered", "truncated", "active-controller", "died"})


def judged(spec: RunSpec, directory: Path) -> Judgement:
    """One run and how it was judged, after everything that must be so whatever it lost."""
    ended = perform(spec, directory)
    assert ended.status == "completed", ended.reason
    judgement = judge(spec.chosen(), check(directory / HISTORY))
    assert judgement.judged, f"{judgement.reason}\n{tale(directory)}"
    assert judgement.broken == {}, tale(directory)
    assert standing(directory / FILE_NAME) == []
    return judgement


def lose_or_hold(spec: RunSpec, directory: Path, seeds: Sequence[int] = SEEDS, *, loses: bool) -> list[Judgement]:
    """The runs it took. A seed repeats the faults, not the run: a loss may need another try, a promise does not."""
    runs: list[Judgement] = []
    for seed in seeds if loses else seeds[:1]:
        runs.append(judged(msgspec.structs.replace(spec, seed=seed), directory / str(seed)))
        if runs[-1].lost:
            break
    last = tale(directory / str(seeds[len(runs) - 1]))
    assert (runs[-1].lost > 0) is loses, f"{runs[-1].lost} lost in {len(runs)} runs; the last one:\n{last}"
    return runs


def tale(directory: Path) -> str:
    """What was done to the cluster, and what it made of that: without it, nobody could say why a loss did not show."""
    report = read_record(directory).ended.report
    faults = [] if report is None else report["faults"]
    lines = [
        (one["begun_us"], f"{one['fault']} of {one['role']} {one['targets']}: {one['reason']}, {one['begin_evidence']}")
        for one in faults
    ]
    lines += [
        (seen.time_us, f"node {seen.node}: {seen.what} {seen.partition or ''} {seen.facts}")
        for seen in read_observations(directory)
        if seen.what in TOLD
    ]
    return "\n".join(f"{time_us / 1e6:8.3f} s  {words}" for time_us, words in sorted(lines, key=lambda line: line[0]))
