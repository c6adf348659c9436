"""The group of an application asked how far it is, and its progress over the whole run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from workloads.application_facts import InputProgress
from workloads.client import Clock, Consumer, Offsets
from workloads.effects import Effects

#: The pause between two points of the progress, at first; it is doubled when there are too many points.
STEP_MS: Final = 500
POINTS_MAX: Final = 240


class GroupQuestions:
    """Asks the end of each input, and what the group has committed, again and again until it is ended."""

    def __init__(
        self,
        consumer: Consumer,
        clock: Clock,
        inputs: Sequence[str],
        pause_ms: int,
        committed: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._consumer, self._clock, self._inputs = consumer, clock, tuple(inputs)
        self._pause_us, self._committed = pause_ms * 1000, committed
        self._over = False
        self.ends: dict[str, int] = {}
        self._ask()

    def end(self) -> None:
        """Ask no more; a second call does nothing."""
        if not self._over:
            self._over = True
            self._consumer.close()

    def _ask(self) -> None:
        if not self._over:
            self._consumer.end_offsets(self._inputs, self._ends_known)

    def _ends_known(self, answer: Offsets) -> None:
        self.ends |= answer.offsets
        if not self._over:
            assert self._consumer.commits is not None  # noqa: S101 - it was made with a membership
            self._consumer.commits.ask_committed(self._inputs, self._committed_known)

    def _committed_known(self, answer: Offsets) -> None:
        self._committed(answer.offsets)
        if not self._over:
            self._clock.call_at(self._clock.now_us() + self._pause_us, self._ask)


class ProgressPoints:
    """The progress of an application, a point every now and then until it is ended."""

    def __init__(self, clock: Clock, effects: Effects, committed: Mapping[str, int]) -> None:
        self._clock, self._effects, self._committed = clock, effects, committed
        self._step_us = STEP_MS * 1000
        self._over = False
        self.points: list[InputProgress] = []
        self._look()

    def end(self) -> None:
        """Take no more points."""
        self._over = True

    def _look(self) -> None:
        if self._over:
            return
        effects = self._effects
        now_us = self._clock.now_us()
        self.points.append(InputProgress(now_us, effects.acknowledged, effects.done, sum(self._committed.values())))
        if len(self.points) >= POINTS_MAX:
            self.points = self.points[::2]
            self._step_us *= 2
        self._clock.call_at(now_us + self._step_us, self._look)
