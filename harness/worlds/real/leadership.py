"""Planned changes of leaders and replicas on real processes: asked of the cluster, and confirmed by its controller."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from harness.errors import HostError
from nemesis.cluster import Evidence, PartitionView

#: A controller decides in milliseconds; whoever looks at it looks a few times a second at least.
CONFIRM_LIMIT_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.01


class Operator(Protocol):
    """Asks a cluster for changes. An answer is empty where it was granted, else it says why not.

    Raises:
        HostError: nobody answered; it may have been granted all the same.
    """

    def move_leader(self, partition: str, broker: int, replicas: Sequence[int]) -> str:
        """Let ``broker``, the first of the partition's ``replicas``, lead; where they have an order, in this one."""


class ReassigningOperator(Operator, Protocol):
    """Asks for changes of who replicates, too. What is true of :class:`Operator` is true here."""

    def reassign(self, partition: str, replicas: Sequence[int]) -> str:
        """Let these brokers replicate."""


class ConfirmedLeadership:
    """Implements :class:`nemesis.cluster.Leadership`. ``partitions`` is the controller's word at the moment.

    What an operator was granted is not yet evidence; what the controller says afterwards is. A request that nobody
    answered may still have been granted, so the controller is looked at then too; if it says nothing of it within the
    limit, that is ``unconfirmed``.
    """

    def __init__(self, operator: Operator, partitions: Callable[[], Mapping[str, PartitionView]]) -> None:
        self._operator = operator
        self._partitions = partitions

    def move_leader(self, partition: str, broker: int) -> Evidence:
        """See :meth:`nemesis.cluster.Leadership.move_leader`."""
        before = self._partitions().get(partition)
        if before is None:
            return {"refused": f"the controller knows no {partition}"}
        if broker not in before.replicas:
            return {"refused": f"broker {broker} has no replica of {partition}"}

        def moved(state: PartitionView) -> bool:
            return state.leader == broker

        order = _preferring(broker, before)
        why_not, after = self._ask(partition, moved, lambda: self._operator.move_leader(partition, broker, order))
        state = {"leader": after.leader, "leader_epoch": after.leader_epoch}
        return state if moved(after) else {**(why_not or {"unconfirmed": "the leader stayed"}), **state}

    def _ask(
        self, partition: str, wanted: Callable[[PartitionView], bool], request: Callable[[], str]
    ) -> tuple[Evidence, PartitionView]:
        """Why not, as evidence says it, and how the partition is once it is as wanted or the limit has passed."""
        why_not: Evidence = {}
        limit_s = CONFIRM_LIMIT_S
        try:
            if refused := request():
                why_not, limit_s = {"refused": refused}, 0.0
        except HostError as error:
            why_not = {"unconfirmed": str(error)}
        return why_not, self._seen(partition, wanted, limit_s)

    def _seen(self, partition: str, wanted: Callable[[PartitionView], bool], limit_s: float) -> PartitionView:
        deadline = time.monotonic() + limit_s
        while True:
            state = self._partitions().get(partition, _UNKNOWN)
            if wanted(state) or time.monotonic() >= deadline:
                return state
            time.sleep(_LOOK_EVERY_S)


class ConfirmedReassignment(ConfirmedLeadership):
    """Implements :class:`nemesis.cluster.Reassignment` besides."""

    def __init__(self, operator: ReassigningOperator, partitions: Callable[[], Mapping[str, PartitionView]]) -> None:
        super().__init__(operator, partitions)
        self._reassigning = operator

    def reassign(self, partition: str, replicas: Sequence[int]) -> Evidence:
        """See :meth:`nemesis.cluster.Reassignment.reassign`."""
        wanted = tuple(replicas)

        def placed(state: PartitionView) -> bool:
            return state.replicas[: len(wanted)] == wanted

        why_not, after = self._ask(partition, placed, lambda: self._reassigning.reassign(partition, wanted))
        state = {"replicas": list(after.replicas), "leader": after.leader, "leader_epoch": after.leader_epoch}
        return state if placed(after) else {**(why_not or {"unconfirmed": "the replicas stayed"}), **state}


def _preferring(broker: int, state: PartitionView) -> tuple[int, ...]:
    """The replicas, ``broker`` first, and last whoever leads now: the next crash must not bring it back (S39)."""
    others = [node for node in state.replicas if node not in {broker, state.leader}]
    last = [node for node in state.replicas if node == state.leader != broker]
    return (broker, *others, *last)


_UNKNOWN: Final = PartitionView(leader=None, leader_epoch=-1, isr=(), replicas=())
