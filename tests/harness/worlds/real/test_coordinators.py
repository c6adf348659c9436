"""Coordinators: the leaders of those partitions of internal topics that serve a name."""

from types import SimpleNamespace

import pytest

from harness.broker.core.types import NONE, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, PartitionState, serving_partition
from harness.worlds.real.view import ClusterImage, Viewer
from nemesis.cluster import ClusterView
from workloads.plan import WorkloadPlan


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", 0),
        ("ackproof", -1_907_278_245),
        ("ackproof-0", 1_056_643_390),
        # The one negative number whose sign cannot be taken away.
        ("polygenelubricants", -(2**31)),
    ],
)
def test_a_name_is_served_by_the_partition_that_javas_hash_of_it_names(name: str, code: int) -> None:
    positive = 0 if code == -(2**31) else abs(code)
    assert [serving_partition(name, partitions) for partitions in (1, 4, 50)] == [0, positive % 4, positive % 50]


def viewer_of(image: ClusterImage) -> Viewer:
    metadata = SimpleNamespace(image=lambda: image, controllers=lambda: (100,), controller_works=lambda: True)
    nodes = SimpleNamespace(brokers=(0, 1, 2), controllers=(100,), in_state=lambda _, asked: tuple(asked))
    return Viewer(metadata, nodes, WorkloadPlan(topic="t", producers=3))  # type: ignore[arg-type]


def view_of(image: ClusterImage) -> ClusterView:
    return viewer_of(image).view()


def led_by(topic: str, leaders: tuple[int, ...]) -> dict[str, PartitionState]:
    return {f"{topic}-{number}": PartitionState((0, 1, 2), (0,), leader, 1, 1) for number, leader in enumerate(leaders)}


def test_the_leader_of_the_partition_that_serves_it_coordinates() -> None:
    leaders = (0, 1, 2, 1)
    image = ClusterImage(partitions={**led_by(OFFSETS_TOPIC, leaders), **led_by(TRANSACTIONS_TOPIC, leaders)})
    view = view_of(image)
    assert view.coordinators == (leaders[serving_partition("t", 4)],)
    assert view.transaction_coordinators == tuple(leaders[serving_partition(f"t-{number}", 4)] for number in range(3))
    assert view.internal.keys() == image.partitions.keys()
    assert view.partitions == {}
    assert viewer_of(image).led_partitions().keys() == image.partitions.keys()


def test_a_partition_without_a_leader_serves_nobody_and_neither_does_a_topic_that_is_not_there() -> None:
    view = view_of(ClusterImage(partitions=led_by(TRANSACTIONS_TOPIC, (NONE, NONE, NONE, NONE))))
    assert (view.coordinators, view.transaction_coordinators) == ((), ())
