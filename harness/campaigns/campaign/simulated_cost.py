"""The processor time that a run in virtual time costs, from its length and its writes."""

from __future__ import annotations

from typing import Final

from harness.plan import planned_writes
from workloads import WorkloadPlan

#: Seconds of processor time for a second of virtual time of three brokers and five clients, and for a write. With 20
#: writes a second they are 1/345 of the virtual time; 1/327 to 1/379 were seen.
SECOND_COST: Final = 1 / 500
WRITE_COST: Final = 45e-6


def simulated_s(workload: WorkloadPlan) -> float:
    """Estimate the seconds of processor time of one run of ``workload``."""
    return workload.duration_ms / 1000 * SECOND_COST + planned_writes(workload) * WRITE_COST
