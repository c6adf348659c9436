"""Transactions, their ends, and where their coordinator is: the reference broker has them in virtual time only."""

from __future__ import annotations

from typing import ClassVar, Final

from harness.runs.stories.stage.names import Broker, Record
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.trace import StepError, broker_words
from harness.runs.stories.stage.transactional_record import TransactionalRecord
from harness.runs.stories.steps.step import ScriptState, Step, WorldLimits
from workloads import EventType, SendOutcome
from workloads.driver import Asked

#: A producer that comes while markers are written is told to come back, which takes it longer than one answer.
_MOMENTS: Final = 3


class TransactionStep(Step, frozen=True, kw_only=True):
    """A step of producers with transactions."""

    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES


class InitProducer(TransactionStep, frozen=True, kw_only=True):
    """Make a producer with transactions; after another it has its transactional id, and fences it."""

    form: ClassVar[str] = "init NEWPRODUCER:producer [after PRODUCER:after]"
    producer: str
    after: str | None = None

    def act(self, stage: StoryStage) -> str:
        transactional_id = self.producer if self.after is None else stage.producer(self.after).transactional_id
        made = stage.new_producer(transactional_id)
        stage.producers[self.producer] = made
        made.init(lambda _: None)
        stage.moment(lambda: made.answer is not None, _MOMENTS)
        return "no answer yet" if made.answer is None else _answer("ready", made.answer)


class BeginTransaction(TransactionStep, frozen=True, kw_only=True):
    """Begin a transaction.

    Brokers hear of it with its first record; its producer answers by itself.
    """

    form: ClassVar[str] = "begin NEWTRANSACTION:transaction by PRODUCER:producer"
    transaction: str
    producer: str

    def act(self, stage: StoryStage) -> None:
        producer = stage.producer(self.producer)
        if not producer.ready:
            raise StepError(f"the producer {self.producer} is not ready; write: wait until {self.producer} is ready")
        answers: list[SendOutcome] = []
        stage.transactions[self.transaction] = producer.open(stage.planned[self.transaction], answers.append)
        stage.moment(lambda: bool(answers), _MOMENTS)
        if not answers or answers[0].type is not EventType.OK:
            raise StepError(_answer("", answers[0]) if answers else "its producer does not answer")


class WriteInTransaction(TransactionStep, frozen=True, kw_only=True):
    """Send one record in it to the leader, and wait 300 ms for the answer."""

    form: ClassVar[str] = "write NEW:record in TRANSACTION:transaction [over RECORD:over]"
    record: Record
    transaction: str
    over: Record | None = None

    @property
    def keyed_as(self) -> Record:
        """The record that has the same key, or the record itself."""
        return self.over or self.record

    def act(self, stage: StoryStage) -> str:
        record = self._sent(stage)
        stage.moment(lambda: record.answered, _MOMENTS)
        if record.outcome is None:
            return "no answer yet"
        offset = "" if record.outcome.offset is None else f"at offset {record.outcome.offset}"
        return _answer(offset, record.outcome)

    def _sent(self, stage: StoryStage) -> TransactionalRecord:
        transaction = stage.transaction(self.transaction)
        record = TransactionalRecord(transaction.producer.send_next(transaction), transaction)
        stage.records[self.record] = record
        return record


class WriteElsewhere(WriteInTransaction, frozen=True, kw_only=True):
    """The same to a second log partition: of its replicas 1 leads first. Other steps and states know nothing of it."""

    form: ClassVar[str] = "write NEW:record in TRANSACTION:transaction elsewhere"


class SendInTransaction(WriteInTransaction, frozen=True, kw_only=True):
    """The same without waiting."""

    form: ClassVar[str] = "send NEW:record in TRANSACTION:transaction [over RECORD:over]"

    def act(self, stage: StoryStage) -> str:
        self._sent(stage)
        return "sent"


class Commit(TransactionStep, frozen=True, kw_only=True):
    """Ask for its commit, and wait 300 ms for the answer."""

    form: ClassVar[str] = "commit TRANSACTION:transaction"
    asks: ClassVar[Asked] = "commit"
    transaction: str

    def act(self, stage: StoryStage) -> str:
        asked = stage.transaction(self.transaction)
        if asked.end is not None or asked.waits:
            raise StepError(f"the transaction {self.transaction} was ended already")
        asked.producer.ask(asked, self.asks)
        stage.moment(lambda: asked.answer is not None, _MOMENTS)
        return "no answer yet" if asked.answer is None else _answer(asked.answered, asked.answer)


