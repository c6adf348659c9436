"""Hunts: random schedules under many settings, until a checker or an invariant sees what is wrong.

Portfolios have their turns in a fixed order (:mod:`harness.lab.search.turns`), and each run has a seed of its own, so
what is found does not depend on how many workers look. A finding counts only if the same run without what was changed
on purpose (a planted bug, a rule of Kafka's) finds nothing: what is found without the change, too, is about the core
itself. A permitted loss is not a finding.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain, islice, repeat
from typing import Any, Final

import msgspec

from checkers import Outcome, ReplicaOutOfSync
from harness.ground.errors import HarnessError
from harness.ground.machine.forked import forked_pool
from harness.ground.machine.spread import Workers, spread
from harness.lab.search.judged_run import JudgedRun, run_in_memory
from harness.lab.search.portfolios import PORTFOLIOS, Portfolio
from harness.lab.search.sameness import OUT_OF_SYNC, STALLED
from harness.lab.search.turns import Turn, blocks_of, turns_of
from harness.plan import RunSpec

#: Runs that are given to a worker at a time.
BLOCK: Final = 4
#: On a cluster blocks grow with what was given to it, up to this: a task costs the driver as much as 0.2 runs cost a
#: worker. So what is easy is noticed as early, and many workers are kept busy.
BLOCK_MAX: Final = 64
#: A block may have one run for this number of runs that were given before.
GROWTH: Final = 16
#: Worker processes may be killed as often as this in a row over the same runs, mostly because memory is short.
KILLED_MAX: Final = 3
#: The sources of an alarm when the run did not come to its end: an assertion of the core failed, or anything else did.
ASSERTION: Final = "assertion"
CRASH: Final = "crash"
#: The finding of the checkers that an invariant was broken, which is named itself.
_BY_NAME: Final = "broken-invariant"


class Alarm(msgspec.Struct, frozen=True):
    """Something that is wrong, and what noticed it: an invariant, the checkers, or the end of the run."""

    by: str
    text: str


class HuntedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Run ``number`` of a portfolio, what it found, nothing mostly, and the seconds of one core that it took."""

    number: int
    portfolio: str
    spec: RunSpec
    alarms: tuple[Alarm, ...]
    seconds: float


class HuntResult(msgspec.Struct, kw_only=True):
    """The end of a hunt. ``alarming`` is the first run with an alarm that its control does not have, if there is one.

    ``changed`` is what was changed on purpose. ``schedules`` are all runs up to that one, ``seconds`` what they and
    their controls took of a processor. ``spurious`` are runs whose control has an alarm too: findings about the core as
    it is. ``stopped`` says why the harness could not go on, "" where it could.
    """

    changed: dict[str, Any]
    seed: int
    schedules: int
    seconds: float
    alarming: HuntedRun | None = msgspec.field(name="found")
    spurious: tuple[HuntedRun, ...] = ()
    stopped: str = ""


def hunt(
    changed: Mapping[str, Any],
    *,
    seed: int,
    seconds: float,
    workers: Workers = 1,
    portfolios: Sequence[Portfolio] = PORTFOLIOS,
    first: int = 0,
) -> HuntResult:
    """Look for what ``changed`` settings do wrong, for ``seconds`` of a processor; without any, for what the core does.

    No other clock is asked, so a hunt on a busy machine looks at as much. Begins with run ``first``; no ``seconds`` are
    one run.

    Raises:
        SettingsError: the settings do not fit a portfolio's.
    """
    result = HuntResult(changed=dict(changed), seed=seed, schedules=0, seconds=0.0, alarming=None)
    try:
        for run in runs(changed, seed=seed, workers=workers, portfolios=portfolios, first=first):
            result.schedules += 1
            result.seconds += run.seconds
            if run.alarms:
                began = time.process_time()
                is_silent = not changed or not alarms_of(without(run.spec, changed))
                result.seconds += time.process_time() - began
                if is_silent:
                    result.alarming = run
                    break
                result.spurious += (run,)
            if result.seconds > seconds:
                break
    except HarnessError as error:
        result.stopped = str(error)
    return result


def as_it_is(count: int, *, seed: int, workers: Workers = 1, portfolios: Sequence[Portfolio]) -> Iterator[HuntedRun]:
    """``count`` runs of the core as it is, in the order of their turns: none of them should have an alarm."""
    yield from islice(runs({}, seed=seed, workers=workers, portfolios=portfolios), count)


def without(spec: RunSpec, changed: Mapping[str, Any]) -> RunSpec:
    """The control of a run: the same faults and choices, with the defaults of what was ``changed``."""
    return msgspec.structs.replace(
        spec, settings={name: value for name, value in spec.settings.items() if name not in changed}
    )


