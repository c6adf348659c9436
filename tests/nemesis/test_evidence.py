"""Each act leaves facts of a type of its own: by what a part says that it returns, a reader knows what to find."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

from harness.broker.core.types import BrokerConfig
from nemesis import evidence
from nemesis.cluster import Capability, Link, Target
from tests.harness.worlds.simulated.driven import Driven

ACTS = {name: kind for name, kind in vars(evidence).items() if is_typeddict(kind)}
LINKS = (Link(0, 1), Link(1, 0))
#: Acts in an order in which each finds something to do, except on disks of dead brokers, by part and arguments.
PERFORMED = (
    ("processes", "pause", (2,)), ("processes", "resume", (2,)), ("processes", "kill", (2,)),
    ("processes", "restart", (2,)), ("processes", "stop", (2,)), ("power", "cut_power", (1,)),
    ("links", "cut", (LINKS,)), ("links", "heal", (LINKS,)), ("link_speed", "slow", (LINKS,)),
    ("link_speed", "restore", (LINKS,)), ("messages", "hold", (LINKS,)), ("messages", "release", (LINKS,)),
    ("write_caches", "lie", (0,)), ("write_caches", "obey", (0,)), ("files", "wipe", (1,)),
    ("leadership", "move_leader", ("t-0", 0)),
)  # fmt: skip


def part(name: str) -> Any:
    """The contract of a part of a target."""
    (contract, *_) = get_args(get_type_hints(Target)[name])
    return contract


@pytest.mark.parametrize("capability", Capability)
def test_every_act_of_a_part_says_which_facts_it_leaves(capability: Capability) -> None:
    acts = [act for name, act in vars(part(capability)).items() if not name.startswith("_") and callable(act)]
    assert {get_type_hints(act)["return"].__name__ for act in acts} <= ACTS.keys()
    assert acts


def test_what_the_simulated_cluster_observes_has_the_names_and_types_of_the_act() -> None:
    driven = Driven(BrokerConfig())
    for name, act, arguments in PERFORMED:
        observed = getattr(getattr(driven.cluster.target, name), act)(*arguments)
        driven.run(50)
        assert observed, act
        assert observed.keys() <= get_type_hints(get_type_hints(getattr(part(name), act))["return"]).keys(), act
        evidence.check_evidence({"0": observed})


def test_no_fact_has_one_type_here_and_another_there() -> None:
    facts: dict[str, set[object]] = {}
    for name, act in ACTS.items():
        for fact, kind in get_type_hints(act).items():
            facts.setdefault(fact, set()).update([kind] if name != "Corruption" else [])
    assert {fact: kinds for fact, kinds in facts.items() if len(kinds) > 1} == {}
    assert len(facts) > 60
