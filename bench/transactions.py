"""Synthetic histories of transactions: a serial execution seen through overlapping clients, with cycles if asked for.

Each transaction happens at one moment inside its own time: it reads the last value of one log partition, if there is
one, and writes to one or two others. Its client does nothing else, so that only dependencies tie transactions together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from bench.event_sequence import LATENCY_US, STEP_US
from bench.plant_parts import FIRST_PROCESS
from bench.synthetic import KEYS, BlockBuilder
from workloads import Function, MicroOperation, Poll, Record, Send

#: Transactions in a block.
TRANSACTIONS: Final = 10_000


class TransactionBlock(BlockBuilder):
    """A block of transactions in which all that is written is read at the end."""

    #: A cycle of overwrites, and one of reads.
    plants: ClassVar[Sequence[str]] = ("G0", "G1c")

    def build(self) -> None:
        """Build the block, and what is planted in it behind its end."""
        begin = self.sequence.time_us + LATENCY_US[1]
        log: list[list[int]] = [[] for _ in range(KEYS)]
        for turn in range(TRANSACTIONS):
            self.sequence.time_us = begin + turn * STEP_US - self.sequence.chance.randint(*LATENCY_US) // 2
            micro = self.transaction(turn, log)
            lasting = begin + turn * STEP_US + self.sequence.chance.randint(*LATENCY_US) // 2 - self.sequence.time_us
            process = FIRST_PROCESS + 10 * (100 + turn)
            self.sequence.operation(process, Function.TXN, micro, latency_us=lasting)
        self.sequence.time_us = begin + TRANSACTIONS * STEP_US
        self.sequence.quiet()
        for key, values in enumerate(log):
            records = tuple(Record(offset, value) for offset, value in enumerate(values))
            self.sequence.operation(0, Function.POLL, (Poll({self.keys[key]: records}),))
            self.sequence.quiet()
        self.end = max(map(len, log))
        self.spoil()

    def transaction(self, turn: int, log: list[list[int]]) -> tuple[MicroOperation, ...]:
        """The reads and writes of the next transaction; its writes are then in ``log``."""
        chance = self.sequence.chance
        key = chance.randrange(KEYS)
        micro: list[MicroOperation] = []
        if log[key]:
            micro.append(Poll({self.keys[key]: (Record(len(log[key]) - 1, log[key][-1]),)}))
        for number in range(chance.randint(1, 2)):
            target = chance.choice([other for other in range(KEYS) if other != key])
            micro.append(Send(self.keys[target], 2 * turn + number, len(log[target])))
            log[target].append(2 * turn + number)
        return tuple(micro)
