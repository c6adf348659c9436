"""Planned changes of leaders and replicas on real processes: asked of the cluster, and confirmed by its controller."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.clients import without_secrets
from harness.errors import HostError
from nemesis.cluster import PartitionView
from nemesis.evidence import Evidence

#: A controller decides in milliseconds; whoever looks at it looks a few times a second at least.
CONFIRM_LIMIT_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.01


#: Asks that a broker, the first of a partition's replicas, may lead; or that brokers may replicate it. Replicas are in
#: the order of preference, where they have one. The answer is empty where it was granted, else it says why not. A
#: HostError: nobody answered; it may have been granted all the same.
Move = Callable[[str, int, Sequence[int]], str]
Reassign = Callable[[str, Sequence[int]], str]


class ConfirmedLeadership:
    """Implements :class:`nemesis.cluster.Leadership`. ``partitions`` is the controller's word at the moment.

    What was granted is not yet evidence; what the controller says afterwards is. A request that nobody
    answered may still have been granted, so the controller is looked at then too; if it says nothing of it within the
    limit, that is ``unconfirmed``.
    """

    def __init__(self, move: Move, partitions: Callable[[], Mapping[str, PartitionView]]) -> None:
        self._move = move
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
        why_not, after = self._ask(partition, moved, lambda: self._move(partition, broker, order))
        state: Evidence = {"leader": after.leader, "leader_epoch": after.leader_epoch}
        return state if moved(after) else {**(why_not or Evidence(unconfirmed="the leader stayed")), **state}

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
            why_not = {"unconfirmed": without_secrets(str(error))}
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

    def __init__(self, move: Move, reassign: Reassign, partitions: Callable[[], Mapping[str, PartitionView]]) -> None:
        super().__init__(move, partitions)
        self._reassign = reassign

    def reassign(self, partition: str, replicas: Sequence[int]) -> Evidence:
        """See :meth:`nemesis.cluster.Reassignment.reassign`."""
        wanted = tuple(replicas)

        def placed(state: PartitionView) -> bool:
            return state.replicas[: len(wanted)] == wanted

        why_not, after = self._ask(partition, placed, lambda: self._reassign(partition, wanted))
        state: Evidence = {"replicas": list(after.replicas), "leader": after.leader, "leader_epoch": after.leader_epoch}
        return state if placed(after) else {**(why_not or Evidence(unconfirmed="the replicas stayed")), **state}


def _preferring(broker: int, state: PartitionView) -> tuple[int, ...]:
    """The replicas, ``broker`` first, and last whoever leads now: the next crash must not bring it back (S39)."""
    others = [node for node in state.replicas if node not in {broker, state.leader}]
    last = [node for node in state.replicas if node == state.leader != broker]
    return (broker, *others, *last)


_UNKNOWN: Final = PartitionView(leader=None, leader_epoch=-1, isr=(), replicas=())
