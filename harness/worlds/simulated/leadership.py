"""Planned moves of leadership in virtual time: an operator asks the controller's process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.reference.core.controller import Controller
from harness.reference.core.messages import MoveLeader
from harness.reference.core.types import TopicPartition
from harness.worlds.simulated.nodes import Process
from nemesis.cluster import CLIENTS, Evidence

#: The node from which the harness asks for things; clients proper have larger numbers.
ADMINISTRATOR: Final = CLIENTS


class SimulatedLeadership:
    """Implements :class:`nemesis.cluster.Leadership`. ``controller`` gives the newest process and its core."""

    def __init__(self, controller: Callable[[], tuple[Process, Controller]]) -> None:
        self._controller = controller

    def move_leader(self, partition: str, broker: int) -> Evidence:
        """See :meth:`nemesis.cluster.Leadership.move_leader`."""
        process, core = self._controller()
        topic, _, number = partition.rpartition("-")
        if not process.alive or process.frozen:
            return {"refused": "the controller does not run"}
        process.receive(ADMINISTRATOR, MoveLeader(0, topic, int(number), broker))
        state = core.image.partition(TopicPartition(topic, int(number)))
        if state is None:
            return {"refused": f"there is no {partition}"}
        stands: dict[str, object] = {"leader": state.leader, "leader_epoch": state.leader_epoch}
        if state.leader != broker:
            stands["refused"] = f"broker {broker} is no live member of the ISR {list(state.isr)}"
        return stands
