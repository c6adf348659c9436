"""The search itself: breadth first on several cores, until nothing is new, a rule breaks, or a limit is reached.

It goes level by level. Each worker owns the states whose hash falls to it, remembers them and expands them, some
thousands at a time; then successors go to their owners. What a level holds does not depend on who expanded it, so
neither do the counts, nor the counterexample: of all shortest ones the one with the least hashes, found again by a walk
from the beginning. States are remembered by a hash of 64 bits: of n states, two different ones were taken for one with
a probability of about n^2 / 2^64.
"""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

import msgspec

from harness.broker.core.invariants import Broken
from harness.ground.errors import HarnessError
from harness.ground.machine.forked import FORKED, leave_inherited
from harness.lab.explore.any_scope import AnyScope
from harness.lab.explore.kept_states import Level, Packing, SeenHashes
from harness.lab.explore.kinds import space_of
from harness.lab.explore.searched import Next, SearchedSpace, State

#: States that are expanded between two looks at the clock.
_STRIDE: Final = 256

#: States that a worker expands before successors go to their owners, which bounds what is under way.
_CHUNK: Final = 20_000

#: A successor on its way to its owner: its hash, the hash of the state that it follows, itself.
Found = tuple[int, int, State]


class Limits(msgspec.Struct, frozen=True):
    """Limits at which a search stops though there may be more: states, seconds, bytes of memory in one process."""

    states: int = 2**62
    seconds: float = float("inf")
    memory_bytes: int = 2**62

    def reached(self, deadline: float) -> str:
        """The option whose limit this process has reached, "" for none; ``deadline`` is of the monotonic clock."""
        if time.monotonic() > deadline:
            return f"--seconds {self.seconds:g}"
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return f"--memory {self.memory_bytes >> 20}" if used > self.memory_bytes else ""


#: No limit at all.
UNLIMITED: Final = Limits()


class Result(msgspec.Struct, frozen=True):
    """The result of a search.

    ``states`` are distinct, ``transitions`` all steps between them that were looked at, ``depth`` the steps to the
    farthest state. ``stopped`` says which limit ended it, "" where no limit did. ``broken`` is the rule and a sentence,
    and ``trace`` the steps that lead there.
    ``processor_seconds`` is what all workers together have used of processors. ``core_steps`` are the different steps
    of the core that worker 0 knows. ``acknowledged`` is the most records that were acknowledged in one state: with
    0 of them no rule about what may be lost was put to the test. ``permitted``: something was lost where that
    is permitted, since the last copy of it may have been destroyed.
    """

    states: int
    transitions: int
    depth: int
    seconds: float
    processor_seconds: float = 0.0
    stopped: str = ""
    broken: Broken | None = None
    trace: tuple[Next, ...] = ()
    core_steps: int = 0
    acknowledged: int = 0
    permitted: bool = False

    @property
    def exhausted(self) -> bool:
        """Every state of the scope was looked at."""
        return not self.stopped and self.broken is None


class Expansion(msgspec.Struct):
    """The successors that one worker found in a chunk of its level.

    ``sent`` are successors by owner, without its own, and ``told`` is all that the worker has learnt.
    ``broken`` are states whose next step breaks a rule. ``more``: the chunk was not the last one.
    """

    sent: list[list[Found]]
    told: list[Any]
    transitions: int
    broken: list[int]
    stopped: str
    more: bool


class _Level(msgspec.Struct):
    """The sum of all workers' expansions of one level."""

    transitions: int = 0
    broken: list[int] = []
    stopped: str = ""


