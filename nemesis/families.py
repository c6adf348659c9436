"""The lists of faults and of fault families. A new one is one file, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nemesis import cut, kill, pause, power, restart
from nemesis.story import Story

#: Every kind of fault that can stand in a schedule.
AnyFault = kill.Kill | pause.Pause | cut.Partition | power.PowerLoss

#: The stories of each family; the first is its signature, with which every schedule of the family begins.
FAMILIES: Final[Mapping[str, tuple[Story, ...]]] = {
    "kill": kill.STORIES,
    "pause": pause.STORIES,
    "partition": cut.STORIES,
    "restart": restart.STORIES,
    "power": power.STORIES,
}
