"""The final readers: fresh consumers that read every log partition from its start to its end.

The end is asked of the leaders after everything was healed and every write was answered, so that a reader who reached
it has seen all that the log still has. Only then is absence a proof. A log partition that was not healthy then (no
leader, or replicas that have not caught up) may yet get records back, so its reader's statement is INFO at best.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from workloads.client import Offsets
from workloads.consumers import Reader, Readers, shares
from workloads.operations import EventType, Function, Poll

#: How long after an incomplete answer the end offsets are asked for again, and how often at most: an election or a
#: high watermark that has not reached the new epoch (KIP-207) passes within a second or two.
ASK_AGAIN_MS: Final = 100
ASKS_MAX: Final = 30


class Drain:
    """One drain of all log partitions. ``unhealthy`` maps those that cannot be drained for good to the reason.

    ``found`` are those of the values ``looked_for`` that some reader saw.
    """

    def __init__(
        self,
        readers: Readers,
        partitions: Sequence[str],
        *,
        unhealthy: Mapping[str, str],
        consumers: int,
        looked_for: Collection[int] = (),
    ) -> None:
        self._looked_for = frozenset(looked_for)
        self.found: frozenset[int] = frozenset()
        self._make = partial(Reader, readers, on_read=self._read, lost=self._replace)
        self._clock = readers.clock
        self._record = readers.recorder.record
        self._unhealthy = dict(unhealthy)
        self._ends: dict[str, int] = {}
        self._read_to = dict.fromkeys(partitions, 0)
        self._waiting = dict.fromkeys(partitions)
        self._proven: set[str] = set()
        self._over = False
        self._readers = [self._make(share) for share in shares(partitions, max(1, min(consumers, len(partitions))))]

    @property
    def finished(self) -> bool:
        """True once there is nothing left to wait for: every healthy log partition was read to its end."""
        return self._over or self._waiting.keys() <= self._unhealthy.keys()

    @property
    def complete(self) -> bool:
        """True if every log partition, all of them healthy, was read to its end."""
        return self._proven == self._read_to.keys()

    @property
    def ends(self) -> dict[str, int]:
        """The log end offsets of the log partitions that were healthy and were read to their end."""
        return {partition: self._ends[partition] for partition in sorted(self._proven)}

    def start(self) -> None:
        """Ask for the ends, and read."""
        for place in range(len(self._readers)):
            self._ask(place, ASKS_MAX)

    def end(self) -> None:
        """Say INFO of every log partition that was not read to its end, and close every client."""
        if self._over:
            return
        self._over = True
        for place, reader in enumerate(self._readers):
            for partition in reader.partitions:
                if partition in self._waiting:
                    self._state(place, partition, self._unhealthy.get(partition, "its end was not reached in time"))
            reader.stop()

    def _ask(self, place: int, asks_left: int) -> None:
        if self._over:
            return
        reader = self._readers[place]
        asked = [partition for partition in reader.partitions if partition not in self._ends]
        reader.consumer.end_offsets(asked, partial(self._answered, place, asks_left - 1))

    def _answered(self, place: int, asks_left: int, answer: Offsets) -> None:
        if self._over:
            return
        reader = self._readers[place]
        self._ends.update(answer.offsets)
        missing = [name for name in reader.partitions if name not in self._ends and name not in self._unhealthy]
        if missing and asks_left:
            self._clock.call_at(self._clock.now_us() + ASK_AGAIN_MS * 1000, partial(self._ask, place, asks_left))
            return
        self._unhealthy.update(dict.fromkeys(missing, f"its leader did not name its end: {answer.error}"))
        reader.start()
        self._check(reader.partitions)

    def _read(self, read: Poll) -> None:
        for partition, records in read.records.items():
            self._read_to[partition] = max(self._read_to[partition], records[-1].offset + 1)
            self.found |= self._looked_for.intersection(record.value for record in records)
        self._check(read.records)

    def _check(self, partitions: Sequence[str] | Mapping[str, object]) -> None:
        """State what was reached; a reader with nothing left to reach is closed."""
        for partition in partitions:
            end = self._ends.get(partition)
            if partition not in self._waiting or end is None or self._read_to[partition] < end:
                continue
            place = next(n for n, reader in enumerate(self._readers) if partition in reader.partitions)
            self._state(place, partition, self._unhealthy.get(partition))
            if not any(other in self._waiting for other in self._readers[place].partitions):
                self._readers[place].stop()

    def _state(self, place: int, partition: str, why_not: str | None) -> None:
        del self._waiting[partition]
        if why_not is None:
            self._proven.add(partition)
        self._record(
            self._readers[place].event(
                time_us=self._clock.now_us(),
                type=EventType.OK if why_not is None else EventType.INFO,
                function=Function.DRAIN,
                partitions=(partition,),
                offset=self._ends.get(partition) if why_not is None else None,
                error=why_not,
            )
        )

    def _replace(self, lost: Reader) -> None:
        """A reader whose process ended starts over: what it read is in the history, but it proves no end."""
        if self._over:
            return
        place = self._readers.index(lost)
        fresh = self._readers[place] = self._make(lost.partitions)
        self._read_to.update(dict.fromkeys(lost.partitions, 0))
        fresh.start_later()
