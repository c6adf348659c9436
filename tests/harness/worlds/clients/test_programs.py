"""A client that is a program: its messages, and what becomes of one that does not keep to the protocol."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from harness.ground.errors import HostError, PlanError
from harness.plan import Processes
from harness.plan.worlds import ClientProgram
from harness.worlds.clients import ClientProcess, StartedProgram, program_library
from harness.worlds.clients.programs import messages, process
from harness.worlds.clients.programs.messages import (
    Answer,
    End,
    Method,
    ProgramCall,
    ToldRecord,
    answer_in,
    line_of,
    offsets_of,
    properties_of,
)
from harness.worlds.clients.programs.process import ClientError
from harness.worlds.real.clock import RealClock
from harness.worlds.real.world import refuse_unable
from tests.harness.worlds.clients.fake_programs import fake_program
from tests.harness.worlds.processes.conftest import spec
from tests.waiting import wait_until
from workloads import Fetched, GroupProtocol, Offsets, PollOutcome, SendOutcome, Settings, WorkloadPlan
from workloads.errors import CLIENT_CRASHED, TIME_LIMIT
from workloads.operations import EventType

NOBODY = ("127.1.2.3:1",)
SEND = ProgramCall(method=Method.SEND, client=0, topic="t", partition=0)


def test_a_call_is_a_line_of_json_without_what_it_does_not_need() -> None:
    call = ProgramCall(method=Method.SEND, client=3, call=4, topic="a-b", partition=12, key=b"k", value=b"\xff")
    line = line_of(call)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "method": "send", "client": 3, "call": 4, "topic": "a-b", "partition": 12, "key": "aw==", "value": "/w==",
    }  # fmt: skip
    begins = ProgramCall(method=Method.ASSIGN, client=0, call=1, offsets=offsets_of({"t-1": None, "u-0": 2**40}))
    assert json.loads(line_of(begins))["offsets"] == [
        {"topic": "t", "partition": 1, "offset": None},
        {"topic": "u", "partition": 0, "offset": 2**40},
    ]


def test_an_answer_is_read_and_null_is_the_same_as_a_key_that_is_missing() -> None:
    line = b'{"call":7,"end":"ok","error":null,"records":[{"topic":"t","partition":1,"offset":5,"key":null,"x":1}]}'
    assert answer_in(line) == Answer(call=7, end=End.OK, records=[ToldRecord("t", 1, offset=5)])


def test_properties_are_texts_as_kafka_spells_them() -> None:
    assert properties_of({"enable.idempotence": True, "group.id": None, "acks": -1}) == {
        "enable.idempotence": "true",
        "acks": "-1",
    }


def problem_of(program: ClientProcess, *calls: ProgramCall) -> str:
    """The sentence with which a run with this program ends, after these calls; "" if there is none."""
    threads = set(threading.enumerate())
    program.start()
    for call in calls:
        with suppress(OSError, TimeoutError):
            program.call(call, 5.0, _ignore if call.method is Method.SUBSCRIBE else None)
    try:
        program.end()
    except HostError as error:
        return str(error)
    finally:
        wait_until(lambda: set(threading.enumerate()) <= threads, "no thread is left")
    return ""


def _ignore(_: Answer) -> None:
    pass


ANSWER_TWICE = """
hello()
for call in calls():
    print("a call came", file=sys.stderr, flush=True)
    for _ in range(2):
        say(call=call["call"], end="ok")
"""


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ('say(call=99, end="ok")', "answers call 99, which was never made"),
        ('say(call=call["call"], end="ok", offset="five")', "Expected `int | null`, got `str` - at `$.offset`"),
        ('say(call=call["call"], end="done")', "Invalid enum value 'done' - at `$.end`"),
        ('say(call=call["call"])', 'answers call 1 with \'{"call": 1}\'; write an "end" or an "event"'),
        ('say(call=call["call"], end="info")', 'answers call 1 (send) without "error"'),
        ('say(call=call["call"], event="assigned", partitions=[])', "tells news of call 1, which is no subscribe"),
        ('print("connected!", flush=True)', "wrote 'connected!' to standard output, which is for answers"),
        ("print(7, flush=True)", "answers '7': Expected `object`, got `int`"),
        ("sys.exit(3)", "ended by itself with exit status 3"),
        ("os.close(1)", "ended by itself with exit status 0"),
        ('sys.stdout.write("x" * 5000); sys.stdout.flush()', "writes a line of more than"),
    ],
)
def test_what_a_program_does_wrong_is_a_sentence_with_its_name_and_its_last_lines(
    answers: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LINE_MAX", 1_000)
    text = f'hello()\nfor call in calls():\n    print("a call came", file=sys.stderr, flush=True)\n    {answers}\n'
    problem = problem_of(fake_program(tmp_path, text), SEND)
    assert problem.startswith("the client program fake "), problem
    assert sentence in problem
    assert "a call came" in problem


def test_an_answer_that_comes_twice_ends_the_run_and_every_call_that_waits(tmp_path: Path) -> None:
    program = fake_program(tmp_path, ANSWER_TWICE)
    program.start()
    assert program.call(SEND, 5.0).end is End.OK
    wait_until(lambda: program._ended, "the second answer is read")
    with pytest.raises(BrokenPipeError, match="the client program fake has ended"):
        program.call(SEND, 5.0)
    with pytest.raises(HostError, match=r"answers call 1 twice; .* a call came; logs/clients\.log"):
        program.end()


def test_a_member_that_tells_its_assignment_without_an_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "EVENTS_MAX", 10)
    text = """
