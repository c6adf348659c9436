"""How much may be broken, and when: the budget of a run's faults."""

from __future__ import annotations

import msgspec


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faults of one run.

    ``families`` name the kinds from which a schedule is drawn ("kill", "pause", "partition"; later ones are one file and one
    line more). ``count`` faults are drawn, each lasting between ``fault_ms_min`` and ``fault_ms_max``; between groups of
    overlapping faults everything is healed for at least ``healed_ms_min``. ``dead_brokers_max`` is the budget: how many brokers
    may be dead or frozen at one time.
    """

    families: tuple[str, ...] = ("kill",)
    count: int = 4
    fault_ms_min: int = 500
    fault_ms_max: int = 3_000
    healed_ms_min: int = 1_000
    dead_brokers_max: int = 2
