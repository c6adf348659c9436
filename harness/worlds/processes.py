"""The world of processes runs the reference broker, each node as a Python process with a control socket."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from typing_extensions import override

import harness
from harness.broker.core.types import NodeId
from harness.broker.server import NodeConfig, spoken
from harness.ground.errors import HostError
from harness.ground.observations import Observation
from harness.plan import Processes, RealTime, RunSpec, require_kind
from harness.worlds.clients import ClientLibrary
from harness.worlds.hosts import Host, Launch, NodeState
from harness.worlds.real import Distribution, RealWorld, StartedCluster, lifetime_s, local_host, out_of_reach
from harness.worlds.real.direct_access import Ask, SelfReport
from harness.worlds.real.leadership import ConfirmedLeadership
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.observation_times import trace_path, traced
from harness.worlds.real.view import ClusterImage, ControllerMetadata, Viewer
from harness.worlds.reference_settings import LACKS, broker_config, refuse_what_it_lacks, topic_config
from nemesis.cluster import CONTROLLER, Capability, Leadership, Reassignment

#: A controller answers in a millisecond; if it takes longer than this it is busy or frozen, and the last view holds.
STATUS_LIMIT_S: Final = 0.25
#: Several faults that fire together use one answer.
FRESH_S: Final = 0.05
_MOVE_LIMIT_S: Final = 2.0


def processes_world(spec: RunSpec, directory: Path) -> RealWorld:
    """The world of the run ``spec``, whose files are in ``directory``; not yet opened."""
    host = local_host(require_kind(spec.world, Processes).host)
    return RealWorld(spec, directory, StartedCluster(spec, directory, ReferenceDistribution(spec), host), _library)


def _library(world: RealTime, directory: Path, resources: ExitStack) -> ClientLibrary:
    from harness.worlds.kafka import client_library  # noqa: PLC0415 - most runs have nothing to do with Kafka

    return client_library(world, directory, resources)


def processes_lacks(spec: RunSpec) -> Mapping[Capability, str]:
    """The capabilities that the nodes of the run ``spec`` lack on any machine, and why."""
    host = local_host(require_kind(spec.world, Processes).host)
    return out_of_reach(ReferenceDistribution(spec).lacks(host), host)


class ReferenceDistribution(Distribution):
    """Launches and asks the reference broker's nodes: brokers and one controller."""

    controllers: Final = 1

    def __init__(self, spec: RunSpec) -> None:
        self._settings = spec.chosen()
        self._broker = spoken(broker_config(self._settings))
        self._topics = topic_config(self._settings)
        self._lifetime_s = lifetime_s(spec)
        self._racks = dict(enumerate(spec.racks))

    @override
    def check(self) -> None:
        refuse_what_it_lacks(self._settings, "processes")

    @override
    def lacks(self, host: type[Host]) -> Mapping[Capability, str]:
        return {**LACKS, Capability.LOG_DIRECTORIES: "the reference broker's server keeps all logs in one directory"}

    @override
    def launch(self, nodes: Nodes, node: int) -> Launch:
        file = nodes.directory / "data" / f"{node}.json"
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self._config(nodes, node))))
        return Launch(
            node=node,
            command=(sys.executable, "-m", "harness.broker.server", str(file)),
            # The package may not be installed, and the node's directory is not the harness's.
            environment={"PYTHONPATH": module_path(), "PYTHONUNBUFFERED": "1"},
            directory=nodes.data(node),
            log=nodes.log(node),
        )

    @override
    def metadata(self, nodes: Nodes) -> ControlSocketMetadata:
        return ControlSocketMetadata(nodes)

    @override
    def administration(
        self,
        nodes: Nodes,
        viewer: Viewer,
        resources: ExitStack,
    ) -> tuple[Leadership, Reassignment | None]:
        return ConfirmedLeadership(partial(move_leader, nodes.host), viewer.partitions), None

    @override
    def configuration(self, nodes: Nodes) -> dict[str, Any]:
        return msgspec.structs.asdict(self._broker)

    def own_words(self, nodes: Nodes) -> Ask:
        """Asks the brokers over their control sockets."""
        return partial(own_word, nodes.host)

    def observations(self, directory: Path, wall_begin_us: int) -> list[Observation]:
        """Reads the observations from the nodes' traces."""
        return traced(directory, wall_begin_us)

    def _config(self, nodes: Nodes, node: int) -> NodeConfig:
        host = nodes.host
        address, controller = host.address(node), host.address(CONTROLLER)
        return NodeConfig(
            role="controller" if node == CONTROLLER else "broker",
            node=NodeId(node),
            host=address.host,
            port=address.port,
            controller_host=controller.host,
            controller_port=controller.port,
            directory=str(nodes.data(node)),
            control_socket=host.control_path(node),
            trace=str(trace_path(nodes.directory, node)),
            broker=self._broker,
            topics=self._topics,
            rack=self._racks.get(node, ""),
            # Links that are cut already must carry nothing before the control socket listens.
            cuts=tuple((NodeId(source), NodeId(target)) for source, target in host.links.enforced_by(node)),
            max_lifetime_s=self._lifetime_s,
        )


def module_path() -> str:
    """A PYTHONPATH with this package's home first, then the user's own directories."""
    home = str(Path(harness.__file__).parent.parent)
    return os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))


class ControlSocketMetadata(ControllerMetadata):
    """Asks the controller over its control socket, never over the network under test."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._image = ClusterImage()
        self._asked_at = float("-inf")
        self._answers = True

    def image(self) -> ClusterImage:
        """The newest metadata, at most FRESH_S old if the controller can be reached."""
        runs = bool(self._nodes.in_state(NodeState.RUNNING, (CONTROLLER,)))
        if runs and time.monotonic() - self._asked_at >= FRESH_S:
            answer = self._nodes.host.ask([CONTROLLER], {"op": "status"}, STATUS_LIMIT_S).get(CONTROLLER, {})
            newest = image_in(answer)
            self._image, self._answers = newest or self._image, newest is not None
            self._asked_at = time.monotonic()
        return self._image

    def controller_works(self) -> bool:
        """True if the controller answered the last question."""
        return self._answers


def image_in(answer: Mapping[str, Any]) -> ClusterImage | None:
    """The image in an answer to ``status``; None if it is missing or cannot be read."""
    try:
        return msgspec.convert(answer["image"], ClusterImage, strict=False)
    except (KeyError, msgspec.ValidationError):
        return None


def own_word(host: Host, node: int, partition: str) -> SelfReport:
    """The broker's answer about its replica; an empty one if it is busy or has no such replica."""
    answer = host.ask([node], {"op": "status"}, STATUS_LIMIT_S).get(node, {})
    return msgspec.convert(answer.get("logs", {}).get(partition, {}), SelfReport)


def move_leader(host: Host, partition: str, broker: int, replicas: Sequence[int]) -> str:  # noqa: ARG001
    """Move a leader through the controller's control socket (a :data:`harness.worlds.real.leadership.Move`)."""
    request = {"op": "move", "partition": partition, "leader": broker}
    answer = host.ask([CONTROLLER], request, _MOVE_LIMIT_S).get(CONTROLLER)
    if answer is None:
        raise HostError("the controller does not answer; see its log")
    return str(answer.get("error", ""))
