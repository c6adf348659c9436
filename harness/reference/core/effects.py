"""What the core asks its surroundings to do, in the order in which it asks.

The simulator and the server interpret these three and nothing else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.reference.core.messages import Message
from harness.reference.core.types import NodeId, TopicPartition


class Timer(msgspec.Struct, frozen=True, gc=False):
    """A reminder. The core recognises its own by ``name`` and ``subject``; a late or needless one does no harm."""

    name: str
    subject: Any = None


class Send(msgspec.Struct, frozen=True, gc=False):
    """Deliver ``message`` to ``target`` (broker, controller or client), maybe never."""

    target: NodeId
    message: Message


class Arm(msgspec.Struct, frozen=True, gc=False):
    """Call ``on_timer`` with ``timer`` at ``at_us``. Timers are never cancelled."""

    at_us: int
    timer: Timer


class Observed(msgspec.Struct, frozen=True, gc=False):
    """A fact for the story: nothing depends on it. ``facts`` by ``what``:

    * ``recovered``: a replica was made on a log that was there: end_offset, high_watermark
    * ``leader``: this node began to lead: leader_epoch, end_offset, isr;  ``follower``: leader, leader_epoch
    * ``isr``: the committed ISR as this leader sees it: isr, leader_epoch, partition_epoch
    * ``append``, on leader and follower: base_offset, count, leader_epoch
    * ``high-watermark``, on leader and follower: offset
    * ``acknowledged``: a produce was answered: base_offset, next_offset, acks, leader_epoch, isr
    * ``truncated``: the records of [to_offset, from_offset) are gone: from_offset, to_offset, leader_epoch, leader
    * ``election`` (controller): leader, leader_epoch, isr, unclean
    * ``registered``, ``fenced`` (controller, no partition): broker, broker_epoch
    """

    what: str
    partition: TopicPartition | None
    facts: dict[str, Any]


Effect = Send | Arm | Observed
