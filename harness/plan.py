"""Plans: the one file that says what to run, and the runs that follow from it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

WorldName = Literal["simulated", "processes"]


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run: a plan with one choice of settings, one fault family and one seed. Written as ``run.json``.

    ``cell`` names settings and family within the campaign (``acks=all,isr=2,unclean=false/kill``); ``settings`` is complete
    and under Kafka's names; ``host`` is where nodes live in the processes world.
    """

    world: WorldName
    cell: str
    family: str
    settings: dict[str, Any]
    workload: WorkloadPlan
    faults: FaultPlan
    seed: int
    brokers: int = 3
    host: Literal["loopback", "namespaces"] = "loopback"

    def chosen(self) -> Settings:
        """The settings as an object."""
        return Settings.from_mapping(self.settings)
