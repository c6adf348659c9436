"""The transactions of a script: producers with transactional ids, each a client of its own, and what they write.

A transaction is one operation of the history. It is written down when its producer is told that it is committed or
aborted; any other one when nothing can be answered any more (:meth:`ScriptTransactions.end`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, Literal

import msgspec
from typing_extensions import override

from harness.runs.stories.trace import ACKNOWLEDGED, RecordEnd, StepError
from harness.runs.stories.writes import ScriptedRecord, key_in
from workloads import (
    Clients,
    Clock,
    Event,
    EventType,
    Function,
    ProducerEpoch,
    Reached,
    Recorder,
    SendOutcome,
    TransactionEnd,
    Transactions,
    failures,
)
from workloads import Producer as Client
from workloads import Send as Sent
from workloads.values import encode, join, record_key_of


class TransactionAnswer(StrEnum):
    """The answer of a producer that asked for the end of its transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    REFUSED = "refused"


#: The fate of a record whose transaction is aborted, and of one whose transaction is open.
ABORTED: Final = "aborted"
OPEN: Final = "in an open transaction"
#: The transactional id of a producer that is in no script.
_FIRST: Final = "first"
#: The fate of a record, by the end of its transaction; by any other it is unknown.
_FATES: Final[Mapping[TransactionAnswer | None, str]] = {
    TransactionAnswer.COMMITTED: ACKNOWLEDGED,
    TransactionAnswer.ABORTED: ABORTED,
}


class ScriptedInstance:
    """One producer instance; ``number`` instances with its transactional id were made before."""

    def __init__(self, transactional_id: str, number: int, client: Client) -> None:
        self.transactional_id = transactional_id
        self.number = number
        self.client = client
        self.answer: SendOutcome | None = None

    @property
    def calls(self) -> Transactions:
        """The calls that it takes: begin, commit, abort."""
        assert self.client.transactions is not None, "it was made with a transactional id"  # noqa: S101
        return self.client.transactions

    @property
    def ready(self) -> bool:
        """It was told that it is in charge."""
        return self.answer is not None and self.answer.type is EventType.OK

    @property
    def in_words(self) -> str:
        """Its answer in words."""
        return "it has no answer" if self.answer is None else self.answer.error or "it is ready"


class ScriptedTransaction:
    """One transaction: what its script will write (``values``, by record), what it wrote, and what is known of it."""

    def __init__(self, instance: ScriptedInstance, process: int, records: Iterable[str]) -> None:
        self.instance = instance
        self.process = process
        self.values = {name: join(process, number) for number, name in enumerate(records)}
        self.records: list[TransactionalRecord] = []
        self.asked: Literal["commit", "abort"] | None = None
        self.ending_us: int | None = None
        self.superseded_us: int | None = None
        self.late: list[int] = []
        self.told: ProducerEpoch | None = None
        self.answer: SendOutcome | None = None
        self.group: str | None = None
        self.handed_us: int | None = None
        self.reached: dict[str, Reached] = {}

    def hand_over(self, part: Reached, group: str, time_us: int) -> None:
        """The group took this offset of it."""
        self.group, self.handed_us = group, time_us
        self.reached[part.partition] = part

    @property
    def end(self) -> TransactionAnswer | None:
        """The answer to its producer, None where that waits, or did not ask."""
        if self.answer is None:
            return None
        if self.answer.type is not EventType.OK:
            return TransactionAnswer.REFUSED
        return TransactionAnswer.COMMITTED if self.asked == "commit" else TransactionAnswer.ABORTED

    @property
    def in_words(self) -> str:
        """The answer to its producer in words."""
        if self.answer is None:
            return "it has no answer" if self.waits else "it is open"
        return f"it is {self.end}" + (f" ({self.answer.error})" if self.answer.error else "")

    @property
    def waits(self) -> bool:
        """Its producer asked for its end, and has no answer."""
        return self.asked is not None and self.answer is None

    @property
    def decided(self) -> bool:
        """It is committed, or aborted."""
        return self.end in _FATES


