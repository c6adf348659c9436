"""Formatted directories of Kafka's nodes, as its own tool writes them: made once a release, copied without a JVM.

Such a directory holds ``meta.properties``, which is four lines of text, and the first records of the cluster's
metadata: feature levels, the same for every cluster of one release. Until 4.3 every node has them in
``bootstrap.checkpoint``; since 4.4 (KIP-1170) each controller has them as the first checkpoint of its log, and brokers
have none. Where controllers may join and leave (KIP-853), that checkpoint of the first ones also names the voters.
What the tool wrote is kept beside the release's jars, and decides; no release number does.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.ground.errors import HostError
from harness.ground.machine.durable_files import write_durably
from harness.worlds.hosts import attempt
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import tool_command
from harness.worlds.kafka.releases import ELR_SINCE, TRANSACTIONS_2_SINCE, Version
from harness.worlds.real.nodes import Nodes
from nemesis.cluster import CONTROLLER
from workloads import reason_of

META: Final = "meta.properties"
BOOTSTRAP: Final = "bootstrap.checkpoint"
CHECKPOINT: Final = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
#: The files of a formatted directory beside :data:`META`: the content of each, by its path in the directory.
FirstFiles = Mapping[str, bytes]
#: All that the tool writes: forms of a formatted directory with which nodes were seen to start.
_KNOWN: Final = ({META, BOOTSTRAP}, {META, BOOTSTRAP, CHECKPOINT}, {META, CHECKPOINT})
_TOOL: Final = "kafka.tools.StorageTool"
_TOOL_LIMIT_S: Final = 120.0
#: The address of a controller that is never started.
_ANY_SERVER: Final = "127.0.0.1:9093"
_JOINED: Final = "bootstrap.servers="
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


def format_directory(data: Path, node: int, cluster: str, files: FirstFiles, *, directory: str = "") -> None:
    """Make ``data`` ready for ``node``'s first start in ``cluster`` with these ``files``.

    ``directory`` is the directory's id, by default a new one.
    """
    # A node that loses its power must find itself formatted afterwards.
    for name, content in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        write_durably(data / name, content)
    data.mkdir(parents=True, exist_ok=True)
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

    def __init__(self, installation: Installation, features: FirstFeatures) -> None:
        self._installation = installation
        self._features = features
        self._directories: dict[int, str] = {}
        self._files: FirstFiles = {}

    def of(self, nodes: Nodes, node: int) -> tuple[str, FirstFiles]:
        """The id of the directory of a node that is formatted, empty if it may be any, and the first files in it.

        Raises:
            HostError: Kafka's tool could not make them.
        """
        if node not in nodes.controllers:
            return "", of_broker(first_files(self._installation, self._features))
        if not self._files:
            self._directories = {controller: new_id() for controller in nodes.controllers}
            self._files = self._made(nodes)
        if directory := self._directories.pop(node, ""):
            return directory, self._files
        return "", _joining_files(self._installation, self._features)

    def _made(self, nodes: Nodes) -> FirstFiles:
        addresses = {node: nodes.host.address(node) for node in self._directories}
        served = {node: f"{address.host}:{address.port}" for node, address in addresses.items()}
        words = [f"{node}@{server}:{self._directories[node]}" for node, server in served.items()]
        first = _Controller(nodes.controllers[0], served[nodes.controllers[0]], _JOINED)
        with tempfile.TemporaryDirectory(prefix="ackproof-format-") as directory:
            chosen = ["--initial-controllers", ",".join(words), *_chosen(self._features, self._installation)]
            return _files_in(_formatted(self._installation, Path(directory), first, chosen))


def first_files(installation: Installation, features: FirstFeatures) -> FirstFiles:
    """The first files of a controller whose configuration names the voters, in a cluster with these features.

    Raises:
        HostError: Kafka's tool could not make them.
    """
    return _kept(installation, features, "first", f"voters={CONTROLLER}@", ())


def _joining_files(installation: Installation, features: FirstFeatures) -> FirstFiles:
    """The first files of a controller that learns from others who votes."""
    return _kept(installation, features, "joining", _JOINED, ["--no-initial-controllers"])


def _kept(
    installation: Installation, features: FirstFeatures, name: str, quorum: str, more: Sequence[str]
) -> FirstFiles:
    """Files that are the same in every cluster, as they are kept beside the jars under this ``name``."""
    levels = features.of(installation.version).items()
    kept = installation.made / "-".join([name, *(f"{feature.partition('.')[0]}-{level}" for feature, level in levels)])
    if not kept.is_dir():
        installation.made.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".format-", dir=installation.made) as directory:
            chosen = [*more, *_chosen(features, installation)]
            data = _formatted(installation, Path(directory), _Controller(CONTROLLER, _ANY_SERVER, quorum), chosen)
            (data / META).unlink()
            try:
                data.rename(kept)
            except OSError:
                if not kept.is_dir():  # another process was faster, which is as good
                    raise
    return _files_in(kept)


def of_broker(files: FirstFiles) -> FirstFiles:
    """Leave out of a controller's first ``files`` what brokers do not have: their log of the metadata begins empty."""
    return {name: content for name, content in files.items() if name != CHECKPOINT}


def _files_in(data: Path) -> FirstFiles:
    return {name: (data / name).read_bytes() for name in sorted(_names_in(data) - {META})}


def _names_in(data: Path) -> set[str]:
    return {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}


def _chosen(features: FirstFeatures, installation: Installation) -> list[str]:
    levels = features.of(installation.version)
    return [word for name, level in levels.items() for word in ("--feature", f"{name}={level}")]


class _Controller(NamedTuple):
    """A controller that is formatted: its host and port, and the key of its quorum, up to its own host and port."""

    node: int
    server: str
    quorum: str


def _formatted(installation: Installation, directory: Path, controller: _Controller, more: Sequence[str]) -> Path:
    data, properties = directory / "data", directory / "controller.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id={controller.node}\ncontroller.quorum.{controller.quorum}{controller.server}\n"
        f"listeners=CONTROLLER://{controller.server}\ncontroller.listener.names=CONTROLLER\n"
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
    if done.returncode:
        output = " ".join((done.stderr or done.stdout).split())[-300:]
        raise HostError(
            f"Apache Kafka {installation.version} could not format {data}: {output}; check that there is "
            "room, and that Java works: java -version"
        )
    if (names := _names_in(data)) not in _KNOWN:
        raise HostError(
            f"Apache Kafka {installation.version} formats a directory in a way that is unknown here: its tool ended "
            f"well and wrote {', '.join(sorted(names)) or 'no file'}, where {META} was expected, with {BOOTSTRAP}, "
            f"{CHECKPOINT} or both; choose an older release, or install a newer ackproof"
        )
    return data
