"""The lists of faults and of fault families, and how stories are called. A new one is one file, and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from nemesis import (
    clock,
    controller,
    corrupt,
    cut,
    full_disk,
    kill,
    move,
    pause,
    power,
    reassign,
    restart,
    slow_disk,
    slow_link,
    stop,
    wipe,
)
from nemesis.cluster import Capability
from nemesis.story import Scene, Story, Timings

#: Every kind of fault that can stand in a schedule.
AnyFault = (
    kill.Kill
    | pause.Pause
    | cut.Partition
    | power.PowerLoss
    | stop.Stop
    | clock.ClockStep
    | slow_link.SlowLink
    | move.MoveLeader
    | reassign.Reassign
    | wipe.WipeDisk
    | corrupt.CorruptRecord
    | full_disk.FullDisk
    | slow_disk.SlowDisk
)

#: The stories of each family; the first is its signature, with which every schedule of the family begins.
FAMILIES: Final[Mapping[str, tuple[Story, ...]]] = {
    "kill": kill.STORIES,
    "pause": pause.STORIES,
    "partition": cut.STORIES,
    "restart": restart.STORIES,
    "power": power.STORIES,
    "rolling": stop.STORIES,
    "clock": clock.STORIES,
    "slow-link": slow_link.STORIES,
    "move": move.STORIES,
    "reassign": reassign.STORIES,
    "wipe": wipe.STORIES,
    "corrupt": corrupt.STORIES,
    "full-disk": full_disk.STORIES,
    "slow-disk": slow_disk.STORIES,
    "controller": controller.STORIES,
}

#: Stories that chance never draws: a plan asks for them by name. They change no schedule that was drawn before them.
SCRIPTED: Final[Mapping[str, tuple[Story, ...]]] = {
    "kill": kill.SCRIPTED,
    "partition": cut.SCRIPTED,
    "power": power.SCRIPTED,
    "wipe": wipe.SCRIPTED,
}


def stories_of(family: str) -> tuple[Story, ...]:
    """Every story of a family, those included that are told by name only."""
    return FAMILIES[family] + SCRIPTED.get(family, ())


#: Any scene will do to see which faults a story has: chance decides whom they hit and when.
_ANY_SCENE: Final = Scene(
    draw=lambda _label, _bound: 0, timings=Timings(), fault_ms_min=0, fault_ms_max=0, brokers=3, partitions=1
)


@cache
def needs_of(family: str) -> frozenset[Capability]:
    """The parts of a target that the faults of a family use."""
    parts = (part for story in stories_of(family) for part in story.parts(_ANY_SCENE))
    return frozenset(need for part in parts for need in part.fault.needs)


def told_by(word: str, families: Iterable[str]) -> list[tuple[str, Story]]:
    """The stories of ``families``, each with its family, that ``word`` means: a number, or ``family/name``."""
    return [(family, story) for family in families for story in stories_of(family) if word in names_of(family, story)]


def names_of(family: str, story: Story) -> tuple[str, ...]:
    """What a plan may call a story."""
    return tuple(filter(None, (story.number, f"{family}/{story.name}")))
