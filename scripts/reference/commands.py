"""The page of commands, from click: what `--help` prints of each."""

from __future__ import annotations

from collections.abc import Iterator

import click

from harness.cli.app import cli
from scripts.reference.markdown import page, table, wrapped

#: Columns of a help text.
COLUMNS = 110
COMPLETION = """
Completion: put `eval "$(_ACKPROOF_COMPLETE=bash_source ackproof)"` into `~/.bashrc`. For zsh write `zsh_source`, in
`~/.zshrc`. For fish write `_ACKPROOF_COMPLETE=fish_source ackproof | source`, in `~/.config/fish/config.fish`.
"""


def commands() -> str:
    """Every command with its arguments and options."""
    every = list(
        _every(cli, click.Context(cli, info_name="ackproof", max_content_width=COLUMNS, **cli.context_settings))
    )
    rows = [(f"[`{path}`](#{path.replace(' ', '-')})", _summary(command)) for path, command, _ in every]
    sections = [f"## {path}\n\n```\n{text}\n```" for path, _, text in every]
    return page(
        "Commands",
        "`harness/cli/`",
        wrapped("Every command prints this with `--help`. Exit codes: [outcomes](outcomes.md#exit-codes)."),
        wrapped(COMPLETION.strip()),
        table(["command", "purpose"], rows),
        *sections,
    )


def _every(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, str]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        # click keeps the help option of the first context; a test that calls a command by itself makes another.
        command._help_option = None  # noqa: SLF001
        own = click.Context(command, info_name=name, parent=context, terminal_width=COLUMNS)
        yield own.command_path, command, command.get_help(own)
        if isinstance(command, click.Group):
            yield from _every(command, own)


def _summary(command: click.Command) -> str:
    return command.get_short_help_str(limit=COLUMNS).rstrip(".")
