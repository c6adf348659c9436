"""Performers for campaigns that are about something else: each does what the run's family says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.campaigns.campaign.pool import PerformRun

#: The module that worker processes import. Behaviour is chosen by the run's family, so one campaign can hold several.
FAKES = """
import os, time
from harness.ground.errors import ResultsError
from harness.records.run_record import Ended, write_record
from harness.records.journal import FILE_NAME, Journal

def perform(spec, directory):
    directory.mkdir(parents=True)
    write_record(directory, spec, Ended(status="running"))
    return BEHAVIOUR[spec.family](spec, directory)

def completed(spec, directory):
    (directory / "niceness").write_text(str(os.nice(0)))
    ended = Ended(status="completed", wall_ms=7)
    write_record(directory, spec, ended)
    return ended

def failed(spec, directory):
    ended = Ended(status="harness-failed", reason="broker 1 died at its start; read logs/1.log")
    write_record(directory, spec, ended)
    return ended

def dies(spec, directory):
    os._exit(9)

def hangs(spec, directory):
    try:
        (directory / "hanging").touch()
        time.sleep(600)
    finally:
        (directory / "closed").touch()

def hangs_and_leaves_a_topic(spec, directory):
    journal = Journal(directory / FILE_NAME)
    journal.intend("topic", {"name": "t-1", "bootstrap": []})
    journal.close()
    hangs(spec, directory)

def disk_is_full(spec, directory):
    raise ResultsError("No space left on device; make room")

def well(spec, directory):
    directory.mkdir(parents=True)
    return completed(spec, directory)

BEHAVIOUR = {
    "kill": completed,
    "pause": failed,
    "partition": dies,
    "restart": hangs,
    "rolling": hangs_and_leaves_a_topic,
    "kill+pause": disk_is_full,
}
"""


class Fakes(NamedTuple):
    """The performers, and the directory that workers import them from."""

    directory: Path
    perform: PerformRun
    well: PerformRun


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    return fakes_in(tmp_path / "modules", monkeypatch)


def fakes_in(modules: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    modules.mkdir()
    (modules / "fake_performers.py").write_text(FAKES)
    monkeypatch.syspath_prepend(modules)
    sys.modules.pop("fake_performers", None)
    import fake_performers  # noqa: PLC0415 - exists only now

    return Fakes(modules, fake_performers.perform, fake_performers.well)


@pytest.fixture
def perform(fakes: Fakes) -> PerformRun:
    return fakes.perform
