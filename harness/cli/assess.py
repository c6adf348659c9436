"""The command `ackproof assess`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from harness.assess import Cluster, ClusterFiles, Release, Stage, assumed_client, clients_named, lines_of
from harness.assess import assess as assessed
from harness.cli.numbers import BoundedNumber
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.errors import EXIT_HELD, PlanError
from harness.machine.versions import cores
from harness.progress import Progress
from harness.worlds.kafka.releases import parse_version


@click.command()
@click.argument("files", nargs=-1, type=path_type, metavar="[FILE]...")
@click.option("--producer", "producers", multiple=True, metavar="FILE|NAME=VALUE", help="A producer's configuration.")
@click.option("--consumer", "consumers", multiple=True, metavar="FILE|NAME=VALUE", help="A consumer's configuration.")
@click.option(
    "--client", "library", default="", metavar="NAME[:VERSION]", help="Their library: java:3.9.1, librdkafka:2.16.0."
)
@click.option("--release", default="", metavar="VERSION", help="The brokers' release, where it is not read: 4.3.1.")
@click.option(
    "--workers", type=BoundedNumber("workers"), help="Processes at a time; by default as many as there are cores."
)
@takes_json
def assess(
    terminal: Terminal,
    files: Sequence[Path],
    *,
    producers: Sequence[str],
    consumers: Sequence[str],
    library: str,
    release: str,
    workers: int | None,
) -> int:
    """Say what settings of a cluster keep and lose.

    It reads and changes nothing. FILEs are what Kafka's own tools print: kafka-topics.sh --describe, kafka-configs.sh
    --describe, and server.properties. Topics with the same answer are one group. Every story is performed under exactly
    their settings, in virtual time. See docs/start/your-settings.md.
    """
    cluster = _with_release(_read(files), release)
    writing = clients_named(producers, "--producer", library) or [assumed_client(library)]
    reading = clients_named(consumers, "--consumer", library)
    progress = Progress() if terminal.as_json else terminal.progress()
    with Stage(workers or cores()) as stage:
        assessment = assessed(cluster, writing, reading, stage, progress)
    terminal.answer(assessment, lines_of(assessment))
    return EXIT_HELD


def _read(files: Sequence[Path]) -> Cluster:
    if not files:
        raise PlanError("name files that Kafka's tools printed, for example the text of `kafka-topics.sh --describe`")
    reading = ClusterFiles()
    for file in files:
        reading.add(file)
    return reading.cluster()


def _with_release(cluster: Cluster, release: str) -> Cluster:
    return msgspec.structs.replace(cluster, release=Release(parse_version(release))) if release else cluster
