"""The archive of class data (JEP 350) of a release and a Java: made once, kept beside its jars, used at every start.

It is made by starting a node alone and ending it in order. One process makes it, others that need it wait for its end.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.ground.errors import HarnessError, HostError, PortError
from harness.worlds.hosts import ADDRESS_TAKEN, PORT_CHOICES, Ports
from harness.worlds.kafka.formatting import FirstFeatures, first_files, format_directory, new_id
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import LogFiles, archive_command, archive_path
from harness.worlds.kafka.properties import NodePlace, as_text, lone_properties
from harness.worlds.kafka.releases import modes
from workloads import Settings

#: The line that a node logs when it serves.
STARTED: Final = b"Kafka Server started"
_START_LIMIT_S: Final = 90.0
#: A shutdown in order, then writing fifty megabytes: more than a minute in a container on a machine with a load of 70.
_END_LIMIT_S: Final = 180.0
#: Another process makes it: one start and one end, as long as they may take.
_TURN_LIMIT_S: Final = _START_LIMIT_S + _END_LIMIT_S
_LOOK_EVERY_S: Final = 0.1
_HOST: Final = "127.0.0.1"
_WORDS_MAX: Final = 300


def lacks_archive(installation: Installation) -> bool:
    """True of a release that starts faster with an archive than it does now."""
    return "kraft" in modes(installation.version) and not archive_path(installation).is_file()


def make_archive(installation: Installation) -> None:
    """Make the archive where this Java has none yet; later starts use it.

    Releases that cannot start without ZooKeeper go without one.

    Raises:
        HostError: the release does not start on this machine.
        PortError: its ports were taken at every try.
        HarnessError: another process makes it and does not end.
    """
    if not lacks_archive(installation):
        return
    archive = archive_path(installation)
    installation.made.mkdir(exist_ok=True)
    with _turn_of(installation.made):
        for choice in range(PORT_CHOICES):
            if archive.is_file():
                return
            try:
                _make(installation, archive)
            except PortError:
                if choice == PORT_CHOICES - 1:
                    raise


@contextmanager
def _turn_of(directory: Path) -> Iterator[None]:
    """Let one process after the other into the block; the kernel ends the turn of one that dies."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    limit = time.monotonic() + _TURN_LIMIT_S
    try:
        while not _locked(descriptor):
            if time.monotonic() > limit:
                raise HarnessError(
                    f"after {_TURN_LIMIT_S:.0f} s another process still makes the archive of classes in {directory}; "
                    f"end it (fuser {directory} names it), then try again"
                )
            time.sleep(_LOOK_EVERY_S)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: each process makes the archive, which costs time only
    return True


def _make(installation: Installation, archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=installation.made) as name, Ports() as ports:
        directory = Path(name)
        command = _prepared(installation, directory, ports)
        _start_and_end(installation, command, directory / "node.log")
        made = directory / archive.name
        if not made.is_file():
            raise HostError(f"Java wrote no archive of class data; make 100 MB of room in {installation.made}")
        made.replace(archive)


def _prepared(installation: Installation, directory: Path, ports: Ports) -> tuple[str, ...]:
    """A node that is controller and broker in one, so that the classes of both are loaded."""
    controllers = {0: ports.take(_HOST)}
    node_place = NodePlace(node=0, data=directory / "data", address=ports.take(_HOST), controllers=controllers)
    format_directory(node_place.data, 0, new_id(), first_files(installation, FirstFeatures()))
    properties = directory / "server.properties"
    properties.write_text(as_text(lone_properties(node_place, Settings(replication_factor=1))), encoding="utf-8")
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
                output = log.read_text(errors="replace")
                failure = PortError if ADDRESS_TAKEN in output else HostError
                words = _complaint(output)
                raise failure(f"Apache Kafka {installation.version} does not start on this machine: {words}")
            time.sleep(_LOOK_EVERY_S)
        node.terminate()
        node.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(
            "Kafka did not end within three minutes after SIGTERM; try again when this machine is less busy"
        ) from error
    finally:
        node.kill()
        node.wait()


def _complaint(output: str) -> str:
    """The first complaint of the node, in one line; the end of its output where it did not complain."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    complaints = [line for line in lines if re.search(r" (ERROR|FATAL) |Exception|Error: ", line)]
    return (complaints[0] if complaints else " ".join(lines[-3:]) or "its output is empty")[:_WORDS_MAX]