hello()
for call in calls():
    while True:
        say(call=call["call"], event="assigned", partitions=[])
"""
    problem = problem_of(fake_program(tmp_path, text), ProgramCall(method=Method.SUBSCRIBE, client=0, topics=("t",)))
    assert "tells more than 10 times what its members are assigned" in problem


def test_a_client_that_ends_with_calls_unanswered_is_told_which(tmp_path: Path) -> None:
    text = (
        'hello()\nfor call in calls():\n    if call["method"] == "close":\n        say(call=call["call"], end="ok")\n'
    )
    program = fake_program(tmp_path, text)
    program.start()
    program.begin(SEND, 5.0)
    program.begin(ProgramCall(method=Method.SEND, client=1), 5.0)
    program.call(ProgramCall(method=Method.CLOSE, client=0), 5.0)
    with pytest.raises(HostError, match=r"ended client 0 and left call 1 \(send\) unanswered; answer the calls"):
        program.end()


def test_calls_that_are_never_answered_are_told_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_program(tmp_path, "hello()\nfor call in calls():\n    pass\n")
    program.start()
    with pytest.raises(TimeoutError):
        program.call(ProgramCall(method=Method.NEW_PRODUCER, client=0), 0.01)
    monkeypatch.setattr(process, "OVERDUE_S", -1.0)
    with pytest.raises(HostError, match=r"never answered call 1 \(new_producer\)"):
        program.end()


def test_an_answer_that_comes_late_is_not_taken_for_a_second_one(tmp_path: Path) -> None:
    text = """
hello()
lines = calls()
first, second = next(lines), next(lines)
say(call=first["call"], end="ok")
say(call=second["call"], end="ok", offset=5)
next(lines, None)
"""
    program = fake_program(tmp_path, text)
    program.start()
    with pytest.raises(TimeoutError):
        program.call(SEND, 0.01)
    assert program.call(SEND, 5.0).offset == 5
    program.end()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("time.sleep(60)", "does not start: no answer within 0 s"),
        ("print('no module', file=sys.stderr); sys.exit(1)", "does not start: no module"),
        ("sys.exit(4)", "does not start: it ended with exit status 4"),
        ("print('welcome')", "does not start: wrote 'welcome' to standard output"),
        ("hello(hello=2)", 'does not start: speaks version 2 of the protocol, and ackproof 1; say "hello": 1'),
        ("hello(version=3)", "Expected `str`, got `int` - at `$.version`"),
        ("hello(capabilities=['epochs'])", "says that it has epochs; the protocol knows transactions, tombstones"),
    ],
)
def test_a_program_that_does_not_say_hello_does_not_start(text: str, sentence: str, tmp_path: Path) -> None:
    program = fake_program(tmp_path, text)
    with pytest.raises(HostError) as raised:
        program.start(limit_s=0.4 if "sleep" in text else 30.0)
    assert sentence in str(raised.value)


def test_a_program_that_reads_nothing_stops_neither_callers_nor_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "END_LIMIT_S", 0.2)
    program = fake_program(tmp_path, "hello()\nwhile True:\n    time.sleep(60)\n")
    program.start()
    large = ProgramCall(method=Method.SEND, client=0, value=b"x" * 200_000)
    for _ in range(5):
        program.begin(large, 60.0)
    program.end()
    assert program._process is None


def test_standard_error_is_logged_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "LOGGED_MAX", 5)
    text = "hello()\nfor number in range(1000):\n    print('line', number, file=sys.stderr)\nsys.exit(1)\n"
    program = fake_program(tmp_path, text)
    with caplog.at_level(logging.WARNING):
        program.start()
        wait_until(lambda: program._ended, "it has ended")
        with pytest.raises(HostError, match=r"line 0 \| \.\.\. \| line 996 \| line 997 \| line 998 \| line 999; "):
            program.end()
    assert [record.getMessage() for record in caplog.records][-2:] == [
        "line 4",
        "the client program fake wrote 5 lines to standard error; further ones are left out",
    ]


def test_an_error_has_its_name_its_words_and_its_class(tmp_path: Path) -> None:
    text = """
hello()
for call in calls():
    say(**{"call": call["call"], "end": "fail", "class": "abortable", "error": "FENCED", "words": "by another"})
