"""Runs on real machines that must lose, or must not: judged, tried again where chance decides, with where they fail."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from checkers import Judgement, judge
from checkers import check_one as check
from harness.ground.observations import (
    BrokerFenced,
    BrokerRegistered,
    ControllerActivated,
    IsrChanged,
    LeaderElected,
    NodeCrashed,
    Truncated,
)
from harness.plan import RunSpec
from harness.records.cluster_file import read_observations
from harness.records.files import HISTORY
from harness.records.journal import FILE_NAME, not_undone
from harness.records.run_record import read_record
from harness.runs.run.performing import perform_run
from harness.runs.run.scheduled import _Scheduled
from nemesis.receipts import Receipt

#: Nobody acknowledges anything where all producers have stopped, so half of this is waited for in vain.
STOPPED_DRAIN_MS = 10_000
#: Tries that a permitted loss has to show itself, or a run to be exercised.
SEEDS = (11, 12, 13, 14, 15)
SHOWN = (
    LeaderElected,
    IsrChanged,
    BrokerFenced,
    BrokerRegistered,
    Truncated,
    ControllerActivated,
    NodeCrashed,
)


class Shown(NamedTuple):
    """The run that showed what was to be shown: how it was judged, and where its files are."""

    judgement: Judgement
    directory: Path


def lose_or_hold(
    spec: RunSpec, directory: Path, *, loses: bool, exercised: Callable[[Judgement], bool], seeds: Sequence[int] = SEEDS
) -> Shown:
    """A run that lost, or one that had every reason to and did not.

    A seed repeats the faults, not the run: on a machine that stands still for a second a fault comes too late, or
    somebody's ``sync`` saves what a loss of power would have cost. So a loss has several tries, and so has a promise
    until it is put to the test; but it must hold in each of them.
    """
    for seed in seeds:
        shown = Shown(judged(msgspec.structs.replace(spec, seed=seed), directory / str(seed)), directory / str(seed))
        run = shown.judgement
        assert loses or not run.lost, tale(shown.directory)
        if run.judged and exercised(run) and (run.lost > 0) is loses:
            return shown
    tales = "\n\n".join(f"seed {seed}:\n{tale(directory / str(seed))}" for seed in seeds)
    raise AssertionError(f"none of {len(seeds)} runs showed it\n{tales}")


def stop_producers_after_the_first_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every producer of later runs stop writing when the first fault has ended."""
    record = _Scheduled._record_fault

    def recording(scheduled: _Scheduled, receipt: Receipt) -> None:
        record(scheduled, receipt)
        if receipt.mark == "end":
            scheduled._workload.producers.stop()

    monkeypatch.setattr(_Scheduled, "_record_fault", recording)


def judged(spec: RunSpec, directory: Path) -> Judgement:
    """One run and how it was judged, after everything that must be so whatever it lost."""
    ended = perform_run(spec, directory)
    assert ended.status == "completed", ended.reason
    judgement = judge(spec.chosen(), check(directory / HISTORY))
    assert judgement.broken == {}, tale(directory)
    assert not_undone(directory / FILE_NAME) == []
    return judgement


def hit_by(*kinds: str) -> Callable[[Judgement], bool]:
    """True if faults of exactly these kinds took effect, in the order in which each first did."""
    return lambda run: list(dict.fromkeys(fault.kind for fault in run.faults)) == list(kinds)


def tale(directory: Path) -> str:
    """The acts on the cluster, and what it made of them: without it, nobody could say why a loss did not show."""
    report = read_record(directory).ended.report
    faults = [] if report is None else report["faults"]
    lines = [
        (
            fault["begun_us"],
            f"{fault['fault']} of {fault['role']} {fault['targets']}: {fault['reason']}, {fault['begin_evidence']}",
        )
        for fault in faults
    ]
    lines += [
        (seen.time_us, f"node {seen.node}: {seen.fact}")
        for seen in read_observations(directory)
        if isinstance(seen.fact, SHOWN)
    ]
    return "\n".join(f"{time_us / 1e6:8.3f} s  {words}" for time_us, words in sorted(lines, key=lambda line: line[0]))
