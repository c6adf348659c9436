"""The record with which a leader opens its epoch (rule 28) is seen by nobody: it has an offset and nothing else."""

from harness.broker.core.types import TopicPartition
from harness.worlds.simulated.replica_logs import logs_of
from workloads import LogPartition
from workloads.values import encode

AT = TopicPartition("t", 0)
MAJORITY = {"commit_rule": "majority", "leader_election": "largest-epoch-and-log-end"}


def test_consumers_pass_over_it(stage):
    scene = stage(**MAJORITY)
    send = scene.producer()
    outcomes = [scene.write(send, value) for value in ("x", "y")]
    assert [outcome.offset for outcome in outcomes] == [1, 2], "offset 0 is the leader's own"
    assert scene.read_all() == ["x", "y"]


def test_dumps_of_replicas_hold_nothing_in_its_place(stage):
    scene = stage(**MAJORITY)
    payload = encode("t-0", b"k", 5)
    sent = {}
    scene.world.clients.producer(99).send("t-0", b"k", payload, lambda outcome: sent.update(x=outcome))
    scene.until(lambda: bool(sent))
    scene.wait(600)
    for log in logs_of(scene.world.cluster, [LogPartition("t", 0)]).logs:
        (stretch,) = log.stretches
        columns = stretch.offsets, stretch.leader_epochs, stretch.values
        assert [column.tolist() for column in columns] == [[1], [0], [5]]
