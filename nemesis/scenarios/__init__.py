"""The families of scenarios from which schedules are drawn. A new one is a file in this folder, and one line here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from nemesis.cluster import Capability
from nemesis.faults import FAULTS, KINDS, fault_kind
from nemesis.faults import Draw as Draw
from nemesis.scenarios.absence import AWAY, AWAY_WIPED
from nemesis.scenarios.administration import MOVE, REASSIGN
from nemesis.scenarios.brokers import KILL, OUTAGE, PAUSE, POWER, RESTART, ROLLING
from nemesis.scenarios.clock import CLOCK
from nemesis.scenarios.connections import CONNECTIONS
from nemesis.scenarios.controller import CONTROLLERS
from nemesis.scenarios.coordinator import COORDINATORS, TRANSACTION_COORDINATORS
from nemesis.scenarios.disks import CORRUPT, DIRECTORY, FULL_DISK, LYING_DISK, SLOW_DISK, WIPE
from nemesis.scenarios.instances import INSTANCE_CUT, INSTANCE_FREEZE, INSTANCE_KILL, INSTANCE_SCALE, INSTANCE_STOP
from nemesis.scenarios.links import LOSSY_LINK, PARTITION, SLOW_LINK
from nemesis.scenarios.racks import RACK
from nemesis.scenarios.scene import Family, Part, Scenario, Scene, Timings
from nemesis.scenarios.shared import family_of
from nemesis.scenarios.storm import STORM
from nemesis.scenarios.upgrade import UPGRADE

__all__ = [
    "FAMILIES",
    "SCRIPTED",
    "Draw",
    "Family",
    "Part",
    "Scenario",
    "Scene",
    "Timings",
    "is_strike",
    "needs_of",
    "preparation_of",
    "scenarios_named",
    "strikes_of",
]

_SCRIPTS: Final = (
    KILL, PAUSE, PARTITION, RESTART, POWER, ROLLING, CLOCK, SLOW_LINK, MOVE, REASSIGN, WIPE, CORRUPT, FULL_DISK,
    SLOW_DISK, LYING_DISK, CONTROLLERS, RACK, DIRECTORY, OUTAGE, COORDINATORS, AWAY, AWAY_WIPED,
    TRANSACTION_COORDINATORS, CONNECTIONS, LOSSY_LINK, STORM, UPGRADE,
    INSTANCE_KILL, INSTANCE_STOP, INSTANCE_FREEZE, INSTANCE_CUT, INSTANCE_SCALE,
)  # fmt: skip


#: A run that performs a scripted story has its number for a family: one of the project (S40) or one of your own (M1).
SCRIPTED: Final = re.compile(r"[A-Z]\d{1,3}")
#: Every family by its name, in the order in which people are shown them.
FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family for family in (*_SCRIPTS, *(family_of(fault) for fault in FAULTS if fault.hits))
}


@cache
def needs_of(family: str) -> frozenset[Capability]:
    """The parts of a target that a family's faults use."""
    return FAMILIES[family].needs()


@cache
def strikes_of(family: str) -> frozenset[str]:
    """The kinds of fault that a family is about; nothing of a family that this version does not know.

    A scripted story is about whatever it does.
    """
    if SCRIPTED.fullmatch(family):
        return frozenset(KINDS)
    return FAMILIES[family].strikes() if family in FAMILIES else frozenset()


def is_strike(family: str, kind: str) -> bool:
    """Tell if a family is about faults of this kind: one of :func:`strikes_of`, or a form of one.

    To replace a node is a form of upgrading it.
    """
    return any(issubclass(fault_kind(kind), fault_kind(strike)) for strike in strikes_of(family))


def preparation_of(family: str, scenario: str) -> str:
    """The reason for which a scenario begins with a cut of links; empty where it has none, or is not known any more."""
    scenarios = FAMILIES[family].every_scenario if family in FAMILIES else ()
    return next((other.preparation for other in scenarios if other.name == scenario), "")


def scenarios_named(word: str, families: Iterable[str]) -> list[tuple[str, Scenario]]:
    """The scenarios of ``families``, each with its family, that ``word`` means: a number, or ``family/name``."""
    return [
        (name, scenario)
        for name in families
        for scenario in FAMILIES[name].every_scenario
        if word in FAMILIES[name].names(scenario)
    ]
