"""Time in which nobody was served is nobody's fault."""

from __future__ import annotations

from types import SimpleNamespace

from workloads import ServedTime


def test_of_the_time_between_two_looks_no_more_counts_than_there_should_be():
    clock = SimpleNamespace(at_us=5_000, now_us=lambda: clock.at_us)
    served = ServedTime(clock, every_us=100)
    clock.at_us += 100
    assert served.look() == 100
    clock.at_us += 30
    assert served.now_us() == 130
    clock.at_us += 9_000
    assert (served.now_us(), served.look(), served.now_us()) == (200, 200, 200)
    clock.at_us += 60
    assert served.now_us() == 260


def test_time_in_which_the_machine_serves_nobody_does_not_count():
    clock = SimpleNamespace(at_us=0, now_us=lambda: clock.at_us)
    served = ServedTime(clock, every_us=100)
    clock.at_us += 80
    assert served.look("its disk stands") == 0
    clock.at_us += 50
    assert served.look() == 50


def test_what_hindered_the_machine_for_longest_is_named():
    clock = SimpleNamespace(at_us=0, now_us=lambda: clock.at_us)
    served = ServedTime(clock, every_us=100_000)
    for passed_us, hindrance in ((100_000, ""), (4_000_000, ""), (3_000_000, "its disk stands"), (2_000_000, "")):
        clock.at_us += passed_us
        served.look(hindrance)
    assert served.lost() == "in 8.8 of 9.1 s the machine was too slow: it woke the harness late"
    clock.at_us += 3_000_000
    served.look("its disk stands")
    assert served.lost() == "in 11.8 of 12.1 s the machine was too slow: its disk stands"
