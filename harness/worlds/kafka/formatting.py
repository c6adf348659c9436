"""Formatted directories of Kafka's nodes, as its own tool writes them: made once a release, copied without a JVM.

Such a directory holds ``meta.properties``, which is four lines of text, and ``bootstrap.checkpoint``, the first records
of the cluster's metadata: feature levels, the same for every cluster of one release. The second is kept beside the
release's jars.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import Final

from harness.errors import HostError
from harness.hosts import attempt
from harness.machine.durable_files import write_durably
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import tool_command
from harness.worlds.kafka.releases import ELR_SINCE
from workloads import reason_of

META: Final = "meta.properties"
BOOTSTRAP: Final = "bootstrap.checkpoint"
_TOOL: Final = "kafka.tools.StorageTool"
_TOOL_LIMIT_S: Final = 120.0
_ELR: Final = "eligible.leader.replicas.version"


def new_id() -> str:
    """A cluster's or directory's id: 128 random bits in URL-safe base 64, as Kafka writes them.

    It decides nothing in a run; it only has to be unique.
    """
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # Kafka's own never begins with a dash, which command lines would take for an option.
    return "A" + text[1:] if text.startswith("-") else text


def format_directory(installation: Installation, data: Path, node: int, cluster: str, *, elr: bool) -> None:
    """Make ``data`` ready for ``node``'s first start in ``cluster``; ``elr`` as in :func:`bootstrap`."""
    data.mkdir(parents=True, exist_ok=True)
    # A node that loses its power must find itself formatted afterwards.
    write_durably(data / BOOTSTRAP, bootstrap(installation, elr=elr).read_bytes())
    write_durably(data / META, f"version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={new_id()}\n".encode())


def bootstrap(installation: Installation, *, elr: bool) -> Path:
    """The first metadata records of clusters of this release, with or without eligible leader replicas (KIP-966).

    Raises:
        HostError: Kafka's tool could not make them.
    """
    name = f"bootstrap-elr-{int(elr)}.checkpoint" if installation.version >= ELR_SINCE else BOOTSTRAP
    checkpoint = installation.made / name
    if not checkpoint.is_file():
        installation.made.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".format-", dir=installation.made) as directory:
            (_formatted(installation, Path(directory), elr=elr) / BOOTSTRAP).replace(checkpoint)
    return checkpoint


def _formatted(installation: Installation, directory: Path, *, elr: bool) -> Path:
    data, properties = directory / "data", directory / "controller.properties"
    properties.write_text(
        "process.roles=controller\nnode.id=100\ncontroller.quorum.voters=100@127.0.0.1:9093\n"
        "listeners=CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
        f"listener.security.protocol.map=CONTROLLER:PLAINTEXT\nlog.dirs={data}\n",
        encoding="utf-8",
    )
    words = [_TOOL, "format", "-t", new_id(), "-c", str(properties)]
    if installation.version >= ELR_SINCE:
        words += ["--feature", f"{_ELR}={int(elr)}"]
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
