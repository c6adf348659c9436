"""What happens to a cluster without a schedule: kinds of fault that receipts name and nobody draws."""

from __future__ import annotations

from typing import ClassVar

from nemesis.faults.fault import FaultKind


class Crash(FaultKind):
    """A node ended by itself. As a kill it takes the node's memory and leaves its disk, whatever caused it."""

    kind: ClassVar[str] = "died"
    ends_process: ClassVar[bool] = True


class UnexplainedElection(FaultKind):
    """A leader changed that no fault explains: a long garbage collection, or somebody else at the cluster."""

    kind: ClassVar[str] = "unasked"
