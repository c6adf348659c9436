"""Reductions of a search leave nothing out: its twin without them sees the same, and breaks the same rules."""

from __future__ import annotations

import pytest

from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE
from harness.lab.explore import Scope, brokers, scope_named
from harness.lab.explore.events import NodeEvent
from harness.lab.explore.space import Space
from tests.harness.lab.explore.twin import Plain, both, observations, plain_nodes

TWO = {"brokers": 2, "in-sync": 2, "shrinks": 9}
SILENT = scope_named("silent").varied({**TWO, "proposals": 2}, {})
WIPED = scope_named("wiped").varied({**TWO, "proposals": 0}, {"min.insync.replicas": 1})


@pytest.mark.parametrize(
    ("scope", "states", "twins"),
    [
        (scope_named("calm-1"), 36, 61),
        (SILENT, 143, 4_568),
        (SILENT.varied({}, {"min.insync.replicas": 1}), 105, 3_116),
        (SILENT.varied({}, {"planted.bug": "shrink-before-acceptance"}), 0, 0),
        (SILENT.varied({}, {"planted.bug": "propose-again"}), 529, 11_010),
        (WIPED, 285, 11_278),
    ],
    ids=["calm-1", "silent", "silent, min ISR 1", "silent with a bug", "silent, proposes again", "wiped, min ISR 1"],
)
def test_a_search_without_reductions_sees_the_same_and_breaks_the_same_rules(
    scope: Scope, states: int, twins: int
) -> None:
    reduced, plain = both(scope)
    assert reduced[:2] == plain[:2]
    assert not states or (reduced[2], plain[2]) == (states, twins)


def test_a_leader_that_waits_no_more_for_a_member_that_it_proposed_is_seen_by_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It finds the member silent before the controller has answered, and proposes nothing: a core never does so."""
    check = Replica.check_isr

    def forgets(replica: Replica) -> None:
        check(replica)
        if replica.leading and replica.proposal is not None:
            replica.maximal_isr = tuple(
                node
                for node in replica.maximal_isr
                if node in replica.isr or replica._keeps_up(replica.followers[node], replica.log.end_offset)
            )

    monkeypatch.setattr(Replica, "check_isr", forgets)
    reduced, plain = both(SILENT.varied({"proposals": 3}, {}))
    assert reduced[:2] == plain[:2]
    assert plain[1] == {"maximal-isr-is-larger"}


def test_the_twin_sees_what_a_reduction_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with plain_nodes():
        seen = observations(Plain(SILENT))[0]
    monkeypatch.setattr(brokers, "_silent", lambda _: ())
    assert observations(Space(SILENT))[0] < seen


def test_a_controller_that_finds_nobody_to_lead_decides_nothing_anew() -> None:
    space = Space(scope_named("tla-1"))
    state = space.begin()
    for kind, broker in (("fence", 1), ("crash", 0), ("fence", 0)):
        state = next(step.state for step in space.follow(state) if step.action[:2] == (kind, broker))
    assert space.nodes.controller_states[state[0]].state.elr == (0, 1)
    assert {outcome.after for outcome in space.nodes.step(state[0], NodeEvent("unclean", NONE))} == {state[0]}
