"""No option that is a number takes one that is none, or that nobody can mean."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from harness.cli.app import cli, exit_code_of

ABSURD = ("nan", "inf", "1e400", "1" * 30, "-" + "1" * 30, "-inf", "many")


def numeric(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The options of a command and its subcommands that are numbers."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            if subcommand := command.get_command(click.Context(command), name):
                yield from numeric(subcommand, *words, name)
    for parameter in command.params:
        if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
            yield words, parameter.opts[-1]


NUMERIC = [*numeric(cli)]


def test_there_are_such_options() -> None:
    assert {(("hunt",), "--seconds"), (("soak",), "--tries"), (("cluster", "up"), "--brokers")} < {*NUMERIC}


@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize(("command", "option"), NUMERIC)
def test_what_nobody_can_mean_is_refused_with_a_sentence(
    command: tuple[str, ...], option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of([*command, option, value]) == 64
    told = " ".join(capsys.readouterr().err.split())
    assert option in told
    assert any(words in told for words in ("takes a", "is too large", "is too small", "nan is not a number")), told


@pytest.mark.parametrize("value", [*ABSURD, "1e400h", "nanGB", "1" * 400 + "d", "1" * 400 + "GB", "-1h", "-1GB"])
@pytest.mark.parametrize("option", ["--for", "--disk", "--memory"])
def test_so_is_a_time_or_a_size_with_its_unit(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["soak", "plans/demo.toml", "--for", "1s", option, value]
    assert exit_code_of(words) == 64
    assert "for example " in capsys.readouterr().err
