"""Follows a topic of a cluster whose logs are out of reach: asked over the network, a few times a second.

What changes is written to a trace, as the reference broker's nodes write theirs. Times are those of the look that saw
it; what came and went between two looks is not seen.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Final

import msgspec
from kafka.errors import KafkaError

from harness.errors import HostError
from harness.observations import BrokerFenced, BrokerRegistered, Fact, IsrChanged, LeaderElected, Observation, to_line
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import CONTROLLER, ClusterView, PartitionView

LOOK_EVERY_S: Final = 0.25
_LOG: Final = logging.getLogger(__name__)
#: One look may wait for a broker that is gone.
_END_LIMIT_S: Final = 10.0
#: As the controller's records write it.
_NOBODY: Final = -1


class MetadataPoller:
    """Looks at ``topic`` from :meth:`begin` to :meth:`end`. ``administration`` is its own, the trace a new file."""

    def __init__(self, administration: Administration, topic: str, trace: Path) -> None:
        self._administration = administration
        self._topic = topic
        self._trace = trace
        self._view = ClusterView({}, (), (), controllers=(), running_controllers=())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ackproof-metadata", daemon=True)

    def begin(self) -> None:
        """Look once, then go on looking.

        Raises:
            HostError: nobody could be asked.
        """
        self.look()
        self._thread.start()

    def end(self) -> None:
        """Look no more. Idempotent."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_END_LIMIT_S)
        self._administration.close()

    def view(self) -> ClusterView:
        """What was seen last."""
        return self._view

    def look(self) -> None:
        """Ask now.

        Raises:
            HostError: nobody could be asked.
        """
        image, running = self._administration.topic(self._topic), self._administration.running()
        before = self._view
        partitions = before.partitions if image is None else image.partitions
        brokers = tuple(sorted({*before.brokers, *running}))
        self._view = msgspec.structs.replace(before, partitions=partitions, running=running, brokers=brokers)
        self._write(changes(before, self._view))

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            try:
                self.look()
            except (HostError, KafkaError):
                continue  # nobody answered, or refused to; the last view stands
            except Exception:  # the library is asked while brokers vanish; a thread that ends would freeze the view
                _LOG.exception("a look at the cluster failed; the last view stands")

    def _write(self, facts: list[Fact]) -> None:
        wall_us = time.time_ns() // 1_000
        with self._trace.open("ab") as file:
            file.write(b"".join(to_line(Observation(wall_us, CONTROLLER, fact)) for fact in facts))


def changes(before: ClusterView, after: ClusterView) -> list[Fact]:
    """What the controller must have decided between two looks."""
    facts: list[Fact] = [BrokerRegistered(broker=node) for node in after.running if node not in before.running]
    facts += [BrokerFenced(broker=node) for node in before.running if node not in after.running]
    for name, state in after.partitions.items():
        was = before.partitions.get(name)
        if was is None or (was.leader, was.leader_epoch) != (state.leader, state.leader_epoch):
            facts.append(_state(LeaderElected, name, state))
        elif was != state:
            facts.append(_state(IsrChanged, name, state))
    return facts


def _state(kind: type[LeaderElected | IsrChanged], partition: str, state: PartitionView) -> LeaderElected | IsrChanged:
    return kind(
        partition=partition,
        leader=_NOBODY if state.leader is None else state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=state.replicas,
        elr=state.elr,
    )
