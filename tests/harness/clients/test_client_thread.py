"""Calls end exactly once, on the clock's thread, whatever the library does."""

import threading
from collections.abc import Callable

import pytest

from harness.clients.client_thread import Owner, Pending

LIMIT_S = 5.0


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
    assert pending.stands(ticket)
    clock.pass_until(100_000)
    assert answers == ["too late"]
    assert not pending.stands(ticket)


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
