"""The points of a check. Each tries one thing, and raises a BrokenPointError that says what to mend."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from harness.lab.client_check.stage import (
    ANSWER_LIMIT_S,
    PARTITION,
    SEND_LIMIT_S,
    SETTINGS,
    TOPIC,
    BrokenPointError,
    CheckedClient,
    CheckStage,
    eventually,
    require_ok,
)
from harness.worlds.clients.programs.messages import Answer, End, Method, Offset, ToldClass, ToldPartition, ToldRecord
from workloads import PAYLOAD_HEADER, ClientCapability, Membership

#: Records of a point.
COUNT: Final = 50
#: The log partition of transactions, apart from the others because of their markers.
_OTHER: Final = f"{TOPIC}-1"
#: No broker listens here.
_NOWHERE: Final = "127.1.2.3:1"
#: A poll that waits this long is to be woken up.
_LONG_MS: Final = 60_000
#: The linger.ms of a crash.
_LINGER_MS: Final = 2_000
#: The mistake in a crash.
_WAITED: Final = "what waited for linger.ms; drop the client as if it had been killed"
#: More bytes than max.message.bytes of a topic.
_TOO_LARGE: Final = 2 * 2**20


def hello(stage: CheckStage) -> None:
    """It says its name, its version and what it can do in its first line."""
    said = stage.hello
    for key in ("name", "version"):
        if not getattr(said, key).strip():
            raise BrokenPointError(f'has an empty "{key}" in its first line; write that of the library')


def sends(stage: CheckStage) -> None:
    """Every send is answered once, with the offset that the record has in the log."""
    producer, marks = stage.producer(), [b"%s %d" % (stage.name("sends").encode(), each) for each in range(COUNT)]
    answers = producer.sent([producer.send(mark) for mark in marks])
    for answer in answers:
        require_ok(answer, Method.SEND)
        if answer.offset is None:
            raise BrokenPointError('answers a send without "offset", with acks=all; write that of the record')
    producer.close()
    written = {record.payload: record.offset for record in stage.log()}
    for mark, answer in zip(marks, answers, strict=True):
        if mark not in written:
            raise BrokenPointError(f"told offset {answer.offset} of a record that is not in the log; answer when it is")
        if written[mark] != answer.offset:
            raise BrokenPointError(f"told offset {answer.offset} of a record that has {written[mark]}")


def refused_records(stage: CheckStage) -> None:
    """A record that is too large, and a topic that does not exist, end with an error that has a name and a class."""
    producer = stage.producer()
    for what, send in (
        ("a record of 2 MiB", producer.send(b"x" * _TOO_LARGE)),
        ("a record for a topic that does not exist", producer.send(b"x", topic=stage.name("no-such-topic"))),
    ):
        (answer,) = producer.sent([send])
        if answer.end is End.OK:
            raise BrokenPointError(f"says ok of {what}; tell the library's error")
        _require_class(answer, what)
    (after,) = producer.sent([producer.send(b"after it")])
    if after.end is End.OK:
        producer.close()


def _require_class(answer: Answer, what: str) -> None:
    if answer.told_class is None:
        raise BrokenPointError(f'gives {answer.error} of {what} no "class"; write refused, failed or what it is')
    if (answer.end is End.FAIL) != (answer.told_class is ToldClass.REFUSED):
        raise BrokenPointError(
            f"ends {what} with {answer.end} and the class {answer.told_class}; a send is fail if it was refused, and "
            "info if the library had taken it"
        )


def time_limits(stage: CheckStage) -> None:
    """Every send ends within delivery.timeout.ms and max.block.ms, also without any broker."""
    properties = (_NOWHERE,)
    try:
        producer = stage.producer(bootstrap=properties)
    except BrokenPointError as error:
        if "ends new_producer" in str(error):
            return  # it says so, and the harness tries again
        raise
    (answer,) = producer.sent([producer.send(b"x")])
    if answer.end is End.OK:
        raise BrokenPointError("says ok of a send that no broker has seen")
    _require_class(answer, "a send that no broker answers")
    producer.close()


def reads(stage: CheckStage) -> None:
    """An assigned consumer reads every record from the offset that it is told, and knows the end of the log."""
    log, consumer = stage.log(), stage.consumer()
    _assign(consumer, None)
    read = _polled(consumer, len(log))
    for record, true in zip(read, log, strict=False):
        value = None if true.tombstone else true.payload
        if (record.offset, record.key or b"", record.value) != (true.offset, true.key, value):
            raise BrokenPointError(
                f"hands over offset {record.offset} with key {record.key!r} and value {record.value!r}, where the log "
                f"has {true.offset}, {true.key!r} and {value!r}"
            )
    if len(read) < len(log):
        raise BrokenPointError(f"hands over {len(read)} of {len(log)} records of a log, from its start")
    middle = log[len(log) // 2].offset
    _assign(consumer, middle)
    again = _polled(consumer, 1)
    if not again or again[0].offset != middle:
        raise BrokenPointError(
            f"was assigned {PARTITION} from offset {middle} on, and begins with {again[0].offset if again else 'none'}"
        )
    ends = consumer.done(Method.ENDS, partitions=[ToldPartition(TOPIC, 0)], timeout_ms=2_000).offsets or []
    if [each.offset for each in ends] != [log[-1].offset + 1]:
        raise BrokenPointError(f"says that the log ends at {[each.offset for each in ends]}, not {log[-1].offset + 1}")
    consumer.close()


def _assign(consumer: CheckedClient, offset: int | None) -> None:
    consumer.done(Method.ASSIGN, offsets=[Offset(TOPIC, 0, offset)])


def _polled(consumer: CheckedClient, count: int) -> list[ToldRecord]:
    """The records of polls until there are this many, or nothing more comes."""
    read: list[ToldRecord] = []

    def enough() -> bool:
        read.extend(consumer.done(Method.POLL, timeout_ms=200).records or [])
        return len(read) >= count

    eventually(enough)
    return read


def waking_up(stage: CheckStage) -> None:
    """A poll that waits for a minute is answered as soon as the consumer is woken up."""
    consumer = stage.consumer()
    consumer.done(Method.ASSIGN, offsets=[Offset(TOPIC, 2, None)])  # it stays empty
    waiting = consumer.begin(Method.POLL, timeout_ms=_LONG_MS)
    stage.process.wake_up(consumer.number)
    try:
        consumer.answer(waiting, Method.POLL, ANSWER_LIMIT_S / 2)
    except BrokenPointError as error:
        if stage.process.problem:
            raise
        raise BrokenPointError(
            "does not answer a poll when it is woken up; end the poll, with records or without"
        ) from error
    consumer.close()


def tombstones(stage: CheckStage) -> None:
    """A record without a value, and with a header, is written and read so."""
    producer, mark = stage.producer(), stage.name("dead").encode()
    producer.sent([producer.send(None, headers={PAYLOAD_HEADER: mark})])
    producer.close()
    last = stage.log()[-1]
    if not last.tombstone or last.payload != mark:
        raise BrokenPointError('writes no record without a value and with the header "ackproof" where "value" is null')
    consumer = stage.consumer()
    _assign(consumer, last.offset)
    read = _polled(consumer, 1)
    if not read or read[0].value is not None or (read[0].headers or {}).get(PAYLOAD_HEADER) != mark:
        raise BrokenPointError('hands a tombstone over with a value or without its header; write "value": null')
    consumer.close()


def group_members(stage: CheckStage) -> None:
    """A member tells what it is assigned, commits, and knows what its group has committed."""
    member, events = stage.consumer(Membership(stage.name("group"))), list[Answer]()
    member.done(Method.SUBSCRIBE, topics=(TOPIC,), events=events)

    def assigned() -> bool:
        member.done(Method.POLL, timeout_ms=200)
        return any(ToldPartition(TOPIC, 0) in (event.partitions or []) for event in events)

    if not eventually(assigned, 2 * ANSWER_LIMIT_S):
        raise BrokenPointError(f'is assigned {PARTITION} and tells no event "assigned" that has it')
    committed = [Offset(TOPIC, 0, 7)]
    member.done(Method.COMMIT, offsets=committed, timeout_ms=2_000)
    told = member.done(Method.COMMITTED, partitions=[ToldPartition(TOPIC, 0)], timeout_ms=2_000).offsets
    if told != committed:
        raise BrokenPointError(f"committed offset 7, and says that the group has {told}")
    member.close()


def transactions(stage: CheckStage) -> None:
    """A commit lets all of it count, an abort nothing, and a producer that was fenced says fatal."""
    name = stage.name("transactional")
    producer = stage.producer(transactional_id=name)
    producer.done(Method.INIT_TRANSACTIONS, SEND_LIMIT_S)
    for mark, end in ((b"aborted", Method.ABORT_TRANSACTION), (b"committed", Method.COMMIT_TRANSACTION)):
        producer.done(Method.BEGIN_TRANSACTION)
        record = {"topic": TOPIC, "partition": 1, "key": b"key", "value": f"{name} {mark.decode()}".encode()}
        require_ok(producer.answer(producer.begin(Method.SEND, **record), Method.SEND, SEND_LIMIT_S), Method.SEND)
        producer.done(end, SEND_LIMIT_S)
    plain = stage.producer()
    plain.done(Method.SEND, SEND_LIMIT_S, topic=TOPIC, partition=1, key=b"key", value=b"the last one")
    plain.close()
    counted = [each.payload for each in stage.log(_OTHER, "read_committed")]
    if f"{name} aborted".encode() in counted:
        raise BrokenPointError("said ok of an abort, and what it aborted counts")
    if f"{name} committed".encode() not in counted:
        raise BrokenPointError("said ok of a commit, and what it committed does not count")
    successor = stage.producer(transactional_id=name)
    successor.done(Method.INIT_TRANSACTIONS, SEND_LIMIT_S)
    begun = producer.call(Method.BEGIN_TRANSACTION)
    sent = producer.sent([producer.send(b"by a zombie")]) if begun.end is End.OK else []
    ended = [producer.call(Method.COMMIT_TRANSACTION, SEND_LIMIT_S)] if sent else []
    if all(answer.end is End.OK for answer in (begun, *sent, *ended)):
        raise BrokenPointError("says ok of a commit of a producer that another one with its transactional.id fenced")
    for refused in (begun, *ended):
        # Some libraries say ok of a commit whose sends have all failed.
        if refused.end is not End.OK and refused.told_class is not ToldClass.FATAL:
            raise BrokenPointError(
                f"gives {refused.error} the class {refused.told_class}, where another producer with its "
                "transactional.id has taken over; write fatal"
            )
    producer.close()
    successor.close()


def closing(stage: CheckStage) -> None:
    """A producer that is closed while no broker answers answers its sends first, and nothing afterwards."""
    producer = stage.producer()
    producer.sent([producer.send(b"before it is closed")])
    with stage.silence():
        waiting = [producer.send(b"x") for _ in range(5)]
        producer.call(Method.CLOSE, timeout_ms=1_000)
        for answer in producer.sent(waiting):
            if answer.end is not End.OK:
                _require_class(answer, "a send that close gave up")


def crash(stage: CheckStage) -> None:
    """A crash gives up what the producer has not sent yet: none of it reaches the log."""
    patient = replace(SETTINGS, linger_ms=_LINGER_MS, batch_size=1_000_000)
    producer, mark = stage.producer(patient), stage.name("crash").encode()
    producer.sent([producer.send(b"before the crash")])
    begin = time.monotonic()
    producer.sent([producer.send(b"the second one")])
    # A library that does not wait for linger.ms has sent all before the crash.
    lingers = (time.monotonic() - begin) * 1_000 > 0.75 * _LINGER_MS
    waiting = [producer.send(b"%s %d" % (mark, each)) for each in range(5)]
    producer.done(Method.CRASH, timeout_ms=1_000)
    if any(answer.end is End.OK for answer in producer.sent(waiting)) and lingers:
        raise BrokenPointError(f"sends in a crash {_WAITED}")
    if lingers and any(record.payload.startswith(mark) for record in stage.log()):
        raise BrokenPointError(f"flushes in a crash {_WAITED}")


def end_of_input(stage: CheckStage) -> None:
    """It ends when its standard input ends, with clients that are open."""
    producer, process = stage.producer(), stage.process
    producer.sent([producer.send(b"before the end")])
    process.end_input()
    if process.was_killed:
        raise BrokenPointError(
            "does not end within 5 s when its standard input ends; else it outlives a harness that dies"
        )


class CheckPoint(NamedTuple):
    """One point: its name, what is tried, and the capabilities without which it is left out."""

    name: str
    attempt: Callable[[CheckStage], None]
    needs: Sequence[ClientCapability] = ()


POINTS: Final = (
    CheckPoint("hello", hello),
    CheckPoint("sends", sends),
    CheckPoint("errors", refused_records),
    CheckPoint("time limits", time_limits),
    CheckPoint("reads", reads),
    CheckPoint("waking up", waking_up),
    CheckPoint("groups", group_members, (ClientCapability.SUBSCRIPTION, ClientCapability.COMMITS)),
    CheckPoint("transactions", transactions, (ClientCapability.TRANSACTIONS,)),
    CheckPoint("close", closing),
    CheckPoint("crash", crash),
    CheckPoint("tombstones", tombstones, (ClientCapability.TOMBSTONES,)),
    CheckPoint("end of input", end_of_input),
)
