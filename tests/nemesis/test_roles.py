import msgspec
import pytest

from nemesis.cluster import ClusterView, PartitionView
from nemesis.roles import Role, RoleKind, most_holders, resolve

VIEW = ClusterView(
    {
        "t-0": PartitionView(leader=2, leader_epoch=4, isr=(2, 0), replicas=(0, 1, 2)),
        "t-1": PartitionView(leader=None, leader_epoch=5, isr=(1,), replicas=(1, 2, 0)),
    },
    running=(0, 2),
    brokers=(0, 1, 2),
    controllers=(102, 100, 101),
    racks={0: "a", 1: "b", 2: "a"},
    coordinators=(1,),
    transaction_coordinators=(2, 0, 2),
)


@pytest.mark.parametrize(
    ("role", "brokers"),
    [
        (Role(RoleKind.LEADER, 0), (2,)),
        (Role(RoleKind.LEADER, 1), ()),
        (Role(RoleKind.LEADER, 2), (2,)),
        (Role(RoleKind.FOLLOWER, 0, pick=1), (1,)),
        (Role(RoleKind.FOLLOWERS, 0), (0, 1)),
        (Role(RoleKind.ISR_MEMBER, 0, pick=3), (2,)),
        (Role(RoleKind.OUT_OF_ISR, 0, pick=7), (1,)),
        (Role(RoleKind.BROKER, pick=1), (2,)),
        (Role(RoleKind.MINORITY, pick=0), (0,)),
        (Role(RoleKind.MINORITY, pick=1), ()),
        (Role(RoleKind.RACK, pick=0), (0, 2)),
        (Role(RoleKind.RACK, pick=3), (1,)),
        (Role(RoleKind.NAMED, pick=1), (1,)),
        (Role(RoleKind.NAMED, pick=9), ()),
        (Role(RoleKind.CONTROLLER), (102,)),
        (Role(RoleKind.COORDINATOR), (1,)),
        (Role(RoleKind.TRANSACTION_COORDINATOR, pick=0), (0,)),
        (Role(RoleKind.TRANSACTION_COORDINATOR, pick=4), (2,)),
    ],
)
def test_a_role_is_held_by_whom_the_cluster_says(role, brokers):
    assert resolve(role, VIEW) == brokers


def test_log_partitions_are_numbered_as_people_count_and_topic_after_topic():
    names = ["t.10-0", "t.2-0", "t-10", "t-2", "t-0"]
    leaders = {name: PartitionView(leader=n, leader_epoch=0, isr=(n,), replicas=(n,)) for n, name in enumerate(names)}
    view = msgspec.structs.replace(VIEW, partitions=leaders)
    assert [resolve(Role(RoleKind.LEADER, number), view) for number in range(5)] == [(4,), (3,), (2,), (1,), (0,)]


def test_where_brokers_have_no_racks_nobody_is_a_rack():
    assert resolve(Role(RoleKind.RACK), ClusterView({}, (0,), (0,))) == ()


def test_nobody_holds_a_role_in_a_cluster_without_partitions():
    assert resolve(Role(RoleKind.LEADER), ClusterView({}, (0,), (0,))) == ()


@pytest.mark.parametrize("kind", list(RoleKind))
def test_a_role_never_has_more_holders_than_it_may(kind):
    for pick in range(3):
        role = Role(kind, 0, pick)
        assert len(set(resolve(role, VIEW)) & set(VIEW.brokers)) <= most_holders(role, len(VIEW.brokers), rack_size=2)
