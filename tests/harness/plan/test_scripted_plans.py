"""Plans that name a scripted story: its number is the family of every cell, and nothing else happens in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ground.errors import PlanError
from harness.plan import parse_plan
from harness.records.files import PLAN_FILE


def plan(above: str, *, partitions: int = 1, faults: str = "") -> str:
    return f"{above}\n[workload]\npartitions = {partitions}\n[faults]\n{faults}\n[worlds.simulated]\nruns = 2\n"


def test_every_run_of_a_plan_with_a_story_performs_it_and_its_cell_is_named_after_it() -> None:
    runs = parse_plan(plan('story = "S40"'), "p.toml").runs()
    assert [(run.story, run.family, run.faults.families) for run in runs] == [("S40", "S40", ())] * 2
    assert {run.cell for run in runs} == {"acks=all,isr=1,unclean=false/S40"}
    assert len({run.seed for run in runs}) == 2


def test_a_plan_without_a_story_has_none() -> None:
    (run, _) = parse_plan(plan('families = ["kill"]', partitions=3), "p.toml").runs()
    assert (run.story, run.faults.families) == ("", ("kill",))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            plan('story = "missed epoch"'),
            'story: "missed epoch" is not the number of a story; write one such as "S40", or a file such as "my.toml"',
        ),
        (
            plan('story = "../my.toml"'),
            'story: "../my.toml" is outside the plan\'s directory; put the story into it, or below',
        ),
        (
            plan(f'story = "{PLAN_FILE}"'),
            'story: "plan.toml" is the name of the plan in a campaign; give the story another name',
        ),
        (
            plan('story = "S40"\nfamilies = ["kill"]'),
            "families: the story S40 is all that happens in a run; leave the families out",
        ),
        (
            plan('story = "S40"', partitions=3),
            (
                "worlds.simulated.workload: the story S40 writes to one log partition; "
                "write partitions = 1, and leave topics out"
            ),
        ),
        (
            plan('story = "S40"', faults='scenarios = ["S01"]'),
            "worlds.simulated.faults.scenarios: the story S40 is all that happens in a run; leave this key out",
        ),
        (
            plan('brokers = 4\nstory = "S40"'),
            "brokers: the story S40 has brokers 0, 1 and 2; write brokers = 3, or leave it out",
        ),
        (
            plan('story = "S40"\nassignment = [[0, 1]]\n[settings]\n"replication.factor" = 2'),
            "settings: the story S40 has replicas on brokers 0, 1 and 2; write replication.factor = 3",
        ),
    ],
)
def test_what_does_not_go_with_a_story_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    assert str(caught.value) == f"p.toml: {sentence}"


def test_a_plan_may_name_a_story_file_beside_it_which_its_runs_carry(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "my.toml").write_text(text := 'number = "M1"\ntitle = "t"\nsteps = "kill 0"\n')
    run, _ = parse_plan(plan('story = "own/my.toml"'), str(tmp_path / "p.toml")).runs()
    assert (run.story, run.family, run.faults.families) == ("M1", "M1", ())
    assert run.own_story is not None
    assert (run.own_story.file, run.own_story.text) == ("own/my.toml", text)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, 'p.toml: story: "my.toml" cannot be read'),
        ("number =", "my.toml: not valid TOML"),
        ('number = "mine/1"', 'my.toml: number: "mine/1" is not the number of a story; write one such as "S40"'),
        ("", 'my.toml: number: "None" is not the number of a story'),
    ],
)
def test_a_story_file_without_a_number_is_refused(tmp_path: Path, content: str | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / "my.toml").write_text(content)
    with pytest.raises(PlanError) as caught:
        parse_plan(plan('story = "my.toml"'), str(tmp_path / "p.toml"))
    assert sentence in str(caught.value)
