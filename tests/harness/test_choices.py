"""The tape of draws."""

from harness.choices import Drawn, Tape


def test_the_same_seed_draws_the_same() -> None:
    first, second, other = Tape(7), Tape(7), Tape(8)
    draws = [[tape.draw("x", 1000) for _ in range(50)] for tape in (first, second, other)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_every_draw_stays_under_its_bound() -> None:
    tape = Tape(1)
    drawn = [tape.draw("die", 6) for _ in range(600)]
    assert set(drawn) == set(range(6))
    assert tape.draw("nothing to choose", 1) == 0


def test_a_recording_replays_draw_by_draw() -> None:
    tape = Tape(3)
    drawn = [tape.draw("a", 10), tape.draw("b", 10_000)]
    assert tape.recorded() == [Drawn("a", 10, drawn[0]), Drawn("b", 10_000, drawn[1])]
    again = Tape(99, tape.values())
    assert [again.draw("a", 10), again.draw("b", 10_000)] == drawn


def test_an_edited_recording_is_still_a_run() -> None:
    tape = Tape(0, [17, 5])
    assert [tape.draw("a", 10), tape.draw("b", 10), tape.draw("c", 10)] == [7, 5, 0]
