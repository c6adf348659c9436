"""Anomalies planted one at a time: each is found with its witness, and nothing else is."""

from __future__ import annotations

import msgspec
import pytest

from checkers.anomalies.cycles import EmptyGraph
from checkers.columns.log_rows import EventPlace
from checkers.verdicts.verdict import Verdict
from tests.checkers.findings import forbidden
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import FAIL, INFO, INVOKE, OK, Scene
from workloads.operations import EventType, Function, PayloadDefect, Poll, Record, Send


def judged(scene: Scene, *, complete: bool = True) -> Verdict:
    return judge_events(scene.events, complete=complete)


def names(verdict: Verdict) -> list[str]:
    return sorted(verdict.anomalies)


def healthy() -> Scene:
    scene = Scene()
    scene.assign("t-0")
    for value in range(4):
        scene.send(value, value)
    scene.poll((0, 0), (1, 1))
    scene.poll((2, 2), (3, 3))
    return scene


def test_a_healthy_history_has_no_anomaly() -> None:
    verdict = judged(healthy())
    assert forbidden(verdict) == []
    assert verdict.valid is True


def test_an_overwritten_tail_is_lost_and_its_offset_inconsistent() -> None:
    """An acknowledged record is truncated by a new leader and its offset given away: ack before replication."""
    scene = healthy()
    writer = scene.send(4, 4)
    scene.send(5, 4, process=2)
    scene.poll((4, 5))
    verdict = judged(scene)
    (lost,) = verdict.anomalies["lost-write"]
    assert (lost.value, lost.index, lost.max_read_index) == (4, 4, 4)
    assert lost.writer == EventPlace(writer, writer)
    (conflict,) = verdict.anomalies["inconsistent-offsets"]
    assert (conflict.offset, conflict.values) == (4, [4, 5])
    assert [(w.value, w.by) for w in conflict.seen] == [(4, "send"), (5, "send"), (5, "poll")]


def test_a_truncated_tail_that_never_grows_again_is_only_unseen_without_a_drain() -> None:
    scene = healthy()
    scene.send(4, 4)
    assert names(judged(scene)) == ["unseen"]


def test_a_truncated_tail_is_lost_once_final_readers_drained_the_log() -> None:
    scene = healthy()
    scene.send(4, 4)
    scene.poll((0, 0), (1, 1), (2, 2), (3, 3), process=9)
    scene.drain(4)
    verdict = judged(scene)
    (lost,) = verdict.anomalies["lost-write"]
    assert (lost.value, lost.rule, lost.log_end_offset) == (4, "drained", 4)


def test_what_is_acknowledged_at_the_end_that_final_readers_were_told_is_not_lost() -> None:
    scene = healthy()
    scene.poll((0, 0), (1, 1), (2, 2), (3, 3), process=9)
    scene.drain(4)
    scene.send(4, 4)
    assert names(judged(scene)) == ["unseen"]


def read_twice(*of_second: tuple[int, int], end: int = 6) -> Scene:
    """Two final readers, each under another leader; the first has ``0@3`` and ``1@5``, the second what is given."""
    scene = Scene()
    scene.send(0, 3)
    scene.send(1, 5)
    scene.poll((3, 0), (5, 1), process=9)
    scene.drain(6, process=9, leader=0)
    scene.poll(*of_second, process=10)
    scene.drain(end, process=10, leader=2)
    return scene


def test_a_record_that_is_read_under_one_leader_only_is_a_divergent_read() -> None:
    verdict = judged(read_twice((3, 0)))
    (odd,) = verdict.anomalies["divergent-reads"]
    assert (odd.value, odd.offset, odd.readers, odd.others) == (1, 5, [9], [10])
    assert names(verdict) == ["divergent-reads"]
    assert verdict.valid is False


@pytest.mark.parametrize(("of_second", "end"), [(((3, 0), (5, 1)), 6), (((3, 0),), 5), (((3, 0),), 4)])
def test_final_readers_differ_where_their_ends_do_or_not_at_all(
    of_second: tuple[tuple[int, int], ...], end: int
) -> None:
    assert names(judged(read_twice(*of_second, end=end))) == []


def test_a_write_without_an_offset_is_lost_once_the_log_was_drained() -> None:
    """acks=0: nobody told an offset, so only the drain can prove the loss."""
    scene = healthy()
    scene.send(4, None)
    scene.poll((0, 0), (1, 1), (2, 2), (3, 3), process=9)
    scene.drain(4)
    assert [f.value for f in judged(scene).anomalies["lost-write"]] == [4]


def test_a_record_that_was_read_and_then_destroyed_is_lost() -> None:
    scene = healthy()
    scene.poll((0, 0), (1, 1), (2, 2), process=9)
    scene.drain(3)
    assert [f.value for f in judged(scene).anomalies["lost-write"]] == [3]


def test_a_write_acknowledged_while_the_drain_ran_is_not_lost() -> None:
    scene = healthy()
    scene.poll((0, 0), (1, 1), (2, 2), (3, 3), process=9)
    scene.send(4, 4)
    scene.drain(4)
    assert names(judged(scene)) == ["unseen"]


