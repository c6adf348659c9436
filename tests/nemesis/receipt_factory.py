"""A receipt as a player writes one, of a broker that was killed; tests say only what they are about."""

from __future__ import annotations

from typing import Any

from nemesis.receipts import Receipt


def a_receipt(**changes: Any) -> Receipt:
    """A kill of broker 0 that took effect, from second 1 to second 2, with ``changes``."""
    usual: dict[str, Any] = {
        "mark": "end",
        "sequence": 0,
        "group": 0,
        "family": "kill",
        "story": "leader-ahead",
        "fault": "kill",
        "role": "the leader of partition 0",
        "targets": (0,),
        "begun_us": 1_000_000,
        "ended_us": 2_000_000,
        "took_effect": True,
    }
    return Receipt(**usual | changes)
