"""Pages of `--help`: summaries that are whole sentences, and pages that fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from harness.cli.app import cli, exit_code_of
from harness.plan import plans_here

WIDTH = 80


def contexts(context: click.Context) -> Iterator[click.Context]:
    """The pages of a command and of everything below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from contexts(click.Context(command, parent=context, info_name=name, terminal_width=WIDTH))


TOP = click.Context(cli, info_name="ackproof", terminal_width=WIDTH)
ALL = {context.command_path: context for context in contexts(TOP)}
GROUPS = [path for path, context in ALL.items() if isinstance(context.command, click.Group)]


def test_the_tree_is_walked_to_its_leaves() -> None:
    assert {"ackproof campaign", "ackproof cluster break"} <= ALL.keys()
    assert {"ackproof", "ackproof client", "ackproof cluster", "ackproof kafka"} == set(GROUPS)


@pytest.mark.parametrize("path", GROUPS)
def test_summaries_of_commands_are_whole_sentences_in_one_line(path: str) -> None:
    context = ALL[path]
    assert isinstance(context.command, click.Group)
    listed = context.get_help().partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == context.command.list_commands(context)
    for line in listed:
        sentence = line.split(maxsplit=1)[1]
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert not sentence.endswith("..")


@pytest.mark.parametrize("path", ALL)
def test_every_page_fits_a_terminal(path: str) -> None:
    assert [line for line in ALL[path].get_help().splitlines() if len(line) > WIDTH] == []


def test_the_list_of_plans_has_whole_sentences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code_of(["init", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(len(line) <= WIDTH for line in shown.splitlines())
    _, *entries = (" ".join(entry.split()) for entry in shown.replace("\n ", " ").splitlines())
    assert plans_here().keys() <= {entry.split()[0] for entry in entries}
    assert [entry for entry in entries if not entry.endswith((".", "?"))] == []
    assert any(entry.endswith("by a clean stop of the leader.") for entry in entries)
