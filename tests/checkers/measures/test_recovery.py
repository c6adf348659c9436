"""Recovery is claimed only of runs that tried it, and only of log partitions that lacked nothing."""

from io import BytesIO

import msgspec

from checkers import Recovery
from checkers import check_one as check
from tests.checkers.in_memory import judge_events
from workloads import Event, EventType, FreshWrites, Function, Retirement, Send
from workloads.history import HistoryWriter, export_jsonl, import_jsonl, read_events
from workloads.operations import HARNESS, NO_INSTANCE

FRESH = FreshWrites(limit_ms=10, written=("t-0",), unwritten={"t-1": "no answer"}, lacking={"t-2": "it has no leader"})
RETIREMENT = Retirement(
    reason="silent", successor=1, silent_ms=7_000, partitions=("t-0",), errors=("TimeLimit",), client="some 1.0"
)


def mark(function, detail, process=HARNESS):
    text = msgspec.json.encode(detail).decode()
    instance = max(process, NO_INSTANCE)
    return Event(time_us=9, process=process, instance=instance, type=EventType.INFO, function=function, detail=text)


def drain(partition, kind):
    return Event(time_us=9, process=5, type=kind, function=Function.DRAIN, partitions=(partition,), offset=0)


BEGIN = mark(Function.PHASE, {"mark": "break"})
SENDS = [
    Event(time_us=1, process=0, instance=0, type=EventType.OK, function=Function.SEND, micro=(Send(f"t-{n}", n, 0),))
    for n in range(3)
]
DRAINS = [drain("t-0", EventType.OK), drain("t-1", EventType.INFO), drain("t-2", EventType.INFO)]


def test_what_nobody_tried_is_not_claimed():
    assert judge_events([BEGIN, *SENDS, *DRAINS]).recovery == Recovery(tried=False)


def test_a_log_partition_that_lacks_something_is_not_called_unread():
    recovery = judge_events([BEGIN, *SENDS, mark(Function.RECOVERY, FRESH), *DRAINS]).recovery
    assert (recovery.tried, recovery.unwritten, recovery.lacking) == (True, FRESH.unwritten, FRESH.lacking)
    assert list(recovery.unread) == ["t-1"]


def test_a_run_that_says_what_was_unread_is_believed():
    facts = msgspec.structs.replace(FRESH, unread={"t-0": "no leader named its end in time"})
    assert judge_events([BEGIN, *SENDS, mark(Function.RECOVERY, facts), *DRAINS]).recovery.unread == facts.unread
    slow = msgspec.structs.replace(FRESH, unread={})
    assert judge_events([BEGIN, *SENDS, mark(Function.RECOVERY, slow), *DRAINS]).recovery.unread == {}


def test_producers_that_were_given_up_are_counted():
    events = [BEGIN, *SENDS, mark(Function.RETIRE, RETIREMENT, process=0), mark(Function.RECOVERY, FRESH)]
    assert judge_events(events).recovery.retired == 1
    assert judge_events(events[:-1]).recovery == Recovery(tried=False, retired=1)


def test_another_tools_operations_of_the_same_names_claim_nothing(tmp_path):
    lines = [
        b'{"process": "nemesis", "type": "info", "f": "recovery", "time": 1}',
        b'{"process": 4, "type": "info", "f": "retire", "time": 2, "detail": "gone"}',
        b'{"process": 0, "type": "ok", "f": "send", "value": [["send", "k", [0, 1]]], "time": 3}',
    ]
    source = tmp_path / "foreign.jsonl"
    source.write_bytes(b"\n".join(lines))
    verdict = check(source)
    assert verdict.recovery == Recovery()
    assert not verdict.exercise.drained


def test_both_survive_storage_and_json_lines(tmp_path):
    events = [BEGIN, *SENDS, mark(Function.RETIRE, RETIREMENT, process=0), mark(Function.RECOVERY, FRESH), *DRAINS]
    with HistoryWriter(tmp_path / "run" / "history", "run") as writer:
        for event in events:
            writer.record(event)
    details = {e.function: e.detail for e in read_events(tmp_path / "run" / "history")}
    assert msgspec.json.decode(details[Function.RETIRE], type=Retirement) == RETIREMENT
    assert msgspec.json.decode(details[Function.RECOVERY], type=FreshWrites) == FRESH
    exported = BytesIO()
    export_jsonl(tmp_path / "run" / "history", exported)
    (tmp_path / "again.jsonl").write_bytes(exported.getvalue())
    import_jsonl(tmp_path / "again.jsonl", tmp_path / "again")
    assert check(tmp_path / "again.jsonl").recovery == check(tmp_path / "run").recovery
    assert check(tmp_path / "run").recovery.retired == 1
