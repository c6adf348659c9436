"""Rows of several stored histories, laid end to end."""

from pathlib import Path

import pytest

from checkers.columns.loading import Unit, load_units
from tests.checkers.anomalies.test_group_retention import ForgettingScene
from tests.checkers.anomalies.test_groups import KEY, A, B, C, GroupScene, scene
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import Scene
from tests.workloads.history.event_strategies import record_all
from workloads.history import CLUSTERED, NONE, HistoryWriter
from workloads.operations import Event, EventType, Function


def stored(directory: Path, made: Scene) -> str:
    with HistoryWriter(directory, "run") as writer:
        record_all(writer, made.events)
    return str(directory / CLUSTERED)


def test_each_history_keeps_the_generations_of_its_groups(tmp_path: Path) -> None:
    plain = Scene()
    plain.send(0, 0)
    untold, told = scene(), scene()
    untold.deal(C, KEY)
    untold.deal(A, KEY)
    for member, generation in ((A, 4), (B, 6), (C, 5)):
        told.deal(member, KEY, generation=generation)
    made = [stored(tmp_path / str(number), each) for number, each in enumerate((plain, told, untold, told))]
    log = load_units([Unit(number, path) for number, path in enumerate(made)]).log
    assert log.groups is not None
    assert log.generation is not None
    rows = log.groups.assigned
    generations = [(int(log.partition[row]), log.group_of(row), int(log.generation[row])) for row in rows.tolist()]
    assert generations == [
        (1, "g", 4), (1, "g", 6), (1, "h", 5),
        (2, "h", NONE), (2, "g", NONE),
        (3, "g", 4), (3, "g", 6), (3, "h", 5),
    ]  # fmt: skip
    assert load_units([Unit(0, made[2])]).log.generation is None


def test_each_history_keeps_the_retention_of_its_groups(tmp_path: Path) -> None:
    silent, telling = GroupScene(), ForgettingScene(5_000)
    silent.deal(A, KEY)
    telling.deal(A, KEY)
    telling.kept_ms = None
    telling.deal(C, KEY)
    made = [stored(tmp_path / str(number), each) for number, each in enumerate((silent, telling, silent))]
    groups = load_units([Unit(number, path) for number, path in enumerate(made)]).log.groups
    assert groups is not None
    assert groups.retention_us is not None
    told = {
        (int(groups.log.partition[row]), groups.log.group_of(row)): int(groups.segment[row]) for row in groups.assigned
    }
    kept_us = {owner: int(groups.retention_us[segment]) for owner, segment in told.items()}
    assert kept_us == {(0, "g"): NONE, (1, "g"): 5_000_000, (1, "h"): NONE, (2, "g"): NONE}
    alone = load_units([Unit(0, made[0])]).log.groups
    assert alone is not None
    assert alone.retention_us is None


@pytest.mark.parametrize("generation", ["-1", "2147483648", "1e400", '"seven"'])
def test_a_generation_of_another_tool_that_none_can_be_is_passed_over(generation: str) -> None:
    events = [
        Event(
            time_us=number,
            process=number,
            instance=number,
            type=EventType.OK,
            function=Function.REBALANCE,
            partitions=(KEY,),
            detail=f'{{"group":"g","generation":{generation}}}',
        )
        for number in range(2)
    ]
    assert "stale-generation" not in judge_events(events).counts
