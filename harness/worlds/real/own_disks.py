"""Makes faults of disks, for nodes that each have their own: lost power, lying write caches, full disks."""

from __future__ import annotations

from collections.abc import Mapping

from harness.worlds.hosts import MountedDisk, NodeState, log_bytes
from harness.worlds.real.attacked_nodes import AttackedNodes
from nemesis.cluster import Power
from nemesis.disk_parts import DiskSpace, WriteCaches
from nemesis.evidence import DiskFilled, DiskLied, PowerLost


class OwnDisks(Power, WriteCaches, DiskSpace):
    """Cuts power, lets disks lie and fills them, for nodes with disks of their own."""

    def __init__(self, attacked: AttackedNodes, disks: Mapping[int, MountedDisk]) -> None:
        self._attacked = attacked
        self._disks = disks

    def cut_power(self, node: int) -> PowerLost:
        """End the process, and lose what its disk did not keep.

        ``lost_flushed`` are the bytes that a lying disk lost: how many of them were flushed is not known, so all count.
        A restarted node finds its disk mounted again, with what it had forced to it.
        """
        attacked, disk = self._attacked, self._disks[node]
        if attacked.nodes.process(node).state() is NodeState.DEAD:
            return {}
        attacked.nodes.crashes.ordered(node, attacked.clock.now_us())
        before = log_bytes(disk.mount_point)
        disk.power_off()
        evidence: PowerLost = {**attacked.kill(node), "log_bytes_before": before, **disk.power_on()}
        return {**evidence, "lost_flushed": before - log_bytes(disk.mount_point)} if disk.lies else evidence

    def lie(self, node: int) -> DiskLied:
        """Let the disk lie."""
        return self._disks[node].lie()

    def obey(self, node: int) -> DiskLied:
        """Let the disk flush again."""
        return self._disks[node].obey()

    def fill(self, node: int) -> DiskFilled:
        """Fill the disk."""
        return self._disks[node].fill()

    def free(self, node: int) -> DiskFilled:
        """Give the room back."""
        ended = self._attacked.nodes.process(node).exit()
        freed = self._disks[node].free()
        return {**freed, "exit": ended} if freed and ended is not None else freed
