"""Worlds, as data: a plan asks for exactly one of these, and a combination that cannot be has no form.

``Simulated | Processes | Kafka | Existing`` say what runs; the hosts ``Loopback | Namespaces | Ssh`` say where the
processes of the second and third live. In ``run.json`` a world is a table with its ``kind`` (and a host with its own).
Two worlds are named "kafka", in plans, paths and reports alike: a cluster that a run starts, and one that exists.
Only this module answers what is asked of every world: virtual or real time, how many runs at a time.
"""

from __future__ import annotations

import shlex
from typing import Annotated, ClassVar, Final, Literal, TypeVar

import msgspec
from typing_extensions import override

from harness.plan.machines import Machine
from harness.plan.operator_commands import OperatorCommands
from harness.plan.security import OPEN, Security
from nemesis.succession import UpgradeBy
from workloads import ClientCapability, GroupProtocol

#: The end of a rolling upgrade: feature levels are raised, or every node goes back, or nothing more is done.
UpgradeEnd = Literal["finalize", "back", "leave"]
#: Libraries whose producers and consumers a real world can use; their adapters are in harness.worlds.clients.
ClientName = Literal["kafka-python", "confluent-kafka", "java"]


class ClientProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that brings its own client library: the words that start it."""

    command: Annotated[tuple[Annotated[str, msgspec.Meta(min_length=1)], ...], msgspec.Meta(min_length=1)]
    """The program and its arguments, `["node", "client.js"]`: no shell reads them. A path counts from the directory in
    which ackproof was started."""

    @property
    def name(self) -> str:
        """The command as one text."""
        return shlex.join(self.command)


#: The choice of a client library in a real world.
ClientChoice = ClientName | ClientProgram
#: Libraries whose producers are idempotent unless they are configured otherwise, or in a way that speaks against it: as
#: Kafka's own client since 3.0 (KIP-679). librdkafka's are not (its CONFIGURATION.md).
IDEMPOTENT_BY_DEFAULT: Final[frozenset[ClientName]] = frozenset({"kafka-python", "java"})
#: The first release in KRaft whose controllers ask unclean.leader.election.enable (rule 14, KAFKA-12670).
UNCLEAN_IN_KRAFT_SINCE: Final = (3, 9)
#: The keepers of Kafka's metadata.
ModeName = Literal["kraft", "zookeeper"]
#: Names of worlds in plans, paths, cells and reports.
WorldName = Literal["simulated", "processes", "kafka"]
#: Names of the places of a world's nodes in plans and reports.
HostName = Literal["loopback", "namespaces", "ssh", "existing", "commands"]

#: Clusters at a time where the plan does not say: they mostly wait, but each is four processes.
PARALLEL_CLUSTERS: Final = 3
#: Runs in virtual time are cheap, and one has room for two scenarios. Ten of them put a cell to the test in a second:
#: silence in some twenty scenarios bounds the share that loses by 14 %, and of a mixture of three families by 36 %.
SIMULATED_RUNS: Final = 10


class Loopback(msgspec.Struct, frozen=True, tag_field="kind", tag="loopback"):
    """Processes of this machine, on ports of 127.0.0.1."""

    name: ClassVar[HostName] = "loopback"


class Namespaces(msgspec.Struct, frozen=True, tag_field="kind", tag="namespaces"):
    """Processes of this machine, each in a network namespace with an address of its own; needs root."""

    name: ClassVar[HostName] = "namespaces"


class Ssh(msgspec.Struct, frozen=True, tag_field="kind", tag="ssh"):
    """Machines that are reached over SSH: one for each node, the controllers' too."""

    name: ClassVar[HostName] = "ssh"
    machines: tuple[Machine, ...]


LocalHost = Loopback | Namespaces
AnyHost = Loopback | Namespaces | Ssh


