"""A consumer that is cut off from its brokers for a known time, in a whole run: others write on, and it waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from checkers import Verdict
from checkers.local import check_rows
from harness.ground.choices import Choices
from harness.plan import RunSpec
from harness.runs.run.scheduled import perform_schedule
from harness.worlds.simulated import SimulatedWorld
from nemesis.cluster import CLIENTS, Link
from nemesis.schedule import Schedule
from workloads.history.rows import Rows
from workloads.operations import Event, EventType, Function

CUT_US, HEALED_US = 3_000_000, 5_500_000
#: A fetch is repeated after its time-out and connections are made again.
RETURN_US = 3_000_000


class CutOff:
    """Takes the history of a run, and cuts the first client that was assigned log partitions off for a while."""

    def __init__(self, spec: RunSpec) -> None:
        self.rows = Rows()
        self.process = -1
        self.partitions: tuple[str, ...] = ()
        choices = Choices(spec.seed)
        self._world = SimulatedWorld(spec, choices)
        perform_schedule(spec, self._world, self, choices.draw)

    def record(self, event: Event) -> None:
        self.rows.add(event)
        if event.function is Function.ASSIGN and event.type is EventType.OK and self.process < 0:
            self.process, self.partitions = event.process, event.partitions
            links = self._world.target.links
            assert links is not None
            node = CLIENTS + 1 + event.process
            brokers = self._world.cluster.brokers
            around = [Link(*ends) for broker in brokers for ends in ((node, broker), (broker, node))]
            begun_us = self._world.clock.now_us()
            self._world.clock.call_at(begun_us + CUT_US, partial(links.cut, around))
            self._world.clock.call_at(begun_us + HEALED_US, partial(links.heal, around))

    def verdict(self) -> Verdict:
        return check_rows(self.rows, name="cut off")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_consumer_that_is_cut_off_waits_as_long_and_the_others_do_not(
    spec: Callable[..., RunSpec], seed: int
) -> None:
    calm = Schedule(steps=(), healed_ms=8_000)
    run = CutOff(msgspec.structs.replace(spec(seed, acks=-1, min_insync_replicas=2), schedule=calm))
    waited = run.verdict().read_availability
    assert set() < set(run.partitions) < set(waited), "one is cut off, and another consumer reads the rest"
    for partition, availability in waited.items():
        if partition in run.partitions:
            assert HEALED_US - CUT_US - 500_000 <= availability.longest_gap_us <= HEALED_US - CUT_US + RETURN_US
        else:
            assert availability.longest_gap_us < 1_000_000
