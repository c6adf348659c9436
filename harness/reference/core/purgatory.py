"""Requests that wait: produces for the high watermark, fetches for data. Bounded in number and in time.

All deadlines of a broker share one heap and one armed timer: nearly every request is answered long before its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from harness.reference.core.context import Context
from harness.reference.core.effects import Timer
from harness.reference.core.messages import Fetch, FetchPartition, Produce
from harness.reference.core.types import NodeId, TopicPartition

#: Requests parked at one broker at a time. More would mean clients that wait for thousands of answers each: beyond it
#: a produce is answered as timed out and a fetch as it stands.
PARKED_MAX = 10_000

DEADLINES = Timer("deadlines")


class ParkedProduce:
    """An acks=all produce, appended up to ``next_offset``. Its records are in the log, so they are not kept here."""

    __slots__ = ("acks", "base_offset", "client", "correlation", "done", "next_offset", "partition")

    def __init__(self, client: NodeId, message: Produce, base_offset: int, next_offset: int) -> None:
        self.client = client
        self.correlation = message.correlation
        self.partition = message.partition
        self.acks = message.acks
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.done = False


class ParkedFetch:
    """A fetch that found too little. ``wanted`` holds its partitions."""

    __slots__ = ("client", "done", "message", "wanted")

    def __init__(self, client: NodeId, message: Fetch) -> None:
        self.client = client
        self.message = message
        self.wanted: dict[TopicPartition, FetchPartition] = {w.partition: w for w in message.partitions}
        self.done = False


Parked = ParkedProduce | ParkedFetch


class Deadlines:
    """When parked requests end, whether anything happened or not."""

    __slots__ = ("_armed_us", "_context", "_heap", "_sequence", "live")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._heap: list[tuple[int, int, Parked]] = []
        self._sequence = 0
        self._armed_us = 2**63
        self.live = 0

    def add(self, at_us: int, parked: Parked) -> None:
        """Expire ``parked`` at a time unless it is finished by then."""
        self._sequence += 1
        self.live += 1
        heapq.heappush(self._heap, (at_us, self._sequence, parked))
        if len(self._heap) > 2 * self.live + 64:
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapq.heapify(self._heap)
        self._arm(at_us)

    def finish(self, parked: Parked) -> None:
        """The request was answered."""
        parked.done = True
        self.live -= 1

    def expired(self, now_us: int) -> Iterator[Parked]:
        """Every request whose time is over; the taker finishes it. Arms the next timer at the end."""
        self._armed_us = 2**63
        heap = self._heap
        while heap and (heap[0][0] <= now_us or heap[0][2].done):
            parked = heapq.heappop(heap)[2]
            if not parked.done:
                yield parked
        if heap:
            self._arm(heap[0][0])

    def _arm(self, at_us: int) -> None:
        if at_us < self._armed_us:
            self._armed_us = at_us
            self._context.arm(at_us, DEADLINES)


class ParkedProduces:
    """Parked produces by partition, in the order of the offsets they wait for."""

    __slots__ = ("_by_partition", "_sequence", "_swept")

    def __init__(self) -> None:
        self._sequence = 0
        self._by_partition: dict[TopicPartition, list[tuple[int, int, ParkedProduce]]] = {}
        self._swept: dict[TopicPartition, int] = {}

    def add(self, parked: ParkedProduce) -> None:
        """Wait for ``parked.next_offset``; now and then sweep out what has timed out at a stuck partition."""
        at = parked.partition
        heap = self._by_partition.setdefault(at, [])
        self._sequence += 1
        heapq.heappush(heap, (parked.next_offset, self._sequence, parked))
        if len(heap) > 2 * self._swept.get(at, 32):
            heap[:] = [entry for entry in heap if not entry[2].done]
            heapq.heapify(heap)
            self._swept[at] = max(len(heap), 32)

    def reached(self, at: TopicPartition, high_watermark: int) -> list[ParkedProduce]:
        """Those that the high watermark has covered; they are waiting no more."""
        heap = self._by_partition.get(at)
        found: list[ParkedProduce] = []
        while heap and (heap[0][0] <= high_watermark or heap[0][2].done):
            parked = heapq.heappop(heap)[2]
            if not parked.done:
                found.append(parked)
        return found

    def all_of(self, at: TopicPartition) -> list[ParkedProduce]:
        """Every produce that waits at a partition; they are waiting no more."""
        return [parked for _, _, parked in self._by_partition.pop(at, ()) if not parked.done]


class ParkedFetches:
    """Parked fetches: one per follower, any number per partition for consumers."""

    __slots__ = ("_consumers", "_followers")

    def __init__(self) -> None:
        self._followers: dict[NodeId, ParkedFetch] = {}
        self._consumers: dict[TopicPartition, list[ParkedFetch]] = {}

    def add(self, parked: ParkedFetch) -> None:
        """Wait for something to happen at one of its partitions."""
        if parked.message.replica_id >= 0:
            self._followers[parked.message.replica_id] = parked
            return
        for at in parked.wanted:
            waiting = self._consumers.setdefault(at, [])
            waiting[:] = [other for other in waiting if not other.done]
            waiting.append(parked)

    def of_follower(self, node: NodeId) -> ParkedFetch | None:
        """The fetch of a follower that waits here."""
        parked = self._followers.get(node)
        return None if parked is None or parked.done else parked

    def of_consumers(self, at: TopicPartition) -> list[ParkedFetch]:
        """The fetches of consumers that wait at a partition."""
        waiting = self._consumers.get(at)
        return [parked for parked in waiting if not parked.done] if waiting else []

    def all_of(self, at: TopicPartition) -> list[ParkedFetch]:
        """Every fetch that waits at a partition, among others."""
        followers = [parked for parked in self._followers.values() if not parked.done and at in parked.wanted]
        return followers + self.of_consumers(at)
