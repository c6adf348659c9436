"""The nodes of a cluster: their files, their start, their deaths explained."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

import harness
from harness.errors import PortError, StartError
from harness.hosts import Host, Launch, NodeProcess, NodeState
from harness.reference.server import NodeConfig
from harness.worlds.processes.crashes import Deaths
from harness.worlds.reference import broker_config
from nemesis.cluster import CONTROLLER, Link
from workloads.settings import Settings

#: How a node ends that finds its address taken (EADDRINUSE).
EXIT_PORT_TAKEN: Final = 98
#: How much of a dead node's log stands in the error.
LOG_LINES_SHOWN: Final = 5
_LOG_BYTES_READ: Final = 4_096


class Nodes:
    """Brokers 0 to ``brokers`` - 1 and the controllers, on one host, with their files under a run directory.

    ``max_lifetime_s`` is when a node ends by itself, should nobody be left to end it.
    """

    def __init__(
        self,
        host: Host,
        directory: Path,
        settings: Settings,
        brokers: int,
        max_lifetime_s: float,
        *,
        controllers: int = 1,
    ) -> None:
        self.brokers: Final = tuple(range(brokers))
        self.controllers: Final = tuple(range(CONTROLLER, CONTROLLER + controllers))
        self.all: Final = (*self.brokers, *self.controllers)
        self._host = host
        self._directory = directory
        self._broker = broker_config(settings)
        self._max_lifetime_s = max_lifetime_s
        self._processes: dict[int, NodeProcess] = {}
        #: What a node needs in its environment besides what its start says.
        self.environment_of: Callable[[int], dict[str, str]] = lambda _: {}
        self.deaths: Final = Deaths(self._processes, self.last_words)

    def start(self, node: int) -> None:
        """Start a node on its old files, or on none; it is not ready yet when this returns."""
        data = self.data(node)
        data.mkdir(parents=True, exist_ok=True)
        self.log(node).parent.mkdir(exist_ok=True)
        launch = self._launch(node, data)
        environment = launch.environment | self.environment_of(node)
        self._processes[node] = self._host.start(msgspec.structs.replace(launch, environment=environment))

    def process(self, node: int) -> NodeProcess:
        """The newest process of a node."""
        return self._processes[node]

    def in_state(self, state: NodeState, nodes: Iterable[int]) -> tuple[int, ...]:
        """Those of ``nodes`` whose process is in this state now."""
        return tuple(node for node in nodes if self._processes[node].state() is state)

    def single_links(self, links: Collection[Link]) -> list[Link]:
        """The links between single nodes that are meant: CONTROLLER stands for every controller."""
        these = {CONTROLLER: self.controllers}
        return sorted(
            Link(source, target)
            for link in set(links)
            for source in these.get(link.source, (link.source,))
            for target in these.get(link.target, (link.target,))
        )

    def data(self, node: int) -> Path:
        """What a node keeps on its disk."""
        return self._directory / "data" / str(node)

    def log(self, node: int) -> Path:
        """What a node writes to its standard output and error."""
        return self._directory / "logs" / f"node-{node}.log"

    def trace(self, node: int) -> Path:
        """What a node tells of itself, as JSON lines."""
        return self._directory / "logs" / f"trace-{node}.jsonl"

    def check(self) -> None:
        """Raise if a node that should be starting has ended.

        Raises:
            PortError: its address was taken.
            StartError: anything else; the text holds the end of its log.
        """
        for node, process in self._processes.items():
            ended = process.exit()
            if ended is None:
                continue
            if ended == f"status {EXIT_PORT_TAKEN}":
                address = self._host.address(node)
                raise PortError(f"node {node} found {address.host}:{address.port} in use; stop its owner")
            words = self.last_words(node)
            raise StartError(f"node {node} ended with {ended} while it started; see {self.log(node)}: {words}")

    def last_words(self, node: int) -> str:
        """The last lines of a node's log in one line."""
        try:
            content = self.log(node).read_bytes()[-_LOG_BYTES_READ:]
        except OSError:
            return "there is no log"
        lines = [line.strip() for line in content.decode(errors="replace").splitlines() if line.strip()]
        return " | ".join(lines[-LOG_LINES_SHOWN:]) or "the log is empty"

    def broker_configuration(self) -> dict[str, Any]:
        """What every broker and the controller run with."""
        return msgspec.structs.asdict(self._broker)

    def _launch(self, node: int, data: Path) -> Launch:
        file = self._directory / "data" / f"{node}.json"
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self._config(node, data))))
        return Launch(
            node=node,
            command=(sys.executable, "-m", "harness.reference.server", str(file)),
            # The package need not be installed, and the node's directory is not the harness's.
            environment={"PYTHONPATH": _module_path(), "PYTHONUNBUFFERED": "1"},
            directory=data,
            log=self.log(node),
        )

    def _config(self, node: int, data: Path) -> NodeConfig:
        address, controller = self._host.address(node), self._host.address(CONTROLLER)
        return NodeConfig(
            role="controller" if node == CONTROLLER else "broker",
            node=node,
            host=address.host,
            port=address.port,
            controller_host=controller.host,
            controller_port=controller.port,
            directory=str(data),
            control_socket=self._host.control_path(node),
            trace=str(self.trace(node)),
            broker=self._broker,
            # What is cut already must not be spoken over before the control socket listens.
            cuts=tuple(self._host.cuts_at(node)),
            max_lifetime_s=self._max_lifetime_s,
        )


def _module_path() -> str:
    """This package's home before whatever the user's PYTHONPATH names."""
    home = str(Path(harness.__file__).parent.parent)
    return os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))


def trace_files(directory: Path) -> list[Path]:
    """The traces of all nodes of the run in ``directory``."""
    return sorted((directory / "logs").glob("trace-*.jsonl"))