class _World(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """A world; each answers the same questions.

    Attributes:
        name: in plans, paths, cells and reports.
        together: runs at a time where the plan does not say; None: as many as this machine has cores.
        virtual_time: time passes as fast as it is worked through, and a seed repeats a run byte for byte.
        reference: the nodes are the reference broker's, so a crash is the harness's own fault.
        drawn_runs: runs of a cell where the plan does not say, and chance draws their faults.
        capabilities: those of its clients that its brokers know what to do with; workloads need some.
        protocols: those of consumer groups that its brokers have.
    """

    name: ClassVar[WorldName]
    together: ClassVar[int | None] = PARALLEL_CLUSTERS
    virtual_time: ClassVar[bool] = False
    reference: ClassVar[bool] = False
    drawn_runs: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[ClientCapability]] = frozenset(ClientCapability)
    protocols: ClassVar[tuple[GroupProtocol, ...]] = ("classic", "consumer")

    @property
    def parallel(self) -> int | None:
        """As ``together``; but a machine carries one node at a time."""
        return 1 if self.machines else self.together

    @property
    def host_name(self) -> HostName | None:
        """The name that plans and reports give to the place of its nodes, if there is one."""
        return None

    @property
    def unclean_elections(self) -> bool:
        """True if controllers ask unclean.leader.election.enable, where the plan does not say (rule 14)."""
        return True

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Machines over SSH that the world may touch."""
        return ()

    @property
    def elsewhere(self) -> bool:
        """True of clusters and machines that others use or see: a failure there is not only ours."""
        return bool(self.machines)

    def topic(self, topic: str, seed: int) -> str:  # noqa: ARG002 - only where others use the cluster too
        """The topic of the run with this seed."""
        return topic


class Simulated(_World, frozen=True, kw_only=True, tag="simulated"):
    """The reference broker and models of clients, in one process and in virtual time."""

    name: ClassVar[WorldName] = "simulated"
    virtual_time: ClassVar[bool] = True
    reference: ClassVar[bool] = True
    drawn_runs: ClassVar[int] = SIMULATED_RUNS
    together: ClassVar[int | None] = None  # they never wait
    #: Models do as Kafka's own client where nothing is said or speaks against it.
    idempotent_by_default: ClassVar[bool] = True


class RealTime(_World, frozen=True, kw_only=True):
    """A world with real clients, those of the library or program ``client``.

    ``client_version`` is the release of the Java client; empty: the brokers', or the default one.
    """

    client: ClientChoice = "kafka-python"
    client_version: str = ""

    @property
    def client_name(self) -> str:
        """The library's name, or the program's command."""
        return self.client.name if isinstance(self.client, ClientProgram) else self.client

    @property
    def client_release(self) -> str:
        """The release of the Java client; empty: the default one."""
        return self.client_version

    @property
    def idempotent_by_default(self) -> bool:
        """Its producers are idempotent where nothing is said or speaks against it: the library decides."""
        old_java = self.client == "java" and not _java_is_idempotent(self.client_release)
        return self.client in IDEMPOTENT_BY_DEFAULT and not old_java


def _java_is_idempotent(release: str) -> bool:
    """True if this release of the Java client has idempotent producers by default (KIP-679; KAFKA-13598)."""
    version = _numbers(release)
    return not version or (version >= (3, 0, 1) and version != (3, 1, 0))


def _numbers(release: str) -> tuple[int, ...]:
    """The numbers of a release; none where it is empty."""
    return tuple(int(part) for part in release.split(".") if part)


class Started(RealTime, frozen=True, kw_only=True):
    """A cluster of processes that each run starts and ends, on a ``host``."""

    host: AnyHost = Loopback()

    @property
    @override
    def host_name(self) -> HostName | None:
        return self.host.name


class Processes(Started, frozen=True, kw_only=True, tag="processes"):
    """The reference broker as processes of this machine."""

    name: ClassVar[WorldName] = "processes"
    reference: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[ClientCapability]] = frozenset(ClientCapability) - {ClientCapability.TOMBSTONES}
    protocols: ClassVar[tuple[GroupProtocol, ...]] = ("classic",)
    host: LocalHost = Loopback()


class Kafka(Started, frozen=True, kw_only=True, tag="kafka"):
    """Apache Kafka of the release ``version`` (empty: the default one), its metadata kept as ``mode`` says.

    ``controllers`` is the size of the KRaft quorum; with ZooKeeper one broker is the controller, and it is 1.
    With the family "upgrade" every node becomes one of the release ``upgrade_to`` (empty: as before) in turn, with the
    settings ``change``, each a name and a value; ``upgrade_end`` says what follows, and ``upgrade_by`` if it starts
    again on its disk, or another one takes its place.
    Clients of ``other_clients``, each a library and a release of the Java client, take turns with those of ``client``.
    Classes in the directory ``patch`` (empty: none) come before those of this release, in its nodes and its Java
    client; no plan names it.
    """

    name: ClassVar[WorldName] = "kafka"
    version: str = ""
    mode: ModeName = "kraft"
    controllers: int = 1
    upgrade_to: str = ""
    upgrade_end: UpgradeEnd = "finalize"
    upgrade_by: UpgradeBy = "restart"
    change: tuple[tuple[str, str], ...] = ()
    other_clients: tuple[tuple[ClientName, str], ...] = ()
    patch: str = ""

    @property
    @override
    def client_release(self) -> str:
        return self.client_version or self.version

    def __post_init__(self) -> None:
        """Refuses a quorum of controllers with ZooKeeper (ValueError)."""
        if self.mode == "zookeeper" and self.controllers != 1:
            raise ValueError("with ZooKeeper the controller is one of the brokers")

    @property
    @override
    def unclean_elections(self) -> bool:
        """In an upgrade it is what the newer release does: until then nothing is lost that may be."""
        last = _numbers(self.upgrade_to) or _numbers(self.version)
        return self.mode == "zookeeper" or not last or last >= UNCLEAN_IN_KRAFT_SINCE

    @property
    @override
    def machines(self) -> tuple[Machine, ...]:
        return self.host.machines if isinstance(self.host, Ssh) else ()


class Existing(RealTime, frozen=True, kw_only=True, tag="existing"):
    """An Apache Kafka cluster that exists already, found from its ``bootstrap`` servers ("host:port").

    With ``commands`` of its operator's own its nodes can be broken.
    """

    name: ClassVar[WorldName] = "kafka"
    together: ClassVar[int | None] = 1  # others use the cluster too
    bootstrap: tuple[str, ...]
    security: Security = OPEN
    commands: OperatorCommands | None = None

    @property
    @override
    def host_name(self) -> HostName | None:
        return "commands" if self.commands else "existing"

    @property
    @override
    def elsewhere(self) -> bool:
        return True

    @override
    def topic(self, topic: str, seed: int) -> str:
        """A topic of this run alone, as others use the cluster too."""
        return f"{topic}-{seed}"


AnyWorld = Simulated | Processes | Kafka | Existing
WorldKind = TypeVar("WorldKind", bound=_World)


def require_kind(world: AnyWorld, kind: type[WorldKind]) -> WorldKind:
    """``world``, which is of this ``kind``: a world's own code is only ever given runs of its own.

    Raises:
        TypeError: it is not, which is a mistake in the program.
    """
    if not isinstance(world, kind):
        raise TypeError(f"this is for a world of kind {kind.__name__}, not {type(world).__name__}")
    return world
