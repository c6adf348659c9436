"""Files of runs and campaigns that nobody can read: one sentence with the file's name, and never a wait."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.campaigns.report.loading import read_campaign
from harness.campaigns.soak.ledger import read_ledger, read_verdicts
from harness.campaigns.soak.nights import NIGHT_FILE, read_night
from harness.ground.errors import ResultsError
from harness.records.files import CAMPAIGN_FILE, LEDGER_FILE, RUN_FILE, VERDICTS_FILE, read_json
from harness.records.run_record import read_record, recorded_world
from harness.records.searched_scopes import SCOPES_FILE, read_searched_scopes
from harness.records.verdict_lines import read_lines

Damage = Callable[[Path], object]

#: Contents that no version wrote: what is no JSON, not in UTF-8, or so deep that reading it ends Python's stack.
CONTENTS: dict[str, bytes] = {
    "text": b"{torn\n",
    "another encoding": b'{"world": {"kind": "\xe4"}, "history": "\xe4", "name": "\xe4", "began": "\xe4"}\n',
    "deep": b'{"ended": {"report": {"a":' + b"[" * 200_000 + b"\n",
}
#: Things under a file's name that are no file.
OTHERS: dict[str, Damage] = {
    "pipe": os.mkfifo,
    "link to itself": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to(os.devnull),
    "directory": Path.mkdir,
}
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "run": (RUN_FILE, read_record),
    "world": (RUN_FILE, recorded_world),
    "searches": (SCOPES_FILE, read_searched_scopes),
    "cells": (CAMPAIGN_FILE, lambda directory: read_json(directory / CAMPAIGN_FILE, dict[str, str], "restore it")),
    "campaign": (CAMPAIGN_FILE, read_campaign),
    "night": (NIGHT_FILE, read_night),
}
OF_LINES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "verdicts": (VERDICTS_FILE, read_lines),
    "ledger": (LEDGER_FILE, lambda directory: list(read_ledger(directory))),
    "verdicts of a soak": (VERDICTS_FILE, lambda directory: list(read_verdicts(directory))),
}


def refusal(directory: Path, reader: Callable[[Path], object]) -> str:
    """The reader's words about the directory's file; other files that it needs are there."""
    (directory / "runs").mkdir()
    with pytest.raises(ResultsError) as caught:
        reader(directory)
    return str(caught.value)


def beside(directory: Path, name: str) -> None:
    """Files that are read before the one that is ``name``."""
    if name == CAMPAIGN_FILE:
        (directory / VERDICTS_FILE).touch()


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("reader", [*READERS, *OF_LINES])
def test_a_damaged_file_is_one_sentence_with_its_name(tmp_path: Path, reader: str, content: str) -> None:
    name, read = (READERS | OF_LINES)[reader]
    beside(tmp_path, name)
    (tmp_path / name).write_bytes(CONTENTS[content])
    said = refusal(tmp_path, read)
    assert f"{tmp_path / name} cannot be read (" in said
    assert "; " in said.rpartition(")")[2], "it says what to do"


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, reader: str, other: str) -> None:
    name, read = READERS[reader]
    beside(tmp_path, name)
    OTHERS[other](tmp_path / name)
    assert str(tmp_path / name) in refusal(tmp_path, read)


def test_a_file_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"holds no a\.json; make it"):
        read_json(tmp_path / "a.json", msgspec.Raw, "make it")
