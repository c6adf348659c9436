"""Pauses between the steps of a story, for those who compare the states of two worlds step by step.

A real cluster is shown when it has come to rest, and the core is given as long for a step as the real cluster took: so
time limits run out at the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from harness.runs.stories.stage.story_world import StoryWorld
from harness.worlds.contract import ReplicaState
from nemesis.cluster import PartitionView

#: A pause after a step that began at this time of the run's clock, and that freed links or did not.
Pause = Callable[[StoryWorld, int, bool], None]

#: A real cluster is at rest when this number of looks in a row show the same.
SAME_LOOKS: Final = 6
LOOK_EVERY_MS: Final = 250
#: The same after links were freed: a broker that waits for an answer which was dropped asks again after three seconds
#: (replica.socket.timeout.ms of the harness's clusters), and one that connects after one, two and four more seconds.
SAME_LOOKS_FREED: Final = 30
#: The limit for what goes on changing, and for brokers that were started: a JVM's start, and the session of the
#: process before.
REST_LIMIT_MS: Final = 10_000
START_LIMIT_MS: Final = 40_000
#: The limit for a broker's former session, which a broker that is started again has to wait for: it is fenced then.
SESSION_LIMIT_MS: Final = 15_000
#: A step in virtual time lasts so long at least.
VIRTUAL_REST_MS: Final = SAME_LOOKS * LOOK_EVERY_MS


def no_pause(story_world: StoryWorld, begun_us: int, freed: bool) -> None:
    """Go on at once."""


class UntilAtRest:
    """Waits until nothing changes any more, and until the controller has registered each broker that runs again.

    The replicas are put in their first order again, so that elections prefer the same brokers as the script does.
    """

    def __init__(self) -> None:
        self._running: frozenset[int] | None = None

    def __call__(self, story_world: StoryWorld, begun_us: int, freed: bool) -> None:  # noqa: ARG002
        """Wait, but not for ever."""
        story_world.keep_order()
        running = frozenset(story_world.running)
        begun = frozenset() if self._running is None else running - self._running
        self._running = running
        if begun:
            fenced: set[int] = set()
            story_world.until(lambda: begun <= _added(fenced, story_world.fenced()), SESSION_LIMIT_MS)
            story_world.until(lambda: not begun & {*story_world.fenced()}, START_LIMIT_MS)
        looks, enough = 0, SAME_LOOKS_FREED if freed else SAME_LOOKS
        last = _look(story_world)
        for _ in range(REST_LIMIT_MS // LOOK_EVERY_MS):
            story_world.let_pass(LOOK_EVERY_MS)
            now = _look(story_world)
            looks, last = (looks + 1 if now == last else 0), now
            if looks >= enough:
                return


class AsLongAs:
    """Lets each step of a performance in virtual time last as long as it did elsewhere (milliseconds, in order)."""

    def __init__(self, now_us: Callable[[], int], lasted_ms: Sequence[int]) -> None:
        self._now_us = now_us
        self._lasted_ms: Iterator[int] = iter(lasted_ms)

    def __call__(self, story_world: StoryWorld, begun_us: int, freed: bool) -> None:  # noqa: ARG002
        """Let the rest of its time pass, and the time in which everything comes to rest in any case."""
        left_ms = next(self._lasted_ms, 0) - (self._now_us() - begun_us) // 1_000
        story_world.let_pass(max(left_ms, VIRTUAL_REST_MS))


def _added(brokers: set[int], more: Iterable[int]) -> set[int]:
    brokers.update(more)
    return brokers


def _look(story_world: StoryWorld) -> tuple[PartitionView, tuple[int, ...], tuple[ReplicaState, ...]]:
    return story_world.view, story_world.fenced(), story_world.replicas()
