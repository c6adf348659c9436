"""Kafka before KRaft: configures ZooKeeper and its brokers, and writes planned changes into it.

Kept for the stories of earlier eras. Brokers keep their metadata in ZooKeeper and elect a controller among themselves.
Until 4.0 a broker can be set to speak as an older release did, and then it also truncates as that one did:
``inter.broker.protocol.version`` with the message format of the time is the switch between the eras of truncation
(rules 16 and 17), on one and the same release.

Before 2.4 brokers take no request for planned changes: they are written into ZooKeeper. The operator's own tools of the
time did nothing else (``kafka-reassign-partitions``, and ``kafka-preferred-replica-election``): they made a node with
the wish, and the controller removed it when it was done.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

from harness.ground.errors import HostError, PlanError
from harness.worlds.hosts import Address
from harness.worlds.kafka.properties import NodePlace, node_properties, possible
from harness.worlds.kafka.releases import STARTED_SINCE, ZOOKEEPER_GONE_SINCE, Version
from nemesis.cluster import CONTROLLER
from workloads import LogPartition, Settings, Truncation, reason_of

MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
#: Each way to truncate with its first release, oldest first (rules 16, 17); a broker may be set to an older one.
ERAS: Final[Mapping[Truncation, tuple[int, ...]]] = {
    "high-watermark": (0, 0, 0),
    "kip-101": (0, 11, 0),
    "kip-279": (2, 0, 0),
    "kip-320": (2, 1, 0),
    "on-fetch": (2, 8, 0),
}
#: The protocol that a broker is configured to speak, so that it truncates in an older way than its own.
SPOKEN: Final[Mapping[Truncation, str]] = {
    "high-watermark": "0.10.2",
    "kip-101": "0.11.0",
    "kip-279": "2.0",
    "kip-320": "2.1",
}
#: Sequence numbers came with the second message format (KIP-98).
_WITHOUT_SEQUENCES: Final = "high-watermark"
_OF_KRAFT: Final = re.compile(
    r"(process\.roles|node\.id|listener\.security\.protocol\.map)$|controller\.(quorum|listener)\."
)


def possible_with_zookeeper(settings: Settings, version: Version) -> None:
    """Refuse settings and releases that cannot be with ZooKeeper.

    Raises:
        PlanError: a setting does not go with ZooKeeper or the release; the text names it.
    """
    if version >= ZOOKEEPER_GONE_SINCE:
        raise PlanError(f'Apache Kafka {version} has no ZooKeeper; choose version = "3.5.2", or leave mode out')
    if version < STARTED_SINCE:
        raise PlanError(
            f"Apache Kafka {version} makes no topic when it is asked to (KIP-4), so it is not started here; choose "
            f"{Version(*STARTED_SINCE)} or later"
        )
    if settings.broker_epochs:
        raise PlanError("with ZooKeeper controllers do not know broker.epochs (KIP-903); write broker.epochs=false")
    possible(settings, version, free=("truncation", "broker.epochs"))
    own = own_truncation(version)
    if ERAS[settings.truncation] > ERAS[own]:
        raise PlanError(
            f"truncation={settings.truncation} is younger than Apache Kafka {version}; write truncation={own}"
        )
    if settings.truncation == _WITHOUT_SEQUENCES and settings.enable_idempotence:
        raise PlanError(
            f"truncation={settings.truncation} means messages as of Kafka {SPOKEN[settings.truncation]}, which have no "
            "sequence numbers; write enable.idempotence=false"
        )


def own_truncation(version: Version) -> Truncation:
    """The way in which this release truncates by itself, as the setting ``truncation`` names it."""
    return [era for era, since in ERAS.items() if version >= since][-1]


def broker_properties(node_place: NodePlace, settings: Settings, brokers: int, version: Version) -> dict[str, str]:
    """The ``server.properties`` of a broker."""
    usual = node_properties(node_place, settings, brokers)
    kept = {name: value for name, value in usual.items() if not _OF_KRAFT.match(name)}
    zookeeper = node_place.controllers[CONTROLLER]
    return kept | {
        "broker.id": str(node_place.node),
        "zookeeper.connect": f"{zookeeper.host}:{zookeeper.port}",
        "zookeeper.session.timeout.ms": str(settings.broker_session_timeout_ms),
        "zookeeper.connection.timeout.ms": "30000",
        # The controller is a broker, whose own thread would hold back what it sends to others.
        "controller.socket.timeout.ms": "3000",
        **_spoken(settings, version),
    }


def _spoken(settings: Settings, version: Version) -> dict[str, str]:
    if settings.truncation not in SPOKEN or settings.truncation == own_truncation(version):
        return {}
    spoken = SPOKEN[settings.truncation]
    return {"inter.broker.protocol.version": spoken, "log.message.format.version": spoken}


def zookeeper_properties(address: Address, data: str, settings: Settings) -> dict[str, str]:
    """The configuration of ZooKeeper; ``data`` is relative to its directory. Times are as quick as the settings'."""
    session_ms = settings.broker_session_timeout_ms
    return {
        "dataDir": data,
        "clientPort": str(address.port),
        "clientPortAddress": address.host,
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
        # A session ends at the first tick after its time-out.
        "tickTime": str(max(session_ms // 8, 50)),
        "minSessionTimeout": str(session_ms),
        "maxSessionTimeout": str(max(session_ms, 30_000)),
    }


#: The first release whose brokers take requests to move leaders and replicas (KIP-183, KIP-455).
ASKED_SINCE: Final = (2, 4, 0)
REASSIGN: Final = "/admin/reassign_partitions"
ELECT: Final = "/admin/preferred_replica_election"
#: One answer of ZooKeeper, which may be frozen; and all that the controller does.
ANSWER_LIMIT_S: Final = 1.5
DONE_LIMIT_S: Final = 4.0
_LOOK_EVERY_S: Final = 0.05
#: Also the time in which a session with a frozen ZooKeeper ends.
_SESSION_S: Final = 2.0


class ZooKeeperAdministration:
    """Asks through ZooKeeper, which is at ``address``."""

    def __init__(self, address: Callable[[], Address]) -> None:
        self._address = address

    def move_leader(self, partition: str, broker: int, replicas: Sequence[int]) -> str:
        """Put ``broker`` first in the order of replicas, then elect it."""
        order = [broker, *(other for other in replicas if other != broker)]
        refused = self.reassign(partition, order)
        return refused or self._wish(ELECT, _wished(partition), "an election is under way")

    def reassign(self, partition: str, replicas: Sequence[int]) -> str:
        """Ask for these replicas in this order. A reassignment under way cannot be called off."""
        return self._wish(REASSIGN, _wished(partition, replicas=list(replicas)), "its replicas are being reassigned")

    def _wish(self, path: str, wish: Mapping[str, Any], busy: str) -> str:
        """Make the node, and wait until the controller has removed it; ``busy`` is the answer if there is one."""
        deadline = time.monotonic() + DONE_LIMIT_S
        try:
            with _session(self._address()) as client:
                client.create_async(path, json.dumps(wish).encode()).get(timeout=ANSWER_LIMIT_S)
                while client.exists_async(path).get(timeout=ANSWER_LIMIT_S):
                    if time.monotonic() > deadline:
                        raise HostError(
                            f"the controller has not done {path} within {DONE_LIMIT_S:.0f} s; see the logs of the nodes"
                        )
                    time.sleep(_LOOK_EVERY_S)
        except NodeExistsError:
            return busy
        except (KazooException, KazooTimeoutError) as error:
            raise HostError(f"ZooKeeper does not answer ({reason_of(error)}); see its log") from error
        return ""


@contextmanager
def _session(address: Address) -> Iterator[KazooClient]:
    client = KazooClient(f"{address.host}:{address.port}", timeout=_SESSION_S)
    try:
        client.start(ANSWER_LIMIT_S)
        yield client
    finally:
        client.stop()
        client.close()


def _wished(partition: str, **more: object) -> dict[str, Any]:
    topic, index = LogPartition.named(partition)
    return {"version": 1, "partitions": [{"topic": topic, "partition": index, **more}]}
