"""The configuration file of one node: JSON, every key known, every value of its type."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from harness.broker.core.types import BrokerConfig, NodeId, TopicConfig

#: The longest path a Unix-domain socket can be bound to.
SOCKET_PATH_BYTES: Final = 107


class ConfigError(Exception):
    """The configuration file cannot be used; the text names what to correct."""


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node. A broker needs the controller's address; those of other brokers it learns from the controller.

    ``directory`` holds its data, ``control_socket`` is where it is steered, ``trace`` the file of observed facts
    (JSON lines). After ``max_lifetime_s`` it stops by itself: nothing that a test starts runs for ever.
    ``topics`` are the broker's own defaults of topics, which the log of groups has.
    ``cuts`` are links (source, target) that are cut from the first moment on; later ones come over the control socket.
    ``trace_high_watermark_ms`` is the least time between two high-watermark lines of one partition.
    """

    role: Literal["broker", "controller"]
    node: NodeId
    port: int
    directory: str
    control_socket: str
    trace: str
    host: str = "127.0.0.1"
    controller_host: str = "127.0.0.1"
    controller_port: int = 0
    broker: BrokerConfig = BrokerConfig()
    topics: TopicConfig = TopicConfig()
    cluster_id: str = "ackproof"
    rack: str = ""
    auto_create_topics: bool = False
    default_partitions: int = 1
    default_replication_factor: int = 1
    cuts: tuple[tuple[NodeId, NodeId], ...] = ()
    max_lifetime_s: float = 3_600.0
    trace_high_watermark_ms: int = 500
    log_level: Literal["DEBUG", "INFO", "WARNING"] = "INFO"


def spoken(broker: BrokerConfig) -> BrokerConfig:
    """The settings of a broker over sockets. Its clients are offered version 1 of transactions, whatever is set.

    With version 2 a client leaves it to the leader of a log partition to add that to the transaction (KIP-890), which
    the core does not do (rule 37).
    """
    return replace(broker, transaction_version=1)


def read_config(path: Path) -> NodeConfig:
    """The configuration in ``path``.

    Raises:
        ConfigError: the file is missing, is not such JSON, or names a socket whose path is too long.
    """
    try:
        config = msgspec.json.decode(path.read_bytes(), type=NodeConfig)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is not a node's configuration: {error}") from error
    if len(config.control_socket.encode()) > SOCKET_PATH_BYTES:
        raise ConfigError(
            f"control_socket {config.control_socket} has more than {SOCKET_PATH_BYTES} bytes; use a shorter path"
        )
    return config
