"""Writes the counterexample of a scope as a module of a published TLA+ model: python results/reference/explore/tla.

``python results/reference/explore/tla moved missed_epoch.tla --set missed.epoch=kafka`` wrote the module that is kept
beside this folder. How TLC replays it is written in the module.
"""

from __future__ import annotations

from pathlib import Path

import click
from published_model import check_model, tla_files

from harness.cli.terminal import assigned
from harness.ground.errors import AckproofError
from harness.lab.explore import Limits, exhaust, scope_named, steps_of


@click.command()
@click.argument("scope")
@click.argument("module", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--constant", "constants", multiple=True, metavar="NAME=VALUE", help="Change a constant of the scope.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change a setting.")
def export(scope: str, module: Path, constants: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Search SCOPE, and write its counterexample into MODULE and the configuration for TLC beside it."""
    words = [*(f"--constant {each}" for each in constants), *(f"--set {each}" for each in settings)]
    try:
        chosen = scope_named(scope).varied(assigned(constants, "--constant"), assigned(settings, "--set"))
        check_model(chosen, module)
        result = exhaust(chosen, limits=Limits(), workers=1)
        if result.broken is None:
            raise click.ClickException(f"no rule is broken in scope {scope}, so there is no counterexample")
        files = tla_files(
            chosen, result, steps_of(chosen, result), module, " ".join(["ackproof explore", scope, *words])
        )
    except AckproofError as error:
        raise click.ClickException(str(error)) from error
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    click.echo(f"written: {' '.join(map(str, files))}")


if __name__ == "__main__":
    export()
