"""What the core asks its surroundings to do, in the order in which it asks.

The simulator and the server interpret these three and nothing else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.observations import Fact
from harness.reference.core.messages import Message
from harness.reference.core.types import NodeId


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
    """A fact for the story: nothing depends on it."""

    fact: Fact


Effect = Send | Arm | Observed