def runs(
    changed: Mapping[str, Any], *, seed: int, workers: Workers, portfolios: Sequence[Portfolio], first: int = 0
) -> Iterator[HuntedRun]:
    """Run after run in the order of their turns, each portfolio's from ``first`` on; the iterator never ends by itself.

    Runs whose worker was killed are performed again by another.

    Raises:
        HarnessError: workers were killed over the same runs :data:`KILLED_MAX` times, or a Spark job failed.
    """
    turns = turns_of(portfolios, first)
    perform = partial(_block, changed=changed, seed=seed)
    if isinstance(workers, str):
        yield from chain.from_iterable(spread(workers, perform, blocks_of(turns, growing_sizes())))
        return
    if workers < 2:
        yield from chain.from_iterable(map(perform, blocks_of(turns, repeat(1))))
        return
    number, killed, given = first, 0, deque[list[Turn]]()
    while True:
        try:
            for block in _in_processes(given, blocks_of(turns, repeat(BLOCK)), perform, workers):
                yield from block
                number, killed = number + BLOCK, 0
        except BrokenProcessPool as error:
            killed += 1
            if killed == KILLED_MAX:
                raise HarnessError(
                    f"a worker process of the hunt was killed {killed} times in a row, over runs {number} to "
                    f"{number + 2 * workers * BLOCK - 1}; see that there is memory for it, or name fewer with --workers"
                ) from error


def _in_processes(
    given: deque[list[Turn]],
    blocks: Iterator[list[Turn]],
    perform: Callable[[Sequence[Turn]], list[HuntedRun]],
    workers: int,
) -> Iterator[list[HuntedRun]]:
    """Blocks of runs in order, performed in worker processes. ``given`` are those without an answer, the next first."""
    with forked_pool(workers) as pool:
        waiting: list[Future[list[HuntedRun]]] = []
        try:
            while True:
                while len(waiting) < 2 * workers:
                    if len(waiting) == len(given):
                        given.append(next(blocks))
                    waiting.append(pool.submit(perform, given[len(waiting)]))
                runs_done = waiting.pop(0).result()
                given.popleft()
                yield runs_done
        finally:
            pool.shutdown(cancel_futures=True)


def growing_sizes() -> Iterator[int]:
    """The sizes of blocks for a cluster; the iterator never ends by itself."""
    given = 0
    while True:
        size = min(BLOCK_MAX, max(BLOCK, given // GROWTH))
        yield size
        given += size


def _block(turns: Sequence[Turn], changed: Mapping[str, Any], seed: int) -> list[HuntedRun]:
    return [_run(turn, changed, seed) for turn in turns]


def _run(turn: Turn, changed: Mapping[str, Any], seed: int) -> HuntedRun:
    began = time.process_time()
    spec = turn.portfolio.spec(seed, turn.number, changed)
    alarms = alarms_of(spec)
    return HuntedRun(
        number=turn.number,
        portfolio=turn.portfolio.name,
        spec=spec,
        alarms=alarms,
        seconds=time.process_time() - began,
    )


def alarms_of(spec: RunSpec) -> tuple[Alarm, ...]:
    """Everything that is wrong about a run, attempted now; what ends it is a finding about it, whatever it is."""
    try:
        run = run_in_memory(spec)
    except AssertionError as error:
        return (Alarm(ASSERTION, str(error)),)
    except Exception as error:  # A hunt is for what was not thought of, and goes on.
        return (Alarm(CRASH, f"{type(error).__name__}: {error}"),)
    return alarms_in(run)


def alarms_in(run: JudgedRun) -> tuple[Alarm, ...]:
    """Everything that is wrong about a run that came to its end."""
    return tuple(_alarms(run))


def _alarms(run: JudgedRun) -> Iterator[Alarm]:
    if run.broken is not None:
        what = run.broken.text.removeprefix(f"{run.broken.name}: ")
        yield Alarm(run.broken.name, f"at {run.broken.time_us / 1e6:.2f} s: {what}")
    for anomaly, number in run.judgement.broken.items():
        if anomaly == OUT_OF_SYNC:
            lacks = run.verdict.findings(ReplicaOutOfSync)
            yield Alarm(anomaly, "; ".join(f"{finding.key}: {finding.lack}" for finding in lacks))
        elif anomaly != _BY_NAME:
            yield Alarm(anomaly, f"{number} found, none permitted")
    if run.judgement.outcome is Outcome.STALLED:
        yield Alarm(STALLED, "; ".join(f"{key}: {why}" for key, why in run.judgement.stalled.items()))
