"""A whole cluster in one list of events: messages take a millisecond, nothing happens by chance."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from harness.reference.core.broker import Broker
from harness.reference.core.controller import Controller
from harness.reference.core.effects import Arm, Effect, Observed, Send
from harness.reference.core.log import MemoryLog
from harness.reference.core.messages import (
    CreateTopic,
    Fetch,
    Message,
    MoveLeader,
    Produce,
    ProduceResponse,
    RecordBatch,
)
from harness.reference.core.types import (
    ACKS_ALL,
    CONTROLLER,
    NONE,
    BrokerConfig,
    ErrorCode,
    PartitionState,
    TopicConfig,
    TopicPartition,
)

CLIENT = 1000
AT = TopicPartition("t", 0)
MS = 1000

FactT = TypeVar("FactT")


class Lab:
    """Three brokers, a controller and a client. Links are (source, target) pairs; what is lost is not delivered."""

    def __init__(self, broker: BrokerConfig | None = None, topic: TopicConfig | None = None, brokers: int = 3) -> None:
        self.config = broker or BrokerConfig()
        self.topic = topic or TopicConfig()
        self.now_us = 0
        self.cut_links: set[tuple[int, int]] = set()
        self.latency_us: Callable[[int], int] = lambda sequence: MS
        self.lose: Callable[[int, int, Message], bool] = lambda source, target, message: False
        self.logs: dict[tuple[int, TopicPartition], MemoryLog] = {}
        self.observed: list[tuple[int, int, Observed]] = []
        self.answers: list[tuple[int, Message]] = []
        self.sent: list[tuple[int, int, Message]] = []
        self.brokers: dict[int, Broker] = {}
        self._events: list[tuple[int, int, int, Any]] = []
        self._sequence = 0
        self._correlation = 0
        self._life: dict[int, int] = {CONTROLLER: 0}
        self.controller = Controller(self.config)
        self._take(CONTROLLER, self.controller.start(0))
        for node in range(brokers):
            self.start(node)
        self.run(100)

    # --- time and links ---

    def run(self, ms: int) -> None:
        """Let time pass."""
        self._until(self.now_us + ms * MS)

    def wait(self, condition: Callable[[], object], limit_ms: int = 20_000) -> None:
        """Let time pass until something is true."""
        limit_us = self.now_us + limit_ms * MS
        while not condition():
            assert self.now_us < limit_us, "waited in vain"
            self._until(self.now_us + MS)

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Cut links in both directions."""
        for a, b in pairs:
            self.cut_links |= {(a, b), (b, a)}

    def heal(self) -> None:
        """Deliver everything again."""
        self.cut_links.clear()
        self.lose = lambda source, target, message: False

    def isolate(self, node: int) -> None:
        """Cut a broker from all brokers and the controller, not from the client."""
        self.cut(*((node, other) for other in (*self.brokers, CONTROLLER) if other != node))

    # --- processes and disks ---

    def start(self, node: int) -> None:
        """Start a process on its old disk."""
        self._life[node] = self._life.get(node, 0) + 1
        self.brokers[node] = Broker(node, self.config, lambda at: self._log(node, at), self._life[node] * 10 + node)
        self._take(node, self.brokers[node].start(self.now_us))

    def kill(self, *nodes: int) -> None:
        """SIGKILL: logs stay as they are."""
        for node in nodes:
            self._life[node] += 1
            del self.brokers[node]

    def power(self, *nodes: int) -> None:
        """Power loss: what was not flushed is gone."""
        self.kill(*nodes)
        for (owner, _), log in self.logs.items():
            if owner in nodes:
                log.lose_unflushed()

    def wipe(self, *nodes: int) -> None:
        """An empty disk."""
        for (owner, _), log in self.logs.items():
            if owner in nodes:
                log.reset_to(0)

    # --- the topic and its records ---

    def create(self, *replicas: int) -> None:
        """One partition on these brokers, or on all; the first leads."""
        order = replicas or tuple(self.brokers)
        self.send(CONTROLLER, CreateTopic(self._next(), AT.topic, 1, len(order), self.topic, (order,)))
        self.wait(lambda: self.state() is not None and self.leads(order[0]))
        self.settle()

    def write(
        self,
        node: int,
        payload: str,
        acks: int = ACKS_ALL,
        timeout_ms: int = 5_000,
        producer: tuple[int, int, int] = (NONE, NONE, NONE),
    ) -> int:
        """Send one record; the answer is its correlation."""
        correlation = self._next()
        batch = RecordBatch(1, 100, payload, NONE, NONE, *producer)
        self.send(node, Produce(correlation, AT, acks, timeout_ms, batch))
        return correlation

    def outcome(self, correlation: int) -> ErrorCode | None:
        """What the producer was told, None while nothing."""
        answer = self.answer(correlation)
        return None if answer is None else answer.error

    def answer(self, correlation: int) -> ProduceResponse | Any:
        """The response with a correlation, None while there is none."""
        found = [m for _, m in self.answers if getattr(m, "correlation", None) == correlation]
        assert len(found) <= 1, "answered twice"
        return found[0] if found else None

    def write_ok(self, node: int, payload: str, acks: int = ACKS_ALL) -> None:
        """Send one record and wait for its acknowledgement."""
        correlation = self.write(node, payload, acks)
        self.wait(lambda: self.outcome(correlation) is not None)
        assert self.outcome(correlation) == ErrorCode.NONE

    def ask(self, node: int, make: Callable[[int], Message]) -> Any:
        """Send a request made with a correlation and wait for its answer."""
        correlation = self._next()
        self.send(node, make(correlation))
        self.wait(lambda: self.answer(correlation) is not None)
        return self.answer(correlation)

    def move_leader(self, node: int) -> None:
        """A planned move."""
        answer = self.ask(CONTROLLER, lambda correlation: MoveLeader(correlation, AT.topic, AT.partition, node))
        assert answer.error == ErrorCode.NONE

    def records(self, node: int) -> list[str]:
        """What is on a broker's disk, in order."""
        return [batch.records for batch in self._log(node, AT).producer_batches()]

    def committed(self) -> list[str]:
        """What a consumer reads from the leader."""
        node = self.state().leader
        assert node != NONE, "leaderless"
        replica = self.brokers[node].replicas[AT]
        return [b.records for b in replica.log.producer_batches() if b.next_offset <= replica.high_watermark]

    def state(self) -> PartitionState | Any:
        """The controller's word."""
        return self.controller.image.partition(AT)

    def leads(self, node: int) -> bool:
        """Does a broker think that it leads?"""
        replica = self.brokers[node].replicas.get(AT) if node in self.brokers else None
        return replica is not None and replica.leading

    def high_watermark(self, node: int) -> int:
        """A broker's high watermark."""
        return self.brokers[node].replicas[AT].high_watermark

    def settled(self) -> bool:
        """Is every replica in the ISR, with equal logs and high watermarks?"""
        state = self.state()
        if state is None or set(state.isr) != set(state.replicas) or not set(state.replicas) <= set(self.brokers):
            return False
        replicas = [self.brokers[node].replicas.get(AT) for node in state.replicas]
        return (
            None not in replicas
            and len({self.log_end(node) for node in state.replicas}) == 1
            and all((r.high_watermark == r.log.end_offset and r.isr == state.isr) or not r.leading for r in replicas)
            and len({r.high_watermark for r in replicas}) == 1
        )

    def settle(self) -> None:
        """Wait until everything is replicated everywhere."""
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
        self.wait(lambda: all(self.controller.image.brokers[node].fenced for node in nodes))

    def log_end(self, node: int) -> int:
        """A broker's log end offset."""
        return self._log(node, AT).end_offset

    def seen(self, kind: type[FactT]) -> list[FactT]:
        """The facts of one kind, in order."""
        return [o.fact for _, _, o in self.observed if isinstance(o.fact, kind)]

    # --- the event list ---

    def send(self, node: int, message: Message) -> None:
        """From the client to a node."""
        self._deliver(CLIENT, node, message)

    def _next(self) -> int:
        self._correlation += 1
        return self._correlation

    def _log(self, node: int, at: TopicPartition) -> MemoryLog:
        return self.logs.setdefault((node, at), MemoryLog())

    def _until(self, limit_us: int) -> None:
        while self._events and self._events[0][0] <= limit_us:
            self.now_us, _, target, event = heapq.heappop(self._events)
            if isinstance(event, Arm):
                self._ring(target, event)
            else:
                self._arrive(target, *event)
        self.now_us = limit_us

    def _ring(self, target: int, event: Any) -> None:
        node, life = divmod(target, 10_000)
        if self._life.get(node) != life:
            return
        machine = self.controller if node == CONTROLLER else self.brokers.get(node)
        if machine is not None:
            self._take(node, machine.on_timer(self.now_us, event.timer))

    def _arrive(self, target: int, source: int, message: Message) -> None:
        if (source, target) in self.cut_links:
            return
        if target == CLIENT:
            self.answers.append((source, message))
            return
        machine = self.controller if target == CONTROLLER else self.brokers.get(target)
        if machine is not None:
            self._take(target, machine.on_message(self.now_us, source, message))

    def _take(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._deliver(node, effect.target, effect.message)
            elif isinstance(effect, Arm):
                self._push(effect.at_us, node * 10_000 + self._life[node], effect)
            else:
                self.observed.append((self.now_us, node, effect))

    def _deliver(self, source: int, target: int, message: Message) -> None:
        self.sent.append((source, target, message))
        if (source, target) not in self.cut_links and not self.lose(source, target, message):
            self._push(self.now_us + self.latency_us(self._sequence), target, (source, message))

    def _push(self, at_us: int, target: int, event: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (at_us, self._sequence, target, event))


@pytest.fixture
def lab() -> Callable[..., Lab]:
    """Makes a cluster with one topic of one partition, everything replicated."""

    def make(
        broker: BrokerConfig | None = None, topic: TopicConfig | None = None, replicas: tuple[int, ...] = (0, 1, 2)
    ) -> Lab:
        made = Lab(broker, topic)
        made.create(*replicas)
        made.write_ok(replicas[0], "base")
        made.settle()
        for log in made.logs.values():
            log.flush()
            log.checkpoint_high_watermark(log.end_offset)
        return made

    return make
