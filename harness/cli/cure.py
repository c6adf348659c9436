"""The command `ackproof cure`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.terminal import Terminal, takes_json
from harness.ground.errors import EXIT_HELD, PlanError
from harness.lab.findings import CURES, make_patch
from harness.worlds.kafka.installation import find
from harness.worlds.kafka.releases import DEFAULT_VERSION


@click.command()
@click.argument("number")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The new directory.")
@click.option("--version", default=DEFAULT_VERSION, show_default=True, help="The release of Apache Kafka.")
@click.option(
    "--diff", type=click.Path(path_type=Path), metavar="FILE", help="A cure of your own, as a unified diff: b/PATH."
)
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A tree of the source: of librdkafka, or of a release whose sources Maven does not have.",
)
@takes_json
def cure(terminal: Terminal, number: str, *, out: Path, version: str, diff: Path | None, source: Path | None) -> int:
    """Compile the cure of a finding.

    A cure is a small diff against the source of the release, which Maven has; `ackproof finding NUMBER --patch DIR`
    plays with it. Classes of Kafka are compiled with javac, or Scala's compiler; kafka-python is copied; librdkafka is
    built with gcc.
    """
    cures = {path.stem: path for path in sorted(CURES.glob("*.patch"))}
    if diff is None and number.zfill(3) not in cures:
        raise PlanError(
            f"finding {number} has no cure here; those of {', '.join(cures)} have: or give yours with --diff"
        )
    files = make_patch(diff or cures[number.zfill(3)], find(version), out, source)
    words = f"{out}: {', '.join(files)}; next: ackproof finding {number} --version {version} --patch {out}"
    terminal.answer({"patch": str(out), "files": files, "version": version}, [words])
    return EXIT_HELD
