"""The client library of a run: Kafka's own from the jars of an installed release, a program, or one in this process."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.errors import HostError, PlanError
from harness.plan import ClientProgram, Kafka, RealTime
from harness.worlds.clients import (
    CLIENTS,
    JAVA,
    ClientLibrary,
    ClientProcess,
    StartedProgram,
    compiler_jars,
    java_library,
    java_process,
    program_library,
    words_of_bridge,
)
from harness.worlds.kafka.installation import Installation, find
from harness.worlds.kafka.jvm import LogFiles, client_command
from harness.worlds.kafka.patches import patched
from harness.worlds.kafka.releases import DEFAULT_VERSION, parse_version

#: The oldest release whose producer takes a group's membership with offsets (KIP-447).
SINCE: Final = (2, 5, 0)


def client_library(world: RealTime, directory: Path, resources: ExitStack) -> ClientLibrary:
    """The client library of a run in ``world``, whose files are in ``directory``; ``resources`` end its JVM.

    Where a plan has several, their clients take turns.

    Raises:
        PlanError: the release is too old.
        HostError: the release is not installed, or its JVM or the program does not start.
    """
    first, *others = (_library(alone, directory, resources) for alone in with_one_library(world))
    return first.taking_turns(others)


def with_one_library(world: RealTime) -> list[RealTime]:
    """This world with each of its client libraries alone, in their order."""
    others = world.other_clients if isinstance(world, Kafka) else ()
    return [
        world,
        *(msgspec.structs.replace(world, client=client, client_version=release) for client, release in others),
    ]


def _library(world: RealTime, directory: Path, resources: ExitStack) -> ClientLibrary:
    if isinstance(world.client, ClientProgram):
        program = ClientProcess(f"the client program {world.client.name}", world.client.command)
        return program_library(StartedProgram(_started(program, resources)))
    if world.client != JAVA:
        return CLIENTS[world.client]
    logs = directory / "logs"
    logs.mkdir(exist_ok=True)
    return java_library(_started(java_virtual_machine(client_release(world), logs), resources))


def _started(process: ClientProcess, resources: ExitStack) -> ClientProcess:
    process.start()
    resources.callback(process.end)
    return process


def java_virtual_machine(release: Installation, logs: Path) -> ClientProcess:
    """A JVM with the client of this release; the configuration of its logging is in the directory ``logs``.

    Raises:
        HostError: there is no compiler for it.
    """
    jars = compiler_jars()
    if not jars:
        raise HostError("PySpark's jars do not have the compiler Janino; install pyspark with pip")
    files = LogFiles(logs / f"java-client-{release.version}.properties", logs / "java-client-gc.log")
    files.write(release, {})
    return java_process(str(release.version), client_command(release, jars, files, words_of_bridge()))


def client_release(world: RealTime) -> Installation:
    """The installed release of the client: the plan's, else that of the world's brokers, else the default one.

    Raises:
        PlanError: it is too old, or there is no such release.
        HostError: it is not installed.
    """
    version = client_version(world)
    if parse_version(version) < SINCE:
        oldest = ".".join(map(str, SINCE))
        raise PlanError(
            f"Kafka's Java client {version} is too old for this harness; set client_version to {oldest} or later"
        )
    return patched(find(version), world)


def client_version(world: RealTime) -> str:
    """The release of the Java client that ``world`` asks for."""
    return world.client_release or DEFAULT_VERSION
