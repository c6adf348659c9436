"""The writes of a script: each record one operation of the history, however often it is sent.

A record is acknowledged with the first good answer; with acks=0 when it was handed over. Every other outcome is known
only when nothing can be sent again, so the operation ends then (:meth:`Writes.end`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Final

import msgspec
from typing_extensions import override

from harness.runs.stories.stage.trace import ACKNOWLEDGED, REFUSED, RecordEnd
from harness.worlds.contract import DirectClient, DirectWrite
from workloads import Event, EventType, Function, SendOutcome, Settings
from workloads import Send as Sent
from workloads.driver import SendCounts, Writers
from workloads.values import encode, join, record_key_of

#: Producer ids of scripts begin here: far above what a young cluster hands out.
FIRST_PRODUCER_ID: Final = 1_000_000
#: The fate of a record, by the end of its operation.
_OUTCOMES: Final = {EventType.OK: ACKNOWLEDGED, EventType.FAIL: REFUSED, EventType.INFO: "unknown"}
_KINDS: Final = {outcome: kind for kind, outcome in _OUTCOMES.items()}

#: Kinds of answers to an attempt, from the one that says least of a record.
_WORTH: Final = (EventType.FAIL, EventType.INFO, EventType.OK)


class ScriptedProducer(msgspec.Struct):
    """One producer instance: its first process, its producer id, and the sequence number of its next record."""

    instance: int
    producer_id: int
    epoch: int = 0
    next_sequence: int = 0


class ScriptedRecord(ABC):
    """One record of a script, by its ``value`` in the history, and what is known of it."""

    def __init__(self, value: int) -> None:
        self.value = value

    @property
    @abstractmethod
    def outcome(self) -> SendOutcome | None:
        """The best that is known of it."""

    @property
    @abstractmethod
    def answered(self) -> bool:
        """True if every attempt was answered, or one was with success."""

    @property
    def acknowledged(self) -> bool:
        """True if one attempt was answered with success."""
        return self.outcome is not None and self.outcome.type is EventType.OK

    @abstractmethod
    def end(self) -> RecordEnd:
        """The client's knowledge of it."""


class DirectRecord(ScriptedRecord):
    """A record that the script sends to a broker: a process of its own of the history."""

    outcome: SendOutcome | None = None

    def __init__(self, process: int, instance: int, write: DirectWrite, *, judged: bool) -> None:
        super().__init__(join(process, 0))
        self.process = process
        self.instance = instance
        self.write = write
        self.judged = judged
        self.unanswered = 0

    @property
    @override
    def answered(self) -> bool:
        return self.acknowledged or not self.unanswered

    def take(self, outcome: SendOutcome) -> None:
        """Remember the best that is known: acknowledged, else unknown if any attempt is, else refused.

        Of two that say as much it is the later one.
        """
        self.unanswered -= 1
        if self.outcome is None or _WORTH.index(outcome.type) >= _WORTH.index(self.outcome.type):
            self.outcome = outcome

    @override
    def end(self) -> RecordEnd:
        outcome = self.outcome
        if outcome is None:
            return RecordEnd(value=self.value, outcome="no answer")
        word = _OUTCOMES[outcome.type] if self.judged else "not waited for"
        return RecordEnd(value=self.value, outcome=word, offset=outcome.offset, error=outcome.error)


class Writes:
    """All single writes of one performance to one log partition.

    ``records`` are those of the whole script that were sent, and ``keys`` those of all that it sends, by name.
    """

    def __init__(
        self,
        client: DirectClient,
        partition: str,
        settings: Settings,
        *,
        writers: Writers,
        records: dict[str, ScriptedRecord],
        keys: Mapping[str, bytes],
    ) -> None:
        self._client = client
        self._partition = partition
        self._settings = settings
        self._writers = writers
        self._producers: dict[str, ScriptedProducer] = {}
        self._sent: list[DirectRecord] = []
        self._nudges = count(1)
        self._keys = keys
        self.records = records

    def send(
        self,
        name: str,
        broker: int,
        *,
        acks: int | None = None,
        producer: str | None = None,
        tombstone: bool = False,
        judged: bool = True,
    ) -> DirectRecord:
        """Send a new record, with the acks of the settings unless said otherwise.

        One that is not ``judged`` ends as unknown, whatever its answer.
        """
        process = self._writers.new_process()
        made = self._producers.setdefault(
            producer or f"of {name}", ScriptedProducer(process, FIRST_PRODUCER_ID + process)
        )
        idempotent = self._settings.enable_idempotence
        key = self._keys.get(name, name.encode())
        write = DirectWrite(
            partition=self._partition,
            key=key,
            payload=encode(self._partition, key, join(process, 0)),
            acks=self._settings.acks if acks is None else acks,
            timeout_ms=self._settings.request_timeout_ms,
            producer_id=made.producer_id if idempotent else -1,
            producer_epoch=made.epoch if idempotent else -1,
            sequence=made.next_sequence if idempotent else -1,
            tombstone=tombstone,
        )
        made.next_sequence += 1
        record = self.records[name] = DirectRecord(process, made.instance, write, judged=judged)
        self._sent.append(record)
        self._record(record, EventType.INVOKE)
        self.send_again(record, broker)
        return record

    def nudge(self, leader: int) -> None:
        """Send a record that is no part of what the script is judged by."""
        self.send(f"(nudge {next(self._nudges)})", leader, acks=0, judged=False)

    def bump(self, producer: str) -> None:
        """Let a producer go on in its next epoch; one whose writes were not sent begins with it."""
        made = self._producers.get(producer)
        if made is not None:
            made.epoch += 1
            made.next_sequence = 0

    def send_again(self, record: DirectRecord, broker: int) -> None:
        """Send a record to a broker; a second time it is the same batch, known as such where it has a sequence."""
        record.unanswered += 1
        self._client.produce(broker, record.write, partial(self._answered, record))

    def end(self) -> None:
        """Write down how every one ended that was not acknowledged."""
        for record in self._sent:
            if record.judged and record.acknowledged:
                continue
            refused = record.outcome is not None and record.outcome.type is EventType.FAIL and not record.unanswered
            self._record(record, EventType.FAIL if refused else EventType.INFO)

    def counts(self) -> SendCounts:
        """The number of records, by how they ended."""
        counts = SendCounts(attempted=len(self.records))
        for end in self.ends().values():
            counts.count(_KINDS.get(end.outcome, EventType.INFO))
        return counts

    def ends(self) -> dict[str, RecordEnd]:
        """The client's knowledge of each record, by name."""
        return {name: record.end() for name, record in self.records.items()}

    def _answered(self, record: DirectRecord, outcome: SendOutcome) -> None:
        before = record.acknowledged
        record.take(outcome)
        if record.judged and record.acknowledged and not before:
            self._record(record, EventType.OK)

    def _record(self, record: DirectRecord, kind: EventType) -> None:
        outcome = record.outcome if kind is not EventType.INVOKE else None
        key = record_key_of(record.write.key) if self._writers.keyed else None
        offset = outcome.offset if outcome else None
        self._writers.recorder.record(
            Event(
                time_us=self._writers.clock.now_us(),
                process=record.process,
                instance=record.instance,
                type=kind,
                function=Function.SEND,
                micro=(Sent(self._partition, record.value, offset, key, record.write.tombstone),),
                node=outcome.node if outcome else None,
                error=outcome.error if outcome else None,
            )
        )
