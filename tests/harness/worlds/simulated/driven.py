"""The simulated cluster under a test's control: messages take a millisecond, nothing happens by chance."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

from harness.broker.core.broker import Broker
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import Message
from harness.broker.core.types import CONTROLLER, BrokerConfig, Image, TopicPartition
from harness.ground.observations import Fact
from harness.worlds.simulated.cluster import SimulatedCluster
from harness.worlds.simulated.invariants import Invariants
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.steady import Steady
from nemesis.cluster import Link, require

#: Above CLIENTS, and without connections: it asks as the harness itself does.
CLIENT = 1001
AT = TopicPartition("t", 0)
MS = 1000


class Driven:
    """Three brokers, a controller and a client. ``lose`` (source, target, message) says what is not delivered."""

    def __init__(self, config: BrokerConfig) -> None:
        self.lose: Callable[[int, int, Message], bool] = lambda source, target, message: False
        self.sent: list[tuple[int, int, Message]] = []
        self.answers: list[Any] = []
        self.observed: list[Fact] = []
        self.loop, self.choices = Loop(), Steady(1)
        self.network = Network(self.loop, self.choices)
        self.links = [Link(*pair) for pair in permutations((0, 1, 2, CONTROLLER, CLIENT), 2)]
        self.network.filter(self.links, self._is_lost, keeps=False)
        self.network.started(CLIENT, self)
        self.cluster = SimulatedCluster(
            range(3), config, self.loop, self.network, self._observe, observing=True, draw=self.choices.draw
        )
        self.invariants = Invariants(self.cluster, config)
        self.cluster.watch(self.invariants.step)
        self.cluster.start()
        self.run(100)

    def _observe(self, _node: int, fact: Fact) -> None:
        self.observed.append(fact)

    # --- the client: a process on the network ---

    def receive(self, _source: int, message: Any) -> None:
        self.answers.append(message)

    def disconnected(self, _peer: int) -> None:
        """It has no connections."""

    def _is_lost(self, source: int, target: int, message: Message) -> bool:
        self.sent.append((source, target, message))
        return self.lose(source, target, message)

    # --- time and links ---

    @property
    def now_us(self) -> int:
        return self.loop.time_us

    def run(self, ms: int) -> None:
        self.loop.run(lambda: False, self.now_us + ms * MS)

    def wait(self, condition: Callable[[], object], limit_ms: int = 20_000) -> None:
        assert self.loop.run(lambda: bool(condition()), self.now_us + limit_ms * MS), "waited in vain"

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Cut links in both directions."""
        self.network.cut([Link(*pair) for a, b in pairs for pair in ((a, b), (b, a))])

    def heal(self) -> None:
        """Deliver everything again."""
        self.network.heal(self.links)
        self.network.restore_link_speed(self.links)
        self.lose = lambda source, target, message: False

    def isolate(self, node: int) -> None:
        """Cut a broker from all brokers and the controller, not from the client."""
        self.cut(*((node, other) for other in (0, 1, 2, CONTROLLER) if other != node))

    def deliver(self, source: int, target: int, message: Message) -> None:
        wire = self.network.wire(source, target)
        if wire is not None:
            wire.send(message)

    # --- processes and disks ---

    @property
    def brokers(self) -> dict[int, Broker]:
        """The nodes that live."""
        return {node: core for node in range(3) if (core := self.cluster.broker(node)) is not None}

    @property
    def image(self) -> Image:
        """The controller's newest image."""
        return self.cluster.image()

    def start(self, node: int) -> None:
        self.cluster.restart(node)

    def kill(self, *nodes: int) -> None:
        for node in nodes:
            self.cluster.kill(node)

    def power(self, *nodes: int) -> None:
        for node in nodes:
            self.cluster.cut_power(node)

    def wipe(self, *nodes: int) -> None:
        for node in nodes:
            require(self.cluster.target.files).wipe(node)

    def log(self, node: int) -> MemoryLog:
        return self.cluster.log(node, AT) or MemoryLog()

    def logs(self) -> list[MemoryLog]:
        return [self.log(node) for node in range(3)]

    def log_end(self, node: int) -> int:
        return self.log(node).end_offset

    def records(self, node: int) -> list[str]:
        """The records on a broker's disk, in order."""
        return [batch.records for batch in self.log(node).batches]
