"""Rule 25 in a cluster: who meets a batch whose checksum is wrong, and what becomes of it."""

from __future__ import annotations

from typing import Any

from harness.broker.core.messages import Fetch, FetchPartition
from harness.broker.core.types import NONE
from harness.ground.observations import IsrChanged
from tests.harness.worlds.simulated.driven import AT


def stop(lab: Any, node: int) -> None:
    """A clean stop."""
    lab.cluster.stop(node)
    lab.wait(lambda: node not in lab.brokers)


def damage(lab: Any, node: int) -> None:
    """Make the batch of "w", the second in the log, a bad one."""
    assert lab.cluster.target.files.corrupt(node, str(AT), 500)["corrupted"]["offset"] == 1


def written(lab: Any) -> Any:
    """A cluster whose log holds "base" and "w" everywhere."""
    cluster = lab()
    cluster.write_ok(0, "w")
    cluster.settle()
    return cluster


def led_by_a_bad_log(lab: Any) -> Any:
    """A cluster whose leader was stopped in order, so that it did not look at its log when it came back: "w" is bad."""
    cluster = written(lab)
    stop(cluster, 0)
    damage(cluster, 0)
    cluster.start(0)
    cluster.settle()
    cluster.move_leader(0)
    return cluster


def read(lab: Any, node: int, offset: int) -> list[Any]:
    """The batches that a consumer is sent."""
    wanted = (FetchPartition(AT, offset),)
    return list(lab.ask(node, lambda c: Fetch(c, NONE, 100, wanted)).partitions[0].batches)


def test_after_an_unclean_stop_a_broker_ends_its_log_before_the_bad_batch_and_fetches_it_again(lab: Any) -> None:
    """S35: nobody is served what is bad."""
    cluster = written(lab)
    cluster.kill(1)
    damage(cluster, 1)
    cluster.start(1)
    cluster.wait(lambda: cluster.log_end(1) == 1)
    cluster.settle()
    assert cluster.records(1) == ["base", "w"]
    assert all(batch.intact for batch in cluster.log(1).batches)


def test_after_a_clean_stop_nobody_looks_and_a_leader_serves_what_is_bad(lab: Any) -> None:
    """As Kafka: a leader sends the bytes of its log as they are, and whoever reads them computes the checksum."""
    cluster = led_by_a_bad_log(lab)
    cluster.wait(lambda: cluster.leads(0))
    assert [batch.intact for batch in read(cluster, 0, 0)] == [True, False]
    assert cluster.committed() == ["base", "w"], (
        "its high watermark covers the batch: it is there, and nobody can read it"
    )


def test_a_follower_that_needs_a_bad_batch_of_its_leader_waits_for_it_in_vain(lab: Any) -> None:
    """As Kafka: it goes on asking, appends nothing, and stays out of the ISR; the other one has the batch already."""
    cluster = led_by_a_bad_log(lab)
    cluster.settle()
    cluster.kill(2)
    cluster.wipe(2)
    cluster.fence(2)
    cluster.start(2)
    cluster.wait(lambda: not cluster.image.brokers[2].fenced)
    cluster.run(5_000)
    assert cluster.log_end(2) == 0, "base came in the same answer, and nothing of such an answer is appended"
    assert cluster.state().isr == (0, 1)
    asked = [m for s, t, m in cluster.sent if (s, t) == (2, 0) and isinstance(m, Fetch)]
    assert 10 < len(asked) < 100, "with a backoff between its fetches"
    cluster.move_leader(1)
    cluster.settle()
    assert cluster.records(2) == ["base", "w"]


def test_a_last_in_sync_replica_that_reads_its_log_again_takes_the_record_from_everybody(lab: Any) -> None:
    """S34: the ISR shrinks to the leader, whose disk damages a record that all others have."""
    cluster = written(lab)
    cluster.cut((0, 1), (0, 2))
    cluster.nudge()
    cluster.wait(lambda: cluster.state().isr == (0,))
    cluster.kill(0)
    damage(cluster, 0)
    cluster.fence(0)
    cluster.heal()
    cluster.start(0)
    cluster.settle()
    assert {tuple(cluster.records(node)) for node in range(3)} == {("base",)}
    assert cluster.seen(IsrChanged)[-1].isr == (0, 1, 2)
