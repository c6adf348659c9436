"""A simulated world with the clients that a test wants, and whole runs through the conductor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from harness.ground.choices import Choices
from harness.plan import RunSpec, Simulated
from harness.worlds.reference_settings import broker_config
from harness.worlds.simulated import SimulatedWorld
from harness.worlds.simulated.invariants import Invariants
from nemesis.cluster import Link
from nemesis.plan import FaultPlan
from workloads.client import Offsets, PollOutcome, Producer, SendOutcome
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

TOPIC = "t"
PARTITION = "t-0"


def _spec(
    seed: int = 1, *, families: tuple[str, ...] = ("kill",), duration_ms: int = 8_000, **settings: Any
) -> RunSpec:
    """A short run with faults of these families; one log partition would hide what several do to each other."""
    return RunSpec(
        world=Simulated(),
        cell="test/" + "+".join(families),
        family="+".join(families),
        settings=Settings(**settings).to_mapping(),
        workload=WorkloadPlan(topic=TOPIC, writes_per_second=50.0, duration_ms=duration_ms),
        faults=FaultPlan(families=families, count=4),
        seed=seed,
    )


def invariants_of(world: SimulatedWorld, settings: Settings) -> Invariants:
    """The invariants of ``world`` with every step."""
    invariants = Invariants(world.cluster, broker_config(settings))
    world.cluster.watch(invariants.step)
    return invariants


class Stage:
    """An open world and short words for what tests do with it. Clients are process numbers."""

    def __init__(self, world: SimulatedWorld, choices: Choices, settings: Settings) -> None:
        self.world = world
        self.choices = choices
        self.settings = settings
        self.target = world.target
        self.sent: dict[str, SendOutcome] = {}
        self._processes = iter(range(1_000))
        self.invariants = invariants_of(world, settings)
        world.open()

    @property
    def leader(self) -> int:
        leader = self.target.view().partitions[PARTITION].leader
        assert leader is not None
        return leader

    @property
    def followers(self) -> list[int]:
        return [node for node in self.world.cluster.brokers if node != self.leader]

    def producer(self) -> Callable[[str], None]:
        """A producer as a function that sends a value; its outcome appears in ``sent``."""
        return partial(self._send, self.world.clients.producer(next(self._processes)))

    def _send(self, producer: Producer, value: str) -> None:
        producer.send(PARTITION, b"k", value.encode(), partial(self.sent.__setitem__, value))

    def write(self, send: Callable[[str], None], value: str, within_ms: int = 8_000) -> SendOutcome:
        send(value)
        self.until(lambda: value in self.sent, within_ms)
        return self.sent[value]

    def until(self, reached: Callable[[], bool], within_ms: int = 10_000) -> None:
        assert self.world.drive(reached, self.world.clock.now_us() + within_ms * 1_000), "not within the limit"

    def wait(self, duration_ms: int) -> None:
        self.world.drive(lambda: False, self.world.clock.now_us() + duration_ms * 1_000)

    def healthy(self) -> bool:
        view = self.target.view()
        return all(
            state.leader in view.running and len(state.isr) == len(state.replicas) for state in view.partitions.values()
        )

    def moved_from(self, node: int) -> Callable[[], bool]:
        return lambda: self.target.view().partitions[PARTITION].leader not in (node, None)

    def read_all(self) -> list[str]:
        """Every value that a fresh consumer finds between the start and the end of the log."""
        consumer = self.world.clients.consumer(next(self._processes))
        ends: list[Offsets] = []
        consumer.end_offsets([PARTITION], ends.append)
        self.until(lambda: bool(ends))
        consumer.assign([PARTITION], from_start=True)
        values: dict[int, str] = {}
        for _ in range(200):
            polled: list[PollOutcome] = []
            consumer.poll(100, polled.append)
            self.until(lambda polled=polled: bool(polled))  # type: ignore[misc]
            values.update({record.offset: record.payload.decode() for record in polled[0].records})
            if len(values) >= ends[0].offsets[PARTITION]:
                break
        return [values[offset] for offset in sorted(values)]

    def cut_off(self, node: int) -> list[Link]:
        """Cut a broker from the other brokers and the controller, both ways, but from no client."""
        others = [other for other in (*self.world.cluster.brokers, 100) if other != node]
        links = [Link(node, other) for other in others] + [Link(other, node) for other in others]
        self.target.links.cut(links)
        return links


@pytest.fixture
def spec() -> Callable[..., RunSpec]:
    """Makes a short run; arguments are a seed, ``families``, ``duration_ms`` and settings."""
    return _spec


@pytest.fixture
def stage() -> Callable[..., Stage]:
    """Makes an open world; arguments are settings, ``seed`` and ``observe``."""

    def make(seed: int = 1, *, observe: bool = False, **settings: Any) -> Stage:
        choices = Choices(seed)
        spec = _spec(seed, **settings)
        return Stage(SimulatedWorld(spec, choices, observe=observe), choices, spec.chosen())

    return make
