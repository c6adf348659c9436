"""Faults without a schedule: kinds that receipts name and no schedule draws."""

from __future__ import annotations

from typing import ClassVar

from nemesis.faults.fault import FaultKind


class Crash(FaultKind):
    """A node ended by itself. As a kill it takes the node's memory and leaves its disk, whatever caused it."""

    kind: ClassVar[str] = "died"
    ends_process: ClassVar[bool] = True


class UnexplainedElection(FaultKind):
    """A leader changed that no fault explains: a long garbage collection, or another hand at the cluster."""

    kind: ClassVar[str] = "unasked"
