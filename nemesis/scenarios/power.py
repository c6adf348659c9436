"""Loss of power: what replication does not save, only flushing does."""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import PowerLoss
from nemesis.roles import RoleKind
from nemesis.scenarios.scene import Family, Story
from nemesis.scenarios.shapes import APART_MS, everybody, hit_one, last_in_sync, leader_ahead, two_overlapping

#: The first makes acks=all lose without flush.messages=1 whenever it fits: the last in-sync replica forgets.
POWER: Final = Family(
    "power",
    (
        Story("last-in-sync", partial(last_in_sync, strike=PowerLoss), number="S09"),
        Story("leader-ahead", partial(leader_ahead, strike=PowerLoss)),
        Story("everybody", partial(everybody, strike=PowerLoss)),
        Story("two-overlapping", partial(two_overlapping, strike=PowerLoss)),
        # It fetches again what it lost.
        Story("follower", partial(hit_one, strike=PowerLoss, kind=RoleKind.FOLLOWER), number="S10"),
    ),
    scripted=(Story("everybody-one-by-one", partial(everybody, strike=PowerLoss, apart_ms=APART_MS), number="S11"),),
)
