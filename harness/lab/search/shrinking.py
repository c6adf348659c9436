"""Makes a run with a finding as small as it can: fewer faults, fewer writes, rounder times, less chance.

Each step performs a smaller run and keeps it if it shows the same finding (:mod:`harness.lab.search.sameness`). Nothing
but the run decides, so the same run is always shrunk to the same; only where the time is over first it is the best so
far.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Final

import msgspec

from checkers import counted
from harness.ground.errors import HarnessError
from harness.lab.search.delta_debugging import reduced
from harness.lab.search.judged_run import JudgedRun, run_in_memory
from harness.lab.search.list_form import (
    in_list_form,
    moments_of,
    operations_of,
    retimed,
    steps_of,
    with_one_partition,
    with_role,
    with_steps,
    with_workload,
    with_writes,
)
from harness.lab.search.sameness import FindingToKeep, finding_of
from harness.plan import RunSpec
from nemesis.roles import Role
from workloads import LISTED

#: Rounds over everything: mostly the second changes nothing.
ROUNDS_MAX: Final = 4
#: A smaller run in which chance decides is given these other seeds before it is given up; where it does not, the run
#: has to show the same with all of them.
OTHER_SEEDS: Final = (0, 1)
#: The seed of a run in which nothing is drawn any more.
CALM_SEED: Final = 1
#: Milliseconds to round times to, and lengths to try between two moments; people read these at a glance.
ROUND_MS: Final = (1_000, 500, 100, 50, 10, 1)
LENGTHS_MS: Final = (100, 200, 500, 1_000, 2_000, 5_000)
#: A stretch of time is kept if this share of it would do: a run is not to hang on a few milliseconds.
SUFFICIENT_PERCENT: Final = 80


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """The smaller form of a run.

    ``spec`` is a run that shows ``finding``, as data; ``run`` is how it went. ``faults`` and ``operations`` (writes)
    are how many it has, and had before. ``attempts`` runs were performed for it; ``complete`` is false where the time
    was over, or it was interrupted, while there was still something to try.
    """

    spec: RunSpec
    run: JudgedRun
    finding: FindingToKeep
    faults: tuple[int, int]
    operations: tuple[int, int]
    attempts: int
    complete: bool

    def in_words(self) -> str:
        """``2 faults, 3 operations``."""
        return f"{counted(self.faults[0], 'fault')}, {counted(self.operations[0], 'operation')}"


def shrunk(spec: RunSpec, finding: FindingToKeep | str = "", *, seconds: float | None = None) -> Shrunk:
    """Shrink a simulated run that shows a finding: ``finding``, that of an anomaly, or the worst that it shows.

    After ``seconds`` of the machine's time it ends with the best so far; so it does when interrupted (Ctrl-C).

    Raises:
        NamedWronglyError: the run shows no such finding.
        PlanError: it is not of the simulated world, or performs a scripted story.
    """
    name = finding if isinstance(finding, str) else finding.anomaly or finding.invariant
    first = run_in_memory(spec)
    chosen = finding if isinstance(finding, FindingToKeep) and finding.is_in(first) else finding_of(first, name)
    search = _Search(first, chosen, None if seconds is None else time.monotonic() + seconds)
    complete = search.run()
    best = search.best
    return Shrunk(
        spec=best.spec,
        run=best,
        finding=chosen,
        faults=(len(steps_of(best.spec)), len(steps_of(first.spec))),
        operations=(len(operations_of(best.spec)), len(operations_of(first.spec))),
        attempts=search.attempts,
        complete=complete,
    )


class _OutOfTimeError(Exception):
    """The time that was given is over."""


class _Search:
    """One run on its way to a smaller one. ``best`` shows the finding, always."""

    def __init__(self, first: JudgedRun, finding: FindingToKeep, until_s: float | None) -> None:
        self.best = first
        self.attempts = 1
        self._finding = finding
        self._until_s = until_s
        self._steady = False
        self._tried: dict[bytes, bool] = {}

    def run(self) -> bool:
        """Shrink as far as it goes; False if it did not come to its end."""
        try:
            self._fewer_faults()
            self._written_down()
            for _ in range(ROUNDS_MAX):
                before = self.best.spec
                self._fewer_writes()
                self._fewer_clients()
                self._fewer_faults()
                self._simpler_roles()
                self._simpler_times()
                if self.best.spec == before:
                    break
        except (_OutOfTimeError, KeyboardInterrupt):
            return False
        return True

    def shows(self, spec: RunSpec) -> bool:
        """Perform ``spec``; if it shows the finding, it is the best from now on."""
        seeds = OTHER_SEEDS if spec.chance == "drawn" and spec.schedule is not None else ()
        for seed in dict.fromkeys((spec.seed, *seeds)):
            if self._performed(msgspec.structs.replace(spec, seed=seed)):
                return True
        return False

    def first_of(self, specs: Iterable[RunSpec]) -> bool:
        """Take the first of ``specs`` that shows the finding."""
        return any(self.shows(spec) for spec in specs)

    def _performed(self, spec: RunSpec) -> bool:
        if spec == self.best.spec:
            return True
        run = self._showing(spec)
        if run is None or (self._steady and not self._shows_with_chance(spec)):
            return False
        self.best = run
        return True

    def _shows_with_chance(self, spec: RunSpec) -> bool:
        """It shows with drawn delays too, so that it does not hang on who is first by a millisecond."""
        drawn = (msgspec.structs.replace(spec, chance="drawn", seed=seed) for seed in OTHER_SEEDS)
        return all(self._showing(other) is not None for other in drawn)

    def _showing(self, spec: RunSpec) -> JudgedRun | None:
        """Perform ``spec`` unless it is known to show nothing; None if it does not show the finding."""
        key = msgspec.json.encode(spec)
        if not self._tried.get(key, True):
            return None
        if self._until_s is not None and time.monotonic() > self._until_s:
            raise _OutOfTimeError
        self.attempts += 1
        try:
            run = run_in_memory(spec, invariants=bool(self._finding.invariant))
        except HarnessError:  # a cluster that does not come up, or a run in circles, shows nothing
            run = None
        shown = run is not None and self._finding.is_in(run)
        self._tried[key] = shown
        return run if shown else None

    # --- what can be smaller -----------------------------------------------------------------------------------------

    def _fewer_faults(self) -> None:
        """Whole scenarios first, then single faults."""
        spec, steps = self.best.spec, steps_of(self.best.spec)
        groups = tuple(dict.fromkeys(step.group for step in steps))
        reduced(groups, lambda kept: self.shows(with_steps(spec, [step for step in steps if step.group in kept])))
        spec = self.best.spec
        reduced(steps_of(spec), lambda kept: self.shows(with_steps(spec, kept)))

    def _written_down(self) -> None:
        """Writes as a list, without chance if that can be; then, if chance changes nothing, it never may."""
        forms = list(in_list_form(self.best)) or [self.best.spec]
        calm = [msgspec.structs.replace(form, chance="none", seed=CALM_SEED) for form in forms]
        if not self.first_of([*calm, *forms]):
            self._weaker_workload()
        self._steady = self.best.spec.chance == "none" and self._shows_with_chance(self.best.spec)

    def _weaker_workload(self) -> None:
        """Take a workload with less of everything where a list of writes does not show the finding."""
        while (rate := self.best.spec.workload.writes_per_second) > 1:
            if not self.shows(with_workload(self.best.spec, writes_per_second=rate / 2)):
                break

    def _fewer_writes(self) -> None:
        if (spec := self.best.spec).workload.name == LISTED:
            reduced(spec.workload.writes, lambda kept: bool(kept) and self.shows(with_writes(spec, kept)))

    def _fewer_clients(self) -> None:
        """One log partition, one producer, no consumer beside the final ones, nothing in payloads."""
        if self.best.spec.workload.name == LISTED:
            used = dict.fromkeys(write.partition for write in self.best.spec.workload.writes)
            if len(self.best.spec.workload.log_partitions) > 1:
                self.first_of(form for partition in used for form in with_one_partition(self.best.spec, partition))
            writes = [
                msgspec.structs.replace(write, producer=0, key="key-0") for write in self.best.spec.workload.writes
            ]
            self.shows(with_workload(self.best.spec, producers=1, writes=tuple(writes)))
        self.first_of(with_workload(self.best.spec, consumers=number) for number in (0, 1))
        self.shows(with_workload(self.best.spec, payload_bytes=0))
        self.shows(msgspec.structs.replace(self.best.spec, racks=(), log_dirs=1))

    def _simpler_roles(self) -> None:
        """The first of several candidates, where any will do; and no chance, where that was needed before."""
        if self.best.spec.chance == "drawn":
            self.shows(msgspec.structs.replace(self.best.spec, chance="none", seed=CALM_SEED))
        for position, step in enumerate(steps_of(self.best.spec)):
            role = step.fault.role
            for pick in range(min(role.pick, self.best.spec.brokers)):
                steps = list(steps_of(self.best.spec))
                steps[position] = with_role(step, Role(role.kind, role.partition, pick))
                if self.shows(with_steps(self.best.spec, steps)):
                    break

    def _simpler_times(self) -> None:
        """Round moments, then short stretches between them."""
        if self.best.spec.workload.name != LISTED:
            return
        moments = moments_of(self.best.spec)
        spec = self.best.spec
        self.first_of(retimed(spec, _rounded(moments, 1000 * unit_ms)) for unit_ms in ROUND_MS)
        for position in range(len(moments)):
            moments = moments_of(self.best.spec)
            if position < len(moments):
                gap_us = moments[position] - (moments[position - 1] if position else 0)
                self._shorter(position, gap_us)

    def _shorter(self, position: int, gap_us: int) -> None:
        """The shortest round length of the stretch before a moment that does not just suffice: a part of it does."""
        spec, moments = self.best.spec, moments_of(self.best.spec)
        for length_us in (1000 * length_ms for length_ms in LENGTHS_MS if 1000 * length_ms < gap_us):
            hurried = _moved(moments, position, gap_us - length_us * SUFFICIENT_PERCENT // 100)
            kept = _moved(moments, position, gap_us - length_us)
            if self._showing(retimed(spec, hurried)) is not None and self.shows(retimed(spec, kept)):
                return


def _rounded(moments: list[int], unit_us: int) -> list[int]:
    """Moments at multiples of a unit: every stretch between two of them is rounded up, so that it still suffices."""
    gaps = (now - before for before, now in pairwise([0, *moments]))
    return [*accumulate(-(-gap_us // unit_us) * unit_us for gap_us in gaps)]


def _moved(moments: list[int], position: int, earlier_us: int) -> list[int]:
    """The same moments, those from ``position`` on earlier."""
    return [*moments[:position], *(moment - earlier_us for moment in moments[position:])]
