"""The clock of real processes: one thread, in order, with a limit."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from harness.worlds.real.clock import RealClock

SOON_US = 60_000_000


def test_calls_come_in_the_order_of_their_times_then_of_their_making() -> None:
    clock, came = RealClock(), list[str]()
    for time_us, name in ((2_000, "late"), (0, "first"), (0, "second")):
        clock.call_at(time_us, lambda name=name: came.append(name))  # type: ignore[misc]
    assert clock.run(lambda: len(came) == 3, SOON_US)
    assert came == ["first", "second", "late"]


def test_no_call_comes_before_its_time() -> None:
    clock, came = RealClock(), list[int]()
    clock.call_at(20_000, lambda: came.append(clock.now_us()))
    assert clock.run(lambda: bool(came), SOON_US)
    assert came[0] >= 20_000


def test_what_other_threads_post_is_called_on_the_driving_thread() -> None:
    clock, came = RealClock(), list[str]()
    poster = threading.Thread(target=lambda: clock.post(lambda: came.append(threading.current_thread().name)))
    poster.start()
    assert clock.run(lambda: bool(came), SOON_US)
    poster.join()
    assert came == [threading.current_thread().name]


def test_driving_ends_at_its_limit_and_says_that_it_is_not_finished() -> None:
    clock = RealClock()
    assert not clock.run(lambda: False, 10_000)
    assert 10_000 <= clock.now_us() < SOON_US


def test_results_are_served_although_calls_are_always_due() -> None:
    clock, came = RealClock(), list[bool]()

    def again() -> None:
        clock.call_at(0, again)

    again()
    clock.post(lambda: came.append(True))
    assert clock.run(lambda: bool(came), SOON_US)


@pytest.mark.parametrize("hand_over", [RealClock.post, lambda clock, callback: clock.call_at(0, callback)])
def test_an_exception_of_a_callback_reaches_whoever_drives(
    hand_over: Callable[[RealClock, Callable[[], None]], None],
) -> None:
    clock = RealClock()

    def fail() -> None:
        raise RuntimeError("from a callback")

    hand_over(clock, fail)
    with pytest.raises(RuntimeError, match="from a callback"):
        clock.run(lambda: False, SOON_US)


def test_nothing_is_lost_when_many_threads_post_while_the_clock_sleeps_and_serves() -> None:
    clock, came = RealClock(), list[int]()
    posters = [
        threading.Thread(target=lambda first=first: [clock.post(partial(came.append, first + n)) for n in range(1_000)])  # type: ignore[misc]
        for first in range(0, 8_000, 1_000)
    ]
    for poster in posters:
        poster.start()
    assert clock.run(lambda: len(came) == 8_000, SOON_US)
    assert sorted(came) == list(range(8_000))


@pytest.mark.race
def test_a_sleep_ends_by_its_limit_after_a_result_was_served() -> None:
    """A queue of the standard library waited for ever in 3 of 40,000 such sleeps (CPython 3.11)."""
    clock = RealClock()
    alive = threading.Timer(60, lambda: clock.post(partial(pytest.fail, "the clock sleeps for ever")))
    alive.start()
    for _ in range(200_000):
        rung = list[int]()
        clock.post(lambda: None)
        clock.call_at(clock.now_us() + 2, partial(rung.append, 1))
        assert clock.run(partial(bool, rung), SOON_US * 10)
    alive.cancel()
