"""Streams of draws, and recordings of them."""

import msgspec
import pytest

from harness.ground.choices import Choices, Recording
from harness.ground.errors import ChoicesError

PINNED = [766, 370, 850, 955, 46, 353]


def draws(choices: Choices, label: str, count: int = 50, bound: int = 1_000) -> list[int]:
    return [choices.draw(label, bound) for _ in range(count)]


def test_the_same_seed_and_label_draw_the_same() -> None:
    assert draws(Choices(7), "x") == draws(Choices(7), "x")
    assert draws(Choices(7), "x") != draws(Choices(8), "x")
    assert draws(Choices(7), "x") != draws(Choices(7), "y")


def test_the_numbers_are_the_same_on_every_machine() -> None:
    assert draws(Choices(7), "delay 0>1", 6) == PINNED


def test_draws_of_one_stream_shift_no_other() -> None:
    quiet, busy = Choices(3), Choices(3)
    draws(busy, "another fault")
    assert draws(busy, "this fault") == draws(quiet, "this fault")


def test_a_stream_goes_on_where_it_was_left() -> None:
    choices = Choices(3)
    assert choices.stream("x") is choices.stream("x")
    assert draws(choices, "x", 10) + draws(choices, "x", 10) == draws(Choices(3), "x", 20)


def test_every_draw_stays_under_its_bound() -> None:
    choices = Choices(1)
    assert set(draws(choices, "die", 600, 6)) == set(range(6))
    assert choices.draw("nothing to choose", 1) == 0


def test_a_recording_survives_json_and_is_performed_draw_by_draw() -> None:
    choices = Choices(3)
    drawn = [choices.draw("a", 10), choices.draw("b", 10_000), choices.draw("a", 10)]
    recording = msgspec.json.decode(msgspec.json.encode(choices.recording()), type=Recording)
    assert recording == Recording(3, {"a": [drawn[0], drawn[2]], "b": [drawn[1]]})
    again = Choices.recorded(recording)
    assert [again.draw("a", 10), again.draw("b", 10_000), again.draw("a", 10)] == drawn
    assert again.recording() == recording


def test_asking_past_the_end_of_a_recorded_stream_is_an_error() -> None:
    choices = Choices.recorded(Recording(3, {"a": [4]}))
    assert choices.draw("a", 10) == 4
    with pytest.raises(ChoicesError, match='end after 1 of "a"'):
        choices.draw("a", 10)
    with pytest.raises(ChoicesError, match='end after 0 of "b"'):
        choices.draw("b", 10)


def test_recorded_choices_end_where_another_seed_takes_over() -> None:
    choices = Choices.recorded(Recording(3, {"a": [4, 5, 6]}))
    assert choices.draw("a", 10) == 4
    choices.reseed(77)
    fresh = Choices(77)
    assert draws(choices, "a", 20, 10) == draws(fresh, "a", 20, 10)
    assert draws(choices, "b", 20, 10) == draws(fresh, "b", 20, 10)


def test_nothing_to_choose_from_is_an_error_and_never_a_silent_nought() -> None:
    with pytest.raises(ChoicesError, match="one of 0 choices"):
        Choices(3).draw("a", 0)


def test_a_recorded_value_that_does_not_fit_its_bound_is_an_error() -> None:
    with pytest.raises(ChoicesError, match='choice 0 of "a" is 17, and there are 10'):
        Choices.recorded(Recording(3, {"a": [17]})).draw("a", 10)
