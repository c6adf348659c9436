"""Racks that fail whole: their power, their machines, their network (rule 26).

Where replicas alternate between racks, a rack takes one copy of each log partition with it. Where an assignment by hand
or a reassignment has put all replicas of one into a rack, its power is everybody's (S11).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Kill, Partition, PowerLoss
from nemesis.roles import RoleKind
from nemesis.scenarios import shared
from nemesis.scenarios.scene import Family
from nemesis.topology import Shape

#: The first makes acks=all lose where all replicas are in one rack, unless every record is flushed.
RACK: Final = Family(
    "rack",
    (
        shared.hit_one("power", PowerLoss, RoleKind.RACK),
        shared.hit_one("kill", Kill, RoleKind.RACK, at_least_ms=lambda timings: timings.fence_ms),
        # Inside the rack all brokers hear each other; none hears the controller or the other racks.
        shared.hit_one(
            "cut",
            partial(Partition, shape=Shape.ISOLATE),
            RoleKind.RACK,
            at_least_ms=lambda timings: timings.fence_ms + shared.SUCCESSOR_MS,
        ),
    ),
    about=(
        "All brokers of one rack lose power, die, or are cut off. The plan needs `racks`, and `dead_brokers_max` as "
        "large as the largest rack."
    ),
)