class Worker:
    """The states that fall to one worker: which it has seen, those of the present level, those of the next."""

    def __init__(self, scope: AnyScope, limits: Limits, number: int, workers: int, *, merged: bool) -> None:
        self.space = space_of(scope, merged=merged)
        self._limits = limits
        self._number, self._workers = number, workers
        self._deadline = time.monotonic() + limits.seconds
        self._began = time.process_time()
        self._seen = SeenHashes()
        self._packing = Packing(self.space.width)
        self._levels: list[Level] = []
        self._waiting: Iterator[tuple[int, State]] = iter(())
        self._next = Level(self._packing)
        #: Successors of the present level that this worker found and others own, with the least state before each.
        self._met: dict[int, int] = {}

    def begin(self) -> None:
        """Take the first state, if it is this worker's."""
        state = self.space.begin()
        digest = self.space.canonical(state)
        if digest % self._workers == self._number:
            self._next.keep(digest, digest, state)
        self.advance()

    def expand(self) -> Expansion:
        """The successors of the level's next states that this worker has not seen; it keeps its own."""
        least: dict[int, tuple[int, State]] = {}
        transitions, broken, stopped, count = 0, [], "", 0
        space = self.space
        for count, (parent, state) in enumerate(islice(self._waiting, _CHUNK), 1):
            if count % _STRIDE == 1 and (stopped := self._limits.reached(self._deadline)):
                break
            for step in space.follow(state):
                transitions += 1
                if step.broken is not None:
                    broken.append(parent)
                    continue
                digest = space.canonical(step.state)
                if digest not in least or parent < least[digest][0]:
                    least[digest] = (parent, step.state)
        sent: list[list[Found]] = [[] for _ in range(self._workers)]
        for digest in self._seen.without([*least]):
            parent, state = least[digest]
            owner = digest % self._workers
            before = self._next.parent_of(digest) if owner == self._number else self._met.get(digest)
            if before is None and space.broken(state) is not None:
                broken.append(parent)
            elif owner == self._number:
                self._next.keep(digest, parent, state)
            elif before is None or parent < before:
                self._met[digest] = parent
                sent[owner].append((digest, parent, state))
        told = self.space.tell() if self._workers > 1 else []
        return Expansion(sent, told, transitions, broken, stopped, count == _CHUNK)

    def receive(self, successors: Sequence[Sequence[Found]], told: Sequence[list[Any]]) -> None:
        """Keep what is new of these successors for the next level."""
        if told:
            self.space.take(told)
        least: dict[int, tuple[int, State]] = {}
        for batch in successors:
            for digest, parent, state in batch:
                if digest not in least or parent < least[digest][0]:
                    least[digest] = (parent, state)
        for digest in self._seen.without([*least]):
            self._next.keep(digest, *least[digest])

    def advance(self) -> int:
        """Begin the next level; returns how many of its states are this worker's."""
        level, self._next = self._next, Level(self._packing)
        self._met.clear()
        self._seen.add(level.digests)
        self._levels.append(level)
        self._waiting = level.take()
        return len(level.digests)

    def parent_of(self, asked: tuple[int, int] | None) -> int | None:
        """Return the hash of the state that (level, hash) follows; None where nothing is asked of this worker."""
        if asked is None:
            return None
        level = self._levels[asked[0]]
        return level.parents[level.digests.index(asked[1])]

    def facts(self) -> tuple[int, float, int, bool]:
        """Different steps of the core that it performed, seconds of a processor, most records acknowledged at once,
        and whether something was lost that may be."""
        space = self.space
        return space.nodes.steps, time.process_time() - self._began, space.acknowledged, space.permitted


class _Team(Protocol):
    """All workers; ``call`` does one thing at each, with an argument of its own, at once."""

    def call(self, name: str, *arguments: Sequence[Any]) -> list[Any]:
        """The answers, in the order of the workers."""


class _Alone:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def call(self, name: str, *arguments: Sequence[Any]) -> list[Any]:
        return [getattr(self._worker, name)(*(argument[0] for argument in arguments))]


class _Processes:
    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections

    def call(self, name: str, *arguments: Sequence[Any]) -> list[Any]:
        try:
            for number, connection in enumerate(self._connections):
                connection.send((name, tuple(argument[number] for argument in arguments)))
            return [connection.recv() for connection in self._connections]
        except (EOFError, ConnectionError) as error:
            raise HarnessError(
                "a worker of the search died (killed, or out of memory); try fewer --workers, or bound it by --memory"
            ) from error


def _serve(connection: Connection, others: Sequence[Connection], make: Callable[[], Worker]) -> None:
    leave_inherited()
    # Ctrl-C reaches the whole group; who asks ends its workers. Its ends are closed here, so that its death is seen.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        other.close()
    worker = make()
    with suppress(EOFError, ConnectionError):
        while (asked := connection.recv()) is not None:
            name, arguments = asked
            connection.send(getattr(worker, name)(*arguments))


