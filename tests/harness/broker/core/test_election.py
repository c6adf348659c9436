"""Rules 27 and 28: the live replica with the largest log leads, if enough of them say how far theirs goes."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core import replica
from harness.broker.core.commit_rule import Quorum
from harness.broker.core.messages import FetchResponse, LogEnd, LogEndResponse, MetadataUpdate, MoveLeader
from harness.broker.core.types import CONTROLLER, NONE, BrokerConfig, ErrorCode
from harness.ground.observations import LeaderElected
from nemesis.cluster import Link

ISR = BrokerConfig(quorum_required_acks=2)
AS_WRITTEN = BrokerConfig(quorum_required_acks=2, leader_election="largest-log-end")
CORRECTED = BrokerConfig(quorum_required_acks=2, leader_election="largest-epoch-and-log-end")
RAFT = BrokerConfig(commit_rule="majority", leader_election="largest-epoch-and-log-end")
BY_LOG = pytest.mark.parametrize("config", [AS_WRITTEN, CORRECTED, RAFT], ids=["as written", "corrected", "majority"])


def unanswered(leader: int, *followers: int) -> Any:
    """Loses what a leader answers to the fetches of some followers."""
    return lambda source, target, message: (
        isinstance(message, FetchResponse) and source == leader and target in followers
    )


def lost(cluster: Any, *payloads: str) -> set[str]:
    """The ``payloads`` that no consumer can read after everything is repaired."""
    cluster.heal()
    for node in {0, 1, 2} - set(cluster.brokers):
        cluster.start(node)
    cluster.settle()
    return set(payloads) - set(cluster.committed())


@pytest.mark.parametrize(
    ("config", "gone"),
    [(ISR, {"x"}), (AS_WRITTEN, set()), (CORRECTED, set()), (RAFT, set())],
    ids=["ISR", "as written", "corrected", "majority"],
)
def test_who_acknowledges_by_number_must_elect_by_the_logs(lab: Any, config: BrokerConfig, gone: set[str]) -> None:
    """S27: 1 is in the ISR, first in order, and lacks what 0 and 2 have acknowledged."""
    cluster = lab(config)
    cluster.lose = unanswered(0, 1)
    cluster.write_ok(0, "x")
    assert 1 in cluster.state().isr
    cluster.kill(0)
    cluster.fence(0)
    cluster.wait(lambda: cluster.state().leader != NONE)
    assert lost(cluster, "x") == gone


@pytest.mark.parametrize(
    ("config", "gone"),
    [(AS_WRITTEN, {"x"}), (CORRECTED, set()), (RAFT, set())],
    ids=["as written", "corrected", "majority"],
)
def test_a_deposed_leader_with_the_longer_log_wins_by_log_end_alone(
    lab: Any, config: BrokerConfig, gone: set[str]
) -> None:
    """S28: what 0 wrote to nobody is more than what its successor committed."""
    cluster = lab(config)
    cluster.isolate(0)
    cluster.fence(0)
    for payload in ("u1", "u2", "u3", "u4"):
        cluster.write(0, payload)
    cluster.wait(lambda: cluster.state().leader == 1)
    cluster.wait(lambda: cluster.leads(1))
    cluster.write_ok(1, "x")
    cluster.kill(0, 1)
    cluster.fence(1)
    cluster.heal()
    cluster.start(0)
    cluster.wait(lambda: cluster.state().leader != NONE)
    assert lost(cluster, "x") == gone


class AnyEpoch(Quorum):
    """Two replicas with a record are enough, whichever epoch they are in."""

    def __init__(self) -> None:
        super().__init__(2, opens_epoch=False)


def figure_8(cluster: Any) -> None:
    """0 writes x to itself and dies, 1 writes y to itself and dies, 0 is back and brings x to 2, and dies again.

    Then the producer of x has its acknowledgement, and 1 is back.
    """
    cluster.lose = lambda *of: unanswered(0, 1, 2)(*of) or unanswered(1, 2)(*of)
    producer = (7, 0, 0)
    cluster.write(0, "x", producer=producer)
    cluster.run(10)
    cluster.kill(0)
    cluster.wait(lambda: cluster.leads(1))
    cluster.write(1, "y")
    cluster.run(10)
    cluster.kill(1)
    cluster.start(0)
    cluster.wait(lambda: cluster.leads(0))
    cluster.heal()
    again = cluster.write(0, "x", producer=producer)
    cluster.wait(lambda: cluster.outcome(again) == ErrorCode.NONE)
    cluster.kill(0)
    cluster.start(1)
    cluster.fence(0)
    cluster.wait(lambda: cluster.state().leader != NONE)


@pytest.mark.parametrize("config", [CORRECTED, RAFT], ids=["corrected", "majority"])
def test_a_record_of_an_earlier_epoch_is_committed_by_one_of_the_present(lab: Any, config: BrokerConfig) -> None:
    """Raft, figure 8."""
    cluster = lab(config)
    figure_8(cluster)
    assert lost(cluster, "x") == set()


def test_copies_alone_do_not_commit_a_record_of_an_earlier_epoch(lab: Any, monkeypatch: Any) -> None:
    """So the rule above is needed: elections by epoch and log end are not enough."""
    monkeypatch.setattr(replica, "commit_rule", lambda config: AnyEpoch())
    cluster = lab(CORRECTED)
    cluster.invariants.keeps_committed = False  # The invariants would see it first.
    figure_8(cluster)
    assert lost(cluster, "x") == {"x"}


@BY_LOG
def test_fewer_replicas_than_can_know_what_was_committed_elect_nobody(lab: Any, config: BrokerConfig) -> None:
    cluster = lab(config)
    cluster.kill(0, 1, 2)
    cluster.fence(0, 1, 2)
    cluster.start(1)
    cluster.wait(lambda: not cluster.image.brokers[1].fenced)
    cluster.run(5_000)
    assert cluster.state().leader == NONE
    cluster.start(2)
    cluster.wait(lambda: cluster.leads(1))


@BY_LOG
def test_a_lost_question_or_answer_is_repeated(lab: Any, config: BrokerConfig) -> None:
    cluster = lab(config)
    gone: list[object] = []

    def first_of_each(source: int, target: int, message: object) -> bool:
        first = isinstance(message, LogEnd | LogEndResponse) and (type(message), source, target) not in gone
        gone.extend([(type(message), source, target)] * first)
        return first

    cluster.lose = first_of_each
    cluster.kill(0)
    cluster.fence(0)
    cluster.wait(lambda: cluster.leads(1), 2_000)
    assert len(gone) == 4


@BY_LOG
def test_a_live_replica_that_does_not_answer_is_not_counted(lab: Any, config: BrokerConfig) -> None:
    """The controller's words do not reach 1, and 2 alone does not know what 0 and 1 have committed."""
    cluster = lab(config)
    cluster.network.cut([Link(CONTROLLER, 1)])
    cluster.write_ok(0, "x")
    cluster.kill(0)
    cluster.fence(0)
    cluster.run(5_000)
    assert not cluster.image.brokers[1].fenced
    assert cluster.state().leader == NONE


