"""Sends over a compacted topic name their record's key, and tombstones are sent as such."""

from __future__ import annotations

from typing import Any

import pytest

from workloads.client import SendOutcome
from workloads.instance import ProducerInstance, SendCounts, Writers
from workloads.operations import EventType, Function, Send
from workloads.values import decode, record_key_of


class Library:
    """Clients whose producer remembers what it was asked, and acknowledges it at offset 5 when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes, bytes]] = []
        self.answers: list[Any] = []
        self.tombstones = self

    def producer(self, _process: int) -> Library:
        return self

    def send(self, _partition: str, key: bytes, payload: bytes, done: Any) -> None:
        self.asked.append(("send", key, payload))
        self.answers.append(done)

    def send_tombstone(self, _partition: str, key: bytes, payload: bytes, done: Any) -> None:
        self.asked.append(("tombstone", key, payload))
        self.answers.append(done)


@pytest.fixture
def library() -> Library:
    return Library()


def instance(library: Any, perfect_world: Any, events: Any, *, keyed: bool) -> ProducerInstance:
    numbers = iter(range(10))
    writers = Writers(library, perfect_world.clock, events, numbers.__next__, SendCounts(), keyed)
    return ProducerInstance(writers, lambda *_: None)


def test_a_tombstone_is_sent_as_one_and_recorded_with_its_key(library: Any, perfect_world: Any, events: Any) -> None:
    value = instance(library, perfect_world, events, keyed=True).send("t-0", b"key-7", tombstone=True)
    library.answers[0](SendOutcome(EventType.OK, offset=5))
    ((how, key, payload),) = library.asked
    assert (how, key, decode(payload, "t-0", b"key-7")[0]) == ("tombstone", b"key-7", value)
    begun, ended = (event.micro[0] for event in events.of(Function.SEND))
    assert begun == Send("t-0", value, None, 7, tombstone=True)
    assert ended == Send("t-0", value, 5, 7, tombstone=True)


def test_sends_of_other_workloads_name_no_key(library: Any, perfect_world: Any, events: Any) -> None:
    instance(library, perfect_world, events, keyed=False).send("t-0", b"key-7")
    assert events.of(Function.SEND)[0].micro[0].record_key is None
    assert library.asked[0][0] == "send"


def test_keys_of_other_names_have_numbers_apart() -> None:
    assert record_key_of(b"key-7") == 7
    others = {record_key_of(name) for name in (b"trial", b"recovery", b"key-", b"key-1234567890")}
    assert len(others) == 4
    assert min(others) >= 2**30
    assert max(others) < 2**31
