"""One log partition on the simulated cluster, as tests of the core use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from harness.broker.core.messages import CreateTopic, Fetch, Message, MoveLeader, Produce, RecordBatch
from harness.broker.core.types import ACKS_ALL, CONTROLLER, NONE, BrokerConfig, ErrorCode, TopicConfig
from tests.harness.worlds.simulated.driven import AT, CLIENT, Driven

FactT = TypeVar("FactT")


class Lab(Driven):
    """Three brokers, and what a client asks of the one log partition that they keep."""

    def __init__(self, broker: BrokerConfig | None = None, topic: TopicConfig | None = None) -> None:
        self.topic = topic or TopicConfig()
        self._correlation = 0
        super().__init__(broker or BrokerConfig())

    def send(self, node: int, message: Message) -> None:
        self.deliver(CLIENT, node, message)

    def correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    def answer(self, correlation: int) -> Any:
        """The response with a correlation, None while there is none."""
        answers = [answer for answer in self.answers if answer.correlation == correlation]
        assert len(answers) <= 1, "answered twice"
        return answers[0] if answers else None

    def ask(self, node: int, make: Callable[[int], Message]) -> Any:
        """Send a request made with a correlation and wait for its answer."""
        return self.answer_to(node, make(self.correlation()))

    def answer_to(self, node: int, request: Message) -> Any:
        """Send a request that has its correlation and wait for its answer."""
        self.send(node, request)
        self.wait(lambda: self.answer(request.correlation) is not None)
        return self.answer(request.correlation)

    def again(self, node: int, make: Callable[[int], Message]) -> Any:
        """The answer of a transaction coordinator, however often it says to come back."""
        for _ in range(100):
            answer = self.ask(node, make)
            if answer.error != ErrorCode.CONCURRENT_TRANSACTIONS:
                return answer
            self.run(50)
        raise AssertionError("the transaction before did not end")

    def create(self, *replicas: int) -> None:
        """One partition on these brokers; the first leads."""
        self.ask(CONTROLLER, lambda c: CreateTopic(c, AT.topic, 1, len(replicas), self.topic, (replicas,)))
        self.wait(lambda: self.leads(replicas[0]))
        self.settle()

    def write(
        self,
        node: int,
        payload: Any,
        acks: int = ACKS_ALL,
        timeout_ms: int = 5_000,
        producer: tuple[int, int, int] = (NONE, NONE, NONE),
    ) -> int:
        """Send one record; the answer is its correlation."""
        correlation, batch = self.correlation(), RecordBatch(1, 100, payload, NONE, NONE, *producer)
        self.send(node, Produce(correlation, AT, acks, timeout_ms, batch))
        return correlation

    def outcome(self, correlation: int) -> ErrorCode | None:
        """The answer to the producer, None while there is none."""
        return getattr(self.answer(correlation), "error", None)

    def write_ok(self, node: int, payload: Any, acks: int = ACKS_ALL) -> int:
        """Send one record and wait for its acknowledgement; the answer is its correlation."""
        correlation = self.write(node, payload, acks)
        self.wait(lambda: self.outcome(correlation) is not None)
        assert self.outcome(correlation) == ErrorCode.NONE
        return correlation

    def move_leader(self, node: int) -> None:
        assert self.ask(CONTROLLER, lambda c: MoveLeader(c, AT.topic, AT.partition, node)).error == ErrorCode.NONE

    # --- the partition ---

    def state(self) -> Any:
        """The controller's word."""
        return self.image.partition(AT)

    def leads(self, node: int) -> bool:
        """Does a broker think that it leads?"""
        replica = self.brokers[node].replicas.get(AT) if node in self.brokers else None
        return replica is not None and replica.leading

    def high_watermark(self, node: int) -> int:
        return self.brokers[node].replicas[AT].high_watermark

    def committed(self) -> list[str]:
        """The records that a consumer reads from the leader."""
        replica = self.brokers[self.state().leader].replicas[AT]
        return [b.records for b in replica.log.batches if b.next_offset <= replica.high_watermark]

    def settled(self) -> bool:
        """Is every replica in the ISR, with equal logs and high watermarks?"""
        state = self.state()
        replicas = [broker.replicas[AT] for broker in self.brokers.values() if AT in broker.replicas]
        return (
            set(state.isr) == set(state.replicas)
            and len(replicas) == len(state.replicas)
            and len({(r.log.end_offset, r.high_watermark) for r in replicas}) == 1
            and all((r.high_watermark == r.log.end_offset and r.isr == state.isr) or not r.leading for r in replicas)
        )

    def settle(self) -> None:
        self.wait(self.settled)

    def shrink(self, *nodes: int) -> None:
        """Stop the fetches of followers until the controller has removed them from the ISR."""
        earlier = self.lose
        self.lose = lambda s, t, m: (isinstance(m, Fetch) and s in nodes) or earlier(s, t, m)
        self.nudge()
        self.wait(lambda: not set(self.state().isr) & set(nodes))

    def nudge(self) -> None:
        """A record that nobody waits for: a follower that has everything is in sync however silent it is (rule 9)."""
        self.write(self.state().leader, "nudge", acks=0)
        self.run(10)

    def fence(self, *nodes: int) -> None:
        """Wait until the controller has given brokers up."""
        self.wait(lambda: all(self.image.brokers[node].fenced for node in nodes))

    def seen(self, kind: type[FactT]) -> list[FactT]:
        """The facts of one kind, in order."""
        return [fact for fact in self.observed if isinstance(fact, kind)]


@pytest.fixture
def lab() -> Callable[..., Lab]:
    """Makes a cluster with one topic of one partition, everything replicated and flushed.

    A topic that is not compacted has a record, "base".
    """

    def make(
        broker: BrokerConfig | None = None, topic: TopicConfig | None = None, replicas: tuple[int, ...] = (0, 1, 2)
    ) -> Lab:
        made = Lab(broker, topic)
        made.create(*replicas)
        if made.topic.compacted:
            return made  # Its records have keys.
        made.write_ok(replicas[0], "base")
        made.settle()
        for log in made.logs():
            log.flush()
            log.checkpoint_high_watermark(log.end_offset)
        return made

    return make
