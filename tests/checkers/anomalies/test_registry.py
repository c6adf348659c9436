"""Every anomaly that a verdict can contain is registered and has a specification, and the report can quote it."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Final

import pytest

import checkers
from bench.plants import PLANTS
from checkers.anomalies import ANOMALIES, Allowed, Anomaly
from checkers.cycles import search
from checkers.local import check_one
from checkers.verdicts.promises import promise
from tests.checkers.anomalies.test_against_the_judge import TWINS
from tests.checkers.conformance import BY_NAME, cases, write_history
from tests.checkers.in_memory import judge_events
from tests.checkers.judge.verdict import RULES
from tests.checkers.scenes import Scene
from workloads.settings import Settings

#: Anomalies without a slow twin, with the reason.
WITHOUT_TWIN: Final = {
    "broken-invariant": "the simulated world decides; the checker repeats what the world wrote into the history",
    "out-of-sync": "the simulated world decides; the checker repeats what the world wrote into the history",
    "wedged-client": "the run's producers decide; the checker repeats what they wrote into the history",
}
#: Anomalies that no plant among operations of clients can show, with the reason and the test that plants them.
PLANTED_APART: Final = {
    "empty-transaction-graph": ("the whole history has no dependency", "anomalies/test_planted_anomalies.py"),
    "divergent-replicas": ("it is in the replicas' own logs", "verdicts/test_replicas.py"),
    "divergent-tables": ("it is in the replicas' own logs", "verdicts/test_replica_tables.py"),
    "broken-invariant": ("a simulated world has to see it", "anomalies/test_broken_invariant.py"),
    "out-of-sync": ("a simulated world has to see it", "anomalies/test_out_of_sync.py"),
    "wedged-client": ("a run has to replace a producer", "anomalies/test_wedged_client.py"),
    **dict.fromkeys(
        ("unexplained-output", "stalled-application", "crash-loop", "reordered-effect", "wrong-fold"),
        ("an application's outputs are no operations of clients", "anomalies/test_applications.py"),
    ),
}


@pytest.mark.parametrize("name", list(ANOMALIES))
def test_a_specification_names_its_anomaly_says_what_it_is_and_gives_an_example(name: str) -> None:
    anomaly = ANOMALIES[name]
    first, _, rest = anomaly.specification.partition("\n")
    assert anomaly.name == name
    assert first.startswith(f"``{name}``: ")
    assert first.endswith(".")
    assert "Example" in rest
    assert "Findings" in rest


def test_conformance_cases_find_no_anomaly_without_a_specification(tmp_path: Path) -> None:
    names: set[str] = set()
    for name in (*cases("analysis"), *cases("version-orders")):
        names |= set(check_one(write_history(BY_NAME[name], tmp_path / "history.jsonl")).counts)
    assert names <= ANOMALIES.keys()
    assert {"lost-write", "G1a", "G1c", "G0", "int-send-skip"} <= names, "the cases show what they are for"


def test_a_history_in_which_nothing_depends_on_anything_is_specified_too() -> None:
    scene = Scene()
    scene.send(0, 0)
    assert "empty-transaction-graph" in judge_events(scene.events).counts
    assert "empty-transaction-graph" in ANOMALIES


def test_whatever_the_search_for_cycles_can_emit_is_registered() -> None:
    every = {f"{name}{form}" for name in ("G0", "G1c") for form in ("", "-realtime")}
    assert every <= ANOMALIES.keys()
    assert inspect.getsource(search.find_cycles).count("name + REALTIME") == 1


def test_what_can_be_planted_and_what_promises_speak_of_is_registered() -> None:
    assert {name for plant in PLANTS.values() for name in plant.counts} <= ANOMALIES.keys()
    assert {claim.anomaly for claim in promise(Settings(), ()).claims} <= ANOMALIES.keys()


def test_every_anomaly_has_a_slow_twin_or_says_why_not() -> None:
    """A new anomaly fails here until exactly one of the judge's RULES, TWINS and WITHOUT_TWIN has it."""
    listed = [*RULES, *TWINS, *WITHOUT_TWIN]
    assert set(ANOMALIES) - set(listed) == set(), "add each to the judge, or to WITHOUT_TWIN with a reason"
    assert sorted(listed) == sorted(ANOMALIES)


def test_every_anomaly_is_planted_somewhere() -> None:
    """A new anomaly fails here until it is in PLANTS, or in PLANTED_APART with a test that names it."""
    planted = [*PLANTS, *PLANTED_APART]
    assert set(ANOMALIES) - set(planted) == set(), "add each to PLANTS, or to PLANTED_APART with a reason and a test"
    assert sorted(planted) == sorted(ANOMALIES)
    for name, (_, test) in PLANTED_APART.items():
        assert f'"{name}"' in (Path(__file__).parent.parent / test).read_text(encoding="utf-8"), name


def test_every_kernel_module_is_in_the_registry() -> None:
    """A module of an anomaly that nobody lists would never look at a history."""
    defined: list[Anomaly] = []
    for file in (Path(checkers.__file__).parent / "anomalies").glob("[a-z]*.py"):
        for constant in vars(importlib.import_module(f"checkers.anomalies.{file.stem}")).values():
            several = constant if isinstance(constant, tuple) else (constant,)
            defined += [anomaly for anomaly in several if isinstance(anomaly, Anomaly)]
    assert sorted(anomaly.name for anomaly in defined) == sorted(ANOMALIES)


def test_what_the_field_allows_is_a_fact_of_the_anomaly() -> None:
    allowed = {name: anomaly.allowed for name, anomaly in ANOMALIES.items() if anomaly.allowed is not Allowed.NEVER}
    assert (
        allowed.items()
        >= {
            "int-send-skip": Allowed.ALWAYS,
            "wedged-client": Allowed.ALWAYS,
            "unfounded-out-of-order": Allowed.ALWAYS,
            "G0": Allowed.ALWAYS,
            "G0-realtime": Allowed.ALWAYS,
            "poll-skip": Allowed.SUBSCRIBED,
            "nonmonotonic-poll": Allowed.SUBSCRIBED,
            "G1c": Allowed.ORDERED_BY_OVERWRITES,
            "G1c-realtime": Allowed.ORDERED_BY_OVERWRITES,
        }.items()
    )
