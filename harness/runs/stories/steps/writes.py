"""Single writes, and the states of records."""

from __future__ import annotations

from typing import ClassVar

from harness.runs.stories.stage.names import Broker, BrokerRole, Record
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.trace import StepError
from harness.runs.stories.stage.writes import DirectRecord
from harness.runs.stories.steps.step import ScriptState, Step, WorldLimits


class WriteRecord(Step, frozen=True, kw_only=True):
    """Send a record, wait 100 ms. over: with that key. Without acks: the column's. as: numbered by that producer.

    Records of one ``producer`` carry its sequence numbers, where producers are idempotent; a record without one has a
    producer of its own. One ``over`` another has the key of that, and takes its place in a compacted log.
    """

    form: ClassVar[str] = "write NEW:record to BROKER:to [over RECORD:over] [ACKS:acks] [as NAME:producer]"
    record: Record
    to: Broker
    over: Record | None = None
    acks: int | None = None
    producer: str | None = None

    def act(self, stage: StoryStage) -> str:
        node, record = self._sent(stage)
        return f"sent to {node}: {_answer(record, stage)}"

    @property
    def keyed_as(self) -> Record:
        """The record that has the same key, or the record itself."""
        return self.over or self.record

    def _sent(self, stage: StoryStage, *, tombstone: bool = False) -> tuple[int, DirectRecord]:
        node = _receiver(self.to, stage)
        return node, stage.writes.send(self.record, node, acks=self.acks, producer=self.producer, tombstone=tombstone)


class SendRecord(WriteRecord, frozen=True, kw_only=True):
    """Send one record, and do not wait."""

    form: ClassVar[str] = "send NEW:record to BROKER:to [over RECORD:over] [ACKS:acks] [as NAME:producer]"

    def act(self, stage: StoryStage) -> str:
        return f"sent to {self._sent(stage)[0]}"


class DeleteKey(WriteRecord, frozen=True, kw_only=True):
    """Send a tombstone under a name of its own: it deletes the key of a record, in a compacted topic."""

    form: ClassVar[str] = "delete RECORD:deletes by NEW:record to BROKER:to [ACKS:acks]"
    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES
    deletes: Record

    @property
    def keyed_as(self) -> Record:
        return self.deletes

    def act(self, stage: StoryStage) -> str:
        node, record = self._sent(stage, tombstone=True)
        return f"sent to {node}: {_answer(record, stage)}"


class Retry(Step, frozen=True, kw_only=True):
    """Send a record again, unless it was acknowledged."""

    form: ClassVar[str] = "retry RECORD:record to BROKER:to"
    record: Record
    to: Broker

    def act(self, stage: StoryStage) -> str:
        record = stage.record(self.record)
        if not isinstance(record, DirectRecord):
            raise StepError("it is part of a transaction, whose producer sends it again by itself")
        if record.acknowledged:
            return "acknowledged already: not sent again"
        node = _receiver(self.to, stage)
        stage.writes.send_again(record, node)
        return f"sent to {node}: {_answer(record, stage)}"


class BumpEpoch(Step, frozen=True, kw_only=True):
    """Let a producer go on in its next epoch, with numbers from 0. What it sends again is as it was.

    So does a producer after an error that it can recover from (KIP-360).
    """

    form: ClassVar[str] = "bump WRITER:producer"
    producer: str

    def act(self, stage: StoryStage) -> None:
        stage.writes.bump(self.producer)


def _receiver(broker: Broker, stage: StoryStage) -> int:
    """The broker that a client writes to; a client that knows no leader waits a moment for one, and gives up."""
    if broker is BrokerRole.LEADER and not stage.leader_found() and stage.view.leader is None:
        raise StepError("not sent: no broker leads")
    return stage.node(broker)


def _answer(record: DirectRecord, stage: StoryStage) -> str:
    """Wait a moment for the answer; in words."""
    # A write with acks=0 is not answered: it is given the time to arrive.
    stage.moment(lambda: record.answered and record.write.acks != 0)
    end = record.end()
    if not record.answered:
        return "no answer yet"
    offset = "" if end.offset is None else f" at offset {end.offset}"
    return f"{end.outcome}{offset}" + (f" ({end.error})" if end.error else "")


# --- states ----------------------------------------------------------------------------------------------------------


class Has(ScriptState, frozen=True):
    """Its log has the record."""

    form: ClassVar[str] = "BROKER:broker has RECORD:record"
    expected: ClassVar[bool] = True
    broker: Broker
    record: Record

    def holds(self, stage: StoryStage) -> bool:
        return (stage.offset_of(self.record, stage.node(self.broker)) is not None) is self.expected

    def instead(self, stage: StoryStage) -> str:
        node = stage.node(self.broker)
        on_it = [name for name in stage.names.values() if stage.offset_of(name, node) is not None]
        return f"broker {node} has {' '.join(on_it) or 'nothing'}"


class Lacks(Has, frozen=True):
    """Its log does not have the record."""

    form: ClassVar[str] = "BROKER:broker lacks RECORD:record"
    expected: ClassVar[bool] = False


class Covers(ScriptState, frozen=True):
    """Its log has the record, below the high watermark."""

    form: ClassVar[str] = "high watermark of BROKER:broker covers RECORD:record"
    expected: ClassVar[bool] = True
    broker: Broker
    record: Record

    def holds(self, stage: StoryStage) -> bool:
        node = stage.node(self.broker)
        return stage.covers(stage.replica(node).known_high_watermark, node, self.record) is self.expected

    def instead(self, stage: StoryStage) -> str:
        node = stage.node(self.broker)
        return (
            f"the high watermark is {stage.replica(node).known_high_watermark}, and {stage.placed(self.record, node)}"
        )


class Misses(Covers, frozen=True):
    """It does not cover the record."""

    form: ClassVar[str] = "high watermark of BROKER:broker misses RECORD:record"
    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_KAFKA
    expected: ClassVar[bool] = False


class IsAnswered(ScriptState, frozen=True):
    """The client has an answer."""

    form: ClassVar[str] = "RECORD:record is answered"
    record: Record

    def holds(self, stage: StoryStage) -> bool:
        return stage.record(self.record).answered

    def instead(self, stage: StoryStage) -> str:
        return "it has an error for an answer" if stage.record(self.record).answered else "it has no answer"


class IsAcknowledged(IsAnswered, frozen=True):
    """The client has a good answer."""

    form: ClassVar[str] = "RECORD:record is acknowledged"

    def holds(self, stage: StoryStage) -> bool:
        return stage.record(self.record).acknowledged


class RecordRefused(ScriptState, frozen=True):
    """Each attempt was answered, and none well; the last answer was this error, such as NotEnoughReplicasError."""

    form: ClassVar[str] = "RECORD:record is refused [with ERROR:error]"
    record: Record
    error: str | None = None

    def holds(self, stage: StoryStage) -> bool:
        record = stage.record(self.record)
        return record.answered and not record.acknowledged and self.error in {None, record.end().error}

    def instead(self, stage: StoryStage) -> str:
        end = stage.record(self.record).end()
        return f"it is {end.outcome}{f' ({end.error})' if end.error else ''}"