@BY_LOG
def test_an_election_goes_on_without_a_silent_replica_if_enough_others_answer(lab: Any, config: BrokerConfig) -> None:
    """All three live, and 1 is cut off from the controller's words."""
    cluster = lab(config)
    cluster.network.cut([Link(CONTROLLER, 1)])
    cluster.send(CONTROLLER, MoveLeader(NONE, "t", 0, 2))
    cluster.wait(lambda: cluster.leads(2), 3_000)


@BY_LOG
def test_a_planned_move_goes_to_nobody_who_lacks_what_is_committed(lab: Any, config: BrokerConfig) -> None:
    """S27 without a crash: 1 is an in-sync replica, and a move to it would lose x."""
    cluster = lab(config)
    cluster.lose = unanswered(0, 1)
    cluster.write_ok(0, "x")
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.state().leader != NONE)
    assert cluster.state().leader == 0
    assert lost(cluster, "x") == set()


@BY_LOG
def test_a_planned_move_is_granted_to_a_replica_that_has_everything(lab: Any, config: BrokerConfig) -> None:
    cluster = lab(config)
    cluster.move_leader(2)
    cluster.wait(lambda: cluster.leads(2))


@BY_LOG
def test_a_broker_that_was_asked_takes_nothing_from_an_earlier_leader(lab: Any, config: BrokerConfig) -> None:
    """0 has not heard of its end, and 2, which has answered, must not help it to acknowledge."""
    cluster = lab(config)
    cluster.network.cut([Link(CONTROLLER, 0)])
    cluster.lose = lambda source, target, message: isinstance(message, LogEndResponse) and source == 1
    cluster.send(CONTROLLER, MoveLeader(NONE, "t", 0, 1))
    cluster.run(20)
    assert cluster.leads(0)
    x = cluster.write(0, "x")
    cluster.run(5_000)
    assert cluster.outcome(x) != ErrorCode.NONE


@BY_LOG
def test_the_answer_of_a_disk_that_is_lost_since_does_not_count(lab: Any, config: BrokerConfig) -> None:
    cluster = lab(config)
    cluster.lose = unanswered(0, 1)
    cluster.write_ok(0, "x")
    cluster.kill(0)
    cluster.lose = lambda source, target, message: isinstance(message, LogEndResponse) and source == 1
    cluster.fence(0)
    cluster.run(10)
    cluster.kill(2)
    cluster.wipe(2)
    cluster.fence(2)
    cluster.start(2)
    cluster.lose = lambda source, target, message: False
    cluster.wait(lambda: cluster.state().leader != NONE)
    assert cluster.state().leader == 1


@BY_LOG
def test_an_election_survives_the_controller(lab: Any, config: BrokerConfig) -> None:
    cluster = lab(config)
    cluster.lose = lambda source, target, message: isinstance(message, LogEnd | MetadataUpdate)
    cluster.kill(0)
    cluster.wait(lambda: cluster.state().leader == NONE)
    cluster.kill(CONTROLLER)
    cluster.lose = lambda source, target, message: False
    cluster.start(CONTROLLER)
    cluster.wait(lambda: cluster.leads(1), 3_000)


@BY_LOG
def test_electing_somebody_outside_the_isr_is_not_unclean(lab: Any, config: BrokerConfig) -> None:
    cluster = lab(config)
    cluster.shrink(1, 2)
    cluster.kill(0)
    cluster.heal()
    cluster.wait(lambda: cluster.leads(1))
    assert [fact.unclean for fact in cluster.seen(LeaderElected)][-2:] == [False, False]
    assert cluster.state().isr[0] == 1
