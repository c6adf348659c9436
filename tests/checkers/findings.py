"""Findings for tests that do not care about most of what stands in them."""

from __future__ import annotations

from typing import Any, Final, get_origin

import msgspec

from checkers.anomalies import ANOMALIES, Finding
from checkers.columns.log_rows import EventPlace
from checkers.verdicts.promises import promise
from checkers.verdicts.verdict import Verdict
from workloads import Settings

_EMPTY: dict[Any, Any] = {int: 0, float: 0.0, str: "", list: [], dict: {}, EventPlace: {"op_pos": 0}}


#: The strongest settings, under no fault: a promise permits here what it permits everywhere.
_STRONGEST: Final = promise(Settings(min_insync_replicas=2), ())


def forbidden(verdict: Verdict) -> list[str]:
    """The anomalies of a verdict that no promise permits without a fault."""
    return [name for name in verdict.counts if not _STRONGEST.about(name).permitted]


def a_finding(anomaly: str, **fields: Any) -> Finding:
    """One of ``anomaly`` with these fields, as far as it has them, and nothing in the others that it needs."""
    kind = ANOMALIES[anomaly].finding
    needed = {field.encode_name: field.type for field in msgspec.structs.fields(kind) if field.required}
    blank = {name: _EMPTY.get(get_origin(of_type) or of_type) for name, of_type in needed.items()}
    return msgspec.convert({**blank, **fields}, kind)
