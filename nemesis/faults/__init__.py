"""Every kind of fault, planned or not. A new one is a file in this folder, and one line here.

The names that this door re-exports are the registry: :func:`fault_kind` finds the facts about a kind by its name in
receipts, and what can be scheduled is :data:`AnyFault`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeAlias

from nemesis.faults.away import Away as Away
from nemesis.faults.away import AwayWiped as AwayWiped
from nemesis.faults.client_crash import ClientCrash as ClientCrash
from nemesis.faults.clock_step import ClockStep as ClockStep
from nemesis.faults.corrupt_record import CorruptRecord as CorruptRecord
from nemesis.faults.fail_directory import FailDirectory as FailDirectory
from nemesis.faults.fault import Aim as Aim
from nemesis.faults.fault import DiskFault as DiskFault
from nemesis.faults.fault import Draw as Draw
from nemesis.faults.fault import Fault as Fault
from nemesis.faults.fault import FaultKind as FaultKind
from nemesis.faults.fault import LinkFault as LinkFault
from nemesis.faults.fault import NodeFault as NodeFault
from nemesis.faults.fault import listed as listed
from nemesis.faults.full_disk import FullDisk as FullDisk
from nemesis.faults.hold_connections import HoldConnections as HoldConnections
from nemesis.faults.hold_messages import DelayMessages as DelayMessages
from nemesis.faults.hold_messages import DropMessages as DropMessages
from nemesis.faults.hold_messages import HoldMessages as HoldMessages
from nemesis.faults.instances import InstanceAdd as InstanceAdd
from nemesis.faults.instances import InstanceCut as InstanceCut
from nemesis.faults.instances import InstanceFreeze as InstanceFreeze
from nemesis.faults.instances import InstanceKill as InstanceKill
from nemesis.faults.instances import InstanceStop as InstanceStop
from nemesis.faults.kill import Kill as Kill
from nemesis.faults.lossy_link import LossyLink as LossyLink
from nemesis.faults.lying_disk import LyingDisk as LyingDisk
from nemesis.faults.membership import Join as Join
from nemesis.faults.membership import Leave as Leave
from nemesis.faults.membership import Replace as Replace
from nemesis.faults.move_leader import MoveLeader as MoveLeader
from nemesis.faults.partition import Partition as Partition
from nemesis.faults.pause import Pause as Pause
from nemesis.faults.power_loss import PowerLoss as PowerLoss
from nemesis.faults.reassign import Reassign as Reassign
from nemesis.faults.slow_disk import SlowDisk as SlowDisk
from nemesis.faults.slow_link import SlowLink as SlowLink
from nemesis.faults.stop import Stop as Stop
from nemesis.faults.unscheduled import Crash as Crash
from nemesis.faults.unscheduled import UnexplainedElection as UnexplainedElection
from nemesis.faults.upgrade import Finalize as Finalize
from nemesis.faults.upgrade import OperatorStep as OperatorStep
from nemesis.faults.upgrade import Upgrade as Upgrade
from nemesis.faults.wipe_disk import WipeDisk as WipeDisk

#: Every kind of fault by its name in receipts.
KINDS: Final[Mapping[str, type[FaultKind]]] = {
    kind.kind: kind
    for kind in [*globals().values()]
    if isinstance(kind, type) and issubclass(kind, FaultKind) and kind.kind
}
#: The faults that can be in a schedule.
FAULTS: Final[tuple[type[Fault], ...]] = tuple(kind for kind in KINDS.values() if issubclass(kind, Fault))

if TYPE_CHECKING:
    AnyFault: TypeAlias = Fault
else:
    #: The faults of a schedule, so that one can be read again.
    AnyFault = reduce(or_, FAULTS)


def fault_kind(kind: str) -> type[FaultKind]:
    """The facts about a kind of fault; one that this version does not know has the defaults."""
    return KINDS.get(kind, FaultKind)