class Abort(Commit, frozen=True, kw_only=True):
    """Ask for its abort, and wait 300 ms for the answer."""

    form: ClassVar[str] = "abort TRANSACTION:transaction"
    asks: ClassVar[Asked] = "abort"


def _answer(word: str, outcome: SendOutcome) -> str:
    return word if outcome.type is EventType.OK else f"{word} ({outcome.error})".strip()


# --- states ----------------------------------------------------------------------------------------------------------


class CoordinatedState(ScriptState, frozen=True):
    """A state of transactions, or of a coordinator."""

    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES


class IsReady(CoordinatedState, frozen=True):
    """It was told that it is in charge of its transactional id."""

    form: ClassVar[str] = "PRODUCER:producer is ready"
    producer: str

    def holds(self, stage: StoryStage) -> bool:
        return stage.producer(self.producer).ready

    def instead(self, stage: StoryStage) -> str:
        answer = stage.producer(self.producer).answer
        return "it has no answer" if answer is None else answer.error or "it is ready"


class IsCommitted(CoordinatedState, frozen=True):
    """Its producer was told so."""

    form: ClassVar[str] = "TRANSACTION:transaction is committed"
    how: ClassVar[str] = "committed"
    transaction: str

    def holds(self, stage: StoryStage) -> bool:
        return stage.transaction(self.transaction).answered == self.how

    def instead(self, stage: StoryStage) -> str:
        transaction = stage.transaction(self.transaction)
        if transaction.answer is None:
            return "it has no answer" if transaction.waits else "it is open"
        return _answer(f"it is {transaction.answered}", transaction.answer)


class IsAborted(IsCommitted, frozen=True):
    """Its producer was told so."""

    form: ClassVar[str] = "TRANSACTION:transaction is aborted"
    how: ClassVar[str] = "aborted"


class EndRefused(IsCommitted, frozen=True):
    """Its producer got an error when it asked for the end."""

    form: ClassVar[str] = "TRANSACTION:transaction is refused"
    how: ClassVar[str] = "refused"


class CoordinatesAlone(CoordinatedState, frozen=True):
    """It is the coordinator, and the ISR of its log has no other member."""

    form: ClassVar[str] = "BROKER:broker coordinates alone"
    broker: Broker

    def holds(self, stage: StoryStage) -> bool:
        node = stage.node(self.broker)
        return stage.coordinator == node and stage.isr_of_coordinator == (node,)

    def instead(self, stage: StoryStage) -> str:
        return f"{_coordinator(stage)}, and the isr of its log is {broker_words(stage.isr_of_coordinator)}"


class Coordinates(CoordinatedState, frozen=True):
    """It is the coordinator, by the controller's word."""

    form: ClassVar[str] = "BROKER:broker coordinates"
    broker: Broker

    def holds(self, stage: StoryStage) -> bool:
        return stage.coordinator == stage.node(self.broker)

    def instead(self, stage: StoryStage) -> str:
        return _coordinator(stage)


class StableEndCovers(CoordinatedState, frozen=True):
    """Its log has the record, below the last stable offset."""

    form: ClassVar[str] = "last stable offset of BROKER:broker covers RECORD:record"
    broker: Broker
    record: Record

    def holds(self, stage: StoryStage) -> bool:
        node = stage.node(self.broker)
        replica = stage.replica(node)
        # Where the end of the log on disk is known to be stable, what is below need not be replicated yet.
        marks = replica.last_stable_offset, replica.known_high_watermark
        return all(stage.covers(mark, node, self.record) for mark in marks)

    def instead(self, stage: StoryStage) -> str:
        node = stage.node(self.broker)
        return (
            f"the last stable offset is {stage.replica(node).last_stable_offset}, and {stage.placed(self.record, node)}"
        )


class StableEndMisses(StableEndCovers, frozen=True):
    """It does not cover the record."""

    form: ClassVar[str] = "last stable offset of BROKER:broker misses RECORD:record"

    def holds(self, stage: StoryStage) -> bool:
        node = stage.node(self.broker)
        return not stage.covers(stage.replica(node).last_stable_offset, node, self.record)


def _coordinator(stage: StoryStage) -> str:
    return f"{'no broker' if stage.coordinator is None else stage.coordinator} coordinates"
