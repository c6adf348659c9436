import pytest

from nemesis.cluster import ClusterView, PartitionView
from nemesis.faults import Aim, MoveLeader, Reassign
from nemesis.faults.reassign import in_one_rack
from nemesis.player import Player
from nemesis.receipts import effect_shown
from nemesis.roles import Role, RoleKind
from nemesis.schedule import Schedule, ScheduledFault


def view(leader=0, isr=(0, 1, 2), replicas=(0, 1, 2), running=(0, 1, 2), brokers=3):
    state = PartitionView(leader=leader, leader_epoch=4, isr=isr, replicas=replicas)
    return ClusterView({"t-0": state}, running=running, brokers=tuple(range(brokers)))


FOLLOWER = Role(RoleKind.FOLLOWER, 0, pick=1)
LEADER = Role(RoleKind.LEADER, 0)


def test_leadership_is_moved_to_the_holder_of_the_role():
    assert MoveLeader(FOLLOWER).aim(view()) == Aim(nodes=(2,), partition="t-0")


@pytest.mark.parametrize(("isr", "pick", "chosen"), [((0, 2), 0, 2), ((0, 1, 2), 0, 1), ((0, 1, 2), 7, 2)])
def test_of_several_holders_that_can_lead_the_pick_decides(isr, pick, chosen):
    aim = MoveLeader(Role(RoleKind.FOLLOWERS, 0, pick)).aim(view(isr=isr))
    assert aim.nodes == (chosen,)


@pytest.mark.parametrize(
    ("role", "state"),
    [
        (LEADER, view()),
        (FOLLOWER, view(isr=(0, 1))),
        (FOLLOWER, view(running=(0, 1))),
        (FOLLOWER, ClusterView({}, (0,), (0,))),
    ],
    ids=["leads already", "out of sync", "dead", "no partition"],
)
def test_a_move_that_the_cluster_would_refuse_is_not_asked_for(role, state):
    aim = MoveLeader(role).aim(state)
    assert aim.nodes == ()
    assert aim.impossible


def test_a_spare_broker_takes_the_place_of_the_one_that_leaves():
    aim = Reassign(LEADER).aim(view(running=(0, 1, 2, 4), brokers=5))
    assert (aim.nodes, aim.replicas, aim.replicas_before) == ((0,), (4, 1, 2), (0, 1, 2))


RACKS = {0: "a", 1: "a", 2: "a", 3: "b", 4: "c"}


@pytest.mark.parametrize(
    ("replicas", "together"),
    [((0, 3, 4), {}), ((0, 1, 4), {"a": [0, 1]}), ((2, 1, 0), {"a": [2, 1, 0]}), ((5, 6), {})],
)
def test_replicas_that_share_a_rack_are_named(replicas, together):
    assert in_one_rack(replicas, RACKS) == together


def test_the_receipt_of_a_reassignment_has_the_replicas_that_share_a_rack(make_world):
    _, receipt = played(make_world, Reassign(LEADER), racks={0: "a", 1: "b", 2: "b"})
    (evidence,) = receipt.begin_evidence.values()
    assert evidence["in_one_rack"] == {"b": [1, 2]}


def test_where_every_broker_has_a_replica_the_place_stays_empty():
    aim = Reassign(FOLLOWER).aim(view())
    assert (aim.nodes, aim.replicas, aim.replicas_before) == ((2,), (0, 1), (0, 1, 2))


@pytest.mark.parametrize("state", [view(isr=(0,)), view(running=(0,)), view(isr=(0,), replicas=(0,), brokers=1)])
def test_the_last_in_sync_replica_keeps_its_place(state):
    aim = Reassign(LEADER).aim(state)
    assert aim.impossible == "without broker 0 no in-sync replica of t-0 would run"


def played(make_world, fault, actions=None, racks=None):
    world = make_world()
    world.cluster.racks = racks or {}
    for name, action in (actions or {}).items():
        setattr(world.cluster, name, action)
    steps = (ScheduledFault(begin_ms=100, end_ms=200, group=0, family="move", scenario="a scenario", fault=fault),)
    player = Player(Schedule(steps=steps, healed_ms=900), world.target, world.clock, dead_brokers_max=0, witness=print)
    player.start()
    world.drive(lambda: False, 1_000_000)
    return world.cluster.calls, player.receipts[0]


def test_a_move_is_done_once_and_not_undone(make_world):
    calls, receipt = played(make_world, MoveLeader(FOLLOWER))
    assert calls == [("move_leader", ("t-0", 2))]
    assert (receipt.fault, receipt.targets, receipt.took_effect) == ("moveleader", (2,), True)


def test_replicas_are_as_before_when_a_reassignment_ends(make_world):
    calls, receipt = played(make_world, Reassign(LEADER))
    assert calls == [("reassign", ("t-0", (1, 2))), ("reassign", ("t-0", (0, 1, 2)))]
    assert (receipt.fault, receipt.targets, receipt.took_effect) == ("reassign", (0,), True)


def test_what_the_cluster_refused_did_not_happen_and_the_receipt_says_why(make_world):
    refusal = {"refused": "EligibleLeadersNotAvailableError", "leader": 0}
    _, receipt = played(make_world, MoveLeader(FOLLOWER), {"move_leader": lambda *_: refusal})
    assert (receipt.took_effect, receipt.reason) == (False, "refused: EligibleLeadersNotAvailableError")
    assert receipt.begin_evidence == {"2": refusal}


def test_evidence_without_a_refusal_stands():
    assert effect_shown(Aim(nodes=(2,)), {"2": {"leader": 2}})[0]