@contextmanager
def _team(scope: AnyScope, limits: Limits, workers: int, merged: bool) -> Iterator[_Team]:
    def make(number: int) -> Worker:
        return Worker(scope, limits, number, workers, merged=merged)

    if workers == 1:
        yield _Alone(make(0))
        return
    connections: list[Connection] = []
    processes = []
    for number in range(workers):
        near_end, far_end = FORKED.Pipe()
        others = (*connections, near_end)
        process = FORKED.Process(target=_serve, args=(far_end, others, lambda number=number: make(number)), daemon=True)
        process.start()
        far_end.close()  # so that its end is seen here when the worker dies
        connections.append(near_end)
        processes.append(process)
    try:
        yield _Processes(connections)
        for connection in connections:
            connection.send(None)
        for process in processes:
            process.join(timeout=5)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def exhaust(
    scope: AnyScope,
    *,
    limits: Limits = UNLIMITED,
    workers: int = 1,
    merged: bool = True,
    level_done: Callable[[int, int], None] = lambda _depth, _states: None,
) -> Result:
    """Look at every state of ``scope``; ``merged`` takes states that differ in the names of brokers for one.

    ``level_done`` is called after each level, with its depth and the states so far.

    Raises:
        PlanError: the scope's settings are wrong.
        HarnessError: a worker died.
    """
    _ = scope.chosen  # Here, and not in each worker.
    began = time.monotonic()
    team_of: AbstractContextManager[_Team] = _team(scope, limits, workers, merged)
    with team_of as team:
        team.call("begin")
        states, transitions, depth, stopped = 1, 0, 0, ""
        while True:
            level = _expand_level(team, workers)
            transitions += level.transitions
            broken = min(level.broken, default=None)
            if broken is not None:
                break
            fresh = sum(team.call("advance"))
            states += fresh
            stopped = level.stopped
            if stopped or not fresh:
                break
            depth += 1
            level_done(depth, states)
            if states >= limits.states:
                stopped = f"--states {limits.states}"
                break
        path = [] if broken is None else _path(team, workers, depth, broken)
        steps, seconds, acknowledged, permitted = zip(*team.call("facts"), strict=True)
    trace = _walk(space_of(scope, merged=merged), path) if path else ()
    return Result(
        states,
        transitions,
        depth,
        time.monotonic() - began,
        sum(seconds),
        stopped,
        trace[-1].broken if trace else None,
        trace,
        steps[0],
        max(acknowledged),
        any(permitted),
    )


def _expand_level(team: _Team, workers: int) -> _Level:
    """Have the whole level expanded, and its successors brought to their owners."""
    level = _Level()
    while True:
        expansions: list[Expansion] = team.call("expand")
        others = [[other for other in expansions if other is not expansion] for expansion in expansions]
        batches = [[other.sent[number] for other in others[number]] for number in range(workers)]
        team.call("receive", batches, [[other.told for other in others[number]] for number in range(workers)])
        for expansion in expansions:
            level.transitions += expansion.transitions
            level.broken += expansion.broken
            level.stopped = level.stopped or expansion.stopped
        if level.stopped or not any(expansion.more for expansion in expansions):
            return level


def _path(team: _Team, workers: int, depth: int, digest: int) -> list[int]:
    """The hashes from the first state to the one from which a rule breaks."""
    path = [digest]
    for level in range(depth, 0, -1):
        owner = path[-1] % workers
        asked = [(level, path[-1]) if number == owner else None for number in range(workers)]
        path.append(next(answer for answer in team.call("parent_of", asked) if answer is not None))
    return path[::-1]


def _walk(space: SearchedSpace[Any, Any], path: Sequence[int]) -> tuple[Next, ...]:
    """The steps along a path of hashes, and the first one after it that breaks a rule."""
    state, steps = space.begin(), []
    for digest in path[1:]:
        step = next(
            follower
            for follower in space.follow(state)
            if follower.broken is None and space.canonical(follower.state) == digest
        )
        steps.append(step)
        state = step.state
    judged = map(space.judged, space.follow(state))
    steps.append(next(follower for follower in judged if follower.broken is not None))
    return tuple(steps)
