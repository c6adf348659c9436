"""The nodes of a Kafka cluster: formatted, configured, and started as Java processes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from harness.hosts import Host, Launch
from harness.plan import Kafka, RunSpec, require_kind
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import MAIN, node_command
from harness.worlds.kafka.log_configuration import TELLERS, LogFiles
from harness.worlds.kafka.properties import NodePlace, as_text, node_properties
from harness.worlds.kafka.storage import BOOTSTRAP, META, format_directory, new_id
from harness.worlds.processes.nodes import Nodes


class KafkaNodes(Nodes):
    """The brokers and controllers that ``spec`` asks for, of one release, in one new cluster."""

    #: Which classes log how much.
    tellers: Mapping[str, str] = TELLERS

    def __init__(
        self, host: Host, directory: Path, spec: RunSpec, installation: Installation, max_lifetime_s: float
    ) -> None:
        self._settings = spec.chosen()
        controllers = require_kind(spec.world, Kafka).controllers
        super().__init__(host, directory, self._settings, spec.brokers, max_lifetime_s, controllers=controllers)
        self._installation = installation
        self._cluster = new_id()

    def broker_configuration(self) -> dict[str, Any]:
        """What every broker runs with, as far as it is not Kafka's own default; the release under ``version``."""
        return {"version": str(self._installation.version)} | self._properties(self.brokers[0])

    def _launch(self, node: int, data: Path) -> Launch:
        formatted = self._format(node, data)
        properties = self._directory / "data" / f"{node}.properties"
        properties.write_text(as_text(self._properties(node)), encoding="utf-8")
        logs = self.log(node).parent
        files = LogFiles(logs / "logging.properties", logs / f"gc-{node}.log")
        files.write(self._installation, self.tellers)
        return Launch(
            node=node,
            command=node_command(
                self._installation,
                node,
                properties,
                files,
                partial(self._host.place, node),
                main=self._main(node),
                max_lifetime_s=self._max_lifetime_s,
            ),
            environment={},
            directory=data.parent,
            log=self.log(node),
            files=(properties, files.configuration, *formatted),
        )

    def _format(self, node: int, data: Path) -> tuple[Path, ...]:
        """Format a directory that never was, or was wiped: else a node refuses to start. The answer is what is new."""
        if (data / META).exists():
            return ()
        format_directory(self._installation, data, node, self._cluster, elr=self._settings.eligible_leader_replicas)
        return (data / META, data / BOOTSTRAP)

    def _main(self, node: int) -> str:  # noqa: ARG002 - not every node of another kind of cluster is Kafka's
        """The main class of a node."""
        return MAIN

    def _properties(self, node: int) -> dict[str, str]:
        return node_properties(self._place(node), self._settings, len(self.brokers))

    def _place(self, node: int) -> NodePlace:
        return NodePlace(
            node=node,
            # Relative to the process's directory: the path of a run has commas in it, and log.dirs is a list.
            data=Path(self.data(node).name),
            address=self._host.address(node),
            controllers={node: self._host.address(node) for node in self.controllers},
        )
