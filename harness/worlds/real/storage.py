"""Empties, damages and slows the disks of nodes on this machine.

The checksum of a damaged record is wrong on the disk. A broker that starts after an unclean stop reads its log again
(Kafka from the recovery point's segment on), and cuts it off at the damage (rule 25). Kafka does not read older
segments again, so a damaged record in them is found only when a replica or client fetches it. The evidence
``read_again`` says which of the two it was; the history shows the result.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping

from harness.worlds.hosts import DiskThrottle, LocalProcess, MountedDisk, NodeState, log_bytes
from harness.worlds.real.nodes import Nodes
from harness.worlds.replica_logs import batches_in, flip, log_directory, read_again, recovery_point
from nemesis.disk_parts import LOG_PARTS, DiskSpeed, Files
from nemesis.evidence import DiskDamaged, DiskSlowed


class FileStorage(Files):
    """Empties and damages the files of dead nodes on this machine."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def wipe(self, node: int) -> DiskDamaged:
        """Empty the disk of a dead node.

        The directory itself stays, because a disk may be mounted there. A Kafka node formats it at its next start.
        """
        if not self._is_dead(node):
            return {}
        data = self._nodes.data(node)
        taken = log_bytes(data)
        files = sum(1 for path in data.rglob("*") if path.is_file())
        for path in data.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        return {"wiped": {"files": files, "log_bytes": taken}}

    def corrupt(self, node: int, partition: str, pick: int) -> DiskDamaged:
        """Change one byte of a record that a dead node keeps of ``partition``."""
        directory = log_directory(self._nodes.data(node), partition)
        batches = list(batches_in(directory)) if directory is not None and self._is_dead(node) else []
        if not batches:
            return {}
        batch = batches[len(batches) * pick // LOG_PARTS]
        read = read_again(batch)
        position, before, after = flip(batch)
        return {
            "corrupted": {
                "partition": partition,
                "offset": batch.location.base_offset,
                "file": batch.file.name,
                "recovery_point": recovery_point(batch.file.parent),
                "read_again": read,
                "position": position,
                "before": before,
                "after": after,
            }
        }

    def _is_dead(self, node: int) -> bool:
        return self._nodes.process(node).state() is NodeState.DEAD


class SlowDisks(DiskSpeed):
    """Makes the nodes' own disks slow with the machine's ``throttle``."""

    def __init__(self, nodes: Nodes, disks: Mapping[int, MountedDisk], throttle: DiskThrottle) -> None:
        self._nodes = nodes
        self._disks = disks
        self._throttle = throttle
        self._slowed: dict[int, str] = {}

    def slow(self, node: int) -> DiskSlowed:
        """Slow the node's disk down."""
        process = self._nodes.process(node)
        if not isinstance(process, LocalProcess):  # only nodes on this machine have a disk of their own
            return {}
        self._slowed[node] = self._disks[node].device
        return self._throttle.slow(self._slowed[node], process.pid)

    def restore(self, node: int) -> DiskSlowed:
        """Let the disk write fast again."""
        device = self._slowed.pop(node, None)
        if device is None:
            return {}
        self._throttle.restore_disk_speed(device)
        return {"device": device}

    def started(self, node: int) -> None:
        """Slow the new process of a node down, where the limit holds for processes; its disk may be a new device."""
        process, before = self._nodes.process(node), self._slowed.get(node)
        if before is None or not isinstance(process, LocalProcess):
            return
        self._slowed[node] = self._disks[node].device
        if self._slowed[node] != before:
            self._throttle.restore_disk_speed(before)
        with contextlib.suppress(ProcessLookupError):  # it has ended already, which its owner notices
            self._throttle.slow(self._slowed[node], process.pid)
