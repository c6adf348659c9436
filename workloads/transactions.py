"""Producers that write in transactions: one transactional id each, some transactions aborted, some left half written.

A transaction is one operation of the history (:class:`workloads.operations.Function.TXN`), of the process of its
producer. Most are committed, and ``aborts_percent`` of them aborted once their records are in the log. Every
``takeover_every_ms`` a transaction is left *half written*: a successor with the same transactional id takes the
producer's slot. Once it is told that it has, the old producer sends the other half and asks to commit, as one does
that was frozen and does not know. The log must refuse it (KIP-98, KIP-360).

A producer whose call has no certain end is given up, as an application would, and its successor fences it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from typing_extensions import override

from workloads.client import SendOutcome
from workloads.instance import Writers
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.replacement import CrashedProducer
from workloads.roles import Writing
from workloads.steady_writes import DueWrite
from workloads.transactional_producer import RENEW_MS, Asked, OpenTransaction, TransactionalProducer


class SpreadEnds:
    """The ends of transactions: ``aborts_percent`` of them are aborted, spread evenly."""

    def __init__(self, aborts_percent: int) -> None:
        self._percent = aborts_percent
        self._begun = 0

    def following(self) -> Asked:
        """The end of the next one."""
        before = self._begun
        self._begun += 1
        return "abort" if self._begun * self._percent // 100 > before * self._percent // 100 else "commit"


class _Slot:
    """A producer of the plan: the one that works now, and those that were left with a transaction half written."""

    def __init__(
        self,
        writers: Writers,
        partitions: Sequence[str],
        transactional_id: str,
        committed: Callable[[OpenTransaction], None],
    ) -> None:
        self._writers = writers
        self._partitions = partitions
        self._transactional_id = transactional_id
        self._committed = committed
        self._made = 0
        self._closed = False
        self._superseded: list[TransactionalProducer] = []
        self.producer = self._make()

    @property
    def idle(self) -> bool:
        """True if the producer can begin a transaction now."""
        return self.producer.ready and self.producer.transaction is None

    @property
    def settled(self) -> bool:
        """True if the producer works, and no other one of this slot has a transaction open."""
        return self.producer.ready and not self._superseded

    def init(self) -> None:
        """Let the producer fence those before it, and another one follow where it cannot."""
        producer = self.producer
        producer.init(partial(self._initialized, producer))

    def begin(self, writes: Sequence[DueWrite], asked: Asked, *, takeover: bool) -> None:
        """Do a transaction; with ``takeover``, in the way that the module's text says."""
        if takeover:
            self.producer.begin(writes, "commit", self._halted)
        else:
            self.producer.begin(writes, asked)

    def crash(self) -> CrashedProducer:
        """Let the producer die as if killed, and a new one take its place."""
        dead, transaction = self.producer, self.producer.transaction
        self.producer = self._make()
        dead.close(crash=True)
        self.init()
        outstanding = 0 if transaction is None else len(transaction.values)
        return CrashedProducer(instance=dead.process, outstanding=outstanding, successor=self.producer.process)

    def close(self) -> None:
        """Close every client."""
        self._closed = True
        for producer in (*self._superseded, self.producer):
            producer.close()

    def _make(self) -> TransactionalProducer:
        self._made += 1
        return TransactionalProducer(
            self._writers, self._partitions, self._transactional_id, self._made - 1, self._ended
        )

    def _halted(self) -> None:
        self._superseded.append(self.producer)
        self.producer = self._make()
        self.init()

    def _initialized(self, producer: TransactionalProducer, outcome: SendOutcome) -> None:
        if self._closed or producer is not self.producer:
            return
        if outcome.type is EventType.OK:
            for old in tuple(self._superseded):
                old.resume(self._writers.clock.now_us())
        else:
            producer.close()
            self._renew()

    def _ended(self, producer: TransactionalProducer, transaction: OpenTransaction) -> None:
        if transaction.end is not None and transaction.end.type is EventType.OK:
            self._committed(transaction)
        if producer in self._superseded:
            self._superseded.remove(producer)
            producer.close()
        elif producer is self.producer and not producer.ready:
            self._renew()

    def _renew(self) -> None:
        """Let another producer follow in a while."""

        def renew() -> None:
            if not self._closed and self.producer is given_up:
                self.producer = self._make()
                self.init()

        given_up = self.producer
        self._writers.clock.call_at(self._writers.clock.now_us() + RENEW_MS * 1000, renew)


class TransactionProducers(Writing):
    """All producers of a run, each doing one transaction after the other.

    A transaction that is due while its producer is busy is not made.
    """

    def __init__(
        self, writers: Writers, *, partitions: Sequence[str], plan: WorkloadPlan, writes: Iterator[DueWrite]
    ) -> None:
        super().__init__(writers, partitions)
        self._plan = plan
        self._writes = writes
        self._next = self._taken()
        self._slots: Sequence[_Slot] = [
            _Slot(writers, self._partitions, transactional_id, self._committed)
            for transactional_id in plan.transactional_ids
        ]
        self._ends = SpreadEnds(plan.aborts_percent)
        self._takeover_us = plan.takeover_every_ms * 1000

    @property
    @override
    def exhausted(self) -> bool:
        return not self._next

    @override
    def _begin(self) -> None:
        for slot in self._slots:
            slot.init()
        self._await_next()

    def _taken(self) -> list[DueWrite]:
        """Take the writes of the next transaction; the generator lists them one after the other."""
        return [write for _, write in zip(range(self._plan.sends_per_transaction), self._writes, strict=False)]

    def _await_next(self) -> None:
        if self._next:
            self._clock.call_at(self._started_us + self._next[0].due_us, self._write)

    def _write(self) -> None:
        if not self._writing or not self._next:
            return
        writes, self._next = self._next, self._taken()
        slot = self._slots[writes[0].producer]
        if not slot.idle:
            self.counts.passed_over += len(writes)
        else:
            slot.begin(writes, self._ends.following(), takeover=self._takes_over(writes[0].due_us))
        self._await_next()

    def _takes_over(self, due_us: int) -> bool:
        if not self._plan.takeover_every_ms or due_us < self._takeover_us:
            return False
        self._takeover_us = due_us + self._plan.takeover_every_ms * 1000
        return True

    def _committed(self, transaction: OpenTransaction) -> None:
        now_us = self._clock.now_us()
        for write in transaction.writes:
            self.acknowledged_us[self._partitions[write.partition]] = now_us
