"""The world of processes: the reference broker, each node a Python process that is asked over its control socket."""

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

import harness
from harness.errors import HostError
from harness.hosts import Host, Launch, NodeState
from harness.observations import Observation
from harness.plan import Processes, RunSpec, require_kind
from harness.reference.core.types import NodeId
from harness.reference.server import NodeConfig
from harness.worlds.real import RealWorld, StartedCluster, lifetime_s, local_host, out_of_reach
from harness.worlds.real.direct_access import Ask, SelfReport
from harness.worlds.real.leadership import ConfirmedLeadership
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.observation_times import trace_path, traced
from harness.worlds.real.view import ClusterImage, Metadata, Viewer
from harness.worlds.reference_settings import LACKS, broker_config, refuse_what_it_lacks
from nemesis.cluster import CONTROLLER, Capability, Leadership, Reassignment

#: A controller answers in a millisecond; one that does not in this time is busy or cut short, and the last view holds.
STATUS_LIMIT_S: Final = 0.25
#: Several faults that fire together look once.
FRESH_S: Final = 0.05
_MOVE_LIMIT_S: Final = 2.0


def processes_world(spec: RunSpec, directory: Path) -> RealWorld:
    """The world of the run ``spec``, whose files are in ``directory``; not yet opened."""
    host = local_host(require_kind(spec.world, Processes).host)
    return RealWorld(spec, directory, StartedCluster(spec, directory, ReferenceDistribution(spec), host))


def processes_lacks(spec: RunSpec) -> Mapping[Capability, str]:
    """What is not done to the nodes of the run ``spec``, however this machine is, and why."""
    host = local_host(require_kind(spec.world, Processes).host)
    return out_of_reach(ReferenceDistribution(spec).lacks(host), host)


class ReferenceDistribution:
    """Implements :class:`harness.worlds.real.Distribution`: brokers and one controller."""

    controllers: Final = 1

    def __init__(self, spec: RunSpec) -> None:
        self._settings = spec.chosen()
        self._broker = broker_config(self._settings)
        self._lifetime_s = lifetime_s(spec)
        self._racks = dict(enumerate(spec.racks))

    def check(self) -> None:
        """See :meth:`Distribution.check`."""
        refuse_what_it_lacks(self._settings, "processes")

    def lacks(self, host: type[Host]) -> Mapping[Capability, str]:  # noqa: ARG002 - the same on every host
        """See :meth:`Distribution.lacks`."""
        return {**LACKS, Capability.LOG_DIRECTORIES: "the reference broker's server keeps all logs in one directory"}

    def launch(self, nodes: Nodes, node: int) -> Launch:
        """See :meth:`Distribution.launch`."""
        file = nodes.directory / "data" / f"{node}.json"
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self._config(nodes, node))))
        return Launch(
            node=node,
            command=(sys.executable, "-m", "harness.reference.server", str(file)),
            # The package need not be installed, and the node's directory is not the harness's.
            environment={"PYTHONPATH": module_path(), "PYTHONUNBUFFERED": "1"},
            directory=nodes.data(node),
            log=nodes.log(node),
        )

    def metadata(self, nodes: Nodes) -> ControlSocketMetadata:
        """See :meth:`Distribution.metadata`."""
        return ControlSocketMetadata(nodes)

    def administration(
        self,
        nodes: Nodes,
        viewer: Viewer,
        resources: ExitStack,  # noqa: ARG002 - nothing stays open
    ) -> tuple[Leadership, Reassignment | None]:
        """See :meth:`Distribution.administration`."""
        return ConfirmedLeadership(partial(move_leader, nodes.host), viewer.partitions), None

    def configuration(self, nodes: Nodes) -> dict[str, Any]:  # noqa: ARG002 - the same for every node
        """See :meth:`Distribution.configuration`."""
        return msgspec.structs.asdict(self._broker)

    def own_words(self, nodes: Nodes) -> Ask:
        """See :meth:`Distribution.own_words`: over their control sockets."""
        return partial(own_word, nodes.host)

    def observations(self, directory: Path, wall_begin_us: int) -> list[Observation]:
        """See :meth:`Distribution.observations`: from the nodes' traces."""
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
            rack=self._racks.get(node, ""),
            # What is cut already must not be spoken over before the control socket listens.
            cuts=tuple((NodeId(source), NodeId(target)) for source, target in host.links.at(node)),
            max_lifetime_s=self._lifetime_s,
        )


def module_path() -> str:
    """This package's home before whatever the user's PYTHONPATH names."""
    home = str(Path(harness.__file__).parent.parent)
    return os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))


class ControlSocketMetadata(Metadata):
    """Asks the controller, over its control socket and never over the network under test."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._image = ClusterImage()
        self._asked_at = float("-inf")
        self._answers = True

    def image(self) -> ClusterImage:
        """See :meth:`Metadata.image`; at most FRESH_S old if the controller can be reached."""
        runs = bool(self._nodes.in_state(NodeState.RUNNING, (CONTROLLER,)))
        if runs and time.monotonic() - self._asked_at >= FRESH_S:
            answer = self._nodes.host.ask([CONTROLLER], {"op": "status"}, STATUS_LIMIT_S).get(CONTROLLER, {})
            newest = image_in(answer)
            self._image, self._answers = newest or self._image, newest is not None
            self._asked_at = time.monotonic()
        return self._image

    def controller_works(self) -> bool:
        """See :meth:`Metadata.controller_works`: it answered when it was asked last."""
        return self._answers


def image_in(answer: Mapping[str, Any]) -> ClusterImage | None:
    """The image in an answer to ``status``; None if there is none, or one that cannot be read."""
    try:
        return msgspec.convert(answer["image"], ClusterImage, strict=False)
    except (KeyError, msgspec.ValidationError):
        return None


def own_word(host: Host, node: int, partition: str) -> SelfReport:
    """What the broker answers about its replica; nothing where it is busy or has none."""
    answer = host.ask([node], {"op": "status"}, STATUS_LIMIT_S).get(node, {})
    return msgspec.convert(answer.get("logs", {}).get(partition, {}), SelfReport)


def move_leader(host: Host, partition: str, broker: int, replicas: Sequence[int]) -> str:  # noqa: ARG001
    """A :data:`harness.worlds.real.leadership.Move` through the controller's control socket."""
    request = {"op": "move", "partition": partition, "leader": broker}
    answer = host.ask([CONTROLLER], request, _MOVE_LIMIT_S).get(CONTROLLER)
    if answer is None:
        raise HostError("the controller does not answer")
    return str(answer.get("error", ""))
