"""Reads: by fresh consumers that are judged as every reader, or that are not."""

from __future__ import annotations

from typing import ClassVar

from harness.runs.stories.stage.names import Record
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.trace import reader_words
from harness.runs.stories.steps.step import Step, WorldLimits
from workloads import Consumer, EventType, IsolationLevel, Poll, PollOutcome
from workloads.values import decode


class Read(Step, frozen=True, kw_only=True):
    """Let a fresh consumer read the log from its start; finds: it must get exactly these records, in this order.

    ``records`` None: whatever it gets within a moment.
    """

    form: ClassVar[str] = "read [finds RECORDS:records]"
    records: tuple[Record, ...] | None = None

    def act(self, stage: StoryStage) -> str:
        values: list[int] = []

        def polled(poll: Poll) -> None:
            values.extend(record.value for record in poll.records.get(stage.partition, ()))

        reader = stage.workload.begin_reader(polled)
        stage.let_pass(3 * stage.poll_wait_ms)
        reader.stop()
        return "" if self.records is None else reader_words(stage.named(values), self.records)


class ReadAs(Step, frozen=True, kw_only=True):
    """Let a fresh consumer of this level read: it must get exactly these records, in this order. It is not judged.

    It is no part of the history, whose readers all have the isolation level of the column.
    """

    form: ClassVar[str] = "read ISOLATION:isolation finds RECORDS:records"
    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES
    isolation: IsolationLevel
    records: tuple[Record, ...]

    def act(self, stage: StoryStage) -> str:
        consumer = stage.clients.consumer(stage.workload.new_process(), isolation=self.isolation)
        consumer.assign([stage.partition], from_start=True)
        probe = _Probe(consumer, stage.patience.answer_ms)
        probe.poll()
        stage.let_pass(3 * stage.patience.answer_ms)
        consumer.close()
        stage.read_last = stage.named(probe.values)
        return reader_words(stage.read_last, self.records)


class _Probe:
    """Polls until its consumer is closed, and keeps the values of what it gets."""

    def __init__(self, consumer: Consumer, wait_ms: int) -> None:
        self._consumer = consumer
        self._wait_ms = wait_ms
        self.values: list[int] = []

    def poll(self) -> None:
        """Ask for more."""
        self._consumer.poll(self._wait_ms, self._polled)

    def _polled(self, outcome: PollOutcome) -> None:
        if outcome.type is EventType.OK:
            self.values += [decode(each.payload, each.partition, each.key)[0] for each in outcome.records]
            self.poll()
