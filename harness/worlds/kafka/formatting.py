"""Formatted directories of Kafka's nodes, as its own tool writes them: made once a release, copied without a JVM.

Such a directory holds ``meta.properties``, which is four lines of text, and ``bootstrap.checkpoint``, the first records
of the cluster's metadata: feature levels, the same for every cluster of one release. The second is kept beside the
release's jars. Where controllers may join and leave (KIP-853), the first ones find in a third file who the voters are.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.errors import HostError
from harness.hosts import Address, attempt
from harness.machine.durable_files import write_durably
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import tool_command
from harness.worlds.kafka.releases import ELR_SINCE, TRANSACTIONS_2_SINCE, Version
from harness.worlds.real.nodes import Nodes
from nemesis.cluster import CONTROLLER
from workloads import reason_of

META: Final = "meta.properties"
BOOTSTRAP: Final = "bootstrap.checkpoint"
VOTERS: Final = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
_TOOL: Final = "kafka.tools.StorageTool"
_TOOL_LIMIT_S: Final = 120.0
#: The address of a controller that is never started.
_ANY_ADDRESS: Final = Address("127.0.0.1", 9093)
_ELR: Final = "eligible.leader.replicas.version"
#: The feature whose level is the version of transactions.
TRANSACTIONS_FEATURE: Final = "transaction.version"


class FirstFeatures(NamedTuple):
    """The features that a run chooses for the beginning of a cluster, as far as a release knows them.

    ``elr``: eligible leader replicas (KIP-966). ``transactions``: the version of transactions (KIP-890).
    """

    elr: bool = False
    transactions: int = 2

    def of(self, version: Version) -> dict[str, int]:
        """The features that this release knows, each with its level."""
        chosen = {_ELR: (ELR_SINCE, int(self.elr)), TRANSACTIONS_FEATURE: (TRANSACTIONS_2_SINCE, self.transactions)}
        return {name: level for name, (since, level) in chosen.items() if version >= since}


def new_id() -> str:
    """A cluster's or directory's id: 128 random bits in URL-safe base 64, as Kafka writes them.

    It decides nothing in a run; it only has to be unique.
    """
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # Kafka's own never begins with a dash, which command lines would take for an option.
    return "A" + text[1:] if text.startswith("-") else text


def format_directory(
    installation: Installation,
    data: Path,
    node: int,
    cluster: str,
    *,
    features: FirstFeatures,
    directory: str = "",
    voters: bytes = b"",
) -> None:
    """Make ``data`` ready for ``node``'s first start in ``cluster`` with these ``features``.

    ``directory`` is the directory's id, by default a new one, and ``voters`` are the first of :class:`FirstVoters`.
    """
    data.mkdir(parents=True, exist_ok=True)
    # A node that loses its power must find itself formatted afterwards.
    write_durably(data / BOOTSTRAP, bootstrap(installation, features).read_bytes())
    if voters:
        (data / VOTERS).parent.mkdir(exist_ok=True)
        write_durably(data / VOTERS, voters)
    lines = ("version=1", f"cluster.id={cluster}", f"node.id={node}", f"directory.id={directory or new_id()}", "")
    write_durably(data / META, "\n".join(lines).encode())


def directory_id(data: Path) -> uuid.UUID:
    """The id of a formatted directory."""
    named = dict(line.partition("=")[::2] for line in (data / META).read_text(encoding="utf-8").splitlines())
    return uuid.UUID(bytes=base64.urlsafe_b64decode(named["directory.id"] + "=="))


class FirstVoters:
    """The controllers that begin a quorum: each finds all of them, with the ids of their directories, in a file.

    One that is formatted once more has an id of its own and no such file: it joins a quorum.
    """

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._directories: dict[int, str] = {}
        self._checkpoint = b""

    def of(self, nodes: Nodes, node: int) -> tuple[str, bytes]:
        """The id of the directory of a node that is formatted, and what the file :data:`VOTERS` in it holds, if any.

        Raises:
            HostError: Kafka's tool could not make it.
        """
        if not self._checkpoint:
            self._directories = {controller: new_id() for controller in nodes.controllers}
            self._checkpoint = self._made(nodes)
        directory = self._directories.pop(node, "")
        return directory, self._checkpoint if directory else b""

    def _made(self, nodes: Nodes) -> bytes:
        addresses = {node: nodes.host.address(node) for node in self._directories}
        words = [
            f"{node}@{address.host}:{address.port}:{self._directories[node]}" for node, address in addresses.items()
        ]
        first = nodes.controllers[0]
        with tempfile.TemporaryDirectory(prefix="ackproof-format-") as directory:
            data = _formatted(
                self._installation, Path(directory), first, addresses[first], ["--initial-controllers", ",".join(words)]
            )
            return (data / VOTERS).read_bytes()


def bootstrap(installation: Installation, features: FirstFeatures) -> Path:
    """The first metadata records of clusters of this release with these features.

    Raises:
        HostError: Kafka's tool could not make them.
    """
    levels = features.of(installation.version)
    name = "-".join(["bootstrap", *(f"{name.partition('.')[0]}-{level}" for name, level in levels.items())])
    checkpoint = installation.made / f"{name}.checkpoint"
    if not checkpoint.is_file():
        installation.made.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".format-", dir=installation.made) as directory:
            chosen = [word for name, level in levels.items() for word in ("--feature", f"{name}={level}")]
            (_formatted(installation, Path(directory), CONTROLLER, _ANY_ADDRESS, chosen) / BOOTSTRAP).replace(
                checkpoint
            )
    return checkpoint


def _formatted(installation: Installation, directory: Path, node: int, address: Address, more: Sequence[str]) -> Path:
    data, properties = directory / "data", directory / "controller.properties"
    quorum = "bootstrap.servers=" if "--initial-controllers" in more else f"voters={node}@"
    properties.write_text(
        f"process.roles=controller\nnode.id={node}\ncontroller.quorum.{quorum}{address.host}:{address.port}\n"
        f"listeners=CONTROLLER://{address.host}:{address.port}\ncontroller.listener.names=CONTROLLER\n"
        f"listener.security.protocol.map=CONTROLLER:PLAINTEXT\nlog.dirs={data}\n",
        encoding="utf-8",
    )
    words = [_TOOL, "format", "-t", new_id(), "-c", str(properties), *more]
    try:
        done = attempt(tool_command(installation, words), limit_s=_TOOL_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(
            f"Kafka's storage tool did not run ({reason_of(error)}); check that Java works: java -version"
        ) from error
    if done.returncode or not (data / BOOTSTRAP).is_file():
        output = " ".join((done.stderr or done.stdout).split())[-300:]
        raise HostError(
            f"Apache Kafka {installation.version} could not format {data}: {output}; check that there is "
            "room, and that Java works: java -version"
        )
    return data
