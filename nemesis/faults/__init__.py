"""Every kind of fault, planned or not. A new one is a file in this folder, and one line here.

The names that this door re-exports are the registry: :func:`fault_kind` finds the facts about a kind by its name in
receipts, and what can be scheduled is :data:`AnyFault`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeAlias

from nemesis.faults.administration import MoveLeader as MoveLeader
from nemesis.faults.administration import Reassign as Reassign
from nemesis.faults.client_crash import ClientCrash as ClientCrash
from nemesis.faults.clock_step import ClockStep as ClockStep
from nemesis.faults.disks import CorruptRecord as CorruptRecord
from nemesis.faults.disks import FullDisk as FullDisk
from nemesis.faults.disks import SlowDisk as SlowDisk
from nemesis.faults.disks import WipeDisk as WipeDisk
from nemesis.faults.fault import Aim as Aim
from nemesis.faults.fault import Fault as Fault
from nemesis.faults.fault import FaultKind as FaultKind
from nemesis.faults.fault import listed as listed
from nemesis.faults.links import DropMessages as DropMessages
from nemesis.faults.links import HoldMessages as HoldMessages
from nemesis.faults.links import Partition as Partition
from nemesis.faults.links import SlowLink as SlowLink
from nemesis.faults.processes import Kill as Kill
from nemesis.faults.processes import Pause as Pause
from nemesis.faults.processes import PowerLoss as PowerLoss
from nemesis.faults.processes import Stop as Stop
from nemesis.faults.unplanned import Crash as Crash
from nemesis.faults.unplanned import UnexplainedElection as UnexplainedElection

#: Every kind of fault by its name in receipts.
KINDS: Final[Mapping[str, type[FaultKind]]] = {
    one.kind: one for one in [*globals().values()] if isinstance(one, type) and issubclass(one, FaultKind) and one.kind
}
#: Those that can be in a schedule.
FAULTS: Final[tuple[type[Fault], ...]] = tuple(kind for kind in KINDS.values() if issubclass(kind, Fault))

if TYPE_CHECKING:
    AnyFault: TypeAlias = Fault
else:
    #: What a schedule holds, so that one can be read again.
    AnyFault = reduce(or_, FAULTS)


def fault_kind(kind: str) -> type[FaultKind]:
    """The facts about a kind of fault; one that this version does not know has the defaults."""
    return KINDS.get(kind, FaultKind)
