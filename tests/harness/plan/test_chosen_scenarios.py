"""Plans that choose scenarios: the keys that they may have, and what they get told."""

# ruff: noqa: E501 - the sentences are compared whole

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.ground.choices import Choices
from harness.ground.errors import PlanError
from harness.plan import parse_plan, read_plan, with_scenarios
from harness.runs.run import planned

STORIES = sorted((Path(__file__).parents[3] / "plans" / "stories").glob("*.toml"))
KILL = 'families = ["kill"]\n'


def plan(scenarios: str, *, above: str = KILL, faults: str = "", workload: str = "duration_ms = 60_000") -> str:
    return f"{above}[faults]\nscenarios = {scenarios}\n{faults}\n[workload]\n{workload}\n[worlds.simulated]\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            plan('["S1"]'),
            'p.toml: faults.scenarios: unknown scenario "S1"; did you mean "S31"? (there are S01, S03, S04, S06, S08, S09, S10, S11, S12, S21, S22, S25, S31, S33, S34, S35, S36, S39, and FAMILY/NAME)',
        ),
        (
            plan('["pause/blnk"]'),
            'p.toml: faults.scenarios: unknown scenario "pause/blnk"; did you mean "pause/blink"? (there are pause/leader-ahead, pause/last-in-sync, pause/leader-past-session, pause/follower-past-lag, pause/all-followers-past-lag, pause/blink, pause/two-overlapping)',
        ),
        (plan('["S01", "S01"]'), 'p.toml: faults.scenarios: ["S01", "S01"] names one entry twice; leave one out'),
        (plan('"S01"'), 'p.toml: faults.scenarios: takes a list, not "S01"; write ["S01"] for one value'),
        (
            plan('["S09"]'),
            'p.toml: worlds.simulated.faults.scenarios: "S09" is a scenario of the family power; add that family',
        ),
        (
            plan('["S01"]', above='families = ["kill", "pause"]\n'),
            "p.toml: worlds.simulated.faults.scenarios: the family pause has none of these scenarios; leave the family out",
        ),
        (
            plan('["S12"]'),
            "p.toml: worlds.simulated.faults.scenarios: kill/everybody stops 3 brokers at once; raise dead_brokers_max from 2",
        ),
        (
            plan('["S06"]', workload="duration_ms = 5_000"),
            "p.toml: worlds.simulated.faults.scenarios: kill/last-in-sync may take 7350 ms; raise duration_ms from 5000",
        ),
    ],
)
def test_a_wrong_choice_gets_one_sentence_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    assert str(caught.value) == sentence


def test_a_cell_has_those_of_the_chosen_scenarios_that_its_families_have() -> None:
    text = plan('["S01", "S04"]', above='families = ["kill", "partition", "kill+partition"]\n', faults="count = 1")
    shown = {
        run.family: {f"{step.family}/{step.scenario}" for step in planned(run, Choices(run.seed).draw).steps}
        for run in parse_plan(text, "p.toml").runs()
    }
    assert shown["kill"] == {"kill/leader-ahead"}
    assert shown["partition"] == {"partition/zombie-leader"}
    assert shown["kill+partition"] == {"kill/leader-ahead", "partition/zombie-leader"}


def test_a_scenario_may_be_chosen_on_the_command_line() -> None:
    read = parse_plan(plan('["S01"]'), "p.toml")
    assert with_scenarios(read, ["kill/follower"]).worlds[0].faults.scenarios == ("kill/follower",)
    with pytest.raises(PlanError, match="--scenario: scenarios: unknown scenario"):
        with_scenarios(read, ["nonsense"])


def test_older_plans_and_files_of_runs_call_scenarios_stories() -> None:
    older = plan('["S01"]').replace("scenarios = ", "stories = ")
    chosen = parse_plan(plan('["S01"]'), "p.toml").worlds[0].faults
    assert parse_plan(older, "p.toml").worlds[0].faults == chosen
    assert msgspec.to_builtins(chosen)["stories"] == ("S01",)
    with pytest.raises(PlanError, match=r"faults\.stories: is the older name of scenarios; leave it out"):
        parse_plan(plan('["S01"]', faults='stories = ["S04"]'), "p.toml")


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_every_plan_of_a_story_tells_all_of_it_in_time(path: Path) -> None:
    read = read_plan(path)
    assert read.name == path.stem
    for run in read.runs()[:8]:
        shown = {step.scenario for step in planned(run, Choices(run.seed).draw).steps}
        assert shown or run.story == read.story == path.stem


def test_there_are_plans_of_stories() -> None:
    assert len(STORIES) > 10
