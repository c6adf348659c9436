"""Synthetic histories of transactional producers, as the workload of transactions writes them.

Four producers at a time each send a few values in a transaction, and then commit it or abort it. A reader of committed
records polls when they have ended, so it sees what was committed and passes over what was aborted. A final reader reads
every log partition once more, and a broker is asked where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from typing_extensions import override

from bench.event_sequence import LATENCY_US, asked
from bench.plants_of_clients import OPEN_MS
from bench.synthetic import KEYS, BlockBuilder
from workloads import EventType, Function, Poll, Reached, Record, Send, StableOffset, TransactionEnd

#: Transactions in a block, and those under way at a time.
COMMITTED: Final = 5_000
AT_A_TIME: Final = 4
#: One in this number is aborted.
ABORT_EVERY: Final = 10
_READER, _FINAL_READER = 90, 91


class CommittedBlock(BlockBuilder):
    """A block of transactions, each of two to four sends."""

    uncounted: ClassVar[frozenset[Function]] = frozenset(Function) - {Function.TXN}
    plants: ClassVar[Sequence[str]] = (
        "aborted-read", "early-read", "torn-transaction", "failed-send-committed", "zombie", "hanging-transaction",
    )  # fmt: skip

    @override
    def build(self) -> None:
        self.log: list[list[Record]] = [[] for _ in range(KEYS)]
        self.ends = [0] * KEYS
        self.end = 0
        self.sequence.quiet()
        for number in range(0, COMMITTED, AT_A_TIME):
            self.round(number)
            self.sequence.quiet()
            self.read(_READER, [log[reached:] for log, reached in zip(self.log, self.read_to, strict=True)])
            self.read_to = [len(log) for log in self.log]
        self.read(_FINAL_READER, self.log)
        self.end = max(self.ends)
        for key, end in enumerate(self.ends):
            self.event(_FINAL_READER, EventType.OK, Function.DRAIN, partitions=(self.keys[key],), offset=end)
            stable = StableOffset(high_watermark=end, open_ms=OPEN_MS)
            self.event(_READER, EventType.OK, Function.STABLE, micro=(Reached(self.keys[key], end),), detail=stable)
        self.spoil()

    def round(self, first: int) -> None:
        """Transactions that overlap. Each appends its marker to its log partitions when all have ended."""
        begin = self.sequence.time_us
        touched: set[int] = set()
        for number in range(first, first + AT_A_TIME):
            kind = EventType.FAIL if number % ABORT_EVERY == ABORT_EVERY - 1 else EventType.OK
            sends = [self.transactional(4 * number + turn, kind) for turn in range(self.sequence.chance.randint(2, 4))]
            touched |= {self.keys.index(send.partition) for send in sends}
            process, end = number % AT_A_TIME, begin + self.sequence.chance.randint(*LATENCY_US)
            facts = TransactionEnd(
                transactional_id=f"t{process}",
                number=0,
                asked="commit" if kind is EventType.OK else "abort",
                ending_us=end - LATENCY_US[0],
            )
            micro = tuple(sends)
            self.sequence.event(begin, process, EventType.INVOKE, Function.TXN, micro=asked(micro))
            self.sequence.event(end, process, kind, Function.TXN, micro=micro, detail=facts)
        for key in touched:
            self.ends[key] += 1

    def transactional(self, value: int, kind: EventType) -> Send:
        """Append a value to some log partition."""
        key = self.sequence.chance.randrange(KEYS)
        offset = self.ends[key]
        self.ends[key] += 1
        if kind is EventType.OK:
            self.log[key].append(Record(offset, value))
        return Send(self.keys[key], value, offset)

    def read(self, process: int, records: list[list[Record]]) -> None:
        """Poll these records of each log partition."""
        polled = {key: tuple(read) for key, read in zip(self.keys, records, strict=True) if read}
        self.sequence.operation(process, Function.POLL, (Poll(polled),))
        self.sequence.quiet()
