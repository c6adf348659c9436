"""Rule 15 (KIP-966): who stays an eligible leader replica, by the way in which a broker stopped."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core import messages
from harness.broker.core.controller import Controller
from harness.broker.core.types import (
    NONE,
    BrokerConfig,
    BrokerState,
    Image,
    PartitionState,
    TopicConfig,
    TopicState,
)
from tests.harness.worlds.simulated.driven import AT

ELIGIBLE = BrokerConfig(eligible_leader_replicas=True)
SAFE = TopicConfig(min_insync_replicas=2)


def stop_cleanly(cluster: Any, node: int) -> None:
    cluster.cluster.target.processes.stop(node)
    cluster.wait(lambda: node not in cluster.brokers)


def only_0_is_in_sync(lab: Any) -> Any:
    """2 was killed and is struck off with its return, 1 has stopped cleanly and is on the second list."""
    cluster = lab(ELIGIBLE, SAFE)
    cluster.write_ok(0, "w")
    cluster.settle()
    cluster.kill(2)
    cluster.fence(2)
    stop_cleanly(cluster, 1)
    assert (cluster.state().isr, cluster.state().elr) == ((0,), (1,))
    return cluster


def test_a_clean_stop_keeps_a_broker_eligible_and_it_leads_when_the_last_one_is_gone(lab: Any) -> None:
    cluster = only_0_is_in_sync(lab)
    cluster.kill(0)
    cluster.fence(0)
    assert (cluster.state().leader, cluster.state().elr) == (NONE, (0, 1))
    cluster.start(1)
    cluster.wait(lambda: cluster.leads(1))
    assert cluster.state().isr == (1,)
    assert cluster.records(1) == ["base", "w"]


def test_an_unclean_stop_strikes_a_broker_off_though_its_disk_has_everything(lab: Any) -> None:
    cluster = lab(ELIGIBLE, SAFE)
    cluster.kill(2)
    cluster.fence(2)
    cluster.kill(1)
    cluster.fence(1)
    assert (cluster.state().isr, cluster.state().elr) == ((0,), (1,))
    cluster.cut((1, 0), (0, 1))
    cluster.start(1)
    cluster.wait(lambda: cluster.brokers[1].broker_epoch != NONE)
    assert (cluster.state().isr, cluster.state().elr) == ((0,), ())


@pytest.mark.parametrize("harm", ["wipe", "power", "kill"])
def test_the_mark_of_a_clean_stop_is_good_for_one_start_and_goes_with_the_disk(lab: Any, harm: str) -> None:
    cluster = only_0_is_in_sync(lab)
    cluster.kill(0)
    cluster.fence(0)
    cluster.isolate(1)
    if harm == "wipe":
        cluster.wipe(1)
    else:  # It is started and ends again before anybody has heard of it.
        cluster.start(1)
        (cluster.power if harm == "power" else cluster.kill)(1)
    cluster.heal()
    cluster.start(1)
    cluster.wait(lambda: cluster.brokers[1].broker_epoch != NONE)
    assert (cluster.state().leader, cluster.state().elr) == (NONE, (0,))
    cluster.start(0)
    cluster.start(2)


def test_the_last_known_leader_leads_again_when_both_lists_are_empty(lab: Any) -> None:
    cluster = only_0_is_in_sync(lab)
    cluster.kill(0)
    cluster.wipe(1)
    cluster.fence(0)
    cluster.start(1)
    cluster.wait(lambda: cluster.state().elr == (0,))
    cluster.start(0)
    cluster.wait(lambda: cluster.leads(0))
    assert (cluster.state().isr, cluster.state().recovering) == ((0,), True)
    assert cluster.committed()[0] == "base"


def test_a_rolling_restart_in_order_leaves_nobody_without_a_leader(lab: Any) -> None:
    """With every start counted as one after an unclean stop, the third would have to wait for the first."""
    cluster = lab(ELIGIBLE, SAFE)
    cluster.write_ok(0, "w")
    for node in (0, 1, 2):
        stop_cleanly(cluster, node)
    assert set(cluster.state().isr) | set(cluster.state().elr) >= {1, 2}
    cluster.start(1)
    cluster.wait(lambda: cluster.leads(1))
    assert cluster.brokers[1].replicas[AT].log.end_offset == cluster.log_end(0)


@pytest.mark.parametrize("recovering", [False, True])
def test_a_leader_that_stops_in_order_is_eligible_however_it_was_elected(recovering: bool) -> None:
    """It has everything that was committed since its election, and leads again though nothing joined it."""
    alone = PartitionState((0, 1, 2), isr=(0,), leader=0, leader_epoch=4, partition_epoch=7, recovering=recovering)
    brokers = {node: BrokerState(node, fenced=node != 0) for node in range(3)}
    controller = Controller(ELIGIBLE, Image(20, brokers, {"t": TopicState(SAFE, (alone,))}))
    controller.start(0)
    controller.on_message(1, 0, messages.Heartbeat(0, 0, 20, leaving=True))
    after = controller.image.topics["t"].partitions[0]
    assert (after.leader, after.isr, after.elr, after.last_known_leader) == (NONE, (), (0,), 0)
