"""A cluster whose clients need TLS, a user and a password (SASL PLAIN), or both: at a listener of their own.

Brokers, controllers and the harness keep to the open listener. The directory of the guard has what clients need.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from typing_extensions import override

from harness.plan import OPEN, RunSpec, Security, starter
from harness.runs.cluster.authority import Authority
from harness.worlds.clients import CLIENTS, JAVA, for_java
from harness.worlds.hosts import Address, LoopbackHost, Ports
from harness.worlds.kafka.distribution import KafkaDistribution
from harness.worlds.kafka.properties import as_text
from harness.worlds.real.nodes import Nodes
from nemesis.cluster import CONTROLLER
from workloads import in_toml

#: The properties of a client, for Kafka's own tools, and a plan for `assess --access` and `campaign`.
PROPERTIES_FILE: Final = "client.properties"
PLAN_FILE: Final = "existing.toml"
USER: Final = "player"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
#: Lines of the plan for a cluster that exists: they are replaced by its own.
_BOOTSTRAP: Final = re.compile(r"^bootstrap = .*$", re.MULTILINE)
_SECURITY: Final = re.compile(r"^# \[worlds\.kafka\.security\]\n(?:# .*\n)+", re.MULTILINE)


class Doors(NamedTuple):
    """The addresses of brokers for clients, and the files that clients of a guarded cluster need."""

    servers: tuple[str, ...]
    properties: Path | None = None
    plan: Path | None = None


class Guard:
    """Keys, certificates and a password, made for a cluster in a ``directory`` that only this user reads."""

    def __init__(self, directory: Path, *, tls: bool, sasl: bool) -> None:
        directory.mkdir(mode=0o700)
        self._directory = directory.absolute()
        self._authority = Authority(self._directory, "authority") if tls else None
        self._password = secrets.token_hex(16) if sasl else ""
        self.security: Final = self._made()

    def broker_properties(self, broker: int, address: Address) -> dict[str, str]:
        """The properties of the listener of a broker, which is at ``address``."""
        properties = {}
        if self._authority is not None:
            kept = str(self._authority.sign(f"broker-{broker}", address.host))
            properties = {"ssl.keystore.type": "PEM", "ssl.keystore.location": kept}
        if self._password:
            jaas = f'{_PLAIN} user_{USER}="{self._password}";'
            properties |= {"sasl.enabled.mechanisms": "PLAIN", "listener.name.clients.plain.sasl.jaas.config": jaas}
        return properties

    def doors(self, servers: tuple[str, ...]) -> Doors:
        """Write the files for clients of ``servers``."""
        properties, plan = self._directory / PROPERTIES_FILE, self._directory / PLAN_FILE
        login = for_java(CLIENTS[JAVA].login(self.security))
        properties.write_text(as_text({name: str(value) for name, value in login.items()}), encoding="utf-8")
        keys = (f"{name} = {in_toml(value)}\n" for name, value in msgspec.to_builtins(self.security).items())
        text = starter("existing")["existing.toml"].read_text(encoding="utf-8")
        text = _SECURITY.sub("".join(("[worlds.kafka.security]\n", *keys)), text)
        plan.write_text(_BOOTSTRAP.sub(f"bootstrap = {in_toml(servers)}", text), encoding="utf-8")
        return Doors(servers, properties, plan)

    def _made(self) -> Security:
        security = OPEN
        if self._authority is not None:
            security = msgspec.structs.replace(security, protocol="SSL", ca=str(self._authority.file))
        if self._password:
            file = self._directory / "password"
            file.write_text(self._password, encoding="utf-8")
            protocol: Literal["SASL_SSL", "SASL_PLAINTEXT"] = "SASL_SSL" if security.encrypts else "SASL_PLAINTEXT"
            security = msgspec.structs.replace(
                security, protocol=protocol, mechanism="PLAIN", username=USER, password_file=str(file)
            )
        return security


class GuardedKafka(KafkaDistribution):
    """Brokers of Apache Kafka with one more listener, where a ``guard`` stands."""

    def __init__(self, spec: RunSpec, guard: Guard) -> None:
        super().__init__(spec)
        self._guard = guard
        self._ports = Ports()
        self._ends: dict[int, Address] = {}

    def doors(self) -> Doors:
        """The way in, for clients of all brokers that were started."""
        return self._guard.doors(tuple(f"{end.host}:{end.port}" for _, end in sorted(self._ends.items())))

    @override
    def properties(self, nodes: Nodes, node: int) -> dict[str, str]:
        properties = super().properties(nodes, node)
        if node >= CONTROLLER:
            return properties
        end = self._end(nodes, node)
        listeners = f"{properties['listeners']},CLIENTS://{end.host}:{end.port}"
        protocols = f"{properties['listener.security.protocol.map']},CLIENTS:{self._guard.security.protocol}"
        return {
            **properties,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": protocols,
            **self._guard.broker_properties(node, end),
        }

    def close(self) -> None:
        """Give the ports back. Idempotent."""
        self._ports.close()

    def _end(self, nodes: Nodes, node: int) -> Address:
        """The address of the guarded listener: nodes in namespaces have all ports of theirs to themselves."""
        if node not in self._ends:
            host, port = nodes.host.address(node)
            alone = not isinstance(nodes.host, LoopbackHost)
            self._ends[node] = Address(host, port + 1) if alone else self._ports.take(host)
        return self._ends[node]
