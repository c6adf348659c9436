"""S03: a planned move loses what one replica acknowledged alone, and nothing else."""

import msgspec
import pytest

from checkers import check_one as check
from checkers import judge
from harness.broker.core import transaction_coordinator
from harness.broker.core.groups import coordinator as group_coordinator
from harness.broker.core.messages import MoveLeader
from harness.broker.core.types import NONE
from harness.runs.run.performing import perform_run
from nemesis.cluster import CONTROLLER, Capability
from nemesis.plan import FaultPlan
from tests.harness.broker.core.group_lab import GroupLab
from tests.harness.broker.core.transaction_lab import TransactionLab


def test_leadership_moves_to_an_in_sync_follower_at_once(stage):
    scene = stage()
    old, new = scene.leader, scene.followers[0]
    before = scene.target.view().partitions["t-0"].leader_epoch
    assert scene.target.leadership.move_leader("t-0", new) == {"leader": new, "leader_epoch": before + 1}
    assert scene.leader == new != old
    assert scene.write(scene.producer(), "x").node == new


def test_a_move_to_the_leader_changes_nothing(stage):
    scene = stage()
    before = scene.target.view().partitions["t-0"]
    evidence = scene.target.leadership.move_leader("t-0", scene.leader)
    assert evidence == {"leader": before.leader, "leader_epoch": before.leader_epoch}


@pytest.mark.parametrize(
    ("make", "log", "named"),
    [
        (GroupLab, group_coordinator.LOG, "coordinators"),
        (TransactionLab, transaction_coordinator.LOG, "transaction_coordinators"),
    ],
)
def test_the_view_names_the_coordinator_before_and_after_a_move(make, log, named):
    lab = make()
    assert getattr(lab.cluster.view(), named) == (1,)
    lab.ask(CONTROLLER, lambda c: MoveLeader(c, log.topic, log.partition, 2))
    assert getattr(lab.cluster.view(), named) == (2,)


@pytest.mark.parametrize("what", ["dead broker", "dead controller", "frozen controller", "no such partition"])
def test_a_refused_move_says_why(stage, what):
    scene = stage()
    old, new = scene.leader, scene.followers[0]
    if what == "dead broker":
        scene.target.processes.kill(new)
        scene.until(lambda: new not in scene.target.view().partitions["t-0"].isr)
    if what == "dead controller":
        scene.target.processes.kill(CONTROLLER)
    if what == "frozen controller":
        scene.target.processes.pause(CONTROLLER)
    partition = "t-9" if what == "no such partition" else "t-0"
    assert scene.target.leadership.move_leader(partition, new)["refused"]
    assert scene.leader == old


def test_a_move_by_the_logs_takes_the_leader_away_and_elects_a_moment_later(stage):
    """Rules 27 and 28."""
    scene = stage(quorum_required_acks=2, leader_election="largest-epoch-and-log-end")
    scene.wait(600)
    old, new = scene.leader, scene.followers[0]
    evidence = scene.target.leadership.move_leader("t-0", new)
    assert evidence["leader"] == NONE
    assert evidence.keys() == {"leader", "leader_epoch", "election"}
    scene.until(scene.moved_from(old))
    assert scene.leader == new


def test_what_followers_had_not_fetched_is_lost_with_acks_1(stage):
    scene = stage(acks=1)
    send = scene.producer()
    scene.write(send, "before")
    scene.wait(600)
    old, new = scene.leader, scene.followers[0]
    links = scene.cut_off(old)
    assert scene.write(send, "alone").node == old
    assert scene.target.leadership.move_leader("t-0", new)["leader"] == new
    scene.target.links.heal(links)
    scene.until(scene.healthy)
    assert scene.read_all() == ["before"]


def test_replica_lists_cannot_be_changed_and_the_view_says_so(stage):
    target = stage().target
    assert target.leadership is not None
    assert target.reassignment is None
    assert "controller never changes the replicas" in target.lacks[Capability.REASSIGNMENT]


@pytest.mark.parametrize(("truncation", "loses"), [("high-watermark", True), ("kip-101", False), ("on-fetch", False)])
def test_truncating_to_the_high_watermark_loses_by_a_move_and_a_death(spec, tmp_path, truncation, loses):
    """S39 (KIP-101): nobody restarts before the loss, and acks=all has the write on every replica.

    The window is narrow: one schedule of eight loses.
    """
    lost = 0
    for seed in range(16):
        if lost:
            break
        run_spec = spec(seed, families=("move",), duration_ms=12_000, truncation=truncation, min_insync_replicas=2)
        assert perform_run(run_spec, tmp_path / str(seed)).status == "completed"
        judgement = judge(run_spec.chosen(), check(tmp_path / str(seed) / "history"))
        assert judgement.broken == {}
        lost += judgement.lost
    assert (lost > 0) is loses


@pytest.mark.parametrize(("acks", "loses"), [(1, True), (-1, False)])
def test_a_planned_move_while_followers_lag_loses_with_acks_1_only(spec, tmp_path, acks, loses):
    lost = 0
    for seed in range(3):
        run_spec = msgspec.structs.replace(
            spec(seed, families=("move",), acks=acks, min_insync_replicas=2),
            faults=FaultPlan(families=("move",), count=4),
        )
        directory = tmp_path / str(seed)
        assert perform_run(run_spec, directory).status == "completed"
        judgement = judge(run_spec.chosen(), check(directory / "history"))
        assert judgement.broken == {}
        assert {"partition", "moveleader"} <= {fault.kind for fault in judgement.faults}
        lost += judgement.lost
    assert (lost > 0) is loses
