"""What the core asks its surroundings to do, in the order in which it asks.

The simulator and the server interpret these three and nothing else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.replica.messages import Message
from harness.replica.types import NodeId, TopicPartition


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
    """A fact for the story: nothing depends on it.

    ``what`` is one of: ``leader`` (this node began to lead), ``follower``, ``isr`` (committed ISR as this leader sees
    it), ``high-watermark``, ``append``, ``acknowledged``, ``truncated``, ``election`` (controller), ``fenced`` and
    ``registered`` (controller), ``recovered``. ``facts`` holds the numbers that belong to it.
    """

    what: str
    partition: TopicPartition | None
    facts: dict[str, Any]


Effect = Send | Arm | Observed
