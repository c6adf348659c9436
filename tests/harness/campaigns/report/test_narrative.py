"""A lost write's story: in order of time, with who was deposed, why there was a cut, and where copies are left."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from checkers.anomalies.divergent_replicas import DivergentReplicas
from checkers.anomalies.divergent_state import DivergentState
from checkers.anomalies.divergent_tables import DivergentTables
from harness.campaigns.report.client_side import AcknowledgedWrite
from harness.campaigns.report.narrative import narrate, remains
from harness.campaigns.report.timeline import Timeline
from harness.ground.observations import BecameLeader, JvmPaused, LeaderElected, Observation, Truncated
from nemesis.cluster import CLIENTS
from nemesis.receipts import Receipt
from tests.checkers.findings import a_finding
from tests.nemesis.receipt_factory import a_receipt
from workloads.values import join

WRITE = AcknowledgedWrite(value=join(2, 41), invoked_us=1_000_000, acknowledged_us=1_003_000, offset=41, node=0)
LEADER_0 = Observation(100_000, 0, BecameLeader(partition="t-0", leader_epoch=3, end_offset=0, isr=(0, 1)))


def receipt(begun_s: float, fault: str = "kill", **more: Any) -> Receipt:
    times = {"begun_us": round(begun_s * 1e6), "ended_us": round(begun_s * 1e6) + 500_000}
    return a_receipt(**{"fault": fault, "role": "the leader"} | times | more)


def leads(at_s: float, node: int, epoch: int, end_offset: int) -> Observation:
    fact = BecameLeader(partition="t-0", leader_epoch=epoch, end_offset=end_offset, isr=(node,))
    return Observation(round(at_s * 1e6), node, fact)


def story(*cluster: Observation, faults: tuple[Receipt, ...] = (), write: AcknowledgedWrite = WRITE) -> list[str]:
    return narrate(
        Timeline(
            partition="t-0",
            write=write,
            begin_us=0,
            end_us=9_000_000,
            faults=faults,
            end_offset=60,
            observations=(LEADER_0, *cluster),
        )
    )


def position_of(sentences: list[str], words: str) -> int:
    (position,) = (number for number, sentence in enumerate(sentences) if words in sentence)
    return position


def test_what_happened_is_told_in_order_of_time() -> None:
    cut = Observation(4_000_000, 0, Truncated(partition="t-0", from_offset=50, to_offset=40, leader=1))
    reported = story(leads(2.5, 1, 4, 40), cut, faults=(receipt(1.1), receipt(2.0, "pause")))
    order = [
        position_of(reported, words)
        for words in ("acknowledged at", "kill", "pause", "began to lead", "truncated", "After")
    ]
    assert order == sorted(order)


def test_faults_after_the_write_was_gone_are_counted_not_told() -> None:
    reported = story(leads(2.5, 1, 4, 40), faults=(receipt(1.1), receipt(3.0, "pause"), receipt(5.0, "pause")))
    assert "Not told here: 2 later faults; the chart of the report shows all." in reported
    assert not [sentence for sentence in reported if "pause" in sentence]


def test_leaders_after_the_one_that_lacked_the_write_are_not_told() -> None:
    reported = story(leads(2.5, 1, 4, 40), leads(6.0, 2, 5, 55))
    assert "At 2.500 s broker 1 began to lead in epoch 4; its log ended at offset 40, without the write." in reported
    assert not [sentence for sentence in reported if "broker 2" in sentence]


def test_a_leader_that_was_deposed_when_it_acknowledged_is_called_so() -> None:
    reported = story(leads(0.9, 1, 4, 40))
    assert reported[0].endswith("By then broker 1 led in epoch 4: broker 0 was deposed and did not know it.")
    assert position_of(reported, "without the write") > 0


def test_a_leader_that_was_the_only_one_is_not() -> None:
    assert "deposed" not in story(leads(2.5, 1, 4, 40))[0]


def test_a_cut_before_a_kill_says_what_it_is_for_and_a_cut_by_itself_does_not() -> None:
    first, alone = receipt(1.0, "partition"), receipt(1.0, "partition", family="partition")
    assert "this lets followers fall a little behind" in " ".join(story(faults=(first,)))
    assert "followers fall" not in " ".join(story(faults=(alone,)))


def test_an_unclean_election_is_told() -> None:
    elected = LeaderElected(partition="t-0", leader=1, leader_epoch=4)
    unclean = Observation(2_000_000, 100, msgspec.structs.replace(elected, unclean=True))
    clean = Observation(2_100_000, 100, elected)
    reported = [sentence for sentence in story(unclean, clean) if "controller elected" in sentence]
    assert reported == ["At 2.000 s the controller elected broker 1, which was out of sync."]


def test_pauses_of_java_are_told_until_the_write_was_gone() -> None:
    fact = JvmPaused(pause_ms=412, cause="GenCollectForAllocation")
    pauses = [Observation(time_us, 100, fact) for time_us in (1_500_000, 7_000_000)]
    reported = [sentence for sentence in story(*pauses, leads(2.5, 1, 4, 40)) if "stood still" in sentence]
    assert len(reported) == 1
    assert reported[0].startswith("At 1.500 s the Java of the controller stood still for 412 ms")


def test_a_node_that_ended_by_itself_is_nobodys_order() -> None:
    died = receipt(1.2, "died", family="died", story="died", begin_evidence={"0": {"exit": "status 1"}})
    assert "Not ordered: broker 0 ended by itself (status 1) at 1.200 s, down until 1.700 s." in story(faults=(died,))


def test_a_write_without_an_offset_has_its_story_too() -> None:
    reported = story(leads(2.5, 1, 4, 40), write=msgspec.structs.replace(WRITE, offset=None))
    assert "At 2.500 s broker 1 began to lead in epoch 4; its log ended at offset 40." in reported


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        ({"fate": "destroyed"}, "no broker's log held a copy"),
        ({"fate": "hidden", "copies": [{"node": 2, "offset": 17}]}, "a copy was left on broker 2 at offset 17, where"),
        (
            {"fate": "in the log", "copies": [{"node": 1, "offset": 3}, {"node": 2, "offset": 3}]},
            "3 and on broker 2 at",
        ),
        ({"fate": "unknown"}, "not known"),
    ],
)
def test_what_is_left_of_the_write_is_said(finding: dict[str, Any], words: str) -> None:
    (sentence,) = remains(a_finding("lost-write", **finding))
    assert words in sentence


def test_nothing_is_said_of_copies_where_nobody_looked() -> None:
    assert remains(a_finding("lost-write", key="t-0", value=7)) == []


def test_a_lost_write_that_readers_of_the_other_level_see_is_told_with_them() -> None:
    lost = a_finding("lost-write", key="t-0", value=join(0, 3), **{"other-read": {"op_pos": 9, "index": 9}})
    assert lost.words() == (
        "Readers of the other isolation level read write 3 of process 0 (operation 9 of the history)."
    )
    assert a_finding("lost-write", key="t-0", value=join(0, 3)).words() == ""


def test_replicas_that_differ_are_told_record_by_record() -> None:
    sentence = DivergentReplicas(key="t-0", offset=5, replicas={1: join(0, 3), 0: -77}).words()
    assert sentence.startswith(
        "At offset 5 of t-0, when the run had ended, broker 0 holds a record that is not sound, broker 1 holds write 3"
    )


def test_a_record_under_two_leader_epochs_is_told_with_them() -> None:
    replicas = dict.fromkeys((0, 1), join(0, 3))
    sentence = DivergentReplicas(key="t-0", offset=5, replicas=replicas, epochs={0: 2, 1: 3}).words()
    assert "broker 0 holds write 3 of process 0 under leader epoch 2, broker 1 holds" in sentence


def test_a_deleted_key_that_is_back_is_told_by_its_offsets() -> None:
    back = {"record-key": 7, "value": 1, "offset": 3, "tombstone": 2, "tombstone-offset": 8}
    sentence = a_finding("returned-key", key="t-0", **back, reader={"op_pos": 5, "index": 5}).words()
    assert "Key 7 of t-0 was deleted by the tombstone at offset 8" in sentence
    assert "its older record at offset 3 as the last one" in sentence


def test_a_generation_that_went_back_is_told_with_the_one_that_it_follows() -> None:
    places: dict[str, Any] = {"op": {"op_pos": 9, "index": 9}, "earlier": {"op_pos": 5, "index": 5}}
    back = a_finding("stale-generation", key="t-0", group="g", generation=5, **{"earlier-generation": 7}, **places)
    assert back.words() == (
        "A member of group g was assigned t-0 in generation 7 (operation 5 of the history). "
        "After that it was assigned in generation 5 (operation 9)."
    )


def test_tables_that_differ_are_told_by_broker() -> None:
    sentence = DivergentTables(key="t-0", record_key=7, replicas={2: join(0, 3), 1: None}).words()
    assert "the last record of key 7 was not the same in the logs of t-0" in sentence
    assert "on broker 1 it is deleted, on broker 2 it is write 3 of process 0" in sentence


def test_states_of_a_key_that_differ_are_told_by_reader() -> None:
    sentence = DivergentState(key="t-0", record_key=7, states={9: None, 10: join(0, 3)}).words()
    assert "process 9 no record, process 10 write 3 of process 0" in sentence
    assert a_finding("lost-write", key="t-0", value=7).words() == ""


def test_a_leader_that_changed_unasked_is_nobodys_order() -> None:
    moved = {"t-0": {"leader": [0, 1], "leader_epoch": [3, 4]}}
    of_fault = {"family": "unasked", "story": "unasked", "targets": (), "begun_us": 0, "ended_us": 8_000_000}
    reported = story(faults=(receipt(0, "unasked", moved=moved, **of_fault),))
    assert (
        "Not ordered: between 0.000 s and 8.000 s the leader changed (leader 0 → 1, epoch 3 → 4), and no fault of "
        "this run that reached the cluster explains it." in reported
    )


def test_a_crashed_producer_is_named_by_its_instance_and_not_as_all_clients() -> None:
    evidence = {str(CLIENTS): {"instance": 2, "outstanding": 5, "successor": 9}}
    reported = story(
        faults=(receipt(0.9, "clientcrash", role="a producer", targets=(CLIENTS,), begin_evidence=evidence),)
    )
    assert (
        "Fault: clientcrash [a producer] from 0.900 s until 1.400 s; producer 2 died (sends outstanding: 5), "
        "producer 9 took its place." in reported
    )
