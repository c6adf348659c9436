"""What is made from a release once, kept beside its jars, and used at every start.

*Metadata of a formatted directory.* Such a directory holds ``meta.properties``, which is four lines of text, and
``bootstrap.checkpoint``, the first records of the cluster's metadata: feature levels, the same for every cluster of one
release. The second is made with Kafka's own tool and copied, so that not every node needs a JVM for it.

*The archive of class data*, for one Java: made by starting a node alone and ending it in order.
"""

from __future__ import annotations

import base64
import re
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.durable import write_durably
from harness.errors import HarnessError, HostError
from harness.hosts import attempt, free_addresses
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import LogFiles, archive_command, archive_path, tool_command
from harness.worlds.kafka.properties import NodePlace, as_text, lone_properties
from harness.worlds.kafka.releases import ELR_SINCE, modes
from nemesis.cluster import CONTROLLER
from workloads import Settings

META: Final = "meta.properties"
BOOTSTRAP: Final = "bootstrap.checkpoint"
_TOOL: Final = "kafka.tools.StorageTool"
_TOOL_LIMIT_S: Final = 120.0
_ELR: Final = "eligible.leader.replicas.version"


def new_id() -> str:
    """A cluster's or directory's id: 128 random bits in URL-safe base 64, as Kafka writes them.

    It decides nothing in a run; it only has to be nobody else's.
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
    place = installation.made / name
    if not place.is_file():
        installation.made.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".format-", dir=installation.made) as directory:
            (_formatted(installation, Path(directory), elr=elr) / BOOTSTRAP).replace(place)
    return place


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
        raise HostError(f"Kafka's storage tool did not run ({error}); see that Java works: java -version") from error
    if done.returncode or not (data / BOOTSTRAP).is_file():
        output = " ".join((done.stderr or done.stdout).split())[-300:]
        raise HostError(f"Apache Kafka {installation.version} could not format a directory: {output}")
    return data


#: What a node logs when it serves.
STARTED: Final = b"Kafka Server started"
_START_LIMIT_S: Final = 90.0
#: A shutdown in order, then writing fifty megabytes: more than a minute in a container on a machine with a load of 70.
_END_LIMIT_S: Final = 180.0
_LOOK_EVERY_S: Final = 0.1
_HOST: Final = "127.0.0.1"
_WORDS_MAX: Final = 300


def make_archive(installation: Installation) -> None:
    """Make the archive if there is none for this Java yet; later starts use it.

    Releases that cannot start without ZooKeeper go without one.

    Raises:
        HostError: the release does not start on this machine.
    """
    place = archive_path(installation)
    if place.is_file() or "kraft" not in modes(installation.version):
        return
    installation.made.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=installation.made) as name:
        directory = Path(name)
        command = _prepared(installation, directory)
        _start_and_end(installation, command, directory / "node.log")
        archive = directory / place.name
        if not archive.is_file():
            raise HostError(f"Java wrote no archive of class data; see that {installation.made} has 100 MB of room")
        archive.replace(place)


def _prepared(installation: Installation, directory: Path) -> tuple[str, ...]:
    """A node that is controller and broker in one, so that the classes of both are loaded."""
    addresses = free_addresses(_HOST, [0, CONTROLLER])
    place = NodePlace(node=0, data=directory / "data", address=addresses[0], controllers={0: addresses[CONTROLLER]})
    format_directory(installation, place.data, 0, new_id(), elr=False)
    properties = directory / "server.properties"
    properties.write_text(as_text(lone_properties(place, Settings(replication_factor=1))), encoding="utf-8")
    files = LogFiles(directory / "log.properties", directory / "gc.log")
    files.write(installation)
    return archive_command(installation, properties, files, directory / archive_path(installation).name)


def _start_and_end(installation: Installation, command: Sequence[str], log: Path) -> None:
    with log.open("wb") as out:
        node = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)  # noqa: S603 - Kafka
    try:
        limit = time.monotonic() + _START_LIMIT_S
        while STARTED not in log.read_bytes():
            if node.poll() is not None or time.monotonic() > limit:
                words = _complaint(log.read_text(errors="replace"))
                raise HostError(f"Apache Kafka {installation.version} does not start on this machine: {words}")
            time.sleep(_LOOK_EVERY_S)
        node.terminate()
        node.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(
            "Kafka did not end within three minutes after SIGTERM; is this machine very busy?"
        ) from error
    finally:
        node.kill()
        node.wait()


def _complaint(output: str) -> str:
    """What the node complained of first, in one line; the end of its output where it did not complain."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    complaints = [line for line in lines if re.search(r" (ERROR|FATAL) |Exception|Error: ", line)]
    return (complaints[0] if complaints else " ".join(lines[-3:]) or "its output is empty")[:_WORDS_MAX]
