"""What nodes on this machine have on their disks, emptied, damaged, filled and slowed down.

A damaged record is one whose checksum is wrong on the disk. A broker that starts after an unclean stop reads its log
again from the recovery point's segment on, and ends it there (rule 25); what was flushed and rolled before that is not
read, and a damaged record in it is found by whoever fetches it. Which of the two it was is in the evidence
(``read_again``); what came of it is in the history.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping

from harness.hosts import Disk, DiskThrottle, LocalProcess, NodeState, log_bytes
from harness.worlds.real.nodes import Nodes
from harness.worlds.replica_logs import batches_in, flip, log_directory, read_again, recovery_point
from nemesis.cluster import LOG_PARTS
from nemesis.evidence import Evidence


class FileStorage:
    """Implements :class:`nemesis.cluster.Files`."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def wipe(self, node: int) -> Evidence:
        """See :meth:`Files.wipe`. Evidence: ``wiped``: how many ``files``, and ``log_bytes`` in them.

        The directory stays, since it may be where a disk is mounted. Kafka's own needs to be formatted before its next
        start, as every start of such a node sees to.
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

    def corrupt(self, node: int, partition: str, pick: int) -> Evidence:
        """See :meth:`Files.corrupt`.

        Evidence: ``corrupted``: ``partition``, the batch's first ``offset``, ``file``, ``position`` of the byte in it,
        the byte ``before`` and ``after``, ``recovery_point`` and ``read_again``. Nothing where the log is empty.
        """
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


class SlowDisks:
    """Implements :class:`nemesis.cluster.DiskSpeed` with disks of the nodes' own and the machine's ``throttle``."""

    def __init__(self, nodes: Nodes, disks: Mapping[int, Disk], throttle: DiskThrottle) -> None:
        self._nodes = nodes
        self._disks = disks
        self._throttle = throttle
        self._slowed: dict[int, str] = {}

    def slow(self, node: int) -> Evidence:
        """See :meth:`DiskSpeed.slow`. Evidence: ``device``, ``writes_per_second``, and what the kernel says of it."""
        process = self._nodes.process(node)
        if not isinstance(process, LocalProcess):  # a disk of its own has only who lives here
            return {}
        self._slowed[node] = self._disks[node].device
        return self._throttle.slow(self._slowed[node], process.pid)

    def restore(self, node: int) -> Evidence:
        """See :meth:`DiskSpeed.restore`. Evidence: ``device``."""
        device = self._slowed.pop(node, None)
        if device is None:
            return {}
        self._throttle.restore_disk_speed(device)
        return {"device": device}

    def started(self, node: int) -> None:
        """Slow the new process of a node down, where the limit is one of processes; its disk may be a new device."""
        process, before = self._nodes.process(node), self._slowed.get(node)
        if before is None or not isinstance(process, LocalProcess):
            return
        self._slowed[node] = self._disks[node].device
        if self._slowed[node] != before:
            self._throttle.restore_disk_speed(before)
        with contextlib.suppress(ProcessLookupError):  # it has ended already, and is looked after elsewhere
            self._throttle.slow(self._slowed[node], process.pid)
