"""Turns go to cells by what was rarely reached, and follow from the seed and the ledger alone."""

from __future__ import annotations

from collections import Counter

from harness.campaigns.soak.ledger import Planned
from harness.campaigns.soak.state import CellCounts, CellName
from harness.campaigns.soak.turn_planner import TurnPlanner, weights_of
from harness.plan import Plan, parse_plan
from tests.harness.campaigns.soak.conftest import PLAN


def simulated_turns(met: dict[str, str], turns: int, seed: int = 3) -> Counter[str]:
    """So many turns, after each of which a run of a cell has met what its family meets; turns by cell."""
    planner, cells = TurnPlanner(parse_plan(PLAN, "t.toml"), seed), dict[CellName, CellCounts]()
    given: Counter[str] = Counter()
    for turn in range(turns):
        planned = planner.next_turn(turn, "simulated", cells)
        counts = cells.setdefault(CellName(planned.world, planned.choice, planned.family), CellCounts())
        counts.planned += 1
        counts.judged += 1
        counts.exercised.update(dict.fromkeys(planned.family.split("+"), 3))
        counts.met.update(("acknowledged_at_min_isr", *([met[planned.cell]] if planned.cell in met else [])))
        given[planned.cell] += 1
    return given


def test_every_cell_has_its_first_turn_before_any_has_its_second() -> None:
    for seed in range(10):
        assert set(simulated_turns({}, 4, seed).values()) == {1}


def test_cells_that_reach_the_same_have_about_as_many_turns() -> None:
    given = simulated_turns({}, 400)
    assert len(given) == 4
    assert max(given.values()) < 1.5 * min(given.values())


def test_mixtures_go_first_and_cells_that_lack_scenarios_go_before_others() -> None:
    text = PLAN.replace('"pause"', '"pause", "kill+pause"').replace(
        "[worlds.simulated]", "[worlds.simulated]\nfaults = { exercised_min = 2 }"
    )
    planner, cells = TurnPlanner(parse_plan(text, "t.toml"), 3), dict[CellName, CellCounts]()
    given = []
    for turn in range(16):
        planned = planner.next_turn(turn, "simulated", cells)
        counts = cells.setdefault(CellName(planned.world, planned.choice, planned.family), CellCounts())
        counts.planned += 1
        counts.judged += 1
        # A scenario of each family of a mixture; no scenario of a pause can be done.
        counts.exercised.update(dict.fromkeys(planned.family.split("+"), 1 if "+" in planned.family else 2))
        if planned.family == "pause":
            counts.exercised.clear()
        given.append(planned.family)
    assert given[:2] == ["kill+pause"] * 2
    assert Counter(given[:6]) == {"kill": 2, "pause": 2, "kill+pause": 2}
    assert Counter(given[6:14]) == {"kill+pause": 2, "pause": 6}
    assert all(counts.planned >= 4 for cell, counts in cells.items() if cell.family == "pause")


def test_a_cell_that_alone_reaches_a_situation_has_more_turns() -> None:
    rare = "acks=all,isr=1,unclean=false/pause"
    given = simulated_turns({rare: "unflushed_at_power_loss"}, 400)
    others = [count for cell, count in given.items() if cell != rare]
    assert given[rare] > 1.35 * sum(others) / len(others)
    assert min(others) > 20  # none is forgotten


def test_a_situation_that_was_met_often_weighs_less() -> None:
    first = CellCounts(planned=100, judged=100, met=Counter(refused_before_append=100))
    others = [CellCounts(planned=100, judged=100, met=Counter(refused_before_append=met)) for met in (0, 100)]
    rare, common = weights_of([first, others[0]])[0], weights_of([first, others[1]])[0]
    assert rare > common


def test_a_turn_follows_from_the_seed_its_number_and_what_was_reached(plan: Plan) -> None:
    cells = {CellName("simulated", "acks=1,isr=1,unclean=false", "kill"): CellCounts(planned=3, judged=2)}
    turns = [TurnPlanner(plan, 7).next_turn(5, "simulated", cells) for _ in range(2)]
    assert turns[0] == turns[1]
    assert turns[0].seed != TurnPlanner(plan, 7).next_turn(6, "simulated", cells).seed
    assert turns[0].seed != TurnPlanner(plan, 8).next_turn(5, "simulated", cells).seed


def test_the_run_of_a_turn_has_its_cell_and_its_seed(plan: Plan) -> None:
    turn = Planned(turn=1, world="processes", choice="acks=1,isr=1,unclean=false", family="pause", seed=99)
    spec = TurnPlanner(plan, 7).spec_of(turn)
    assert str(spec.directory()) == turn.directory
    assert (spec.family, spec.seed, spec.settings["acks"]) == ("pause", 99, 1)
