"""One run, as data, and the names that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from harness.plan.worlds import AnyWorld
from nemesis.plan import FaultPlan
from workloads import Settings, WorkloadPlan

#: The settings that every cell names, and how they are called in its name.
SHORT_NAMES: Final[Mapping[str, str]] = {
    "acks": "acks",
    "min.insync.replicas": "isr",
    "unclean.leader.election.enable": "unclean",
}


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run: a plan with one choice of settings, one fault family and one seed. Written as ``run.json``.

    ``cell`` names settings and family within the campaign (``acks=all,isr=2,unclean=false/kill``); ``settings`` is
    complete and under Kafka's names.
    """

    world: AnyWorld
    cell: str
    family: str
    settings: dict[str, Any]
    workload: WorkloadPlan
    faults: FaultPlan
    seed: int
    brokers: int = 3

    def chosen(self) -> Settings:
        """The settings as an object."""
        return Settings.from_mapping(self.settings)

    def directory(self) -> PurePosixPath:
        """Where the run leaves its files, relative to its campaign; unique within the campaign."""
        return PurePosixPath("runs", self.world.name, self.cell, str(self.seed))


def settings_label(settings: Mapping[str, object], axes: Iterable[str] = ()) -> str:
    """``acks=all,isr=2,unclean=false``, then every other axis of the matrix under its full name."""
    shown = dict.fromkeys([*SHORT_NAMES, *axes])
    return ",".join(f"{SHORT_NAMES.get(name, name)}={_shown(settings[name])}" for name in shown)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
