"""Transactions, their ends, and where their coordinator is: the reference broker has them in virtual time only."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from harness.runs.stories.names import Broker, Record
from harness.runs.stories.stage import Stage
from harness.runs.stories.steps.step import ScriptState, Step, WorldLimits
from harness.runs.stories.trace import StepError, broker_words
from harness.runs.stories.transactions import TransactionAnswer
from workloads import EventType, SendOutcome

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

    def act(self, stage: Stage) -> str:
        made = stage.transactions.init(self.producer, self.after)
        stage.moment(lambda: made.answer is not None, _MOMENTS)
        return "no answer yet" if made.answer is None else _answer("ready", made.answer)


class BeginTransaction(TransactionStep, frozen=True, kw_only=True):
    """Begin a transaction.

    Brokers hear of it with its first record; its producer answers by itself.
    """

    form: ClassVar[str] = "begin NEWTRANSACTION:transaction by PRODUCER:producer"
    transaction: str
    producer: str

    def act(self, stage: Stage) -> None:
        answers: list[SendOutcome] = []
        stage.transactions.begin(self.transaction, self.producer, answers.append)
        stage.moment(lambda: bool(answers), _MOMENTS)
        if not answers or answers[0].type is not EventType.OK:
            raise StepError(_answer("", answers[0]) if answers else "its producer does not answer")


class WriteInTransaction(TransactionStep, frozen=True, kw_only=True):
    """Send one record in it to the leader, and wait 300 ms for the answer."""

    form: ClassVar[str] = "write NEW:record in TRANSACTION:transaction [over RECORD:over]"
    record: Record
    transaction: str
    over: Record | None = None

    def act(self, stage: Stage) -> str:
        record = stage.transactions.send(self.record, self.transaction, self.over)
        stage.moment(lambda: record.answered, _MOMENTS)
        if record.outcome is None:
            return "no answer yet"
        offset = "" if record.outcome.offset is None else f"at offset {record.outcome.offset}"
        return _answer(offset, record.outcome)


class WriteElsewhere(WriteInTransaction, frozen=True, kw_only=True):
    """The same to a second log partition: of its replicas 1 leads first. Other steps and states know nothing of it."""

    form: ClassVar[str] = "write NEW:record in TRANSACTION:transaction elsewhere"


class SendInTransaction(WriteInTransaction, frozen=True, kw_only=True):
    """The same without waiting."""

    form: ClassVar[str] = "send NEW:record in TRANSACTION:transaction [over RECORD:over]"

    def act(self, stage: Stage) -> str:
        stage.transactions.send(self.record, self.transaction, self.over)
        return "sent"


class Commit(TransactionStep, frozen=True, kw_only=True):
    """Ask for its commit, and wait 300 ms for the answer."""

    form: ClassVar[str] = "commit TRANSACTION:transaction"
    asks: ClassVar[Literal["commit", "abort"]] = "commit"
    transaction: str

    def act(self, stage: Stage) -> str:
        asked = stage.transactions.ask(self.transaction, self.asks)
        stage.moment(lambda: asked.answer is not None, _MOMENTS)
        return "no answer yet" if asked.answer is None else _answer(str(asked.end), asked.answer)


class Abort(Commit, frozen=True, kw_only=True):
    """Ask for its abort, and wait 300 ms for the answer."""

    form: ClassVar[str] = "abort TRANSACTION:transaction"
    asks: ClassVar[Literal["commit", "abort"]] = "abort"


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

    def holds(self, stage: Stage) -> bool:
        return stage.transactions.instance(self.producer).ready

    def instead(self, stage: Stage) -> str:
        return stage.transactions.instance(self.producer).in_words


class IsCommitted(CoordinatedState, frozen=True):
    """Its producer was told so."""

    form: ClassVar[str] = f"TRANSACTION:transaction is {TransactionAnswer.COMMITTED}"
    how: ClassVar[TransactionAnswer] = TransactionAnswer.COMMITTED
    transaction: str

    def holds(self, stage: Stage) -> bool:
        return stage.transactions.transaction(self.transaction).end is self.how

    def instead(self, stage: Stage) -> str:
        return stage.transactions.transaction(self.transaction).in_words


class IsAborted(IsCommitted, frozen=True):
    """Its producer was told so."""

    form: ClassVar[str] = f"TRANSACTION:transaction is {TransactionAnswer.ABORTED}"
    how: ClassVar[TransactionAnswer] = TransactionAnswer.ABORTED


class EndRefused(IsCommitted, frozen=True):
    """Its producer got an error when it asked for the end."""

    form: ClassVar[str] = f"TRANSACTION:transaction is {TransactionAnswer.REFUSED}"
    how: ClassVar[TransactionAnswer] = TransactionAnswer.REFUSED


class CoordinatesAlone(CoordinatedState, frozen=True):
    """It is the coordinator, and the ISR of its log has no other member."""

    form: ClassVar[str] = "BROKER:broker coordinates alone"
    broker: Broker

    def holds(self, stage: Stage) -> bool:
        node = stage.node(self.broker)
        return stage.coordinator == node and stage.isr_of_coordinator == (node,)

    def instead(self, stage: Stage) -> str:
        return f"{_coordinator(stage)}, and the isr of its log is {broker_words(stage.isr_of_coordinator)}"


class Coordinates(CoordinatedState, frozen=True):
    """It is the coordinator, by the controller's word."""

    form: ClassVar[str] = "BROKER:broker coordinates"
    broker: Broker

    def holds(self, stage: Stage) -> bool:
        return stage.coordinator == stage.node(self.broker)

    def instead(self, stage: Stage) -> str:
        return _coordinator(stage)


class StableEndCovers(CoordinatedState, frozen=True):
    """Its log has the record, below the last stable offset."""

    form: ClassVar[str] = "last stable offset of BROKER:broker covers RECORD:record"
    broker: Broker
    record: Record

    def holds(self, stage: Stage) -> bool:
        node = stage.node(self.broker)
        replica = stage.replica(node)
        # WorldLimits the end of the log on disk is known to be stable, what is below need not be replicated yet.
        marks = replica.last_stable_offset, replica.known_high_watermark
        return all(stage.covers(mark, node, self.record) for mark in marks)

    def instead(self, stage: Stage) -> str:
        node = stage.node(self.broker)
        return (
            f"the last stable offset is {stage.replica(node).last_stable_offset}, and {stage.placed(self.record, node)}"
        )


class StableEndMisses(StableEndCovers, frozen=True):
    """It does not cover the record."""

    form: ClassVar[str] = "last stable offset of BROKER:broker misses RECORD:record"

    def holds(self, stage: Stage) -> bool:
        node = stage.node(self.broker)
        return not stage.covers(stage.replica(node).last_stable_offset, node, self.record)


def _coordinator(stage: Stage) -> str:
    return f"{'no broker' if stage.coordinator is None else stage.coordinator} coordinates"
