"""Asks a real cluster for planned changes of leaders and replicas, and confirms them by its controller."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from harness.ground.errors import HostError
from harness.worlds.clients import without_secrets
from nemesis.cluster import Leadership, PartitionView, Reassignment
from nemesis.evidence import LeaderMoved, Reassigned, WhyNot

#: A controller decides in milliseconds; a view of it is made a few times a second at least.
CONFIRM_LIMIT_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.01


#: Asks that a broker, the first of a partition's replicas, may lead; or that brokers may replicate it. Replicas are in
#: the order of preference, where they have one. The answer is empty if the request was granted, else it says why not. A
#: HostError means that no answer came; the request may still have been granted.
Move = Callable[[str, int, Sequence[int]], str]
Reassign = Callable[[str, Sequence[int]], str]


class ConfirmedLeadership(Leadership):
    """Moves leaders, and reports what the controller says afterwards. ``partitions`` is the controller's view now.

    A granted request is not yet evidence; the controller's word afterwards is. A request without an answer may still
    have been granted, so the controller is asked then too; if it does not confirm the change within the limit, the
    evidence is ``unconfirmed``.
    """

    def __init__(self, move: Move, partitions: Callable[[], Mapping[str, PartitionView]]) -> None:
        self._move = move
        self._partitions = partitions

    @override
    def move_leader(self, partition: str, broker: int) -> LeaderMoved:
        before = self._partitions().get(partition)
        if before is None:
            return {"refused": f"the controller does not know {partition}"}
        if broker not in before.replicas:
            return {"refused": f"broker {broker} has no replica of {partition}"}

        def moved(state: PartitionView) -> bool:
            return state.leader == broker

        order = _preferring(broker, before)
        why_not, after = self._ask(partition, moved, lambda: self._move(partition, broker, order))
        state: LeaderMoved = {"leader": after.leader, "leader_epoch": after.leader_epoch}
        return state if moved(after) else {**(why_not or LeaderMoved(unconfirmed="the leader stayed")), **state}

    def _ask(
        self, partition: str, wanted: Callable[[PartitionView], bool], request: Callable[[], str]
    ) -> tuple[WhyNot, PartitionView]:
        """The refusal, as evidence, and the partition's state once it is as wanted or the limit has passed."""
        why_not: WhyNot = {}
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


class ConfirmedReassignment(ConfirmedLeadership, Reassignment):
    """Moves leaders and reassigns replicas, and reports what the controller says afterwards.

    Replicas that have to leave come last until the others are in sync. So the wanted replicas in front are a change
    that has begun, unless they were in front before: then only the end of the change is evidence.
    """

    def __init__(self, move: Move, reassign: Reassign, partitions: Callable[[], Mapping[str, PartitionView]]) -> None:
        super().__init__(move, partitions)
        self._reassign = reassign

    @override
    def reassign(self, partition: str, replicas: Sequence[int]) -> Reassigned:
        wanted = tuple(replicas)
        before = self._partitions().get(partition, _UNKNOWN)

        def placed(state: PartitionView) -> bool:
            begun = state.replicas[: len(wanted)] == wanted != before.replicas[: len(wanted)]
            return begun or state.replicas == wanted

        why_not, after = self._ask(partition, placed, lambda: self._reassign(partition, wanted))
        state: Reassigned = {
            "replicas": list(after.replicas),
            "leader": after.leader,
            "leader_epoch": after.leader_epoch,
        }
        return state if placed(after) else {**(why_not or Reassigned(unconfirmed="the replicas stayed")), **state}


def _preferring(broker: int, state: PartitionView) -> tuple[int, ...]:
    """The replicas, ``broker`` first, and the present leader last: the next crash must not bring it back (S39)."""
    others = [node for node in state.replicas if node not in {broker, state.leader}]
    last = [node for node in state.replicas if node == state.leader != broker]
    return (broker, *others, *last)


_UNKNOWN: Final = PartitionView(leader=None, leader_epoch=-1, isr=(), replicas=())
