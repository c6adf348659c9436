"""Calls end exactly once, on the clock's thread, whatever the library does."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.worlds.clients.adapter import AdaptedProducer, Content
from harness.worlds.clients.client_thread import Owner, Pending
from workloads import EventType, SendOutcome

LIMIT_S = 60.0


class ManualClock:
    """Time stands still until it is set; what is posted waits until it is served."""

    def __init__(self) -> None:
        self.time_us = 0
        self.calls: list[tuple[int, Callable[[], None]]] = []
        self.posted: list[Callable[[], None]] = []

    def now_us(self) -> int:
        return self.time_us

    def call_at(self, time_us: int, callback: Callable[[], None]) -> None:
        self.calls.append((time_us, callback))

    def post(self, callback: Callable[[], None]) -> None:
        self.posted.append(callback)

    def serve(self) -> None:
        while self.posted:
            self.posted.pop(0)()

    def pass_until(self, time_us: int) -> None:
        self.time_us = time_us
        for at_us, callback in self.calls:
            if at_us <= time_us:
                callback()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_an_answer_comes_after_the_call_has_returned(clock: ManualClock) -> None:
    pending, answers = Pending[str](clock), list[str]()
    ticket = pending.begin(answers.append, 100, "too late")
    pending.answer(ticket, "ok")
    assert answers == []
    clock.serve()
    assert answers == ["ok"]


def test_the_first_of_two_answers_stands(clock: ManualClock) -> None:
    pending, answers = Pending[str](clock), list[str]()
    ticket = pending.begin(answers.append, 100, "too late")
    pending.answer(ticket, "expired")
    pending.answer(ticket, "succeeded after all")
    clock.serve()
    clock.pass_until(200_000)
    assert answers == ["expired"]


def test_a_call_without_answer_ends_at_its_limit_and_not_before(clock: ManualClock) -> None:
    pending, answers = Pending[str](clock), list[str]()
    ticket = pending.begin(answers.append, 100, "too late")
    clock.pass_until(99_999)
    assert pending.waits(ticket)
    clock.pass_until(100_000)
    assert answers == ["too late"]
    assert not pending.waits(ticket)


def test_many_calls_share_one_timer_and_each_ends_at_its_own_limit(clock: ManualClock) -> None:
    pending, answers = Pending[str](clock), list[str]()
    for limit_ms in (100, 200, 50, 300):
        pending.begin(answers.append, limit_ms, f"after {limit_ms} ms")
    assert [at_us for at_us, _ in clock.calls] == [100_000, 50_000]  # the second because it is earlier
    ended = {50: 1, 100: 2, 199: 2, 200: 3, 299: 3, 300: 4}
    for time_ms, count in ended.items():
        clock.pass_until(time_ms * 1_000)
        assert len(answers) == count
    assert answers == ["after 50 ms", "after 100 ms", "after 200 ms", "after 300 ms"]


def test_closing_ends_every_call_once(clock: ManualClock) -> None:
    pending, answers = Pending[str](clock), list[str]()
    tickets = [pending.begin(answers.append, 100, "too late") for _ in range(3)]
    pending.answer(tickets[0], "ok")
    pending.answer_all("closed")
    clock.serve()
    assert answers == ["ok", "closed", "closed"]
    assert len(pending) == 0


def test_an_owner_tries_until_its_library_can_be_made_and_unmakes_it_once() -> None:
    attempts, did, unmade = list[int](), threading.Event(), list[str]()

    def make() -> str:
        attempts.append(1)
        if len(attempts) < 3:
            raise ConnectionError("no broker")
        return "library"

    owner = Owner("owner", make, unmade.append)
    owner.submit(lambda library: did.set() if library == "library" else None)
    assert did.wait(LIMIT_S)
    owner.stop()
    owner.stop()
    assert owner.join(LIMIT_S) is None
    assert len(attempts) == 3
    assert unmade == ["library"]


def test_an_owner_that_never_connected_can_be_stopped() -> None:
    def make() -> str:
        raise ConnectionError("no broker")

    owner = Owner("owner", make, lambda _: None)
    owner.stop()
    assert owner.join(LIMIT_S) is None


def test_a_job_that_fails_does_not_end_its_owner() -> None:
    did = threading.Event()

    def fail(_: str) -> None:
        raise RuntimeError("unforeseen")

    owner = Owner("owner", lambda: "library", lambda _: None)
    owner.submit(fail)
    owner.submit(lambda _: did.set())
    assert did.wait(LIMIT_S)
    owner.stop()
    assert owner.join(LIMIT_S) is None


def test_a_thread_that_lives_on_is_named() -> None:
    begun, release = threading.Event(), threading.Event()

    def hang(_: str) -> None:
        begun.set()
        release.wait(LIMIT_S)

    owner = Owner("stuck owner", lambda: "library", lambda _: None)
    owner.submit(hang)
    assert begun.wait(LIMIT_S)
    owner.stop()
    assert owner.join(0.01) == "stuck owner"
    release.set()
    assert owner.join(LIMIT_S) is None


def when_idle(owner: Owner[Any]) -> Any:
    deadline = time.monotonic() + LIMIT_S
    while owner.idle is None and time.monotonic() < deadline:
        time.sleep(0.001)
    return owner.idle


def test_an_owner_is_idle_only_while_no_job_waits_or_is_under_way() -> None:
    began, release = threading.Event(), threading.Event()

    def hold(_: str) -> None:
        began.set()
        release.wait(LIMIT_S)

    owner = Owner("owner", lambda: "library", lambda _: None)
    owner.submit(hold)
    assert owner.idle is None
    assert began.wait(LIMIT_S)
    assert owner.idle is None
    release.set()
    assert when_idle(owner) == "library"
    owner.stop()
    assert owner.join(LIMIT_S) is None


class RecordingProducer(AdaptedProducer[list[bytes]]):
    """Its library is a list; a send to partition "t-1" has to wait for ``metadata``."""

    def __init__(self, clock: ManualClock) -> None:
        self.metadata = threading.Event()
        self.appended_by: list[str] = []
        super().__init__(clock, Owner("library", list[bytes], lambda _: None), 1_000)

    def _waits(self, partition: str, _: list[bytes]) -> bool:
        return partition == "t-1" and not self.metadata.is_set()

    def _send(self, ticket: int, partition: str, key: bytes, content: Content, library: list[bytes]) -> None:
        if partition == "t-1":
            self.metadata.wait(LIMIT_S)
        library.append(content.value or b"")
        self.appended_by.append(threading.current_thread().name)


def test_an_acknowledgement_has_the_time_at_which_the_library_had_it(clock: ManualClock) -> None:
    producer, answers = RecordingProducer(clock), list[SendOutcome]()
    clock.pass_until(1_000)
    producer._acknowledge(producer._begin(answers.append), 7)
    clock.pass_until(1_400)
    clock.serve()
    assert answers == [SendOutcome(EventType.OK, 7, answered_us=1_000)]
    producer.close()
    assert producer.owner.join(LIMIT_S) is None


def test_a_send_that_cannot_wait_is_made_at_once_but_never_before_one_that_waits(clock: ManualClock) -> None:
    producer = RecordingProducer(clock)
    library = when_idle(producer.owner)
    for number, partition in enumerate(["t-0", "t-1", "t-0"]):
        producer.send(partition, b"key", bytes([number]), lambda _: None)
    assert library == [b"\0"]
    producer.metadata.set()
    when_idle(producer.owner)
    producer.send("t-1", b"key", b"\3", lambda _: None)
    assert library == [b"\0", b"\1", b"\2", b"\3"]
    assert producer.appended_by == ["MainThread", "library", "library", "MainThread"]
    producer.close()
    assert producer.owner.join(LIMIT_S) is None
