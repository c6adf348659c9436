"""Instances of an application under test: killed, stopped in order, frozen, cut off, and one more of them.

They are processes of the program that the plan names, not nodes of the cluster, so no promise of the log is weaker for
such a fault. Which instance is hit, the role's pick says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from typing_extensions import override

from nemesis.cluster import CLIENTS, Capability, ClusterView, Target, require
from nemesis.evidence import InstanceSeen, Observed
from nemesis.faults.fault import Aim, NodeFault
from nemesis.roles import Role, RoleKind, resolve
from nemesis.topology import Shape


class InstanceFault(NodeFault, frozen=True):
    """A fault of one instance, which is as before at its end."""

    operands: ClassVar[str] = ""
    needs: ClassVar[tuple[Capability, ...]] = (Capability.INSTANCES,)
    spares_process: ClassVar[bool] = True
    spares_cluster: ClassVar[bool] = True
    done: ClassVar[str] = ""

    @classmethod
    @override
    def around(cls, role: Role, shape: Shape) -> Self:
        """One instance, by the pick of ``role``."""
        return cls(Role(RoleKind.INSTANCE, role.partition, role.pick))

    @classmethod
    @override
    def in_words(cls, evidence: Mapping[str, InstanceSeen]) -> str:
        """Name the instance, and what was done to it."""
        seen = evidence.get(str(CLIENTS), {})
        return f"instance {seen['instance']} {cls.done}" if "instance" in seen else ""

    @override
    def undo(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        return require(target.instances).restore_instance(self.role.pick)


class InstanceKill(InstanceFault, frozen=True):
    """Kill an instance of the application, with all that it started (SIGKILL); start it again at the end."""

    kind: ClassVar[str] = "instancekill"
    verb: ClassVar[str] = "kill-instance"
    family: ClassVar[str] = "instance-kill"
    done: ClassVar[str] = "was killed"

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        return require(target.instances).kill_instance(self.role.pick)


class InstanceStop(InstanceFault, frozen=True):
    """Ask an instance of the application to end in order (SIGTERM); start it again at the end.

    What does not end within the plan's `stop_timeout_ms` is killed.
    """

    kind: ClassVar[str] = "instancestop"
    verb: ClassVar[str] = "stop-instance"
    family: ClassVar[str] = "instance-stop"
    done: ClassVar[str] = "was asked to end"

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        return require(target.instances).stop_instance(self.role.pick)


class InstanceFreeze(InstanceFault, frozen=True):
    """Freeze an instance of the application (SIGSTOP), and let it go on at the end (SIGCONT).

    Past its session the group gives its log partitions to others, and past the time-out of its transaction brokers
    abort that: the instance that goes on then is a zombie.
    """

    kind: ClassVar[str] = "instancefreeze"
    verb: ClassVar[str] = "freeze-instance"
    family: ClassVar[str] = "instance-freeze"
    done: ClassVar[str] = "was frozen"

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        return require(target.instances).freeze_instance(self.role.pick)


class InstanceCut(InstanceFault, frozen=True):
    """Let nothing that an instance of the application sends arrive at one broker, the holder of ``broker``.

    The others hear it. Cut off from the coordinator of its group it is given up, and works on as long as it does not
    know that. By hand it is cut off from the leader of `--partition`.
    """

    kind: ClassVar[str] = "instancecut"
    verb: ClassVar[str] = "cut-instance"
    family: ClassVar[str] = "instance-cut"
    done: ClassVar[str] = "was cut off from"

    broker: Role

    @classmethod
    @override
    def around(cls, role: Role, shape: Shape) -> Self:
        return cls(Role(RoleKind.INSTANCE, role.partition, role.pick), Role(RoleKind.LEADER, role.partition))

    @classmethod
    @override
    def in_words(cls, evidence: Mapping[str, InstanceSeen]) -> str:
        words, seen = super().in_words(evidence), evidence.get(str(CLIENTS), {})
        return f"{words} broker {seen['broker']}" if words and "broker" in seen else ""

    @classmethod
    @override
    def met_something(cls, evidence: Observed) -> bool:
        """A packet was dropped; true where none were counted."""
        seen = evidence.get(str(CLIENTS))
        return not isinstance(seen, dict) or seen.get("lost_packets") != 0

    @override
    def aim(self, view: ClusterView) -> Aim:
        if not resolve(self.broker, view):
            return Aim(impossible=f"{self.broker} does not exist now")
        return super().aim(view)

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        brokers = resolve(self.broker, target.view())
        return require(target.instances).cut_instance(self.role.pick, brokers[0]) if brokers else {}

    @override
    def undo(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        return require(target.instances).mend_instance(self.role.pick)


class InstanceAdd(InstanceFault, frozen=True):
    """Start one more instance of the application; at the end it is asked to end."""

    kind: ClassVar[str] = "instanceadd"
    verb: ClassVar[str] = "add-instance"
    family: ClassVar[str] = "instance-scale"
    done: ClassVar[str] = "was started beside the others"

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        return require(target.instances).add_instance()

    @override
    def undo(self, target: Target, aim: Aim, node: int) -> InstanceSeen:
        return require(target.instances).take_added_away()
