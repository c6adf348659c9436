"""Rules 27 and 28: a record is committed once so many replicas have it, whoever is slow (KIP-250, Raft)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core.messages import Fetch
from harness.broker.core.types import BrokerConfig, ErrorCode, TopicConfig

K2 = BrokerConfig(quorum_required_acks=2)


@pytest.mark.parametrize(("config", "outcome"), [(K2, ErrorCode.NONE), (BrokerConfig(), None)], ids=["k=2", "ISR"])
def test_a_quorum_does_not_wait_for_the_slowest_in_sync_replica(lab: Any, config: BrokerConfig, outcome: Any) -> None:
    cluster = lab(config)
    cluster.lose = lambda source, target, message: isinstance(message, Fetch) and source == 2
    x = cluster.write(0, "x")
    cluster.run(100)
    assert cluster.state().isr == (0, 1, 2)
    assert cluster.outcome(x) == outcome


def test_a_quorum_waits_for_its_copies_however_small_the_isr(lab: Any) -> None:
    """The ISR rule acknowledges what the leader alone has, if min.insync.replicas lets it."""
    for config, outcome in ((K2, None), (BrokerConfig(), ErrorCode.NONE)):
        cluster = lab(config)
        cluster.shrink(1, 2)
        assert cluster.state().isr == (0,)
        x = cluster.write(0, "x")
        cluster.run(100)
        assert cluster.outcome(x) == outcome
        assert cluster.high_watermark(0) == cluster.log_end(0) - (outcome is None) * 2, "the nudge and x"


def test_a_quorum_takes_the_place_of_min_insync_replicas(lab: Any) -> None:
    cluster = lab(K2, TopicConfig(min_insync_replicas=3))
    cluster.shrink(2)
    x = cluster.write(0, "x")
    cluster.run(100)
    assert cluster.outcome(x) == ErrorCode.NONE


def test_a_topic_with_fewer_replicas_than_its_quorum_asks_for_is_judged_by_them(lab: Any) -> None:
    cluster = lab(BrokerConfig(quorum_required_acks=3), replicas=(0, 1))
    cluster.write_ok(0, "x")
    assert {cluster.log_end(node) for node in (0, 1)} == {2}
