"""The final readers: fresh consumers that read every log partition from its start to its end.

The end is asked of the leaders after everything was healed and every write was answered, so that a reader that reached
it has seen everything that the log still has. Only then is absence a proof. A log partition that was not healthy then
(no leader, or replicas that have not caught up) may yet get records back, so its reader's statement is INFO at best.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from workloads.client import Offsets
from workloads.consumers import Reader, Readers, shares
from workloads.operations import CleanerTimes, EventType, Function, Poll
from workloads.served_time import ServedTime

#: Pause after an incomplete answer before the end offsets are asked for again, and the most asks: an election or a high
#: watermark that has not reached the new epoch (KIP-207) passes within a second or two.
ASK_AGAIN_MS: Final = 100
ASKS_MAX: Final = 30
#: Asks of one reader; where an end is still missing after them, a fresh reader asks.
ASKS_OF_ONE: Final = 10
#: A reader that brought nothing for this long, neither an end nor a record, is replaced by a fresh one, so that only
#: the log can be the reason. A log partition that brought nothing for this long at the end has not come back. An
#: election takes a second or two. Served time counts: on a starved machine, where our own timers come late, a reader
#: had no chance either.
STUCK_MS: Final = 3_000


class _Progress(msgspec.Struct):
    """The reading of one log partition: offsets after the last record of this reader and of any, and the served times
    at which they moved.
    """

    read_to: int = 0
    furthest: int = 0
    read_us: int = 0
    advanced_us: int = 0

    def read(self, upto: int, now_us: int) -> None:
        self.read_to, self.read_us = max(self.read_to, upto), now_us
        if self.read_to > self.furthest:
            self.furthest, self.advanced_us = self.read_to, now_us

    @property
    def last_us(self) -> int:
        """The time of the last progress; a reader that started over progresses until it is where the one before was."""
        return self.read_us if self.read_to < self.furthest else self.advanced_us


class Drain:
    """One drain of all log partitions. ``unhealthy`` maps those that cannot be drained for good to the reason.

    ``leader`` is the broker that leads the healthy ones, where they were moved to it for this drain. ``cleaner`` says
    how long a log keeps records that may go.
    ``seen_values`` are the values among ``looked_for`` that some reader saw. ``unread`` has, once it is over, the
    healthy log partitions whose end no leader named, or that brought nothing any more, with the reason. One that was
    still being read is not among them: the log is only too long for the limit.
    """

    def __init__(
        self,
        readers: Readers,
        partitions: Sequence[str],
        *,
        unhealthy: Mapping[str, str],
        consumers: int,
        looked_for: Collection[int] = (),
        leader: int | None = None,
        cleaner: CleanerTimes | None = None,
    ) -> None:
        self._leader = leader
        self._detail = None if cleaner is None else msgspec.json.encode(cleaner).decode()
        self._looked_for = frozenset(looked_for)
        self.seen_values: frozenset[int] = frozenset()
        self._make = partial(Reader, readers, on_read=self._read, lost=self._replace)
        self._clock = readers.clock
        self._record = readers.recorder.record
        self._lacking = frozenset(unhealthy)
        self._unhealthy = dict(unhealthy)
        self.unread: dict[str, str] = {}
        self._ends: dict[str, int] = {}
        self._served = ServedTime(self._clock, ASK_AGAIN_MS * 1000)
        self._progress = {name: _Progress() for name in partitions}
        self._waiting = dict.fromkeys(partitions)
        self._proven: set[str] = set()
        self._over = False
        self._readers = [self._make(share) for share in shares(partitions, max(1, min(consumers, len(partitions))))]
        #: By reader, when it was made or last named an end, and how often it may still be asked for ends.
        self._fresh_us = [0] * len(self._readers)
        self._asks_left = [ASKS_MAX] * len(self._readers)

    @property
    def finished(self) -> bool:
        """True once nothing is left to wait for: every healthy log partition was read to its end."""
        return self._over or self._waiting.keys() <= self._unhealthy.keys()

    @property
    def complete(self) -> bool:
        """True if every log partition, all of them healthy, was read to its end."""
        return self._proven == self._progress.keys()

    @property
    def ends(self) -> dict[str, int]:
        """The log end offsets of the log partitions that were healthy and were read to their end."""
        return {partition: self._ends[partition] for partition in sorted(self._proven)}

    def start(self) -> None:
        """Ask for the ends, and read."""
        for number in range(len(self._readers)):
            self._ask(self._readers[number])
        self._look()

    def end(self) -> None:
        """Say INFO of every log partition that was not read to its end, and close every client."""
        if self._over:
            return
        self._over = True
        for number, reader in enumerate(self._readers):
            for partition in reader.partitions:
                if partition in self._waiting:
                    self._state(number, partition, self._why_unread(partition))
            reader.stop()

    def _why_unread(self, partition: str) -> str:
        """The reason why its end was not reached; kept in ``unread`` where the log is to blame, and lacked nothing."""
        why = self._unhealthy.get(partition)
        if why is None and partition not in self._ends:
            why = "no leader named its end in time"
        if why is None and self._served.now_us() - self._progress[partition].last_us >= STUCK_MS * 1000:
            why = f"its end was not reached, and nothing of it was read for the last {STUCK_MS} ms"
        if why is None:
            return "its end was not reached in time, but it was still being read: raise drain_limit_ms"
        if partition not in self._lacking:
            self.unread[partition] = why
        return why

    def _look(self) -> None:
        """Replace readers that bring nothing, now and then until it is over."""
        if self._over:
            return
        served_us = self._served.look()
        for number, reader in enumerate(self._readers):
            waiting = [name for name in reader.partitions if name in self._waiting and name not in self._unhealthy]
            last_us = max([self._fresh_us[number], *(self._progress[name].last_us for name in waiting)])
            if waiting and served_us - last_us >= STUCK_MS * 1000:
                reader.stop()
                self._replace(reader)
        self._clock.call_at(self._clock.now_us() + ASK_AGAIN_MS * 1000, self._look)

    def _ask(self, reader: Reader) -> None:
        if self._over or reader not in self._readers:
            return
        self._asks_left[self._readers.index(reader)] -= 1
        asked = [partition for partition in reader.partitions if partition not in self._ends]
        reader.consumer.end_offsets(asked, partial(self._answered, reader))

    def _answered(self, reader: Reader, answer: Offsets) -> None:
        if self._over or reader not in self._readers:
            return
        number = self._readers.index(reader)
        if answer.offsets:
            self._fresh_us[number] = self._served.now_us()
        self._ends.update(answer.offsets)
        missing = self._unnamed(reader)
        if missing and self._asks_left[number] > 0:
            if self._asks_left[number] % ASKS_OF_ONE == 0:
                reader.stop()
                self._replace(reader)
            else:
                self._clock.call_at(self._clock.now_us() + ASK_AGAIN_MS * 1000, partial(self._ask, reader))
            return
        self._unhealthy.update(dict.fromkeys(missing, f"its leader did not name its end: {answer.error}"))
        reader.start()
        self._check(reader.partitions)

    def _unnamed(self, reader: Reader) -> list[str]:
        return [name for name in reader.partitions if name not in self._ends and name not in self._unhealthy]

    def _read(self, read: Poll) -> None:
        for partition, records in read.records.items():
            self._progress[partition].read(records[-1].offset + 1, self._served.now_us())
            self.seen_values |= self._looked_for.intersection(record.value for record in records)
        self._check(read.records)

    def _check(self, partitions: Sequence[str] | Mapping[str, object]) -> None:
        """State the ends that were reached; a reader with nothing left to reach is closed."""
        for partition in partitions:
            end = self._ends.get(partition)
            if partition not in self._waiting or end is None or self._progress[partition].read_to < end:
                continue
            number = next(n for n, reader in enumerate(self._readers) if partition in reader.partitions)
            self._state(number, partition, self._unhealthy.get(partition))
            if not any(other in self._waiting for other in self._readers[number].partitions):
                self._readers[number].stop()

    def _state(self, number: int, partition: str, why_not: str | None) -> None:
        del self._waiting[partition]
        if why_not is None:
            self._proven.add(partition)
        self._record(
            self._readers[number].event(
                time_us=self._clock.now_us(),
                type=EventType.OK if why_not is None else EventType.INFO,
                function=Function.DRAIN,
                partitions=(partition,),
                offset=self._ends.get(partition) if why_not is None else None,
                node=self._leader,
                error=why_not,
                detail=self._detail,
            )
        )

    def _replace(self, lost: Reader) -> None:
        """Let a fresh reader start over: reads of the one before are in the history, but prove no end."""
        if self._over:
            return
        number = self._readers.index(lost)
        fresh = self._readers[number] = self._make(lost.partitions)
        self._fresh_us[number] = self._served.now_us()
        for partition in lost.partitions:
            self._progress[partition].read_to = 0
        if self._unnamed(fresh) and self._asks_left[number] > 0:
            self._ask(fresh)
        else:
            fresh.start_later()
