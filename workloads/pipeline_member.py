"""A member of a group that writes a record for each one that it reads, and commits both in one transaction.

Consume, transform, produce: it polls, begins a transaction, writes, hands the offsets over with its membership, and
asks to commit (KIP-98, KIP-447). Some transactions are aborted on purpose once all that belongs to them is with the
brokers; the member does the same records again then, as long as it still has their log partitions. What it did not mean
to fail makes it leave, and another one goes on from what the group has committed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from typing_extensions import override

from workloads.client import MemberToken, SendOutcome
from workloads.consumers import REST_MS_MIN, Readers
from workloads.instance import Writers
from workloads.members import membership_of
from workloads.membership import CommitLine
from workloads.operations import EventType, Function, Reached
from workloads.plan import WorkloadPlan
from workloads.polling_member import Harm, PollingMember, Records, ranges_of
from workloads.settings import Settings
from workloads.steady_writes import DueWrite
from workloads.transaction_errors import ErrorClass
from workloads.transactional_producer import RENEW_MS, Asked, Consumed, OpenTransaction, TransactionalProducer
from workloads.transactions import SpreadEnds

#: Harm is done before the offsets are handed over, or, where it is late, between that and the end of the transaction.
_LATE: Final = (False, True, True, False, True, False, False, True)


class Pipeline:
    """The things that all members of a pipeline share. A slot's members have one transactional id after the other.

    Attributes:
        inputs, outputs: the log partitions that are read and written, by number.
        acknowledged_us: by output, when a transaction that wrote to it was last committed.
    """

    def __init__(
        self,
        readers: Readers,
        writers: Writers,
        plan: WorkloadPlan,
        settings: Settings,
        partitions: tuple[tuple[str, ...], tuple[str, ...]],
    ) -> None:
        self.readers, self.writers = readers, writers
        self.plan, self.settings = plan, settings
        self.inputs, self.outputs = partitions
        self.ends = SpreadEnds(plan.aborts_percent)
        self.late: Iterator[bool] = itertools.cycle(_LATE)
        self.made: Counter[str] = Counter()
        self.acknowledged_us: dict[str, int] = {}

    def member(self, slot: int, *, calm: bool = False, **of_group: Any) -> PipelineMember:
        """A new member of this slot; a ``calm`` one aborts nothing on purpose."""
        return PipelineMember(self, slot, calm=calm, topics=self.plan.topic_names, partitions=self.inputs, **of_group)


class PipelineMember(PollingMember):
    """One member. It is done with the records whose transaction was committed."""

    def __init__(self, pipeline: Pipeline, slot: int, *, calm: bool, **of_group: Any) -> None:
        membership = membership_of(pipeline.plan, pipeline.settings, slot)
        super().__init__(pipeline.readers, membership, **of_group)
        self._pipeline = pipeline
        self._calm = calm
        self._late = self._failed = self._again = False
        self._asked: Asked = "commit"
        self._records: Records = {}
        self._line = CommitLine(pipeline.readers, self.number, membership, Function.OFFSETS)
        transactional_id = f"{pipeline.plan.topic}-{slot}"
        self._producer = TransactionalProducer(
            pipeline.writers, pipeline.outputs, transactional_id, pipeline.made[transactional_id], self._ended
        )
        pipeline.made[transactional_id] += 1

    @override
    def start(self) -> None:
        """Fence the slot's producer before this one, and join the group then."""
        self._producer.init(partial(self._initialized, super().start))

    @override
    def strike(self, harm: Harm, freeze_ms: int = 0) -> None:
        super().strike(harm, freeze_ms)
        self._late = next(self._pipeline.late)

    @override
    def stop(self) -> None:
        super().stop()
        self._producer.close()

    @override
    def _die(self) -> None:
        super()._die()
        self._producer.close(crash=True)

    def _initialized(self, join: Callable[[], None], outcome: SendOutcome) -> None:
        clock = self._readers.clock
        if outcome.type is not EventType.OK:
            clock.call_at(clock.now_us() + RENEW_MS * 1000, self._give_up)
        elif not self._stopped:
            join()

    @override
    def _work(self, records: Records) -> None:
        self._processed(ranges_of(records))
        self._records, self._again = records, False
        self._transact()

    def _transact(self) -> None:
        """Do the records whose log partitions the member still has."""
        if self._stopped:
            return
        records = {name: mine for name, mine in sorted(self._records.items()) if name in self._assigned}
        if not records:
            self._rest()
            return
        self._asked = "commit" if self._calm or self._again else self._pipeline.ends.following()
        payload_bytes = self._pipeline.plan.payload_bytes
        numbers = {name: number for number, name in enumerate(self._pipeline.inputs)}
        writes = [
            DueWrite(0, 0, numbers[name], f"{name}@{record.offset}".encode(), payload_bytes)
            for name, mine in records.items()
            for record in mine
        ]
        sources = {name: tuple(record.offset for record in mine) for name, mine in records.items()}
        consumed = Consumed(self._membership.group, ranges_of(records), sources)
        self._producer.begin(writes, self._asked, self._sent, consumed)

    def _sent(self) -> None:
        if self._late:
            self._hand_over()
        else:
            self._between(self._hand_over)

    def _hand_over(self) -> None:
        if not self._stopped:
            assert self.consumer.commits is not None  # noqa: S101 - it was made with a membership
            self.consumer.commits.ask_member(self._named)

    def _named(self, member: MemberToken) -> None:
        transaction = self._producer.transaction
        if self._stopped or transaction is None or transaction.consumed is None:
            return
        if member.token is None:
            self._abort()
            return
        asked = tuple(Reached(part.partition, part.offset) for part in transaction.consumed.reached)
        self._line.begin(asked)
        self._producer.hand_over(member, partial(self._handed, asked))

    def _handed(self, asked: tuple[Reached, ...], outcome: SendOutcome) -> None:
        self._line.handed(asked, outcome)
        if self._stopped:
            return
        if outcome.type is EventType.OK:
            finish = partial(self._producer.finish, self._asked)
            if self._late:
                self._between(finish)
            else:
                finish()
        elif outcome.error_class in (ErrorClass.ABORTABLE, ErrorClass.RETRIABLE):
            self._abort()
        else:
            self._give_up()

    def _abort(self) -> None:
        """Abort what failed."""
        self._failed = True
        self._producer.finish("abort")

    def _ended(self, producer: TransactionalProducer, transaction: OpenTransaction) -> None:
        if self._stopped or transaction.consumed is None or transaction.end is None:
            return
        if transaction.end.type is EventType.OK:
            self.reached |= {part.partition: part.offset for part in transaction.consumed.reached}
            now_us = self._readers.clock.now_us()
            for write in transaction.writes:
                self._pipeline.acknowledged_us[self._pipeline.outputs[write.partition]] = now_us
            self._rest()
        elif transaction.asked == "abort" and producer.ready and not self._failed:
            self._again = True
            clock = self._readers.clock
            clock.call_at(clock.now_us() + REST_MS_MIN * 1000, self._transact)
        else:
            self._give_up()
