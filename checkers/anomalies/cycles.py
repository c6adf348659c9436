"""Anomalies that are cycles of dependencies between operations, and a history that has no dependency at all.

:mod:`checkers.cycles` finds them. Dependencies: *ww* from the writer of a value to the writer of the next value of the
log partition (only where ww_deps is on); *wr* from the writer of a value to every operation that read it; *realtime*
from an acknowledged operation to every one begun later. A process does one thing after the other, so its order is part
of real time, and there is no form with a process's order alone.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from checkers.anomalies.anomaly import Allowed, Anomaly, Finding
from checkers.columns.log_rows import EventPlace

_FINDINGS: Final = "Findings, a shortest cycle for each place where there is one: cycle, steps, type."

G0: Final = "G0"
G1C: Final = "G1c"
REALTIME: Final = "-realtime"
#: No operation depends on another, so there was nothing to order and the silence of all checks proves nothing.
EMPTY_GRAPH: Final = "empty-transaction-graph"


class CycleStep(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A step of a cycle: from the ``value`` of ``key`` to the operation that read it or that wrote ``next_value``; or,
    in real time, from the end of operation ``a`` to the begin of operation ``b``.
    """

    type: str
    a: EventPlace | None = msgspec.field(name="a'", default=None)
    b: EventPlace | None = None
    key: str | int | None = None
    value: Any = UNSET
    a_mop_index: int | None = msgspec.field(name="a-mop-index", default=None)
    b_mop_index: int | None = msgspec.field(name="b-mop-index", default=None)
    next_value: Any | UnsetType = msgspec.field(name="value'", default=UNSET)


class Cycle(Finding, kw_only=True):
    """A cycle: its operations, the first again at the end, and the step from each to the next."""

    cycle: list[EventPlace]
    steps: list[CycleStep]
    type: str


class EmptyGraph(Finding, kw_only=True):
    """Counts of what was sent and read in a history without dependencies."""

    sends: int
    reads: int


CYCLES: Final = (
    Anomaly.documented(
        G0,
        f"""``G0``: a cycle of nothing but overwrites (ww).

        Example: one operation sends ``x=1 y=1``, one sends ``x=2 y=2``; in ``x`` the first comes first, in ``y`` the
        second. Kafka does not isolate writers, so this makes no history invalid.

        {_FINDINGS}
        """,
        Cycle,
        allowed=Allowed.ALWAYS,
    ),
    Anomaly.documented(
        G0 + REALTIME,
        f"""``G0-realtime``: a path of overwrites to an operation that was acknowledged before the path's first began.

        Example: a send of ``a`` is begun after a send of ``b`` was acknowledged, and ``a`` is before ``b`` in the log.

        {_FINDINGS}
        """,
        Cycle,
        allowed=Allowed.ALWAYS,
    ),
    Anomaly.documented(
        G1C,
        f"""``G1c``: a cycle of dependencies with at least one read of what another operation wrote (wr).

        Example: a transaction sends ``a`` and reads ``b``, another one sends ``b`` and reads ``a``: each must have come
        after the other.

        False alarms avoided: offsets at which several values were seen say nothing about order.

        {_FINDINGS}
        """,
        Cycle,
        allowed=Allowed.ORDERED_BY_OVERWRITES,
    ),
    Anomaly.documented(
        G1C + REALTIME,
        f"""``G1c-realtime``: as ``G1c``, but one step says that an operation was acknowledged before the next began.

        Example: a poll returned a value before the send of that value was begun.

        False alarms avoided: an uncertain operation may happen at any time, so none of its steps is in real time.

        {_FINDINGS}
        """,
        Cycle,
        allowed=Allowed.ORDERED_BY_OVERWRITES,
    ),
    Anomaly.documented(
        EMPTY_GRAPH,
        """``empty-transaction-graph``: no operation depends on another, so that nothing could be ordered.

        Example: three sends are acknowledged and no client polls. The silence of all checks proves nothing then, and
        the reference tool calls such a history not valid. Only in histories of other tools: ours count what was
        exercised.

        Findings, at most one: sends, reads (how many).
        """,
        EmptyGraph,
    ),
)
