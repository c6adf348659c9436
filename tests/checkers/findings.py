"""Findings for tests that do not care about most of what stands in them."""

from __future__ import annotations

from typing import Any, get_origin

import msgspec

from checkers.anomalies import ANOMALIES, Finding
from checkers.columns.log_rows import EventPlace

_EMPTY: dict[Any, Any] = {int: 0, str: "", list: [], dict: {}, EventPlace: {"op_pos": 0}}


def a_finding(anomaly: str, **fields: Any) -> Finding:
    """One of ``anomaly`` with these fields, as far as it has them, and nothing in the others that it needs."""
    kind = ANOMALIES[anomaly].finding
    needed = {field.encode_name: field.type for field in msgspec.structs.fields(kind) if field.required}
    blank = {name: _EMPTY.get(get_origin(of_type) or of_type) for name, of_type in needed.items()}
    return msgspec.convert({**blank, **fields}, kind)