def test_a_drain_that_failed_proves_nothing() -> None:
    scene = healthy()
    scene.send(4, 4)
    scene.poll((0, 0), process=9)
    scene.drain(None, kind=INFO)
    assert names(judged(scene)) == ["unseen"]


def test_uncertain_and_failed_writes_are_never_lost() -> None:
    scene = healthy()
    scene.send(10, None, kind=INFO)
    scene.send(11, None, kind=FAIL)
    scene.event(0, INVOKE, Function.SEND, micro=(Send("t-0", 12),))
    scene.poll((0, 0), (1, 1), (2, 2), (3, 3), process=9)
    scene.drain(4)
    verdict = judged(scene)
    assert forbidden(verdict) == []
    assert (verdict.exercise.attempted, verdict.exercise.rejected, verdict.exercise.unknown) == (7, 1, 2)


def test_a_timed_out_write_that_appears_later_is_lawful() -> None:
    scene = healthy()
    scene.send(4, None, kind=INFO)
    scene.poll((4, 4))
    assert forbidden(judged(scene)) == []


def test_a_retried_write_stands_twice() -> None:
    scene = healthy()
    scene.send(4, 5)
    scene.poll((4, 4), (5, 4))
    verdict = judged(scene)
    assert [(f.value, f.offsets) for f in verdict.anomalies["duplicate"]] == [(4, [4, 5])]
    assert names(verdict) == ["duplicate", "int-nonmonotonic-poll", "poll-skip"], "the last of its places counts"


def test_a_value_that_nobody_wrote_is_a_phantom() -> None:
    scene = healthy()
    reader = scene.poll((4, 77))
    (phantom,) = judged(scene).anomalies["phantom-read"]
    assert msgspec.to_builtins(phantom) == {
        "key": "t-0",
        "value": 77,
        "offset": 4,
        "reader": {"op_pos": reader, "index": reader},
    }


def test_a_write_that_was_only_begun_is_no_phantom() -> None:
    scene = healthy()
    scene.event(0, INVOKE, Function.SEND, micro=(Send("t-0", 4),))
    scene.poll((4, 4))
    assert forbidden(judged(scene)) == []


def test_writes_in_flight_that_changed_places_are_reordered() -> None:
    """The second and the third are appended before the first, which had to be sent again."""
    scene = Scene()
    scene.pipelined(0, 1, 2, answered={1: 0, 2: 1, 0: 2})
    scene.poll((0, 1), (1, 2), (2, 0))
    verdict = judged(scene)
    assert names(verdict) == ["reordered"]
    assert verdict.counts == {"reordered": 2}, "each write that stands before an earlier one, once"
    furthest = verdict.anomalies["reordered"][0]
    assert (furthest.values, furthest.delta) == ([0, 1], -2)
    assert [op.op_pos for op in furthest.ops] == [5, 3]
    assert (verdict.delivery.reordered, verdict.delivery.ordered) == (2, False)


def test_an_acknowledgement_out_of_turn_reorders_nothing() -> None:
    scene = Scene()
    scene.pipelined(0, 1, answered={1: 1, 0: 0})
    scene.poll((0, 0), (1, 1))
    verdict = judged(scene)
    assert forbidden(verdict) == []
    assert (verdict.delivery.observed, verdict.delivery.ordered) == ("exactly-once", True)


def test_nothing_acknowledged_is_not_exactly_once_and_single_writes_are_in_no_order() -> None:
    """A run whose producers got nothing said "exactly-once, in order"."""
    silent, single = Scene(), Scene()
    silent.event(20, INFO, Function.SEND, instance=20, micro=(Send("t-0", 0),))
    silent.poll((0, 0))
    for value, instance in ((0, 20), (1, 21)):
        single.pipelined(value, answered={value: value}, instance=instance)
    single.poll((0, 0), (1, 1))
    assert [judged(scene).delivery.words for scene in (silent, single)] == ["unknown", "exactly-once"]


@pytest.mark.parametrize("log", [(0, 1, 0), (1, 0, 1)], ids=["the first twice", "the second twice"])
def test_a_duplicate_is_excused_by_whichever_of_its_places_keeps_the_order(log: tuple[int, ...]) -> None:
    scene = Scene()
    scene.pipelined(0, 1, answered={0: log.index(0), 1: log.index(1)})
    scene.poll(*enumerate(log))
    assert "reordered" not in judged(scene).counts
    assert "duplicate" in judged(scene).counts


def test_a_lost_write_has_no_place_before_or_behind_others() -> None:
    """The first is acknowledged at 4 and read there; the leader with it is gone; the second gets offset 0."""
    scene = Scene()
    scene.pipelined(0, 1, answered={0: 4})
    scene.poll((4, 0))
    scene.event(21, OK, Function.SEND, instance=20, micro=(Send("t-0", 1, 0),))
    scene.poll((0, 1), process=9)
    scene.drain(1)
    verdict = judged(scene)
    assert names(verdict) == ["lost-write"]
    assert verdict.delivery.ordered is True


