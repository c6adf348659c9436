"""Breaking a cluster by hand: each act is done to whom was meant, leaves a receipt, and lasts until it is healed."""

from __future__ import annotations

import msgspec
import pytest

from harness.ground.errors import PlanError
from harness.runs.cluster import BREAKS, VERBS, ByHand, ClusterRequest
from nemesis.cluster import CONTROLLER, Capability
from nemesis.receipts import Receipt
from tests.conftest import ObedientCluster, VirtualClock
from tests.nemesis.faults.test_instance_faults import Instances


class Hands:
    def __init__(self, **lacks: str):
        self.cluster, self.seen = ObedientCluster(partitions=("t-0", "t-1")), list[Receipt]()
        target = self.cluster.target(lacks={Capability(name): why for name, why in lacks.items()})
        self.by_hand = ByHand(target, VirtualClock().now_us, self.seen.append)

    def breaks(self, fault: str, **options: object) -> list[Receipt]:
        return self.by_hand.answer(ClusterRequest(op="break", fault=fault, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node", "partition", "hit"),
    [("leader", 0, 0), ("leader", 1, 1), ("follower", 0, 1), ("2", 0, 2), ("controller", 0, CONTROLLER)],
)
def test_a_kill_hits_whom_it_names_and_its_receipt_says_so(node: str, partition: int, hit: int) -> None:
    hands = Hands()
    (receipt,) = hands.breaks("kill", node=node, partition=partition)
    assert (receipt.fault, receipt.targets, receipt.took_effect, receipt.mark) == ("kill", (hit,), True, "begin")
    assert hands.cluster.dead == {hit}


def test_healing_undoes_everything_and_says_what_it_was() -> None:
    hands = Hands()
    hands.breaks("kill", node="0")
    hands.breaks("pause", node="1")
    hands.breaks("partition", node="2")
    healed = hands.by_hand.answer(ClusterRequest(op="heal"))
    assert sorted(receipt.fault for receipt in healed) == ["kill", "partition", "pause"]
    assert {receipt.mark for receipt in healed} == {"end"}
    assert (hands.cluster.dead, hands.cluster.frozen, hands.cluster.links) == (set(), set(), set())
    assert hands.by_hand.answer(ClusterRequest(op="heal")) == []
    assert [receipt.mark for receipt in hands.seen] == ["begin"] * 3 + ["end"] * 3


def test_a_node_that_died_by_itself_is_started_by_healing_too() -> None:
    hands = Hands()
    hands.cluster.dead.add(1)
    hands.by_hand.answer(ClusterRequest(op="heal"))
    assert hands.cluster.dead == set()


def test_of_several_followers_one_that_runs_is_hit() -> None:
    hands = Hands()
    hands.cluster.dead.add(1)
    assert hands.breaks("pause", node="follower")[0].targets == (2,)


def test_help_names_each_fault_once() -> None:
    assert len(set(VERBS.values())) == len(VERBS)
    assert BREAKS["powerloss"] is VERBS["power"]


@pytest.mark.parametrize("fault", BREAKS)
def test_every_break_leaves_a_receipt(fault: str) -> None:
    hands = Hands()
    assert hands.breaks(fault, node="1")
    assert hands.seen


@pytest.mark.parametrize(
    ("fault", "options", "sentence"),
    [
        ("kil", {}, 'unknown fault "kil"; did you mean "kill"?'),
        (
            "kill",
            {"node": "leadr"},
            r'unknown node "leadr"; did you mean "leader"\? \(there are leader, follower, .*brokers\' numbers\)',
        ),
        ("kill", {"node": "7"}, "kill: broker 7 does not exist now"),
        ("partition", {}, "partition: no namespaces here"),
        ("move", {"node": "0"}, "move: broker 0 .* leads already"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(fault: str, options: dict[str, str], sentence: str) -> None:
    hands = Hands(links="no namespaces here")
    with pytest.raises(PlanError, match=sentence):
        hands.breaks(fault, **options)
    assert hands.seen == []


@pytest.mark.parametrize(
    ("fault", "capability", "option"),
    [
        ("power", Capability.POWER, "--family power"),
        ("powerloss", Capability.POWER, "--family power"),
        ("lie", Capability.WRITE_CACHES, "--family lying-disk"),
        ("fill", Capability.DISK_SPACE, "--family full-disk"),
        ("throttle", Capability.DISK_SPEED, "--family slow-disk"),
        ("skew", Capability.CLOCKS, "--family clock"),
        ("slow", Capability.LINK_SPEED, "--host namespaces --family slow-link"),
    ],
)
def test_what_the_cluster_was_not_made_ready_for_names_the_option_that_does(
    fault: str, capability: Capability, option: str
) -> None:
    target = msgspec.structs.replace(
        ObedientCluster().target(lacks={capability: "no such fault was planned"}), unplanned=frozenset({capability})
    )
    said = f"{fault}: this cluster was not made ready for it; end it, and start one with: ackproof cluster up {option}"
    with pytest.raises(PlanError) as refused:
        ByHand(target, VirtualClock().now_us, [].append).answer(ClusterRequest(op="break", fault=fault))
    assert str(refused.value) == said


def test_links_that_this_host_cannot_slow_name_the_host_that_can() -> None:
    with pytest.raises(PlanError, match=r"^slow: loopback; end it, .* up --host namespaces --family slow-link$"):
        Hands(link_speed="loopback").breaks("slow")


def test_a_cluster_to_play_with_has_no_clients_that_could_crash() -> None:
    target = msgspec.structs.replace(ObedientCluster().target(), clients=None)
    with pytest.raises(PlanError, match=r"^crash: a cluster to play with has no clients of its own; end yours"):
        ByHand(target, VirtualClock().now_us, [].append).answer(ClusterRequest(op="break", fault="crash"))


def test_instances_of_an_application_are_broken_by_their_numbers_and_without_it_are_not_there() -> None:
    target = msgspec.structs.replace(ObedientCluster().target(), instances=None)
    with pytest.raises(PlanError, match=r"^kill-instance: no application runs here; end it, .* --application COMMAND$"):
        ByHand(target, VirtualClock().now_us, [].append).answer(ClusterRequest(op="break", fault="kill-instance"))
    instances = Instances()
    hands = ByHand(msgspec.structs.replace(target, instances=instances), VirtualClock().now_us, [].append)
    hands.answer(ClusterRequest(op="break", fault="kill-instance", node="1"))
    hands.answer(ClusterRequest(op="break", fault="freeze-instance"))
    hands.answer(ClusterRequest(op="heal"))
    assert instances.acts == ["kill", "freeze", "restore", "restore", "restore all"]
    assert instances.picks[:4] == [1, 0, 0, 1]
