"""Somebody's cluster behind TLS and SASL, on loopback: its certificates, its users, and the way in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from harness.plan import Kafka, RunSpec
from harness.runs.cluster.authority import Authority
from harness.worlds.hosts import Address, LoopbackHost, Ports
from harness.worlds.kafka.distribution import KafkaDistribution
from harness.worlds.real import RealWorld, StartedCluster
from harness.worlds.real.nodes import Nodes
from nemesis.cluster import CONTROLLER
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

USER, STRANGER = "alice", "mallory"
PASSWORD = "correct-horse-4711"  # noqa: S105
_OP, _KIND = ACLOperation, ResourceType
#: Rights of a run's user by docs/start/your-cluster.md: the kind, the name or how it begins, and the operations.
RIGHTS = (
    (_KIND.TOPIC, "ours-", (_OP.CREATE, _OP.DELETE, _OP.READ, _OP.WRITE, _OP.DESCRIBE_CONFIGS)),
    (_KIND.CLUSTER, "kafka-cluster", (_OP.ALTER, _OP.DESCRIBE_CONFIGS)),
    (_KIND.GROUP, "ackproof-no-group-", (_OP.DESCRIBE,)),
)
#: The address of the certificate of the listener FALSE.
ELSEWHERE = "127.99.99.99"


class Ways(NamedTuple):
    """Bootstrap servers by listener: open, mutual TLS, TLS with a user and a password, TLS with another's name."""

    plain: list[str]
    mutual: list[str]
    sasl: list[str]
    false_name: list[str]


class SecuredCluster:
    """Brokers with three listeners each besides the one of their world, at ``ports``."""

    def __init__(self, directory: Path, ports: Ports, brokers: int = 3) -> None:
        spec = RunSpec(
            world=Kafka(),
            cell="cell/kill",
            family="kill",
            # Whoever leaves the in-sync replicas of the topic is eligible.
            settings=Settings(min_insync_replicas=brokers, eligible_leader_replicas=True).to_mapping(),
            workload=WorkloadPlan(topic="theirs", partitions=1),
            faults=FaultPlan(),
            seed=1,
            brokers=brokers,
        )
        self.authority = Authority(directory, "authority")
        self.stranger = Authority(directory, "stranger")
        self.client = self.authority.sign("client")
        self._ports = ports
        self._ends: dict[Address, list[Address]] = {}
        self.world = _world(spec, directory, self._listeners)
        self.world.open()
        addresses = [self.world.target.processes.nodes.host.address(broker) for broker in range(brokers)]
        servers = [[f"{end.host}:{end.port}" for end in self._ends[address]] for address in addresses]
        self.ways = Ways(*map(list, zip(*servers, strict=True)))
        with KafkaAdminClient(bootstrap_servers=self.ways.plain) as admin:
            for user in (USER, STRANGER):
                made = UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, PASSWORD)
                assert admin.alter_user_scram_credentials([made]) == {user: None}
            admin.create_acls([right for who in (USER, "CN=client") for right in _rights(who)])

    def topics(self) -> list[str]:
        """All but Kafka's own: librdkafka asks for its group's coordinator, and then there is __consumer_offsets."""
        with KafkaAdminClient(bootstrap_servers=self.ways.plain) as admin:
            return sorted(name for name in admin.list_topics() if not name.startswith("__"))

    def _listeners(self, host: str, port: int) -> dict[str, str]:
        if (own := Address(host, port)) not in self._ends:
            self._ends[own] = [own, *(self._ports.take(host) for _ in range(3))]
        names = ("PLAINTEXT", "SSL", "SASL_SSL", "FALSE")
        ends = zip(names, self._ends[own], strict=True)
        listeners = ",".join(f"{name}://{end.host}:{end.port}" for name, end in ends)
        true, false = self.authority.sign(f"broker-{port}", host), self.authority.sign(f"other-{port}", ELSEWHERE)
        protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,FALSE:SSL"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        return {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": protocols,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(true),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.false.ssl.keystore.type": "PEM",
            "listener.name.false.ssl.keystore.location": str(false),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{plain} user_{USER}="{PASSWORD}";',
        }


class _Secured(KafkaDistribution):
    def __init__(self, spec: RunSpec, listeners: Callable[[str, int], dict[str, str]]) -> None:
        super().__init__(spec)
        self._listeners = listeners

    def properties(self, nodes: Nodes, node: int) -> dict[str, str]:
        guarded = super().properties(nodes, node) | {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        return guarded if node >= CONTROLLER else guarded | self._listeners(*nodes.host.address(node))


def _world(spec: RunSpec, directory: Path, listeners: Callable[[str, int], dict[str, str]]) -> RealWorld:
    return RealWorld(spec, directory, StartedCluster(spec, directory, _Secured(spec, listeners), LoopbackHost))


def _rights(user: str) -> list[ACL]:
    def right(kind: ResourceType, name: str, operation: ACLOperation) -> ACL:
        begins = ACLResourcePatternType.PREFIXED if name.endswith("-") else ACLResourcePatternType.LITERAL
        return ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name, begins))

    return [right(kind, name, operation) for kind, name, operations in RIGHTS for operation in operations]
