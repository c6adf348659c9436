"""Performs the steps of transactions: what is asked of producers, and what unjudged readers get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.runs.stories import steps as s
from harness.runs.stories.patience import Patience
from harness.runs.stories.story_world import StoryWorld
from harness.runs.stories.trace import StepError, reader_words
from harness.runs.stories.transactions import ScriptTransactions
from harness.worlds.contract import World
from workloads import Consumer, EventType, PollOutcome, SendOutcome
from workloads.values import decode

#: A producer that comes while markers are written is told to come back, which takes it longer than one answer.
_MOMENTS: Final = 3


class TransactionSteps:
    """Performs them in ``world``; ``new_process`` hands out the processes of readers.

    Each method answers with the result of a step, in words.
    """

    def __init__(
        self,
        world: World,
        story_world: StoryWorld,
        transactions: ScriptTransactions,
        patience: Patience,
        new_process: Callable[[], int],
    ) -> None:
        self._world = world
        self._story_world = story_world
        self._transactions = transactions
        self._patience = patience
        self._new_process = new_process
        #: The names of the records that the last reader got.
        self.read_last: tuple[str, ...] | None = None

    def perform(self, step: s.Step) -> str:
        """Perform one of :data:`harness.runs.stories.steps.OF_TRANSACTIONS`.

        Raises:
            StepError: it could not be performed.
        """
        return _ACTIONS[type(step)](self, step)

    def init(self, step: s.InitProducer) -> str:
        """Make a producer."""
        made = self._transactions.init(step)
        self._moment(lambda: made.answer is not None)
        return "no answer yet" if made.answer is None else _answer("ready", made.answer)

    def begin(self, step: s.BeginTransaction) -> str:
        """Begin a transaction; the producer itself answers."""
        answers: list[SendOutcome] = []
        self._transactions.begin(step, answers.append)
        self._moment(lambda: bool(answers))
        if not answers or answers[0].type is not EventType.OK:
            raise StepError(_answer("", answers[0]) if answers else "its producer does not answer")
        return ""

    def send(self, step: s.WriteInTransaction) -> str:
        """Send a record in it."""
        self._transactions.send(step)
        return "sent"

    def write(self, step: s.WriteInTransaction) -> str:
        """Send a record in it, and wait a moment for the answer."""
        record = self._transactions.send(step)
        self._moment(lambda: record.answered)
        if record.outcome is None:
            return "no answer yet"
        offset = "" if record.outcome.offset is None else f"at offset {record.outcome.offset}"
        return _answer(offset, record.outcome)

    def ask(self, step: s.EndTransaction) -> str:
        """Ask for its end, and wait a moment for the answer."""
        asked = self._transactions.ask(step)
        self._moment(lambda: asked.answer is not None)
        return "no answer yet" if asked.answer is None else _answer(str(asked.end), asked.answer)

    def move_coordinator(self, step: s.MoveCoordinator) -> str:
        """Have the controller elect another leader of the coordinator's log."""
        self.coordinate(self._story_world.node(step.broker))
        return ""

    def coordinate(self, node: int) -> None:
        """Let ``node`` be the coordinator.

        Raises:
            StepError: it cannot be.
        """
        if self._story_world.coordinator != node and (refused := self._story_world.move_coordinator(node)):
            raise StepError(f"refused: {refused}")

    def read(self, step: s.ReadAs) -> str:
        """Read, and compare with what must be found."""
        consumer = self._world.clients.consumer(self._new_process(), isolation=step.isolation)
        consumer.assign([self._story_world.partition], from_start=True)
        probe = _Probe(consumer, self._patience.answer_ms)
        probe.poll()
        self._story_world.let_pass(3 * self._patience.answer_ms)
        consumer.close()
        names = self._story_world.names
        self.read_last = tuple(names[value] for value in probe.values if value in names)
        return reader_words(self.read_last, step.records)

    def _moment(self, finished: Callable[[], bool]) -> None:
        self._story_world.until(finished, _MOMENTS * self._patience.answer_ms)


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


def _answer(word: str, outcome: SendOutcome) -> str:
    return word if outcome.type is EventType.OK else f"{word} ({outcome.error})".strip()


_ACTIONS: Final[Mapping[type, Callable[[TransactionSteps, Any], str]]] = {
    s.InitProducer: TransactionSteps.init,
    s.BeginTransaction: TransactionSteps.begin,
    s.WriteInTransaction: TransactionSteps.write,
    s.SendInTransaction: TransactionSteps.send,
    s.EndTransaction: TransactionSteps.ask,
    s.MoveCoordinator: TransactionSteps.move_coordinator,
    s.ReadAs: TransactionSteps.read,
}
