"""The loop of virtual time."""

from harness.worlds.simulated.loop import Loop


def test_callbacks_happen_in_order_of_time_and_then_of_asking() -> None:
    loop, seen = Loop(), []
    for time_us, name in ((20, "late"), (10, "early"), (10, "early too")):
        loop.call_at(time_us, lambda name=name: seen.append((loop.now_us(), name)))
    assert not loop.run(lambda: False, 100)
    assert seen == [(10, "early"), (10, "early too"), (20, "late")]
    assert loop.now_us() == 100


def test_a_callback_for_the_past_waits_until_the_one_that_asked_has_returned() -> None:
    loop, seen = Loop(), []

    def first() -> None:
        loop.call_at(0, lambda: seen.append("asked"))
        seen.append("returned")

    loop.call_at(5, first)
    loop.run(lambda: False, 5)
    assert seen == ["returned", "asked"]
    assert loop.now_us() == 5


def test_driving_stops_as_soon_as_it_is_finished() -> None:
    loop, seen = Loop(), []
    for time_us in (1, 2, 3):
        loop.call_at(time_us, lambda: seen.append(loop.now_us()))
    assert loop.run(lambda: len(seen) == 2, 100)
    assert (seen, loop.now_us()) == ([1, 2], 2)
