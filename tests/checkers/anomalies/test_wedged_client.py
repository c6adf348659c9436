"""A client that wrote nothing beside one that could is a finding about the client, and never the fault of the log."""

import msgspec
import pytest

from checkers.anomalies.wedged_client import find, wedged_clients
from checkers.columns.loading import Unit, load_units
from checkers.local import check_one
from checkers.verdicts.identity import identities
from checkers.verdicts.judgement import judge
from tests.checkers.in_memory import judge_events
from workloads import Event, EventType, Function, Retirement, Send
from workloads.history import HistoryWriter
from workloads.operations import HARNESS
from workloads.settings import Settings

FACTS = Retirement(
    reason="silent",
    successor=7,
    silent_ms=5_500,
    partitions=("t-0", "t-1"),
    errors=("KafkaTimeoutError: expired", "TimeLimit"),
    client="kafka-python 3.0.12",
    wedged=("t-0", "t-1"),
)


def phase(mark, time_us=0):
    detail = msgspec.json.encode({"mark": mark}).decode()
    return Event(time_us=time_us, process=HARNESS, type=EventType.INFO, function=Function.PHASE, detail=detail)


def send(kind, partition, value, *, process=0, time_us=1):
    offset = value if kind is EventType.OK else None
    micro = (Send(partition, value, offset),)
    return Event(time_us=time_us, process=process, instance=process, type=kind, function=Function.SEND, micro=micro)


def retire(facts, process=0, time_us=9):
    text = msgspec.json.encode(facts).decode()
    return Event(
        time_us=time_us, process=process, instance=process, type=EventType.INFO, function=Function.RETIRE, detail=text
    )


def drain(partition, offset):
    return Event(
        time_us=11, process=9, type=EventType.OK, function=Function.DRAIN, partitions=(partition,), offset=offset
    )


def run(facts=FACTS):
    return [
        phase("break"),
        *(send(EventType.INFO, name, value) for value, name in enumerate(("t-0", "t-1", "t-2"))),
        *(send(EventType.INFO, name, value, time_us=8) for value, name in enumerate(("t-0", "t-1"), 3)),
        retire(facts),
        *(drain(name, 0) for name in ("t-0", "t-1", "t-2")),
        phase("end", 12),
    ]


def test_each_wedged_log_partition_is_a_finding_with_library_version_and_last_errors():
    verdict = judge_events(run())
    first, second = verdict.anomalies["wedged-client"]
    assert (first.key, second.key) == ("t-0", "t-1")
    assert (first.client, first.errors) == ("kafka-python 3.0.12", list(FACTS.errors))
    assert (first.instance, first.successor, first.reason) == (0, 7, "silent")
    assert verdict.times_us["wedged-client"] == [8, 8], "that of the last write which it was asked for"


def test_a_producer_that_was_given_up_and_not_wedged_is_none():
    assert "wedged-client" not in judge_events(run(msgspec.structs.replace(FACTS, wedged=()))).counts


def test_it_breaks_no_promise_and_makes_no_history_invalid():
    verdict = judge_events(run())
    assert verdict.valid is True
    judgement = judge(Settings(), verdict)
    assert (judgement.broken, judgement.permitted, judgement.lost) == ({}, {"wedged-client": 2}, 0)
    without = judge(Settings(), judge_events(run(msgspec.structs.replace(FACTS, wedged=()))))
    assert judgement.outcome == without.outcome


@pytest.mark.parametrize(("client", "same"), [("kafka-python 3.1.0", True), ("confluent-kafka 2.16.1", False)])
def test_its_identity_has_the_library_and_not_the_version(client, same):
    names = [
        identities(judge_events(run(facts)), {}, [])["wedged-client"]
        for facts in (FACTS, msgspec.structs.replace(FACTS, client=client))
    ]
    assert (names[0] == names[1]) is same


def test_a_history_read_in_parts_has_each_finding_once(tmp_path):
    with HistoryWriter(tmp_path / "run" / "history", "run") as writer:
        for event in run():
            writer.record(event)
    assert check_one(tmp_path / "run").counts["wedged-client"] == 2
    path = str(tmp_path / "run" / "history" / "clustered.parquet")
    parts = [find(load_units([Unit(0, path, groups=groups)]).log) for groups in ((0,), (1,))]
    assert [len(part.partition) for part in parts] == [0, 2]


def test_libraries_are_counted_by_runs_and_producers_not_by_log_partitions():
    verdict = judge_events(run())
    (client,) = wedged_clients([verdict.anomalies, {}, verdict.anomalies])
    assert (client.client, client.runs, client.producers, client.errors) == (
        "kafka-python 3.0.12",
        2,
        2,
        ("TimeLimit",),
    )
    assert client.sentence() == (
        "Not the log: 2 producers of kafka-python 3.0.12 stopped working in 2 runs, where new ones worked; "
        "last error: TimeLimit."
    )
