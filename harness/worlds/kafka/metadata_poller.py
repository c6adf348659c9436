"""Follows a topic of a cluster whose logs are out of reach: asked over the network, a few times a second.

What changes is written to a trace, as the reference broker's nodes write theirs. Times are those of the look that saw
it; what came and went between two looks is not seen.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from kafka.errors import KafkaError

from harness.errors import HostError
from harness.worlds.kafka.administration import Administration
from harness.worlds.processes.traces import TraceLine
from nemesis.cluster import CONTROLLER, ClusterView, PartitionView

LOOK_EVERY_S: Final = 0.25
_LOG: Final = logging.getLogger(__name__)
#: One look may wait for a broker that is gone.
_END_LIMIT_S: Final = 10.0
#: As the controller's records write it.
_NOBODY: Final = -1


class Watch:
    """Looks at ``topic`` from :meth:`begin` to :meth:`end`. ``administration`` is its own, the trace a new file."""

    def __init__(self, administration: Administration, topic: str, trace: Path) -> None:
        self._administration = administration
        self._topic = topic
        self._trace = trace
        self._view = ClusterView({}, (), (), controllers=(), running_controllers=())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ackproof-watch", daemon=True)

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
        self._tell(changes(before, self._view))

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            try:
                self.look()
            except (HostError, KafkaError):
                continue  # nobody answered, or would not tell; the last view stands
            except Exception:  # the library is asked while brokers vanish; a thread that ends would freeze the view
                _LOG.exception("a look at the cluster failed; the last view stands")

    def _tell(self, told: list[tuple[str, str | None, dict[str, Any]]]) -> None:
        wall_us = time.time_ns() // 1_000
        lines = [TraceLine(wall_us, CONTROLLER, what, partition, facts) for what, partition, facts in told]
        with self._trace.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def changes(before: ClusterView, after: ClusterView) -> list[tuple[str, str | None, dict[str, Any]]]:
    """What the controller must have said between two looks: facts in the words of its log."""
    told: list[tuple[str, str | None, dict[str, Any]]] = []
    told += [("registered", None, {"broker": node}) for node in after.running if node not in before.running]
    told += [("fenced", None, {"broker": node}) for node in before.running if node not in after.running]
    for name, state in after.partitions.items():
        was = before.partitions.get(name)
        if was is None or (was.leader, was.leader_epoch) != (state.leader, state.leader_epoch):
            told.append(("election", name, _facts(state)))
        elif was != state:
            told.append(("isr", name, _facts(state)))
    return told


def _facts(state: PartitionView) -> dict[str, Any]:
    return {
        "leader": _NOBODY if state.leader is None else state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
        "replicas": list(state.replicas),
        "elr": list(state.elr),
    }
