"""Worlds side by side: what is compared, what differs, and the reason that is given for it."""

from __future__ import annotations

from functools import partial

import pytest

from checkers.verdicts.cells import Cell, build_cells
from checkers.verdicts.judgement import VerdictLine
from checkers.verdicts.verdict import RunFacts, Verdict
from checkers.verdicts.worlds_compared import compare
from tests.checkers.verdicts import synthetic_verdicts
from workloads.settings import Settings

A1 = Settings(acks=1)
SAFE = Settings(min_insync_replicas=2)
#: A run needs two faults that met writes (exercised_min).
verdict = partial(synthetic_verdicts.verdict, faults=2)


def cells(*verdicts: tuple[str, Settings, Verdict], family: str = "kill") -> list[Cell]:
    return build_cells(
        VerdictLine.of(
            verdict,
            RunFacts(
                cell=f"acks={settings.acks}/{family}",
                family=family,
                world=world,
                seed=1,
                settings=settings.to_mapping(),
                exercised_min=2,
            ),
        )
        for world, settings, verdict in verdicts
    )


def test_equal_outcomes_are_compared_and_not_listed() -> None:
    both = [("processes", A1, verdict(lost_write=3)), ("kafka", A1, verdict(lost_write=90))]
    assert compare(cells(*both)) == compare(cells(*both, ("kafka", SAFE, verdict())))
    assert (compare(cells(*both)).compared, compare(cells(*both)).differences) == (1, ())


def test_one_world_compares_nothing() -> None:
    assert compare(cells(("kafka", A1, verdict()), ("kafka", SAFE, verdict()))).compared == 0


@pytest.mark.parametrize(
    ("settings", "on_kafka", "on_processes", "reason"),
    [
        (SAFE, verdict(lost_write=1), verdict(), "a promise was broken in kafka only"),
        (
            A1,
            verdict(in_fault=0),
            verdict(lost_write=2),
            "nothing can be said of kafka (kill: 0 of at least 2 faults met writes",
        ),
        (A1, verdict(lost_write=2), verdict(), "showed in 1 of 1 runs in kafka and 0 of 1 runs in processes"),
        (SAFE, verdict(fault="powerloss", lost_write=2), verdict(), "other faults took effect"),
    ],
)
def test_a_difference_has_its_reason(settings: Settings, on_kafka: Verdict, on_processes: Verdict, reason: str) -> None:
    (difference,) = compare(cells(("kafka", settings, on_kafka), ("processes", settings, on_processes))).differences
    assert len(set(difference.outcomes.values())) == 2
    assert reason in difference.why
