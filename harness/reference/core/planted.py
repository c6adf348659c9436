"""Planted bugs: rules of the core in a wrong form, one at a time, to find out whether the checkers would notice.

This is the only place where a rule can be broken on purpose. A bug is a subclass of the part that has the rule, with
the method that does it wrong; :func:`with_bug` gives that class instead of the right one to the node that starts.
So the rules themselves know nothing of it, and nothing is asked on their way. The switch is the setting ``planted.bug``
of the reference broker; Apache Kafka's worlds refuse it like every rule that their release does not have.

A new one is a class here, a line in ``_WRONG`` and a word in :data:`workloads.settings.PlantedBug`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from harness.reference.core.controller import Controller
from harness.reference.core.messages import RecordBatch
from harness.reference.core.partition import Appended, Replica
from harness.reference.core.request_handler import ParkedProduce, RequestHandler
from harness.reference.core.types import NONE, ErrorCode, NodeId, PartitionState

Part = TypeVar("Part")
#: Of flush.messages: no number of records is flushed.
NEVER: Final = 2**63 - 1


class _AcknowledgesAfterAppend(RequestHandler):
    """acks=all is answered as soon as the leader has the record (rule 2). The story of S01 loses it."""

    def _answer_or_park(self, produce: ParkedProduce, replica: Replica, timeout_ms: int) -> None:  # noqa: ARG002
        self._acknowledge(produce, replica, ErrorCode.NONE)


class _ShrinksBeforeAcceptance(Replica):
    """A leader stops to wait for a follower once it has proposed its removal (rule 10).

    A leader that is cut off shrinks its way to an acknowledgement, while the controller elects the follower: S04 with
    min.insync.replicas=1.
    """

    def _propose(self, isr: tuple[NodeId, ...]) -> None:
        super()._propose(isr)
        self.maximal_isr = isr


class _CommitsLargestLogEnd(Replica):
    """The high watermark is the largest log end of the ISR instead of the smallest (rule 7).

    What only the leader has is acknowledged and read: S01.
    """

    def append(self, batch: RecordBatch, acks: int) -> Appended:
        appended = super().append(batch, acks)
        self.advance_high_watermark()
        return appended

    def advance_high_watermark(self) -> bool:
        moved = self.leading and self.log.end_offset > self.high_watermark
        if moved:
            self.high_watermark = self.log.end_offset
        return moved


class _IgnoresBrokerEpochs(Replica):
    """A leader takes every fetch for one of the follower's present incarnation, and names no epochs (rules 11, 20).

    A late fetch of an incarnation whose disk is gone takes its empty successor into the ISR: S19.
    """

    def record_fetch(self, node: NodeId, offset: int, broker_epoch: int) -> ErrorCode:  # noqa: ARG002
        return super().record_fetch(node, offset, NONE)


class _KeepsFencedInIsr(Controller):
    """A broker that is fenced or leaves stays in the ISR (rule 13), and may lead when it is back: S36."""

    def _without(self, state: PartitionState, node: NodeId) -> PartitionState:  # noqa: ARG002
        return state


class _FlushesOnLeaderOnly(Replica):
    """Followers answer for records that they have not flushed (rule 24): S11 and S36 with flush.messages=1."""

    def replicate(self, batches: tuple[RecordBatch, ...], leader_high_watermark: int) -> None:
        flush_messages, self._flush_messages = self._flush_messages, NEVER
        super().replicate(batches, leader_high_watermark)
        self._flush_messages = flush_messages


_WRONG: Final[Mapping[tuple[str, type], type]] = {
    ("acknowledge-after-append", RequestHandler): _AcknowledgesAfterAppend,
    ("shrink-before-acceptance", Replica): _ShrinksBeforeAcceptance,
    ("commit-largest-log-end", Replica): _CommitsLargestLogEnd,
    ("ignore-broker-epoch", Replica): _IgnoresBrokerEpochs,
    ("keep-fenced-in-isr", Controller): _KeepsFencedInIsr,
    ("flush-on-leader-only", Replica): _FlushesOnLeaderOnly,
}


def with_bug(part: type[Part], bug: str) -> type[Part]:
    """The class that takes the place of ``part`` while ``bug`` is planted: ``part`` itself if it is not about it."""
    return _WRONG.get((bug, part), part)
