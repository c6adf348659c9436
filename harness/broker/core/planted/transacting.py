"""Wrong forms of transactions: of their markers, of what readers get, and of what the coordinator answers."""

from __future__ import annotations

from harness.broker.core.messages import CoordinatorAnswer, EndTxnResponse, RecordBatch
from harness.broker.core.replica import Replica
from harness.broker.core.transaction_coordinator import Transaction, TransactionCoordinator, TransactionRecord
from harness.broker.core.types import NO_ERROR, NONE, ErrorCode, NodeId


class TakesAnyMarker(Replica):
    """A leader appends a marker whatever the epochs of its producer and of its coordinator (rule 36).

    A late one ends the transaction that follows, in another way than its producer asked for.
    """

    def _judge(self, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        return super()._judge(batch) if batch.marker is None else (NO_ERROR, None)


class ForgetsAborts(Replica):
    """A follower does not note that a transaction was aborted (rule 35): it is read when that broker leads."""

    def _store(self, batch: RecordBatch) -> None:
        aborted = self.log.producers.transactions.aborted
        noted = len(aborted)
        super()._store(batch)
        if not self.leading:
            del aborted[noted:]


class PassesHangingTransactions(Replica):
    """The last stable offset is where the newest open transaction begins, not the oldest (rule 35).

    So readers of committed records pass one that hangs, and read what it has written.
    """

    def stable_end(self) -> int:
        firsts = self.log.producers.transactions.open.values()
        return min(self.high_watermark, max(firsts, default=self.high_watermark))


class AnswersBeforeDecision(TransactionCoordinator):
    """A producer is told of the end of its transaction before the decision is committed (rule 39).

    Where the coordinator dies then, its successor knows of an open transaction, and aborts it.
    """

    def _decide(
        self,
        name: str,
        transaction: Transaction,
        record: TransactionRecord,
        client: NodeId,
        answer: CoordinatorAnswer | None,
    ) -> None:
        if isinstance(answer, EndTxnResponse):
            self._context.send(client, answer)
            answer = None
        super()._decide(name, transaction, record, client, answer)


class SendsMarkersUncommitted(TransactionCoordinator):
    """A new coordinator goes on with all that it finds on its log, committed or not (rule 40), as Kafka 4.3 does.

    A decision that it made markers of may be truncated, and the transaction end in another way elsewhere.
    """

    def _loaded(self, replica: Replica) -> bool:
        return replica.leader_epoch != NONE
