"""Receipts of faults as tests need them: what is not told is that of a kill of the leader, which took effect."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nemesis.receipts import Receipt

PLAIN: Final[dict[str, Any]] = {
    "mark": "end",
    "sequence": 0,
    "group": 0,
    "family": "f",
    "story": "s",
    "fault": "kill",
    "role": "leader",
    "took_effect": True,
}


def a_receipt(**fields: Any) -> Receipt:
    """A receipt as it is read from the JSON of a FAULT event."""
    return msgspec.convert(PLAIN | fields, Receipt)