"""
    program = fake_program(tmp_path, text)
    program.start()
    with pytest.raises(ClientError, match="FENCED: by another") as raised:
        program.call(ProgramCall(method=Method.COMMIT_TRANSACTION, client=0), 5.0)
    assert raised.value.told_class is messages.ToldClass.ABORTABLE
    program.end()


#: Answers every call; a poll has its answer only when the ends are asked for. A crash is told on standard error.
OBEDIENT = """
hello(capabilities=["transactions", "tombstones", "subscription", "commits"])
waiting, polls = None, 0
for call in calls():
    number, method = call["call"], call["method"]
    if method == "send":
        said = {"end": "fail", "class": "refused", "error": "QUEUE_FULL"} if call["key"] == "bm8=" else {"end": "info",
            "class": "failed", "error": "InvalidRecordError"} if call["key"] == "YmFk" else {"end": "ok", "offset": 9}
        if call["key"] != "c2lsZW50":
            say(call=number, **said)
        else:
            waiting = number
    elif method == "poll":
        polls, waiting = polls + 1, number
    elif method == "ends":
        record = {"topic": "t", "partition": 0, "offset": 0, "key": "aw==", "value": "dg=="}
        dead = {"topic": "t", "partition": 0, "offset": 1, "key": "aw==", "headers": {"ackproof": "aA=="}}
        say(call=waiting, end="ok", records=[record, dead])
        waiting = None
        say(call=number, end="ok", offsets=[{"topic": "t", "partition": 0, "offset": polls}], error="NO_LEADER")
    elif method in ("close", "crash"):
        print(method, call["client"], file=sys.stderr, flush=True)
        if waiting and call["client"] == 0:
            say(call=waiting, end="info", error="CLOSED")
        say(call=number, end="ok")
    elif method != "wake_up":
        say(call=number, end="ok")
"""


def test_a_poll_that_is_answered_after_its_limit_loses_no_record(tmp_path: Path) -> None:
    program = fake_program(tmp_path, OBEDIENT)
    program.start()
    clock, polled, ends = RealClock(), list[PollOutcome](), list[Offsets]()
    clients = program_library(StartedProgram(program)).clients(
        clock, Settings(request_timeout_ms=100, delivery_timeout_ms=200), NOBODY
    )
    consumer = clients.consumer(1)
    consumer.assign(["t-0"], from_start=True)
    consumer.poll(10, polled.append)
    assert clock.run(lambda: len(polled) == 1, 60_000_000)
    assert polled[0] == PollOutcome(EventType.INFO, error=TIME_LIMIT)
    consumer.end_offsets(["t-0"], ends.append)
    consumer.poll(10, polled.append)
    assert clock.run(lambda: len(polled) == 2, 60_000_000)
    assert polled[1].records == (Fetched("t-0", 0, b"k", b"v"), Fetched("t-0", 1, b"k", b"h", tombstone=True))
    assert ends == [Offsets({"t-0": 1}, "NO_LEADER")]
    assert clients.close(60.0) == []
    program.end()


def test_sends_end_as_the_program_says_and_a_crash_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = fake_program(tmp_path, OBEDIENT)
    program.start()
    clock, sent = RealClock(), dict[bytes, SendOutcome]()
    clients = program_library(StartedProgram(program)).clients(clock, Settings(), NOBODY)
    producer = clients.producer(0)
    for key in (b"yes", b"no", b"bad", b"silent"):
        producer.send("t-0", key, b"v", lambda outcome, key=key: sent.__setitem__(key, outcome))  # type: ignore[misc]
    assert clock.run(lambda: len(sent) == 3, 60_000_000)
    assert (sent[b"yes"].type, sent[b"yes"].offset) == (EventType.OK, 9)
    assert (sent[b"no"].type, sent[b"no"].error) == (EventType.FAIL, "NeverSent: QUEUE_FULL")
    assert (sent[b"bad"].type, sent[b"bad"].error) == (EventType.INFO, "InvalidRecordError"), "a name proves nothing"
    producer.crash()
    assert clock.run(lambda: b"silent" in sent, 60_000_000)
    assert (sent[b"silent"].type, sent[b"silent"].error) == (EventType.INFO, CLIENT_CRASHED)
    assert clients.close(60.0) == []
    program.end()
    assert "crash 0" in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("hello", "workload", "protocol", "sentence"),
    [
        ("hello()", "transactions", "classic", "the client program fake 1.0 has no transactions"),
        (
            "hello(capabilities=['subscription', 'commits'])",
            "groups",
            "consumer",
            "fake 1.0 does not know group.protocol",
        ),
    ],
)
def test_a_workload_that_the_program_cannot_do_is_refused_before_the_cluster_starts(
    hello: str, workload: str, protocol: GroupProtocol, sentence: str, tmp_path: Path
) -> None:
    program = fake_program(tmp_path, f"{hello}\nnext(calls(), None)\n")
    program.start()
    asked = spec(
        Settings(group_protocol=protocol).to_mapping(),
        world=Processes(client=ClientProgram(command=("fake",))),
        workload=WorkloadPlan(name=workload),
    )
    with pytest.raises(PlanError, match=sentence):
        refuse_unable(program_library(StartedProgram(program)), asked)
    program.end()
