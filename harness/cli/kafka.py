"""`ackproof kafka install` and `ackproof kafka list`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.terminal import Terminal, takes_json
from harness.errors import EXIT_HELD, PlanError
from harness.worlds.kafka.class_archive import make_archive
from harness.worlds.kafka.installation import Installation, cache_directory, install, install_from, installed
from harness.worlds.kafka.releases import DEFAULT_VERSION, modes


@click.group()
def kafka() -> None:
    """Releases of Apache Kafka for the world "kafka": get them, list them."""


@kafka.command("install")
@click.argument("version", required=False)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="A downloaded release: its .tgz, or the directory it was unpacked to.",
)
@click.pass_obj
def install_command(terminal: Terminal, version: str | None, source: Path | None) -> int:
    """Fetch a release with Maven into the user's cache, beside others that are there."""
    if source is not None and version is not None:
        raise PlanError("a release given with --from has its version in it; leave the version out")
    terminal.note(f"getting Apache Kafka {source or version or DEFAULT_VERSION}")
    release = install_from(source) if source is not None else install(version or DEFAULT_VERSION)
    if "kraft" in modes(release.version):
        terminal.note("starting it once, so that later starts are faster")
    make_archive(release)
    terminal.say(f"Apache Kafka {release.version} is in {release.home}")
    return EXIT_HELD


@kafka.command("list")
@takes_json
def list_command(terminal: Terminal) -> int:
    """Say which releases are there."""
    there = installed()
    terminal.answer(
        [{"version": str(one.version), "home": str(one.home), "modes": modes(one.version)} for one in there],
        map(_line, there) if there else [f"none in {cache_directory()}; get one with: ackproof kafka install"],
    )
    return EXIT_HELD


def _line(one: Installation) -> str:
    chosen = "  (chosen where a plan names none)" if str(one.version) == DEFAULT_VERSION else ""
    return f"{one.version}  {one.home}  {' or '.join(modes(one.version)) or 'too old to be started'}{chosen}"
