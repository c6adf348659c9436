"""Elections that may begin a new log, and brokers that may leave the lists: by the state before, not by flags."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core.invariants import begins_new_history, eligible_stay
from harness.broker.core.types import NO_NODE, BrokerConfig, NodeId, PartitionState, TopicConfig

ELIGIBLE = BrokerConfig(eligible_leader_replicas=True)
PLAIN = BrokerConfig()
SAFE = TopicConfig(min_insync_replicas=2)
UNCLEAN = TopicConfig(min_insync_replicas=2, unclean_leader_election_enable=True)


def state(*isr: int, elr: tuple[int, ...] = (), leader: int = NO_NODE, **others: Any) -> PartitionState:
    nodes = [tuple(map(NodeId, numbers)) for numbers in ((0, 1, 2), isr, elr)]
    return PartitionState(nodes[0], nodes[1], NodeId(leader), 4, 7, elr=nodes[2], **others)


def elected(leader: int) -> PartitionState:
    return state(leader, leader=leader, recovering=True)


@pytest.mark.parametrize(
    ("settings", "before", "leader", "around", "anew"),
    [
        pytest.param((PLAIN, SAFE), state(1), 0, ((0,), ()), False, id="unclean where it must not be"),
        pytest.param((PLAIN, UNCLEAN), state(1), 0, ((0, 2), ()), True, id="unclean, and who was in sync is dead"),
        pytest.param((PLAIN, UNCLEAN), state(1), 0, ((0, 1), ()), False, id="unclean beside a live member of the ISR"),
        pytest.param((PLAIN, UNCLEAN), state(1), 1, ((0, 1), ()), False, id="a member of the ISR"),
        pytest.param((ELIGIBLE, UNCLEAN), state(elr=(1,)), 0, ((0, 1), ()), False, id="unclean beside an eligible one"),
        pytest.param(
            (ELIGIBLE, UNCLEAN), state(elr=(1,)), 0, ((0, 2), ()), True, id="unclean, and who was eligible is dead"
        ),
        pytest.param(
            (ELIGIBLE, SAFE),
            state(elr=(1,), last_known_leader=0),
            0,
            ((0, 1), ()),
            False,
            id="the last over an eligible",
        ),
        pytest.param(
            (ELIGIBLE, SAFE),
            state(elr=(1,), last_known_leader=0),
            0,
            ((0,), ()),
            False,
            id="the last, an eligible is dead",
        ),
        pytest.param(
            (ELIGIBLE, SAFE),
            state(elr=(1,), last_known_leader=0),
            0,
            ((0, 1), (1,)),
            True,
            id="the last, nobody else left",
        ),
        pytest.param(
            (ELIGIBLE, SAFE), state(last_known_leader=0), 0, ((0, 1), ()), True, id="the last, and nobody listed"
        ),
        pytest.param((ELIGIBLE, SAFE), state(last_known_leader=0), 1, ((0, 1), ()), False, id="not the last"),
        pytest.param(
            (PLAIN, SAFE), state(last_known_leader=0), 0, ((0,), ()), False, id="the last, where no list is kept"
        ),
    ],
)
def test_an_election_begins_new_history_only_if_nobody_listed_may_lead(
    settings: tuple[BrokerConfig, TopicConfig], before: Any, leader: int, around: Any, anew: bool
) -> None:
    """The controller's own word for it changes nothing. ``around``: who may lead at all, and who was struck off."""
    live, struck = around
    for flag in (True, False):
        after = state(leader, leader=leader, recovering=flag)
        assert begins_new_history(*settings, before, after, live=live, struck=struck) is anew


def test_who_leads_already_is_not_elected() -> None:
    assert not begins_new_history(PLAIN, UNCLEAN, elected(0), elected(0), live=(NodeId(0),))
    assert not begins_new_history(PLAIN, UNCLEAN, state(1), state(1), live=(NodeId(0),))


def test_where_a_number_of_replicas_commits_no_election_loses() -> None:
    majority = BrokerConfig(commit_rule="majority", leader_election="largest-epoch-and-log-end")
    assert not begins_new_history(majority, UNCLEAN, state(1), elected(0), live=(NodeId(0),))


@pytest.mark.parametrize(
    ("before", "after", "struck", "kept"),
    [
        pytest.param(state(0, 1, leader=0), state(0, elr=(1,), leader=0), (), True, id="to the other list"),
        pytest.param(state(0, 1, leader=0), state(0, leader=0), (), False, id="forgotten"),
        pytest.param(state(0, 1, leader=0), state(0, leader=0), (1,), True, id="stopped uncleanly"),
        pytest.param(state(0, elr=(1,), leader=0), state(0, 2, leader=0), (), True, id="the ISR is large enough"),
        pytest.param(state(0, elr=(1,), leader=0), state(elr=(0,)), (), False, id="eligible no more"),
        pytest.param(state(0, 1, 2, leader=0), state(elr=(1, 2)), (), True, id="the first left a large ISR"),
        pytest.param(state(0, 1, 2, leader=0), state(elr=(2,)), (), False, id="and so did the second"),
    ],
)
def test_who_has_everything_stays_on_a_list(before: Any, after: Any, struck: Any, kept: bool) -> None:
    broken = eligible_stay(SAFE, before, after, struck=struck)
    assert (broken is None) is kept
    assert broken is None or broken[0] == "eligible-stay"
