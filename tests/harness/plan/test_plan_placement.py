"""Racks and assignments in plans: what a run gets, and the one sentence that a wrong one gets."""

from __future__ import annotations

import pytest

from harness.ground.errors import PlanError
from harness.plan import parse_plan

WORLD = "\n[worlds.simulated]\nruns = 1\n"
RACKS = 'racks = ["a", "b", "c"]\n'
EXISTING = '\n[worlds.kafka]\nhost = "existing"\nbootstrap = ["h:1"]\n'


def test_every_run_has_the_plans_racks_and_assignment() -> None:
    (run,) = parse_plan(f"{RACKS}assignment = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]{WORLD}", "p.toml").runs()
    assert run.racks == ("a", "b", "c")
    assert run.assignment == ((0, 1, 2), (1, 2, 0), (2, 0, 1))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f'racks = "a"{WORLD}', "racks: takes a list of names"),
        (f'racks = ["a", "b"]{WORLD}', "racks: names the racks of 2 brokers and the plan has 3"),
        (f'families = ["rack"]{WORLD}', "racks: the family rack hits racks; name one for each broker"),
        (
            f'brokers = 6\nracks = ["a", "a", "a", "b", "b", "b"]\nfamilies = ["kill+rack"]{WORLD}',
            "racks: the largest rack has 3 brokers; raise dead_brokers_max from 2",
        ),
        (f"assignment = [0, 1, 2]{WORLD}", "assignment: takes a list of brokers for each log partition"),
        (f"assignment = [[0, 1, 1]]{WORLD}", "assignment: [0, 1, 1] does not name different brokers"),
        (f"assignment = [[0, 1, 3]]{WORLD}", "write numbers from 0 to 2, each once"),
        (f"assignment = [[0, 1, 2]]{WORLD}", "assignment: has 1 log partitions and the workload 3"),
        (
            f"assignment = [[0], [1], [2]]{WORLD}",
            "assignment: each log partition needs as many brokers as replication.factor (3)",
        ),
        (
            "log_dirs = 2\n[worlds.processes]\n",
            "log_dirs: brokers of the processes world have one log directory; leave it out",
        ),
        (f"log_dirs = 0{WORLD}", "log_dirs: 0 is too small; the least is 1"),
        (RACKS + EXISTING, "racks: a cluster that exists already has its own; leave this key out"),
    ],
)
def test_a_wrong_one_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