class TransactionalRecord(ScriptedRecord):
    """A record of a transaction: it counts with that."""

    def __init__(self, value: int, key: bytes, transaction: ScriptedTransaction, partition: str) -> None:
        super().__init__(value, key)
        self.partition = partition
        self._transaction = transaction

    @override
    def end(self) -> RecordEnd:
        """It is acknowledged with its transaction."""
        outcome = self.outcome
        word = OPEN if self._transaction.asked is None else _FATES.get(self._transaction.end, "unknown")
        offset, error = (None, None) if outcome is None else (outcome.offset, outcome.error)
        return RecordEnd(value=self.value, outcome=word, offset=offset, error=error)


class ScriptTransactions:
    """All transactions of one performance. ``records`` are those of the whole script, by name."""

    def __init__(
        self,
        clients: Clients,
        partitions: Sequence[str],
        records: dict[str, ScriptedRecord],
        *,
        planned: Mapping[str, tuple[str, ...]],
        elsewhere: frozenset[str],
        keyed: bool,
        clock: Clock,
        recorder: Recorder,
        new_process: Callable[[], int],
    ) -> None:
        self._clients = clients
        self._partitions = partitions
        self._elsewhere = elsewhere
        self._records = records
        self._planned = planned
        self._keyed = keyed
        self._clock = clock
        self._recorder = recorder
        self._new_process = new_process
        self._instances: dict[str, ScriptedInstance] = {}
        self._transactions: dict[str, ScriptedTransaction] = {}

    def instance(self, name: str) -> ScriptedInstance:
        """The producer of that name.

        Raises:
            StepError: it was not made.
        """
        if name not in self._instances:
            raise StepError(f"the producer {name} was not made")
        return self._instances[name]

    def transaction(self, name: str) -> ScriptedTransaction:
        """The transaction of that name.

        Raises:
            StepError: it was not begun.
        """
        if name not in self._transactions:
            raise StepError(f"the transaction {name} was not begun")
        return self._transactions[name]

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """The ids of all producers, in the order in which they were made."""
        return tuple(dict.fromkeys(each.transactional_id for each in self._instances.values()))

    def first(self) -> ScriptedInstance:
        """Make a producer that is in no script, with a transactional id of its own."""
        made = ScriptedInstance(_FIRST, 0, self._clients.producer(self._new_process(), _FIRST))
        made.calls.init(partial(self._initialized, made))
        return made

    def init(self, producer: str, after: str | None) -> ScriptedInstance:
        """Make a producer, and let it fence those before it."""
        name = producer if after is None else self.instance(after).transactional_id
        before = [each for each in self._instances.values() if each.transactional_id == name]
        client = self._clients.producer(self._new_process(), name)
        made = self._instances[producer] = ScriptedInstance(name, len(before), client)
        made.calls.init(partial(self._initialized, made))
        return made

    def _initialized(self, instance: ScriptedInstance, outcome: SendOutcome) -> None:
        instance.answer = outcome
        if not instance.ready:
            return
        for each in self._transactions.values():
            theirs = each.instance
            earlier = theirs.transactional_id == instance.transactional_id and theirs.number < instance.number
            if earlier and each.ending_us is None and each.superseded_us is None:
                each.superseded_us = self._clock.now_us()

    def begin(self, name: str, producer: str, answered: Callable[[SendOutcome], None]) -> None:
        """Begin a transaction; ``answered`` is called once."""
        instance = self.instance(producer)
        if not instance.ready:
            raise StepError(f"the producer {producer} is not ready; write: wait until {producer} is ready")
        begun = ScriptedTransaction(instance, self._new_process(), self._planned[name])
        self._transactions[name] = begun
        self._record(begun, EventType.INVOKE)
        instance.calls.begin(partial(self._begun, name, answered))

    def _begun(self, name: str, answered: Callable[[SendOutcome], None], outcome: SendOutcome) -> None:
        if outcome.type is not EventType.OK:
            begun = self._transactions.pop(name)
            self._record(begun, EventType.FAIL)
        answered(outcome)

    def send(self, name: str, transaction_name: str, over: str | None) -> ScriptedRecord:
        """Send a record in an open transaction."""
        transaction = self.transaction(transaction_name)
        key = key_in(self._records, over or name)
        record = TransactionalRecord(transaction.values[name], key, transaction, self._log_of(name))
        record.unanswered = 1
        transaction.records.append(record)
        self._records[name] = record
        if transaction.superseded_us is not None:
            transaction.late.append(record.value)
        payload = encode(record.partition, key, record.value)
        transaction.instance.client.send(record.partition, key, payload, record.take)
        return record

    def ask(self, name: str, end: Literal["commit", "abort"]) -> ScriptedTransaction:
        """Ask for the end of a transaction. One that was refused may be asked for again."""
        transaction = self.transaction(name)
        if transaction.decided or transaction.waits:
            raise StepError(f"the transaction {name} was ended already")
        transaction.asked, transaction.answer = end, None
        transaction.ending_us = self._clock.now_us()
        if (epochs := transaction.instance.client.epochs) is not None:
            transaction.told = epochs.told_epoch()
        calls = transaction.instance.calls
        (calls.commit if end == "commit" else calls.abort)(partial(self._ended, transaction))
        return transaction

    def _ended(self, transaction: ScriptedTransaction, outcome: SendOutcome) -> None:
        transaction.answer = outcome
        if transaction.decided:
            self._record(transaction, EventType.OK if transaction.asked == "commit" else EventType.FAIL)

    @property
    def waiting(self) -> bool:
        """A producer that asked for an end has no answer."""
        return any(each.waits for each in self._transactions.values())

    def close(self) -> None:
        """Close every producer: what was not answered is then, as unknown."""
        for instance in self._instances.values():
            instance.client.close()

    def end(self) -> None:
        """Write down every transaction of whose end nothing was learnt."""
        for each in self._transactions.values():
            if each.decided:
                continue
            # One that its producer could not ask to commit, or was certainly refused, is aborted.
            refused = each.answer is not None and each.answer.type is EventType.FAIL
            fenced = each.answer is not None and each.superseded_us is not None
            self._record(each, EventType.FAIL if refused or fenced else EventType.INFO)

    def _record(self, transaction: ScriptedTransaction, kind: EventType) -> None:
        begins = kind is EventType.INVOKE
        planned = [Sent(self._log_of(name), value) for name, value in transaction.values.items()]
        self._recorder.record(
            Event(
                time_us=self._clock.now_us(),
                process=transaction.process,
                instance=transaction.process,
                type=kind,
                function=Function.TXN,
                micro=tuple(
                    planned if begins else [*map(self._sent, transaction.records), *transaction.reached.values()]
                ),
                error=None if begins or transaction.answer is None else transaction.answer.error,
                detail=None if begins else msgspec.json.encode(_facts(transaction)).decode(),
            )
        )

    def _log_of(self, name: str) -> str:
        return self._partitions[-1 if name in self._elsewhere else 0]

    def _sent(self, record: TransactionalRecord) -> Sent:
        offset = None if record.outcome is None else record.outcome.offset
        return Sent(record.partition, record.value, offset, record_key_of(record.key) if self._keyed else None)


def _facts(transaction: ScriptedTransaction) -> TransactionEnd:
    answers = {record.value: record.outcome for record in transaction.records if record.outcome is not None}
    return TransactionEnd(
        transactional_id=transaction.instance.transactional_id,
        number=transaction.instance.number,
        asked=transaction.asked,
        ending_us=transaction.ending_us,
        superseded_us=transaction.superseded_us,
        late=tuple(transaction.late),
        failed=failures(answers),
        group=transaction.group,
        handed_us=transaction.handed_us,
        producer=transaction.told,
    )