@pytest.mark.parametrize("kind", [INFO, FAIL])
def test_a_producer_owes_no_order_to_a_write_that_it_gave_up(kind: EventType) -> None:
    scene = Scene()
    scene.pipelined(0, 1, answered={1: 0})
    scene.event(20, kind, Function.SEND, instance=20, micro=(Send("t-0", 0),))
    scene.poll((0, 1), (1, 0))
    assert "reordered" not in judged(scene).counts


def test_two_producers_and_unknown_ones_may_write_in_any_order() -> None:
    scene = Scene()
    for value, instance in enumerate((20, 21, -1, -1)):
        scene.pipelined(value, answered={value: 3 - value}, instance=instance)
    scene.poll((0, 3), (1, 2), (2, 1), (3, 0))
    verdict = judged(scene)
    assert forbidden(verdict) == []
    assert (verdict.delivery.unattributed, verdict.delivery.ordered) == (2, None)


def test_a_broken_record_is_one_finding_however_many_read_it() -> None:
    scene = healthy()
    for process in (1, 2):
        scene.poll(scene.corrupt(4, PayloadDefect.CHECKSUM), process=process)
    scene.poll(scene.corrupt(5, PayloadDefect.WRONG_PARTITION, value=3))
    verdict = judged(scene)
    assert [(f.offset, f.defect) for f in verdict.anomalies["corrupt-read"]] == [
        (4, "checksum"),
        (5, "wrong-partition"),
    ]
    assert names(verdict) == ["corrupt-read"]


def test_a_consumer_that_skips_and_one_that_goes_back() -> None:
    scene = healthy()
    scene.poll((0, 0), process=3)
    scene.poll((2, 2), process=3)
    scene.poll((1, 1), process=3)
    verdict = judged(scene)
    assert [f.skipped for f in verdict.anomalies["poll-skip"]] == [[1]]
    assert [(f.values, f.delta) for f in verdict.anomalies["nonmonotonic-poll"]] == [([2, 1], -1)]


def test_an_empty_poll_of_a_partition_forgets_the_place() -> None:
    scene = healthy()
    scene.poll((0, 0), process=3)
    scene.poll(process=3)
    scene.poll((3, 3), process=3)
    assert forbidden(judged(scene)) == []


def test_an_empty_poll_that_nobody_else_follows_is_ordinary() -> None:
    scene = healthy()
    scene.poll(key="t-1")
    assert forbidden(judged(scene)) == []


def test_where_nothing_depends_on_anything_that_is_all_there_is_to_tell() -> None:
    scene = Scene()
    scene.poll()
    assert judged(scene).anomalies == {"empty-transaction-graph": [EmptyGraph(sends=0, reads=0)]}
    scene.phase("break")
    assert forbidden(judged(scene)) == [], "our own runs count what they exercised"


def test_a_cut_off_history_is_unknown_unless_loss_is_proved() -> None:
    scene = healthy()
    scene.send(4, 4)
    verdict = judged(scene, complete=False)
    assert (verdict.valid, verdict.anomalies) == ("unknown", {})
    assert "cut off" in (verdict.reason or "")
    scene.send(5, 4, process=2)
    scene.poll((4, 5))
    assert judged(scene, complete=False).valid is False


def test_a_run_whose_final_readers_failed_is_unknown() -> None:
    scene = Scene()
    scene.phase("break")
    scene.send(0, 0)
    scene.phase("drain")
    scene.drain(None, kind=INFO)
    verdict = judged(scene)
    assert verdict.valid == "unknown"
    assert "did not reach the end of t-0" in (verdict.reason or "")
    assert verdict.exercise.drained is False


def test_skipping_is_allowed_where_consumers_subscribe() -> None:
    scene = healthy()
    scene.assign("t-0", process=3, function=Function.SUBSCRIBE)
    scene.poll((0, 0), process=3)
    scene.poll((2, 2), process=3)
    verdict = judged(scene)
    assert names(verdict) == ["poll-skip"]
    assert verdict.valid is True


def test_huge_offsets_cost_no_memory() -> None:
    scene = Scene()
    for value, offset in enumerate((0, 2**40, 2**62 - 1)):
        scene.send(value, offset)
    scene.poll((0, 0), (2**62 - 1, 2))
    verdict = judged(scene)
    assert [f.value for f in verdict.anomalies["lost-write"]] == [1]


def test_an_uncertain_write_is_proved_by_a_read_of_another_partition() -> None:
    """A transaction happens as a whole: its write to t-1 was read, so its write to t-0 must be there."""
    scene = Scene()
    micro = (Send("t-0", 1, 0), Send("t-1", 2, 0))
    scene.operation(0, Function.TXN, *micro, kind=INFO)
    scene.send(3, 1)
    scene.poll((1, 3))
    assert "lost-write" not in judged(scene).anomalies
    scene.operation(2, Function.POLL, Poll({"t-1": (Record(0, 2),)}))
    assert [f.value for f in judged(scene).anomalies["lost-write"]] == [1]
