"""`ackproof kafka install` and `ackproof kafka list`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.terminal import Terminal, takes_json
from harness.ground.errors import EXIT_HELD, PlanError
from harness.worlds.kafka.class_archive import lacks_archive, make_archive
from harness.worlds.kafka.installation import Installation, cache_directory, install, install_from, installed
from harness.worlds.kafka.releases import DEFAULT_VERSION, Version, modes, parse_version


@click.group()
def kafka() -> None:
    """Install and list releases of Apache Kafka.

    The world "kafka" runs them.
    """


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
    """Fetch a release with Maven into the user's cache.

    Installed releases stay as they are. VERSION is by default the newest release that ackproof knows.
    """
    if source is not None and version is not None:
        raise PlanError("--from already says which release it is; leave VERSION out")
    release = provide(terminal, source or parse_version(version or DEFAULT_VERSION))
    terminal.say(f"Apache Kafka {release.version} is in {release.home}")
    return EXIT_HELD


def provide(terminal: Terminal, wanted: Version | Path) -> Installation:
    """Have a release installed: of this version, with Maven, or from a downloaded one; errors as of both."""
    before = {str(installation.version) for installation in installed()}
    if str(wanted) not in before:
        terminal.note(f"getting Apache Kafka {wanted}")

    def start_once(release: Installation) -> None:
        if str(release.version) in before:
            terminal.note(f"Apache Kafka {release.version} is installed already; nothing is fetched")
        if lacks_archive(release):
            terminal.note("starting it once, so that later starts are faster")
        make_archive(release)

    return install_from(wanted, start_once) if isinstance(wanted, Path) else install(str(wanted), start_once)


@kafka.command("list")
@takes_json
def list_command(terminal: Terminal) -> int:
    """Say which releases are installed."""
    installations = installed()
    terminal.answer(
        [
            {"version": str(installation.version), "home": str(installation.home), "modes": modes(installation.version)}
            for installation in installations
        ],
        map(_line, installations)
        if installations
        else [f"none in {cache_directory()}; get one with: ackproof kafka install"],
    )
    return EXIT_HELD


def _line(installation: Installation) -> str:
    chosen = "  (chosen where a plan names none)" if str(installation.version) == DEFAULT_VERSION else ""
    started = " or ".join(modes(installation.version)) or "too old to be started"
    return f"{installation.version}  {installation.home}  {started}{chosen}"
