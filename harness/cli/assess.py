"""The command `ackproof assess`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from harness import assess as assessing
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.cli.workers import workers_option
from harness.ground.errors import EXIT_BROKEN, PlanError
from harness.ground.machine.versions import cores
from harness.ground.progress import Progress
from harness.plan import Existing, parse_plan, read_plan
from harness.records.files import check_writable, write_file
from harness.worlds.kafka.releases import parse_version
from workloads import in_toml

_NOTHING = (
    "name a cluster (--bootstrap kafka-1.example:9092), or files that Kafka's tools printed, for example the text of "
    "`kafka-topics.sh --describe`"
)


@click.command()
@click.argument("files", nargs=-1, type=path_type, metavar="[FILE]...")
@click.option("--bootstrap", metavar="HOST:PORT,...", default="", help="Addresses of a running cluster.")
@click.option("--access", type=path_type, metavar="PLAN", help="A plan with its TLS and SASL, from init existing.")
@click.option("--producer", "producers", multiple=True, metavar="FILE|NAME=VALUE", help="A producer's configuration.")
@click.option("--consumer", "consumers", multiple=True, metavar="FILE|NAME=VALUE", help="A consumer's configuration.")
@click.option(
    "--client",
    "library",
    default="",
    metavar="NAME[:VERSION]",
    help='The clients\' library: java:3.9.1, librdkafka:2.16.0, "kafkajs 2.2.4".',
)
@click.option("--release", default="", metavar="VERSION", help="The brokers' release, with its patch: 4.3.1.")
@click.option("--require", multiple=True, metavar="TEXT", help="Exit 1 if not met, 2 if not known: 'no loss by kill'.")
@click.option("--baseline", type=path_type, help="An earlier --json: name what is new; exit code 1 if anything is.")
@click.option("--save", type=path_type, help="Save what was read, to be given as FILE later.")
@click.option("--summary", type=path_type, help="Write the answer as Markdown, for the page of a CI job.")
@click.option("--page", type=path_type, help="Write the answer as an HTML page.")
@click.option("--details", is_flag=True, help="Also print promises, settings and every story of each group.")
@workers_option
@takes_json
def assess(
    terminal: Terminal,
    files: Sequence[Path],
    *,
    bootstrap: str,
    access: Path | None,
    producers: Sequence[str],
    consumers: Sequence[str],
    library: str,
    release: str,
    require: Sequence[str],
    baseline: Path | None,
    save: Path | None,
    summary: Path | None,
    page: Path | None,
    details: bool,
    workers: int | None,
) -> int:
    """Say what settings of a cluster keep and lose.

    It only reads, and changes nothing. FILEs are what Kafka's own tools print: kafka-topics.sh --describe,
    kafka-configs.sh --describe, and server.properties. Topics with the same answer are one group. Every scripted
    story is performed under exactly their settings, in virtual time; those of consumer groups for __consumer_offsets,
    once for each --consumer that has a group.id. More: docs/start/your-settings.md.
    """
    for option, file in (("--save", save), ("--summary", summary), ("--page", page)):
        if file is not None:
            check_writable(option, file)
    families = assessing.families_required(require)
    before = None if baseline is None else assessing.read_baseline(baseline)
    writing = assessing.clients_named(producers, "--producer", library) or [assessing.assumed_client(library)]
    reading = assessing.clients_named(consumers, "--consumer", library)
    progress = Progress() if terminal.as_json else terminal.progress()
    cluster = _with_release(_read(files, bootstrap, access, release, progress), release)
    with assessing.Performer(workers or cores()) as performer:
        question = assessing.Question(cluster, writing, reading, families)
        assessment = assessing.assess(question, performer, progress)
    met = tuple(assessing.judged(text, assessment) for text in require)
    assessment = msgspec.structs.replace(assessment, requirements=met)
    if before is not None:
        assessment = assessing.compared(assessment, before)
    if save is not None:
        write_file(save, msgspec.json.format(msgspec.json.encode(cluster), indent=1))
    if summary is not None:
        write_file(summary, assessing.as_markdown(assessment).encode())
    if page is not None:
        write_file(page, assessing.as_page(assessment).encode())
    terminal.answer(assessment, assessing.lines_of(assessment, details=details))
    return EXIT_BROKEN if assessment.new else assessing.exit_code_of(met)


def _read(
    files: Sequence[Path], bootstrap: str, access: Path | None, release: str, progress: Progress
) -> assessing.Cluster:
    if files and (bootstrap or access):
        raise PlanError("name a cluster or files, not both")
    if bootstrap or access:
        return assessing.read_live(_existing(bootstrap, access), progress)
    if not files:
        raise PlanError(_NOTHING)
    reading = assessing.ClusterFiles()
    for file in files:
        reading.add(file)
    return reading.cluster(assessing.Release(parse_version(release)) if release else None)


def _existing(bootstrap: str, access: Path | None) -> Existing:
    """The cluster as a plan would have it: its servers, and the way in."""
    planned = None if access is None else _world(access)
    if not bootstrap:
        assert planned is not None  # noqa: S101 - one of the two was given
        return planned
    servers = [server.strip() for server in bootstrap.split(",")]
    text = f'families = ["move"]\n[worlds.kafka]\nhost = "existing"\nbootstrap = {in_toml(servers)}\n'
    world = parse_plan(text, "--bootstrap").worlds[0].world
    assert isinstance(world, Existing)  # noqa: S101 - by the text above
    return world if planned is None else msgspec.structs.replace(world, security=planned.security)


def _world(plan: Path) -> Existing:
    for world in read_plan(plan).worlds:
        if isinstance(world.world, Existing):
            return world.world
    raise PlanError(f'{plan} has no existing cluster; write [worlds.kafka] with host = "existing" into it')


def _with_release(cluster: assessing.Cluster, release: str) -> assessing.Cluster:
    if not release:
        return cluster
    version = parse_version(release)
    if cluster.release is not None and cluster.release.version[:2] != version[:2]:
        raise PlanError(f"--release {release}: the brokers run {cluster.release.words}; leave --release out")
    return msgspec.structs.replace(cluster, release=assessing.Release(version))
