"""Kafka before KRaft: brokers that keep their metadata in ZooKeeper, and elect a controller among themselves.

Kept for the stories of earlier eras. Until 4.0 a broker can be set to speak as an older release did, and then it also
truncates as that one did: ``inter.broker.protocol.version`` with the message format of the time is the switch between
the eras of truncation (rules 16 and 17), on one and the same release. No effects here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.errors import PlanError
from harness.hosts import Address
from harness.worlds.kafka.properties import NodePlace, node_properties, possible
from harness.worlds.kafka.releases import STARTED_SINCE, ZOOKEEPER_GONE_SINCE, Version
from nemesis.cluster import CONTROLLER
from workloads import Settings, Truncation

MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
#: Since when brokers truncate in which way, unless they are set to speak as an older one; oldest first (rules 16, 17).
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
_OF_KRAFT: Final = ("process.roles", "node.id", "listener.security.protocol.map")


def possible_with_zookeeper(settings: Settings, version: Version) -> None:
    """Refuse what cannot be with ZooKeeper.

    Raises:
        PlanError: with the setting to change.
    """
    if version >= ZOOKEEPER_GONE_SINCE:
        raise PlanError(f'Apache Kafka {version} has no ZooKeeper; choose version = "3.5.2", or leave mode out')
    if version < STARTED_SINCE:
        raise PlanError(
            f"Apache Kafka {version} makes no topic when it is asked to (KIP-4), so it is not started here; choose "
            f"{Version(*STARTED_SINCE)} or later"
        )
    if settings.broker_epochs:
        raise PlanError("controllers know no broker.epochs with ZooKeeper (KIP-903); write broker.epochs=false")
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
    """How this release truncates by itself, as the setting ``truncation`` names it."""
    return [era for era, since in ERAS.items() if version >= since][-1]


def broker_properties(place: NodePlace, settings: Settings, brokers: int, version: Version) -> dict[str, str]:
    """What stands in ``server.properties`` of a broker."""
    usual = node_properties(place, settings, brokers)
    kept = {name: value for name, value in usual.items() if not _is_krafts(name)}
    at = place.controllers[CONTROLLER]
    return kept | {
        "broker.id": str(place.node),
        "zookeeper.connect": f"{at.host}:{at.port}",
        "zookeeper.session.timeout.ms": str(settings.broker_session_timeout_ms),
        "zookeeper.connection.timeout.ms": "30000",
        # The controller is a broker, whose own thread would hold back what it sends to others.
        "controller.socket.timeout.ms": "3000",
        **_spoken(settings, version),
    }


def _is_krafts(name: str) -> bool:
    return name in _OF_KRAFT or name.startswith(("controller.quorum.", "controller.listener."))


def _spoken(settings: Settings, version: Version) -> dict[str, str]:
    if settings.truncation not in SPOKEN or settings.truncation == own_truncation(version):
        return {}
    spoken = SPOKEN[settings.truncation]
    return {"inter.broker.protocol.version": spoken, "log.message.format.version": spoken}


def zookeeper_properties(address: Address, data: str, settings: Settings) -> dict[str, str]:
    """What ZooKeeper reads; ``data`` is relative to the process's directory. Times are as quick as the settings'."""
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
