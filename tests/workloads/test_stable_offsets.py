"""The question before the final read: is a transaction open, and what is written down of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import msgspec

from tests.conftest import EventList, VirtualClock
from workloads.client import Offsets
from workloads.consumers import Readers
from workloads.operations import Function, Reached, StableOffset
from workloads.settings import IsolationLevel, Settings
from workloads.stable_offsets import StableOffsets

SECOND_US = 1_000_000


class Log:
    """Consumers that are told the ends of two log partitions; one has a transaction open until ``open_us``."""

    def __init__(self, clock: VirtualClock, open_us: int) -> None:
        self.clock, self.open_us = clock, open_us
        self.closed = 0

    def consumer(self, _process: int, *, isolation: IsolationLevel) -> Consumer:
        return Consumer(self, isolation)


class Consumer:
    def __init__(self, log: Log, isolation: IsolationLevel) -> None:
        self.log, self.isolation = log, isolation

    def end_offsets(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        held = self.isolation == "read_committed" and self.log.clock.now_us() < self.log.open_us
        ends = {name: 7 if held and name == "t-1" else 9 for name in partitions}
        self.log.clock.call_at(self.log.clock.now_us() + 1_000, lambda: done(Offsets(ends)))

    def close(self) -> None:
        self.log.closed += 1


def ask(open_us: int) -> tuple[StableOffsets, EventList, Log]:
    clock, recorded = VirtualClock(), EventList()
    log = Log(clock, open_us)
    readers = Readers(log, clock, recorded, itertools.count().__next__, 250)  # type: ignore[arg-type]
    stable = StableOffsets(readers, Settings(transaction_timeout_ms=2_000))
    stable.start(("t-0", "t-1"))
    clock.drive(lambda: stable.finished, 5 * SECOND_US)
    stable.end()
    return stable, recorded, log


def test_it_asks_until_no_transaction_is_open() -> None:
    stable, recorded, log = ask(3 * SECOND_US)
    assert stable.finished
    assert stable.held == {}
    assert log.clock.now_us() < 4 * SECOND_US
    assert [event.micro for event in recorded.of(Function.STABLE)] == [(Reached("t-0", 9),), (Reached("t-1", 9),)]
    assert log.closed == 2


def test_a_transaction_that_stays_open_holds_its_log_partition() -> None:
    stable, recorded, _ = ask(60 * SECOND_US)
    assert not stable.finished
    assert list(stable.held) == ["t-1"]
    assert "the last stable offset is 7, the high watermark 9" in stable.held["t-1"]
    event = recorded.of(Function.STABLE)[1]
    assert event.micro == (Reached("t-1", 7),)
    assert event.detail is not None
    assert msgspec.json.decode(event.detail, type=StableOffset) == StableOffset(high_watermark=9, open_ms=12_000)
