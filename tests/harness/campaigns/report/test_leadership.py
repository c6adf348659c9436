"""The leaders, and the brokers that must have answered, from what brokers told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from checkers import percent
from harness.campaigns.report.leadership import LeaderInterval, LeaderState, answering_broker, leader_state, leaderships
from harness.campaigns.report.page import cell_id
from harness.ground.observations import BecameFollower, BecameLeader, Fact, IsrChanged, Observation
from nemesis.receipts import Receipt
from tests.nemesis.receipt_factory import a_receipt


def seen(time_us: int, node: int, kind: Callable[..., Fact], **facts: Any) -> Observation:
    return Observation(time_us, node, kind(partition="t-0", **facts))


def kill(node: int, begun_us: int) -> Receipt:
    return a_receipt(targets=(node,), begun_us=begun_us, ended_us=None)


def test_a_leadership_ends_with_the_next_word_of_the_same_broker() -> None:
    reported = [
        seen(1, 0, BecameLeader, leader_epoch=1),
        seen(5, 1, BecameLeader, leader_epoch=2),
        seen(7, 0, BecameFollower),
    ]
    assert leaderships(reported, [], 9) == [LeaderInterval(0, 1, 1, 7), LeaderInterval(1, 2, 5, 9)]


def test_the_dead_do_not_lead() -> None:
    assert leaderships([seen(1, 0, BecameLeader, leader_epoch=1)], [kill(0, 4), kill(1, 2)], 9) == [
        LeaderInterval(0, 1, 1, 4)
    ]


ZOMBIE, NEW = LeaderInterval(0, 1, 0, 10), LeaderInterval(1, 2, 4, 10)


@pytest.mark.parametrize(
    ("time_us", "removers", "node"),
    [
        pytest.param(2, None, 0, id="the only leader"),
        pytest.param(6, None, 1, id="what is still there was on the newest leader"),
        pytest.param(6, [0], 0, id="what was truncated was on the deposed leader"),
        pytest.param(6, [], None, id="lost, and nobody saw it truncated"),
        pytest.param(20, None, None, id="nobody led"),
    ],
)
def test_who_answered(time_us: int, removers: list[int] | None, node: int | None) -> None:
    assert answering_broker([ZOMBIE, NEW], time_us, removers) == node


def test_a_leaders_newest_words_count() -> None:
    reported = [
        seen(1, 0, BecameLeader, leader_epoch=3, isr=(0, 1)),
        seen(4, 0, IsrChanged, leader_epoch=3, isr=(0,)),
        seen(5, 1, IsrChanged),
    ]
    assert leader_state(reported, 0, 4) == (3, (0,))
    assert leader_state(reported, 0, 2).isr == (0, 1)
    assert leader_state(reported, 2, 9) == LeaderState()


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.000512, "0.051 %"), (0.25, "25 %"), (1e-9, "< 0.0001 %"), (0.999, "99.9 %")],
)
def test_rates_keep_two_digits(rate: float, text: str) -> None:
    assert percent(rate) == text


def test_anchors_hold_only_harmless_letters() -> None:
    class Named:
        world = "simulated"
        cell = 'acks="1"<b>/kill'

    assert cell_id(Named()) == "cell-simulated-acks--1--b--kill"  # type: ignore[arg-type]
