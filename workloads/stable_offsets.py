"""The ends of log partitions before the final read: is a transaction still open in one?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec

from workloads.client import Clock, Consumer, Offsets
from workloads.consumers import Readers
from workloads.operations import HARNESS, Event, EventType, Function, Reached, StableOffset
from workloads.settings import IsolationLevel, Settings

#: Between two questions: a marker is written within milliseconds, an abandoned transaction is aborted within seconds.
ASK_AGAIN_MS: Final = 250
#: Pause between a broker's looks for transactions that are over time (transaction.abort.timed.out.transaction.cleanup.
#: interval.ms), and its further time to abort one.
ABORT_CHECK_MS: Final = 10_000
ABORT_MS: Final = 5_000


class StableOffsets:
    """Asks for the end of each log partition, as readers of committed and of uncommitted records see it.

    It asks until both are the same everywhere, or until it is ended. After ``limit_ms`` no transaction can be open.
    """

    def __init__(self, readers: Readers, settings: Settings) -> None:
        self._record = readers.recorder.record
        self._clock: Clock = readers.clock
        self._open_ms = settings.transaction_timeout_ms + ABORT_CHECK_MS
        self.limit_ms = self._open_ms + ABORT_MS
        self._readers = readers
        self._consumers: dict[IsolationLevel, Consumer] = {}
        self._ends: dict[IsolationLevel, dict[str, int]] = {level: {} for level in _LEVELS}
        self._partitions: tuple[str, ...] = ()
        self._over = False

    @property
    def finished(self) -> bool:
        """True once no log partition has an open transaction."""
        return bool(self._partitions) and not self.held

    @property
    def held(self) -> dict[str, str]:
        """The log partitions in which a reader of committed records sees less, or that named no end, and why."""
        stable, high = (self._ends[level] for level in _LEVELS)
        return {
            name: f"a transaction is open: the last stable offset is {stable.get(name)}, the high watermark "
            f"{high.get(name)}"
            for name in self._partitions
            if name not in stable or stable.get(name) != high.get(name)
        }

    def start(self, partitions: Iterable[str]) -> None:
        """Ask about these log partitions."""
        self._partitions = tuple(partitions)
        for level in _LEVELS:
            self._consumers[level] = self._readers.clients.consumer(self._readers.new_process(), isolation=level)
        self._ask("read_uncommitted")

    def end(self) -> None:
        """Write down what was answered last, and close the consumers."""
        self._over = True
        for consumer in self._consumers.values():
            consumer.close()
        stable, high = (self._ends[level] for level in _LEVELS)
        for name in self._partitions:
            if name in stable and name in high:
                facts = StableOffset(high_watermark=high[name], open_ms=self._open_ms)
                self._record(
                    Event(
                        time_us=self._clock.now_us(),
                        process=HARNESS,
                        type=EventType.OK,
                        function=Function.STABLE,
                        micro=(Reached(name, stable[name]),),
                        detail=msgspec.json.encode(facts).decode(),
                    )
                )

    def _ask(self, level: IsolationLevel) -> None:
        """Ask for the high watermark first: what is appended meanwhile then is below the last stable offset."""
        if not self._over:
            self._consumers[level].end_offsets(self._partitions, partial(self._answered, level))

    def _answered(self, level: IsolationLevel, answer: Offsets) -> None:
        if self._over:
            return
        self._ends[level].update(answer.offsets)
        if level == "read_uncommitted":
            self._ask("read_committed")
        elif not self.finished:
            again = partial(self._ask, "read_uncommitted")
            self._clock.call_at(self._clock.now_us() + ASK_AGAIN_MS * 1000, again)


_LEVELS: Final[tuple[IsolationLevel, ...]] = ("read_committed", "read_uncommitted")
