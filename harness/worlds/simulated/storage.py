"""The disks of the simulated cluster: logs in memory, which can be emptied and damaged while nobody runs over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness.reference.core.log import MemoryLog
from harness.reference.core.types import TopicPartition
from nemesis.cluster import LOG_PARTS, Evidence

#: Why these disks are never full or slow.
NO_DISKS: Final = "logs in memory take no room and no time; use another world"


class SimulatedStorage:
    """Implements :class:`nemesis.cluster.Files` in memory.

    ``disks`` are the logs of every broker; ``dead`` says whether a broker's process has ended.
    """

    def __init__(self, disks: Mapping[int, dict[TopicPartition, MemoryLog]], dead: Callable[[int], bool]) -> None:
        self._disks = disks
        self._dead = dead

    def wipe(self, node: int) -> Evidence:
        """See :meth:`Files.wipe`. Evidence: ``wiped``, the records that are gone by log partition."""
        if not self._dead(node):
            return {}
        disk = self._disks[node]
        wiped = {str(at): log.end_offset - log.start_offset for at, log in disk.items()}
        disk.clear()
        return {"wiped": wiped}

    def corrupt(self, node: int, partition: str, pick: int) -> Evidence:
        """See :meth:`Files.corrupt`. Evidence: ``corrupted``: the batch's ``offset``, and ``lost`` records.

        The next start would read all of the log and end it before this batch (rule 25), and until then nobody reads
        it; so it ends there now.
        """
        log = next((log for at, log in self._disks[node].items() if str(at) == partition), None)
        batches = [] if log is None or not self._dead(node) else list(log.producer_batches())
        if log is None or not batches:
            return {}
        offset = batches[len(batches) * pick // LOG_PARTS].base_offset
        lost = log.end_offset - offset
        log.truncate_to(offset)
        return {"corrupted": {"partition": partition, "offset": offset, "lost": lost}}
