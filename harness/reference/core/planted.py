"""Planted bugs: rules of the core in a wrong form, one at a time, to find out whether the checkers would notice.

This is the only place where a rule can be broken on purpose. A bug is a subclass of the part that has the rule, with
the one method that does it wrong; :func:`with_bug` gives the broker that class instead of the right one when it starts.
So the rules themselves know nothing of it, and nothing is asked on their way. The switch is the setting ``planted.bug``
of the reference broker; Apache Kafka's worlds refuse it like every rule that their release does not have.

A new one is a class here, a line in ``_WRONG`` and a word in :data:`PlantedBug` and in ``workloads.settings``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from harness.reference.core.messages import RecordBatch
from harness.reference.core.partition import Appended, Replica
from harness.reference.core.request_handler import ParkedProduce, RequestHandler
from harness.reference.core.types import ErrorCode, NodeId, PlantedBug

Part = TypeVar("Part")


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


_WRONG: Final[Mapping[tuple[PlantedBug, type], type]] = {
    ("acknowledge-after-append", RequestHandler): _AcknowledgesAfterAppend,
    ("shrink-before-acceptance", Replica): _ShrinksBeforeAcceptance,
    ("commit-largest-log-end", Replica): _CommitsLargestLogEnd,
}


def with_bug(part: type[Part], bug: PlantedBug) -> type[Part]:
    """The class that takes the place of ``part`` while ``bug`` is planted: ``part`` itself if it is not about it."""
    return _WRONG.get((bug, part), part)
