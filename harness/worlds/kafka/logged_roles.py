"""Reads the roles of brokers' replicas from their logs as they grow, since the start of each process."""

from __future__ import annotations

import msgspec

from harness.ground.observations import BecameFollower, BecameLeader, IsrChanged
from harness.worlds.hosts import NodeProcess
from harness.worlds.kafka.log_events import LogTail
from harness.worlds.kafka.log_patterns import LogEvent, RoleTaken
from harness.worlds.real.direct_access import SelfReport
from harness.worlds.real.nodes import Nodes


class LoggedRoles:
    """The roles that brokers took. High watermarks are logged with a new role only, so they are not known here."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._tails: dict[NodeProcess, LogTail] = {}
        self._words: dict[tuple[NodeProcess, str], SelfReport] = {}

    def of(self, node: int, partition: str) -> SelfReport:
        """A :data:`harness.worlds.real.direct_access.Ask`. A broker that was started again said nothing yet."""
        process = self._nodes.process(node)
        if process not in self._tails:
            self._tails[process] = LogTail(self._nodes.log(node), self._nodes.log_begin(node))
        for event in self._tails[process].events():
            self._learn(process, event)
        return self._words.get((process, partition), SelfReport())

    def _learn(self, process: NodeProcess, event: LogEvent) -> None:
        match event:
            case BecameLeader(partition=partition, leader_epoch=epoch, isr=isr):
                self._words[process, partition] = SelfReport(leading=True, leader_epoch=epoch, isr=isr)
            case BecameFollower(partition=partition, leader_epoch=epoch):
                self._words[process, partition] = SelfReport(leader_epoch=epoch)
            case RoleTaken(partition=partition, role=role):
                report = self._words.get((process, partition), SelfReport())
                self._words[process, partition] = msgspec.structs.replace(report, leading=role == "leader")
            case IsrChanged(partition=partition, isr=isr) if (process, partition) in self._words:
                self._words[process, partition] = msgspec.structs.replace(self._words[process, partition], isr=isr)
            case _:
                pass
