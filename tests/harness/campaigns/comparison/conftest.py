"""Campaigns of which only the verdicts are left, made by hand: so many runs, of which the first few lost."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from checkers import Exercise, RunFacts, Verdict, VerdictLine
from checkers.measures.recovery import Recovery
from checkers.measures.writes_met import FaultExercise
from harness.campaigns.comparison import Results, results_of
from harness.records.files import VERDICTS_FILE
from tests.checkers.findings import a_finding
from tests.nemesis.receipt_factory import a_receipt
from workloads.settings import Settings

#: Settings that promise nothing about a leader that dies, and settings that do.
WEAK = Settings(acks=1)
STRONG = Settings(min_insync_replicas=2)
#: The same, of a log that is wrong on purpose.
PLANTED = Settings(min_insync_replicas=2, planted_bug="acknowledge-after-append")
EXERCISED = 300


def run_lines(
    settings: Settings,
    *,
    runs: int = 10,
    losing: int = 0,
    world: str = "simulated",
    cell: str = "c/kill",
    in_fault: int = EXERCISED,
    story: str = "leader",
    anomaly: str = "lost-write",
    mark: str = "",
    **changes: Any,
) -> Iterator[VerdictLine]:
    """Lines of one cell's runs with seeds from 1 on: the last ``losing`` of them show a finding of ``anomaly``.

    With another ``mark`` they are another defect.
    """
    told = {"fate": mark, "invariant": mark}
    for seed in range(1, runs + 1):
        lost = seed > runs - losing
        verdict = Verdict(
            history=f"runs/{world}/{cell}/{seed}",
            valid=not lost,
            counts={anomaly: 1} if lost else {},
            anomalies={anomaly: [a_finding(anomaly, key="ackproof-0", value=7, **told)]} if lost else {},
            exercise=Exercise(attempted=900, acknowledged=800, acknowledged_in_fault=in_fault, drained=True),
            faults=[a_receipt(story=story)],
            fault_exercise=[FaultExercise(sequence=0, acknowledged=in_fault)],
            recovery=Recovery(tried=True),
        )
        facts = RunFacts(
            cell=cell, family="kill", world=world, seed=seed, settings=settings.to_mapping(), exercised_min=1
        )
        yield VerdictLine.of(msgspec.structs.replace(verdict, **changes), facts)


def night(name: str, *lines: Iterator[VerdictLine]) -> Results:
    return results_of(name, (line for each in lines for line in each))


def write_campaign(directory: Path, *lines: Iterator[VerdictLine], packed: bool = False) -> Path:
    """A campaign's directory with its verdicts, as they are or packed."""
    directory.mkdir(parents=True)
    content = b"".join(msgspec.json.encode(line) + b"\n" for each in lines for line in each)
    name = f"{VERDICTS_FILE}.xz" if packed else VERDICTS_FILE
    (directory / name).write_bytes(lzma.compress(content) if packed else content)
    return directory
