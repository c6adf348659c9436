"""The group of commands, and the one place where errors become a message and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import click
from typing_extensions import override

from harness.cli.streams import CLOSED, drop_output, see_to_streams
from harness.cli.terminal import Terminal
from harness.ground.errors import EXIT_HARNESS, EXIT_HELD, EXIT_PLAN, AckproofError, OutputError
from workloads import unknown_name

#: A shell's exit code for a program that Ctrl-C ended.
EXIT_INTERRUPTED: Final = 130

#: Each is in the module of its name.
COMMANDS: Final = (
    "init",
    "plan",
    "assess",
    "run",
    "campaign",
    "soak",
    "upgrade",
    "application",
    "check",
    "report",
    "compare",
    "accept",
    "replay",
    "shrink",
    "explain",
    "stories",
    "conform",
    "finding",
    "cure",
    "release",
    "hunt",
    "explore",
    "heal",
    "doctor",
    "export",
    "import",
    "schema",
    "kafka",
    "cluster",
    "client",
    "clients",
)


class _Commands(click.Group):
    """Commands by name. A module is loaded only when its command is used, so that `doctor` needs no PySpark."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(f"harness.cli.{name}"), name)
        return command if isinstance(command, click.Command) else None

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not (args[0].startswith("-") or ctx.resilient_parsing):
            ctx.fail(unknown_name("command", args[0], dict.fromkeys(COMMANDS)))
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ackproof", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
@click.pass_obj
def cli(terminal: Terminal, *, debug: bool) -> None:
    """Find out which acknowledged writes a replicated log loses, under which settings, and why.

    \b
    Exit codes:
      0    nothing broken
      1    a promise was broken, or a log stalled
      2    it is not known
      64   the plan or the command is wrong
      69   Apache Kafka cannot be fetched from here, or no server answers
      70   the harness itself failed
      130  interrupted
    """
    terminal.debug = debug


def main(arguments: Sequence[str] | None = None, command: click.Command = cli, name: str = "ackproof") -> NoReturn:
    """The console script, or another group of commands by its ``name``; ends the process with an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    if not see_to_streams():
        Terminal().complain(CLOSED)
    code = exit_code_of(arguments, command, name)
    # The command is done. Spark ends within seconds; a signal would print where Python is, and take the exit code away.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def exit_code_of(arguments: Sequence[str] | None = None, command: click.Command = cli, name: str = "ackproof") -> int:
    """Do what the arguments say and answer with the exit code; every error is a line on standard error."""
    terminal = Terminal()
    try:
        code = command.main(args=arguments, prog_name=name, standalone_mode=False, obj=terminal)
        sys.stdout.flush()
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return EXIT_PLAN
    except OutputError as error:
        drop_output()
        terminal.complain(str(error))
        return error.exit_code
    except AckproofError as error:
        terminal.complain(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        terminal.complain(str(error.__cause__ or error) or "interrupted")  # click makes an Abort of Ctrl-C
        return EXIT_INTERRUPTED
    except Exception as error:
        terminal.complain(_unexpected(error, show=terminal.debug))
        return EXIT_HARNESS
    return code if isinstance(code, int) else EXIT_HELD


def _unexpected(error: Exception, *, show: bool) -> str:
    trace = "".join(traceback.format_exception(error))
    line = f"unexpected {type(error).__name__}: {' '.join(str(error).split()) or 'no text'}"
    if show:
        return f"{line}\n{trace}"
    handle, path = tempfile.mkstemp(prefix="ackproof-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(trace)
    return f"{line}; the traceback is in {Path(path)} (or use ackproof --debug), please report it"


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
