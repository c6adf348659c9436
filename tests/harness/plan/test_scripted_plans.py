"""Plans that name a scripted story: its number is the family of every cell, and nothing else happens in a run."""

from __future__ import annotations

import pytest

from harness.errors import PlanError
from harness.plan import parse_plan


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
        (plan('story = "missed epoch"'), 'story: "missed epoch" is no number of a story; write one such as "S40"'),
        (
            plan('story = "S40"\nfamilies = ["kill"]'),
            "families: the story S40 is all that happens in a run; leave the families out",
        ),
        (
            plan('story = "S40"', partitions=3),
            "worlds.simulated.workload: the story S40 writes to one log partition; write partitions = 1",
        ),
        (
            plan('story = "S40"', faults='stories = ["S01"]'),
            "worlds.simulated.faults.stories: the story S40 is all that happens in a run; leave it out",
        ),
    ],
)
def test_what_does_not_go_with_a_story_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    assert str(caught.value) == f"p.toml: {sentence}"
